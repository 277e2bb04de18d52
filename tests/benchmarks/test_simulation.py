"""Benchmark of simulations: small tasks give a table, the stored one keeps the promised times."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

from relparallel.published import data_folder

RUN = runpy.run_path(str(Path(__file__).with_name("simulation.py")))
STORED = pd.read_csv(data_folder() / "benchmarks" / "simulation.csv").set_index(["task", "tool"])


def test_small_tasks_give_a_table():
    rows = pd.DataFrame(RUN["measure"](RUN["tasks"](years=4.0, replications=2), rounds=1))
    assert rows["task"].tolist() == ["counts", "identities, Weibull", "fleet study", "fleet study"]
    assert (rows["median_cpu_s"] > 0).all()
    assert rows["value"].iloc[0] == pytest.approx(0.5457, abs=0.01)


@pytest.mark.parametrize(
    ("task", "seconds"), [("counts", 2.5), ("identities, Weibull", 9.0), ("fleet study", 0.5)]
)
def test_the_stored_times_are_below_what_was_promised(task, seconds):
    assert STORED.loc[(task, "relparallel"), "median_cpu_s"] < seconds
