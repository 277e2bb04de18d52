"""Upper bounds of the unreliability from connections that share nothing that fails.

A connection is a tree that joins all terminals: a path for two, a spanning tree for all nodes. Connections
that share no part that can fail are independent, and the network fails only if every one of them does, so

    U <= product over the connections of P(some part of it is down) .

The trees are found greedily: the one in hand grows to the terminal that is most likely within reach
(Takahashi and Matsuyama's heuristic for Steiner trees; Prim's algorithm when every node is a terminal), its
parts are taken out, and the next one starts.

References
----------
Takahashi and Matsuyama, "An approximate solution for the Steiner problem in graphs", Mathematica Japonica 24,
1980. Ball, Colbourn and Provan, "Network reliability", Handbooks in OR and MS 7, 1995 (edge-packing bounds).
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from relparallel.reliability.chances import CERTAIN, Chance, series
from relparallel.reliability.problem import Problem

__all__ = ["disjoint_connections"]

_ROUNDING = 1 + 1e-12  # relative; far more than the rounding of the products


class _Rest(NamedTuple):
    """What the trees so far have left: links by node, and chances of the nodes."""

    links: list[dict[int, Chance]]
    nodes: list[Chance]


def disjoint_connections(problem: Problem) -> float:
    """Upper bound of the unreliability of a block, O(trees * terminals * m log n)."""
    rest = _Rest([{} for _ in problem.node], [(up, down) for up, down in problem.node.tolist()])
    for v in problem.terminals.tolist():
        rest.nodes[v] = (1.0, 0.0)
    for (u, v), (up, down) in zip(problem.edges.tolist(), problem.link.tolist(), strict=True):
        rest.links[u][v] = rest.links[v][u] = (up, down)
    bound = 1.0
    terminals = set(problem.terminals.tolist())
    while bound > 0.0:
        tree = _tree(rest, terminals)
        if tree is None:
            break
        _, down = series(*tree)
        bound *= min(float(down) * _ROUNDING, 1.0)
    return min(bound, 1.0)


def _tree(rest: _Rest, terminals: set[int]) -> list[Chance] | None:
    """Take the parts of a tree that joins the terminals out of the rest; None where they are cut off."""
    root = min(terminals)
    inside, missing = {root}, terminals - {root}
    tree: list[tuple[int, int]] = []
    while missing:
        path = _nearest(rest, inside, missing)
        if path is None:
            return None
        tree += pairwise(path)
        inside.update(path)
        missing.difference_update(path)
    chances = [CERTAIN, *(rest.links[u][v] for u, v in tree)]
    for v in inside - terminals:
        chances.append(rest.nodes[v])
        if rest.nodes[v][1] > 0:
            for u in rest.links[v]:
                del rest.links[u][v]
            rest.links[v].clear()
    for u, v in tree:
        if v in rest.links[u] and rest.links[u][v][1] > 0:
            del rest.links[u][v], rest.links[v][u]
    return chances


def _nearest(rest: _Rest, inside: set[int], missing: set[int]) -> list[int] | None:
    """The likeliest path from the tree to a terminal that it lacks (Dijkstra on -log of the chances)."""
    before: dict[int, int] = {}
    done: set[int] = set()
    heap = [(0.0, v, v) for v in sorted(inside)]
    while heap:
        length, v, via = heappop(heap)
        if v in done:
            continue
        done.add(v)
        before[v] = via
        if v in missing:
            path = [v]
            while path[-1] not in inside:
                path.append(before[path[-1]])
            return path
        for u, (up, _) in rest.links[v].items():
            works = up * rest.nodes[u][0]
            if u not in done and u not in inside and works > 0:
                heappush(heap, (length - math.log(works), u, v))
    return None
