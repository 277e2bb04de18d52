"""The table that the ledger reads holds every theorem, in file order, and nothing else."""

import pytest
import theorem_table
from theorem_table import all_theorems, theorem

from evidence.claims.theorems import theorems


def test_every_theorem_is_in_the_table_once():
    assert [row.id for row in theorems()] == [test.id for test in all_theorems()]


def test_a_false_theorem_is_refused_with_both_sides_and_nothing_is_written(tmp_path, capsys):
    true = theorem("THM-TRUE", system="arithmetic")(_one_and(1.0)).row()
    table = tmp_path / "theorems.csv"
    assert theorem_table.write([true], table) == 0
    before = table.read_bytes()
    for other in (1.5, float("nan")):
        bound = theorem("THM-FALSE", system="arithmetic")(_one_and(other))
        assert theorem_table.write([true, bound.row()], table) == 1
        told = f"THM-FALSE does not hold: 1.0 is computed and {other} expected"
        assert capsys.readouterr().err.startswith(told)
        assert table.read_bytes() == before
        with pytest.raises(AssertionError, match=told):
            bound()


def test_a_theorem_that_is_not_in_the_table_says_what_to_do():
    with pytest.raises(AssertionError, match=r"python tests/evidence/theorem_table\.py"):
        theorem("THM-NEW", system="arithmetic")(_one_and(1.0))()


def _one_and(other):
    def sides():
        """One is one."""
        return 1.0, other

    return sides
