"""What the README promises is so: its snippet runs and its numbers hold."""

import ast
import re
from pathlib import Path

import networkx as nx
import pytest

from relparallel.__main__ import main
from relparallel.claims.scoreboard import board
from relparallel.ledger import ledger

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
        if not isinstance(statement, ast.Expr):
            exec(text, namespace)
            continue
        promised = lines[statement.end_lineno - 1].rpartition("#")[2].strip()
        digits = len(promised.partition("e")[0].replace(".", "").lstrip("0"))
        assert float(f"{float(eval(text, namespace)):.{digits - 1}e}") == float(promised), text
        checked += 1
    assert checked == 11


@pytest.mark.parametrize("name", RUN)
def test_each_of_the_ten_questions_takes_one_call(name, tmp_path, monkeypatch):
    graph, namespace = nx.petersen_graph(), {}
    nx.set_edge_attributes(graph, dict.fromkeys(graph.edges, 1.0), "price")
    monkeypatch.chdir(tmp_path)
    rows = [f"n{day},2026-01-0{day}T00:00,2026-01-0{day}T01:00,gpu" for day in (1, 5, 9)]
    Path("log.csv").write_text("\n".join(["node,start,end,cause", *rows, ""]))
    exec(snippet(name).partition("# Which strategy, recovery")[0], namespace)
    namespace |= {"mtbf": 250 * 86400.0, "mttr": 86400.0, "graph": graph}
    calls = re.findall(r"^\|[^|`]*\| `(.*)` \|$", (ROOT / name).read_text("utf-8"), re.M)
    asked = [eval(call, namespace) for call in calls if call.startswith(("rp.", "["))]
    assert len(asked) == 10
    assert all(answer is not None for answer in asked)
    assert not asked[0].fits or asked[0].needed <= asked[0].available


@pytest.mark.parametrize("name", RUN)
def test_the_quick_start_prints_what_is_shown(name, capsys, monkeypatch):
    """With ``COLUMNS=80``; what it prints now is in the message of a failure."""
    monkeypatch.setenv("COLUMNS", "80")
    text = (ROOT / name).read_text("utf-8")
    command, shown = re.search(
        r"^relparallel (plan .*)\n```\n\n```text\n(.*?)```", text, re.M | re.S
    ).groups()
    assert main(command.split()) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.slow
@pytest.mark.parametrize("name", READMES)
def test_the_count_of_reproduced_numbers_is_not_overstated(name):
    frame = ledger()
    published = frame["origin"].isin(["printed", "artefact"])
    rows = frame[(frame["role"] == "check") & (frame["status"] == "reproduced") & published]
    done, to_the_digit = len(rows), int((rows["tolerance"] == "printed").sum())
    claimed = int(
        re.search(r"(\d{3,}) (?:published numbers are|个数字在)", (ROOT / name).read_text("utf-8"))[
            1
        ]
    )
    assert claimed <= done
    parts = re.search(
        r"(?:: |其中 )(\d+) (?:to|个与)[^0-9]* (\d+) ", (ROOT / name).read_text("utf-8")
    )
    assert [int(part) for part in parts.groups()] == [to_the_digit, done - to_the_digit]


@pytest.mark.parametrize("name", READMES)
def test_the_error_of_predictions_is_that_of_the_scoreboard(name):
    mean = board()["error of a step / %", "left out"].mean()
    (said,) = re.findall(r"(?:off by|平均误差为) (\d+) %", (ROOT / name).read_text("utf-8"))
    assert int(said) == round(mean)
