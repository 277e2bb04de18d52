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
    assert "version" in PROJECT["dynamic"]
    assert PYPROJECT["tool"]["hatch"]["version"] == {"path": "relparallel/__init__.py"}
    assert CITATION["version"] == relparallel.__version__
    assert f"## {relparallel.__version__} " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_authors_licence_and_address_are_those_of_the_citation():
    assert [one["name"] for one in PROJECT["authors"]] == [
        one["name"] for one in CITATION["authors"]
    ]
    assert PROJECT["license"] == CITATION["license"]
    assert PROJECT.get("urls", {}).get("Source") == CITATION.get("repository-code")


def test_links_of_the_readme_lead_to_the_address_of_the_project():
    moved = re.findall(LINK, portable(README, "https://host.example/a/b/"))
    assert len(moved) == len(re.findall(LINK, README)) > 25
    files = [re.sub(r"https://host\.example/a/b/(blob|raw)/HEAD/", "", link) for link in moved]
    assert files == re.findall(LINK, README)
    assert (
        portable("![a](figures/a.svg) [b](https://c.example)", "https://host.example/a")
        == "![a](https://host.example/a/raw/HEAD/figures/a.svg) [b](https://c.example)"
    )


def test_without_an_address_words_stand_where_links_would_lead_nowhere():
    assert re.findall(LINK, portable(README)) == []
    assert portable("see [the *law*](LICENSE), [x](#y)") == "see the *law*, [x](#y)"


def test_hooks_use_the_locked_tools():
    lines = (ROOT / "requirements-dev.lock").read_text("utf-8").splitlines()
    locked = {
        r.name: str(r.specifier) for r in map(Requirement, (one for one in lines if one[0] != "#"))
    }
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    revisions = {hook["id"]: one["rev"] for one in hooks for hook in one["hooks"]}
    for hook, tool in (("ruff-check", "ruff"), ("ruff-format", "ruff"), ("mypy", "mypy")):
        assert f"=={revisions[hook].removeprefix('v')}" == locked[tool]


def test_machines_run_the_oldest_python_that_is_promised():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    job = workflow["jobs"]["test"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert oldest in job["strategy"]["matrix"]["python"]
    assert f"Programming Language :: Python :: {oldest}" in PROJECT["classifiers"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make check", "make test"]
