"""A run killed or interrupted at any moment leaves whole files and no process, and the next run goes on."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path

import psutil
import pytest

from relparallel.reproduce.processes import local_pool

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
    """Undo what a shell does to its background jobs, and so perhaps to these tests: ignore interrupts."""
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
    return "".join(text for c in cells for output in c.get("outputs", []) for text in output["text"]).strip()


def test_killed_at_any_moment(project):
    """Every file is whole: of this state of the data or of an earlier one; no process stays behind."""
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
    assert {printed(d) if n.endswith(".ipynb") else d[:1].decode() for n, d in results.items()} == {"c"}
    assert len(results) == 3 * 5
    assert len(project.run().current) == 3


def test_interrupted_from_the_keyboard(project):
    project.write("04_d", "import time\ntime.sleep(60)")
    run = started(project.root, subprocess.PIPE)
    lines = [run.stdout.readline().decode() for _ in range(5)]
    family = psutil.Process(run.pid).children(recursive=True)
    os.killpg(run.pid, signal.SIGINT)
    said = b"".join(run.communicate(timeout=10))
    assert run.returncode == 130, lines
    assert b"interrupted" in said
    assert b"Traceback" not in said
    assert all_end([*family, *project.processes()])


def dies_while_it_answers() -> bytes:
    """Return a long result, and end when the runner has read a part of it."""
    runner = psutil.Process(os.getppid())
    before = runner.io_counters().read_chars

    def end() -> None:
        while runner.io_counters().read_chars < before + 1_000_000:
            time.sleep(1e-4)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
    return bytes(200_000_000)


def answer() -> str:
    with local_pool(2) as pool:
        try:
            return f"{len(pool.submit(dies_while_it_answers).result())} bytes"
        except BrokenExecutor:
            return "broken"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs counts of bytes read")
def test_a_worker_dies_while_it_answers():
    code = "from tests.reproduce.test_kill import answer; print(answer())"
    top = Path(__file__).parents[2]
    asked = subprocess.run([sys.executable, "-c", code], cwd=top, capture_output=True, timeout=60, text=True)
    assert asked.stdout in ("200000000 bytes\n", "broken\n"), asked.stderr
