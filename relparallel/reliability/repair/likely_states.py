"""Likely states first: of independent parts by falling probability, and those symmetry joins."""

import heapq
import math

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.topology._arrays import parts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_ROUNDING = 1e-14  # of the sum of the probabilities, more than enough


def likely_states(
    chances: FloatArray, remainder: float = 0.0, most: int = 10**6
) -> tuple[IntArray, IntArray, FloatArray, float]:
    """States of independent parts, likeliest first, until all others have at most ``remainder``.

    Row i of ``chances`` [parts, states] holds the probabilities of what part i can be, falling, 0
    where there is no more. Returns which parts [N, w] are not in their likeliest state, filled with
    -1; in which state these are [N, w]; the probability of each state [N]; and a bound on that of
    all others.

    A state whose last part i, by falling odds, is in its state k has three children: i moves on to
    k + 1; part i + 1 leaves its likeliest state too; and, where k is 1, it does so instead of i.
    Each state is met once, never before its parent (Lawler, Management Sci. 18, 1972): a heap, O(N
    log N).
    """
    odds = chances / chances[:, :1]
    order = np.argsort(-odds[:, 1], kind="stable")
    order = order[odds[order, 1] > 0]
    others = chances[:, 1:].sum(axis=1)
    logs = np.where(others < 0.1, np.log1p(-np.minimum(others, 0.5)), np.log(chances[:, 0]))
    first = math.exp(math.fsum(logs))
    parts, states, found, all_seen = _best_first(odds[order], first, float(remainder), most)
    left = 0.0 if all_seen else max(1.0 - math.fsum(found), 0.0) + _ROUNDING
    return np.where(parts >= 0, order[parts] if order.size else parts, -1), states, found, left


def orbits_of_sets(sets: IntArray, permutations: IntArray) -> IntArray:
    """Label [N] of each set; sets of one label are images of each other by permuting the parts.

    An image is looked up by a sum of random words of its parts and then compared, so a clash of
    sums can split an orbit and never joins two. O(N w log N) per permutation.
    """
    count = len(sets)
    words = np.random.default_rng(0).integers(
        2**63, size=permutations.shape[1] + 1, dtype=np.uint64
    )
    key = words[sets].sum(axis=1)
    order = np.argsort(key)
    rows = np.sort(sets, axis=1)
    here, there = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for permutation in permutations:
        image = np.append(permutation, -1)[sets]
        place = order[np.minimum(np.searchsorted(key[order], words[image].sum(axis=1)), count - 1)]
        same = np.flatnonzero((rows[place] == np.sort(image, axis=1)).all(axis=1))
        here.append(same)
        there.append(place[same])
    return parts(np.column_stack([np.concatenate(here), np.concatenate(there)]), count)


@numba.njit(cache=True)
def _best_first(odds, first, remainder, most):  # type: ignore[no-untyped-def]
    """Places in part order, their states, probabilities, and whether these are all states."""
    parent, last, state, depth, chance = [0], [-1], [0], [0], [first]
    order = [0]
    left = 1.0 - first
    heap = [(0.0, 0)]
    heap.pop()
    if len(odds):
        parent.append(0)
        last.append(0)
        state.append(1)
        depth.append(1)
        chance.append(first * odds[0, 1])
        heapq.heappush(heap, (-chance[1], 1))
    while len(heap) and left > remainder and len(order) < most:
        v = heapq.heappop(heap)[1]
        order.append(v)
        left -= chance[v]
        for child in range(3):
            above = v if child == 1 else parent[v]
            i = last[v] + (child > 0)
            k = state[v] + 1 if child == 0 else 1
            if (
                i == len(odds)
                or (child == 2 and state[v] > 1)
                or k == odds.shape[1]
                or odds[i, k] == 0.0
            ):
                continue
            parent.append(above)
            last.append(i)
            state.append(k)
            depth.append(depth[above] + 1)
            chance.append(chance[above] * odds[i, k])
            heapq.heappush(heap, (-chance[-1], len(chance) - 1))
    width = 1
    for v in order:
        width = max(width, depth[v])
    parts, states = np.full((len(order), width), -1), np.zeros((len(order), width), np.int64)
    for row in range(len(order)):
        v = order[row]
        while v > 0:
            parts[row, depth[v] - 1], states[row, depth[v] - 1] = last[v], state[v]
            v = parent[v]
    return parts, states, np.array([chance[v] for v in order]), len(heap) == 0
