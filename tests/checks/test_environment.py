"""One set of requirements, three files: pyproject.toml leads environment.yml and the lock."""

import ast
import importlib.metadata
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
LOCKS = {
    name: [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    for name in ("requirements.lock", "requirements-dev.lock")
}
FOR_NOTEBOOKS = ("core", "notebooks", "build")  # the rest is in the second lock
CORE = PROJECT["project"]["dependencies"]
GROUPS = PROJECT["dependency-groups"]
EXTRAS = PROJECT["project"]["optional-dependencies"] | {
    name: GROUPS[name] for name in ("test", "bench")
}
# PyTorch is not locked: a rehearsal is recorded once, and nothing that is stored is computed with it.
del EXTRAS["rehearsal"], EXTRAS["rehearsal-torchft"]


def bounds(lines: list[str]) -> dict[str, str]:
    """Names and versions allowed; a bare name, a name and bounds, nothing else."""
    requirements = [Requirement(line) for line in lines]
    odd = [str(r) for r in requirements if r.url or r.extras]
    assert not odd, f"write a name and bounds, no address and no extra: {', '.join(odd)}"
    return {canonicalize_name(r.name): str(r.specifier) for r in requirements}


def test_conda_asks_for_the_core_and_the_notebooks_extra_with_the_same_bounds():
    named = [line for line in CONDA["dependencies"] if isinstance(line, str)]
    python = {"python": PROJECT["project"]["requires-python"], "pip": ""}
    wanted = bounds([*CORE, *EXTRAS["notebooks"]]) | python
    differ = sorted({name for name, _ in bounds(named).items() ^ wanted.items()})
    assert not differ, (
        f"write into environment.yml what pyproject.toml says of: {', '.join(differ)}"
    )


def test_developers_get_both_groups():
    assert GROUPS["dev"] == [{"include-group": name} for name in GROUPS if name != "dev"], (
        "name every group of [dependency-groups] of pyproject.toml, in order, in its group dev"
    )


def test_conda_takes_free_channels_and_then_this_checkout():
    assert CONDA | {"dependencies": CONDA["dependencies"][-1:]} == {
        "name": PROJECT["project"]["name"],
        "channels": ["conda-forge", "nodefaults"],
        "dependencies": [{"pip": ["-e ."]}],
    }, "correct environment.yml: these keys alone, and -e . at the end"


def test_the_core_stays_small():
    core = {
        "clustershell",
        "jinja2",
        "matplotlib",
        "lazy-loader",
        "networkx",
        "numba",
        "llvmlite",
        "numpy",
        "pandas",
        "pyyaml",
        "rich",
        "scipy",
        "seaborn",
    }
    assert set(bounds(CORE)) == core, (
        "dependencies of pyproject.toml: put it into an extra, or list it here and say why: "
        f"{', '.join(sorted(set(bounds(CORE)) ^ core))}"
    )


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_versions_and_nothing_else(lock):
    names = [line.partition("==")[0].lower() for line in LOCKS[lock]]
    assert names == sorted(set(names)), f"sort {lock}, and name each package once"
    for line in LOCKS[lock]:
        (version,) = Requirement(line).specifier
        fixed = f"{Requirement(line).name}=={Version(version.version)}"
        assert line.partition(" ; ")[0] == fixed, f"{lock}: write {fixed} instead of {line}"


def test_notebooks_need_no_tool_and_no_peer():
    """And what both locks name is named once; a peer without wheels everywhere is marked as one."""
    tools = (
        bounds([*EXTRAS["test"], *EXTRAS["bench"]]).keys()
        - bounds([*CORE, *EXTRAS["notebooks"]]).keys()
    )
    first, second = (bounds(lines) for lines in LOCKS.values())
    # papermill's own needs
    assert not tools & first.keys() - bounds(["packaging", "pyyaml"]).keys(), (
        "move these tools from requirements.lock to requirements-dev.lock"
    )
    assert not first.keys() & second.keys(), "take out of requirements-dev.lock what both name"
    assert [line for line in LOCKS["requirements.lock"] if ";" in line] == [], (
        "requirements.lock holds for every machine: write the line without a marker"
    )


@pytest.mark.parametrize("kind", ["core", *EXTRAS, "build"])
def test_the_lock_covers_every_requirement_and_lies_inside_its_bounds(kind):
    builds = [*PROJECT["build-system"]["requires"], "editables"]
    wanted = {"core": CORE, "build": builds}.get(kind) or EXTRAS[kind]
    lines = LOCKS["requirements.lock"]
    locked = bounds(lines if kind in FOR_NOTEBOOKS else [*lines, *LOCKS["requirements-dev.lock"]])
    for name, specifier in bounds(wanted).items():
        lock = "requirements.lock" if kind in FOR_NOTEBOOKS else "requirements-dev.lock"
        assert name in locked, f"add {name}{specifier} with its version to {lock}"
        assert (
            Version(locked[name].removeprefix("==")) in Requirement(name + specifier).specifier
        ), f"pyproject.toml asks for {name}{specifier}, {lock} has {locked[name]}: move one of them"


@pytest.mark.parametrize("line", [*CORE, *(line for extra in EXTRAS.values() for line in extra)])
def test_what_is_installed_lies_inside_its_bounds(line):
    requirement = Requirement(line)
    locked = [
        Requirement(line) for line in (*LOCKS["requirements.lock"], *LOCKS["requirements-dev.lock"])
    ]
    here = [
        one.marker is None or one.marker.evaluate()
        for one in locked
        if one.name == requirement.name
    ]
    if here == [False]:
        pytest.skip(f"{requirement.name} has no wheel for this machine")
    found = importlib.metadata.version(requirement.name)
    assert found in requirement.specifier, (
        f"{found} is installed, pyproject.toml asks for {line}: rebuild .venv (make clean, make check)"
    )


def imported(paths: Iterable[Path]) -> set[str]:
    """Top-level names of the third-party modules that Python files import."""
    found = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.partition(".")[0])
    helpers = {path.stem for path in (*ROOT.glob("tests/*.py"), *ROOT.glob("docs/**/*.py"))}
    helpers |= {path.stem for path in ROOT.glob("tests/evidence/*.py")}
    return found - sys.stdlib_module_names - helpers - OWN


OWN = {"relparallel", "chapters", "evidence", "reproduce", "commands"}
WITH_PAPERMILL = ["nbclient", "nbformat", "traitlets"]  # what it is made of, in every version


@pytest.mark.parametrize(
    ("folder", "required"),
    [
        ("relparallel", CORE),
        ("notebooks/chapters", CORE),
        ("notebooks/evidence", CORE),
        ("notebooks", [*CORE, *EXTRAS["notebooks"], *EXTRAS["distributed"], *WITH_PAPERMILL]),
        ("tests", [*CORE, *EXTRAS["notebooks"], *EXTRAS["test"], *WITH_PAPERMILL]),
        ("docs", [*CORE, *EXTRAS["docs"], *WITH_PAPERMILL]),
    ],
)
def test_everything_imported_is_required(folder, required):
    distributions = importlib.metadata.packages_distributions()
    for module in imported((ROOT / folder).rglob("*.py")):
        packages = {canonicalize_name(name) for name in distributions.get(module, ())}
        assert packages & set(bounds(required)), (
            f"{folder} imports {module}: ask for {' or '.join(packages) or module} in pyproject.toml, "
            "environment.yml and a lock, or do without"
        )
