"""What takes long says so on stderr, wherever that leads, and nowhere else."""

import os
import re
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest

from relparallel import _notices
from relparallel._notices import doing, told

ROOT = Path(__file__).resolve().parents[1]


@told
def _slow(seconds, inner=None):
    doing("half way")
    sleep(seconds)
    return inner and inner(seconds)


@told
def other(seconds):
    sleep(seconds)
    raise ValueError


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.delenv("RELPARALLEL_QUIET", raising=False)
    monkeypatch.setattr(_notices, "_FIRST", 0.2)
    monkeypatch.setattr(_notices, "_POLL", 0.02)
    yield
    while _notices._watcher:
        sleep(0.02)


def test_a_long_call_tells_once_of_the_outermost_and_what_it_does(capsys):
    _slow(0.2)
    with pytest.raises(ValueError):
        _slow(0.2, inner=other)
    said = capsys.readouterr()
    assert said.out == ""
    assert set(said.err.splitlines()) == {"relparallel: slow, 0 s so far: half way"}
    assert said.err.count("\n") <= 2


def test_a_short_call_and_a_quiet_process_say_nothing(capsys, monkeypatch):
    for _ in range(50):
        _slow(0.001)
    monkeypatch.setenv("RELPARALLEL_QUIET", "1")
    while _notices._watcher:
        sleep(0.02)
    _slow(0.4)
    assert capsys.readouterr() == ("", "")


def test_kernels_of_notebooks_are_quiet(tmp_path):
    from reproduce.pins import pins

    assert pins(tmp_path)[_notices.QUIET] == "1"


COLD = "import networkx as nx, relparallel as rp; rp.evaluate(nx.grid_2d_graph(4, 4), link_up=0.9)"
UPGRADE = """
import sys; sys.path[:0] = ["tests/optimize", "tests"]
from test_reliable_network import upgrade
import relparallel as rp
graph = upgrade(60, 30)
rp.optimize.reliable_network(graph, 3e-3, "nodes", 0.98)
"""
STUDY = (
    "import relparallel as rp; rp.study(rp.workload.transformers()[:9], ['h100-80gb-dgx'], [1024])"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("evaluate", ["-c", COLD]),
        ("reliable_network", ["-c", UPGRADE]),
        ("ledger", ["-m", "relparallel", "ledger"]),
        ("study", ["-c", STUDY]),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_in_a_pipe_it_speaks_within_seconds(name, code, tmp_path):
    quiet = {"RELPARALLEL_QUIET", "NUMBA_CACHE_DIR"}
    env = {key: value for key, value in os.environ.items() if key not in quiet}
    env |= {"NUMBA_CACHE_DIR": str(tmp_path)} if name == "evaluate" else {}
    with subprocess.Popen(
        [sys.executable, *code], cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=-1, text=True
    ) as process:
        first = process.stderr.readline()
        process.kill()
    found = re.match(rf"relparallel: {name}, (\d+) s so far", first)
    assert found, first
    assert int(found[1]) <= 9  # more than two where the machine is busy
