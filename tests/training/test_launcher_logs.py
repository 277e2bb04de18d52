"""Logs of launchers: when workers broke, on which node, and when the job ran again."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from relparallel.training import read_failure_log


def written(folder: Path, *lines: str, name: str = "log.txt") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def ran_again(log):
    return (log.resumed - log.start).tolist()


def event(cycle: object, name: str, second: int, node: str = "n1_4711_0") -> str:
    """A line of the launcher, behind what its log manager puts in front."""
    time = f"2026-01-01 00:{second // 60:02d}:{second % 60:02d}.250 UTC"
    front = "2026-01-01 00:00:00,123 [INFO] [n1] [workload:0(0) infra:0(0)] profiling.py:90 "
    return f"{front}  - Cycle: {cycle} Event: {name} Node: {node} Rank: None Time: {time}"


RESTARTS = [
    event(0, "rendezvous_started", 0),
    event(0, "worker_start_completed", 60),
    "2026-01-01 00:00:00,123 [INFO] [n1] [workload:0(0) infra:0(0)] launcher.py:1 Training started",
    event(1, "failure_detected", 600, "n7"),
    event(1, "failure_detected", 602),
    event(1, "worker_start_completed", 660),
    event(1, "worker_start_completed", 662, "n7"),
    event(2, "failure_detected", 700),
    event(3, "failure_detected", 760),
    event(3, "worker_start_completed", 800),
    event(4, "failure_detected", 900),
]


def test_a_launcher_tells_when_a_failure_was_seen_and_when_all_workers_ran_again(tmp_path):
    log = read_failure_log(written(tmp_path, *RESTARTS), population=8)
    assert log.node.tolist() == ["n7", "n1", "n1", "n1"]
    assert log.start.tolist() == [600.0, 700.0, 760.0, 900.0]
    # the second cycle never came up, the third did
    assert ran_again(log)[:3] == [62.0, 100.0, 40.0]
    assert np.isnan(log.resumed[3])
    # a launcher never sees a node come back
    assert np.isnan(log.repairs).all()
    assert not log.still.any()


@pytest.mark.parametrize("letters", [1, 4, 20, 40])
def test_a_line_that_is_torn_or_knows_no_cycle_refuses_no_file(tmp_path, letters):
    whole = read_failure_log(written(tmp_path, *RESTARTS), population=8)
    torn = [event("Unknown", "failure_detected", 300), *RESTARTS, RESTARTS[-1][:-letters]]
    log = read_failure_log(written(tmp_path, *torn), population=8)
    assert log.start.tolist() == whole.start.tolist()
    assert "left out: 2 lines, line 1 the first, that hold no whole event" in log.notes
    with pytest.raises(ValueError, match="whole events of cycles, got none"):
        read_failure_log(written(tmp_path, "Training started"), population=8, dialect="nvrx")


def test_a_job_that_never_broke_is_an_answer(tmp_path):
    log = read_failure_log(written(tmp_path, *RESTARTS[:2]), population=8)
    assert (len(log.start), log.watched) == (0, 60.0)


def test_a_job_that_is_launched_anew_after_its_last_failure_is_back_then(tmp_path):
    anew = [
        event(2, "failure_detected", 1000),  # nothing starts in this cycle
        event(0, "rendezvous_started", 1500),
        event(0, "worker_start_completed", 1620),
        event(1, "failure_detected", 3000),
        event(1, "worker_start_completed", 3030),
    ]
    begun = [event(0, "rendezvous_started", 0), event(0, "worker_start_completed", 60)]
    log = read_failure_log(written(tmp_path, *begun, *anew), population=8)
    assert ran_again(log) == [620.0, 30.0]


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
    assert ran_again(log) == [60.0, 60.0, 30.0, 100.0]
    assert np.isnan(log.repairs).all()
    for note in (
        "left out: 1 lines without an event of a cycle",
        "1 cycles without failure_detected are taken to fail at their first event",
        "2 cycles left no event and are not counted",
    ):
        assert note in log.notes


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
    assert ran_again(log) == [600.0, 1800.0]
    assert np.isnan(log.repairs).all()
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


def test_one_cycle_has_not_failed(tmp_path):
    log = read_failure_log(
        written(tmp_path, json.dumps(cycle(0, "05:00", "06:00", "n1"))), population=8
    )
    assert (len(log.start), log.watched) == (0, 3600.0)


FORMS = {
    "glog": "{level}{date:%m%d %H:%M:%S}.250000 {pid} torch/distributed/elastic/{file}:869] ",
    "labelled": "3: {level}{date:%m%d %H:%M:%S}.250000 {pid} site-packages/torch/{file}:9] ",
    "2023": "[{date:%Y-%m-%d %H:%M:%S},250] torch.distributed.elastic.{file}: [{level}] ",
    "2021": "[{level}] {date:%Y-%m-%d %H:%M:%S},250 api: ",
}


class Agent:
    """Writes what an agent of torchelastic does, in the form of one of its versions."""

    def __init__(self, form: str, pid: int = 7) -> None:
        self.form, self.pid = FORMS[form], pid

    def says(self, second: float, text: str, level: str = "I") -> str:
        date = pd.Timestamp("2026-08-23") + pd.Timedelta(second, "s")
        return self.form.format(date=date, pid=self.pid, level=level, file="api.py") + text

    def joins(self, second: float, host: str) -> str:
        return self.says(second, f"The node '{host}_{self.pid}_0' has joined round 0 of ...")

    def starts(self, second: float) -> str:
        return self.says(second, "[default] Starting worker group")

    def breaks(self, second: float, code: int = 1) -> list[str]:
        failed = f"failed (exitcode: {code}) local_rank: 0 (pid: 5) of binary: /bin/python"
        left = "[default] Worker group FAILED. 3/3 attempts left; will restart worker group"
        return [self.says(second, failed, "E"), self.says(second, left)]


def cause(second: float, host: str, code: int, *others: str) -> list[str]:
    """What an agent prints in the end."""

    def block(at: float, name: str, exit_code: int) -> list[str]:
        date = pd.Timestamp("2026-08-23") + pd.Timedelta(at, "s")
        return [
            "[0]:",
            f"  time      : {date:%Y-%m-%d_%H:%M:%S}",
            f"  host      : {name}",
            "  rank      : 0 (local_rank: 0)",
            f"  exitcode  : {exit_code} (pid: 5)",
            "  error_file: <N/A>",
        ]

    rest = [line for other in others for line in block(second - 1, other, -15)]
    lines = ["train.py FAILED", "Failures:", *rest, "Root Cause (first observed failure):"]
    return [*lines, *block(second, host, code)]


@pytest.mark.parametrize("form", FORMS)
def test_workers_that_break_count_once_whoever_tells_until_they_start(tmp_path, form):
    a, b = Agent(form, 7), Agent(form, 8)
    lines = [
        a.joins(0, "gpu-a.site"),
        b.joins(0, "gpu-b"),
        a.starts(5),
        b.starts(5),
        "step 1 loss 2.0",
        *b.breaks(3600, -9),
        *a.breaks(3660),
        a.starts(3720),
        b.starts(3721),
        *a.breaks(7200),
        *cause(7199, "gpu-a.site", -11, "gpu-b"),
        a.says(7300, "Received Signals.SIGTERM death signal, shutting down workers", "W"),
        a.starts(9000),
        a.says(99999, "[default] worker group successfully finished."),
    ]
    log = read_failure_log(written(tmp_path, *lines), population=8)
    assert log.start.tolist() == [3600.0, 7200.0]
    assert ran_again(log) == [120.0, 1800.0]
    known = form in ("glog", "labelled")  # the others do not say which agent writes
    assert log.node.tolist() == ["gpu-b" if known else "not given", "gpu-a.site"]
    assert log.cause.tolist() == ["SIGKILL", "SIGSEGV"]
    assert set(log.level_of().values()) == {"job"}
    assert np.isnan(log.repairs).all()
    assert (log.begin, log.watched) == (0.0, 99999.0)
    told = " ".join(log.notes)
    assert "5 lines tell of a failure that another one told" in told
    assert "1 times that a signal from outside stopped an agent" in told


def test_without_the_starts_ten_minutes_part_failures(tmp_path):
    a = Agent("glog")
    lines = [a.breaks(at)[0] for at in (100, 400, 900, 5000)]
    log = read_failure_log(written(tmp_path, a.says(0, "torch"), *lines), population=8)
    assert log.start.tolist() == [100.0, 5000.0]
    assert np.isnan(log.resumed).all()
    assert "2 failures after which no line says that workers started" in " ".join(log.notes)
    launched = a.says(700, "").replace("elastic/api.py", "run.py") + "****"
    again = read_failure_log(written(tmp_path, *lines[:2], launched, *lines[2:]), population=8)
    assert again.start.tolist() == [0.0, 800.0, 4900.0]
    assert again.resumed[0] == 600.0
    old = Agent("2023")
    lines = [old.breaks(at)[0] for at in (100, 400)]
    launched = old.says(700, "").replace("elastic.api.py", "run") + "****"
    log = read_failure_log(written(tmp_path, old.says(0, ""), *lines, launched), population=8)
    assert log.resumed.tolist() == [log.start[0] + 600.0]


def test_root_causes_are_enough_where_lines_have_no_time(tmp_path):
    loose = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -6) local_rank"
    lines = [loose, *cause(0, "n1", 1), loose, *cause(9000, "n2", -6)]
    log = read_failure_log(written(tmp_path, *lines), population=8)
    assert log.node.tolist() == ["n1", "n2"]
    assert log.start.tolist() == [0.0, 9000.0]
    assert log.cause.tolist() == ["exit code 1", "SIGABRT"]
    with pytest.raises(ValueError, match=r"got 0 failures .* left out: 1 lines before the first"):
        read_failure_log(written(tmp_path, loose), population=8)


def test_bytes_that_are_no_text_are_passed_over(tmp_path):
    path = written(tmp_path, *Agent("glog").breaks(60), Agent("glog").starts(90))
    path.write_bytes(b"\xff\xfe 10%\r20%\n" + path.read_bytes())
    log = read_failure_log(path, population=8, since="2001-08-23", until="2001-08-24")
    assert ran_again(log) == [30.0]


def test_the_launcher_of_nvidia_is_no_plain_agent(tmp_path):
    lines = [*RESTARTS, *Agent("2023").breaks(600)]
    assert len(read_failure_log(written(tmp_path, *lines), population=8).start) == 4


@pytest.mark.parametrize("seed", range(4))
def test_failures_drawn_at_random_are_found_in_what_agents_write(tmp_path, seed):
    rng = np.random.default_rng(seed)
    agents = [Agent("glog", 100 + k) for k in range(4)]
    lines = [(0.0, agent.joins(0, f"n{agent.pid}")) for agent in agents]
    lines += [(1.0, agent.starts(1)) for agent in agents]
    at, truth = 1.0, []
    for _ in range(12):
        at = round(at + 5 + rng.exponential(40000))
        order = rng.permutation(4)
        for place, k in enumerate(order[: rng.integers(1, 5)]):
            seen = at + place * int(rng.integers(1, 200))
            lines += [(seen, line) for line in agents[k].breaks(seen)]
        back = at + 1000 + int(rng.integers(5000))
        lines += [(back + 0.01 * k, agent.starts(back)) for k, agent in enumerate(agents)]
        truth.append((f"n{agents[order[0]].pid}", float(at), float(back)))
        at = back
    text = [line for _, line in sorted(lines, key=lambda line: line[0])]
    log = read_failure_log(written(tmp_path, *text), population=8)
    assert [*zip(log.node.tolist(), log.start.tolist(), log.resumed.tolist(), strict=True)] == truth
    # the rival: every line with "FAILED" is a failure
    assert sum("FAILED" in line for line in text) > len(truth)
