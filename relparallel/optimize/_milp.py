"""Mixed-integer programmes by HiGHS, solved to the end: the optimum, or proof that none exists."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
# HiGHS stops at an absolute gap of 1e-6 whatever the relative one: costs are scaled until that is
# rounding.
_LARGEST_COST = 1e3


class OutOfTimeError(RuntimeError):
    """The time was up; ``bound`` is what the least cost cannot go below."""

    def __init__(self, bound: float) -> None:
        super().__init__(f"the programme was not solved in time; its optimum is at least {bound!r}")
        self.bound = bound


def least(
    cost: FloatArray,
    rows: Any,
    lower: Any,
    upper: Any = np.inf,
    *,
    whole: bool | NDArray[np.bool_] = True,
    finer: float = 1.0,
    gap: float = 0.0,
    seconds: float = np.inf,
) -> tuple[FloatArray | None, float]:
    """Variables in [0, 1] of least cost with ``lower <= rows x <= upper``; a bound of all costs.

    None where there are none. Those that ``whole`` marks come back rounded, after a check. The
    optimum is known to 1e-9 of the largest cost, or ``finer`` times finer; with a gap, to that
    relative gap.
    """
    mixed = np.broadcast_to(np.asarray(whole), cost.shape)
    scale = finer * _LARGEST_COST / (np.abs(cost).max(initial=0.0) or 1.0)
    with _silent():
        found = scipy.optimize.milp(
            cost * scale,
            integrality=mixed.astype(int),
            bounds=scipy.optimize.Bounds(0.0, 1.0),
            constraints=scipy.optimize.LinearConstraint(scipy.sparse.csr_array(rows), lower, upper),
            options={"mip_rel_gap": gap, "time_limit": seconds},
        )
    bound = found.fun if not mixed.any() else getattr(found, "mip_dual_bound", None)
    low = -np.inf if bound is None else float(bound) / scale
    if found.status == 1:
        raise OutOfTimeError(low if mixed.any() else -np.inf)
    if found.status == 2:
        return None, low
    if found.status != 0:
        raise RuntimeError(
            f"the programme of {cost.size} variables was not solved: {found.message}"
        )
    x = np.asarray(found.x)
    rounded = np.where(mixed, np.round(x), x)
    if np.abs(x - rounded).max(initial=0.0) > 1e-5:
        raise RuntimeError(f"the programme of {cost.size} variables came back fractional")
    return rounded, low


def picking(columns: NDArray[Any], width: int) -> Any:
    """A row for each entry, 1 in that column."""
    return scipy.sparse.csr_array(
        (np.ones(len(columns)), (np.arange(len(columns)), columns)), shape=(len(columns), width)
    )


@contextmanager
def _silent() -> Iterator[None]:
    """Keep what the solver prints past Python out of sight: a HiGHS line no option turns off."""
    if os.name != "posix":
        yield
        return
    flush = ctypes.CDLL(None).fflush
    sys.stdout.flush()
    flush(None)
    shown, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        yield
    finally:
        flush(None)
        os.dup2(shown, 1)
        os.close(shown)
        os.close(nothing)
