"""Intervals: narrow near measured runs, wide abroad; and what a plan says of its distance."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evidence import measured_runs
from relparallel.parallel import Strategy, step_time
from relparallel.parallel.machine_parameters import quantiles
from relparallel.parallel.past_runs import FEATURES, Experience, experience, features
from relparallel.parallel.quantities import Split
from relparallel.published import data_folder

RUNS = {run.id: run for run in measured_runs()}
PLAIN = {**dict.fromkeys(FEATURES, 1.0), "family": "a100", "precision": "bf16", "lent": 0.0} | {
    "kind": ""
}
KIND = ("a100", "bf16", "s")


def made(*rows):
    """Experience of runs (software, publisher, tensor, near, far)."""
    names = ["software", "publisher", "tensor", "near", "far"]
    table = pd.DataFrame(rows, columns=names).assign(
        **{k: v for k, v in PLAIN.items() if k != "tensor"}
    )
    return Experience.of(table.assign(run=[*"abcdef"[: len(rows)]], mfu=0.4), quantiles())


def at(known, **sizes):
    """Place in `known` of ones but for some logarithms of sizes."""
    place = known.places[0].copy()
    for name, value in sizes.items():
        place[FEATURES.index(name)] = value
    return place


def test_the_deviation_is_that_of_the_formula_written_out():
    known = made(("s", "p", 1, 0.1, 0.2), ("s", "p", 1, 0.3, 0.4), ("t", "q", np.e**2, 0.1, 0.6))
    place = at(known, tensor=1.0)
    near = np.exp(-1 / 8)  # all of them at a distance of 1
    strangers = ((0.1 + 0.36) / 2 + near * (0.1 + 0.36)) / (1 + 2 * near) * 1.02
    own = (strangers + near * (0.01 + 0.09)) / (1 + 2 * near)
    found = known.deviation(place, 0.4, KIND)
    assert found**2 == pytest.approx(near * own + (1 - near) * strangers, rel=1e-12)
    assert known.deviation(place, 0.4, KIND, known=False) ** 2 == pytest.approx(strangers)
    assert known.deviation(place, 0.4, ("a100", "fp8", "s")) ** 2 == pytest.approx(strangers)
    above = known.deviation(place, 0.8, KIND)
    assert above == pytest.approx(np.hypot(found, np.log(2)))
    unseen = known.deviation(place, 0.4, KIND, layers="states")
    assert unseen == pytest.approx(np.hypot(found, 0.25))


def test_own_errors_never_widen_and_distance_never_narrows():
    known = made(("s", "p", 1, 0.9, 0.1), ("t", "q", 1, 0.1, 0.1))
    place = at(known)
    assert known.deviation(place, 0.4, KIND) == known.deviation(place, 0.4, KIND, known=False)
    known = made(("s", "p", 1, 0.05, 0.2), ("t", "q", 1, 0.1, 0.2))
    wide = [known.deviation(at(known, data=far), 0.4, KIND) for far in (0, 1, 2, 4, 8)]
    assert (np.diff(wide) > 0).all()
    assert wide[0] < 0.2 < wide[-1]


@pytest.mark.parametrize("name", ["PTDP-T-0010", "MPT-0001"])
def test_a_measured_run_is_its_own_neighbour(name):
    run = RUNS[name]
    step = step_time(run.model, run.strategy, run.cluster, run.global_batch, software=run.software)
    assert step.distance == pytest.approx(0, abs=1e-4)
    assert "above all" not in step.explain()
    assert "far from" not in step.explain()
    abroad = step_time(run.model, run.strategy, run.cluster, run.global_batch, software="nemo-2023")
    assert abroad.interval()[1] / abroad.total > step.interval()[1] / step.total


def test_a_step_says_what_is_above_all_measured_runs():
    run = next(run for run in RUNS.values() if run.source == "Megatron-Bridge, H100")
    split = Strategy(tensor=8, context=64, data=16384 // 512, zero_stage=3)
    place = replace(run.cluster, nodes=2048)
    step = step_time(replace(run.model, sequence=2**20), split, place, 512, precision="fp8")
    assert "above all runs measured on h100: " in step.explain()
    assert "context 64 (the largest is " in step.explain()
    assert "far from all measured runs" in step.explain()
    known = experience()
    kind = ("h100", "bf16", run.software)
    s = Split.of(run.strategy, run.global_batch)
    place = features(run.model, "bf16", s)[0]
    assert known.deviation(place, 0.9, kind) > known.deviation(place, 0.3, kind) + 0.1
    assert any(
        "MFU 90.0% is above the highest" in one for one in known.beyond(place, 0.9, "h100", "bf16")
    )
    assert known.beyond(place, 0.9, "mine", "bf16") == []


def test_left_out_runs_are_inside_by_source():
    """Of nine in ten asked for, 88 to 94 % are inside, sources counted equally; near runs more."""
    table = pd.read_csv(data_folder() / "derived" / "interval_coverage.csv")
    held = table.groupby(["left_out", "level"])["held"].mean().unstack()
    assert 0.88 < held.loc["publisher", 0.9] < 0.94 < held.loc["configuration", 0.9] < 0.97
    assert (held.loc["accelerator"] >= [0.45, 0.8, 0.9, 0.95]).all()
    wide = table[table["level"] == 0.9].groupby("left_out")["half_width"].mean()
    assert wide["configuration"] < wide["publisher"] < wide["accelerator"]


def test_a_use_of_the_peak_that_reads_as_the_highest_is_not_above_it():
    known = experience()
    highest = known.mfu[known.rows[("h100", "bf16")]].max()
    place = np.ones(len(FEATURES))
    for above, said in ((0.0, False), (1e-6, False), (2e-3, True)):
        notes = known.beyond(place, highest + above, "h100", "bf16")
        assert any("is above the highest" in note for note in notes) == said
