"""A run killed or interrupted at any time leaves whole files and no process; the next goes on."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path

import psutil
import pytest

from reproduce.processes import local_pool

CELL = """\
import os, pathlib, time
text = pathlib.Path("../data/facts.csv").read_text()
folder = pathlib.Path(os.environ["RELPARALLEL_FIGURES"])
for i in range(4):
    (folder / f"NAME-{i}.svg").write_text(text * 300_000)
print(text)
time.sleep(SECONDS)"""


def started(root: Path, output: int = subprocess.DEVNULL) -> subprocess.Popen:
    command = [sys.executable, "-m", "relparallel", "figures", "--root", str(root), "--jobs", "2"]
    return subprocess.Popen(
        command, stdout=output, stderr=output, start_new_session=True, preexec_fn=hear_interrupts
    )


def hear_interrupts() -> None:
    """Undo what a shell does to background jobs, so perhaps to these tests: ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def all_end(processes: list[psutil.Process]) -> bool:
    """Tell whether the processes end soon, and end those that do not."""
    _, alive = psutil.wait_procs(processes, timeout=10)
    for process in alive:
        process.kill()
    return not alive


@pytest.fixture
def project(toy):
    for name, seconds in (("01_a", "0.1"), ("02_b", "0.3"), ("03_c", "0")):
        toy.write(name, CELL.replace("NAME", name).replace("SECONDS", seconds))
    return toy


def printed(notebook: bytes) -> str:
    cells = json.loads(notebook)["cells"]  # not half a file
    return "".join(
        text for c in cells for output in c.get("outputs", []) for text in output["text"]
    ).strip()


@pytest.mark.slow
def test_killed_at_any_moment(project):
    """Every file is whole: of this or an earlier state of the data; no process stays behind."""
    moments, states = random.Random(7), {""}
    for letter in "abc":
        (project.root / "data/facts.csv").write_text(letter)
        states.add(letter)
        run = started(project.root)
        time.sleep(moments.uniform(0.3, 3.0))
        family = psutil.Process(run.pid).children(recursive=True) if run.poll() is None else []
        run.kill()
        run.wait()
        assert all_end([*family, *project.processes()])
        for name, data in project.results().items():
            if name.endswith(".ipynb"):
                assert printed(data) in states
            else:
                assert data in {state.encode() * 300_000 for state in states}
    project.run()
    results = project.results()
    assert {printed(d) if n.endswith(".ipynb") else d[:1].decode() for n, d in results.items()} == {
        "c"
    }
    assert len(results) == 3 * 5
    assert len(project.run().current) == 3


@pytest.mark.slow
def test_interrupted_from_the_keyboard(project):
    project.write("04_d", "import time\ntime.sleep(60)")
    run = started(project.root, subprocess.PIPE)
    lines = [run.stdout.readline().decode() for _ in range(4)]  # how many, and three that are done
    family = psutil.Process(run.pid).children(recursive=True)
    os.killpg(run.pid, signal.SIGINT)
    said = b"".join(run.communicate(timeout=10))
    assert run.returncode == 130, lines
    assert b"interrupted" in said
    assert b"Traceback" not in said
    assert all_end([*family, *project.processes()])


class Deadly:
    """Ends the process when half of the answer is written."""

    def __reduce__(self):
        os._exit(0)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [str, os.abort, Deadly])
def test_a_process_that_dies_before_it_has_answered_is_told(answer):
    with local_pool(2) as pool:
        good, other = pool.submit(bytes, 10_000_000), pool.submit(_call, answer)
        assert len(good.result()) == 10_000_000
        if answer is str:
            assert other.result() == ["", ""]
        else:
            with pytest.raises(BrokenExecutor, match="its worker process died"):
                other.result()


def _call(answer):
    return ["", answer()]
