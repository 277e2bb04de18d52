"""Cold spares and failures of several sizes: the exact law of the missing nodes of a job that waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MOST_STATES: Final = 1000  # a few milliseconds


def cold_law(loads: Mapping[int, Any], repairs: Mapping[int, float], spares: int) -> NDArray[Any] | None:
    """Probabilities of 0 ... K nodes down, or None where there are too many states.

    A state counts the parts under repair by size. Nothing fails while more nodes are down than there are
    spares; a small part may come back before the large one that the job waits for, and that is what keeps
    the law from being a product. Each part comes back as a whole, after exponential times; sizes with
    several laws of repair are taken at their mean. Loads may be complex. One sparse linear system.
    """
    sizes = np.array(sorted(loads))
    counts = np.array([spares // size + 2 for size in sizes])
    if np.prod(counts.astype(np.float64)) > 100 * MOST_STATES:
        return None
    states = np.stack(np.unravel_index(np.arange(counts.prod()), counts), axis=1)
    inside = states @ sizes <= spares + sizes.max()
    if inside.sum() > MOST_STATES:
        return None
    number = np.cumsum(inside) - 1
    states = states[inside]
    down = states @ sizes
    place, flows = states @ (counts.prod() // np.cumprod(counts)), []
    for column, size in enumerate(sizes):
        step = int(counts[column + 1 :].prod())
        repair = repairs[int(size)]
        fails, back = np.flatnonzero(down <= spares), np.flatnonzero(states[:, column])
        flows.append((fails, number[place[fails] + step], np.full(len(fails), loads[int(size)] / repair)))
        flows.append((back, number[place[back] - step], states[back, column] / repair))
    law = _balanced(flows, len(states))
    if not np.isfinite(law).all():
        return None
    found = np.zeros(down.max() + 1, dtype=law.dtype)
    np.add.at(found, down, law)
    return found


def _balanced(flows: list[tuple[Any, Any, Any]], states: int) -> NDArray[Any]:
    """Stationary law of a chain from (from, to, rate), that of state 0 first set to 1."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    start, end, rate = (np.concatenate(column) for column in zip(*flows, strict=True))
    leave = np.zeros(states, dtype=rate.dtype)
    np.add.at(leave, start, rate)
    here = np.arange(states)
    entries = np.concatenate([rate, -leave])
    balance = csc_array(
        (entries, (np.concatenate([end, here]), np.concatenate([start, here]))), shape=(states, states)
    )
    rest = splu(csc_array(balance[1:, 1:])).solve(-balance[1:, [0]].toarray().ravel())
    law = np.concatenate([[1.0], rest])
    return law / law.sum()  # type: ignore[no-any-return]
