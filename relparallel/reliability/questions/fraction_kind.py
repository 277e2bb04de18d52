"""Whether a question is asked in exact fractions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np


def has_fractions(*given: Any, groups: Any = None) -> bool:
    """Whether some probability is a `fractions.Fraction`, of a part or of groups."""
    unclear = [values for values in given if type(values) is not float and values is not None]  # few are
    if unclear and any(isinstance(value, Fraction) for values in unclear for value in each_number(values)):
        return True
    if groups is None:
        return False
    shared = groups if isinstance(groups, list | tuple) else each_number(groups)
    found = [group[-1] if isinstance(group, tuple) and group else group for group in shared]
    return any(isinstance(value, Fraction) for value in found)


def each_number(given: Any) -> list[Any]:
    """The single numbers that an argument holds."""
    if isinstance(given, Mapping):
        return list(given.values())
    return list(given) if isinstance(given, list | tuple | np.ndarray) and np.ndim(given) == 1 else [given]
