"""The paper's skeleton: every file, source and table that it names exists; LaTeX can read it."""

import csv
import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from relparallel._latex import latex, latex_table
from relparallel.plotting import save
from relparallel.reproduce.notebook import joined, read
from relparallel.reproduce.paper import SECTIONS, paper

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "figures"
NOTEBOOKS = [read(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
with (ROOT / "data" / "literature.csv").open(encoding="utf-8") as file:
    SOURCES = list(csv.DictReader(file))
SAVED = {path.stem for path in (FIGURES / "tables").glob("*.tex")}
FILES = paper(NOTEBOOKS, SOURCES, SAVED)
PAPER = FILES["paper.tex"]
TABLES = sorted(
    name.removeprefix("tables/").removesuffix(".tex") for name in FILES if name != "paper.tex"
)


def test_what_is_committed_is_what_the_notebooks_give():
    """``make figures`` writes both anew whenever a notebook has changed."""
    assert {name: (FIGURES / name).read_text("utf-8") for name in FILES} == FILES
    assert paper(NOTEBOOKS, SOURCES, SAVED) == FILES


def test_every_figure_and_table_exists_and_each_is_shown_once():
    """By their SVGs: PDFs lie beside them only where notebooks were run."""
    drawn = re.findall(r"\\includegraphics\{([^}]*)\.pdf\}", PAPER)
    kept = {path.stem for path in FIGURES.glob("*.svg") if path.name[0] in "01234"}
    assert sorted(drawn) == sorted(kept)
    assert sorted(re.findall(r"\\input\{tables/([^}]*)\}", PAPER)) == sorted(
        name for name in SAVED if name[0] in "01234"
    )
    assert not {name for name in SAVED if (FIGURES / f"{name}.svg").exists()}


def test_no_table_is_left_of_a_cell_that_no_longer_shows_it():
    cells = [joined(cell["source"]) for one in NOTEBOOKS for cell in one.content["cells"]]
    assert len(TABLES) >= 8
    assert {
        name for name in SAVED - set(TABLES) if not any(f'"{name}"' in text for text in cells)
    } == set()


def test_every_source_is_in_the_bibliography_and_every_section_has_its_notebooks():
    entries = set(
        re.findall(r"^@\w+\{(\w+),", (ROOT / "data" / "references.bib").read_text("utf-8"), re.M)
    )
    cited = re.findall(r"\\cite\{([^}]*)\}", PAPER)
    assert set(cited) <= entries
    assert len(cited) == len(set(cited)) > 150
    assert re.findall(r"\\section\{([^}]*)\}", PAPER)[:4] == list(SECTIONS.values())
    numbers = [one.name[:2] for one in NOTEBOOKS if "11" <= one.name[:2] <= "50"]
    assert re.findall(r"\\label\{sec:(\d\d)\}", PAPER) == numbers


@pytest.mark.parametrize("name", FILES)
def test_braces_environments_and_formulas_are_closed_and_all_letters_known(name):
    text = re.sub(r"\\[\\{}$%&#_]", "", FILES[name])
    depth = 0
    for mark in re.findall(r"[{}]", text):
        depth += 1 if mark == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert text.count("$") % 2 == 0
    assert sorted(re.findall(r"\\begin\{(\w+)", text)) == sorted(re.findall(r"\\end\{(\w+)", text))
    assert sorted(set(re.findall(r"[^\x00-\x7f]", text))) == []


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_cells_that_the_notebook_shows(name):
    """As many ampersands in every line, and a line for every row."""
    lines = [line for line in FILES[f"tables/{name}.tex"].splitlines() if line.endswith(r" \\")]
    assert len({len(re.findall(r"(?<!\\)&", line)) for line in lines}) == 1
    assert len(lines) >= 3


def test_text_becomes_latex():
    assert latex("**50 %** of `a_b` at $x_1 < 2$, [here](there.md)") == (
        r"\textbf{50 \%} of \texttt{a\_b} at $x_1 < 2$, here"
    )
    assert latex("1 × 10⁻³") == r"1 \(\times\) 10\(^-\)\(^3\)"


def test_a_table_keeps_merged_cells_apart(tmp_path, monkeypatch):
    frame = pd.DataFrame(
        {"x": [1, 2, 3]}, index=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b & c", 1)])
    )
    lines = latex_table(frame.to_html()).splitlines()
    assert lines[5:8] == [r"a & 1 & 1 \\", r" & 2 & 2 \\", r"b \& c & 1 & 3 \\"]
    monkeypatch.setenv("RELPARALLEL_FIGURES", str(tmp_path))
    save(frame, "99-own")
    assert (tmp_path / "tables" / "99-own.tex").read_text().splitlines() == lines


@pytest.fixture
def checkout(tmp_path):
    """What ``make paper`` reads; a blank page stands for every figure."""
    shutil.copytree(FIGURES / "tables", tmp_path / "figures" / "tables")
    (tmp_path / "data").mkdir()
    for path in (ROOT / "Makefile", ROOT / "data" / "references.bib"):
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    for name, text in FILES.items():
        (tmp_path / "figures" / name).write_text(text, encoding="utf-8")
    blank = tmp_path / "blank.pdf"
    Figure().savefig(blank)
    for name in re.findall(r"\\includegraphics\{([^}]*)\}", PAPER):
        shutil.copy(blank, tmp_path / "figures" / name)
    return tmp_path


def make_paper(folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["make", "--old-file=figures", "paper"]
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=quiet)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_it_compiles(checkout):
    assert make_paper(checkout).returncode == 0
    assert "undefined" not in (checkout / "build" / "paper.log").read_text("latin-1")
    assert (checkout / "build" / "paper.pdf").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_its_parts_are_made_in_their_order_and_a_failure_is_told(checkout, monkeypatch):
    """With programs that only say that they were called, where, and with what."""
    for name in ("pdflatex", "bibtex"):
        (checkout / name).write_text(
            f'#!/bin/sh\necho "$(basename "$PWD") {name} $*" >> "{checkout}/called"\n'
        )
        (checkout / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{checkout}{os.pathsep}{os.environ['PATH']}")
    assert make_paper(checkout).stdout == "build/paper.pdf\n"
    latex_run = (
        "figures pdflatex -interaction=nonstopmode -halt-on-error -output-directory=../build paper"
    )
    called = (checkout / "called").read_text().splitlines()
    assert called == [latex_run, "build bibtex -terse paper", latex_run, latex_run]
    (checkout / "bibtex").write_text("#!/bin/sh\nexit 2\n")
    failed = make_paper(checkout)
    assert failed.returncode != 0
    assert "build/paper.pdf" not in failed.stdout
