"""How much each vertex, link and arm of a crowd matters to two terminals, by sums over two components.

A link or an arm decides where its ends are in the components of the two terminals, which are apart without
it. A vertex decides where it is in the component of the second terminal, and would reach that of the first
one, which no other vertex of its component does. Named vertices are told one by one, all others by numbers
alone. All terms are products of chances: what matters 1e-60 times as much as another part keeps its digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.closed_forms.crowds import NEVER, Crowd
from relparallel.reliability.lumped.alike_sums import choices, hits, joined_complete, joined_sides, powers

FloatArray = NDArray[np.float64]


class CrowdSlopes(NamedTuple):
    """By how much the chance to be joined grows with the chance of one part of each class."""

    vertex: FloatArray
    link: FloatArray
    arms: FloatArray


def crowd_slopes(crowd: Crowd) -> CrowdSlopes:
    """Slopes of all classes of parts of a crowd.

    Notes
    -----
    O(n^4) operations for two sides of n vertices, O(n^2) for one.
    """
    names, ends = list(crowd.sides), (crowd.first, crowd.second)
    side, complete = np.array([crowd.sides[name] for name in names]), len(crowd.others) == 1
    arms = np.array([[end.get(name, NEVER) for name in names] for end in ends], dtype=np.float64)
    meets = ~np.eye(len(names), dtype=bool) if complete else side[:, None] != side
    lacking = np.zeros_like(meets)
    for end in ends:  # a terminal has taken the place of this link
        at = np.array([name in end for name in names])
        lacking |= meets & at[:, None] & at
    others = np.array([*crowd.others, 0][:2])
    chances = np.array([crowd.vertex, crowd.link], dtype=np.float64)
    ways = choices(len(names) + int(others.sum()))
    return CrowdSlopes(*_slopes(ways, others, side, lacking, meets & ~lacking, complete, chances, arms))


@numba.njit(cache=True)
def _slopes(ways, others, side, lacking, joined, complete, chances, arms):  # type: ignore[no-untyped-def]
    """The sums of `crowd_slopes`: sets of names are bit masks, a component is one with x and y others."""
    k, size, vertex, link = len(side), len(side) + others.sum(), chances[0], chances[1]
    hit, miss = hits(size, link[0], link[1]), powers(size * size, link[1])
    near = _sets(side, joined, complete)
    held = _held(ways, others, side, lacking, complete, near, hit, miss)
    first = _with_terminal(ways, held, arms[0], complete, near, miss)
    second = _with_terminal(ways, held, arms[1], complete, near, miss)
    nodes, links, ends = np.zeros(k + 2), np.zeros((k + 2, k + 2)), np.zeros((2, k))
    for both in range(2**k):
        rest = _left_out(ways, others, both, complete, near, vertex, miss, arms)
        for a in range(2**k):
            if a & ~both == 0 and first[a].sum() > 0:
                b = both & ~a
                escape = _lost(arms[0, :, 1], b), _lost(arms[1, :, 1], a)
                found, inside = _pairs(ways, rest, a, b, first[a], second[b], complete, near, hit, miss, arms)
                _share_links(found, a, b, others, joined, complete, near, escape[0] * escape[1], links)
                for i in range(k):
                    if a >> i & 1:
                        ends[1, i] += found[0] * escape[0] * _lost(arms[1, :, 1], a & ~(1 << i))
                    if b >> i & 1:
                        without = escape[1] * _lost(arms[0, :, 1], b & ~(1 << i))
                        ends[0, i] += found[0] * without
                        nodes[i] += inside[i] * without
                for s in range(2):
                    nodes[k + s] += inside[k + s] * escape[0] * escape[1] / max(others[s], 1)
    return nodes / vertex[0], links, ends


@numba.njit(cache=True)
def _sets(side, joined, complete):  # type: ignore[no-untyped-def]
    """Links between two sets of names, [2^k, 2^k]; names that meet a side, and are on it, [2^k, 2]."""
    sets = 2 ** len(side)
    cross = np.zeros((sets, sets), np.int64)
    meets, count = np.zeros((sets, 2), np.int64), np.zeros((sets, 2), np.int64)
    for some in range(sets):
        for v in range(len(side)):
            if some >> v & 1:
                count[some, side[v]] += 1
                meets[some, side[v] if complete else 1 - side[v]] += 1
                for more in range(sets):
                    for u in range(len(side)):
                        cross[some, more] += joined[v, u] and more >> u & 1
    return cross, meets, count


@numba.njit(cache=True)
def _links(near, complete, a, x, y, b, s, t):  # type: ignore[no-untyped-def]
    """Links between a set of names with x and y others and another one with s and t."""
    cross, meets, _ = near
    between = x * s if complete else x * t + y * s
    return cross[a, b] + meets[a, 0] * s + meets[a, 1] * t + meets[b, 0] * x + meets[b, 1] * y + between


@numba.njit(cache=True)
def _lost(down, some):  # type: ignore[no-untyped-def]
    """Chance that all arms to a set of names are down."""
    chance = 1.0
    for i in range(len(down)):
        if some >> i & 1:
            chance *= down[i]
    return chance


@numba.njit(cache=True)
def _held(ways, others, side, lacking, complete, near, hit, miss):  # type: ignore[no-untyped-def]
    """Chance that a set of names is connected with x and y others, all up, [2^k, x, y].

    Where it has two ends of a link that is lacking, take one out, and let the other be in some component
    without it: this the first one must reach, and be joined to all that is left.
    """
    k, count = len(side), near[2]
    rows, columns = others + count[-1]
    plain = np.empty((rows + 1, columns + 1))
    if complete:
        plain[:, 0] = joined_complete(ways, rows, hit, miss)
    else:
        plain[:] = joined_sides(ways, rows, columns, hit, miss)
    held = np.zeros((2**k, others[0] + 1, others[1] + 1))
    for some in range(2**k):
        out, far = -1, -1
        for i in range(k):
            for j in range(i):
                if lacking[i, j] and some >> i & 1 and some >> j & 1:
                    out, far = 1 << i, 1 << j
        for x in range(others[0] + 1):
            for y in range(others[1] + 1):
                if out < 0:
                    held[some, x, y] = plain[x + count[some, 0], y + count[some, 1]]
                else:
                    held[some, x, y] = _reached(
                        ways, held, some & ~out, out, far, x, y, complete, near, hit, miss
                    )
    return held


@numba.njit(cache=True)
def _reached(ways, held, rest, out, far, x, y, complete, near, hit, miss):  # type: ignore[no-untyped-def]
    """Chance that ``out`` is joined to the component of ``far``, and to all of ``rest`` that is not in it."""
    total = 0.0
    for part in range(rest + 1):
        if part & ~rest == 0 and part & far:
            left = rest & ~part
            for s in range(x + 1):
                for t in range(y + 1):
                    mass = ways[x, s] * ways[y, t] * held[part, s, t] * held[left | out, x - s, y - t]
                    if mass > 0:
                        mass *= hit[_links(near, complete, out, 0, 0, part, s, t)]
                        total += mass * miss[_links(near, complete, part, s, t, left, x - s, y - t)]
    return total


@numba.njit(cache=True)
def _with_terminal(ways, held, arms, complete, near, miss):  # type: ignore[no-untyped-def]
    """Chance that a terminal and a set of names are connected with x and y others, [2^k, x, y]."""
    found, at = np.zeros(held.shape), np.flatnonzero(arms[:, 0])
    found[0, 0, 0] = 1.0
    for some in range(1, len(held)):
        mine = [i for i in at if some >> i & 1]
        if len(mine) == 1:
            found[some] = arms[mine[0], 0] * held[some]
        if len(mine) < 2:
            continue
        (p, q), other = arms[mine[0]], arms[mine[1], 0]
        found[some] = (p + q * other) * held[some]
        for part in range(some):  # both arms join two parts
            if part & ~some == 0 and part >> mine[0] & 1 and not part >> mine[1] & 1:
                for x, y in np.ndindex(held.shape[1:]):
                    for s in range(x + 1):
                        for t in range(y + 1):
                            left = some & ~part
                            apart = miss[_links(near, complete, part, s, t, left, x - s, y - t)]
                            mass = ways[x, s] * ways[y, t] * held[part, s, t] * held[left, x - s, y - t]
                            found[some, x, y] += p * other * apart * mass
    return found


@numba.njit(cache=True)
def _left_out(ways, others, both, complete, near, vertex, miss, arms):  # type: ignore[no-untyped-def]
    """Chance and ways that two components hold x and y others, those within up, and nobody else.

    Who is outside is down, or has no link to either. By x and y.
    """
    _, meets, _ = near
    found, (up, down), opposite = np.empty((others[0] + 1, others[1] + 1)), vertex, 0 if complete else 1
    for x in range(others[0] + 1):
        for y in range(others[1] + 1):
            chance = ways[others[0], x] * ways[others[1], y]
            for i in range(arms.shape[1]):
                exposed = miss[_links(near, complete, 1 << i, 0, 0, both, x, y)]
                chance *= up if both >> i & 1 else down + up * exposed * arms[0, i, 1] * arms[1, i, 1]
            within = x, y
            for s in range(2):
                exposed = miss[meets[both, s] + within[abs(opposite - s)]]
                chance *= up ** float(within[s]) * (down + up * exposed) ** float(others[s] - within[s])
            found[x, y] = chance
    return found


@numba.njit(cache=True)
def _pairs(ways, rest, a, b, first, second, complete, near, hit, miss, arms):  # type: ignore[no-untyped-def]
    """Sums over the others in two components of which the names are known.

    One array has the chance that no link is up between them, and, without one of these links, the means of 1,
    of x and y in the first and in the second component, and of pairs of others in both that meet; the other
    has the chance that a name decides, and an other of either side times their number.
    """
    cross, meets, _ = near
    k, opposite = arms.shape[1], 0 if complete else 1
    found, inside, reach = np.zeros(7), np.zeros(k + 2), np.zeros(k + 2, np.int64)
    for x, y in np.ndindex(first.shape):
        if first[x, y] == 0:
            continue
        mine = x, y
        for i in range(k):
            reach[i] = _links(near, complete, a, x, y, 1 << i, 0, 0)
        for s in range(2):
            reach[k + s] = meets[a, s] + mine[abs(opposite - s)]
        fixed = cross[a, b] + meets[b, 0] * x + meets[b, 1] * y
        for s in range(len(rest) - x):
            for t in range(rest.shape[1] - y):
                mass = first[x, y] * second[s, t] * rest[x + s, y + t] * ways[x + s, x] * ways[y + t, y]
                if mass == 0:
                    continue
                links = fixed + reach[k] * s + reach[k + 1] * t
                found[0] += mass * miss[links]
                if links > 0:
                    one = mass * miss[links - 1]
                    found[1] += one
                    found[2] += one * x
                    found[3] += one * y
                    found[4] += one * s
                    found[5] += one * t
                    found[6] += one * (x * s if complete else x * t + y * s)
                for i in range(k):
                    if b >> i & 1:
                        joined = arms[0, i, 0] + arms[0, i, 1] * hit[reach[i]]
                        inside[i] += mass * joined * miss[links - reach[i]]
                inside[k] += mass * s * hit[reach[k]] * miss[links - reach[k]]
                inside[k + 1] += mass * t * hit[reach[k + 1]] * miss[links - reach[k + 1]]
    return found, inside


@numba.njit(cache=True)
def _share_links(found, a, b, others, joined, complete, near, escape, links):  # type: ignore[no-untyped-def]
    """Add the sums without one link to the class of each link between two components."""
    k, (m, n) = len(joined), others
    for i in range(k):
        if a >> i & 1:
            for j in range(k):
                if b >> j & 1 and joined[i, j]:
                    links[i, j] += found[1] * escape
                    links[j, i] += found[1] * escape
        if (a | b) >> i & 1:
            for s in range(2):
                if near[1][1 << i, s] > 0:
                    share = found[4 + s] if a >> i & 1 else found[2 + s]
                    links[i, k + s] += share * escape / max(others[s], 1)
                    links[k + s, i] = links[i, k + s]
    if complete:
        links[k, k] += found[6] * escape / max(m * (m - 1) / 2, 1)
    else:
        links[k, k + 1] += found[6] * escape / max(m * n, 1)
        links[k + 1, k] = links[k, k + 1]
