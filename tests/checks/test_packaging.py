"""What a package index and users' tools read: one version, one address, links lead somewhere."""

import importlib.util
import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

import relparallel

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
README = (ROOT / "README.md").read_text("utf-8")
LINK = r"!?\[[^]]*\]\(([^)]*)\)"


def portable(text: str, source: str = "") -> str:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.portable(text, source)


def test_the_version_stands_in_one_place():
    one, version = {"path": "relparallel/__init__.py"}, relparallel.__version__
    assert "version" in PROJECT["dynamic"], 'pyproject.toml: dynamic = ["version", ...], no version'
    assert PYPROJECT["tool"]["hatch"]["version"] == one, "pyproject.toml: [tool.hatch.version]"
    assert CITATION["version"] == version, f"CITATION.cff: write version: {version}"
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## {version} " in changes, f"CHANGELOG.md: add a section ## {version} (date)"


def test_authors_licence_and_address_are_those_of_the_citation():
    both = "write the same into pyproject.toml and CITATION.cff"
    authors = [[one["name"] for one in where["authors"]] for where in (PROJECT, CITATION)]
    assert authors[0] == authors[1], f"authors: {both}"
    assert PROJECT["license"] == CITATION["license"], f"license: {both}"
    address = PROJECT.get("urls", {}).get("Source")
    assert address == CITATION.get("repository-code"), f"urls.Source, repository-code: {both}"


def test_links_of_the_readme_lead_to_the_address_of_the_project():
    moved = re.findall(LINK, portable(README, "https://host.example/a/b/"))
    assert len(moved) == len(re.findall(LINK, README)) > 25, "portable() of hatch_build.py"
    files = [re.sub(r"https://host\.example/a/b/(blob|raw)/HEAD/", "", link) for link in moved]
    assert files == re.findall(LINK, README), "portable() of hatch_build.py moves every link"
    assert (
        portable("![a](figures/a.svg) [b](https://c.example)", "https://host.example/a")
        == "![a](https://host.example/a/raw/HEAD/figures/a.svg) [b](https://c.example)"
    )


def test_without_an_address_words_stand_where_links_would_lead_nowhere():
    assert re.findall(LINK, portable(README)) == [], "portable() of hatch_build.py drops every link"
    assert portable("see [the *law*](LICENSE), [x](#y)") == "see the *law*, [x](#y)"


def test_hooks_use_the_locked_tools():
    lines = (ROOT / "requirements-dev.lock").read_text("utf-8").splitlines()
    locked = {
        r.name: str(r.specifier) for r in map(Requirement, (one for one in lines if one[0] != "#"))
    }
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    revisions = {hook["id"]: one["rev"] for one in hooks for hook in one["hooks"]}
    for hook, tool in (("ruff-check", "ruff"), ("ruff-format", "ruff"), ("mypy", "mypy")):
        assert f"=={revisions[hook].removeprefix('v')}" == locked[tool], (
            f".pre-commit-config.yaml: rev of {hook} must be that of requirements-dev.lock, {locked[tool]}"
        )


def test_machines_run_the_oldest_python_that_is_promised():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    job = workflow["jobs"]["test"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    told = f"pyproject.toml promises Python {oldest}"
    pythons = job["strategy"]["matrix"]["python"]
    assert oldest in pythons, f"{told}: add it to the matrix of .github/workflows/ci.yml"
    classifier = f"Programming Language :: Python :: {oldest}"
    assert classifier in PROJECT["classifiers"], f"{told}: add the classifier {classifier}"
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == ["make check", "make test"], ".github/workflows/ci.yml runs these two alone"
