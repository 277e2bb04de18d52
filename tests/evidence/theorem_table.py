"""Ledger theorems as tests: two independent computations where nothing checkable is published.

``python tests/evidence/theorem_table.py`` computes all and writes ``data/derived/theorems.csv``, from which
the ledger reads their rows; where one does not hold it shows its two sides, writes nothing and ends with 1.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pandas as pd
import pytest

from evidence.claims.theorems import Theorem, theorems
from relparallel.published import data_folder

TOLERANCE = 1e-12
ANEW = "write the table anew: python tests/evidence/theorem_table.py"


def holds(found):
    """Whether the two sides are one; a side that is no number is none."""
    return found.error <= found.tolerance


def false(found):
    """Both sides of a theorem that does not hold."""
    sides = f"{found.computed!r} is computed and {found.expected!r} expected"
    return f"{found.id} does not hold: {sides}, {found.error:.1e} apart ({found.statement})"


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
            found, stored = row(), [each for each in theorems() if each.id == id]
            assert holds(found), false(found)
            assert [(each.system, each.statement) for each in stored] == [(system, statement)], ANEW
            numbers = found.computed, found.expected, found.tolerance
            assert stored[0][3:] == pytest.approx(numbers, rel=TOLERANCE, abs=0), ANEW

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


def write(found, path):
    """Write the table, or say which theorems do not hold and return 1."""
    wrong = [false(one) for one in found if not holds(one)]
    for line in wrong:
        print(line, file=sys.stderr)  # noqa: T201
    if not wrong:
        pd.DataFrame(found, dtype=object).to_csv(path, index=False, lineterminator="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    rows = [test.row() for test in all_theorems()]
    sys.exit(write(rows, data_folder() / "derived" / "theorems.csv"))
