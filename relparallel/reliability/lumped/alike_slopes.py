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
    choices,
    complete_sum,
    component_sum,
    escapes,
    hits,
    joined_complete,
    powers,
    tables,
)
from relparallel.reliability.problem import Problem

FloatArray = NDArray[np.float64]

_MOST_STEPS: Final = 10**8  # of the sums
_MOST_NODES: Final = 600  # 3 ** 600 ways to split them are a float


def twin_slopes(problem: Problem) -> tuple[float, FloatArray] | None:
    """Unreliability, and by how much it grows when a link or a node is down.

    Notes
    -----
    With T terminals of n nodes O(n^2 + T (n - T)^2) operations if the graph is complete; if it is bipartite,
    O(rows^2 columns^2), as for the chance alone.
    """
    found = recognised(problem)
    if found is None:
        return None
    splits = (found.size[:, 0] + 1) * (found.size[:, 1] + 1) + found.size[:, 1] * (found.size[:, 1] + 1) // 2
    if splits.prod() > _MOST_STEPS or len(problem.node) > _MOST_NODES:
        return None
    sums = _complete_slopes if found.complete else bipartite_slopes
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
    n = terminals + others
    hit, miss = hits(n, link[0], link[1]), powers(n * n // 4, link[1])
    joined, escape = joined_complete(ways, n, hit, miss), escapes(n, others, other[0], miss)
    relay, links, nodes = powers(others, other[0, 0]), np.zeros((2, 2)), np.zeros(2)
    for t in range(1, terminals):
        for h in range(others + 1):
            a = t + h
            some = ways[terminals, t] * ways[others, h] * joined[a]
            for g in range(others - h + 1):
                b = terminals - t + g
                mass = some * ways[others - h, g] * joined[b] * escape[a + b, others - h - g]
                apart = mass * relay[h + g] * miss[a * b - 1]
                links[0, 0] += apart * t * (terminals - t)
                links[0, 1] += apart * t * g
                links[1, 1] += apart * h * g
                nodes[0] += mass * relay[max(h + g - 1, 0)] * miss[a * (b - 1)] * hit[a] * t * g
    links[0, 0] /= max(terminals * (terminals - 1), 1)
    links[0, 1] /= max(terminals * others, 1)
    links[1, 1] /= max(others * (others - 1), 1)
    links[1, 0] = links[0, 1]
    nodes[0] /= max(terminals * others, 1)
    return complete_sum(ways, terminals, others, link, other[0]), links, nodes


@numba.njit(cache=True)
def bipartite_slopes(ways, size, link, other):  # type: ignore[no-untyped-def]
    """The same for two sides: i rows and j columns are in one component, x and y in the other.

    How many of them are terminals matters only to the class that a part belongs to: `_shares` knows that.
    For each number of rows in both, the sums over j and y are products of matrices: `found` has by i and kind
    what multiplies the rows' shares, for links to terminals and to others, other rows, and other columns.
    """
    (a, more), (b, rest) = size
    rows, known = a + more, tables(ways, size, link, other)
    row_ways, row = _shares(ways, a, more)
    column_ways, column = _shares(ways, b, rest)
    row_up, links, nodes = powers(more, other[0, 0]), np.zeros((2, 2)), np.zeros(2)
    for both in range(a, rows + 1):
        most = 0.0
        for i in range(both + 1):
            most = max(most, row_ways[i, both - i])
        inner = _columns_within(both, rows - both, size, other[1], known, most * column_ways, column)
        left, right = _rows_within(both, size, known)
        for i in range(both + 1):
            left[:, i] *= row_ways[i, both - i] / most * row_up[max(both - a - 1, 0)]
        left[:2] *= row_up[min(both - a, 1)]
        left[3] *= row_up[min(both - a, 1)]
        found = np.zeros((both + 1, len(inner), 4))
        for c in range(len(inner)):
            for k in range(0 if b > 0 else 1, 4):
                found[:, c, k] = ((left[k] @ inner[c, k]) * right[k]).sum(axis=1)
        for i in range(both + 1):
            _share_out(row[i, both - i], found[i], links, nodes)
    for side in range(2):
        for far in range(2):
            links[side, far] /= max(size[0, side] * size[1, far], 1)
    nodes[0] /= max(a * more, 1)
    nodes[1] /= max(a * rest, 1)
    return component_sum(ways, size, other, *known), links, nodes


@numba.njit(cache=True)
def _columns_within(both, out, size, chance, known, ways, column):  # type: ignore[no-untyped-def]
    """Weight of y and j columns in the components by kind: [kind, 4, y, j]; ``both`` rows are in them."""
    b, rest = size[1]
    _, _, _, below, above = known
    columns, kinds, up = b + rest, column.shape[2], powers(rest, chance[0])
    found = np.zeros((kinds, 4, columns + 1, columns + 1))
    for y in range(columns + 1):
        for j in range(max(b - y, 0), columns - y + 1):
            m = j + y - b
            mass = ways[j, y] * below[j + y, out] * above[both, rest - m] * up[max(m - 1, 0)]
            alive = mass * up[min(m, 1)]
            for c in range(kinds):
                found[c, 0, y, j] = alive * column[j, y, c, 1]
                found[c, 1, y, j] = alive * column[j, y, c, 3]
                found[c, 2, y, j] = alive * column[j, y, c, 5]
                found[c, 3, y, j] = mass * column[j, y, c, 3]
    return found


@numba.njit(cache=True)
def _rows_within(both, size, known):  # type: ignore[no-untyped-def]
    """Chances that y columns are joined to x rows and miss i others, and that j are to i and miss x.

    Two arrays [4, i, y] and [4, i, j], x = both - i; one link is left out, or the links of one node, which
    hits the other component.
    """
    miss, hit, joined, _, _ = known
    columns = size[1].sum()
    left, right = np.zeros((4, both + 1, columns + 1)), np.zeros((4, both + 1, columns + 1))
    for i in range(both + 1):
        x = both - i
        for y in range(columns + 1):
            if i * y > 0:
                left[0, i, y] = left[1, i, y] = joined[x, y] * miss[i * y - 1]
            if x > 0:
                left[2, i, y] = joined[x, y] * miss[i * y]
            if y > 0:
                left[3, i, y] = joined[x, y] * miss[i * (y - 1)]
        for j in range(columns + 1):
            apart = joined[i, j] * miss[j * x]
            right[0, i, j] = right[1, i, j] = apart
            if x > 0:
                right[2, i, j] = joined[i, j] * miss[j * (x - 1)] * hit[j]
            right[3, i, j] = apart * hit[i]
    return left, right


@numba.njit(cache=True)
def _shares(ways, terminals, others):  # type: ignore[no-untyped-def]
    """Ways to put all terminals, and some others, of a side into two components of i and x of its nodes.

    And, in the mean over these ways, how many terminals are in the first and in the second component, others
    in the first and in the second, terminals in the first times others in the second, and 1: [i, x, kind, 6].
    The kind is 0 where no terminal is in the first, 2 where all are, else 1; it is 0 alone without terminals.
    """
    n = terminals + others
    count, mean = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1, 3 if terminals > 0 else 1, 6))
    for i in range(n + 1):
        for x in range(max(terminals - i, 0), n - i + 1):
            for s in range(max(0, i - others, terminals - x), min(terminals, i) + 1):
                h, k = i - s, x - terminals + s
                some = ways[terminals, s] * ways[others, h] * ways[others - h, k]
                count[i, x] += some
                kind = int(s > 0) + int(s == terminals and s > 0)
                for q, value in enumerate((s, terminals - s, h, k, s * k, 1)):
                    mean[i, x, kind, q] += some * value
            mean[i, x] /= count[i, x]
    return count, mean


@numba.njit(cache=True)
def _share_out(row, found, links, nodes):  # type: ignore[no-untyped-def]
    """Add up all kinds of rows and columns of which both components have a terminal."""
    for r in range(3):
        for c in range(len(found)):
            if r == 1 or (len(found) == 3 and c != r):
                links[0, 0] += row[r, 0] * found[c, 0]
                links[0, 1] += row[r, 0] * found[c, 1]
                links[1, 0] += row[r, 2] * found[c, 0]
                links[1, 1] += row[r, 2] * found[c, 1]
                nodes[0] += row[r, 4] * found[c, 2]
                nodes[1] += row[r, 0] * found[c, 3]


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
