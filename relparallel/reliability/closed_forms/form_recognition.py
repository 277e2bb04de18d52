"""The closed form that answers a question, found by the wiring and the chances of the network, not its name.

A form needs interchangeable parts: `pod_recognition` sees whether there are tiers of them. Which form applies
then depends on the parts that fail and on the terminals; where none does, the reason is said.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from relparallel.reliability.chances import CERTAIN, Chance, parallel, part, series
from relparallel.reliability.closed_forms.fat_tree_partitions import pods_apart
from relparallel.reliability.closed_forms.job_forms import JOINED_EXACTLY, pairs_joined
from relparallel.reliability.closed_forms.outbreaks import binomial_weights, row_set_together
from relparallel.reliability.closed_forms.server_recognition import server_pair
from relparallel.reliability.lumped.lumping import Fabric
from relparallel.reliability.lumped.pod_recognition import Seen, see
from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.result import Reliability, Routing, exactly
from relparallel.topology import Topology

__all__ = ["closed_form"]

_MOST: Final = 256  # vertices of a side of an outbreak
_MOST_STEPS: Final = 10**9  # of all outbreaks, a second or two
_MOST_PODS: Final = 32  # whose partitions are all summed, so that the answer is exact


class _Inner(NamedTuple):
    """Chance that what lies between the terminals joins them, and by which form."""

    chance: Chance
    form: str


def closed_form(topology: Topology, problem: Problem, routing: Routing) -> Reliability:
    """Answer by a closed form.

    Parameters
    ----------
    topology : Topology
        Its tiers are read.
    problem : Problem
        The same network with its chances and terminals.
    routing : {"any", "updown"}
        Which paths count.

    Returns
    -------
    Reliability
        Method "closed_form"; the reason names the form.

    Raises
    ------
    NotExactError
        If no form applies; the message says why.

    Examples
    --------
    >>> from relparallel.reliability.problem import read_problem
    >>> from relparallel.topology import leaf_spine
    >>> network = leaf_spine(leaves=64, spines=32, hosts_per_leaf=1)
    >>> leaves = [v for v in network.switches if network.tier[v] == 1]
    >>> up = {int(v): 0.999 for v in network.switches if v not in leaves}  # leaves are perfect
    >>> found = closed_form(network, read_problem(network, leaves, 0.999, up), "any")
    >>> print(f"{found.unreliability:.3e} by {found.reason}")
    2.705e-85 by outbreaks among 64 leaves and 32 spines
    """
    own = [tuple(chances) for chances in problem.node[problem.terminals].tolist()]
    seen = see(topology, problem) if len(own) > 1 else None
    if len(own) == 1:
        chance, form = CERTAIN, "the one terminal"
    elif seen is None:
        chance, form = server_pair(topology, problem, routing)
    else:
        chance, form = _two_tiers(seen, routing) if seen.two_tiers else _three_tiers(seen.fabric, routing)
        own = [seen.outside]
    found = exactly(*series(chance, *own), "closed_form", routing)
    return replace(found, reason=form)


def _two_tiers(seen: Seen, routing: Routing) -> _Inner:
    """Leaves, which are the aggregation switches of the fabric, under spines."""
    fabric = seen.fabric
    terminals = sum(count for count, ends, _ in fabric.pods if ends)
    others, spines = sum(count for count, *_ in fabric.pods) - terminals, fabric.cores
    leaf, spine, link = fabric.aggregation, fabric.core, fabric.core_link
    own = series(*[leaf] * terminals)
    if terminals == 1:
        return _Inner(own, "the one leaf")
    if routing == "updown":
        if terminals > JOINED_EXACTLY:
            raise NotExactError(_few_pairs("leaves", terminals))
        together = pairs_joined(1, spines, range(terminals), spine, CERTAIN, link, CERTAIN)
        return _Inner(series(own, together), f"every pair of {terminals} leaves below {spines} spines")
    together = _outbreaks(terminals, others, spines, leaf, spine, link)
    return _Inner(series(own, together), f"outbreaks among {terminals + others} leaves and {spines} spines")


def _three_tiers(fabric: Fabric, routing: Routing) -> _Inner:
    """Edge switches in pods under planes of cores."""
    pods = [ends for count, ends, _ in fabric.pods for _ in range(count) if ends]
    if sum(pods) == 1:
        return _Inner(CERTAIN, "the one edge switch")
    if routing == "updown":
        return _by_pairs(fabric, pods)
    idle = sum(count for count, ends, rest in fabric.pods if not ends and rest)
    if fabric.edge_link != CERTAIN or (idle and fabric.edge != CERTAIN):
        raise NotExactError(
            "cables between edge and aggregation switches, and edge switches of pods without a terminal, "
            "must not fail for a closed form over any path"
        )
    width = parallel(*[fabric.aggregation] * fabric.aggregations)
    if len(pods) == 1:
        return _Inner(parallel(*[width] * fabric.planes), f"{fabric.planes} planes of one pod")
    return _pods_together(fabric, width, len(pods), idle)


def _pods_together(fabric: Fabric, width: Chance, pods: int, idle: int) -> _Inner:
    """Pods each of which holds together, joined by planes of cores."""
    every, planes, cores = pods + idle, fabric.planes, fabric.cores
    text = f"{every} pods and {planes} planes"
    if fabric.core_link == CERTAIN:
        plane = parallel(*[fabric.core] * cores)
        return _Inner(_outbreaks(pods, idle, planes, CERTAIN, plane, width), f"outbreaks among {text}")
    if fabric.aggregations > 1:
        raise NotExactError("pods must have one aggregation switch per plane where cables to cores fail")
    if planes == 1:
        together = _outbreaks(pods, idle, cores, width, fabric.core, fabric.core_link)
        return _Inner(series(*[width] * pods, together), f"outbreaks among {every} pods and {cores} cores")
    core, aggregation, link = chances = fabric.core, fabric.aggregation, fabric.core_link
    if planes != cores or every != 2 * cores or every > _MOST_PODS:
        raise NotExactError(
            f"pods must be those of a k-ary fat-tree with k <= {_MOST_PODS} where cables to cores fail, "
            f"got {text} of {cores} cores"
        )
    if any(chance != part(chance[0]) for chance in chances):
        raise NotExactError("chances of failure must not be smaller than the last digit of 1 - up")
    found = pods_apart(every, core[0], aggregation[0], link[0], pods)
    if found.lower < found.upper:
        raise NotExactError(f"failures are too frequent for the partitions of {every} pods")
    return _Inner((found.together, found.upper), f"partitions of {text} of {cores} cores")


def _by_pairs(fabric: Fabric, pods: list[int]) -> _Inner:
    """A few edge switches, every two of which need a way up and down."""
    seats = [pod for pod, ends in enumerate(pods) for _ in range(ends)]
    if len(seats) > JOINED_EXACTLY:
        raise NotExactError(_few_pairs("edge switches", len(seats)))
    if fabric.aggregations > 1:
        raise NotExactError("pods must have one aggregation switch per plane for a closed form of up-down")
    together = pairs_joined(
        fabric.planes, fabric.cores, seats, fabric.core, fabric.aggregation, fabric.core_link,
        fabric.edge_link,
    )  # fmt: skip
    return _Inner(together, f"every pair of {len(seats)} edge switches below {fabric.planes} planes")


def _outbreaks(rows: int, others: int, columns: int, other: Chance, column: Chance, link: Chance) -> Chance:
    """Chance that rows which are up are connected by columns and by other rows that may fail."""
    counts = [others] if other == CERTAIN else range(others + 1)
    steps = sum(((rows + count) * columns) ** 2 for count in counts)
    if max(rows + others, columns) > _MOST or steps > _MOST_STEPS:
        raise NotExactError(
            f"sides must have at most {_MOST} alike vertices and take at most {_MOST_STEPS:.0e} steps for a "
            f"closed form, got {rows + others} and {columns}"
        )
    weights = binomial_weights(others, other) if len(counts) > 1 else np.ones(1)
    alive = binomial_weights(columns, column)
    found = [
        weight * (alive @ row_set_together(rows + count, columns, link, rows))
        for count, weight in zip(counts, weights, strict=True)
    ]
    up, down = np.sum(found, axis=0)
    return float(up), float(down)


def _few_pairs(kind: str, count: int) -> str:
    """Why up-down routing among many has no closed form."""
    return f"terminals must lie at no more than {JOINED_EXACTLY} {kind} for up-down routing, got {count}"
