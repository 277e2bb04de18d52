"""How much slower the groups of a strategy are than in the default placement on the plain cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_instance
from relparallel.hardware import Cluster
from relparallel.parallel.group_links import group_links
from relparallel.parallel.strategy import DEGREES, Placement, Strategy
from relparallel.topology import Topology


def communicating(strategy: Strategy) -> dict[str, str]:
    """Degrees whose groups have more than one rank, each with its pattern of messages."""
    return {
        name: "chain" if name == "pipeline" else "ring" for name in DEGREES if getattr(strategy, name) > 1
    }


def placement_slowdowns(
    strategy: Strategy, cluster: Cluster, placement: Placement | None, network: Topology | None,
    alive: ArrayLike | None,
) -> dict[str, float]:  # fmt: skip
    """Bandwidth of the groups of each degree in the default placement, over that which they have."""
    usual = Placement(strategy=strategy)
    chosen = usual if placement is None else require_instance(Placement, placement=placement)
    if chosen.strategy != strategy:
        raise ValueError(f"placement must place the strategy {strategy}, got one of {chosen.strategy}")
    wired = cluster if network is None else require_instance(Topology, network=network)
    if chosen == usual and network is None and alive is None:
        return {}
    return {degree: _slowdown(chosen, cluster, wired, degree, alive) for degree in communicating(strategy)}


def _slowdown(
    placement: Placement, cluster: Cluster, wired: Cluster | Topology, degree: str,
    alive: ArrayLike | None = None,
) -> float:  # fmt: skip
    """Least bandwidth of the groups of a degree on a cluster, over that which they have, all at once."""
    usual, pattern = Placement(strategy=placement.strategy), communicating(placement.strategy)[degree]
    had = group_links(usual, cluster, degree, pattern=pattern).bandwidth.min()
    has = group_links(placement, wired, degree, pattern=pattern, alive=alive).bandwidth.min()
    if has == 0:
        name = "network" if alive is None else "alive"
        raise ValueError(f"{name} must leave the {degree} groups joined, got one that is torn apart")
    return float(had / has)


def degrees_of(choices: NDArray[Any]) -> NDArray[np.int64]:
    """Tensor, pipeline, data and context degrees that occur, [k, 4] in lexicographic order."""
    columns = [choices[name].astype(np.int64) for name in ("tensor", "pipeline", "data", "context")]
    return np.unique(np.column_stack(columns), axis=0)


def slowdowns(
    degrees: NDArray[np.int64], cluster: Cluster, network: Cluster | Topology,
    order: tuple[str, ...] = DEGREES,
) -> list[dict[str, float]]:  # fmt: skip
    """Bandwidth of the groups of each degree on a cluster over that on a network, for each row of degrees.

    On the network ranks are dealt out in an order; the ranks of a group are equally far apart, so two degrees
    whose groups have as many ranks at the same distances have the same groups. O(distinct groups x GPUs x
    cables).
    """
    known: dict[tuple[int, int, int, str], float] = {}
    found: list[dict[str, float]] = []
    for tensor, pipeline, data, context in degrees.tolist():
        strategy = Strategy(tensor=tensor, pipeline=pipeline, data=data, context=context)
        usual, apart = _distances(strategy, DEGREES), _distances(strategy, order)
        found.append({})
        for degree, pattern in communicating(strategy).items():
            key = (usual[degree], apart[degree], getattr(strategy, degree), pattern)
            if key not in known:
                known[key] = _slowdown(Placement(strategy=strategy, order=order), cluster, network, degree)
            found[-1][degree] = known[key]
    return found


def _distances(strategy: Strategy, order: tuple[str, ...]) -> dict[str, int]:
    """How far apart two neighbours of a group of each degree are where ranks are dealt out in an order."""
    found, apart = {}, 1
    for degree in order:
        found[degree], apart = apart, apart * getattr(strategy, degree)
    return found
