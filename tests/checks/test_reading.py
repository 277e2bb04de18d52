"""Every notebook opens with a situation, answers in few words, and says what its figures show."""

import re
import statistics
from pathlib import Path

import pytest
from captions import PICTURE, captions, saved, text

from reproduce.notebook import read

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TRANSLATED = re.compile(r"^(?:\*\*中文|\*图：|\*结论：).*$", re.M)
NAMED = re.compile(r"Llama 3|GPT-\d")
MOST_WORDS, MOST_NUMBERS, MOST_COLUMNS, MOST_MINUTES = 60, 4, 100, 26
MOST_TABLES, MEDIAN_LINES, MINUTES_OF_THE_STORY = 5, 8, 21
CORE = re.findall(
    r"^/notebooks/(\w+)$",
    (ROOT / "docs/contents.md").read_text("utf-8").partition("```\n")[0],
    re.M,
)
"""Notebooks of the core path, in its order; the first is the map."""


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return read(request.param).content["cells"]


def of_kind(cells, kind: str) -> list:
    return [cell for cell in cells if cell["cell_type"] == kind]


def paragraph(cells, name: str) -> str:
    return re.search(rf"^\*\*{name}\.\*\* (.+)$", text(cells[0]), re.M)[1]


def minutes(cells) -> float:
    """Of a careful reader: 170 words a minute, 40 s a figure or table, 45 s a formula."""
    prose = "\n\n".join(map(text, of_kind(cells, "markdown"))).partition("\n## References")[0]
    prose = TRANSLATED.sub("", re.sub(r"<details>.*?</details>", "", prose, flags=re.S))
    formulas = len(re.findall(r"\$\$.*?\$\$", prose, re.S))
    words = len(re.sub(r"\$\$.*?\$\$|^\|[^\n]*$", "", prose, flags=re.S | re.M).split())
    shown = bool(PICTURE.search(text(cells[0]))) + len(re.findall(r"^\|[-: |]+\|$", prose, re.M))
    shown += sum(
        bool({"image/png", "text/html"} & set(output.get("data", ())))
        for cell in of_kind(cells, "code")
        for output in cell["outputs"]
        if "hide-output" not in cell["metadata"].get("tags", ())
    )
    return words / 170 + (40 * shown + 45 * formulas) / 60


def test_it_opens_with_a_situation(notebook):
    """What somebody stands before, in words that need no other notebook."""
    opening = text(notebook[0]).partition("\n")[2].partition("**Question.**")[0]
    opening = re.sub(r"^\*(Core|Side).*\*$", "", opening, flags=re.M).strip()
    assert 12 <= len(opening.split()) <= 70, f"{len(opening.split())} words before **Question.**"
    assert "**" not in opening, "open with plain sentences, and then **Question.**"


def test_the_answer_is_short(notebook):
    answer = paragraph(notebook, "Answer")
    numbers = re.findall(r"(?<![\w-])\d[\d.,]*(?!\w)", NAMED.sub("", answer))
    assert len(answer.split()) <= MOST_WORDS, f"shorten the Answer: {len(answer.split())} words"
    assert len(numbers) <= MOST_NUMBERS, f"leave numbers of the Answer to the text: {numbers}"


def test_the_minutes_it_promises_are_those_it_takes(notebook):
    promised = int(re.search(r"\*\*Time\*\* about (\d+) minutes", text(notebook[0]))[1])
    takes = minutes(notebook)
    assert 0.9 <= promised / takes <= 1.1, (
        f"write **Time** about {takes:.0f} minutes into the first cell, not {promised}"
    )
    assert takes <= MOST_MINUTES, f"shorten it: {takes:.1f} minutes"


def test_every_figure_has_one_caption_that_says_what_it_shows(notebook):
    drawn = [name for cell in notebook for name in saved(cell)]
    found = captions(notebook)
    prose = "\n\n".join(map(text, of_kind(notebook, "markdown")))
    findings = re.findall(r"^\*\*Finding\.\*\* (.+)$", prose, re.M)
    assert sorted(found) == sorted(drawn), (
        "write **Figure.** and *图：...* below the cell that saves each figure, or into the first cell"
    )
    for english, chinese, *_ in found.values():
        assert re.match(r"[A-Z0-9$].*\.$", english, re.S), f"a caption is a sentence: {english}"
        assert 8 <= len(english.split()) <= 70, f"{len(english.split())} words in {english}"
        assert re.search(r"[\u4e00-\u9fff]", chinese), f"translate below it, *图：...*: {english}"
        sentences = [one for one in re.split(r"(?<=\.) ", english) if len(one.split()) > 5]
        assert [one for one in sentences for finding in findings if one in finding] == [], (
            "say it in the caption or in the **Finding.**, not in both"
        )


def test_the_first_figure_is_shown_once(notebook):
    hero = PICTURE.search(text(notebook[0]))
    assert hero, "a figure with a caption in both languages"
    for cell in notebook:
        if hero["name"] in saved(cell):
            assert re.search(rf'"{hero["name"]}", show=False\)', text(cell)), (
                f'the first cell shows it already: save(fig, "{hero["name"]}", show=False)'
            )


def test_every_finding_is_told_in_chinese(notebook):
    for cell in of_kind(notebook, "markdown"):
        if text(cell) != text(notebook[0]):
            paragraphs = text(cell).split("\n\n")
            for one, after in zip(paragraphs, [*paragraphs[1:], ""], strict=True):
                if one.startswith("**Finding.**"):
                    assert after.startswith("*结论："), f"add *结论：...* below {one[:60]!r}"


def test_code_fits_the_width_of_a_page(notebook):
    for cell in of_kind(notebook, "code"):
        assert [line for line in text(cell).split("\n") if len(line) > MOST_COLUMNS] == [], (
            "break the line: .venv/bin/ruff format notebooks"
        )


def test_it_says_whether_it_is_part_of_the_story(notebook, request):
    """Before and behind it on the core path; or that it is a side chapter."""
    name = request.node.callspec.id
    line = re.search(r"^\*(Core path.*|Side chapter.*)\*$", text(notebook[0]), re.M)
    if name == CORE[0]:
        assert line is None
        return
    assert line, "the line below the title says where the notebook stands: see another one"
    if name not in CORE:
        assert line[1].startswith("Side chapter")
        return
    place = CORE.index(name)
    links = re.findall(r"\((\w+)\.ipynb\)", line[1])
    assert links == [*CORE[place - 1 : place], *CORE[place + 1 : place + 2]]
    assert line[1].startswith(f"Core path, {place} of {len(CORE) - 1}")


def test_the_story_is_the_same_on_the_front_pages():
    for name, head in (("README.md", "core path"), ("README.zh.md", "主线")):
        table = re.search(rf"^\| {head} \|.*?\n\n", (ROOT / name).read_text("utf-8"), re.M | re.S)
        assert re.findall(r"\(notebooks/(\w+)\.ipynb\)", table[0]) == CORE[1:]


def folded(cell, what: str) -> bool:
    return f"hide-{what}" in cell["metadata"].get("tags", ())


def test_it_shows_few_tables(notebook):
    shown = sum(
        "<table" in text({"source": output["data"].get("text/html", "")})
        for cell in of_kind(notebook, "code")
        for output in cell["outputs"]
        if "data" in output and not folded(cell, "output")
    )
    assert shown <= MOST_TABLES, f"{shown} tables: fold with the tag hide-output, or drop some"


def test_its_code_is_read_at_a_glance(notebook):
    lengths = [
        text(cell).count("\n") + 1
        for cell in of_kind(notebook, "code")
        if not folded(cell, "input")
    ]
    assert statistics.median(lengths) <= MEDIAN_LINES, (
        "cells that show the model are short; fold what dresses it with the tag hide-input"
    )


def test_what_is_folded_on_the_pages_is_folded_in_the_laboratory(notebook):
    for cell in of_kind(notebook, "code"):
        hidden = cell["metadata"].get("jupyter", {})
        for what, key in (("input", "source_hidden"), ("output", "outputs_hidden")):
            assert folded(cell, what) == hidden.get(key, False), f"{key} goes with hide-{what}"
