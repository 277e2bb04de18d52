"""The table that the ledger reads holds every theorem, in file order, and nothing else."""

from theorem_table import all_theorems

from evidence.claims.theorems import theorems


def test_every_theorem_is_in_the_table_once():
    assert [row.id for row in theorems()] == [test.id for test in all_theorems()]
