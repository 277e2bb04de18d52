import os

import numpy as np
import pandas as pd
import pytest

from evidence.derive import derive
from evidence.derive.calibrations import calibration_tables
from evidence.derive.experience import experience_table
from evidence.derive.learning import learning_tables
from evidence.derive.steps import step_table
from evidence.derive.vintages import vintage_table
from evidence.training_steps import measured_runs
from relparallel.__main__ import main
from relparallel.published import data_folder
from relparallel.training.order_statistics import LAWS, largest

SOURCES = ("PTD-P", "Korthikanti")


def test_without_the_large_data_it_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.delenv("RELPARALLEL_DATA", raising=False)
    with pytest.raises(ValueError, match="RELPARALLEL_DATA must name a folder that holds data"):
        derive()
    assert main(["derive"]) == 2
    assert "RELPARALLEL_DATA must name a folder" in capsys.readouterr().err


def test_the_tables_say_what_is_fitted_and_how_far_it_is_off():
    runs = tuple(run for run in measured_runs() if run.source in SOURCES)
    tables = calibration_tables(runs)
    assert list(tables["calibration"].columns) == ["family", "kind", "name", "value"]
    ways = tables["calibration_errors"].groupby("way")["source"].apply(set)
    assert all(sources == {*SOURCES, "all"} for sources in ways)
    assert set(ways.index) == {
        "joint",
        "left_out",
        "left_out_one_factor",
        "left_out_software",
        "left_out_software_one_factor",
        "constant",
        "nearest",
    }
    assert set(tables["parameter_evidence"].columns) == {
        "parameter",
        "value",
        "away",
        "at_bound",
        "left",
        "family",
    }
    held = tables["interval_coverage"].query("left_out == 'publisher'")
    held = held.pivot(index="source", columns="level", values="held")
    assert list(held.columns) == [0.5, 0.8, 0.9, 0.95]
    assert (held.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)
    assert set(held.index) == set(SOURCES)
    checks = tables["prediction_checks"]
    # none of these runs had thousands of GPUs
    assert set(checks["check"]) == {"strategies in order"}
    assert checks.query("way == 'left_out'")["mean"].tolist() == [1.0]


def test_what_own_runs_teach_is_counted_on_sets_whose_publisher_no_fit_has_seen():
    runs = tuple(run for run in measured_runs() if run.source in SOURCES)
    tables = learning_tables(runs, experience_table(runs))
    learnt = tables["learning"].groupby("learnt")[["rows", "as_is", "error", "inside"]].mean()
    assert list(learnt.index) == [0, 1, 3, 5]
    assert learnt.loc[0, "error"] == learnt.loc[0, "as_is"]
    assert learnt.loc[5, "error"] < 0.6 * learnt.loc[5, "as_is"]
    choices = tables["choices"].set_index("source")
    assert choices.loc["all", "groups"] == choices["groups"].drop("all").sum() == 4
    assert choices.loc["all", "lost_after_two"] <= choices.loc["all", "lost"]
    assert choices.loc["all", "lost"] <= choices.loc["all", "lost_90th"]


@pytest.mark.slow
def test_what_is_learnt_of_one_model_does_other_models_no_harm():
    """On all published runs, where one factor makes the other models worse."""
    known = pd.read_csv(data_folder() / "derived" / "experience.csv")
    table = learning_tables(measured_runs(), known)["learning_elsewhere"]
    for learnt, own in table.groupby("learnt"):
        assert own["error"].mean() < own["as_is"].mean() < own["one_factor"].mean(), learnt
        assert 0.85 < own["inside"].mean() < 0.97, learnt
        harmed = {way: own[way] > own["as_is"] + 0.01 for way in ("error", "one_factor")}
        assert 3 * harmed["error"].sum() < harmed["one_factor"].sum(), learnt
    # but for one model, whose kind no fit has seen, which is off by a factor of two
    assert (table["error"] < table["as_is"] + 0.035).mean() > 0.97
    assert (table["error"] < table["as_is"] + 0.1).all()


def test_the_shipped_tables_hold_what_is_said_of_learning():
    """Three own runs: error below 9.5 %; intervals hold 85 to 95 %; two runs asked for: loss 0.5 %."""
    derived = data_folder() / "derived"
    learnt = pd.read_csv(derived / "learning.csv").groupby("learnt").mean(numeric_only=True)
    assert learnt.loc[3, "error"] < 0.075 < 0.11 < learnt.loc[3, "as_is"]
    assert learnt.loc[[1, 3, 5], "inside"].between(0.85, 0.96).all()
    assert (np.diff(learnt["half_width"]) < 0).all()
    chosen = pd.read_csv(derived / "choices.csv").set_index("source").loc["all"]
    assert chosen["lost_after_two"] < 0.005 < chosen["lost"]
    assert chosen["best"] == pytest.approx(chosen["best_said"], abs=0.06)
    assert chosen["lost"] == pytest.approx(chosen["lost_said"], rel=0.3)


def test_what_steps_and_runs_differ_by_is_found_again_in_drawn_series(tmp_path):
    """GPUs of which the slowest sets the pace of a run, and noise that every step draws anew."""
    rng, rows, ranges = np.random.default_rng(6), [], []
    for place, gpus in enumerate([8, 64, 512] * 8):
        name, runs = f"MLPERF-{place % 4}-{place}", []
        for run in range(6):
            pace = 1 + 0.01 * rng.standard_normal(gpus).max()
            seconds = pace * (1 + 0.02 * rng.standard_normal(402))
            seconds[:2] = 9.0  # starting up
            runs.append(pace)
            rows += [(name, run, "step", step, one) for step, one in enumerate(seconds)]
        inputs = f"gpus={gpus};runs=6"
        ranges.append((f"{name}-SPREAD", inputs, max(runs) / min(runs) - 1))
    series, facts = tmp_path / "steps.csv", tmp_path / "facts.csv"
    columns = ["id", "run", "kind", "index", "seconds"]
    pd.DataFrame(rows, columns=columns).to_csv(series, index=False)
    pd.DataFrame(ranges, columns=["id", "inputs", "value"]).to_csv(facts, index=False)
    every = step_table([series, facts]).set_index("id").loc["all"]
    assert every["step_sd"] == pytest.approx(0.02, rel=0.1)
    assert every["gpu_sd"] == pytest.approx(0.01, rel=0.15)
    assert every["gpus"] == 512
    assert every["inside"] == pytest.approx(0.9, abs=0.07)


def test_the_shipped_table_says_how_runs_differ():
    """Nine runs of ten lie in the range of the other rounds; on more GPUs they differ less."""
    table = pd.read_csv(data_folder() / "derived" / "step_spread.csv").set_index("id")
    every, table = table.loc["all"], table.drop(index="all")
    assert every["inside"] == pytest.approx(0.9, abs=0.05)
    few, many = table.query("gpus <= 8"), table.query("gpus > 1024")
    fewer = np.sqrt((many["run_sd"] ** 2).mean() / (few["run_sd"] ** 2).mean())
    normal = LAWS["normal"]
    expected = largest(int(many["gpus"].median()), normal)[1] / largest(8, normal)[1]
    assert fewer == pytest.approx(expected, rel=0.4)


def test_what_a_container_was_worth_is_the_ratio_of_speeds_of_the_same_job():
    """Four runs of one job: two with a container of April 2026, two with one of June."""
    names = "BRIDGE-0080", "BRIDGE-0126", "BRIDGE-0006", "BRIDGE-0030"
    runs = {run.id: run for run in measured_runs() if run.id in names}
    (row,) = vintage_table(list(runs.values()))["vintages"].to_dict("records")
    old, new = (np.mean([runs[name].time for name in pair]) for pair in (names[:2], names[2:]))
    assert (row["kind"], row["jobs"], row["pairs"], row["months"]) == ("MoE", 1, 1, 2)
    assert row["gain"] == pytest.approx(old / new - 1) == row["low"] == row["high"]
    assert row["gain"] > 0.5


@pytest.mark.slow
@pytest.mark.skipif(
    "RELPARALLEL_DATA" not in os.environ, reason="RELPARALLEL_DATA names no folder with facts"
)
def test_the_shipped_tables_are_what_the_data_give(tmp_path):
    for path in derive(tmp_path):
        again, stored = pd.read_csv(path), pd.read_csv(data_folder() / "derived" / path.name)
        assert list(again.columns) == list(stored.columns)
        numbers = list(again.select_dtypes("number"))
        assert again.drop(columns=numbers).equals(stored.drop(columns=numbers))
        # of experience four decimals are stored: on another machine the last may round otherwise
        digit = 1.01e-4 if path.name == "experience.csv" else None
        assert again[numbers].to_numpy() == pytest.approx(
            stored[numbers].to_numpy(), rel=5e-3, abs=digit, nan_ok=True
        )
