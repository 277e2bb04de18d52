"""What the README promises is so: its snippet runs, its numbers hold, its links lead somewhere."""

import ast
import re
from inspect import isfunction
from pathlib import Path

import pytest

import relparallel
from relparallel.claims.scoreboard import scoreboard
from relparallel.ledger import ledger

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh.md")


def snippet(name: str) -> str:
    return re.search(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.S)[1]


@pytest.mark.parametrize("name", READMES)
def test_every_line_of_the_snippet_gives_the_number_written_beside_it(name):
    code, namespace, checked = snippet(name), {}, 0
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        text = ast.get_source_segment(code, statement)
        if not isinstance(statement, ast.Expr):
            exec(text, namespace)
            continue
        promised = lines[statement.end_lineno - 1].rpartition("#")[2].strip()
        digits = len(promised.partition("e")[0].replace(".", "").lstrip("0"))
        assert float(f"{float(eval(text, namespace)):.{digits - 1}e}") == float(promised), text
        checked += 1
    assert checked == 11


@pytest.mark.parametrize("package", [relparallel.reliability, relparallel.optimize])
def test_the_first_page_of_help_leads_to_every_function(package):
    named = set(re.findall(r"`(\w+)`", package.__doc__))
    assert named - {"formulation"} <= set(package.__all__)
    assert {n for n in package.__all__ if isfunction(getattr(package, n))} - named <= {"in_degrees"}


@pytest.mark.parametrize("name", READMES)
def test_every_link_leads_to_a_file(name):
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text("utf-8")):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("name", READMES)
def test_the_count_of_reproduced_numbers_is_not_overstated(name):
    frame = ledger()
    published = frame["origin"].isin(["printed", "artefact"])
    done = int(((frame["role"] == "check") & (frame["status"] == "reproduced") & published).sum())
    claimed = int(
        re.search(r"(\d{3,}) (?:published numbers are|个数字在)", (ROOT / name).read_text("utf-8"))[1]
    )
    assert claimed <= done


@pytest.mark.parametrize("name", READMES)
def test_errors_of_predictions_are_those_of_the_scoreboard(name):
    table = scoreboard().set_index(["family", "source", "used"]).sort_index()
    rows = re.findall(r"^\| ([ABH]\d.*?): (\d+) \|(.*)\|$", (ROOT / name).read_text("utf-8"), re.M)
    assert len(rows) == 6
    for title, runs, shown in rows:
        chip, _, source = title.partition(", ")
        of = table.loc[(chip.split()[0].lower(), source or "all")]
        out = of.loc["source left out"]
        blind = f"{of.loc['blind', 'mean']:.1f}" if "blind" in of.index else ""
        baselines = [f"{of.loc[way, 'mean']:.1f}" for way in ("MFU of the nearest", "constant MFU")]
        cells = [cell.strip() for cell in shown.split("|")]
        assert int(runs) == out["rows"]
        assert cells == [f"{out['mean']:.1f}", f"{out['inside']:.0f}", blind, *baselines]


def test_both_languages_say_the_same_numbers():
    numbers = [re.findall(r"\d[\d.e-]*\d", (ROOT / name).read_text("utf-8")) for name in READMES]
    assert sorted(set(numbers[0])) == sorted(set(numbers[1]))
