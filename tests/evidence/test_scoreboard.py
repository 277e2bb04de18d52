"""The scoreboard: what it prints is what the derived tables say."""

import numpy as np
import pandas as pd
import pytest

from evidence.claims.scoreboard import (
    blind_records,
    board,
    checks,
    memory_scoreboard,
    notes,
    peers,
    scoreboard,
)
from relparallel.__main__ import main
from relparallel.published import data_folder, facts, shipped_rows


def shipped(name):
    return pd.read_csv(data_folder() / "derived" / f"{name}.csv")


def test_every_fitted_source_is_there_in_every_way():
    table = scoreboard()
    ways = table.groupby(["family", "source"])["used"].agg(set)
    # others have one source or one software
    families = "a100", "h100", "b200", "b300"
    fitted = [used for used in ways.loc[[*families]] if "calibrated" in used]
    assert len(fitted) > 10
    assert all({"source left out", "software left out", "constant MFU"} <= used for used in fitted)
    assert "blind" in ways["h100", "MLPerf Training"]
    assert (table["median"].dropna() <= table["largest"].dropna()).all()


def test_one_run_known_is_a_random_one_and_weighs_by_rows():
    sets = shipped("learning").query("learnt == 1 and source == 'MPT'")
    assert len(sets) == 2  # two accelerators
    mean = 100 * np.average(sets["one_factor"], weights=sets["rows"])
    shown = board().loc[("a100", "MPT"), "error of a step / %"]
    assert shown["one run known"] == pytest.approx(mean)
    assert shown["one run known"] > shown["median known"]


def test_higher_levels_hold_more():
    held = board()["inside / %"].drop(columns="blind, as recorded").dropna()
    assert list(held.columns) == ["50%", "80%", "90%", "95%"]
    assert (held.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)


def test_errors_of_calculon_on_its_own_rows_are_the_published_ones():
    pairs = [
        (fact.value, fact.inputs["calculon_prediction"])
        for fact in facts("parallelism-cost").values()
        if fact.id.startswith("KORTH-0") and fact.quantity == "iteration time"
    ]
    mean = np.mean([abs(predicted / measured - 1) for measured, predicted in pairs])
    shown = peers().set_index(["model", "source"])["/ %"]
    assert shown["Calculon", "Korthikanti"] == pytest.approx(100 * mean, abs=0.005)


def test_other_models_stand_beside_ours_on_the_same_source():
    table, shown = peers(), board()["error of a step / %"].droplevel(0)
    ours = table[table["source"] != ""]
    assert ours["ours, left out"].tolist() == shown.loc[ours["source"], "left out"].tolist()
    assert table.loc[table["source"] == "", "ours, left out"].isna().all()
    assert (table["where"].str.len() > 5).all()


def test_blind_errors_are_those_recorded():
    rows = shipped("blind_errors")
    assert rows["error"].to_numpy() == pytest.approx(
        rows["predicted"] / rows["measured"] - 1, abs=2e-5
    )
    mean = 100 * rows[rows["known"] == 0].groupby(["family", "source"])["error"].agg(
        lambda e: e.abs().mean()
    )
    shown = scoreboard().set_index(["family", "source", "used"])["mean"].xs("blind", level="used")
    assert shown.to_dict() == pytest.approx(mean.to_dict(), rel=1e-9)


def test_the_record_of_blind_predictions_keeps_its_intervals_and_is_counted_day_by_day():
    rows = [row for row in shipped_rows("derived/blind_errors.csv") if row["known"] == "0"]
    days = blind_records().loc["blind"]
    for day in {row["recorded"] for row in rows}:
        own = [row for row in rows if row["recorded"] == day]
        held = [float(r["low"]) <= float(r["measured"]) <= float(r["high"]) for r in own]
        assert tuple(days.loc[day, ["runs", "inside"]]) == (len(held), sum(held))
    assert days.loc["all", "runs"] == len(rows)
    first = days.loc[:"2026-11-27"]  # nothing that is fitted later changes them
    assert (first["runs"].sum(), first["inside"].sum()) == (72, 35)


def test_a_recorded_run_is_blind_if_none_of_its_source_had_been_recorded_before():
    rows = shipped("blind_errors").sort_values(["recorded", "calibration_sha256"], kind="stable")
    first = rows.groupby(["family", "source"])["recorded"].transform("min")
    assert (rows.loc[rows["recorded"] > first, "known"] == 1).all()
    assert rows["run"].is_unique
    assert rows["known"].isin([0, 1]).all()


def test_blind_runs_stand_inside_their_recorded_interval_beside_left_out_ones():
    rows = shipped("blind_errors").query("known == 0")
    held = rows["measured"].between(rows["low"], rows["high"])
    share = 100 * held.groupby([rows["family"], rows["source"]]).mean()
    shown = board()["inside / %", "blind, as recorded"].dropna()
    assert shown.to_dict() == pytest.approx(share.to_dict())


def test_memory_verdicts_on_the_runs_that_fitted_or_did_not():
    table = memory_scoreboard()
    assert table["verdicts"]["BLOOM"] == 100
    assert table["rows"]["BLOOM"] == 71


def test_peaks_of_simumax_are_near_what_was_measured():
    mean = memory_scoreboard()["mean"]
    assert mean["SimuMax"] < 3
    assert mean["SimuMax MoE"] < 5


def test_strategies_of_left_out_sources_stand_in_a_better_order_than_by_the_nearest_run():
    table = checks().set_index(["check", "source", "used"])["mean"].sort_index()
    order = table["strategies in order"].unstack()
    pairs = checks().query("check == 'strategies in order' and used == 'source left out'")
    pairs = pairs.set_index("source")["rows"]
    many = order[order.index.isin(pairs.index[pairs > 50])]  # others have ten pairs or fewer
    assert (many["source left out"] > many["MFU of the nearest"]).all()
    assert many["source left out"].min() > 70
    pooled = order.mul(pairs, axis=0).sum() / pairs.sum()
    assert pooled["source left out"] > 92 > 75 > pooled["MFU of the nearest"]
    lost = table["the first choice loses"].xs("source left out", level="used")
    assert lost.between(0, 20).all()
    assert lost["all"].item() < 5
    large = table["errors from 4096 GPUs on", "MLPerf Training"]
    assert large["source left out"] < 7 < large["MFU of the nearest"]


def test_notes_name_parameters_without_evidence_and_rows_left_aside():
    said = "\n".join(notes())
    assert "h100: parameters on which the runs say nothing: " in said
    assert "torchtitan: 3 rows not scored: micro_batch is not published" in said


def test_it_is_a_command(tmp_path, capsys):
    assert main(["scoreboard", "--csv", str(tmp_path / "board.csv")]) == 0
    assert "absolute errors of step times" in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "board.csv")) == len(scoreboard())
