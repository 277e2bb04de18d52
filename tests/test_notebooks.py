"""Every notebook has the shape its readers expect, holds what its code gives, and runs in quick mode."""

import ast
import json
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.figure import Figure

from relparallel.reproduce.notebook import normal_form, read
from relparallel.reproduce.parameters import declared

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIGURE_LINK = re.compile(r"!\[[^\]]+\]\((\.\./figures/[^)\s]+)\)")
# What differs from machine to machine or from run to run.
VOLATILE = re.compile(
    r"(?<![\w.])/(?:work|farm|root|tmp|home|Users|usr|opt)/\w|\bat 0x[0-9a-f]{6,}|[A-Z]:\\\\"
)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return read(request.param)


def cells(notebook, kind: str) -> list[dict]:
    return [cell for cell in notebook.content["cells"] if cell["cell_type"] == kind]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def outputs(notebook) -> list[dict]:
    return [output for cell in cells(notebook, "code") for output in cell["outputs"]]


def test_the_first_screen_asks_answers_and_shows(notebook):
    first = notebook.content["cells"][0]
    title, _, text = source(first).partition("\n")
    assert first["cell_type"] == "markdown"
    assert title.startswith("# ")
    assert "?" in title, "the title is a question"
    assert "中文摘要" in text
    assert FIGURE_LINK.search(text), "it shows the figure"


def test_every_figure_it_links_exists(notebook):
    text = "\n".join(source(cell) for cell in cells(notebook, "markdown"))
    links = re.findall(r"\]\((\.\./[^)\s#]+)", text) + re.findall(r"src=\"(\.\./[^\"]+)\"", text)
    assert [link for link in links if not (notebook.path.parent / link).resolve().exists()] == []


def test_it_has_one_cell_of_literal_parameters_with_their_units(notebook):
    code = cells(notebook, "code")
    tagged = [cell for cell in code if "parameters" in cell["metadata"].get("tags", ())]
    assert tagged == code[:1], "the first code cell, and only it, is tagged"
    assert declared(notebook)["quick"] is False
    for statement in ast.parse(source(code[0])).body:
        line = source(code[0]).splitlines()[statement.end_lineno - 1]
        number = any(type(getattr(node, "value", None)) in (int, float) for node in ast.walk(statement))
        assert "#" in line or not number, f"{line} has no unit"


def test_code_cells_are_short_and_define_nothing(notebook):
    """What deserves a name of its own lives in the package."""
    for cell in cells(notebook, "code"):
        tree = ast.parse(source(cell))
        assert source(cell).strip()
        assert source(cell).strip().count("\n") < 15
        assert not [
            n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        ]
        assigned = [n.value for n in ast.walk(tree) if isinstance(n, ast.Assign | ast.AnnAssign)]
        assert not [value for value in assigned if isinstance(value, ast.Lambda)]


def test_it_neither_measures_time_nor_reads_the_clock(notebook):
    for cell in cells(notebook, "code"):
        assert not re.search(
            r"^\s*(import|from)\s+(time|timeit|datetime)\b|%time", source(cell), re.MULTILINE
        )


def test_it_was_run_from_top_to_bottom(notebook):
    code = cells(notebook, "code")
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))


def test_its_outputs_are_clean_and_the_same_everywhere(notebook):
    assert [o for o in outputs(notebook) if o["output_type"] == "error" or o.get("name") == "stderr"] == []
    shown = [
        o | {"data": {k: v for k, v in o.get("data", {}).items() if not k.startswith("image/")}}
        for o in outputs(notebook)
    ]
    for text in [*map(json.dumps, shown), *map(source, notebook.content["cells"])]:
        assert VOLATILE.search(text) is None


def test_it_shows_a_figure_and_stays_small(notebook):
    assert any("image/png" in output.get("data", {}) for output in outputs(notebook))
    assert len(notebook.raw) < 1_000_000


def test_it_is_stored_in_the_normal_form(notebook):
    assert notebook.raw == normal_form(notebook.content)


def test_no_escape_has_eaten_a_letter(notebook):
    text = "".join(map(source, notebook.content["cells"]))
    assert re.search(r"[\x00-\x08\x0b-\x1f]", text) is None, "backslash f of a formula read as a form feed"


def test_numbers_are_unique():
    numbers = [path.stem.partition("_")[0] for path in NOTEBOOKS]
    assert len(set(numbers)) == len(numbers) > 0


def test_every_figure_belongs_to_a_notebook():
    """Figures begin with the number of the notebook that draws them."""
    numbers = {path.stem.partition("_")[0] for path in NOTEBOOKS}
    names = [path.name for path in (ROOT / "figures").iterdir() if path.suffix in (".svg", ".pdf", ".png")]
    assert [name for name in names if name.partition("-")[0] not in numbers] == []


def run(source: str, name: str, namespace: dict) -> None:
    """What a kernel does with a cell: execute it, and show the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
        getattr(value, "_repr_html_", value.__repr__)()


def test_it_runs_in_quick_mode(notebook, tmp_path, monkeypatch, capsys):
    """In this process, which holds what other tests have compiled; the runner has tests of its own."""
    monkeypatch.chdir(notebook.path.parent)
    monkeypatch.setenv("RELPARALLEL_FIGURES", str(tmp_path))
    monkeypatch.setattr(Figure, "savefig", lambda fig, path, **options: path.write_text(options["format"]))
    namespace = {"__name__": "__main__", "display": lambda *values: [str(value) for value in values]}
    with mpl.rc_context(), pd.option_context("display.max_rows", 60, "display.max_colwidth", 50):
        for count, cell in enumerate(cells(notebook, "code"), 1):
            run(source(cell), f"{notebook.name}, code cell {count}", namespace)
            namespace["quick"] = True
            plt.close("all")
    assert capsys.readouterr().err == ""
    assert {path.suffix for path in tmp_path.iterdir()} == {".svg", ".pdf"}
