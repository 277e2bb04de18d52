"""The draft of the paper: chosen figures, tables and texts exist, and LaTeX is made of them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import draft
import pytest
from captions import captions
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]


def test_it_is_a_paper_and_no_album():
    sections = [part["section"] for part in draft.CHOICE["parts"] if "section" in part]
    assert sections == [
        "Introduction",
        "Related work",
        "Model",
        "Methods",
        "Results",
        "Discussion",
        "Limitations",
    ], "data/paper.yml: these sections, in this order"
    names = draft.chosen()
    assert len(names) == len(set(names)) == 12, "data/paper.yml: twelve figures, each once"
    tables = sum("table" in part for part in draft.CHOICE["parts"])
    assert tables == 5, f"data/paper.yml: five tables, not {tables}"


def test_every_piece_is_found_and_nothing_of_a_notebook_is_left():
    text = draft.cited("\n\n".join(draft.pieces()))
    assert re.findall(r"\]\(\d\d_|结论|图：|<details>|\*\*Finding|`relparallel", text) == [], (
        "docs/paper/draft.py leaves this of a notebook in the paper: take it out there"
    )
    referred = re.findall(r"\{numref\}`([\w-]+)`", text)
    named = re.findall(r"^:name: ([\w-]+)$", text, re.M)
    assert sorted(referred) == sorted(name for name in named if name.startswith("figure-")), (
        "docs/paper/draft.py refers to every figure once: see where it writes numref"
    )
    keys = set(
        re.findall(r"^@\w+\{(\w+),", (ROOT / "data/references.bib").read_text("utf-8"), re.M)
    )
    cited = re.findall(r"\{cite\}`(\w+)`", text)
    assert len(set(cited)) > 12, "docs/paper/draft.py finds fewer citations than before"
    assert set(cited) <= keys, "add the entry to data/references.bib, or correct the key"


def test_sentences_between_the_pieces_hold_no_numbers():
    """Numbers come from cells that compute them."""
    said = [part["say"] for part in draft.CHOICE["parts"] if "say" in part]
    assert [one for one in said if re.search(r"\d", one)] == [], (
        "data/paper.yml: take the number from a text or a table of a notebook"
    )


def test_a_heading_that_is_gone_is_named():
    with pytest.raises(ValueError, match="notebook 42 has no heading 'Nothing'"):
        draft.under("42/Nothing")


def test_sentences_about_code_are_for_the_notebook_alone():
    assert draft.for_readers("One runs `f`. Two hold: A node fails.") == "Two hold: A node fails."
    assert draft.for_readers("| `a` | b |") == "| `a` | b |"


def test_a_system_is_cited_where_it_comes_first():
    said = draft.cited("Parcae and [Parcae](42_x.ipynb), by Daly, 2006; see [43](42_x.ipynb).")
    assert said == (
        "Parcae {cite}`duan2024parcae` and Parcae, by Daly {cite}`daly2006interval`; see notebook 43."
    )


def test_every_row_of_a_table_names_its_group():
    """Where a notebook's table leaves out what stands above, or rows between are left out."""
    (given,) = [
        part["table"]
        for part in draft.CHOICE["parts"]
        if part.get("table", {}).get("name") == "39-scoreboard"
    ]
    rows = draft.table(**given).splitlines()[4:-1]
    assert [row for row in rows if row.startswith("|  |")] == [], (
        "table() of docs/paper/draft.py repeats the group in every row that it keeps"
    )
    assert {row.split(" | ")[0] for row in rows} >= {"| b200", "| h100"}


def test_the_finding_of_a_figure_is_the_next_one_before_another_figure():
    kinds = {"C": "code", "M": "markdown"}
    told = "**Figure.** Lines.\n\n*图：线。*"
    texts = ["M# Title", 'Csave(fig, "42-a")', f"M{told}", "Cprint(1)"]
    texts += [
        "MWe count.\n\n**Finding.** It rises.\n\n*结论：上升。*",
        'Csave(fig, "42-b")',
        f"M{told}",
    ]
    cells = [{"cell_type": kinds[one[0]], "source": one[1:]} for one in texts]
    assert captions(cells) == {
        "42-a": ("Lines.", "线。", "It rises.", "上升。"),
        "42-b": ("Lines.", "线。", "", ""),
    }


@pytest.fixture
def checkout(tmp_path):
    """What the paper is made of; a blank page stands for a figure without a PDF here."""
    for name in ("data", "docs", "notebooks"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("reference"))
    (tmp_path / "figures").mkdir()
    for name in draft.chosen():
        drawn, here = ROOT / "figures" / f"{name}.pdf", tmp_path / "figures" / f"{name}.pdf"
        shutil.copy(drawn, here) if drawn.exists() else Figure().savefig(here)
    return tmp_path


@pytest.mark.slow
def test_it_is_written_as_latex_and_has_the_length_of_a_paper(checkout):
    """The second where TeX is there, and PDFs of the figures."""
    where = ["-b", "latex", "-c", "docs/paper", "-d", "read", ".", "tex"]
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", *where]
    fixed = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=checkout, env=fixed, capture_output=True, text=True)
    assert done.stderr == "", "make paper says so too; captions and texts come from the notebooks"
    if shutil.which("latexmk"):
        written = ["latexmk", "-pdf", "-interaction=nonstopmode", "-silent", "paper.tex"]
        subprocess.run(written, cwd=checkout / "tex", capture_output=True, check=True)
        log = (checkout / "tex" / "paper.log").read_text("latin-1")
        pages = int(re.search(r"Output written on paper.pdf \((\d+) pages", log)[1])
        blank = [name for name in draft.chosen() if not (ROOT / f"figures/{name}.pdf").exists()]
        assert blank or 12 <= pages <= 15, f"{pages} pages: choose less or more in data/paper.yml"
        assert "undefined" not in log, "a label or a citation is missing: see tex/paper.log"
