"""How much bandwidth the groups of many degrees have on one network, each kind of group asked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.parallel.group_links import group_links
from relparallel.parallel.step_time import communicating
from relparallel.parallel.strategy import Placement, Strategy
from relparallel.topology import Topology


def degrees_of(choices: NDArray[Any]) -> NDArray[np.int64]:
    """Tensor, pipeline, data and context degrees that occur, [k, 4] in lexicographic order."""
    columns = [choices[name].astype(np.int64) for name in ("tensor", "pipeline", "data", "context")]
    return np.unique(np.column_stack(columns), axis=0)


def slowdowns(degrees: NDArray[np.int64], cluster: Cluster, network: Topology) -> list[dict[str, float]]:
    """Bandwidth of the groups of each degree on a cluster over that on a network, for each row of degrees.

    Both in the default placement, the slowest group of all at once: the factors of ``step_time(network=)``.
    There the ranks of a group are equally far apart, so two degrees whose groups have as many ranks at the
    same distance have the same groups. O(distinct groups x GPUs x cables).
    """
    known: dict[tuple[int, int, str], float] = {}
    found = []
    for tensor, pipeline, data, context in degrees.tolist():
        strategy = Strategy(tensor=tensor, pipeline=pipeline, data=data, context=context)
        apart = {
            "tensor": 1,
            "context": tensor,
            "data": tensor * context,
            "pipeline": tensor * context * data,
        }
        slow = {}
        for degree, pattern in communicating(strategy).items():
            key = (apart[degree], getattr(strategy, degree), pattern)
            if key not in known:
                known[key] = _ratio(Placement(strategy=strategy), cluster, network, degree, pattern)
            slow[degree] = known[key]
        found.append(slow)
    return found


def _ratio(placement: Placement, cluster: Cluster, network: Topology, degree: str, pattern: str) -> float:
    """Bandwidth that the cluster gives over that of the network."""
    had, has = (
        group_links(placement, wired, degree, pattern=pattern).bandwidth.min() for wired in (cluster, network)
    )
    if has == 0:
        raise ValueError(f"network must join the {degree} groups of {placement.strategy}, got {network!r}")
    return float(had / has)
