import re
from functools import cache

import numpy as np
import pandas as pd
import pytest

from chapters.s42.published_runs import PublishedRun, RunInput, predict_runs, published_runs
from relparallel.published import data_folder, facts
from relparallel.training import (
    effective_training_time_ratio,
    optimal_training_time_ratio,
    read_failure_log,
)
from relparallel.units import DAY, HOUR, MINUTE

RUNS = published_runs()
KINDS = {"", "hardware", "hardware work", "soft", "soft work", "planned", "overhead"}
SHEET = pd.read_csv(data_folder() / "training_runs" / "inputs.csv", keep_default_na=False)


@cache
def table():
    """What is predicted of every run."""
    return predict_runs().set_index("run")


def value(run, name):
    (found,) = (entry.value for entry in RUNS[run].inputs if entry.name == name)
    return found


def made(**given):
    """A run of 10 days with a checkpoint of 60 s."""
    rows = {"nodes": 8.0, "duration": 10 * DAY, "checkpoint": 60.0, **given}
    inputs = [
        RunInput(part=p, kind=k, quantity=q, value=v, lowest=v, highest=v, source="test")
        for name, v in rows.items()
        for p, k, q in [name.split("|") if "|" in name else ("", "", name)]
    ]
    return PublishedRun(name="made", inputs=tuple(inputs))


def test_one_class_is_the_exact_formula():
    run = made(interval=3000.0, **{"a|hardware|events": 40.0, "a|hardware|restart": 500.0})
    exact = effective_training_time_ratio(6 * HOUR, 3000.0, 60.0, 500.0).mean
    assert run.ratio() == pytest.approx(exact, rel=1e-12)
    best = made(**{"a|hardware|events": 40.0, "a|hardware|restart": 500.0})
    assert best.ratio() == pytest.approx(
        optimal_training_time_ratio(60.0, 6 * HOUR, 500.0), rel=1e-12
    )


def test_two_classes_equal_a_simulation():
    rng, hits, restarts = np.random.default_rng(0), (30.0, 10.0), (300.0, 4000.0)
    parts = {
        f"{n}|soft|{q}": v
        for n, e, r in zip("ab", hits, restarts, strict=True)
        for q, v in (("events", e), ("restart", r))
    }
    run = made(interval=2000.0, **parts)
    mean, spans = 10 * DAY / 40, []
    for _ in range(40_000):
        spent = 0.0
        while (life := mean * rng.standard_exponential()) < 2060.0:
            spent += life
            while True:  # restarts until one passes; its length is that of the last failure
                pause = restarts[int(rng.random() > 0.75)]
                if (life := mean * rng.standard_exponential()) >= pause:
                    spent += pause
                    break
                spent += life
        spans.append(spent + 2060.0)
    error = 3 * np.std(spans) / np.sqrt(len(spans)) / np.mean(spans)
    assert run.ratio() == pytest.approx(2000.0 / np.mean(spans), rel=error)


def test_whole_losses_and_overheads_come_off():
    base = made(interval=3000.0, **{"a|hardware|events": 40.0, "a|hardware|restart": 500.0})
    parts = {"b|planned|events": 2.0, "b|planned|restart": 0.5 * DAY, "c|overhead|share": 0.25}
    more = made(
        interval=3000.0, **{"a|hardware|events": 40.0, "a|hardware|restart": 500.0}, **parts
    )
    assert more.ratio() == pytest.approx(base.ratio() * 0.9 / 1.25)
    assert more.ratio(hardware_only=True) == pytest.approx(base.ratio())


def test_runs_whose_inputs_suffice_are_within_two_points_and_hardware_alone_is_not():
    known = table()[table()["sufficient"] & table()["share"].notna()]
    assert set(known.index) == {"GLM-130B"}
    assert (known["error"].abs() <= 2).all()
    assert (known["hardware error"] > 2).all()
    assert table().loc["BLOOM-176B", "hardware error"] > 5 > table().loc["BLOOM-176B", "error"] > 0


def test_llama_holds_its_bound_and_names_the_time_it_may_lose():
    row = table().loc["Llama-3 405B"]
    assert row["bound"]
    assert row["predicted"] >= 0.9 > row["lowest"]
    limit = RUNS["Llama-3 405B"].implied("restart")
    assert 5 * MINUTE < limit < 16.69 * MINUTE  # less than the whole loss of an interruption
    assert RUNS["Llama-3 405B"].ratio({"restart": limit}) == pytest.approx(0.9, abs=1e-9)


def test_shares_are_published_or_derived_and_lie_in_the_range_of_the_prediction():
    shares = table()[table()["share"].notna() & ~table()["bound"]]
    inside = shares["share"].between(shares["lowest"], shares["highest"])
    assert set(shares.index[~inside]) == {"GLM-130B"}, "an account of its own log"
    said = {name: RUNS[name].effective.source for name in shares.index}
    derived = {name for name, source in said.items() if source.startswith("derived")}
    assert derived == {"OPT-175B", "BLOOM-176B", "GLM-130B"}
    for name in set(said) - derived:
        row = facts("training-reliability")[said[name].split()[0]]
        assert RUNS[name].effective.value in (*row.values, row.value), f"{name}: printed, not ours"
    assert (table()["lowest"] < table()["predicted"]).all()
    assert (table()["predicted"] < table()["highest"]).all()


def test_bounds_hold_for_random_inputs_inside_their_ranges():
    rng = np.random.default_rng(8)
    for run in RUNS.values():
        low, high = run.bounds()
        for _ in range(50):
            drawn = {
                entry.name: rng.uniform(entry.lowest, entry.highest) for entry in run.uncertain
            }
            assert low - 1e-9 <= run.ratio(drawn) <= high + 1e-4


def test_sensitivities_are_differences_of_predictions():
    run = RUNS["OPT-175B"]
    points = run.sensitivities()
    ends = [run.ratio({"machines: restart": hours * HOUR}) for hours in (0.5, 6)]
    assert next(iter(points.items())) == (
        "machines: restart",
        pytest.approx(50 * (ends[0] - ends[1])),
    )
    assert list(points.values()) == sorted(points.values(), reverse=True)


def test_inputs_are_those_of_the_published_rows():
    rows = facts("training-reliability")
    assert value("Llama-3 405B", "nodes") == rows["L3-001"].inputs["nodes"]
    causes = {f"L3-{n:03d}": rows[f"L3-{n:03d}"] for n in range(10, 28)}
    soft = sum(
        int(row.value)
        for row in causes.values()
        if re.search(r"\((dependency|unknown)\)", row.quantity)
    )
    assert value("Llama-3 405B", "software: events") == soft
    assert value("Llama-3 405B", "parts and hosts: events") == int(rows["L3-003"].value) - soft
    assert value("Llama-3 405B", "planned: events") == rows["L3-002"].value
    assert value("BLOOM-176B", "interval") == pytest.approx(rows["BLM-004"].value * HOUR)
    iteration = rows["BLM-001"].value
    assert RUNS["BLOOM-176B"].effective.value == pytest.approx(
        (94767 - 12695) * iteration / (108 * DAY), abs=1e-4
    )
    assert value("BLOOM-176B", "evaluation: share") == pytest.approx(
        720 / (1000 * iteration), abs=1e-4
    )
    gpus = 8 * value("OPT-175B", "nodes")  # the 33 days are of 1,024
    assert RUNS["OPT-175B"].effective.value == pytest.approx(33 * 1024 / gpus / 56.5, abs=1e-3)
    assert value("OPT-175B", "spares") == rows["OPTM-006"].value
    assert value("MPT-7B", "nodes: events") == rows["MPT-001"].value
    assert RUNS["ByteRobust"].effective.value == rows["BR-100"].value
    assert RUNS["HLAT with automation"].effective.value == rows["HLAT-001"].values[0]


def test_the_log_of_glm_gives_its_inputs():
    log = read_failure_log(
        data_folder() / "training_runs" / "glm-130b.csv", population=96, clock="iso"
    )
    mean = log.to_frame().set_index("cause")["mean_repair"]
    counts = log.to_frame().set_index("cause")["failures"]
    for part in ("node", "divergence", "maintenance"):
        assert value("GLM-130B", f"{part}: restart") == pytest.approx(mean[part], rel=1e-3)
        assert value("GLM-130B", f"{part}: events") == counts[part]
    steps, seconds = 48100, facts()["GLM-001"].values[1]
    duration = value("GLM-130B", "duration")
    assert RUNS["GLM-130B"].effective.value == pytest.approx(steps * seconds / duration, abs=1e-4)


def test_every_input_names_its_source_and_every_named_row_exists():
    known = facts("training-reliability")
    assert (SHEET["source"].str.len() > 5).all()
    for source in SHEET["source"]:
        for name in re.findall(r"\b[A-Z0-9]+-\d{3}\b", source):
            assert name in known
    assumed = SHEET[SHEET["source"].str.contains("assumed")]
    assert (assumed["lowest"].astype(float) < assumed["highest"].astype(float)).all()


def test_inputs_are_inside_their_ranges_and_given_once():
    for run in RUNS.values():
        names = [entry.name for entry in run.inputs]
        assert len(set(names)) == len(names)
        assert {"nodes", "duration", "checkpoint"} <= set(names)
        assert all(0 <= entry.lowest <= entry.highest for entry in run.inputs)
        known = [entry for entry in run.inputs if entry.value is not None]
        assert all(entry.lowest <= entry.value <= entry.highest for entry in known)
        assert {entry.kind for entry in run.inputs} <= KINDS


def test_inputs_are_refused_by_name():
    with pytest.raises(ValueError, match="changed must name inputs of the run"):
        RUNS["GLM-130B"].ratio({"spares": 3.0})
