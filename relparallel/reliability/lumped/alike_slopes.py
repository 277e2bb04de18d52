"""How much each part of a network of alike nodes matters: parts of a class matter alike.

A link decides where its ends are in two components, each with a terminal, that hold all terminals together.
A node that is no terminal decides where it belongs to one of the two and would reach the other. So sums over
the sizes of two components give the importance of every class, and all their terms are products of chances.
"""

from __future__ import annotations

from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.lumped.alike_nodes import recognised
from relparallel.reliability.lumped.alike_sums import (
    bipartite_sum,
    choices,
    complete_sum,
    escapes,
    hits,
    joined_complete,
    joined_sides,
    powers,
)
from relparallel.reliability.problem import Problem

__all__ = ["twin_slopes"]

FloatArray = NDArray[np.float64]

_MOST_STEPS: Final = 10**8  # of the sums
_MOST_NODES: Final = 600  # 3 ** 600 ways to split them are a float


def twin_slopes(problem: Problem) -> tuple[float, FloatArray] | None:
    """Unreliability, and by how much it grows when a link or a node is down.

    Parameters
    ----------
    problem : Problem
        The network.

    Returns
    -------
    (float, float64[m + n]) or None
        Links first; None where the network is no `Twins`, or too large.

    Notes
    -----
    With T terminals of n nodes O(n^2 + T (n - T)^2) operations if the graph is complete; if it is bipartite,
    the product of that for both sides at most.

    Examples
    --------
    >>> import networkx as nx
    >>> from relparallel.reliability.problem import read_problem
    >>> failed, slopes = twin_slopes(read_problem(nx.complete_graph(3), [0, 1], 0.5, 1.0))
    >>> failed, slopes.tolist()
    (0.375, [0.75, 0.25, 0.25, 0.625, 0.625, 0.125])
    """
    found = recognised(problem)
    if found is None:
        return None
    steps = int(((found.size[:, 0] + 1) * (found.size[:, 1] + 1) ** 2).prod())
    if steps > _MOST_STEPS or len(problem.node) > _MOST_NODES:
        return None
    sums = _complete_slopes if found.complete else _bipartite_slopes
    inner = sums(choices(len(problem.node)), found.size, found.link, found.other)
    network = problem.edges, problem.node, problem.terminals
    return _by_class(*inner, *network, found.right)  # type: ignore[no-any-return, call-arg]


@numba.njit(cache=True)
def _complete_slopes(ways, size, link, other):  # type: ignore[no-untyped-def]
    """Chances (up, down) of the terminals, and slopes of links and other nodes by their class.

    ``links[a, b]`` has the links between the terminals (0) or the others (1) of the first and second side,
    ``nodes[side]`` the others of a side.
    """
    terminals, others = size[0]
    n, up = terminals + others, other[0, 0]
    hit, miss = hits(n, link[0], link[1]), powers(n * n // 4, link[1])
    joined, escape = joined_complete(ways, n, hit, miss), escapes(n, others, other[0], miss)
    relay, links, nodes = powers(others, up), np.zeros((2, 2)), np.zeros(2)
    for t in range(1, terminals):
        for h in range(others + 1):
            a = t + h
            some = ways[terminals, t] * ways[others, h] * joined[a]
            for g in range(others - h + 1):
                b = terminals - t + g
                mass = some * ways[others - h, g] * joined[b] * relay[h + g] * escape[a + b, others - h - g]
                apart = mass * miss[a * b - 1]
                links[0, 0] += apart * t * (terminals - t)
                links[0, 1] += apart * t * g
                links[1, 1] += apart * h * g
                nodes[0] += mass * miss[a * (b - 1)] * hit[a] * t * g
    links[0, 0] /= max(terminals * (terminals - 1), 1)
    links[0, 1] /= max(terminals * others, 1)
    links[1, 1] /= max(others * (others - 1), 1)
    links[1, 0] = links[0, 1]
    nodes[0] /= max(terminals * others, 1) * up
    return complete_sum(ways, terminals, others, link, other[0]), links, nodes


@numba.njit(cache=True)
def _bipartite_slopes(ways, size, link, other):  # type: ignore[no-untyped-def]
    """The same for two sides: rows s, h, k and columns t, g, l are terminals and others in components."""
    (a, more), (b, rest) = size
    rows, columns = a + more, b + rest
    miss, links, nodes = powers(rows * columns, link[1]), np.zeros((2, 2)), np.zeros(2)
    hit = hits(max(rows, columns), link[0], link[1])
    joined = joined_sides(ways, rows, columns, hit, miss)
    below, above = escapes(columns, more, other[0], miss), escapes(rows, rest, other[1], miss)
    row_up, column_up = powers(more, other[0, 0]), powers(rest, other[1, 0])
    for s in range(a + 1):
        for h in range(more + 1):
            for k in range(more - h + 1):
                out, i, x = more - h - k, s + h, a - s + k
                some = ways[a, s] * ways[more, h] * ways[more - h, k] * row_up[h + k]
                for t in range(b + 1):
                    if s + t == 0 or s + t == a + b:
                        continue
                    for g in range(rest + 1):
                        j = t + g
                        if joined[i, j] == 0.0:
                            continue
                        one = some * ways[b, t] * ways[rest, g] * joined[i, j]
                        for l in range(rest - g + 1):  # noqa: E741
                            y = b - t + l
                            if joined[x, y] == 0.0:
                                continue
                            mass = one * ways[rest - g, l] * column_up[g + l] * joined[x, y]
                            mass *= below[j + y, out] * above[i + x, rest - g - l]
                            cut = i * y + j * x
                            if i > 0 and y > 0:
                                apart = mass * miss[cut - 1]
                                links[0, 0] += apart * s * (b - t)
                                links[0, 1] += apart * s * l
                                links[1, 0] += apart * h * (b - t)
                                links[1, 1] += apart * h * l
                            nodes[0] += mass * miss[cut - j] * hit[j] * s * k
                            nodes[1] += mass * miss[cut - i] * hit[i] * s * l
    for row in range(2):
        for column in range(2):
            links[row, column] /= max(size[0, row] * size[1, column], 1)
    nodes[0] /= max(a * more, 1) * other[0, 0]
    nodes[1] /= max(a * rest, 1) * other[1, 0]
    return bipartite_sum(ways, size, link, other), links, nodes


@numba.njit(cache=True)
def _by_class(inner, links, nodes, edges, node, terminals, right):  # type: ignore[no-untyped-def]
    """Unreliability with the terminals' own failures, and the slopes of all links and nodes."""
    m, relay = len(edges), np.ones(len(node), np.bool_)
    failed, alive = inner[1], np.empty(len(terminals) + 1)
    alive[0], later = inner[0], 1.0
    for i in range(len(terminals)):
        relay[terminals[i]] = False
        failed += alive[i] * node[terminals[i], 1]
        alive[i + 1] = alive[i] * node[terminals[i], 0]
        later *= node[terminals[i], 0]
    slopes = np.empty(m + len(node))
    for e in range(m):
        u, v = edges[e]
        if right[u]:
            u, v = v, u
        slopes[e] = links[int(relay[u]), int(relay[v])] * later
    for v in range(len(node)):
        slopes[m + v] = nodes[int(right[v])] * later
    later = 1.0
    for i in range(len(terminals) - 1, -1, -1):
        slopes[m + terminals[i]] = alive[i] * later
        later *= node[terminals[i], 0]
    return failed, slopes
