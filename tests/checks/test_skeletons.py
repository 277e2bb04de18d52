"""The skeletons of CONTRIBUTING.md run as they stand: a new network, a new recovery policy."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

from chapters.drawing.layouts import LAYOUTS
from relparallel import topology
from relparallel.topology import orbits
from relparallel.topology.description import _RULES, rules
from relparallel.training import recovery_policies
from small_networks import agrees, arguments

ROOT = Path(__file__).resolve().parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def skeletons(heading: str) -> dict[str, str]:
    """The blocks of Python below a heading, by the file that their first line names."""
    section = CONTRIBUTING.partition(f"\n### {heading}\n")[2].partition("\n##")[0]
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", section, re.S)
    assert len(blocks) == 2, (
        f"CONTRIBUTING.md: below '### {heading}' stand the code and its test, "
        "each in a block of python whose first line is a comment with its file"
    )
    for file, _ in blocks:
        assert (ROOT / file).parent.is_dir(), f"CONTRIBUTING.md: {file} has no folder"
    return dict(blocks)


def passes_the_linter(file: str, text: str) -> None:
    for task in (["check"], ["format", "--diff"]):
        command = [sys.executable, "-m", "ruff", *task, "--stdin-filename", str(ROOT / file), "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        assert done.returncode == 0, f"CONTRIBUTING.md, {file}: {done.stdout}{done.stderr}"


def run_tests(text: str) -> None:
    """Run the functions of a skeleton's test."""
    namespace: dict = {}
    exec(text, namespace)
    tests = [value for name, value in namespace.items() if name.startswith("test_")]
    assert tests, "CONTRIBUTING.md: a skeleton of a test defines a function test_..."
    for test in tests:
        try:
            test()
        except AssertionError as error:
            raise AssertionError(f"CONTRIBUTING.md: {test.__name__} fails: {error}") from error


def test_a_network_written_as_contributing_says_is_whole(monkeypatch):
    (file, text), (_, test) = skeletons("A new network").items()
    rules()  # the designs that there are
    monkeypatch.setitem(_RULES, "full_mesh", None)  # forgets the new one at the end
    namespace = {"__name__": file.removesuffix(".py").replace("/", ".")}
    exec(text, namespace)
    passes_the_linter(file, text)
    builder = namespace["full_mesh"]
    ran = doctest.DocTestRunner()
    ran.run(doctest.DocTestFinder().find(builder, "full_mesh", globs=namespace)[0])
    assert ran.summarize().failed == 0, f"CONTRIBUTING.md, {file}: correct the example"
    assert _RULES["full_mesh"].layout in LAYOUTS, (
        f"CONTRIBUTING.md, {file}: layout is one of {', '.join(LAYOUTS)}"
    )
    for sizes in (arguments("full_mesh"), {"n": 2, "p": 3}):
        agrees(builder(**sizes))
        assert len(set(orbits(builder(**sizes)).tolist())) == 2, "hosts alike, and switches"
    monkeypatch.setattr(topology, "full_mesh", builder, raising=False)
    run_tests(test)


def test_a_policy_written_as_contributing_says_is_priced(monkeypatch):
    (file, text), (_, test) = skeletons("A new recovery policy").items()
    monkeypatch.setitem(recovery_policies.POLICIES, "even", None)
    exec(text, dict(vars(recovery_policies)))
    whole = (ROOT / file).read_text("utf-8") + "\n\n" + text
    passes_the_linter(file, whole)
    run_tests(test)
