"""The paper: its numbers are those of notebooks, its works are cited, and LaTeX is made of it."""

import json
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
from reading import ROW

from reproduce.notebook import results

ROOT = Path(__file__).parents[2]
WRITTEN = (ROOT / "docs/paper/paper.md").read_text("utf-8")
CHINESE = (ROOT / "docs/paper/paper.zh.md").read_text("utf-8")
PAGES = 12, 14
LEVELS = {"90 %", "0.1 %", "5 %"}  # of intervals; what is asked of spares; a lead as an example


def test_it_stands_alone():
    assert re.findall(r"^## (.+)$", WRITTEN, re.M) == [
        "Problem",
        "Background and related work",
        "Model",
        "When two strategies change places",
        "Method",
        "Evaluation",
        "Threats to validity",
        "Limitations and conclusion",
        "Artefact",
    ], "docs/paper/paper.md: these sections, in this order"
    text = draft.composed("paper").partition("## Artefact")[0]
    left = set(re.findall(rf"[Nn]otebook|these pages|{ROW}|结论|图：|<details>|\*\*Finding", text))
    assert left - {"GPT-3"} == set(), (
        "a reader of the paper has no notebooks: say it in words, also in captions of figures"
    )


def test_every_figure_and_table_is_referred_to():
    for kind, named in (("figure", draft.FIGURE), ("table", draft.TABLE)):
        names = [f"{kind}-{name}" for name in named.findall(WRITTEN)]
        assert len(names) == len(set(names))
        missing = [name for name in names if f"{{numref}}`{name}`" not in WRITTEN]
        assert missing == [], "docs/paper/paper.md: refer to it where it is discussed"


def test_works_and_sources_of_data_are_cited():
    bibliography = (ROOT / "data/references.bib").read_text("utf-8")
    keys = set(re.findall(r"^@\w+\{(\w+),", bibliography, re.M))
    cited = {key for keys in re.findall(r"\{cite\}`([\w,]+)`", WRITTEN) for key in keys.split(",")}
    assert cited <= keys, "add the entry to data/references.bib, or correct the key"
    assert len(cited) >= 45, f"{len(cited)} works"
    sources = """bang2024vtrain daly2006interval korthikanti2022activation lanl2005failures lescao2022bloom
        liang2024torchtitan llama2024herd mattson2020mlperf moody2010scr mosaic2023foundry
        narayanan2021efficient nvidia2026bridge qian2024hpn shou2025infinitehbd simumax2026
        torchft2025 wan2025byterobust wang2023gemini wang2023reliable zeng2023glm zhang2022opt"""
    assert set(sources.split()) - cited == set(), "the paper uses data of these"


@pytest.mark.parametrize("written", [WRITTEN, CHINESE], ids=["paper", "paper.zh"])
def test_results_come_from_cells(written):
    """Measures in per cent or with decimals, but for those of a cited work and for levels."""
    assert not re.search(r"^%", written, re.M), "a line that begins with % is a comment of MyST"
    body = re.sub(
        r"```\{(?:table\} Works|raw\}).*?```|\$\$.*?\$\$|\$[^$]+\$", "", written, flags=re.S
    )
    typed = [
        number.strip()
        for sentence in re.split(r"(?<=[.:;，。；])\s|(?<=[，。；])|\n\n", body)
        if "{cite}" not in sentence
        for number in re.findall(
            r"(?<![\w.])\d+\.\d+ ?%?|(?<![\w.])\d+ %", draft.VALUE.sub("", sentence)
        )
        if number.strip() not in LEVELS
    ]
    inputs = {"1.03", "1.10", "0.5", "0.8", "1.25", "3.11"}  # of the pairs; Python
    assert set(typed) - inputs == set(), "print it in a cell with the tag result"


def test_a_changed_output_changes_the_paper(monkeypatch):
    stored, real = draft.cells("43"), draft.cells
    line = f"kept_4 = {results(stored)['kept_4']}"
    changed = json.loads(json.dumps(stored).replace(line, "kept_4 = 12.345"))
    assert "keeps 12.345" not in draft.composed("paper")
    monkeypatch.setattr(draft, "cells", lambda number: changed if number == "43" else real(number))
    assert "keeps 12.345" in draft.composed("paper")


def test_a_value_that_no_cell_prints_is_named():
    with pytest.raises(ValueError, match="tag result of notebook 43 prints nothing_of_this"):
        draft.filled("{43.nothing_of_this}")


def test_every_row_of_a_table_names_its_group():
    """Where a notebook's table leaves out what stands above, or rows between are left out."""
    rows = draft.table("39-scoreboard", **draft.CHOICE["tables"]["39-scoreboard"]).splitlines()[
        4:-1
    ]
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
    assert done.stderr == "", "make paper says so too; captions and tables come from the notebooks"
    assert "图" in (checkout / "tex" / "paper-zh.tex").read_text("utf-8")
    if shutil.which("latexmk"):
        written = ["latexmk", "-pdf", "-interaction=nonstopmode", "-silent", "paper.tex"]
        subprocess.run(written, cwd=checkout / "tex", capture_output=True, check=True)
        log = (checkout / "tex" / "paper.log").read_text("latin-1")
        pages = int(re.search(r"Output written on paper.pdf \((\d+) pages", log)[1])
        blank = [name for name in draft.chosen() if not (ROOT / f"figures/{name}.pdf").exists()]
        assert blank or PAGES[0] <= pages <= PAGES[1], f"{pages} pages: say less or more"
        assert "undefined" not in log, "a label or a citation is missing: see tex/paper.log"
