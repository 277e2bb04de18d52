"""What the choices share: one number checked, and a headline above a table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from relparallel._checks import require_real

if TYPE_CHECKING:
    import pandas as pd


def one_number(name: str, value: Any, **bounds: float) -> float:
    """The value as one number inside the bounds of `require_real`."""
    checked = require_real(**{name: value}, **bounds)  # type: ignore[arg-type]
    if np.ndim(checked):
        raise TypeError(f"{name} must be one number, got {value!r}")
    return float(checked)


def shown(headline: str, table: pd.DataFrame) -> str:
    """One line and a table, numbers to six digits, for a notebook."""
    return f"<p>{escape(headline)}</p>" + str(table.to_html(float_format="{:.6g}".format))
