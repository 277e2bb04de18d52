"""Ledger theorems as tests: two independent computations where nothing checkable is published.

``python tests/evidence/theorem_table.py`` computes all and writes ``data/derived/theorems.csv``, from which
the ledger reads their rows.
"""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pandas as pd
import pytest

from evidence.claims.theorems import Theorem, theorems
from relparallel.published import data_folder

TOLERANCE = 1e-12


def theorem(id, *, system):
    """A test that both sides agree and the table says the same; the docstring is the statement."""

    def bind(sides):
        statement = " ".join(sides.__doc__.split())

        def row():
            computed, expected = (
                getattr(side, "item", lambda side=side: side)() for side in sides()
            )
            return Theorem(id, system, statement, computed, expected, TOLERANCE)

        def test():
            found, (stored,) = row(), [each for each in theorems() if each.id == id]
            assert found.error <= TOLERANCE
            assert (stored.system, stored.statement) == (system, statement), "write the table anew"
            numbers = found.computed, found.expected, found.tolerance
            assert stored[3:] == pytest.approx(numbers, rel=TOLERANCE, abs=0), (
                "write the table anew"
            )

        test.id, test.row = id, row
        return test

    return bind


def all_theorems():
    """Every theorem's test, by file."""
    found = []
    for path in sorted((Path(__file__).parent / "theorems").glob("test_*.py")):
        spec = spec_from_file_location(path.stem, path)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        found += [value for value in vars(module).values() if hasattr(value, "row")]
    return found


if __name__ == "__main__":
    table = pd.DataFrame([test.row() for test in all_theorems()], dtype=object)
    table.to_csv(data_folder() / "derived" / "theorems.csv", index=False, lineterminator="\n")
