"""The best order of passes: against every order there is, and against the schedules people use."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s34.synthesis import best_order


def words(m, letters, limit):
    """Every order of a stage's passes that keeps B behind F, W behind B, and the memory."""
    free = 1 / (len(letters) - 1)
    found = []
    for word in sorted(set(permutations(letters * m))):
        count, fine = dict.fromkeys(letters, 0), True
        for letter in word:
            count[letter] += 1
            held = count["F"] - free * sum(count[k] for k in letters if k != "F")
            ordered = all(count[a] >= count[b] for a, b in pairwise(letters))
            fine = fine and ordered and held <= limit
        if fine:
            found.append(word)
    return found


def span(orders, seconds, local):
    """Time of an iteration whose stages run given words, or None where they wait for each other."""
    p = len(orders)
    at, clock, end = [0] * p, [0] * p, {}
    window = [sum(seconds["F"][:i]) if local else 0 for i in range(p)]
    while any(at[i] < len(orders[i]) for i in range(p)):
        moved = False
        for i in range(p):
            if at[i] == len(orders[i]):
                continue
            letter = orders[i][at[i]]
            k = orders[i][: at[i]].count(letter)
            need = {
                "F": ("F", i - 1, k),
                "B": ("B", i + 1, k) if i < p - 1 else ("F", i, k),
                "W": ("B", i, k),
            }
            if need[letter] in end or (letter == "F" and i == 0):
                clock[i] = max(clock[i], end.get(need[letter], 0)) + seconds[letter][i]
                end[letter, i, k] = clock[i]
                at[i], moved = at[i] + 1, True
        if not moved:
            return None
    return max(c - w for c, w in zip(clock, window, strict=True))


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize(
    ("p", "m", "letters", "limit"),
    [
        (2, 2, "FBW", 1),
        (2, 2, "FBW", 2),
        (2, 3, "FB", 2),
        (2, 3, "FB", 1),
        (3, 2, "FB", 2),
        (2, 3, "FBW", 1.5),
    ],
)
def test_the_search_finds_the_best_of_all_orders(p, m, letters, limit, local):
    rng = np.random.default_rng(p * m + len(letters))
    every = words(m, letters, limit)
    for _ in range(3):
        seconds = {letter: rng.integers(1, 4, p).tolist() for letter in letters}
        spans = [span(orders, seconds, local) for orders in product(every, repeat=p)]
        weight = np.array(seconds.get("W", [0] * p))
        found = best_order(
            p,
            m,
            forward=seconds["F"],
            backward=np.array(seconds["B"]) + weight,
            backward_weight=weight if "W" in letters else None,
            most_in_flight=limit,
            local=local,
        )
        assert found.span == min(s for s in spans if s is not None)


@given(
    p=st.integers(1, 3),
    m=st.integers(1, 4),
    limit=st.integers(1, 4),
    split=st.booleans(),
    local=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_the_order_found_takes_its_span_in_the_simulator_and_keeps_the_limit(
    p, m, limit, split, local, seed
):
    f, b, w = np.random.default_rng(seed).integers(1, 4, (3, p))
    best = best_order(
        p,
        m,
        forward=f,
        backward=b + w,
        backward_weight=w if split else None,
        most_in_flight=limit,
        local=local,
    )
    ends = [best.timeline.finish[best.timeline.resource == i].max() for i in range(p)]
    window = np.cumsum(f) - f if local else np.zeros(p)
    assert max(ends - window) <= best.span
    assert best.timeline.peak_in_flight.max() <= limit
    assert best.bound <= best.span


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"forward": 1.5}, "forward and backward must be whole"),
        ({"backward_weight": 2}, "backward_weight must be at least 1 below"),
    ],
)
def test_ticks_are_whole(given, message):
    with pytest.raises(ValueError, match=message):
        best_order(2, 2, **given)
