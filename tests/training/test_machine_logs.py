"""Logs of schedulers, launchers, kernels: what failed, where, when; what is left out or refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from relparallel.training import read_failure_log

HEAD = "JobID|JobName|State|Start|End|NodeList"


def written(folder: Path, *lines: str, name: str = "log.txt") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def run(job: object, name: str, state: str, start: str, end: str, nodes: str) -> str:
    """A row of sacct; times as day-hour:minute of January."""
    day = [f"2026-01-{t[:2]}T{t[3:]}:00" if t[0].isdigit() else t for t in (start, end)]
    return "|".join([str(job), name, state, *day, nodes])


def slurm(folder: Path, *rows: str, head: str = HEAD, **options):
    return read_failure_log(
        written(folder, head, *rows), **{"population": 64, "dialect": "slurm", **options}
    )


REQUEUED = [
    run(1, "train", "NODE_FAIL", "01-00:00", "01-06:00", "gpu[01-04]"),
    run("1.batch", "batch", "CANCELLED", "01-00:00", "01-06:00", "gpu01"),
    run(1, "train", "PREEMPTED", "01-06:20", "02-00:00", "gpu[01-02,04,09]"),
    run(1, "train", "CANCELLED by 1042", "02-00:10", "02-06:00", "gpu[01-02,04,09]"),
    run(2, "train", "BOOT_FAIL", "02-07:00", "02-07:30", "gpu[01-02],login1"),
    run(3, "train", "TIMEOUT", "02-08:00", "03-00:00", "gpu[01-02],login1"),
    run(4, "train", "RUNNING", "03-01:00", "Unknown", "gpu[01-04]"),
    run(5, "train", "PENDING", "Unknown", "Unknown", "None assigned"),
    run(8, "eval", "FAILED", "01-02:00", "01-02:01", "gpu77"),
    run("9_1", "eval", "OUT_OF_ME+", "01-03:00", "01-03:01", "gpu77"),
]


def test_requeues_node_lists_and_running_jobs_of_slurm(tmp_path):
    log = slurm(tmp_path, *REQUEUED)
    assert log.node.tolist() == ["gpu03", "gpu01"]  # gpu03 is gone from the next run of the job
    assert (log.start / 3600).tolist() == [6.0, 31.5]
    assert (log.repairs / 60).tolist() == [20.0, 30.0]
    assert log.watched == 49 * 3600.0
    assert log.begin == 0.0
    assert log.rate == pytest.approx(2 / (64 * 49 * 3600.0))
    told = " ".join(log.notes)
    for part in (
        "1 steps of jobs",
        "1 runs that never started",
        "1 runs had not ended",
        "1 FAILED",
        "1 OUT_OF_MEMORY",
        "1 failures are put on the first node",
    ):
        assert part in told


def test_states_jobs_and_the_end_of_the_watch_are_a_choice(tmp_path):
    log = slurm(tmp_path, *REQUEUED, states=["FAILED", "OUT_OF_MEMORY"], jobs=["eval"])
    assert log.cause.tolist() == ["FAILED", "OUT_OF_MEMORY"]
    assert log.start.tolist() == [60.0, 3660.0]
    assert log.repairs[0] == 3540.0
    assert np.isnan(log.repairs[1])
    longer = slurm(tmp_path, *REQUEUED, until="2026-01-05T00:00:00")
    assert longer.watched == 4 * 86400.0
    with pytest.raises(ValueError, match="jobs must be one of 'train', 'eval'"):
        slurm(tmp_path, *REQUEUED, jobs=["tain"])
    with pytest.raises(ValueError, match="states must be one of 'BOOT_FAIL'"):
        slurm(tmp_path, *REQUEUED, states=["NODE_FAILED"])


def test_another_task_of_an_array_is_not_the_next_run(tmp_path):
    rows = [
        run("7_1", "sweep", "NODE_FAIL", "01-00:00", "01-06:00", "n[1-2]"),
        run("7_2", "sweep", "COMPLETED", "01-06:30", "01-09:00", "n[1-2]"),
        run("7_1", "sweep", "COMPLETED", "01-08:00", "01-09:00", "n[2-3]"),
        run("7_3", "sweep", "NODE_FAIL", "01-00:00", "01-07:00", "n5"),
    ]
    log = slurm(tmp_path, *rows)
    assert log.node.tolist() == ["n1", "n5"]
    assert log.repairs[0] == 7200.0
    assert np.isnan(log.repairs[1])  # the third task never ran again


def test_one_node_that_stops_several_jobs_fails_once_and_too_many_nodes_are_told(tmp_path):
    rows = [run(k, f"job{k}", "NODE_FAIL", "01-00:00", "01-06:00", "n7") for k in (1, 2, 3)]
    log = slurm(tmp_path, *rows, run(4, "job1", "COMPLETED", "01-07:00", "01-08:00", "n[1-99]"))
    assert log.node.tolist() == ["n7"]
    assert "2 runs failed with the node of another one and count once" in log.notes
    assert "the log names 99 nodes, more than the population" in log.notes


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            run(1, "t", "NODE_FAILED", "01-00:00", "01-06:00", "n1"),
            "states of Slurm, .*NODE_FAILED.*line 2",
        ),
        (
            run(1, "t", "", "01-00:00", "01-06:00", "n1"),
            "states of Slurm, .* got State '' in row 1",
        ),
        (
            run(1, "t", "NODE_FAIL", "01-00:00", "Unknown", "n1"),
            "an end and nodes of every failed run.*line 2",
        ),
        (
            run(1, "t", "NODE_FAIL", "01-00:00", "01-06:00", "None assigned"),
            "an end and nodes of every",
        ),
        (
            run(1, "t", "NODE_FAIL", "02-00:00", "01-06:00", "n1"),
            "runs that end after they start.*line 2",
        ),
        (
            run(1, "t", "NODE_FAIL", "01-00:00", "01-06:00", "gpu[001-06"),
            "lists of nodes, got .*line 2",
        ),
        (
            run(1, "t", "NODE_FAIL", "nan", "01-06:00", "n1"),
            "Start must be a time .iso., got .* .line 2",
        ),
        (
            "\n".join([run(1, "t", "NODE_FAIL", "01-00:00", "01-06:00", "n1")] * 2),
            "every run once.*in row 2",
        ),
    ],
)
def test_runs_that_cannot_be_are_refused_with_their_line(tmp_path, row, said):
    with pytest.raises(ValueError, match=said):
        slurm(tmp_path, row)


def test_the_number_of_nodes_is_counted_twice_and_columns_are_named(tmp_path):
    row = run(1, "t", "NODE_FAIL", "01-00:00", "01-06:00", "n[1-4]")
    assert (
        slurm(tmp_path, row + "|4|0:0", head=HEAD + "|NNodes|ExitCode").notes[0]
        == "left out: columns ExitCode"
    )
    with pytest.raises(ValueError, match=r"as many nodes as NNodes says, got JobID 1 .*line 2"):
        slurm(tmp_path, row + "|5", head=HEAD + "|NNodes")
    with pytest.raises(ValueError, match=r"columns JobID, .*, got no JobName, End in"):
        slurm(tmp_path, "1|FAILED|n1|2026-01-01", head="JobID|State|NodeList|Start")
    assert (
        len(
            slurm(tmp_path, row.replace("|", ","), head=HEAD.replace("|", ","), delimiter=",").start
        )
        == 1
    )


def event(cycle: int, name: str, second: int, node: str = "n1_4711_0") -> str:
    time = f"2026-01-01 00:{second // 60:02d}:{second % 60:02d}.250 UTC"
    return (
        f"[INFO] profiling.py:90   - Cycle: {cycle} Event: {name} Node: {node} Rank: None Time: "
        f"{time}"
    )


def test_cycles_whose_failure_nobody_saw_and_second_attempts_count(tmp_path):
    lines = [
        # begun before this log
        event(3, "rendezvous_started", 0),
        event(3, "worker_start_completed", 60),
        event(4, "failure_detected", 600, "n7_1_0"),
        event(4, "worker_start_completed", 660),
        event(5, "worker_terminated", 900, "n2_9_1"),
        event(5, "worker_start_completed", 960),
        event(8, "failure_detected", 1200),
        event(8, "worker_start_completed", 1230),
        event(0, "rendezvous_started", 2000),
        event(0, "worker_start_completed", 2060),
        event(1, "failure_detected", 2400),
        event(1, "worker_start_completed", 2500),
        "another line",
    ]
    log = read_failure_log(written(tmp_path, *lines), population=8, dialect="nvrx")
    assert log.node.tolist() == ["n7", "n2", "n1", "n1"]
    assert log.start.tolist() == [600.0, 900.0, 1200.0, 2400.0]
    assert log.repairs.tolist() == [60.0, 60.0, 30.0, 100.0]
    assert log.notes == (
        "left out: 1 lines without an event of a cycle",
        "1 cycles without failure_detected are taken to fail at their first event",
        "2 cycles left no event and are not counted",
    )


def cycle(number: int, start: str, end: str, nodes: str, **more: object) -> dict:
    stamps = {
        f"cycle_{name}_time": f"2026-01-01T{t}:00Z" if t else ""
        for name, t in (("start", start), ("end", end))
    }
    return {"job_id": "77", "cycle_number": number, **stamps, "active_nodes": nodes, **more}


CYCLES = [
    cycle(0, "00:00", "05:00", "n[1-4]"),
    cycle(1, "05:10", "06:00", "n[1-2,4-5]"),
    cycle(4, "06:30", "", "n[1-2,4-5]", standby_nodes="n9", generation=0),
]


@pytest.mark.parametrize("form", ["folder", "list", "lines", "indented"])
def test_cycle_info_of_a_launcher_is_read_in_every_form(tmp_path, form):
    if form == "folder":
        for one in CYCLES:
            written(
                tmp_path, json.dumps(one, indent=2), name=f"cycle_info.77.0.{one['cycle_number']}"
            )
        written(tmp_path, json.dumps(CYCLES[-1]), name="cycle_info.77.current")
    texts = {
        "list": [json.dumps(CYCLES[::-1])],
        "lines": (
            json.dumps(one).replace('"cycle_end_time": ""', '"cycle_end_time": null')
            for one in CYCLES
        ),
        "indented": (json.dumps(one, indent=2) for one in CYCLES),
    }
    path = tmp_path if form == "folder" else written(tmp_path, *texts[form])
    log = read_failure_log(path, population=8, dialect="nvrx-cycles")
    assert log.node.tolist() == ["n3", "n1"]
    assert (log.start / 60).tolist() == [300.0, 360.0]
    assert (log.repairs / 60).tolist() == [10.0, 30.0]
    assert "2 cycles left no file and are not counted" in log.notes


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([CYCLES[0], CYCLES[0]], "every cycle once"),
        (
            [CYCLES[0] | {"cycle_number": 0.5}],
            "whole numbers of attempts and cycles, got .* cycle_number 0.5",
        ),
        (
            [CYCLES[0] | {"cycle_end_time": "2026-01-01T01:00:00"}, *CYCLES[1:]],
            "cycle_end_time must give a time zone as other rows do, got '2026-01-01T01:00:00' in "
            "row 1",
        ),
        ([CYCLES[0] | {"cycle_number": True}], "whole numbers of attempts and cycles"),
        ([cycle(0, "05:00", "04:00", "n1")], "cycles that end after they start"),
        ([CYCLES[0], cycle(1, "04:00", "", "n1")], "cycles one after another"),
        ([cycle(0, "05:00", "", "n1")], "1 last cycles of jobs"),
        ([{"job_id": 1}], "job_id and start of cycles, got .*, line 1 of"),
    ],
)
def test_cycles_that_cannot_be_are_refused(tmp_path, objects, said):
    path = written(tmp_path, *map(json.dumps, objects))
    with pytest.raises(ValueError, match=said):
        read_failure_log(path, population=8, dialect="nvrx-cycles")
    torn = written(tmp_path, json.dumps(CYCLES)[:-9])
    with pytest.raises(ValueError, match=r"whole JSON, got line 1 of .*log.txt"):
        read_failure_log(torn, population=8, dialect="nvrx-cycles")
