"""How many nodes are missing: the stationary law of a job that loses parts of several sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

_SPREAD = 12  # standard deviations that are kept
_LARGE = 1e200
_RARE = 1e-14
_KILLED = 1e-11


def reach(loads: Mapping[int, Any], most: int) -> int:
    """Largest number of missing nodes that matters, at most ``most``."""
    mean = sum(size * abs(load) for size, load in loads.items())
    spread = sum(size**2 * abs(load) for size, load in loads.items()) ** 0.5
    return int(min(most, mean + _SPREAD * spread + 30 * max(loads, default=1))) if loads else 0


def able_to_fail(down: NDArray[np.int64], nodes: int, spares: int, hot: bool, waits: bool) -> Any:
    """Share of the nodes of the job that can fail while so many are down."""
    if hot:
        return np.maximum(nodes + spares - down, 0) / nodes
    if waits:
        return (down <= spares).astype(np.float64)
    return 1 - np.clip(down - spares, 0, nodes) / nodes


def speeds(down: NDArray[np.int64], spares: int, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the throughput with so many nodes down; spares stand in first."""
    return table[np.clip(down - spares, 0, len(table) - 1)]


def missing_law(loads: Mapping[int, Any], able: NDArray[np.float64]) -> NDArray[Any]:
    """Probabilities of 0 ... K nodes down; ``loads`` holds, by nodes per part, the parts under repair.

    K q(K) = sum_n n rho_n able(K - n) q(K - n), O(K sizes). For parts of one size it is the birth-death law
    with any law of repairs, whatever `able` is (Erlang's B, the binomial); where all parts can always fail
    it is Panjer's recursion for a compound Poisson number, exact for any sizes. With several sizes and
    a state-dependent `able` it keeps the balance of every size on average. Loads may be complex.
    """
    sizes = [size for size, load in loads.items() if size > 0 and load != 0]
    rho = np.array([loads[size] for size in sizes])
    rho = rho.astype(np.complex128 if np.iscomplexobj(rho) else np.float64)
    law = _recursion(np.array(sizes, dtype=np.int64), rho, np.asarray(able, dtype=np.float64))
    return law / law.sum()  # type: ignore[no-any-return]


@numba.njit(cache=True, error_model="numpy")  # type: ignore[misc]
def _recursion(sizes: Any, loads: Any, able: Any) -> Any:
    """Weights of 0 ... K nodes down."""
    law = np.zeros(len(able), dtype=loads.dtype)
    law[0] = 1.0
    for down in range(1, len(able)):
        for place, size in enumerate(sizes):
            if size <= down:
                law[down] += size * loads[place] * able[down - size] * law[down - size]
        law[down] /= down
        if abs(law[down]) > _LARGE:
            law[: down + 1] /= _LARGE
    return law


def speed_spread(
    law: NDArray[np.float64],
    loads: Mapping[int, float],
    able: NDArray[np.float64],
    speed: NDArray[np.float64],
    repair: float,
) -> float:
    """Asymptotic variance of the mean speed over a run, times its length [s].

    2 sum_K q f (v - E v), where f solves Poisson's equation of the reversible chain that moves between K and
    K + n as often as the law asks for. Exact for parts of one size and exponential repairs. O(K n^2).
    """
    from scipy.linalg import solveh_banded

    known = np.flatnonzero(law > _RARE * law.max())
    window = slice(known[0], known[-1] + 1)
    law, able, speed = law[window], able[window], speed[window]
    size = len(law)
    widest = min(max((n for n, load in loads.items() if load > 0), default=0), size - 1)
    if widest == 0 or repair == 0:
        return 0.0
    band = np.zeros((widest + 1, size))  # lower form: the Laplacian of the flows
    for n, load in loads.items():
        if load > 0 and n <= widest:
            flow = law[:-n] * able[:-n] * load / repair
            band[0, :-n] += flow
            band[0, n:] += flow
            band[n, :-n] -= flow
    pull = law * (speed - law @ speed / law.sum())
    scale = np.sqrt(np.where(band[0] > 0, band[0], 1.0))
    for n in range(widest + 1):
        band[n, : size - n] /= scale[: size - n] * scale[n:]
    band[0] = 1 + _KILLED  # the equation leaves a constant open
    found = solveh_banded(band, pull / scale, lower=True) / scale
    return max(2 * float(pull @ found), 0.0)
