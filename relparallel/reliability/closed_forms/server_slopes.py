"""How much each cable, server and switch matters to a pair of servers that forward.

Every part of a BCube or DCell is a switch or belongs to one strand: to a link between two switches, which is
made of servers and their cables, or to an arm of the pair. A strand needs all its parts, so a part's slope is
that of its strand, times the chance of the strand's other parts. In a ring the two ways round are strands.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import series
from relparallel.reliability.closed_forms.crowd_slopes import crowd_slopes
from relparallel.reliability.closed_forms.crowds import Crowd
from relparallel.reliability.problem import Problem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def server_slopes(problem: Problem, crowd: Crowd, ends: IntArray, apart: float) -> FloatArray:
    """By how much the chance that a pair of servers is joined grows with that of each part.

    Notes
    -----
    O(m) operations beside those of `crowd_slopes`.
    """
    slopes, edges, pair = crowd_slopes(crowd), problem.edges, problem.terminals.tolist()
    here, there = _classes(crowd)[ends].T
    switch, relay = ends[:, 0] == ends[:, 1], ends[:, 0] != ends[:, 1]
    relay[pair] = False
    strand = slopes.link[here, there] * crowd.link[0]  # times the chance of all its parts
    of_pair, at_pair = {}, np.isin(edges, pair)
    for row in np.flatnonzero(at_pair.any(axis=1) & ~at_pair.all(axis=1)).tolist():
        end = int(pair[1] in edges[row])
        far = int(edges[row].sum()) - pair[end]
        chance = (crowd.first, crowd.second)[end][int(ends[far, 0])]
        of_pair[row] = slopes.arms[end, here[far]] * chance[0]
        if relay[far]:  # the partner belongs to the arm
            strand[far] = of_pair[row]
    by_link, by_node = strand[np.where(relay[edges[:, 0]], *edges.T)], np.where(relay, strand, 0.0)
    by_link[list(of_pair)] = list(of_pair.values())
    by_link, by_node = by_link / problem.link[:, 0], by_node / problem.node[:, 0]
    by_node[switch] = slopes.vertex[here[switch]]
    found = np.concatenate([by_link, by_node])
    for row in np.flatnonzero(at_pair.all(axis=1)).tolist():  # a cable of the pair's own, beside the crowd
        found *= problem.link[row, 1]
        found[row] = apart
    return found


def _classes(crowd: Crowd) -> IntArray:
    """Place among `CrowdSlopes` of each vertex of a crowd whose sides are equally long."""
    named, total = len(crowd.sides), len(crowd.sides) + sum(crowd.others)
    place = named + np.arange(total) // (total // len(crowd.others))
    place[list(crowd.sides)] = np.arange(named)
    return place


def ring_slopes(problem: Problem, around: IntArray) -> FloatArray:
    """The same for two nodes of a ring.

    Notes
    -----
    O(n) operations.
    """
    n = len(around)
    place = np.empty(n, dtype=np.int64)
    place[around] = np.arange(n)
    target = place[problem.terminals].max()
    low, high = np.sort(place[problem.edges], axis=1).T
    link = np.where((low == 0) & (high == n - 1), n - 1, low)  # a link follows the node before it
    beyond = np.concatenate([link >= target, place > target])
    chances = np.concatenate([problem.link, problem.node])
    inside = np.ones(len(chances), dtype=bool)
    inside[n + problem.terminals] = False
    ways = [series(*chances[inside & (beyond == way)].tolist()) for way in (False, True)]
    up, down = (np.array(column) for column in zip(*ways, strict=True))
    own = beyond.astype(np.int64)
    return np.where(inside, up[own] / chances[:, 0] * down[1 - own], 0.0)
