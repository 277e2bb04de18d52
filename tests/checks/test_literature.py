"""Literature survey: every source is in the bibliography, and every citation of a notebook too."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from relparallel.published import data_folder
from relparallel.topology.description import rules

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
    assert TABLE.index.is_unique, "data/literature.csv has a key twice"
    entries = set(ENTRIES) - {"okabe2008palette"}  # the colours of the figures
    alone = set(TABLE.index) ^ entries
    assert not alone, (
        f"{', '.join(sorted(alone))} needs both a row in data/literature.csv and an entry of one line "
        "in data/references.bib"
    )


def test_table_and_bibliography_give_the_same_titles():
    titles = {key: letters(entry["title"]) for key, entry in ENTRIES.items()}
    differ = [key for key, title in TABLE["title"].items() if letters(title) != titles.get(key)]
    assert differ == [], "write one title into data/literature.csv and data/references.bib"
    twice = [key for key, title in titles.items() if list(titles.values()).count(title) > 1]
    assert twice == [], "data/references.bib has one work under two keys: keep one"


def test_works_of_the_outline_keep_their_keys():
    assert set(OUTLINE.split()) - set(ENTRIES) == set(), (
        "give these works their old keys again in data/references.bib"
    )
    assert len(OUTLINE.split()) == 20


def test_every_system_has_a_source_in_the_survey():
    systems = set(pd.read_csv(data_folder() / "systems.csv")["system"])
    named = {name.strip() for cell in TABLE["systems"] for name in cell.split(";")} - {""}
    assert named - systems == set(), (
        "column systems of data/literature.csv: write a name of data/systems.csv, or add its row there"
    )
    without = systems - named - OWN  # the collection's own questions
    assert without == set(), "name it in the column systems of its work in data/literature.csv"


def test_every_row_says_what_is_optimised_how_and_with_what_model():
    for name in ("formal_model", "reliability", "code"):
        odd = list(TABLE.index[~TABLE[name].isin(["yes", "no"])])
        assert odd == [], f"data/literature.csv: {name} is yes or no"
    for name in ("optimises", "method", "english", "chinese"):
        empty = list(TABLE.index[TABLE[name].str.len() <= 2])
        assert empty == [], f"data/literature.csv: fill in {name}"
    for name, end in (("english", "."), ("chinese", "。")):
        open_ = list(TABLE.index[~TABLE[name].str.endswith(end)])
        assert open_ == [], f"data/literature.csv: {name} is a sentence that ends in {end}"


def test_every_row_says_what_becomes_of_the_strategy_under_failures():
    """And what a choice weighs; a choice that failures enter has the place where a work says so."""
    answers, enters = TABLE["under_failures"], {"reacts", "tolerates", "expects"}
    assert set(answers) == ANSWERS, (
        f"data/literature.csv: under_failures is one of {sorted(ANSWERS)}"
    )
    nowhere = list(TABLE.index[answers.isin(enters) & (TABLE["place"] == "")])
    assert nowhere == [], "data/literature.csv: say in place where the work answers failures"
    weighed = TABLE["weighs"].str.split("; ").explode()
    assert set(weighed) - {""} - WEIGHED == set(), (
        f"data/literature.csv: weighs is of {sorted(WEIGHED)}"
    )
    idle = list(TABLE.index[(TABLE["weighs"] != "") & ~answers.isin(enters)])
    assert idle == [], "data/literature.csv: what weighs failures reacts, tolerates or expects them"


def test_the_planners_chapter_says_how_many_name_repair_times():
    (path,) = (path for path in NOTEBOOKS if path.stem.startswith("35"))
    named = int(TABLE["weighs"].str.contains("repair times").sum())
    said = {0: "None names repair times", 1: "One names repair times"}.get(named, "?")
    assert said in path.read_text("utf-8"), (
        f"notebook 35, title of the figure and Answer: {named} works name repair times"
    )


def test_the_paper_of_every_network_is_in_the_bibliography():
    papers = {name: rule.paper for name, rule in rules().items() if rule.paper}
    assert {name: key for name, key in papers.items() if key not in ENTRIES} == {}, (
        "add the paper of its @design to data/references.bib and data/literature.csv"
    )


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_front_page_counts_what_the_table_holds(name):
    text = (Path(__file__).parents[2] / name).read_text("utf-8")
    found = TABLE["under_failures"].value_counts()
    said = [found["no"], found["reacts"] + found["tolerates"], found["expects"]]
    text = re.sub(r"\]\([^)]*\)", "]", text)  # a link holds the notebook's number
    assert re.search(r"\D+".join(map(str, [sum(said), *said])), text), (
        f"{name}: of {sum(said)} works {said[0]} leave failures out, {said[1]} react, {said[2]} expect"
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_every_citation_of_a_notebook_has_an_entry(path):
    """By title and year, or first author and year; a preprint also by its number."""
    text = path.read_text("utf-8")
    numbers = set(re.findall(r"arXiv:\d{4}\.\d{5}", text))
    assert [number for number in numbers if number not in BIB] == [], (
        "add the work to data/references.bib and data/literature.csv"
    )
    for citation in cited(path):
        remedy = (
            f"{path.stem} cites {citation.strip()!r}: correct title and year, or add the work to "
            "data/references.bib and data/literature.csv"
        )
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
            ), remedy
        assert (
            titles
            or year is None
            or any(first_author(entry["author"]) in citation for entry in near.values())
        ), remedy
