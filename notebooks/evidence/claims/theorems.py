"""Theorems: two independent computations that agree where nothing checkable is published.

The tests of a checkout compute both sides and hold ``data/derived/theorems.csv`` to them. Read here
is that table, so an installed package shows theorems and does not compute them.
"""

from functools import cache
from typing import NamedTuple

import pandas as pd

from relparallel.published import Number, data_folder


class Theorem(NamedTuple):
    """A statement and the two sides of its check, with the relative error that they may have."""

    id: str
    system: str  # of which it speaks
    statement: str  # in one sentence
    computed: Number
    expected: Number
    tolerance: float

    @property
    def error(self) -> float:
        """Relative; absolute where 0 is expected."""
        return abs(self.computed - self.expected) / (abs(self.expected) or 1.0)


@cache
def theorems() -> tuple[Theorem, ...]:
    """All theorems, by topic."""
    table = pd.read_csv(
        data_folder() / "derived" / "theorems.csv", dtype=str, keep_default_na=False
    )
    return tuple(
        Theorem(id, system, statement, _number(computed), _number(expected), float(tolerance))
        for id, system, statement, computed, expected, tolerance in table.itertuples(index=False)
    )


def _number(text: str) -> Number:
    return int(text) if text.removeprefix("-").isdigit() else float(text)
