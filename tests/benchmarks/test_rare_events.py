"""Benchmark of rare events: the stored table keeps its promises, and one row comes out again."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

from relparallel.published import data_folder

RUN = runpy.run_path(str(Path(__file__).with_name("rare_events.py")))
STORED = pd.read_csv(data_folder() / "benchmarks" / "rare_events.csv")


@pytest.mark.parametrize("method", ["karp_luby", "bounds"])
def test_errors_with_the_bias_bound_are_below_a_hundredth_in_seconds(method):
    table = STORED[STORED.method == method]
    assert set(table.network) == {name for name, *_ in RUN["cases"]()}
    assert table.value.between(0.9e-20, 1.1e-6).all()
    assert (table.groupby("network").value.agg(lambda x: x.max() / x.min()) > 1e13).all()
    assert (table.relative_error < 1e-2).all()
    assert (table.cpu_s < 15).all()


def test_bounds_and_estimates_agree():
    pairs = STORED.pivot(
        index=["network", "link_down"], columns="method", values=["value", "relative_error"]
    )
    apart = (pairs["value", "karp_luby"] - pairs["value", "bounds"]).abs()
    margin = pairs["relative_error"][["karp_luby", "bounds"]].sum(axis=1) * pairs["value", "bounds"]
    assert (apart <= margin * (1 + 1e-3) + 1e-5 * pairs["value", "bounds"]).all()


def test_splitting_is_refused_in_no_time():
    table = STORED[STORED.method == "splitting"]
    assert table.refused.str.startswith("max_work must be 1").all()
    assert (table.cpu_s < 1).all()


@pytest.mark.parametrize("method", ["karp_luby", "splitting"])
def test_a_row_comes_out_again(method):
    case = next(iter(RUN["cases"]()))
    row = RUN["measure"](*case, method)
    stored = STORED[
        (STORED.network == case[0]) & (STORED.link_down == case[3]) & (STORED.method == method)
    ]
    assert row["refused"] == stored.refused.fillna("").item()
    if not row["refused"]:
        assert row["value"] == pytest.approx(stored.value.item(), rel=1e-5)
