"""Literature survey: every source is in the bibliography, and every citation of a notebook too."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from relparallel.published import data_folder

TABLE = pd.read_csv(data_folder() / "literature.csv", index_col="key", keep_default_na=False)
BIB = (data_folder() / "references.bib").read_text("utf-8")
ENTRIES = {
    key: (
        re.search(r"author = \{(.*?)\}, title", entry)[1],
        re.search(r"year = \{(\d{4})\}", entry)[1],
    )
    for key, entry in re.findall(r"^@\w+\{(\w+), (.*)\}$", BIB, re.M)
}
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
OWN = {
    "Pipeline ordering on NVLink/PCIe",
    "Joint reliability optimisation",
    "Literature survey table",
}


def names(authors: str) -> set[str]:
    """Last names of the authors, or the words of a group's name, in plain letters."""
    plain = re.sub(r"\\['\"`^~=.]|[{}]", "", authors)
    people = [author.partition(",") for author in plain.split(" and ")]
    return {word for last, comma, _ in people for word in ([last] if comma else last.split())} - {
        "others"
    }


def test_every_entry_of_the_survey_is_in_the_bibliography_and_none_twice():
    assert TABLE.index.is_unique
    assert set(TABLE.index) == set(ENTRIES) - {"okabe2008palette"}  # the colours of the figures


def test_every_system_has_a_source_in_the_survey():
    systems = set(pd.read_csv(data_folder() / "systems.csv")["system"])
    named = {name.strip() for cell in TABLE["systems"] for name in cell.split(";")} - {""}
    assert named <= systems
    assert systems - named == OWN  # the collection's own questions


def test_every_row_says_what_is_optimised_how_and_with_what_model():
    assert set(TABLE["formal_model"]) | set(TABLE["reliability"]) | set(TABLE["code"]) == {
        "yes",
        "no",
    }
    assert (
        TABLE[["optimises", "method", "english", "chinese"]]
        .apply(lambda column: column.str.len().min())
        .min()
        > 2
    )
    assert TABLE["english"].str.endswith(".").all()
    assert TABLE["chinese"].str.endswith("。").all()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_every_citation_of_a_notebook_has_an_entry(path):
    cells = ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    listed = "\n".join(cell.partition("## References")[2] for cell in cells)
    for line in listed.splitlines():
        for year in map(int, re.findall(r"\b(?:19|20)\d\d\b", re.sub(r"\([^)]*\)", "", line))):
            near = [names(authors) for authors, of in ENTRIES.values() if abs(int(of) - year) <= 1]
            assert any(name in line for authors in near for name in authors), (year, line)
