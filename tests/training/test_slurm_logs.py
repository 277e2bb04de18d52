"""Accounting of Slurm: which runs broke, on which node, and when the job ran again."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from public_data import DATA, needs_data
from relparallel.training import read_failure_log

HEAD = "JobID|JobName|State|Start|End|NodeList"


def written(folder: Path, *lines: str, name: str = "log.txt") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def run(job: object, name: str, state: str, start: str, end: str, nodes: str, *more: str) -> str:
    """A row of sacct; times as day-hour:minute of January."""
    day = [f"2026-01-{t[:2]}T{t[3:]}:00" if t[0].isdigit() else t for t in (start, end)]
    return "|".join([str(job), name, state, *day, nodes, *more])


def slurm(folder: Path, *rows: str, head: str = HEAD, **options):
    return read_failure_log(written(folder, head, *rows), **{"population": 64, **options})


def ran_again(log):
    return (log.resumed - log.start).tolist()


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


def test_that_the_job_is_back_is_no_repair_of_the_node(tmp_path):
    log = slurm(tmp_path, *REQUEUED)
    assert log.node.tolist() == ["gpu03", "gpu01"]  # gpu03 is gone from the next run of the job
    assert (log.start / 3600).tolist() == [6.0, 31.5]
    assert (np.array(ran_again(log)) / 60).tolist() == [20.0, 30.0]
    assert np.isnan(log.repairs).all()
    assert not log.still.any()
    assert log.repair_of("NODE_FAIL") is None
    assert (log.begin, log.watched) == (0.0, 49 * 3600.0)
    assert log.rate == pytest.approx(2 / (64 * 49 * 3600.0))
    told = " ".join(log.notes)
    for part in (
        "counted: 1 NODE_FAIL (level node), 1 BOOT_FAIL (level node)",
        "left out: 1 FAILED, 1 OUT_OF_MEMORY of jobs with less than 10% of the node-hours (eval)",
        "no failures: 1 PREEMPTED, 1 CANCELLED, 1 TIMEOUT",
        "1 steps of jobs",
        "1 runs that never started",
        "1 runs had not ended",
        "1 failures are put on the first of the nodes",
    ):
        assert part in told
    known = slurm(tmp_path, *REQUEUED, repair=7 * 86400.0)
    assert known.repairs.tolist() == [7 * 86400.0] * 2
    assert known.resumed.tolist() == log.resumed.tolist()


def test_what_stops_a_job_is_a_failure_of_the_job_and_takes_no_node(tmp_path):
    rows = [
        run(1, "train", "FAILED", "01-00:00", "02-00:00", "n[1-8]"),
        run(2, "train", "OUT_OF_MEMORY", "02-01:00", "03-00:00", "n[1-8]"),
        run(3, "train", "NODE_FAIL", "03-01:00", "04-00:00", "n[1-8]"),
        run(4, "train", "COMPLETED", "04-01:00", "05-00:00", "n[1-7,9]"),
        run(5, "eval", "FAILED", "01-00:00", "01-00:01", "n9"),
    ]
    log = slurm(tmp_path, *rows, repair=3600.0)
    assert log.cause.tolist() == ["FAILED", "OUT_OF_MEMORY", "NODE_FAIL"]
    assert log.level_of() == {"FAILED": "job", "OUT_OF_MEMORY": "job", "NODE_FAIL": "node"}
    assert log.repairs.tolist() == [0.0, 0.0, 3600.0]
    assert ran_again(log) == [3600.0] * 3
    asked = slurm(tmp_path, *rows, jobs=["eval"])
    assert asked.cause.tolist() == ["FAILED"]
    assert asked.watched == log.watched  # whoever is asked for: the log was watched as long
    other = slurm(tmp_path, *rows, states=["FAILED"], levels={"FAILED": "node"})
    assert other.start.tolist() == [60.0, 86400.0]
    assert other.level_of() == {"FAILED": "node"}


def test_states_jobs_and_the_watch_are_a_choice(tmp_path):
    log = slurm(tmp_path, *REQUEUED, states=["FAILED", "OUT_OF_MEMORY"], jobs=["eval"])
    assert log.cause.tolist() == ["FAILED", "OUT_OF_MEMORY"]
    assert log.start.tolist() == [60.0 + 7200.0, 60.0 + 3 * 3600.0]
    longer = slurm(tmp_path, *REQUEUED, until="2026-01-05T00:00:00")
    assert longer.watched == 4 * 86400.0
    with pytest.raises(ValueError, match="jobs must be one of 'train', 'eval'"):
        slurm(tmp_path, *REQUEUED, jobs=["tain"])
    with pytest.raises(ValueError, match="states must be one of 'NODE_FAIL'"):
        slurm(tmp_path, *REQUEUED, states=["NODE_FAILED"])
    for name in ("states", "jobs"):
        with pytest.raises(TypeError, match=f"{name} must be list or tuple, got 'train'"):
            slurm(tmp_path, *REQUEUED, **{name: "train"})


def test_a_running_job_is_watched_as_long_as_it_ran(tmp_path):
    rows = [
        run(1, "train", "NODE_FAIL", "01-00:00", "01-06:00", "n[1-4]", "06:00:00"),
        run(1, "train", "RUNNING", "01-06:20", "Unknown", "n[1-3,5]", "20-00:00:00"),
    ]
    log = slurm(tmp_path, *rows, head=f"{HEAD}|Elapsed")
    assert log.watched == 20 * 86400.0 + 22800.0
    assert not any("had not ended" in note for note in log.notes)
    blind = slurm(tmp_path, *[row.rpartition("|")[0] for row in rows])
    assert blind.watched == 22800.0
    assert any("1 runs had not ended" in note for note in blind.notes)


def next_of_the_name(rows: list[str], name: str, after: str) -> str:
    """The rival: whatever run of that name starts next."""
    starts = sorted(row.split("|")[3] for row in rows if row.split("|")[1] == name)
    return next(start for start in starts if start >= after)


def test_a_job_of_another_user_is_not_the_next_run(tmp_path):
    rows = [
        run(1, "wrap", "NODE_FAIL", "01-00:00", "01-06:00", "n1", "ann"),
        run(2, "wrap", "COMPLETED", "01-06:02", "01-09:00", "n2", "bob"),
        run(3, "wrap", "COMPLETED", "01-08:00", "01-09:00", "n3", "ann"),
    ]
    assert next_of_the_name(rows, "wrap", "2026-01-01T06:00:00") == "2026-01-01T06:02:00"
    assert ran_again(slurm(tmp_path, *rows, head=f"{HEAD}|User")) == [7200.0]
    # without users nobody knows whose "wrap" it is, but whose "llama-70b"
    bare = [row.rpartition("|")[0] for row in rows]
    assert np.isnan(ran_again(slurm(tmp_path, *bare))).all()
    named = [row.replace("wrap", "llama-70b") for row in bare]
    assert ran_again(slurm(tmp_path, *named)) == [120.0]


@pytest.mark.parametrize("seed", range(6))
def test_runs_drawn_at_random_are_paired_with_the_next_of_the_same_job(tmp_path, seed):
    rng = np.random.default_rng(seed)
    rows, truth, rivals = [], [], []
    users = [("ann", 1, "train"), *((user, k, "wrap") for k, user in enumerate("abcdef", 2))]
    for user, number, name in users:
        at, nodes = datetime(2026, 1, 1), [f"n{number}{k}" for k in range(4)]
        for attempt in range(9):
            end = at + timedelta(seconds=int(rng.exponential(7e4)) + 3600)
            state = str(rng.choice(["NODE_FAIL", "NODE_FAIL", "TIMEOUT", "PREEMPTED"]))
            state = state if attempt < 8 else "COMPLETED"
            job = 10 * number + attempt // 3  # requeued twice, then sent anew
            rows.append(f"{job}|{user}|{name}|{state}|{at:%FT%T}|{end:%FT%T}|{','.join(nodes)}")
            at = end + timedelta(seconds=int(rng.exponential(9e4)) + 60)
            if state == "NODE_FAIL":
                lost = int(rng.integers(4))
                truth.append((end, nodes[lost], (at - end).total_seconds()))
                rivals.append((end, name))
                nodes[lost] = f"m{number}{attempt}"
    head = "JobID|User|JobName|State|Start|End|NodeList"
    log = slurm(tmp_path, *rng.permutation(rows).tolist(), head=head, population=99)
    assert [*zip(log.node, ran_again(log), strict=True)] == [row[1:] for row in sorted(truth)]
    bare = ["|".join(row.split("|")[:1] + row.split("|")[2:]) for row in rows]
    guess = [next_of_the_name(bare, name, f"{end:%FT%T}") for end, name in sorted(rivals)]
    waits = [row[0] + timedelta(seconds=row[2]) for row in sorted(truth)]
    assert guess != [f"{wait:%FT%T}" for wait in waits]


def test_jobs_of_another_cluster_have_their_own_numbers(tmp_path):
    rows = [
        run(1, "train", "NODE_FAIL", "01-00:00", "01-06:00", "n1", "ann", "east"),
        run(1, "train", "COMPLETED", "01-06:02", "01-09:00", "n2", "ann", "west"),
        run(1, "train", "COMPLETED", "01-08:00", "01-09:00", "n3", "ann", "east"),
    ]
    assert ran_again(slurm(tmp_path, *rows, head=f"{HEAD}|User|Cluster")) == [7200.0]


def test_another_task_of_an_array_is_not_the_next_run(tmp_path):
    rows = [
        run("7_1", "sweep", "NODE_FAIL", "01-00:00", "01-06:00", "n[1-2]"),
        run("7_2", "sweep", "COMPLETED", "01-06:30", "01-09:00", "n[1-2]"),
        run("7_1", "sweep", "COMPLETED", "01-08:00", "01-09:00", "n[2-3]"),
        run("7_3", "sweep", "NODE_FAIL", "01-00:00", "01-07:00", "n5"),
    ]
    log = slurm(tmp_path, *rows)
    assert log.node.tolist() == ["n1", "n5"]
    assert ran_again(log)[0] == 7200.0
    assert np.isnan(ran_again(log)[1])  # the third task never ran again


@pytest.mark.parametrize("state", ["FAILED", "NODE_FAIL"])
def test_what_breaks_with_one_node_breaks_once(tmp_path, state):
    rows = [
        f"7_{k}|sweep|{state}|2026-01-01T00:00:00|2026-01-01T06:00:{s:02d}|{node}"
        for k, s, node in ((1, 0, "n1"), (2, 1, "n1"), (3, 50, "n1"), (4, 0, "n2"), (5, 30, "n3"))
    ]
    later = f"8|sweep|{state}|2026-01-02T00:00:00|2026-01-02T06:00:00|n1"
    log = slurm(tmp_path, *rows, later)
    assert log.node.tolist() == ["n1", "n2", "n3", "n1"]
    # n1 and n2 broke in one second: one event of two nodes
    assert log.incidents == 3
    assert "2 runs failed with the node of another one" in " ".join(log.notes)


def test_parts_of_one_job_that_start_together_break_once(tmp_path):
    rows = [
        run("5+0", "train", "NODE_FAIL", "01-00:00", "01-06:00", "cpu1"),
        run("5+1", "train", "NODE_FAIL", "01-00:00", "01-06:00", "n[1-4]"),
        run("6+0", "train", "RUNNING", "01-06:10", "Unknown", "cpu1"),
        run("6+1", "train", "RUNNING", "01-06:10", "Unknown", "n[1-3,5]"),
    ]
    log = slurm(tmp_path, *rows)
    assert len(log.start) == 1
    assert ran_again(log) == [600.0]


def test_too_many_nodes_and_rows_given_twice_are_told(tmp_path):
    rows = [run(k, f"job{k}", "NODE_FAIL", "01-00:00", "01-06:00", "n7") for k in (1, 2, 3)]
    last = run(4, "job1", "COMPLETED", "01-07:00", "01-08:00", "n[1-99]")
    log = slurm(tmp_path, *rows, last, last, HEAD.replace("JobID", "1.JobID"))
    assert log.node.tolist() == ["n7"]
    assert "the log names 99 nodes, more than the population" in log.notes
    assert "left out: 1 rows that are given twice" in log.notes


def test_a_column_of_slurm_names_the_node(tmp_path):
    row = run(1, "train", "NODE_FAIL", "01-00:00", "01-06:00", "n[1-4]", "n3")
    log = slurm(tmp_path, row, head=f"{HEAD}|FailedNode")
    assert log.node.tolist() == ["n3"]
    assert not any("first of the nodes" in note for note in log.notes)


def test_the_hour_that_clocks_are_set_back_is_no_fault(tmp_path):
    row = "1|train|NODE_FAIL|2026-10-25T02:50:00|2026-10-25T02:10:00|n1"
    log = slurm(tmp_path, row)
    assert log.start.tolist() == [1200.0]
    assert any("clock was set back" in note for note in log.notes)


def test_a_log_without_a_failure_is_an_answer(tmp_path):
    log = slurm(tmp_path, run(1, "train", "COMPLETED", "01-00:00", "11-00:00", "n[1-4]"))
    assert (len(log.start), log.rate, log.watched) == (0, 0.0, 10 * 86400.0)
    with pytest.raises(ValueError, match="a run that started, got 1 rows"):
        slurm(tmp_path, run(5, "train", "PENDING", "Unknown", "Unknown", "None assigned"))


@pytest.mark.parametrize(
    ("row", "said"),
    [
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
        ("1|t", "6 fields in every row, got 2 in row 1"),
    ],
)
def test_runs_that_cannot_be_are_refused_with_their_line(tmp_path, row, said):
    with pytest.raises(ValueError, match=said):
        slurm(tmp_path, row)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (run(1, "t", "NODE_FAILED", "01-00:00", "01-06:00", "n1"), "1 runs in states that Slurm"),
        (run(1, "t", "", "01-00:00", "01-06:00", "n1"), "1 runs in states that Slurm"),
        (run(1, "t", "NODE_FAIL", "01-00:00", "Unknown", "n1"), "1 runs that failed without"),
        (run(1, "t", "FAILED", "01-00:00", "01-06:00", "None assigned"), "1 runs that failed wi"),
    ],
)
def test_a_run_that_tells_too_little_refuses_no_file(tmp_path, row, said):
    good = run(2, "t", "NODE_FAIL", "01-00:00", "01-07:00", "n2")
    log = slurm(tmp_path, row, good)
    assert log.node.tolist() == ["n2"]
    assert f"left out: {said}" in " ".join(log.notes)


def test_columns_that_are_not_read_or_miss_are_named(tmp_path):
    row = run(1, "t", "NODE_FAIL", "01-00:00", "01-06:00", "n[1-4]")
    log = slurm(tmp_path, row + "|4|0:0", head=HEAD + "|NNodes|ExitCode")
    assert "left out: columns ExitCode" in log.notes
    with pytest.raises(ValueError, match=r"columns JobID, .*, got no JobName, End in"):
        slurm(
            tmp_path, "1|FAILED|n1|2026-01-01", head="JobID|State|NodeList|Start", dialect="slurm"
        )
    with pytest.raises(ValueError, match=r"nearest to .* is slurm, but it lacks the columns End"):
        slurm(tmp_path, "1|t|FAILED|2026-01-01|n1", head=HEAD.replace("End|", ""))
    with pytest.raises(ValueError, match=r"lacks '\|' between its fields: sacct --parsable2"):
        slurm(tmp_path, "1 t FAILED 2026-01-01T00:00:00", head="  " + HEAD.replace("|", "  "))
    commas = HEAD.replace("|", ",")
    with pytest.raises(ValueError, match=r"nearest to .* is slurm, .*; delimiter= names another"):
        slurm(tmp_path, row.replace("|", ","), head=commas)
    assert len(slurm(tmp_path, row.replace("|", ","), head=commas, delimiter=",").start) == 1


def number(value: int | None, new: bool):
    return {"set": value is not None, "infinite": False, "number": value or 0} if new else value


def job(name: str, state: object, start: int, end: int, nodes: str, *, new: bool = False, **more):
    times = {"start": number(start, new), "end": number(end, new)}
    return {"job_id": 7, "name": name, "state": state, "time": times, "nodes": nodes, **more}


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("current", ["NODE_FAIL", ["NODE_FAIL"], ["REQUEUED", "NODE_FAIL"]])
@pytest.mark.parametrize("nested", [False, True])
def test_json_of_every_version_says_the_same_as_the_text(tmp_path, new, current, nested):
    def state(one):
        return {"current": one, "reason": "None"} if nested else one

    running = "RUNNING" if isinstance(current, str) else ["RUNNING"]
    jobs = [
        job("train", state(current), 10**9, 10**9 + 3600, "n[1-4]", new=new, user="ann"),
        job("train", state(running), 10**9 + 4500, 0, "n[1-2,4-5]", new=new, user="ann"),
    ]
    jobs[1]["time"]["elapsed"] = 86400
    file = written(tmp_path, json.dumps({"meta": {}, "jobs": jobs}, indent=1))
    log = read_failure_log(file, population=64)
    assert (log.node.tolist(), log.cause.tolist()) == (["n3"], ["NODE_FAIL"])
    assert (log.start.tolist(), ran_again(log)) == ([3600.0], [900.0])
    assert log.watched == 4500.0 + 86400.0
    longer = read_failure_log(file, population=64, until="2001-09-11T01:46:40Z")
    assert longer.watched == 2 * 86400.0


def test_arrays_parts_and_failed_nodes_of_json_are_read(tmp_path):
    tasks = [
        job(
            "sweep",
            {"current": ["NODE_FAIL"]},
            10**9,
            10**9 + 60,
            f"n[{k}1-{k}2]",
            array={"job_id": 3, "task_id": number(k, True)},
            het={"job_id": 0, "job_offset": number(None, True)},
            failed_node=f"n{k}2",
        )
        for k in (1, 2)
    ]
    log = read_failure_log(written(tmp_path, json.dumps({"jobs": tasks})), population=9)
    assert log.node.tolist() == ["n12", "n22"]
    assert log.incidents == 1
    assert np.isnan(log.resumed).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"jobs": [', "whole JSON, got .*line 2"),
        ('{"jobs": [{"job_id": 1}]}', "job_id, name, nodes, state and time.start, .*'state'"),
        ('{"jobs": 7}', "as sacct --json writes, got TypeError"),
        (json.dumps({"jobs": [job("t", {"current": []}, 1, 2, "n1")]}), "got IndexError"),
        (json.dumps({"jobs": [job("t", "FAILED", 1e40, 2, "n1")]}), "got OutOfBounds"),
        (json.dumps({"jobs": [job("t", "FAILED", 1, 2, "n[1")]}), "lists of nodes, got 'n.1' in"),
        ('{"jobs": []}', "a run that started, got 0 rows"),
    ],
)
def test_json_that_cannot_be_read_is_refused(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        read_failure_log(written(tmp_path, text), population=9)


@needs_data
@pytest.mark.parametrize(
    ("name", "nodes", "hours", "back"),
    [
        ("sacct_requeued.txt", ["gpu064", "gpu096"], [6.5, 101.5], [900.0, 600.0]),
        ("sacct_two.txt", ["gpu064", "gpu063"], [726.5, 1422.5], [300.0, 300.0]),
        ("sacct.json", ["gpu017"], [6.5], [900.0]),
    ],
)
def test_the_failures_of_public_cases(name, nodes, hours, back):
    log = read_failure_log(DATA / "public-cases" / name, population=128)
    assert log.node.tolist() == nodes
    assert (log.start / 3600).tolist() == hours
    assert ran_again(log) == back
    assert np.isnan(log.repairs).all()
    assert not log.still.any()
