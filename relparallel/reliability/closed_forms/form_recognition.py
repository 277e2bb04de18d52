"""The closed form that answers a question, found by the wiring and the chances of the network, not its name.

A form needs interchangeable parts: `pod_recognition` sees whether there are tiers of them. Which form applies
then depends on the parts that fail and on the terminals; where none does, the reason is said.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from relparallel.reliability.chances import CERTAIN, Chance, parallel, part, series
from relparallel.reliability.closed_forms.fat_tree_partitions import pods_apart
from relparallel.reliability.closed_forms.form_slopes import ClassSlopes, Sides
from relparallel.reliability.closed_forms.job_forms import JOINED_EXACTLY, pairs_joined
from relparallel.reliability.closed_forms.pair_slopes import slopes_of_pairs
from relparallel.reliability.closed_forms.partition_slopes import slopes_of_partitions
from relparallel.reliability.lumped.alike_nodes import bipartite_connected
from relparallel.reliability.lumped.lumping import Fabric
from relparallel.reliability.lumped.pod_recognition import Seen, see
from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.result import Reliability, Routing, exactly
from relparallel.topology import Topology

_MOST: Final = 256  # vertices of a side: a second or two
_MOST_PODS: Final = 32  # whose partitions are all summed, so that the answer is exact


class _Inner(NamedTuple):
    """A form as in `Form`, and the chance of switches of the fabric that must work in any case."""

    chance: Chance
    form: str
    slopes: Callable[[], ClassSlopes] | None = None
    needed: Chance = CERTAIN


class Form(NamedTuple):
    """A closed form that answers a question."""

    inner: Chance
    own: Chance
    name: str
    slopes: Callable[[], ClassSlopes] | None = None

    def answer(self, routing: Routing) -> Reliability:
        """As a result."""
        return exactly(*series(self.inner, self.own), "closed_form", routing, reason=self.name)


def read_form(topology: Topology, problem: Problem, routing: Routing) -> Form:
    """The closed form that answers a question."""
    own = [tuple(chances) for chances in problem.node[problem.terminals].tolist()]
    seen = see(topology, problem) if len(own) > 1 else None
    if len(own) == 1:
        return Form(CERTAIN, own[0], "the one terminal")
    if seen is None:
        raise NotExactError("its parts form no fabric of tiers that are alike")
    if routing == "updown" and not _climbs(topology, problem):
        raise NotExactError("every link must join a tier to the next one for a closed form of up-down")
    inner = _two_tiers(seen, routing) if seen.two_tiers else _three_tiers(seen.fabric, routing)
    return Form(inner.chance, series(seen.outside, inner.needed), inner.form, inner.slopes)


def _climbs(topology: Topology, problem: Problem) -> bool:
    """Whether every link joins a tier to the next one, and terminals that forward nothing are lowest."""
    tier, mute = topology.tier, problem.terminals[~problem.transit[problem.terminals]]
    tiers, ranks = np.unique(tier[problem.edges], return_inverse=True)
    steps = np.abs(np.diff(ranks.reshape(-1, 2), axis=1))
    return bool((steps == 1).all() and (tier[mute] == tiers[0]).all())


def _two_tiers(seen: Seen, routing: Routing) -> _Inner:
    """Leaves, which are the aggregation switches of the fabric, under spines."""
    fabric = seen.fabric
    terminals = sum(count for count, ends, _ in fabric.pods if ends)
    others, spines = sum(count for count, *_ in fabric.pods) - terminals, fabric.cores
    leaf, spine, link = fabric.aggregation, fabric.core, fabric.core_link
    own = series(*[leaf] * terminals)
    if terminals == 1:
        return _Inner(CERTAIN, "the one leaf", partial(ClassSlopes, needed=True), own)
    if routing == "updown":
        if terminals > JOINED_EXACTLY:
            raise NotExactError(_few_pairs("leaves", terminals))
        asked = 1, spines, range(terminals), spine, CERTAIN, link, CERTAIN
        name = f"every pair of {terminals} leaves below {spines} spines"
        return _Inner(pairs_joined(*asked), name, partial(slopes_of_pairs, *asked, needed=True), own)
    sides = Sides(terminals, others, spines, leaf, spine, link)
    name = f"components among {terminals + others} leaves and {spines} spines"
    return _Inner(_joined(sides), name, sides.link_slopes, own)


def _three_tiers(fabric: Fabric, routing: Routing) -> _Inner:
    """Edge switches in pods under planes of cores."""
    pods = [ends for count, ends, _ in fabric.pods for _ in range(count) if ends]
    if sum(pods) == 1:
        return _Inner(CERTAIN, "the one edge switch", ClassSlopes)
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
        inner, switches = parallel(*[width] * fabric.planes), fabric.planes * fabric.aggregations
        slopes = partial(ClassSlopes, near=fabric.aggregation[1] ** (switches - 1))
        return _Inner(inner, f"{fabric.planes} planes of one pod", slopes)
    return _pods_together(fabric, width, len(pods), idle)


def _pods_together(fabric: Fabric, width: Chance, pods: int, idle: int) -> _Inner:
    """Pods each of which holds together, joined by planes of cores."""
    every, planes, cores = pods + idle, fabric.planes, fabric.cores
    text = f"{every} pods and {planes} planes"
    if fabric.core_link == CERTAIN:
        sides = Sides(pods, idle, planes, CERTAIN, parallel(*[fabric.core] * cores), width)
        lost = fabric.aggregation[1] ** (fabric.aggregations - 1), fabric.core[1] ** (cores - 1)
        return _Inner(_joined(sides), f"components among {text}", partial(sides.switch_slopes, *lost))
    if fabric.aggregations > 1:
        raise NotExactError("pods must have one aggregation switch per plane where cables to cores fail")
    if planes == 1 or width == CERTAIN:  # pods and single cores are the two sides
        total, own = planes * cores, series(*[width] * pods)
        sides = Sides(pods, idle, total, width, fabric.core, fabric.core_link)
        name = f"components among {every} pods and {total} cores"
        return _Inner(_joined(sides), name, sides.link_slopes, own)
    core, aggregation, link = chances = fabric.core, fabric.aggregation, fabric.core_link
    if planes != cores or every != 2 * cores or every > _MOST_PODS:
        raise NotExactError(
            f"pods must be those of a k-ary fat-tree with k <= {_MOST_PODS} where cables to cores fail, "
            f"got {text} of {cores} cores"
        )
    if any(chance != part(chance[0]) for chance in chances):
        raise NotExactError("chances of failure must not be smaller than the last digit of 1 - up")
    ups = core[0], aggregation[0], link[0]
    found = pods_apart(every, *ups, pods)
    if found.lower < found.upper:
        raise NotExactError(f"failures are too frequent for the partitions of {every} pods")
    slopes = partial(slopes_of_partitions, every, *ups, pods, found.together) if min(ups) > 0 else None
    return _Inner((found.together, found.upper), f"partitions of {text} of {cores} cores", slopes)


def _by_pairs(fabric: Fabric, pods: list[int]) -> _Inner:
    """A few edge switches, every two of which need a way up and down."""
    seats = [pod for pod, ends in enumerate(pods) for _ in range(ends)]
    if len(seats) > JOINED_EXACTLY:
        raise NotExactError(_few_pairs("edge switches", len(seats)))
    if fabric.aggregations > 1:
        raise NotExactError("pods must have one aggregation switch per plane for a closed form of up-down")
    chances = fabric.core, fabric.aggregation, fabric.core_link, fabric.edge_link
    asked = fabric.planes, fabric.cores, seats, *chances
    name = f"every pair of {len(seats)} edge switches below {fabric.planes} planes"
    return _Inner(pairs_joined(*asked), name, partial(slopes_of_pairs, *asked))


def _joined(sides: Sides) -> Chance:
    """Chance that rows which are up are connected by columns and by other rows that may fail."""
    rows, others, columns, other, column, link = sides
    if max(rows + others, columns) > _MOST:
        raise NotExactError(
            f"sides must have at most {_MOST} alike vertices for a closed form, "
            f"got {rows + others} and {columns}"
        )
    return bipartite_connected((rows, others), (0, columns), link, other, column)


def _few_pairs(kind: str, count: int) -> str:
    """Why up-down routing among many has no closed form."""
    return f"terminals must lie at no more than {JOINED_EXACTLY} {kind} for up-down routing, got {count}"
