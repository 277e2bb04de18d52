"""Real kernels: the same bytes on every run, and every way in which a notebook can fail."""

import json
import os
import tempfile
from pathlib import Path

import pytest

from reproduce.execute import Outcome, Task, execute

FIGURE = """\
import os, pathlib
import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(2, 1))
ax.plot([0, 1], [0, {value}])
plt.rcParams["svg.hashsalt"] = "toy"
folder = pathlib.Path(os.environ["RELPARALLEL_FIGURES"])
fig.savefig(folder / "{name}.svg")
fig.savefig(folder / "{name}.pdf")"""
STREAM = (
    "import sys, time\nfor i in range(4):\n    print(i, flush=True)\n    "
    "time.sleep(0.01)\n{'b', 'a'}"
)


def outputs(path: Path) -> list[str]:
    """Every printed or displayed text of a stored notebook."""
    cells = json.loads(path.read_text())["cells"]
    found = [output for cell in cells for output in cell.get("outputs", [])]
    return ["".join(o.get("text") or o.get("data", {}).get("text/plain", "")) for o in found]


def executed(path: Path) -> Outcome:
    """Execute a notebook in a kernel of this process."""
    task = Task(
        name=path.stem,
        raw=path.read_bytes(),
        folder=str(path.parent),
        cell_timeout=60.0,
        timeout=60.0,
    )
    return execute(task)


@pytest.mark.slow
def test_one_worker_or_two_give_the_same_bytes(toy):
    for number in (1, 2):
        toy.write(f"0{number}_figure", FIGURE.format(value=number, name=number), STREAM)
    assert toy.run(jobs=2).exit_code == 0
    first = toy.results()
    assert set(first) == {
        f"{f}"
        for n in "12"
        for f in (f"notebooks/0{n}_figure.ipynb", f"figures/{n}.svg", f"figures/{n}.pdf")
    }
    assert toy.run(jobs=1, force=True).done == ["01_figure", "02_figure"]
    assert toy.results() == first
    assert toy.run().done == []


def test_a_parameter_reaches_the_notebook(toy):
    out, cell = toy.root / "out", "hours = 24.0  # h\nsizes = (1, 2)\nname = 'ring'\nquick = False"
    toy.write("42_swept", "print(hours, sizes, name, quick)", parameters=cell)
    given = {"hours": "6", "sizes": "[4, 8, 16]", "name": '环 "a"'}
    assert toy.run("42", output_dir=out, quick=True, parameters=given).exit_code == 0
    assert outputs(out / "42_swept.ipynb") == ['6.0 (4, 8, 16) 环 "a" True\n']


def test_kernels_are_held_to_what_every_machine_has_and_to_no_users_settings(toy, monkeypatch):
    for variable in ("JUPYTER_PATH", "LC_ALL", "MPLBACKEND", "NUMBA_CPU_NAME", "PYTHONWARNINGS"):
        monkeypatch.setenv(variable, "nonsense")
    toy.write(
        "01_pins",
        "import os, subprocess, sys",
        "subprocess.run([sys.executable, '-W', 'error', '-c', 'import numpy, numba']).returncode",
        "import numpy as np\nnp.show_config(mode='dicts')['SIMD Extensions'].get('found', [])",
        "import numba\nnumba.config.CPU_NAME, numba.config.CPU_FEATURES, "
        "numba.config.NUMBA_NUM_THREADS",
        "[os.environ.get(v) for v in ('PYTHONHASHSEED', 'SOURCE_DATE_EPOCH', "
        "'OPENBLAS_NUM_THREADS', 'TZ')]",
        "import matplotlib\nos.environ['MPLBACKEND'], 'mpl-data' in matplotlib.matplotlib_fname()",
        "os.getcwd().endswith('notebooks'), os.environ.get('PYTHONWARNINGS')",
    )
    before = dict(os.environ)
    outcome = executed(toy.root / "notebooks/01_pins.ipynb")
    assert outcome.failure is None
    assert dict(os.environ) == before
    (toy.root / "done.ipynb").write_bytes(outcome.notebook)
    assert outputs(toy.root / "done.ipynb") == [
        "0",
        "[]",
        "('generic', '', 1)",
        "['0', '0', '1', 'UTC']",
        "('module://matplotlib_inline.backend_inline', True)",
        "(True, None)",
    ]


@pytest.mark.slow
def test_every_failure_is_told_kept_and_stops_no_other(toy):
    """An error, a killed kernel, a killed worker, a cell that takes too long; one is fine."""
    wait = "import time\ntime.sleep(60)"
    toy.write("01_error", "a = 1", "import math\nmath.sqrt(-a)", "print('never')")
    toy.write(
        "02_kernel", "print('before')", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    toy.write("03_worker", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", wait)
    toy.write("04_fine", "print('fine')")
    toy.write("05_slow", "print('before')", wait)
    before = toy.files("notebooks")
    report = toy.run(jobs=2, cell_timeout=2.0)
    assert (report.done, report.exit_code) == (["04_fine"], 1)
    told = {name: problem.splitlines() for name, problem in report.failed.items()}
    assert told["01_error"][0].startswith("failed in code cell 3: ValueError: ")
    assert told["01_error"][1:3] == ["    | import math", "    | math.sqrt(-a)"]
    assert told["02_kernel"][:2] == [
        "failed in code cell 3: the kernel died",
        "    | import os, signal",
    ]
    assert told["03_worker"] == ["failed: its worker process died (out of memory, or killed)"]
    assert told["05_slow"][0] == "failed in code cell 3: the cell took longer than 2 s"
    for name in ("01_error", "02_kernel", "05_slow"):
        kept = toy.root / ".relparallel/failed" / f"{name}.ipynb"
        assert told[name][-1] == f"    kept for inspection: {os.path.relpath(kept)}"
        assert json.loads(kept.read_text())["cells"]
        assert f"{name} {told[name][0]}" in toy.lines
    assert "notebooks: 1 executed, 4 failed" in toy.lines
    assert {n: b for n, b in toy.files("notebooks").items() if "fine" not in n} == {
        n: b for n, b in before.items() if "fine" not in n
    }
    assert toy.processes() == []


@pytest.mark.slow
def test_a_notebook_that_takes_too_long_is_ended_and_kept_until_it_succeeds(toy):
    path = toy.write("01_long", "import time\ntime.sleep(0.1)", "time.sleep(60)")
    report = toy.run(timeout=2.5)
    assert report.failed["01_long"].startswith(
        "failed in code cell 3: the notebook took longer than 2.5 s"
    )
    assert (toy.root / ".relparallel/failed/01_long.ipynb").exists()
    path.write_text(path.read_text().replace("sleep(60)", "sleep(0.1)"))
    assert toy.run().exit_code == 0
    assert not (toy.root / ".relparallel/failed/01_long.ipynb").exists()


@pytest.mark.slow
def test_a_failure_elsewhere_is_kept_there(toy):
    toy.write("01_error", "1 / 0")
    before, out = toy.files(), toy.root / "out"
    report = toy.run(output_dir=out)
    assert "ZeroDivisionError" in report.failed["01_error"]
    assert {p.name for p in out.iterdir()} == {"01_error.failed.ipynb"}
    assert {n: b for n, b in toy.files().items() if not n.startswith("out/")} == before


@pytest.mark.slow
def test_a_kernel_that_cannot_start_says_why(toy, monkeypatch):
    path = toy.write("01_never", "1 + 1")
    (toy.root / "notebooks" / "ipykernel_launcher.py").write_text(
        "raise ImportError('no such thing')"
    )
    failure = executed(path).failure
    assert failure.count is None
    assert "Kernel died" in failure.error
    assert failure.error.endswith(" - ImportError: no such thing")


@pytest.mark.slow
def test_nothing_stays_in_the_temporary_folder(toy, monkeypatch):
    private = toy.root / "t"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    toy.write("01_fine", "print(1)")
    assert toy.run().exit_code == 0
    assert list(private.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["with {braces} and 空格", "x" * 120])
def test_any_path_will_do(toy, monkeypatch, folder):
    """Braces are no fields to fill in, and a path too long for a socket is not used for one."""
    private = toy.root / folder
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    outcome = executed(toy.write("01_sum", "1 + 1"))
    assert (outcome.failure, list(private.iterdir())) == (None, [])
    assert json.loads(outcome.notebook)["cells"][2]["outputs"][0]["data"] == {"text/plain": ["2"]}
