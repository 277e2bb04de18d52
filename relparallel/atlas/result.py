"""`Card`: every number of a network beside its bracket and the way it is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from relparallel._checks import require_instance, require_real


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One quantity with its bracket.

    Parameters
    ----------
    quantity, unit, how : str
        What, in which unit (empty for a count), and how it is known.
    value, lower, upper : float
        lower <= value <= upper; the value is NaN where only the bracket is known.

    Examples
    --------
    >>> Row(quantity="hosts", value=16, lower=16, upper=16, unit="", how="exact run, counted").exact
    True
    """

    quantity: str
    value: float
    lower: float
    upper: float
    unit: str
    how: str

    def __post_init__(self) -> None:
        require_instance(str, quantity=self.quantity, unit=self.unit, how=self.how)
        require_real(lower=self.lower, upper=self.upper, infinite=True)
        inside = self.lower if isinstance(self.value, float) and math.isnan(self.value) else self.value
        require_real(value=inside, infinite=True)
        if not self.lower <= inside <= self.upper:
            raise ValueError(
                f"value must lie between lower {self.lower} and upper {self.upper}, got {self.value}"
            )

    @property
    def exact(self) -> bool:
        """Whether the bracket has no width."""
        return self.lower == self.upper


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """All rows of one network.

    Parameters
    ----------
    design : str
        What was measured.
    rows : tuple of Row
        In the order of the table, at least one, each quantity once.

    Examples
    --------
    >>> hosts = Row(quantity="hosts", value=16, lower=16, upper=16, unit="", how="exact run, counted")
    >>> Card(design="own", rows=(hosts,))["hosts"].value
    16
    """

    design: str
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        require_instance(str, design=self.design)
        require_instance(tuple, rows=self.rows)
        for row in self.rows:
            require_instance(Row, rows=row)
        if not self.rows or len({row.quantity for row in self.rows}) < len(self.rows):
            raise ValueError(f"rows must hold each quantity once, got {[row.quantity for row in self.rows]}")

    def __getitem__(self, quantity: str) -> Row:
        for row in self.rows:
            if row.quantity == quantity:
                return row
        known = ", ".join(row.quantity for row in self.rows)
        raise ValueError(f"quantity must be one of {known}, got {quantity!r}")

    def to_frame(self) -> pd.DataFrame:
        """One line for each quantity.

        Returns
        -------
        pandas.DataFrame
            Indexed by quantity; columns value, lower, upper, unit and how.

        Examples
        --------
        >>> cut = Row(quantity="bisection", value=4, lower=2, upper=4, unit="links", how="bracket")
        >>> Card(design="own", rows=(cut,)).to_frame().loc["bisection", "how"]
        'bracket'
        """
        columns = ("quantity", "value", "lower", "upper", "unit", "how")
        table = pd.DataFrame([{name: getattr(row, name) for name in columns} for row in self.rows])
        return table.set_index("quantity")

    def _repr_html_(self) -> str:
        table = self.to_frame().to_html(float_format="{:,.6g}".format, na_rep="")
        return f"<p>{self.design}</p>" + table
