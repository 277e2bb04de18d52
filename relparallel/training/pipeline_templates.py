"""Pipelines of several sizes, put together so that every node that is left has work.

========  ======================================================================
letter    meaning
========  ======================================================================
n         nodes at hand
n0, n1    nodes of the smallest and of the largest pipeline
f         failures to survive: at least f + 1 pipelines hold the model
L         layers, spread over the nodes of a pipeline as evenly as they go
========  ======================================================================
"""

from __future__ import annotations

from functools import lru_cache

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_int
from relparallel.training._arguments import MOST_NODES


def templates_cover(nodes: int, smallest: int, largest: int, faults: int = 1) -> bool:
    """Whether pipelines of the given sizes use every node and are more than f.

    Parameters
    ----------
    nodes : int
        Nodes n at hand.
    smallest, largest : int
        Sizes n0 and n1; every size between them has a template.
    faults : int
        Failures f to survive.

    Returns
    -------
    bool
        Whether n is a sum of at least f + 1 sizes.

    Notes
    -----
    c pipelines reach every n in [c n0, c n1], so the answer is whether some c > f has c n0 <= n <= c n1: the
    largest c that fits, floor(n / n0), decides. With n1 >= 2 n0 - 1 every n >= (f + 1) n0 is covered.

    References
    ----------
    Jang et al., "Oobleck", SOSP 2023, section 4. The proof here is our own.

    Examples
    --------
    >>> [n for n in range(30) if not templates_cover(n, smallest=4, largest=7)]
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    _check_sizes(nodes, smallest, largest, faults)
    pipelines = nodes // smallest
    return pipelines > faults and nodes <= pipelines * largest


def template_speed(
    nodes: int, smallest: int, largest: int, faults: int = 1, layers: int | None = None
) -> NDArray[np.float64]:
    """Largest joint speed of pipelines on 0 … n nodes.

    Parameters
    ----------
    nodes : int
        Nodes n.
    smallest, largest : int
        Sizes n0 and n1 of pipelines.
    faults : int
        Failures f to survive: fewer than f + 1 pipelines count as none.
    layers : int, optional
        Layers L, all alike; infinitely many, so that every split is even, where omitted.

    Returns
    -------
    numpy.ndarray
        float64, shape (n + 1,), in units of one node that has L of L layers; nodes may idle.

    Notes
    -----
    A pipeline of i nodes has the rate 1 / ceil(L / i) of its fullest node, times L; each takes a share of the
    batch in proportion. Best sum by dynamic programming over nodes and min(pipelines, f + 1):
    O(n (n1 - n0) f).

    References
    ----------
    Jang et al., "Oobleck", SOSP 2023, section 4; the rate of a split is derived here.

    Examples
    --------
    >>> template_speed(nodes=8, smallest=2, largest=3, faults=1, layers=6).tolist()
    [0.0, 0.0, 0.0, 0.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    """
    _check_sizes(nodes, smallest, largest, faults)
    _check_layers(largest, layers)
    return _table(nodes, smallest, largest, faults, layers)[0]


def best_pipelines(
    nodes: int, smallest: int, largest: int, faults: int = 1, layers: int | None = None
) -> dict[int, int]:
    """How many pipelines of which size are fastest together.

    Parameters
    ----------
    nodes : int
        Nodes n.
    smallest, largest : int
        Sizes n0 and n1 of pipelines.
    faults : int
        Failures f to survive.
    layers : int, optional
        As in `template_speed`.

    Returns
    -------
    dict
        Pipelines of each size that is used; empty where fewer than f + 1 fit.

    Notes
    -----
    Read back from the table of `template_speed`.

    References
    ----------
    Jang et al., "Oobleck", SOSP 2023, section 4.

    Examples
    --------
    >>> best_pipelines(nodes=13, smallest=4, largest=7)
    {4: 2, 5: 1}
    """
    _check_sizes(nodes, smallest, largest, faults)
    _check_layers(largest, layers)
    chosen = _table(nodes, smallest, largest, faults, layers)[1]
    counts: dict[int, int] = {}
    missing = faults + 1
    while nodes and (size := int(chosen[missing, nodes])):
        if size > 0:
            counts[size] = counts.get(size, 0) + 1
            missing = max(missing - 1, 0)
        nodes -= abs(size)
    return dict(sorted(counts.items()))


def _check_sizes(nodes: int, smallest: int, largest: int, faults: int) -> None:
    """Refuse sizes that are no sizes."""
    require_int(nodes=nodes, at_least=0, at_most=MOST_NODES)
    require_int(smallest=smallest, at_least=1, at_most=MOST_NODES)
    require_int(largest=largest, at_least=smallest, at_most=MOST_NODES)
    require_int(faults=faults, at_least=0, at_most=1000)


def _check_layers(largest: int, layers: int | None) -> None:
    """Refuse pipelines with more nodes than layers."""
    if layers is not None:
        require_int(layers=layers, at_least=largest, at_most=10**6)


@lru_cache(maxsize=8)
def _table(
    nodes: int, smallest: int, largest: int, faults: int, layers: int | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Best speeds with all pipelines in place, and the last choice at every state; read only."""
    sizes = np.arange(smallest, largest + 1)
    rates = sizes.astype(np.float64) if layers is None else layers / -(-layers // sizes)
    speed, chosen = _fill(nodes, smallest, rates, faults + 1)
    speed.flags.writeable = chosen.flags.writeable = False
    return speed, chosen


@numba.njit(cache=True)
def _fill(nodes, smallest, rates, pipelines):  # type: ignore[no-untyped-def]
    """Rows: pipelines still missing. A choice is a size, minus one for an idle node, zero for the end."""
    best = np.full((pipelines + 1, nodes + 1), -1.0)
    chosen = np.zeros((pipelines + 1, nodes + 1), dtype=np.int64)
    best[0, 0] = 0.0
    for n in range(1, nodes + 1):
        for missing in range(pipelines + 1):
            value, choice = best[missing, n - 1], -1
            after = max(missing - 1, 0)
            for i in range(min(rates.size, n - smallest + 1)):
                before = best[after, n - smallest - i]
                if before >= 0 and before + rates[i] > value:
                    value, choice = before + rates[i], smallest + i
            if value >= 0:
                best[missing, n], chosen[missing, n] = value, choice
    return np.maximum(best[pipelines], 0.0), chosen
