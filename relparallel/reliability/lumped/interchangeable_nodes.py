"""Networks of interchangeable nodes: complete graphs and complete bipartite ones.

Terminals may fail each in its own way. The nodes split into the component of one terminal and the
rest, and only the numbers on both sides count. In floats: take one node out, and let a second one
be in a component of some size without it; the first node must then reach this component, and be
joined to all that is left. Every term is a product of probabilities, and nothing is subtracted from
one but for ``1 - down ** x`` itself.

In integers (`terminals_joined`), with sizes v of all classes, and u of the component of a node of
the first,

    joined[v] = 1 - sum of ways(u, v) joined[u] P(no link from u to the rest) over all u but v.

References
----------
Gilbert, "Random graphs", Annals of Mathematical Statistics 30, 1959.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import product
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.lumped.arithmetic import Scale
from relparallel.reliability.probability import CERTAIN, Chance, series
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability, exactly
from relparallel.topology.symmetry import neighbour_classes

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_MOST_STEPS: Final = 10**8  # of the sums
_MOST_NODES: Final = 1000  # binomial coefficients of more are no floats


class Twins(NamedTuple):
    """A network of alike nodes."""

    complete: bool
    right: BoolArray
    size: NDArray[np.int64]
    link: FloatArray
    other: FloatArray


def twins(problem: Problem) -> Reliability | None:
    """Exact answer where the network is complete, or complete between two sides of alike nodes."""
    found = recognised(problem)
    if found is None:
        return None
    if found.complete:
        terminals, others = found.size[0].tolist()
        return with_terminals(
            complete_connected(terminals, others, found.link, found.other[0]), problem
        )
    (a, more), (b, rest) = found.size.tolist()
    inner = bipartite_sum(choices(len(problem.node)), found.size, found.link, found.other)
    return with_terminals((inner, a * (more + 1) * (b + 1) * (rest + 1)), problem)


def recognised(problem: Problem) -> Twins | None:
    """What is alike in the network; None if it is of another kind, or a tree, or too large."""
    n, m = len(problem.node), len(problem.edges)
    if m < n or n < 3 or n > _MOST_NODES:  # a tree, which reductions undo, or in parts
        return None
    complete, apart = 2 * m == n * (n - 1), n * n - 4 * m  # the squared difference of the two sides
    if not complete and (apart < 0 or math.isqrt(apart) ** 2 < apart or m * m > _MOST_STEPS):
        return None
    right = np.zeros(n, dtype=np.bool_)
    if not complete:
        side = neighbour_classes(problem.edges, right)
        right = side != side[problem.terminals[0]]
    relay = np.ones(n, dtype=np.bool_)
    relay[problem.terminals] = False
    size = np.bincount(2 * right + relay, minlength=4).reshape(2, 2)
    joined = complete or (
        size.sum(axis=1).prod() == m and (right[problem.edges].sum(axis=1) == 1).all()
    )
    link, *other = (
        same(own)
        for own in (problem.link, problem.node[relay & ~right], problem.node[relay & right])
    )
    if not (joined and problem.transit.all()) or link is None or None in other:
        return None
    return Twins(complete, right, size, np.array(link), np.array(other, dtype=np.float64))


def complete_connected(
    terminals: int, others: int, link: Chance | FloatArray, other: Chance | FloatArray
) -> tuple[Chance, int]:
    """Chance that the terminals of a complete graph are connected, and the number of terms.

    Notes
    -----
    The component of one terminal has t terminals, h others, and all of k = t + h, with probability
    ::

        C(T - 1, t - 1) C(O, h) joined[k] up^h link_down^(k (T - t)) (down + up link_down^k)^(O - h)

    O(n^2) operations.
    """
    chances = np.array([link, other], dtype=np.float64)
    inner = complete_sum(choices(terminals + others), terminals, others, *chances)
    return inner, terminals * (others + 1)


def bipartite_connected(
    rows: tuple[int, int], columns: tuple[int, int], link: Chance, row: Chance, column: Chance
) -> Chance:
    """Chance that the terminals on both sides of a complete bipartite graph are connected.

    Notes
    -----
    O(rows^2 columns^2) operations.
    """
    chances, table = (
        np.array([link, row, column], dtype=np.float64),
        choices(sum(rows) + sum(columns)),
    )
    up, down = bipartite_sum(table, np.array([rows, columns]), chances[0], chances[1:])
    return (1.0 - down, down) if down < up else (up, 1.0 - up)


def same(chances: FloatArray) -> Chance | None:
    """The chance that all rows of ``chances`` have; certain if there is none."""
    if (chances != chances[:1]).any():
        return None
    return tuple(chances[0].tolist()) if len(chances) else CERTAIN


def with_terminals(inner: tuple[Chance, int], problem: Problem) -> Reliability:
    """The answer with the terminals' own failures."""
    own = map(tuple, problem.node[problem.terminals].tolist())
    return exactly(
        *series(inner[0], *own), "exact", states=inner[1], reason=f"{inner[1]} lumped states"
    )


@lru_cache(maxsize=16)
def choices(most: int) -> NDArray[np.float64]:
    """Binomial coefficients of n and k up to ``most``, each correctly rounded."""
    table = np.zeros((most + 1, most + 1))
    row = [1]
    for n in range(most + 1):
        table[n, : n + 1] = row
        row = [1, *map(int.__add__, row, row[1:]), 1]
    table.flags.writeable = False
    return table


@numba.njit(cache=True)
def powers(most, chance):  # type: ignore[no-untyped-def]
    """Powers 0..most of a chance."""
    found = np.empty(most + 1)
    for k in range(most + 1):
        found[k] = chance ** float(k)
    return found


@numba.njit(cache=True)
def hits(most, up, down):  # type: ignore[no-untyped-def]
    """Chance that one of k = 0..most links is up."""
    logarithm = np.log1p(-up) if up < 0.5 else np.log(down)
    found = np.zeros(most + 1)
    for k in range(1, most + 1):
        found[k] = -np.expm1(k * logarithm)
    return found


@numba.njit(cache=True)
def escapes(most, parts, up, miss):  # type: ignore[no-untyped-def]
    """Chance that none of k = 0..parts nodes is up and has one of x = 0..most links up, [x, k]."""
    found = np.empty((most + 1, parts + 1))
    for x in range(most + 1):
        one = up[1] + up[0] * miss[x]
        for k in range(parts + 1):
            found[x, k] = one ** float(k)
    return found


@numba.njit(cache=True)
def joined_complete(ways, n, hit, miss):  # type: ignore[no-untyped-def]
    """Chance that a complete graph of k = 0..n nodes is connected; 0 for none."""
    joined = np.zeros(n + 1)
    joined[1] = 1.0
    for k in range(2, n + 1):
        for i in range(1, k):
            joined[k] += (
                ways[k - 2, i - 1] * joined[i] * hit[i] * miss[i * (k - 1 - i)] * joined[k - i]
            )
    return joined


@numba.njit(cache=True)
def joined_sides(ways, rows, columns, hit, miss):  # type: ignore[no-untyped-def]
    """Chance that a complete bipartite graph is connected, by rows and columns; 0 if both are 0."""
    joined = np.zeros((rows + 1, columns + 1))
    joined[0, 1] = joined[1, 0] = 1.0
    for r in range(1, rows + 1):
        for c in range(1, columns + 1):
            total = 0.0
            for i in range(r):
                some = 0.0
                for j in range(1, c + 1 if i == r - 1 else c):
                    mass = ways[c - 1, j - 1] * joined[i, j] * hit[j]
                    some += mass * miss[i * (c - j) + j * (r - 1 - i)] * joined[r - i, c - j]
                total += ways[r - 1, i] * some
            joined[r, c] = total
    return joined


@numba.njit(cache=True)
def complete_sum(ways, terminals, others, link, other):  # type: ignore[no-untyped-def]
    """Chances (up, down) that terminals of a complete graph are connected, by one's component."""
    n = terminals + others
    miss = powers(n * n // 4, link[1])
    joined = joined_complete(ways, n, hits(n, link[0], link[1]), miss)
    escape, relay = escapes(n, others, other, miss), powers(others, other[0])
    up, down = 0.0, 0.0
    for h in range(others + 1):
        some = ways[others, h] * relay[h]
        for t in range(1, terminals + 1):
            mass = some * ways[terminals - 1, t - 1] * joined[t + h] * escape[t + h, others - h]
            if t == terminals:
                up += mass
            else:
                down += mass * miss[(t + h) * (terminals - t)]
    return up, down


@numba.njit(cache=True)
def bipartite_sum(ways, size, link, other):  # type: ignore[no-untyped-def]
    """Chances (up, down) that terminals of two sides are joined, by the component of a first one.

    ``size[side]`` are the terminals and the others of a side, ``other[side]`` the chances of the
    latter.
    """
    return component_sum(ways, size, other, *tables(ways, size, link, other))


@numba.njit(cache=True)
def tables(ways, size, link, other):  # type: ignore[no-untyped-def]
    """Tables for component sums: `powers`, `hits`, `joined_sides`, `escapes` of both sides."""
    (a, more), (b, rest) = size
    rows, columns = a + more, b + rest
    miss, hit = powers(rows * columns, link[1]), hits(max(rows, columns), link[0], link[1])
    joined = joined_sides(ways, rows, columns, hit, miss)
    return (
        miss,
        hit,
        joined,
        escapes(columns, more, other[0], miss),
        escapes(rows, rest, other[1], miss),
    )


@numba.njit(cache=True)
def component_sum(ways, size, other, miss, hit, joined, below, above):  # type: ignore[no-untyped-def]
    """The sum of `bipartite_sum` from its `tables`."""
    (a, more), (b, rest) = size
    row_up, column_up = powers(more, other[0, 0]), powers(rest, other[1, 0])
    up, down = 0.0, 0.0
    for s in range(1, a + 1):
        for h in range(more + 1):
            some, i = ways[a - 1, s - 1] * ways[more, h] * row_up[h], s + h
            for t in range(b + 1):
                for g in range(rest + 1):
                    j = t + g
                    mass = some * ways[b, t] * ways[rest, g] * column_up[g] * joined[i, j]
                    mass *= (
                        below[j, more - h] * above[i, rest - g] * miss[i * (b - t) + j * (a - s)]
                    )
                    if s == a and t == b:
                        up += mass
                    else:
                        down += mass
    return up, down


_MOST_TERMS: Final = 3 * 10**7  # of a sum: half a minute

Integers = NDArray[Any]


def terminals_joined(
    size: Sequence[int],
    terminals: Sequence[bool],
    ups: Sequence[Fraction],
    links: Mapping[tuple[int, int], Fraction],
    smallest: Fraction,
) -> Fraction:
    """Probability that all nodes of terminal classes, the first one among them, are up and joined.

    ``links``: up-probability of the links between two classes; to 50 bits of ``smallest``.
    """
    terms = math.prod((n + 1) * (n + 2) // 2 for n in size)
    if terms > _MOST_TERMS:
        raise NotExactError(f"classes of {list(size)} nodes take {terms} terms for importance")
    nodes = sum(size)
    scale = Scale(Scale.of(nodes, nodes, smallest).bits + 2 * nodes)
    down = {
        pair: _powers(1 - up, math.prod(max(size[a], 1) for a in pair), scale)
        for pair, up in links.items()
    }
    joined = _joined(size, down, scale)
    whole = tuple(
        slice(n, None) if needed else slice(None) for n, needed in zip(size, terminals, strict=True)
    )
    found = np.indices(joined.shape)[(slice(None), *whole)]
    mass = joined[whole]
    for b, n in enumerate(size):
        if terminals[b]:
            mass = scale.times(mass, scale.integer(ups[b] ** n))
            continue
        missed = [down[a, b][found[a]] for a in range(len(size)) if (a, b) in down]
        missed += [down[b, a][found[a]] for a in range(len(size)) if (b, a) in down and a != b]
        miss = reduce(scale.times, missed)
        up = scale.integer(ups[b])
        alone = scale.one - up + scale.times(up, miss)
        weights = scale.times(
            _powers(ups[b], n, scale)[found[b]], _choices(n)[found[b]] * scale.one
        )
        mass = scale.times(mass, weights)
        for left in range(1, n + 1):
            mass = np.where(n - found[b] >= left, scale.times(mass, alone), mass)
    return Fraction(int(mass.sum()), scale.one)


def _joined(
    size: Sequence[int], down: Mapping[tuple[int, int], Integers], scale: Scale
) -> Integers:
    """Probability that so many nodes of each class, at least one of the first, are joined."""
    joined = np.zeros([n + 1 for n in size], dtype=object)
    every = np.indices(joined.shape)
    for v in product(range(1, size[0] + 1), *(range(n + 1) for n in size[1:])):
        box = (slice(1, v[0] + 1), *(slice(n + 1) for n in v[1:]))
        u = every[(slice(None), *box)]
        mass = joined[box]
        for (a, b), powers in down.items():
            left_a, left_b = v[a] - u[a], v[b] - u[b]
            mass = scale.times(
                mass, powers[u[a] * left_a if a == b else u[a] * left_b + u[b] * left_a]
            )
        ways = [_choices(v[0] - 1), *(_choices(n) for n in v[1:])]
        joined[v] = scale.one - int((mass * reduce(np.multiply.outer, ways)).sum())
    return joined


def _powers(x: Fraction, most: int, scale: Scale) -> Integers:
    """Powers 0..most."""
    found, one = [scale.one], scale.integer(x)
    for _ in range(most):
        found.append(scale.times(found[-1], one))
    return np.array(found, dtype=object)


def _choices(n: int) -> Integers:
    """Binomial coefficients of n."""
    return np.array([math.comb(n, k) for k in range(n + 1)], dtype=object)
