"""Literature survey: every source is in the bibliography, and every citation of a notebook too."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from relparallel.published import data_folder

TABLE = pd.read_csv(data_folder() / "literature.csv", index_col="key", keep_default_na=False)
BIB = (data_folder() / "references.bib").read_text("utf-8")
FIELDS = re.compile(r"(\w+) = \{(.*?)\}(?=, \w+ = \{|$)")
ENTRIES = {
    key: dict(FIELDS.findall(entry))
    for key, entry in re.findall(r"^@\w+\{(\w+), (.*)\}$", BIB, re.M)
}
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
OWN = {
    "Pipeline ordering on NVLink/PCIe",
    "Joint reliability optimisation",
    "Literature survey table",
}
ANSWERS = {"-", "no", "given", "reacts", "tolerates", "expects"}
WEIGHED = {
    "failure rates",
    "recovery time",
    "repair times",
    "spares",
    "copies",
    "checkpoints",
    "network parts",
    "slow parts",
}
OUTLINE = """vaswani2017attention devlin2018bert brown2020language liu2021swin raffel2020exploring
    valiant1990bridging li2020pytorch shazeer2018mesh shoeybi2019megatron huang2019gpipe
    narayanan2019pipedream rajbhandari2020zero wang2023reliable shi2023tap hewett2020linear
    kosson2021pipelined narayanan2021efficient fan2021dapple tarnawski2020efficient zhan2019pipe"""
KNOWN_AS = {
    "T5": "raffel2020exploring",
    "GPT-3": "brown2020language",
    "InstructGPT": "ouyang2022instruct",
    "MT-NLG": "smith2022mtnlg",
    "nccl-tests": "nvidia2026nccl",
    "Tofu": "wang2019tofu",
    "LARS": "you2017lars",
    "LAMB": "you2020lamb",
    "REFT": "wang2023reliable",
    "BLOOM chronicles": "lescao2022bloom",
    "chronicles-prequel": "lescao2022bloom",
    "OPT-175B logbook": "zhang2022opt",
}  # names in citations that are no part of the title


def letters(title: str) -> str:
    """Letters and digits of a title alone, without accents, braces and case."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\\\W", "", title).lower())


def first_author(authors: str) -> str:
    """Last name of the first author, or the name of a group, in plain letters."""
    return re.sub(r"\\\W|[{}]", "", authors).partition(" and ")[0].partition(",")[0]


def cited(path: Path) -> list[str]:
    """Citations of a notebook, each up to its year."""
    cells = ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    listed = "\n".join(cell.partition("## References")[2].partition("\n---")[0] for cell in cells)
    return re.findall(r".*?\b(?:19|20)\d\d\b|.+", re.sub(r"\([^)]*\)", "", listed))


def test_every_entry_of_the_survey_is_in_the_bibliography_and_none_twice():
    assert TABLE.index.is_unique
    assert set(TABLE.index) == set(ENTRIES) - {"okabe2008palette"}  # the colours of the figures


def test_table_and_bibliography_give_the_same_titles():
    titles = {key: letters(entry["title"]) for key, entry in ENTRIES.items()}
    assert {key: letters(title) for key, title in TABLE["title"].items()} == {
        key: title for key, title in titles.items() if key in TABLE.index
    }
    assert len(set(titles.values())) == len(titles)


def test_works_of_the_outline_keep_their_keys():
    assert set(OUTLINE.split()) <= set(ENTRIES)
    assert len(OUTLINE.split()) == 20


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


def test_every_row_says_what_becomes_of_the_strategy_under_failures():
    """And what a choice weighs; a choice that failures enter has the place where a work says so."""
    answers, enters = TABLE["under_failures"], {"reacts", "tolerates", "expects"}
    assert set(answers) == ANSWERS
    assert (TABLE["place"][answers.isin(enters)] != "").all()
    weighed = TABLE["weighs"].str.split("; ").explode()
    assert set(weighed) - {""} <= WEIGHED
    assert set(answers[TABLE["weighs"] != ""]) <= enters


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_front_page_counts_what_the_table_holds(name):
    text = (Path(__file__).parents[2] / name).read_text("utf-8")
    found = TABLE["under_failures"].value_counts()
    said = [found["no"], found["reacts"] + found["tolerates"], found["expects"]]
    text = re.sub(r"\]\([^)]*\)", "]", text)  # a link holds the notebook's number
    assert re.search(r"\D+".join(map(str, [sum(said), *said])), text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_every_citation_of_a_notebook_has_an_entry(path):
    """By title and year, or first author and year; a preprint also by its number."""
    text = path.read_text("utf-8")
    assert all(number in BIB for number in re.findall(r"arXiv:\d{4}\.\d{5}", text))
    for citation in cited(path):
        year = re.search(r"\b(?:19|20)\d\d$", citation)
        near = {
            key: entry
            for key, entry in ENTRIES.items()
            if year is None or abs(int(entry["year"]) - int(year[0])) <= 1
        }
        titles = re.findall(r"\*([^*]+)\*", citation)
        for title in titles:
            assert KNOWN_AS.get(title) in near or any(
                letters(title) in letters(entry["title"]) for entry in near.values()
            ), citation
        assert (
            titles
            or year is None
            or any(first_author(entry["author"]) in citation for entry in near.values())
        ), citation
