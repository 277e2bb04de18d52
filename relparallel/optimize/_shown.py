"""How a notebook shows a choice: what it comes to, above its table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def shown(headline: str, table: pd.DataFrame) -> str:
    """One line and a table, numbers to six digits."""
    return f"<p>{escape(headline)}</p>" + str(table.to_html(float_format="{:.6g}".format))
