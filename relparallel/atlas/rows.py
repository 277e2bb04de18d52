"""`Card`: every number of a network beside its bracket and the way it is known."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from relparallel._checks import Result


class Row(NamedTuple):
    """One quantity with its bracket; the value is NaN where only the bracket is known."""

    quantity: str
    value: float
    lower: float
    upper: float
    unit: str
    how: str

    @property
    def exact(self) -> bool:
        """Whether the bracket has no width."""
        return self.lower == self.upper


@dataclass(frozen=True, kw_only=True, slots=True)
class Card(Result):
    """All rows of one network, each quantity once."""

    design: str  #: what was measured
    rows: tuple[Row, ...]

    def __getitem__(self, quantity: str) -> Row:
        for row in self.rows:
            if row.quantity == quantity:
                return row
        known = ", ".join(row.quantity for row in self.rows)
        raise ValueError(f"quantity must be one of {known}, got {quantity!r}")

    def to_frame(self) -> pd.DataFrame:
        """Value, lower and upper end of its bracket, unit and how it is known, by quantity."""
        return pd.DataFrame(self.rows, columns=Row._fields).set_index("quantity")

    def _said(self) -> str:
        return f"{self.design}: {len(self.rows)} quantities, each with its bracket, unit and method"


def exactly(quantity: str, value: float, unit: str, how: str) -> Row:
    """Row without a bracket."""
    return Row(quantity, float(value), float(value), float(value), unit, how)


def between(quantity: str, lower: float, upper: float, unit: str, how: str) -> Row:
    """Row of which only the bracket is known, unless both ends meet."""
    value = float(lower) if lower == upper else math.nan
    return Row(quantity, value, float(lower), float(upper), unit, how)
