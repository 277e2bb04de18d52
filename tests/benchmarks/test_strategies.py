"""Benchmark of strategies: it asks the same of every tool, and the stored table is whole."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from relparallel.parallel.feasibility import rules_of_rows
from relparallel.published import data_folder, facts

ROOT = Path(__file__).resolve().parents[2]
RUN = runpy.run_path(str(ROOT / "tests" / "benchmarks" / "strategies.py"))
STORED = pd.read_csv(data_folder() / "benchmarks" / "strategies.csv", keep_default_na=False)


def test_rows_that_are_evaluated_completely_are_distinct_and_lawful():
    grid = RUN["lawful"](16, 32)
    assert len(np.unique(grid.choices)) == len(grid)
    assert (rules_of_rows(RUN["MODEL"], grid.choices, 32, 16) == 0).all()
    assert len(RUN["sample"](grid, 9)) == 9


def test_small_tasks_give_a_table(monkeypatch):
    settings = RUN["measure"].__globals__
    monkeypatch.setitem(settings, "ROUNDS", 1)
    monkeypatch.setitem(settings, "SAMPLE", 3)
    monkeypatch.setitem(
        settings, "reason_to_skip", lambda tool: "" if tool == "relparallel" else "not here"
    )
    rows = pd.DataFrame(RUN["measure"](RUN["tasks"](8, 8, (8, 8))))
    ours = rows["tool"] == "relparallel"
    assert rows.loc[ours, "task"].tolist() == ["complete", "search", "one by one"]
    assert (rows.loc[ours, "strategies_per_cpu_s"] > 0).all()
    assert rows.loc[~ours, "skipped"].tolist() == ["not here", "quoted", "quoted", "quoted"]


@pytest.mark.filterwarnings("ignore")  # of the other tool
def test_the_other_tool_is_asked_about_the_same_strategies():
    pytest.importorskip("llm_analysis")
    every = RUN["sample"](RUN["lawful"](64, 64), 40)
    some = [s for s in every if s.micro_batches(64) >= s.pipeline]  # it takes the pipeline as full
    ours, theirs = (np.array(RUN[name](some, 64, 64)) for name in ("one_by_one", "llm_analysis"))
    assert (np.abs(np.log(theirs[:, 0] / ours[:, 0])) < np.log(2)).all()
    assert (theirs[:, 1] > 0).all()


def test_a_tool_that_is_not_installed_is_skipped():
    assert RUN["reason_to_skip"]("no-such-tool").startswith("not installed")
    assert RUN["reason_to_skip"]("numpy") == ""


def test_quoted_lines_are_the_facts():
    known = facts("parallelism-cost")
    rates = {line["fact"]: line["strategies_per_cpu_s"] for line in RUN["quoted"]()}
    assert rates["CALC-0009"] == 1000 / known["CALC-0009"].value
    assert rates["LLMA-0001"] == pytest.approx(1e6 / known["LLMA-0001"].value, rel=1e-3)
    assert RUN["quoted"]()[0]["strategies"] == known["CALC-0007"].value


def test_the_stored_table_is_whole_and_reaches_half_a_million_a_second():
    """Plain numpy; a compiled loop reached two million, after ten seconds of compilation."""
    assert STORED["task"].tolist()[:3] == ["complete", "search", "one by one"]
    for column in ("date", "python", "machine"):
        assert (STORED[column] != "").all()
    complete = STORED.iloc[0]
    assert complete["strategies"] >= 10**6
    assert float(complete["strategies_per_cpu_s"]) >= 0.5e6
