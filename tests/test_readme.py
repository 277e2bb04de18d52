"""What the README promises is so: its snippet runs and its numbers hold."""

import ast
import re
from pathlib import Path

import pytest

from evidence.claims.scoreboard import board
from relparallel.__main__ import main

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


@pytest.mark.parametrize("name", RUN)
def test_the_quick_start_prints_what_is_shown(name, capsys, monkeypatch):
    """With ``COLUMNS=80``, lines left out where three points stand."""
    monkeypatch.setenv("COLUMNS", "80")
    text = (ROOT / name).read_text("utf-8")
    command, shown = re.search(
        r"^relparallel (plan .*)\n```\n\n```text\n(.*?)```", text, re.M | re.S
    ).groups()
    assert main(command.split()) == 0
    pieces = map(re.escape, shown.split("...\n"))
    assert re.fullmatch("(?:.*\n)*?".join(pieces), capsys.readouterr().out)


@pytest.mark.parametrize("name", READMES)
def test_the_error_of_predictions_is_that_of_the_scoreboard(name):
    mean = board()["error of a step / %", "left out"].mean()
    (said,) = re.findall(r"(?:off by|平均误差为) (\d+) %", (ROOT / name).read_text("utf-8"))
    assert int(said) == round(mean)
