"""What the README promises is so: its snippet runs and its numbers hold.

``python tests/test_readme.py`` writes what the quick start prints into both.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evidence.claims.scoreboard import board

ROOT = Path(__file__).parent.parent
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
    assert checked == 15


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


@pytest.mark.parametrize("name", READMES)
def test_the_error_of_predictions_is_that_of_the_scoreboard(name):
    mean = board()["error of a step / %", "left out"].mean()
    (said,) = re.findall(r"(?:off by|平均误差为) (\d+) %", (ROOT / name).read_text("utf-8"))
    assert int(said) == round(mean)


if __name__ == "__main__":
    for page in (ROOT / name for name in READMES):
        text = page.read_text("utf-8")
        page.write_text(QUICK_START.sub(lambda m: m[1] + m[2] + printed(m[1]), text), "utf-8")
