"""From cuts to bounds: how likely it is that at least one of the listed cuts is down.

Cuts that share no part are independent, so the list falls into groups: the connected components of
"share a part". Within a group the classical inequalities for a union of events A_1, A_2, ... apply,
with S1 = sum P(A_i), S2 = sum over pairs P(A_i and A_j) and S_i = sum_j P(A_i and A_j) (j = i
included):

==================  ===========================================================  =======================
Bonferroni          S1 - S2 <= P                                                 1936
Dawson and Sankoff  2 S1 / (k + 1) - 2 S2 / (k (k + 1)) <= P, k = 1 + [2 S2/S1]  1967, never below it
de Caen             sum_i P(A_i)**2 / S_i <= P                                   1997
Boole               P <= S1
Hunter, Worsley     P <= S1 - sum of P(A_i and A_j) over the pairs of a tree     1976, 1982
==================  ===========================================================  =======================

The lower bound of a group is the largest of the three, the upper one Hunter's with the heaviest
tree. Lower bounds hold for any part of the list, so a large group in which many pairs share parts
is judged by its likeliest cuts. Sums are widened by more than they can have been rounded.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.bounding.cut_families import (
    MAX_STEPS,
    TINY,
    CutFamily,
    find_cuts,
    karger_tail,
)
from relparallel.reliability.frontier.decomposition import Bracket
from relparallel.reliability.problem import Problem
from relparallel.topology._arrays import parts as connected

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_LOWER: Final = 1e-2  # the floor of the next search, as a multiple of the last
PAIRED: Final = 4096  # cuts of a group of which all pairs are compared
_MOST_OVERLAPS: Final = 2**23  # parts that pairs of a larger group may have in common
_SLACK: Final = 1e-9  # relative; more than the rounding of ten million sums


def part_chances(problem: Problem) -> FloatArray:
    """Probability that each part is down: links, then nodes; a terminal never is."""
    node = problem.node[:, 1].copy()
    node[problem.terminals] = 0.0
    return np.concatenate([problem.link[:, 1], node])


def near_minimum_cuts(
    problem: Problem, rtol: float, max_steps: int = MAX_STEPS, share: float = 0.0
) -> CutFamily:
    """List cuts until the bound on all others is at most ``rtol`` times the unreliability.

    It is enough, too, if that bound is at most ``share`` times the width of `union_bracket`. The
    floor falls from round to round, by a factor of a hundred or less, until then or until all
    rounds together have looked at ``max_steps`` links; the last round costs about as much as all
    before it. Of two rounds that fall short the better one counts; its ``steps`` are those of all.
    """
    floor, best, steps = _first_guess(problem), None, 0
    while True:
        family = find_cuts(problem, floor, max_steps=max_steps - steps)
        steps += family.steps
        family = replace(family, steps=steps)
        if best is None or family.rest <= best.rest:
            best = family
        best = replace(best, steps=steps)
        if family.stopped or floor < TINY:
            around = _isolating(problem, best)
            return best if best.chances.sum() >= around.chances.sum() else around
        aim = max(rtol, share) * float(family.chances.sum())
        if family.rest <= aim:
            low, high = union_bracket(problem, family)
            aim = max(rtol * low, share * (high - low))
            if family.rest <= aim:
                return best
        floor *= max(_LOWER, 0.3 * aim / family.rest)


def _weakest(problem: Problem) -> tuple[IntArray, IntArray, FloatArray]:
    """Per terminal and neighbour: the terminal, the part that fails more easily, its chance."""
    m, down = len(problem.link), part_chances(problem)
    ends = np.concatenate([problem.edges, problem.edges[:, ::-1]])
    links = np.tile(np.arange(m), 2)
    parts = np.where(down[links] >= down[m + ends[:, 1]], links, m + ends[:, 1])
    of_terminal = np.isin(ends[:, 0], problem.terminals)
    order = np.flatnonzero(of_terminal)[np.argsort(ends[of_terminal, 0], kind="stable")]
    return ends[order, 0], parts[order], down[parts[order]]


def _first_guess(problem: Problem) -> float:
    """A hundredth of the likeliest way to cut all neighbours of a terminal off."""
    terminal, _, chances = _weakest(problem)
    with np.errstate(divide="ignore"):
        logs = np.bincount(terminal, np.log(chances), minlength=len(problem.node))
    return max(_LOWER * float(np.exp(logs[problem.terminals].max())), TINY)


def _isolating(problem: Problem, family: CutFamily) -> CutFamily:
    """Cuts around single terminals, with the bound of a search stopped before it found them."""
    terminal, parts, chances = _weakest(problem)
    _, first = np.unique(terminal, return_index=True)
    return replace(
        family,
        starts=np.append(first, len(parts)),
        parts=parts,
        chances=np.multiply.reduceat(chances, first),
    )


def union_bracket(problem: Problem, cuts: CutFamily) -> Bracket:
    """Bounds of the probability that some listed cut is down; cuts not listed are left out.

    O(c**2 s) for groups of c <= 4096 cuts of s parts; larger ones by the pairs that share a part.
    """
    down, group = part_chances(problem), _groups(cuts, len(problem.link) + len(problem.node))
    order = np.lexsort((-cuts.chances, group))
    bounds = np.searchsorted(group[order], np.arange(group.max(initial=-1) + 2))
    no_low = no_high = 0.0  # log of the probability that no group has failed
    for first, last in pairwise(bounds):
        low, high = _one_group(order[first:last], cuts, down)
        if low >= 1.0:
            return 1.0, 1.0
        no_low += np.log1p(-low)
        no_high = no_high + np.log1p(-high) if high < 1.0 else -np.inf
    return float(-np.expm1(no_low) * (1 - _SLACK)), float(
        min(1.0, -np.expm1(no_high) * (1 + _SLACK))
    )


def rest_bound(problem: Problem, cuts: CutFamily) -> float:
    """Bound the probability that an unlisted cut is down: by the search, or Karger's if smaller."""
    n = len(problem.node)
    if len(cuts) == 0 or cuts.stopped or len(problem.terminals) < n:
        return cuts.rest
    return min(cuts.rest, karger_tail(n, float(cuts.chances.max()), cuts.floor))


def disjoint_cuts(cuts: CutFamily) -> float:
    """Lower bound of the unreliability from cuts that share no part, the likeliest first.

    1 - product of (1 - P(cut down)): the cuts are independent, and each one is enough.
    """
    order = np.argsort(-cuts.chances, kind="stable")
    apart = cuts.chances[
        _disjoint(order, cuts.starts, cuts.parts, int(cuts.parts.max(initial=-1)) + 1)
    ]
    if apart.max(initial=0.0) >= 1.0:
        return 1.0 - _SLACK
    return float(-np.expm1(np.log1p(-apart).sum()) * (1 - _SLACK))


@numba.njit(cache=True)
def _disjoint(order, starts, parts, most):  # type: ignore[no-untyped-def]
    """Those cuts, taken in order, that share no part with one that was taken before."""
    taken, found, count = np.zeros(most, np.bool_), np.empty(len(order), np.int64), 0
    for i in order:
        mine = parts[starts[i] : starts[i + 1]]
        if not taken[mine].any():
            taken[mine] = True
            found[count] = i
            count += 1
    return found[:count]


def _groups(cuts: CutFamily, parts: int) -> IntArray:
    """The component of every cut."""
    owner = np.repeat(np.arange(len(cuts)), cuts.sizes)
    return connected(np.column_stack([owner, len(cuts) + cuts.parts]), len(cuts) + parts)[
        : len(cuts)
    ]


def _one_group(members: IntArray, cuts: CutFamily, down: FloatArray) -> Bracket:
    """Bounds for one group, its members from the likeliest to the least likely."""
    chances = cuts.chances[members]
    if len(members) == 1:
        return float(chances[0]), float(chances[0])
    head = members
    if len(members) > PAIRED and _overlaps(members, cuts, len(down)) > _MOST_OVERLAPS:
        head = members[:PAIRED]
    single = np.ascontiguousarray(chances[: len(head)])
    sums = _pair_sums if len(head) <= PAIRED else _sparse_sums
    pairs, shares, tree = sums(head, cuts.starts, cuts.parts, down, single)
    first = float(single.sum())
    if first == 0.0:
        return 0.0, 0.0
    k = 1 + int(2 * pairs / first)
    dawson = 2 * first * (1 - _SLACK) / (k + 1) - 2 * pairs * (1 + _SLACK) / (k * (k + 1))
    de_caen = float((single**2 / np.maximum(shares, TINY)).sum()) * (1 - _SLACK)
    upper = float(chances.sum()) * (1 + _SLACK) - tree * (1 - _SLACK)
    low = max(dawson, de_caen, float(single[0]))
    return min(low, 1.0), min(max(upper, low), 1.0)


def _overlaps(members: IntArray, cuts: CutFamily, parts: int) -> int:
    """How many parts pairs of cuts have in common, pairs taken both ways."""
    sizes = np.diff(cuts.starts)
    inside = np.zeros(len(cuts), dtype=np.bool_)
    inside[members] = True
    return int((np.bincount(cuts.parts[np.repeat(inside, sizes)], minlength=parts) ** 2).sum())


@numba.njit(cache=True)
def _sparse_sums(members, starts, parts, down, single):  # type: ignore[no-untyped-def]
    """As `_pair_sums` where few pairs share a part; all others are independent.

    Every cut is joined to the one before it with which it is most likely down: a tree, if not the
    heaviest.
    """
    first, cuts_of = _by_part(members, starts, parts, len(down))
    mark, seen = np.full(len(down), -1, np.int64), np.full(len(members), -1, np.int64)
    total, shares, tree = single.sum(), np.empty(len(members)), 0.0
    for i in range(len(members)):
        mine = parts[starts[members[i]] : starts[members[i] + 1]]
        mark[mine], seen[i] = i, i
        best, share = (
            single[i] * single[0] if i > 0 else 0.0,
            single[i] + single[i] * (total - single[i]),
        )
        for part in mine:
            for j in cuts_of[first[part] : first[part + 1]]:
                if seen[j] == i:
                    continue
                seen[j] = i
                both = single[i]
                for k in range(starts[members[j]], starts[members[j] + 1]):
                    if mark[parts[k]] != i:
                        both *= down[parts[k]]
                share += both - single[i] * single[j]
                if j < i:
                    best = max(best, both)
        shares[i] = share
        tree += best
    return max((shares - single).sum() / 2, 0.0), shares, tree


@numba.njit(cache=True)
def _by_part(members, starts, parts, size):  # type: ignore[no-untyped-def]
    """Cuts that hold each part: ``cuts_of[first[part] : first[part + 1]]``."""
    first = np.zeros(size + 2, np.int64)
    for i in members:
        for part in parts[starts[i] : starts[i + 1]]:
            first[part + 2] += 1
    first = np.cumsum(first)
    cuts_of = np.empty(first[-1], np.int64)
    for at in range(len(members)):
        for part in parts[starts[members[at]] : starts[members[at] + 1]]:
            cuts_of[first[part + 1]] = at
            first[part + 1] += 1
    return first, cuts_of


@numba.njit(cache=True)
def _pair_sums(members, starts, parts, down, single):  # type: ignore[no-untyped-def]
    """S2, the row sums S_i, and the weight of the heaviest spanning tree (Prim) of the pairs."""
    c = len(members)
    total, tree, shares = 0.0, 0.0, single.copy()
    mark = np.full(len(down), -1, np.int64)
    best, joined, at = np.full(c, -1.0), np.zeros(c, np.bool_), 0
    for step in range(c):
        joined[at] = True
        for k in range(starts[members[at]], starts[members[at] + 1]):
            mark[parts[k]] = step
        following, weight = -1, -1.0
        for j in range(c):
            if joined[j]:
                continue
            both = single[at]
            for k in range(starts[members[j]], starts[members[j] + 1]):
                if mark[parts[k]] != step:
                    both *= down[parts[k]]
            total += both
            shares[at] += both
            shares[j] += both
            best[j] = max(best[j], both)
            if best[j] > weight:
                following, weight = j, best[j]
        if following >= 0:
            tree += weight
            at = following
    return total, shares, tree
