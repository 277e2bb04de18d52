"""How much parts matter where the pods of a fat-tree are joined by cores: chances to be pivotal, in floats.

Letters are those of `fat_tree_partitions`. Set one pod apart and let the others lie in blocks that no core
joins. What that pod touches decides: a part of its own is pivotal if the pod touches one block without the
part, and another with it; a core is pivotal if it alone touches two blocks. All of these are sums and
products of chances. Signs alternate with the number of blocks alone, and there the partial sums of both
states of a part lie above and below in turn, the wider apart the more is down: the next step bounds what is
left out of their difference. So few blocks do for a slope as for the sum, however far below it lies.

Arrays [j, .., n] hold, for each number j of live cores, the chance to touch n given ones and no other, over
n!: as polynomials in n, the product of two is that of blocks which share no core.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.closed_forms.form_slopes import ClassSlopes

_EXACT: Final = 2.0**-44  # share of a slope that a step may still change
_LOST: Final = 2.0**18  # times a slope that all its terms may be: ten digits of sixteen are left

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class _Plane(NamedTuple):
    """One group of cores: what a block adds to others, and what all of them make of a part."""

    core: float
    aggregation: float
    cable: float
    hits: FloatArray
    block: FloatArray
    grow: FloatArray
    of_pod: FloatArray
    of_core: FloatArray
    choices: FloatArray


class _Blocks(NamedTuple):
    """All ways to take so many blocks of fewer than k pods, by their sizes."""

    chance: FloatArray
    pods: IntArray
    last: IntArray
    alike: FloatArray
    ways: FloatArray
    joins: IntArray


def pivotal_slopes(
    k: int, core_up: float, aggregation_up: float, core_link_up: float, terminals: int
) -> ClassSlopes | None:
    """Slopes of all classes where ``terminals`` of k pods have to be together, unless failures are frequent.

    Notes
    -----
    In one group let P be the chance that the pod apart touches no block, P_i block i or none, and Q, Q_i the
    same with the core of one of its cables in another block than i. That cable has the slope sum over b of
    (-1)^b (b - 2)! sum over b blocks of the other pods of (T - 1) sum_i (P_i^(h-1) Q_i - P^(h-1) Q), where T
    blocks hold terminals and the pod does not. Other parts are alike. Each difference is summed as a chance
    of its own. O(h^3) operations for each partition of at most k pods into the blocks that it takes.
    """
    ups = np.array([core_up, aggregation_up, core_link_up])
    plane, joins = _plane(k, *ups), _joins(k, terminals)
    fails = ups[[0, 1, 1, 2, 2]] < 1
    fails[[2, 4]] &= terminals < k
    single, weight = _single_blocks(plane, joins), 1.0
    blocks: _Blocks | None = single
    total = _alone(plane, single, terminals)
    size, least = total.copy(), np.full(5, math.inf)
    for b in range(2, k + 1):
        if blocks is None:
            break
        weight *= max(b - 2, 1)
        step, bound = weight * _step(plane, blocks, b, joins, near_only=terminals == k)
        total, size = total + (-1) ** b * step, size + bound
        if b % 2 == 0:  # but for a pod with terminals, signs are those of the steps: no slope is larger
            least[::2] = np.minimum(least, total)[::2]
        if (size > _LOST * least)[fails].any():
            return None
        if (bound <= _EXACT * total)[fails].all():
            break
        blocks = _grown(plane, blocks, joins)
    if (size > _LOST * total)[fails].any():
        return None
    return ClassSlopes(*np.maximum(total, 0.0).tolist())


def _joins(k: int, terminals: int) -> IntArray:
    """Ways to place terminals of which some lie among s pods, [3, k + 1].

    Rows: among all k; those besides one among the other pods; and those among all but one that is none.
    """
    rows = (k, terminals), (k - 1, terminals - 1), (k - 1, terminals)
    found = [[math.comb(n, t) - math.comb(max(n - s, 0), t) for s in range(k + 1)] for n, t in rows]
    return np.array(found, dtype=np.int64)


def _plane(k: int, c: float, a: float, link: float) -> _Plane:
    """Tables of one group."""
    h, pods, cores = k // 2, np.arange(k + 1), np.arange(k // 2 + 1)
    choices = np.array([[math.comb(n, r) for r in pods] for n in pods], dtype=np.float64)
    factorials = np.array([math.factorial(n) for n in cores], dtype=np.float64)
    hits, misses = -np.expm1(pods * np.log1p(-link)), np.power(1.0 - link, pods)
    spared = cores[:, None] - cores
    given = hits[:, None] ** cores * misses[:, None] ** np.maximum(spared, 0)[:, None] / factorials
    up = choices * a**pods * (1.0 - a) ** np.maximum(pods[:, None] - pods, 0)
    block = up @ np.where(spared[:, None] >= 0, given, 0.0)
    few, hits, misses = block[:, : h + 1], hits[: h + 1], misses[: h + 1]
    grow = np.stack([_products(x) for x in (few, few * hits, _with_given_core(few))])
    left = spared[:, :, None] - cores  # neither these cores nor those are touched
    rest = np.where(left >= 0, 1.0 / factorials[np.maximum(left, 0)], 0.0)
    live, others = (
        (choices[n, : h + 1] * c**cores * (1.0 - c) ** np.maximum(n - cores, 0) * factorials)[:, None, None]
        for n in (h, h - 1)
    )
    forms = _pod_forms(block, misses, hits, live * rest), _core_forms(block, live * rest, others * rest)
    return _Plane(c, a, link, hits, block, grow, *forms, choices)


def _products(x: FloatArray) -> FloatArray:
    """Matrices that multiply by the polynomials x[.., n]."""
    n = np.arange(x.shape[-1])
    power = n - n[:, None]
    return np.where(power >= 0, x[..., np.maximum(power, 0)], 0.0)


def _with_given_core(x: FloatArray) -> FloatArray:
    """From chances [j, .., n] to those with one core more, which is given and touched."""
    found = np.zeros_like(x)
    found[:-1, :, :-1] = (x * np.arange(x.shape[-1]))[1:, :, 1:]
    return found


def _pod_forms(block: FloatArray, misses: FloatArray, hits: FloatArray, rest: FloatArray) -> FloatArray:
    """Forms of the other blocks by what a pod apart touches, its switch up in all but the first.

    0 anything; 1 no block; 2 the last block alone; 3 the last or none, with a given core of another; 4 the
    last, with that core; 5 none, with a given core of the last; 6 another; 7 two blocks: the last and
    another, or not the last but two of the others.
    """
    n = np.arange(len(misses))
    given = n * np.append(0.0, misses[:-1])  # one of n is given, and no other is touched
    every, none, some, one = (block * x @ rest for x in (np.ones_like(hits), misses, hits, given))
    forms = np.zeros((2, *block.shape, 8))
    for i, form in enumerate((every, none * misses, some * misses, every * given, some * given)):
        forms[0, ..., i] = form
    forms[0, ..., 5], forms[0, ..., 6], forms[0, ..., 7] = one * misses, every * hits, some * hits
    forms[1, ..., 7] = none
    return forms


def _core_forms(block: FloatArray, rest: FloatArray, rest_of_others: FloatArray) -> FloatArray:
    """Forms of the other blocks: 0 of some cores none joins two; one more does, beside 1 some and 2 none."""
    forms = np.zeros((2, *block.shape, 3))
    forms[0, 1:, ..., 0] = (block @ rest)[1:]
    last, others = _with_given_core(block) @ rest_of_others, block @ rest_of_others
    last = last[:-1, :, :-1] * np.arange(1, block.shape[-1])
    forms[0, 2:, :, 1:, 1], forms[1, 1:, ..., 1] = last[1:], others[1:]
    forms[0, 1, :, 1:, 2], forms[1, 0, ..., 2] = last[0], others[0]
    return forms


def _single_blocks(plane: _Plane, joins: IntArray) -> _Blocks:
    """One block of 1 to k - 1 pods."""
    block = plane.block[:, 1:-1]
    pods = np.arange(1, block.shape[1] + 1)
    ones, zeros = np.ones(len(pods)), np.zeros_like(block)
    return _Blocks(np.stack([block, zeros, zeros]), pods, pods, ones, ones, joins[:, pods])


def _grown(plane: _Plane, blocks: _Blocks, joins: IntArray) -> _Blocks | None:
    """One block more, which is no larger than any."""
    found, most = [], len(plane.choices) - 2
    for s in range(1, most // 2 + 1):
        chosen = np.flatnonzero((blocks.last >= s) & (blocks.pods + s <= most))
        if len(chosen) == 0:
            break
        before, (other, touched, given) = blocks.chance[:, :, chosen], plane.grow[:, :, s]
        chance = before @ other
        chance[1] += (before[0] * plane.hits - before[1]) @ touched
        chance[2] += _with_given_core(before[0]) @ given
        pods = blocks.pods[chosen] + s
        alike = np.where(blocks.last[chosen] == s, blocks.alike[chosen] + 1.0, 1.0)
        ways = blocks.ways[chosen] * plane.choices[pods, s] / alike
        sums = blocks.joins[:, chosen] + joins[:, s, None]
        found.append((chance, pods, np.full(len(pods), s), alike, ways, sums))
    if not found:
        return None
    axes = 2, 0, 0, 0, 0, 1
    return _Blocks(*(np.concatenate(x, axis) for x, axis in zip(zip(*found, strict=True), axes, strict=True)))


def _applied(forms: FloatArray, chance: FloatArray, last: IntArray) -> FloatArray:
    """Forms [i, j, s, n, f] of chances [i, j, t, n] to which s = last[t] belongs; [f, t]."""
    found = np.empty((len(last), forms.shape[-1]))
    for s in np.unique(last):
        chosen = np.flatnonzero(last == s)
        found[chosen] = np.tensordot(chance[:, :, chosen], forms[:, :, s], ([0, 1, 3], [0, 1, 2]))
    return found.T


def _raised(low: FloatArray | float, more: FloatArray, power: int) -> FloatArray:
    """By how much more lifts a power of something low."""
    high = low + more
    with np.errstate(divide="ignore", invalid="ignore"):
        lifted = -(high**power) * np.expm1(power * np.log1p(-more / high))
    return np.where(more > 0, lifted, 0.0)


class _Pivots(NamedTuple):
    """Chances in all groups, by a switch and a cable of the pod apart where there are two rows."""

    none: FloatArray
    rise: FloatArray
    changes: FloatArray
    bridges: FloatArray
    losses: FloatArray


def _pivots(plane: _Plane, chance: FloatArray, last: IntArray) -> _Pivots:
    """Of all blocks but the last, whose pods are given."""
    a, h = plane.aggregation, len(plane.hits) - 1
    together, none, some, meets, bridges, loses, others, two = _applied(plane.of_pod, chance[:2], last)
    low, cable = (1.0 - a) * together + a * none, a / h  # to the given one of so many cores
    return _Pivots(
        low ** (h - 1),
        _raised(low, a * some, h - 1),
        np.stack([others, cable * meets]),
        np.stack([two, cable * bridges]),
        np.stack([some, cable * loses]),
    )


def _alone(plane: _Plane, single: _Blocks, terminals: int) -> FloatArray:
    """Slopes where all other cores are down, and where one pod with terminals is alone; [5]."""
    pivots, alone = _pivots(plane, single.chance[:, :, -1:], np.zeros(1, dtype=np.int64)), np.zeros(5)
    alone[0] = (1.0 - plane.core) ** ((len(plane.hits) - 1) ** 2 - 1)
    alone[0] *= (plane.aggregation * plane.cable) ** terminals
    alone[1:4:2] = (pivots.none * pivots.changes)[:, 0]
    return alone


def _step(plane: _Plane, blocks: _Blocks, b: int, joins: IntArray, *, near_only: bool) -> FloatArray:
    """Sum over all partitions into b blocks, over (b - 2)!, and the same with all terms positive; [2, 5]."""
    k, ways, found = len(plane.choices) - 1, joins[:, -1], np.zeros((2, 5))
    last = k - blocks.pods
    some, joined, only = _applied(plane.of_core, blocks.chance[::2], last)
    dead = (1.0 - plane.core) ** (k // 2)
    pivotal = _raised(dead, some, k // 2 - 1) * (joined + only) + dead ** (k // 2 - 1) * joined
    weight = blocks.ways * plane.choices[k, last] * (blocks.joins[0] + joins[0, last] - ways[0])
    found[:, 0] = weight @ pivotal / (ways[0] * b)
    chosen = np.flatnonzero(last > 1)  # one pod is apart
    last, (near, far) = last[chosen] - 1, blocks.joins[1:, chosen]
    arranged = blocks.ways[chosen] * plane.choices[k - 1, last]
    pivots = _pivots(plane, blocks.chance[:, :, chosen], last)
    gains = pivots.rise * pivots.changes
    bridges, losses = pivots.none * pivots.bridges, pivots.none * pivots.losses
    near_gains = gains + bridges * [[0], [1]]
    found[:, 1:4:2] = np.stack([near_gains - losses, near_gains + losses]) @ (arranged * near / ways[1])
    if not near_only:
        far = arranged * (far + joins[2, last] - ways[2]) / ways[2]
        found[:, 2:5:2] = (gains + bridges / [[b], [1]]) @ far
    return found
