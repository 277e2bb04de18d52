"""Real processes: killed nodes come back, weights are the same to the bit, and nothing stays behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from relparallel.__main__ import main
from relparallel.rehearsal.processes import answers, isolate

needs_torchft = pytest.mark.skipif(find_spec("torchft") is None, reason="torchft is not installed")
ROOT = Path(__file__).resolve().parents[2]
# Nodes die after two seconds, those of every third slot from 1 on; repairs take one and a half.
JOBS = """
import dataclasses, json
from relparallel.rehearsal.job import Chaos, together
from relparallel.rehearsal.node import Run

def chaos(nodes, dead):
    lives = [[2.0 + slot / 9 if slot in dead else 1e9, 1e9] for slot in range(nodes)]
    return Chaos(lives, [[1.5, 1.5]] * nodes)

given = {"nodes_per_replica": 2, "repair": 1.5, "seed": 0, "seconds": SECONDS, "step": 0.15, "nodes": 4}
given["backend"] = "BACKEND"
restart = Run(policy="restart", **given)
elastic = Run(policy="elastic", **given)
spares, both = (Run(policy=name, spares=2, **given | {"nodes": 6}) for name in ("spares", "elastic"))
regroup = Run(policy="regroup", **given | {"nodes": 6})
one, two = (Run(policy="elastic", copies=copies, **given | {"nodes": 8}) for copies in (1, 2))
runs = RUNS
deaths = [(), (1,), (1,), (1,), (1,), (1, 2), (1,), (1,)]
logs = together(runs, [chaos(run.nodes, dead) for run, dead in zip(runs, deaths)])
print(json.dumps([dataclasses.asdict(log) for log in logs]))
"""
ALL = "[restart, restart, spares, elastic, both, regroup, one, two]"
UNDER_TORCHFT = "[elastic] * 2"


@contextmanager
def started(
    seconds: float, folder: Path, backend: str = "sockets", runs: str = ALL
) -> Iterator[subprocess.Popen[str]]:
    script = JOBS.replace("SECONDS", str(seconds)).replace("BACKEND", backend)
    run = subprocess.Popen(
        [sys.executable, "-c", script.replace("RUNS", runs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield run
    finally:
        run.kill()


@pytest.mark.slow
def test_a_kill_under_every_policy(tmp_path):
    """Restart and spares repeat the losses of a run without failures to the bit; the elastic job goes on."""
    with started(8.0, tmp_path) as run:
        said, errors = run.communicate(timeout=90)
    calm, restart, spares, elastic, both, regroup, one, two = json.loads(said)
    assert errors == ""
    losses = {done: loss for _, done, _, loss in calm["steps"]}
    assert losses[max(losses)] < losses[1]
    for log in (restart, spares):
        found = [(done, loss) for _, done, _, loss in log["steps"] if done in losses]
        assert len(found) > 10
        assert found == [(done, losses[done]) for done, _ in found]
    for log in (restart, spares, elastic, both):
        ((node, at, back, working),) = log["kills"]
        assert (node, working) == (1, True)
        assert back == pytest.approx(at + 1.5)
    assert {replicas for _, _, replicas, _ in regroup["steps"]} == {2, 3}, (
        "two replicas of three lose a node each, and make one together"
    )
    assert one["began"][1][2] in (0, 8), "the one copy of a shard is lost: back to the checkpoint"
    done = [done for _, done, *_ in two["steps"]]
    assert done == sorted(set(done)), "the other copy goes on"
    back = restart["kills"][0][2]
    assert restart["began"][1][0] > back, "restart waits for the repair"
    assert spares["waits"] == [], "a spare steps in"
    assert [replicas for _, _, replicas, _ in elastic["steps"]].count(1) >= 3
    assert elastic["steps"][-1][2] == 2, "the replica is back"
    assert {replicas for _, _, replicas, _ in both["steps"]} == {2}, (
        "a spare takes the place at once"
    )
    assert len(both["joins"]) == 1, "who is back stands by"
    assert len(both["began"]) == 2
    assert list(tmp_path.iterdir()) == []


@needs_torchft
@pytest.mark.slow
def test_torchft_goes_on_without_the_replica_that_lost_a_node(tmp_path):
    """It notices the loss late, and takes the replica in again once it is whole."""
    with started(10.0, tmp_path, "torchft", UNDER_TORCHFT) as run:
        said, errors = run.communicate(timeout=90)
    calm, struck = json.loads(said)
    assert errors == ""
    assert calm["kills"] == []
    assert {replicas for _, _, replicas, _ in calm["steps"]} == {2}
    assert calm["steps"][-1][3] < calm["steps"][0][3], "it learns"
    ((node, at, back, working),) = struck["kills"]
    assert (node, working, back) == (1, True, pytest.approx(at + 1.5))
    counts = [replicas for _, _, replicas, _ in struck["steps"]]
    assert (counts[0], counts[-1]) == (2, 2)
    assert counts.count(1) >= 1
    done = [done for _, done, *_ in struck["steps"]]
    assert done == list(range(1, len(done) + 1)), "no step is lost while a replica is left"
    assert len(struck["joins"]) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is rehearsed at all")
def test_torchft_is_refused_where_it_would_listen_on_real_networks(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("relparallel.rehearsal.processes.isolate", lambda: False)
    assert main(["rehearse", "--backend", "torchft", "--output-dir", str(tmp_path)]) == 2
    assert "torchft listens on all networks" in capsys.readouterr().err


def networks() -> tuple[bool, list[str]]:
    return isolate(), [name for _, name in socket.if_nameindex()]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is rehearsed at all")
def test_an_isolated_process_has_the_loopback_alone_and_the_others_keep_theirs():
    before = socket.if_nameindex()
    ((isolated, names),) = answers(networks, [()])
    if not isolated:
        pytest.skip("no process may have a network of its own here")
    assert names == ["lo"]
    assert socket.if_nameindex() == before


def test_torchft_is_named_with_its_extra_where_it_is_missing(tmp_path, capsys, monkeypatch):
    def refuse(*_: object) -> None:
        raise ModuleNotFoundError("no torchft", name="torchft")

    monkeypatch.setattr("relparallel.rehearsal.recording.rehearse", refuse)
    assert main(["rehearse", "--backend", "torchft", "--output-dir", str(tmp_path)]) == 2
    assert "pip install 'relparallel[rehearsal-torchft]'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("end", ["interrupt", "kill -9", "a controller dies"])
@pytest.mark.parametrize(
    ("backend", "runs", "count"),  # a janitor, the controllers, their nodes, and lighthouses
    [
        ("sockets", ALL, 51),
        pytest.param("torchft", UNDER_TORCHFT, 13, marks=needs_torchft),
    ],
    ids=["sockets", "torchft"],
)
def test_nothing_stays_behind(tmp_path, end, backend, runs, count):
    """Neither a process nor a folder, however it ends."""
    with started(60.0, tmp_path, backend, runs) as run:
        known = psutil.Process(run.pid)
        deadline = time.monotonic() + 60
        while len(known.children(recursive=True)) < count:
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        family = known.children(recursive=True)
        if end == "interrupt":
            os.killpg(run.pid, signal.SIGINT)  # as a terminal does
        elif end == "kill -9":
            run.kill()
        else:
            next(child for child in known.children() if child.children()).kill()
        _, errors = run.communicate(timeout=30)
    assert psutil.wait_procs(family, timeout=10)[1] == []
    assert list(tmp_path.iterdir()) == []
    assert run.returncode != 0
    if end == "a controller dies":
        assert "ChildProcessError: a process died" in errors


@pytest.mark.skipif(find_spec("torch") is not None, reason="PyTorch is installed")
def test_without_torch_the_command_says_what_to_install(tmp_path, capsys):
    assert main(["rehearse", "pipelines", "--output-dir", str(tmp_path)]) == 2
    assert "torch is missing: pip install 'relparallel[rehearsal]'" in capsys.readouterr().err
