"""The table of coverage: a thousand runs each, and as many intervals hold as they say."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

from chapters.s13.estimators import SAMPLED
from relparallel.published import data_folder
from relparallel.reliability.sampling.estimation import ESTIMATORS

RUN = runpy.run_path(str(Path(__file__).with_name("interval_coverage.py")))
STORED = pd.read_csv(data_folder() / "derived" / "estimator_coverage.csv")


def test_every_estimator_is_there_with_a_thousand_runs():
    assert set(STORED.method) == {*ESTIMATORS, *SAMPLED}
    assert (STORED.runs == 1000).all()
    listed = {(m, name, n) for m, names in RUN["SAMPLES"].items() for name, n in names.items()}
    assert set(zip(STORED.method, STORED.network, STORED.samples, strict=True)) == listed


def test_intervals_hold_as_often_as_they_say():
    assert (STORED.covered >= 0.93).all()
    plain = STORED[STORED.bias_share == 0]
    assert {"crude", "permutation", "splitting", "zero_variance"} <= set(plain.method)
    assert (plain.covered <= 0.97).all()


@pytest.mark.parametrize("method", ["crude", "permutation"])
def test_a_row_comes_out_again(method):
    row = RUN["measure"]("Petersen, q = 0.1", method, 512, runs=20)
    assert row["exact"] == pytest.approx(0.0114331, rel=1e-6)
    assert row["covered"] >= 0.75
    assert row["covered"] + row["below"] + row["above"] == pytest.approx(1)
