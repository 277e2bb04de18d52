"""The log of Slurm's controller: when nodes were out of service, why, and which went together."""

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from public_data import DATA, needs_data
from relparallel.training import read_failure_log


def written(folder: Path, *lines: str, name: str = "log.txt") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


DAY = datetime(2026, 8, 3)


def said(second: float, text: str) -> str:
    return f"[{(DAY + timedelta(seconds=second)).isoformat(timespec='milliseconds')}] {text}"


def control(folder: Path, *lines: str, **options):
    first, last = said(0, "slurmctld version 25.05.2 started"), said(86400, "cleanup")
    return read_failure_log(
        written(folder, first, *lines, last), **{"population": 64, "dialect": None, **options}
    )


def outages(log):
    return [*zip(log.node.tolist(), log.start.tolist(), log.end.tolist(), strict=True)]


DOWN = "error: Nodes {} not responding, setting DOWN"
SET = "update_node: node {} state set to {}"
WHY = "update_node: node {} reason set to: {}"


def test_a_node_is_out_until_it_is_neither_down_nor_drained(tmp_path):
    log = control(
        tmp_path,
        said(100, DOWN.format("n1")),
        said(100, "requeue job JobId=7 due to failure of node n1"),
        said(200, WHY.format("n1", "XID 79 (GPU 3)")),
        said(200, SET.format("n1", "DRAINED")),
        said(300, "Node n1 now responding"),
        said(300, "node n1 returned to service"),
        said(900, SET.format("n1", "IDLE")),
        said(1000, SET.format("n2", "DRAINING")),
        said(1001, WHY.format("n2", "Kill task failed [root@2026-08-03T00:16:40]")),
        said(1500, SET.format("n2", "MIXED")),
        said(
            1600, "validate_node_specs: Node n3 unexpectedly rebooted boot_time=1 last response=0"
        ),
        said(1700, SET.format("n3", "DOWN*")),
        said(1800, SET.format("n3", "ALLOCATED")),
        said(1900, "error: _slurm_rpc_complete: JobId=5 epilog error on n4, draining the node"),
        said(1900, "drain_nodes: node n4 state set to DRAIN"),
        said(1950, SET.format("n5", "FAIL")),
        said(1960, "node_did_resp: node n9 returned to service"),
    )
    assert outages(log)[:3] == [("n1", 100, 900), ("n2", 1000, 1500), ("n3", 1600, 1800)]
    assert log.cause.tolist() == [
        "not responding",
        "Kill task failed",
        "unexpectedly rebooted",
        "epilog error",
        "drained",
    ]
    assert log.still.tolist() == [False, False, False, True, True]
    assert (log.begin, log.watched) == (0.0, 86400.0)
    assert "1 returns of nodes that were down before the log began" in " ".join(log.notes)


def test_nodes_that_go_in_one_second_are_one_event_where_they_share_a_cause(tmp_path):
    log = control(
        tmp_path,
        said(100, DOWN.format("n[1-16]")),
        said(5000, WHY.format("n[21-22]", "XID 79")),
        said(5000, SET.format("n[21-22]", "DRAINED")),
        *(
            said(6000.2 + k / 3, text)
            for k in range(2)
            for text in (WHY.format(f"n{30 + k}", "rack B3 PDU"), SET.format(f"n{30 + k}", "DOWN"))
        ),
    )
    assert len(log.start) == 20
    # sixteen at once, two GPUs of their own, a rack of two
    assert np.bincount(log.incident).tolist() == [16, 1, 1, 2]
    assert log.level_of()["rack B3 PDU"] == "rack"


def test_a_cause_that_two_nodes_have_at_other_times_is_two_events(tmp_path):
    log = control(
        tmp_path,
        said(100, WHY.format("n1", "XID 79")),
        said(100, DOWN.format("n1")),
        said(9000, WHY.format("n2", "XID 79")),
        said(9000, SET.format("n2", "DRAINED")),
    )
    assert log.node.tolist() == ["n1", "n2"]
    assert log.incidents == 2


def test_a_node_that_only_answers_is_back_then_if_slurm_had_it_down(tmp_path):
    log = control(
        tmp_path,
        said(100, DOWN.format("n1")),
        said(400, "Node n1 now responding"),
        said(900, DOWN.format("n1")),
        said(950, DOWN.format("n1")),
        said(1000, DOWN.format("n2")),
        said(1100, "Node n2 now responding"),
        said(1200, SET.format("n3", "DOWN")),
        said(1300, "Node n3 now responding"),
    )
    assert outages(log)[0] == ("n1", 100, 400)
    assert outages(log)[2] == ("n2", 1000, 1100)
    assert log.still.tolist() == [False, True, False, True]
    assert "2 nodes answered and no line puts them back" in " ".join(log.notes)


def test_what_is_planned_is_no_failure_unless_it_is_asked_for(tmp_path):
    lines = [
        said(100, WHY.format("n[1-4]", "Maintenance window")),
        said(100, SET.format("n[1-4]", "DRAINED")),
        said(500, SET.format("n[1-4]", "IDLE")),
        said(700, WHY.format("n7", "GPU lost")),
        said(700, SET.format("n7", "DRAINED")),
    ]
    for k, why in enumerate(("unplanned outage", "XID 79 after update", "needs reboot")):
        broken = [said(800, WHY.format(f"m{k}", why)), said(800, SET.format(f"m{k}", "DOWN"))]
        assert why in control(tmp_path, *lines, *broken).cause
    log = control(tmp_path, *lines)
    assert log.cause.tolist() == ["GPU lost"]
    assert "left out: 4 Maintenance window, planned" in " ".join(log.notes)
    asked = control(tmp_path, *lines, states=["Maintenance window"], dialect="slurmctld")
    assert asked.repairs.tolist() == [400.0] * 4
    assert "left out: 1 GPU lost, which states= does not name" in asked.notes


@pytest.mark.parametrize(
    "front",
    [
        "[2026-08-{day:02d}T{clock}]",
        "[2026-08-{day:02d}T{clock}.250]",
        "[2026-08-{day:02d}T{clock}.250+02:00]",
        "2026-08-{day:02d}T{clock}+02:00 head slurmctld[153]:",
        "Aug  {day} {clock} head slurmctld[153]:",
        "[Aug 0{day} {clock}]",
    ],
)
def test_the_controller_is_read_with_every_clock(tmp_path, front):
    lines = [(3, "00:00:00", "started"), (4, "00:00:00", DOWN.format("n1,m[2-3]"))]
    lines += [(4, "01:00:00", f"node {n} returned to service") for n in ("n1", "m2")]
    text = [f"{front.format(day=day, clock=clock)} {words}" for day, clock, words in lines]
    log = read_failure_log(written(tmp_path, *text), population=8)
    assert sorted(log.node) == ["m2", "m3", "n1"]
    assert log.repairs[np.isfinite(log.repairs)].tolist() == [3600.0] * 2
    assert (log.begin, log.watched) == (0.0, 90000.0)
    assert log.still.sum() == 1


def test_an_hour_that_comes_twice_goes_on(tmp_path):
    lines = [
        "[2026-10-25T02:50:00] " + DOWN.format("n1"),
        "[2026-10-25T02:00:00] job 7 done",
        "[2026-10-25T02:10:00] node n1 returned to service",
        "[2026-10-25T09:00:00] " + DOWN.format("n1"),
    ]
    log = read_failure_log(written(tmp_path, *lines), population=8)
    assert log.repairs[0] == 1200.0


def paired(lines: list[str]) -> list[float]:
    """The rival: each DOWN until the next line of the file that returns a node to service."""
    found, down = [], []
    for line in lines:
        at = datetime.fromisoformat(line[1:24])
        if "setting DOWN" in line:
            down.append(at)
        elif "returned to service" in line and down:
            found.append((at - down.pop(0)).total_seconds())
    return found


@pytest.mark.parametrize("seed", range(6))
def test_outages_drawn_at_random_are_found_in_the_lines_they_leave(tmp_path, seed):
    rng = np.random.default_rng(seed)
    truth, lines, free = [], [], {f"n{k}": 0.0 for k in range(8)}
    for _ in range(40):
        node = str(rng.choice([*free]))
        start = round(free[node] + rng.exponential(9000) + 60, 3)
        end = round(start + rng.exponential(4000) + 1, 3)
        free[node] = end
        silent, drained = rng.random() < 0.6, rng.random() < 0.4
        if silent or not drained:
            lines.append((start, DOWN.format(node)))
            back = end if not drained else round(rng.uniform(start, end), 3)
            lines.append((back, f"node {node} returned to service"))
        if drained:
            begin = start if not silent else round(rng.uniform(start, back), 3)
            lines.append((begin, SET.format(node, rng.choice(["DRAINED", "DRAINING", "FAIL"]))))
            lines.append((end, SET.format(node, rng.choice(["IDLE", "MIXED", "ALLOCATED"]))))
        truth.append((node, start, end))
    text = [said(at, words) for at, words in sorted(lines, key=lambda line: line[0])]
    log = read_failure_log(written(tmp_path, said(0, "started"), *text), population=8)
    found = sorted(outages(log))
    assert [row[0] for row in found] == [row[0] for row in sorted(truth)]
    assert np.array([row[1:] for row in found]) == pytest.approx(
        np.array([row[1:] for row in sorted(truth)]), abs=2e-3
    )
    assert paired(text) != pytest.approx([end - start for _, start, end in sorted(truth)])


def test_a_log_of_the_controller_without_nodes_or_times_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"a log of a form that is known, .*slurmctld"):
        read_failure_log(written(tmp_path, "[2026-08-03T00:00:00] started"), population=8)
    with pytest.raises(ValueError, match=r"a time in every line of an event, .*line 1 of"):
        read_failure_log(written(tmp_path, DOWN.format("n1")), population=8)
    with pytest.raises(ValueError, match=r"lists of nodes, got 'n.1-' in row 1 .line 2"):
        control(tmp_path, said(5, DOWN.format("n[1-")))


@needs_data
def test_the_outages_of_a_public_case():
    log = read_failure_log(DATA / "public-cases" / "slurmctld.log", population=64)
    assert log.node.tolist() == ["gpu017", "gpu021", "gpu022", "gpu017"]
    assert log.repairs[:3] == pytest.approx([19800, 86400, 86400], abs=1)
    assert log.still.tolist() == [False, False, False, True]
    assert log.cause.tolist() == ["not responding", "XID 79", "XID 79", "not responding"]
