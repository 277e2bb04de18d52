"""A log as one's own training loop writes it, with kills of one's own: read, replayed, compared."""

import json

import numpy as np
import pytest

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    Recovery,
    read_failure_log,
    read_run_log,
    simulate,
)
from relparallel.training.failure_sources import Replay
from relparallel.units import YEAR

NODES = ("host-2", "host-10", "host-1", "host-7")  # by rank: 2, 0 and 1, 3 are not their order
KILLS = [("host-10", 400.0, 520.0), ("host-7", 905.0, 1000.0), ("host-2", 1777.0, 1800.0)]
STEP, WRITES, EVERY, START_UP, END = 10.0, 3.0, 4, 30.0, 3000.0


def written(folder):
    """Steps of 10 s, a checkpoint of 3 s after every fourth; who waits for a repair starts in 30 s."""
    lines, first, done, saved, clock = [], START_UP, 0, 0, 0.0
    borders = [*KILLS, ("", END, END)]
    for number, (_, killed, _) in enumerate(borders):
        start = 0.0 if number == 0 else first + borders[number - 1][2]
        lines.append({"job_start_time": start})
        clock, done = start + START_UP, saved
        while True:
            lines.append({"step_start_time": clock, "step_count": done})
            clock += STEP + WRITES * ((done + 1) % EVERY == 0)
            if clock > first + killed:
                break
            done += 1
            saved = done if done % EVERY == 0 else saved
    lines.append({"job_end_time": clock})
    log, kills = folder / "run.jsonl", folder / "kills.csv"
    log.write_text("\n".join(map(json.dumps, lines)))
    rows = [f"{node},{first + at},{first + back},node" for node, at, back in KILLS]
    kills.write_text("\n".join(["node,start,end,cause", *rows]))
    return log, kills


def test_a_made_up_log_gives_the_error_of_the_model(tmp_path):
    path, kills = written(tmp_path)
    log = read_run_log(path, checkpoint_every=EVERY)
    assert log.step_time == pytest.approx(STEP)
    assert np.unique(log.checkpoints).round(9).tolist() == [WRITES]
    assert log.start_ups.tolist() == [START_UP] * 4
    failures = read_failure_log(kills, population=4)
    records = failures.records(NODES)
    assert records["node"].tolist() == [1, 3, 0]
    first = log.start_ups[0]  # the first start is no failure
    records[["start", "end"]] -= first
    length = log.elapsed - first
    model = FailureModel(
        classes=(ComponentClass(name="node", level="node", rate=0.0),),
        cluster=Cluster(nodes=4, gpus_per_node=1),
        placement=Placement(strategy=Strategy(data=4)),
        source=Replay(records=records, nodes=4, span=length, shuffled=False),
    )
    level = CheckpointLevel(name="file", cost=float(log.checkpoints.mean()), restart=0.0)
    found = simulate(
        model,
        log.step_time,
        Checkpointing(levels=(level,), interval=EVERY * log.step_time),
        Recovery("restart", repair=1.0, restart=float(log.start_ups[1:].mean())),
        years=2.5 * length / YEAR,
        rng=np.random.default_rng(1),
        horizon=length,
        replications=2,
    )
    measured = log.training_time_ratio * log.elapsed / length
    # A step that a kill cut short is a step to the simulation, and nothing to the log.
    assert found.mean == pytest.approx(measured, abs=1e-3)
    assert log.repeated == 3
    assert found.buckets["waiting"] * length == pytest.approx(120 + 95 + 23)
    assert log.what_if().loc["checkpoints", "seconds"] == pytest.approx(log.checkpoints.sum())


def test_checkpoints_are_told_from_steps_wherever_counting_begins(tmp_path):
    for first in (0, 1, 7):
        lengths = [2.0, 2.0, 5.0, 2.0, 2.0, 5.5, 2.0, 2.5]
        begins = np.concatenate([[3.0], 3.0 + np.cumsum(lengths)])
        lines = [{"job_start_time": 0}]
        lines += [{"step_start_time": at, "step_count": first + n} for n, at in enumerate(begins)]
        path = tmp_path / f"{first}.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)))
        log = read_run_log(path, checkpoint_every=3)
        assert log.checkpoints.tolist() == [3.0, 3.5]
        assert log.steps.tolist() == [2.0] * 7 + [2.5]
        assert log.training_time_ratio == pytest.approx(16.5 / begins[-1])
        both = read_run_log(path)
        assert both.checkpoints.size == 0
        assert both.training_time_ratio == pytest.approx(23 / begins[-1])


def test_checkpoints_of_blocks_of_steps_cannot_be_told(tmp_path):
    lines = [{"job_start_time": 0}]
    lines += [{"step_start_time": 9 + n, "step_count": 5 * n} for n in range(4)]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(ValueError, match="checkpoint_every must be left out unless every step"):
        read_run_log(path, checkpoint_every=5)
    with pytest.raises(
        ValueError, match="nodes must hold every node that failed, got none 'host-7'"
    ):
        read_failure_log(written(tmp_path)[1], population=4).records(NODES[:3])
