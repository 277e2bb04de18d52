"""What the README promises is so: its snippet runs and its numbers hold.

``python tests/test_readme.py`` writes what the quick start prints into both, and draws the figure of
their sweep.
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from reproduce.notebook import read, results

ROOT = Path(__file__).parent.parent
SWEEP = ROOT / "docs" / "static" / "sweep.svg"
READMES = ("README.md", "README.zh.md")
RUN = ("README.md", pytest.param("README.zh.md", marks=pytest.mark.slow))  # the same calls in both


def snippet(name: str) -> str:
    return re.search(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.S)[1]


@pytest.mark.parametrize("name", RUN)
def test_every_line_of_the_snippet_gives_the_number_written_beside_it(name):
    code, namespace, checked = snippet(name), {}, 0
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        text = ast.get_source_segment(code, statement)
        promised = lines[statement.end_lineno - 1].rpartition("  # ")[2].strip()
        if not isinstance(statement, ast.Expr) or promised == text:
            exec(text, namespace)
            continue
        digits = len(promised.partition("e")[0].replace(".", "").lstrip("0"))
        assert float(f"{float(eval(text, namespace)):.{digits - 1}e}") == float(promised), text
        checked += 1
    assert checked == 17


QUICK_START = re.compile(
    r"(?<=^relparallel )(plan .*)(\n```\n\n```text\n)(.*?)(?=```)", re.M | re.S
)


def printed(command: str) -> str:
    """What a command prints in a terminal of 80 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "relparallel", *command.split()],
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("name", RUN)
def test_the_quick_start_prints_what_is_shown(name):
    command, _, shown = QUICK_START.search((ROOT / name).read_text("utf-8")).groups()
    assert printed(command) == shown, "python tests/test_readme.py writes it anew"


def sweep(folder: Path) -> bytes:
    """The figure that the README draws of a sweep, in quick mode."""
    page = (ROOT / "README.md").read_text("utf-8")
    (command,) = re.findall(r"^relparallel (figures .*OUT)$", page, re.M)
    draw = re.findall(r"```python\n(.*?)```", page, re.S)[1]
    places = {"PYTHONPATH": str(ROOT), "RELPARALLEL_FIGURES": str(folder)}
    told = {"cwd": folder, "env": os.environ | places, "check": True, "capture_output": True}
    run = ["-m", "relparallel", *command.split(), "--quick", "--root", str(ROOT)]
    subprocess.run([sys.executable, *run], **told)
    subprocess.run([sys.executable, "-c", draw], **told)
    return (folder / "sweep.svg").read_bytes()


@pytest.mark.slow
def test_the_figure_of_the_sweep_is_what_its_lines_draw(tmp_path):
    assert sweep(tmp_path) == SWEEP.read_bytes(), "python tests/test_readme.py draws it anew"


# what the first screen says of a notebook, by the names under which that prints it
TRUST = {
    "39": ("blind_runs", "blind_inside", "blind_error", "left_out"),
    "00": ("differ", "published"),
    "49": ("servers", "days", "spares_needed", "spares_independent"),
    "47": ("held", "filed", "signs_right", "pairs", "signs_availability"),
}


@pytest.mark.parametrize("name", READMES)
def test_why_to_trust_it_are_numbers_that_notebooks_print(name):
    first = (ROOT / name).read_text("utf-8").partition("```")[0]
    reasons = re.findall(r"^- \*(?!\*)(.*?)(?=\n- |\n\n)", first, re.M | re.S)
    told = {re.search(r"notebooks/(\d\d)", reason)[1]: reason for reason in reasons}
    for number, names in TRUST.items():
        (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
        printed = results(read(path).content["cells"])
        said = re.findall(
            r"(?<![\w./])\d[\d,]*(?!\w)", re.sub(r"\(notebooks.*?\)", "", told[number])
        )
        for value in (f"{float(printed[name].replace(',', '')):.0f}" for name in names):
            assert value in [one.replace(",", "") for one in said], (number, value)


if __name__ == "__main__":
    for page in (ROOT / name for name in READMES):
        text = page.read_text("utf-8")
        page.write_text(QUICK_START.sub(lambda m: m[1] + m[2] + printed(m[1]), text), "utf-8")
    with tempfile.TemporaryDirectory() as name:
        SWEEP.write_bytes(sweep(Path(name)))
