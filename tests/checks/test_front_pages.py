"""The first pages a reader meets, README and help: links lead somewhere, both languages agree."""

import re
from inspect import isfunction
from pathlib import Path

import pytest

import relparallel

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "README.zh.md")
NETWORKS = "notebooks/22_network_designs.ipynb"
PAGES = (*READMES, "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md")


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_to_a_file(name):
    page = ROOT / name
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), (
            f"{name} links {target}, which is no file: correct it"
        )


def test_what_contributors_are_led_to_exists():
    """Files and folders by their paths, targets of make by their names."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    paths = {
        path
        for path in re.findall(r"`([\w./*-]+)`", text)
        if "/" in path or re.search(r"\.\w+$", path)
    }
    assert len(paths) >= 8, "CONTRIBUTING.md names files in backticks"
    for path in paths:
        assert [
            *ROOT.glob(path),
            *(ROOT / "relparallel").rglob(path),
            *(ROOT / "notebooks").rglob(path),
        ], f"CONTRIBUTING.md names {path}, which does not exist: correct it"
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.M)[1].split()
    unknown = set(re.findall(r"(?:^|`)make ([\w-]+)", text, re.M)) - set(targets)
    assert not unknown, f"CONTRIBUTING.md: the Makefile has no target {', '.join(unknown)}"


def test_every_table_of_data_has_its_terms():
    terms = (ROOT / "data" / "README.md").read_text("utf-8")
    for path in (ROOT / "data").iterdir():
        named = f"`{path.name}{'/' * path.is_dir()}`"
        assert path.name == "README.md" or named in terms, (
            f"data/README.md: add a row with the sources and the terms of {named}"
        )


def test_both_languages_say_the_same_numbers():
    numbers = [re.findall(r"\d[\d.e-]*\d", (ROOT / name).read_text("utf-8")) for name in READMES]
    differ = sorted(set(numbers[0]) ^ set(numbers[1]))
    assert not differ, f"one README alone has {', '.join(differ)}: write it into the other too"


@pytest.mark.parametrize("name", [*READMES, "CONTRIBUTING.md", NETWORKS])
def test_pages_that_count_the_networks_count_those_that_there_are(name):
    said = set(
        re.findall(
            r"(?<![\[\d])(\d+)(?: network)? designs\b|(\d+) 种", (ROOT / name).read_text("utf-8")
        )
    )
    there = len(relparallel.topology.names())
    assert {int(one or other) for one, other in said} == {there}, (
        f"{name}: write {there} where it counts the network designs"
    )


@pytest.mark.parametrize("package", [relparallel.reliability, relparallel.optimize])
def test_the_first_page_of_help_leads_to_every_function(package):
    named = set(re.findall(r"`(\w+)`", package.__doc__))
    gone = named - {"formulation"} - set(package.__all__)
    file = package.__name__.replace(".", "/") + "/__init__.py"
    assert not gone, f"{file}: the docstring names what is not offered: {', '.join(gone)}"
    missing = {n for n in package.__all__ if isfunction(getattr(package, n))} - named
    assert not missing, f"{file}: say in the docstring when to take {', '.join(missing)}"


OFFERED = map(relparallel.__getattr__, relparallel.__all__)
PACKAGES = [package for package in OFFERED if hasattr(package, "__path__")]
NO_QUESTIONS = {"claims", "derive", "rehearsal", "reproduce"}  # asked for by the command line


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_help_of_every_package_begins_with_where_to_begin(package):
    if package.__name__.rpartition(".")[2] not in NO_QUESTIONS:
        file = package.__name__.replace(".", "/") + "/__init__.py"
        assert re.match(r".+?\n\nWhere to begin, by ", package.__doc__), (
            f"{file}: after its first sentence the docstring goes on 'Where to begin, by ...'"
        )
        named = set(re.findall(r"(?<!`)`(\w+)`(?!`)", package.__doc__)) - {"formulation"}
        gone = named - set(package.__all__)
        assert not gone, f"{file}: the docstring names what is not offered: {', '.join(gone)}"
