"""Run logs: published start-ups and steps come out; torn or hostile lines are named and refused."""

import csv
import gzip
import json
import os
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from relparallel.training import read_run_log

DATA = os.environ.get("RELPARALLEL_DATA")
LOGS = sorted((Path(DATA) / "data/mlperf-training/logs").glob("*result_0.txt.gz")) if DATA else []
RUN_0 = {"MLPERF-3.1-005", "MLPERF-4.0-005", "MLPERF-5.0-045"}


def blocks() -> dict[str, list[float]]:
    found = defaultdict(list)
    with gzip.open(Path(DATA) / "data/mlperf-training/steps.csv.gz", "rt") as file:
        for name, run, kind, _, seconds in csv.reader(file):
            if kind == "block" and run == "0":
                found[name].append(float(seconds))
    return found


@pytest.mark.skipif(not DATA, reason="RELPARALLEL_DATA names no folder")
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name[:14])
def test_start_ups_and_blocks_of_mlperf_logs_are_those_of_the_published_tables(path):
    name = path.name[:14]
    log = read_run_log(path, "mlperf")
    rows = csv.DictReader(
        (Path(DATA) / "data/mlperf-training/startup.csv").read_text().splitlines()
    )
    (published,) = {float(r["seconds"]) for r in rows if r["id"] == name and r["run"] == "0"}
    assert log.start_ups[0] == pytest.approx(published, abs=0.051)
    if name in RUN_0:
        assert log.steps == pytest.approx(blocks()[name], abs=1e-4)
    assert 0 < log.training_time_ratio < 1


def written(folder: Path, lines: list) -> Path:
    path = folder / "log.txt"
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    )
    return path


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(2, 30), min_size=1, max_size=6),
    back=st.integers(0, 5),
    step=st.floats(0.5, 20),
    start=st.floats(1, 500),
)
def test_a_run_that_was_made_is_read_back(tmp_path_factory, lengths, back, step, start):
    """Starts, steps and repeats of a run with known failures; ETTR is what is new over all time."""
    lines, time, count, made, repeated = [], 0.0, 0, 0, 0
    for place, length in enumerate(lengths):
        lines.append({"job_start_time": time})
        time += start
        count = max(count - back, 0) if place else 0
        for _ in range(length):
            lines.append({"step_start_time": time, "step_count": count})
            repeated += count < made
            count, time = count + 1, time + step
            made = max(made, count)
    lines.append({"job_end_time": time})
    log = read_run_log(written(tmp_path_factory.mktemp("run"), lines))
    assert log.start_ups == pytest.approx([start] * len(lengths))
    # The last step of a start that broke off has no end.
    assert log.steps.size == sum(lengths) - (len(lengths) - 1)
    assert log.repeated <= repeated
    assert log.elapsed == pytest.approx(time)
    assert log.step_time == pytest.approx(step)


def custom(edge: str, time: float, what: str = "eval_step") -> dict:
    return {f"custom_badput_event_{edge}_time": time, "custom_badput_event_type": what}


def test_what_a_job_does_besides_inside_of_a_step_is_no_step(tmp_path):
    lines = [
        {"job_name": "a", "job_start_time": 0},
        {"tpu_init_start_time": 1},
        {"tpu_init_end_time": 9},
        {"step_start_time": 100, "step_count": 0},
        {"step_start_time": 110, "step_count": 1},
        custom("start", 112),
        custom("start", 113, "sdc"),
        custom("end", 116, "SDC"),
        custom("end", 132, "EVAL_STEP"),
        {"step_start_time": 140, "step_count": 2},
        {"step_start_time": 150, "step_count": 3},
        custom("start", 155, "disk check"),
        {"elastic_wait_start_time": 157, "elastic_wait_event_type": "up"},
        {"jsonPayload": {"job_name": "a", "job_end_time": 170}},
    ]
    log = read_run_log(written(tmp_path, lines))
    assert log.steps.tolist() == [10.0, 10.0, 10.0, 5.0]  # what had not ended ends with the job
    assert log.training_time_ratio == pytest.approx(35 / 170)
    assert log.notes == (
        "35 s of custom events and waits inside of steps are taken from them",
        "left out: other lines, 1 tpu_init_start_time, 1 tpu_init_end_time",
    )
    assert log.notes[0] in repr(log)


def test_steps_that_are_logged_now_and_then_count_as_many(tmp_path):
    lines = [{"job_start_time": 0}]
    lines += [{"step_start_time": 10 + 2 * k, "step_count": k} for k in range(0, 50, 10)]
    lines += [{"job_start_time": 200}]
    lines += [{"step_start_time": 210 + 2 * k, "step_count": 25 + k} for k in (0, 10, 20, 30)]
    log = read_run_log(written(tmp_path, lines))
    assert set(log.steps) == {2.0}
    assert log.weights.sum() == 40 + 30
    assert log.repeated == 40 - 25  # steps 25 to 39 were done before
    assert "7 times steps are not logged" in log.notes[0]


def test_steps_without_a_start_before_them_are_told(tmp_path):
    steps = [{"step_start_time": 10 * k, "step_count": n} for k, n in enumerate([0, 1, 2, 1, 2, 3])]
    log = read_run_log(written(tmp_path, steps))
    assert (log.steps.tolist(), log.repeated, log.start_ups.size) == ([10.0] * 5, 2, 0)
    assert log.notes == (
        "1 times the steps go back without a job_start_time: start-up and loss are in a step",
        "6 events are of a start whose job_start_time is missing: its start-up is not known",
    )


def test_what_each_loss_takes_and_what_the_run_gains_without_it(tmp_path):
    lines = [{"job_start_time": 0}]
    lines += [{"step_start_time": 100 + 2 * k, "step_count": k} for k in range(50)]
    lines += [
        {"job_start_time": 210},
        *({"step_start_time": 260 + 3 * k, "step_count": 40 + k} for k in range(9)),
    ]
    log = read_run_log(written(tmp_path, lines))
    table = log.what_if()
    assert (table["faster"] >= 0).all()
    assert table.loc["starts", "seconds"] == pytest.approx(150)
    assert table.loc["starts", "faster"] == pytest.approx(log.elapsed / (log.elapsed - 150) - 1)
    assert log.repeated == 9
    assert log.factor(log.step_time / 2) == pytest.approx(2)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"job_start_time": 0}', '{"step_start'], "line 2"),
        (["[1]"], "JSON objects, got '\\[1\\]' in line 1"),
        ([{"job_start_time": 1767225600000}], "seconds or ISO 8601, got 1767225600000 in line 1"),
        ([{"job_start_time": "soon"}], "times in seconds or ISO 8601, got 'soon' in line 1"),
        (['{"step_start_time": NaN}'], "times in seconds or ISO 8601, got nan in line 1"),
        (['{"job_start_time": true}'], "times in seconds or ISO 8601, got True in line 1"),
        ([{"job_start_time": 9}, {"step_start_time": 3, "step_count": 0}], "in order, got line 2"),
        (
            [{"job_start_time": 0}, {"step_start_time": 3, "step_count": -1}],
            "step_count must be an integer >= 0",
        ),
        (
            [{"job_start_time": 0}, {"step_start_time": 3, "step_count": True}],
            "step_count .* in line 2 of",
        ),
        (
            [{"job_start_time": 0}, {"step_start_time": 3, "step_count": 2.5}],
            "step_count .* in line 2 of",
        ),
        (
            [{"step_start_time": 3, "step_count": 2}] * 2,
            "every step once, got 2 again in line 2 of",
        ),
        ([{"job_name": name, "job_start_time": 0} for name in "ab"], "one job, got .*line 2"),
        ([{"job_start_time": 0}, custom("end", float("nan"))], "ISO 8601, got nan in line 2"),
        ([{"job_start_time": 0}], "at least two steps, got 0"),
        (["x" * 1_100_000], "letters in line 1"),
        (["__import__('os').system('true')"], "line 1"),
    ],
)
def test_a_torn_or_hostile_event_log_is_refused_with_its_line(tmp_path, lines, said):
    with pytest.raises(ValueError, match=said):
        read_run_log(written(tmp_path, lines), "events")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([":::MLLOG {"], "line 1"),
        ([':::MLLOG {"time_ms": 1}'], "MLLOG events, got line 1"),
        (["no event here"], "must hold init_start"),
    ],
)
def test_a_torn_mlperf_log_is_refused_with_its_line(tmp_path, lines, said):
    with pytest.raises(ValueError, match=said):
        read_run_log(written(tmp_path, lines), "mlperf")
