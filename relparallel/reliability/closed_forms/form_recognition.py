"""The closed form for a question, found by the network's wiring and probabilities, not its name.

A form needs interchangeable parts: `match_fabric` sees whether there are tiers of them. Which form
applies then depends on the parts that fail and on the terminals; where none does, the reason is
said.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.closed_forms.fat_tree_forms import pods_apart
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.lumped.fabric import Fabric, Match, Pods, match_fabric
from relparallel.reliability.lumped.interchangeable_nodes import bipartite_connected
from relparallel.reliability.probability import CERTAIN, Chance, parallel, part, series
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability, Routing, bracketed, exactly
from relparallel.topology import Topology

_MOST: Final = 256  # vertices of a side: a second or two
_MOST_PODS: Final = 32  # whose partitions are all summed, so that the answer is exact
_FOLLOWED: Final = 5  # edge switches whose ten pairs are followed one by one

FloatArray = NDArray[np.float64]


class AnyPath(NamedTuple):
    """What decides whether terminals are joined over any path, and pods with and without terminals.

    "one": nothing but their only switch; "pod": any aggregation switch; "planes" and "cores": a
    bipartite graph of pods and those; "partitions": all ways to split the pods of a fat-tree.
    """

    decides: Literal["one", "pod", "planes", "cores", "partitions"]
    near: Pods
    far: Pods
    name: str


def read_form(topology: Topology, problem: Problem, routing: Routing) -> Reliability:
    """Answer a question by the closed form that applies."""
    if len(problem.terminals) == 1:
        return _answer(
            "the one terminal", routing, CERTAIN, tuple(problem.node[problem.terminals[0]].tolist())
        )
    match = match_fabric(topology, problem)
    if match is None:
        raise NotExactError("its parts form no fabric of tiers that are alike")
    fabric, outside = match.fabric, match.outside(problem)
    if routing == "any":
        path = over_any_path(match)
        leaves = (
            [path.near.aggregation] * path.near.copies
            if path.decides == "cores" or match.two_tiers
            else []
        )
        return _answer(path.name, routing, _connected(fabric, path), outside, *leaves)
    seats, above, leaves, joined = _climbing(topology, problem, match)
    if len(seats) == 1:
        return _answer("the one edge switch", routing, CERTAIN, outside, *leaves)
    if len(seats) > _FOLLOWED:
        limit = f"no more than {_FOLLOWED} {above[0]} for up-down routing"
        raise NotExactError(f"terminals must lie at {limit}, got {len(seats)}")
    return _answer(
        f"every pair of {len(seats)} {above[0]} below {above[1]}",
        routing,
        joined(seats),
        outside,
        *leaves,
    )


def bound_pairs(topology: Topology, problem: Problem) -> Reliability:
    """Bracket over up-down paths: the worst pair of edge switches, and the sum over all pairs."""
    match = match_fabric(topology, problem)
    if match is None or len(problem.terminals) == 1:
        raise NotExactError("its parts form no fabric of tiers that are alike")
    seats, above, leaves, joined = _climbing(topology, problem, match)
    inside = sum(math.comb(seats.count(pod), 2) for pod in set(seats))
    pairs = {(0, 0): inside, (0, 1): math.comb(len(seats), 2) - inside}
    down = [(joined(pair)[1], count) for pair, count in pairs.items() if count]
    ends = series(match.outside(problem), *leaves)
    every, worst = (
        min(sum(chance * count for chance, count in down), 1.0),
        max(chance for chance, _ in down),
    )
    lower, upper = (series(ends, (1.0 - chance, chance))[1] for chance in (worst, every))
    upper = min(upper, 1.0)
    reason = f"the worst and all of {math.comb(len(seats), 2)} pairs of {above[0]}"
    return bracketed(min(lower, upper), upper, "updown", reason)


def _climbing(
    topology: Topology, problem: Problem, match: Match
) -> tuple[list[int], tuple[str, str], list[Chance], Callable[[Sequence[int]], Chance]]:
    """Pods of terminals' edge switches, names, leaves, and the chance that such ones are joined."""
    if not _climbs(topology, problem):
        raise NotExactError(
            "every link must join a tier to the next one for a closed form of up-down"
        )
    fabric, near, two = match.fabric, _alike(match.fabric.terminal_pods), match.two_tiers
    seats = [pod for pod, count in enumerate(_terminals_of_pods(fabric)) for _ in range(count)]
    aggregation = CERTAIN if two else near.aggregation
    below = (
        ("leaves", f"{fabric.cores} spines")
        if two
        else ("edge switches", f"{fabric.planes} planes")
    )

    def joined(pods: Sequence[int]) -> Chance:
        if fabric.aggregations > 1:
            raise NotExactError(
                "pods must have one aggregation switch per plane for a closed form of up-down"
            )
        size = fabric.planes, fabric.cores, pods
        return pairs_joined(*size, fabric.core, aggregation, near.core_link, near.edge_link)

    return seats, below, [near.aggregation] * len(seats) if two else [], joined


def over_any_path(match: Match) -> AnyPath:
    """What decides over any path."""
    fabric, planes, cores = match.fabric, match.fabric.planes, match.fabric.cores
    near, idle = _alike(fabric.terminal_pods), [pods for pods in fabric.pods if not pods.terminals]
    far = _alike(idle) if idle else near._replace(copies=0)
    if match.two_tiers:
        return AnyPath(
            "one" if near.copies == 1 else "cores",
            near,
            far,
            "the one leaf"
            if near.copies == 1
            else f"components among {near.copies + far.copies} leaves and {planes * cores} spines",
        )
    if sum(_terminals_of_pods(fabric)) == 1:
        return AnyPath("one", near, far, "the one edge switch")
    below = {chance for pods in fabric.pods for chance in (pods.edge_link, pods.other_link)}
    if below != {CERTAIN} or any(pods.edge != CERTAIN for pods in idle):
        raise NotExactError(
            "cables between edge and aggregation switches, and edge switches of pods without a "
            "terminal, "
            "must not fail for a closed form over any path"
        )
    if near.copies == 1:
        return AnyPath("pod", near, far, f"{planes} planes of one pod")
    text = f"{near.copies + far.copies} pods and {planes} planes"
    if near.core_link == far.core_link == CERTAIN:
        return AnyPath("planes", near, far, f"components among {text}")
    if fabric.aggregations > 1:
        raise NotExactError(
            "pods must have one aggregation switch per plane where cables to cores fail"
        )
    # pods and single cores are the sides
    if planes == 1 or near.aggregation == far.aggregation == CERTAIN:
        name = f"components among {near.copies + far.copies} pods and {planes * cores} cores"
        return AnyPath("cores", near, far, name)
    if planes != cores or near.copies + far.copies != 2 * cores or 2 * cores > _MOST_PODS:
        raise NotExactError(
            f"pods must be those of a k-ary fat-tree with k <= {_MOST_PODS} where cables to cores "
            "fail, "
            f"got {text} of {cores} cores"
        )
    return AnyPath("partitions", near, far, f"partitions of {text} of {cores} cores")


def _connected(fabric: Fabric, path: AnyPath) -> Chance:
    """Probability that the terminal pods are joined; leaves and hosts are left to the caller."""
    near, far = path.near, path.far
    if path.decides == "one":
        return CERTAIN
    if path.decides == "pod":
        return parallel(*[near.aggregation] * (fabric.planes * fabric.aggregations))
    if (near.aggregation, near.core_link) != (far.aggregation, far.core_link):
        raise NotExactError("pods with and without terminals must be alike for a closed form")
    if path.decides == "partitions":
        return _partitions(fabric, path)
    columns = fabric.planes if path.decides == "planes" else fabric.planes * fabric.cores
    if max(near.copies + far.copies, columns) > _MOST:
        raise NotExactError(
            f"sides must have at most {_MOST} alike vertices for a closed form, "
            f"got {near.copies + far.copies} and {columns}"
        )
    sides = (near.copies, far.copies), (0, columns)
    if path.decides == "cores":
        return bipartite_connected(*sides, near.core_link, far.aggregation, fabric.core)
    plane, link = (
        parallel(*[fabric.core] * fabric.cores),
        parallel(*[near.aggregation] * fabric.aggregations),
    )
    return bipartite_connected(*sides, link, CERTAIN, plane)


def _partitions(fabric: Fabric, path: AnyPath) -> Chance:
    """The same where the pods of a fat-tree are split in all ways."""
    chances = fabric.core, path.near.aggregation, path.near.core_link
    if any(chance != part(chance[0]) for chance in chances):
        raise NotExactError("chances of failure must not be smaller than the last digit of 1 - up")
    pods = path.near.copies + path.far.copies
    found = pods_apart(pods, chances[0][0], chances[1][0], chances[2][0], path.near.copies)
    if found.lower < found.upper:
        raise NotExactError(f"failures are too frequent for the partitions of {pods} pods")
    return found.together, found.upper


def _alike(kinds: Sequence[Pods]) -> Pods:
    """All these pods as one kind."""
    if len({(kind.aggregation, kind.core_link, kind.edge_link) for kind in kinds}) > 1:
        raise NotExactError("pods must be alike for a closed form")
    return kinds[0]._replace(copies=sum(kind.copies for kind in kinds))


def _terminals_of_pods(fabric: Fabric) -> list[int]:
    """Edge switches with terminals of each pod that has some."""
    return [pods.terminals for pods in fabric.terminal_pods for _ in range(pods.copies)]


def _climbs(topology: Topology, problem: Problem) -> bool:
    """Whether every link joins adjacent tiers, and terminals that forward nothing are lowest."""
    tier, mute = topology.tier, problem.terminals[~problem.transit[problem.terminals]]
    tiers, ranks = np.unique(tier[problem.edges], return_inverse=True)
    steps = np.abs(np.diff(ranks.reshape(-1, 2), axis=1))
    return bool((steps == 1).all() and (tier[mute] == tiers[0]).all())


def _answer(name: str, routing: Routing, *chances: Chance) -> Reliability:
    """What works if all of these do."""
    return exactly(*series(*chances), "closed_form", routing, reason=name)


def pairs_joined(
    groups: int,
    cores: int,
    pods: Sequence[int],
    core: Chance,
    aggregation: Chance,
    core_link: Chance,
    link: Chance,
) -> Chance:
    """Chance that groups of so many cores join every pair of a few edge switches, given by pod."""
    pairs = [*combinations(range(len(pods)), 2)]
    one_group = np.zeros(2 ** len(pairs))
    for reached in product((True, False), repeat=len(pods)):
        chance = _reached(pods, reached, aggregation, link)
        above = sorted({pod for pod, there in zip(pods, reached, strict=True) if there})
        bridges = [*combinations(above, 2)]
        for mask, weight in enumerate(bridged(cores, above, core, core_link)):
            across = {pair for i, pair in enumerate(bridges) if mask >> i & 1}
            joined = sum(
                1 << i
                for i, (x, y) in enumerate(pairs)
                if reached[x]
                and reached[y]
                and (pods[x] == pods[y] or (pods[x], pods[y]) in across)
            )
            one_group[joined] += chance * weight
    state = unions(one_group, groups)
    return float(state[-1]), float(state[:-1].sum())


def _reached(
    pods: Sequence[int], reached: Sequence[bool], aggregation: Chance, link: Chance
) -> float:
    """Chance that one group reaches just these edge switches from its aggregation switches."""
    total = 1.0
    for pod in set(pods):
        here = [there for place, there in zip(pods, reached, strict=True) if place == pod]
        links = math.prod(link[not there] for there in here)
        total *= aggregation[0] * links + aggregation[1] * (not any(here))
    return total


def bridged(h: int, pods: Sequence[int], core: Chance, core_link: Chance) -> FloatArray:
    """Distribution of the set of pairs of pods, as a bit mask, that h cores join."""
    pairs = [*combinations(range(len(pods)), 2)]
    one_core = np.zeros(2 ** len(pairs))
    one_core[0] = core[1]
    for wired in product((True, False), repeat=len(pods)):
        joined = sum(1 << i for i, (x, y) in enumerate(pairs) if wired[x] and wired[y])
        one_core[joined] += core[0] * math.prod(core_link[not there] for there in wired)
    return unions(one_core, h)


def unions(one: FloatArray, count: int) -> FloatArray:
    """Distribution of the union of ``count`` independent sets, given as bit masks."""
    masks, state = np.arange(one.size), np.zeros(one.size)
    state[0] = 1.0
    for _ in range(count):
        grown = np.zeros(one.size)
        for mask in np.flatnonzero(one):
            grown += np.bincount(masks | mask, weights=one[mask] * state, minlength=one.size)
        state = grown
    return state
