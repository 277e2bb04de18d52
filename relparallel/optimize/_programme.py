"""Mixed-integer programmes solved to the end: the optimum, or the knowledge that there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

__all__ = ["least"]

FloatArray = NDArray[np.float64]
# HiGHS stops at an absolute gap of 1e-6 whatever the relative one: costs are scaled until that is rounding.
_LARGEST_COST = 1e3


def least(
    cost: FloatArray, rows: Any, lower: Any, upper: Any = np.inf, *, whole: bool = True, finer: float = 1.0
) -> FloatArray | None:
    """Variables in [0, 1] of least cost with ``lower <= rows x <= upper``; None where there are none.

    Integral ones come back rounded, after a check that they were integral. The optimum is known to
    1e-9 of the largest cost, or ``finer`` times finer.
    """
    scale = finer * _LARGEST_COST / (np.abs(cost).max(initial=0.0) or 1.0)
    found = milp(
        cost * scale,
        integrality=np.full(cost.size, int(whole)),
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(csr_array(rows), lower, upper),
        options={"mip_rel_gap": 0.0},
    )
    if found.status == 2:
        return None
    if found.status != 0:
        raise RuntimeError(f"the programme of {cost.size} variables was not solved: {found.message}")
    x = np.asarray(found.x)
    if not whole:
        return x
    if np.abs(x - np.round(x)).max(initial=0.0) > 1e-5:
        raise RuntimeError(f"the programme of {cost.size} variables came back fractional")
    return np.round(x)
