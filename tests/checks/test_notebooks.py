"""Every notebook has the shape its readers expect and holds what its code gives."""

import ast
import json
import re
from pathlib import Path

import pytest
from captions import saved

from reproduce.notebook import normal_form, read
from reproduce.parameters import declared, ranges

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIGURE_LINK = re.compile(r"!\[[^\]]+\]\((\.\./figures/[^)\s]+)\)")
# What differs from machine to machine or from run to run.
VOLATILE = re.compile(
    r"(?<![\w.])/(?:work|farm|root|tmp|home|Users|usr|opt)/\w|\bat 0x[0-9a-f]{6,}|[A-Z]:\\\\"
)

MOST_CELLS, MOST_CHARACTERS = 45, 1600  # what one sitting takes; of a cell
NEIGHBOUR = re.compile(r"\[(← )?[^\]]+?( →)?\]\((\d\d_\w+)\.ipynb\)")


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
    assert first["cell_type"] == "markdown", "the first cell is Markdown"
    assert title.startswith("# "), "the first cell begins with the title, '# ...'"
    assert "?" in title, "the title is a question"
    assert "中文摘要" in text, "add **中文摘要** to the first cell, below the answer"
    assert FIGURE_LINK.search(text), (
        "show its figure in the first cell, ![...](../figures/NAME.svg)"
    )


def test_every_figure_it_links_exists(notebook):
    text = "\n".join(source(cell) for cell in cells(notebook, "markdown"))
    links = re.findall(r"\]\((\.\./[^)\s#]+)", text) + re.findall(r"src=\"(\.\./[^\"]+)\"", text)
    assert [link for link in links if not (notebook.path.parent / link).resolve().exists()] == [], (
        f"correct the link, or draw the figure: make figures ARGS={notebook.path.stem[:2]}"
    )


def test_it_has_one_cell_of_literal_parameters_with_their_units(notebook):
    code = cells(notebook, "code")
    tagged = [cell for cell in code if "parameters" in cell["metadata"].get("tags", ())]
    assert tagged == code[:1], "the first code cell, and only it, is tagged"
    assert declared(notebook)["quick"] is False, "the cell of parameters says quick = False"
    for statement in ast.parse(source(code[0])).body:
        line = source(code[0]).splitlines()[statement.end_lineno - 1]
        number = any(
            type(getattr(node, "value", None)) in (int, float) for node in ast.walk(statement)
        )
        assert "#" in line or not number, f"{line} has no unit: say it in a comment"


def test_every_number_of_the_first_cell_has_its_range(notebook):
    known, limits = declared(notebook), ranges(notebook)
    numbers = {name for name, value in known.items() if type(value) in (int, float)}
    assert numbers <= {*limits}, "end the comment with the range, such as '; 0.1 to 1000'"
    for name, (low, high) in limits.items():
        assert low <= known[name] <= high, f"the range of {name} leaves its default out"


def test_code_cells_are_short(notebook):
    """What two notebooks need lives in the package; one may define a small function of its own."""
    for cell in cells(notebook, "code"):
        assert source(cell).strip(), "delete the empty cell"
        assert len(source(cell)) <= MOST_CHARACTERS, (
            f"move a part into the chapter, or into a second cell:\n{source(cell)[:300]} ..."
        )
        nodes = list(ast.walk(ast.parse(source(cell))))
        assert not [n for n in nodes if isinstance(n, ast.ClassDef)], (
            "a class belongs in the chapter"
        )
        assigned = [n.value for n in nodes if isinstance(n, ast.Assign | ast.AnnAssign)]
        assert not [value for value in assigned if isinstance(value, ast.Lambda)], "give it a def"


def test_it_neither_measures_time_nor_reads_the_clock(notebook):
    for cell in cells(notebook, "code"):
        assert not re.search(
            r"^\s*(import|from)\s+(time|timeit|datetime)\b|%time", source(cell), re.MULTILINE
        ), "measure in tests/benchmarks/, which writes data/benchmarks/, and read that here"


def test_it_was_run_from_top_to_bottom(notebook):
    code = cells(notebook, "code")
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), (
        f"run it whole: make figures ARGS='{notebook.path.stem[:2]} --force'"
    )


def test_its_outputs_are_clean_and_the_same_everywhere(notebook):
    assert [
        o for o in outputs(notebook) if o["output_type"] == "error" or o.get("name") == "stderr"
    ] == [], f"mend what fails or warns, then make figures ARGS={notebook.path.stem[:2]}"
    shown = [
        o | {"data": {k: v for k, v in o.get("data", {}).items() if not k.startswith("image/")}}
        for o in outputs(notebook)
    ]
    for text in [*map(json.dumps, shown), *map(source, notebook.content["cells"])]:
        found = VOLATILE.search(text)
        assert found is None, f"print no folder and no address of one machine: {found[0]!r}"


def test_it_stays_small(notebook):
    assert len(notebook.raw) < 1_000_000, (
        "show fewer or smaller previews: save(fig, name, show=False)"
    )


def test_every_saved_figure_is_shown_once(notebook):
    """In the first screen, in text behind it, or below its cell."""
    drawn = [name for cell in cells(notebook, "code") for name in saved(cell)]
    inline = sum("image/png" in output.get("data", ()) for output in outputs(notebook))
    told = FIGURE_LINK.findall("\n".join(source(cell) for cell in cells(notebook, "markdown")))
    assert len(set(drawn)) == len(drawn), f"give each figure a name of its own: {drawn}"
    assert len(set(told)) == len(told) > 0, f"link one figure at least, and each once: {told}"
    assert len(drawn) == inline + len(told), (
        f"{len(drawn)} figures saved, {inline} shown below cells and {len(told)} linked: end the cell "
        "with the figure, or link it and save(fig, name, show=False)"
    )


def test_it_is_read_in_one_sitting(notebook):
    assert len(notebook.content["cells"]) <= MOST_CELLS, "join cells, or begin a second notebook"


def test_it_says_what_it_leaves_out(notebook):
    text = "\n".join(source(cell) for cell in cells(notebook, "markdown"))
    assert "\n## Limitations\n" in text, "add a section ## Limitations"


def test_its_last_cell_leads_to_the_neighbours(notebook):
    """Previous, contents, next."""
    names = [path.stem for path in NOTEBOOKS]
    place = names.index(notebook.path.stem)
    _, line, last = source(notebook.content["cells"][-1]).rpartition("\n---\n")
    found = NEIGHBOUR.findall(last)
    before, after = names[max(place - 1, 0) : place], names[place + 1 : place + 2]
    assert line, "end the last cell with a line --- and the links to the neighbours"
    assert [name for back, _, name in found if back] == before, (
        f"link [← ...]({''.join(before)}.ipynb)"
    )
    assert [name for _, on, name in found if on] == after, f"link [... →]({''.join(after)}.ipynb)"
    plain = [name for back, on, name in found if not back and not on]
    assert names[0] in plain, f"link [contents]({names[0]}.ipynb)"


def test_families_of_rows_are_no_emphasis(notebook):
    """A bare star after OPT- begins emphasis: write it as code."""
    text = "\n".join(source(cell) for cell in cells(notebook, "markdown"))
    bare = re.sub(r"`[^`\n]*`|\$[^$]*\$", "", text)
    assert re.findall(r"\b[A-Z][A-Z0-9]+(?:-[A-Za-z0-9]+)*-\*(?!\*)", bare) == [], (
        "put it in backticks"
    )


def test_it_is_stored_in_the_normal_form(notebook):
    assert notebook.raw == normal_form(notebook.content), (
        f"store it as the runner does: make figures ARGS={notebook.path.stem[:2]}"
    )


def test_no_escape_has_eaten_a_letter(notebook):
    text = "".join(map(source, notebook.content["cells"]))
    assert re.search(r"[\x00-\x08\x0b-\x1f]", text) is None, (
        "backslash f of a formula was read as a form feed: write it again in the cell"
    )


def test_numbers_are_unique():
    numbers = [path.stem.partition("_")[0] for path in NOTEBOOKS]
    assert len(set(numbers)) == len(numbers) > 0, "two notebooks/ have one number: rename one"


def test_every_figure_belongs_to_a_notebook():
    """Figures begin with the number of the notebook that draws them."""
    numbers = {path.stem.partition("_")[0] for path in NOTEBOOKS}
    names = [
        path.name
        for path in (ROOT / "figures").iterdir()
        if path.suffix in (".svg", ".pdf", ".png")
    ]
    assert [name for name in names if name.partition("-")[0] not in numbers] == [], (
        "no notebook has this number: delete the figure, or save it under a number that there is"
    )
