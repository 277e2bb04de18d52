"""The mutants of the package are still what they say: `make mutants` judges them."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = runpy.run_path(str(ROOT / "tests" / "mutants" / "run.py"))["mutants"]()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.file}: {one.new}")
def test_a_mutant_fits_its_file_and_its_tests_exist(mutant):
    assert (ROOT / mutant.file).read_text("utf-8").count(mutant.old) == 1, (
        f"{mutant.file} has {mutant.old!r} not once: write the line of today as old in tests/mutants/"
    )
    assert mutant.new != mutant.old, "tests/mutants/: new must differ from old"
    assert mutant.tests, "tests/mutants/: name the tests that notice it"
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), f"tests/mutants/ name {path}, which is gone"
        assert not name or f"def {name}(" in (ROOT / path).read_text("utf-8"), (
            f"tests/mutants/ name {test}, which is gone: name the test of today"
        )


def test_every_package_has_mutants():
    packages = {
        path.name for path in (ROOT / "relparallel").iterdir() if (path / "__init__.py").exists()
    }
    mutated = {mutant.file.split("/")[1] for mutant in MUTANTS}
    assert packages - mutated == set(), "break a formula of each of them in tests/mutants/*.toml"
    assert len(MUTANTS) >= 60, (
        "tests/mutants/*.toml: replace a mutant whose line is gone, keep its number"
    )
