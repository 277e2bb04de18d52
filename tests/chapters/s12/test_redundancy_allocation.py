"""Both routes find what enumeration finds, and the published optima."""

import math
import time
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest

from chapters import s12
from chapters.s12 import _multiple_choice
from chapters.s12.redundancy_allocation import redundancy_allocation, redundancy_allocations
from pace import pace

FYFFE = s12.component_table("fyffe")
# Best known values of the literature, five digits, for weights 191 down to 159 (as remembered).
DIFFERENT = {179: 0.97951, 161: 0.95804}


def works(ups, needed: int) -> float:
    """Probability that at least k parts work, over all states."""
    return sum(
        math.prod(p if s else 1 - p for p, s in zip(ups, state, strict=True))
        for state in product((0, 1), repeat=len(ups))
        if sum(state) >= needed
    )


def enumerated(table: pd.DataFrame, limits: dict, needed: int | list[int], most: int) -> float:
    """Best reliability over every choice."""
    choices = []
    every = needed if isinstance(needed, list) else [needed] * table["subsystem"].nunique()
    for needed, (_, rows) in zip(every, table.groupby("subsystem"), strict=True):
        sizes = range(needed, most + 1)
        sets = [list(s) for size in sizes for s in combinations_with_replacement(rows.index, size)]
        choices.append(
            [
                (
                    works(table.loc[s, "reliability"], needed),
                    table.loc[s, list(limits)].sum().to_numpy(),
                )
                for s in sets
            ]
        )
    bound = np.array(list(limits.values()))
    fits = [c for c in product(*choices) if (sum(use for _, use in c) <= bound + 1e-9).all()]
    return max((math.prod(up for up, _ in c) for c in fits), default=0.0)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("needed", [1, 2, [2, 1, 3]], ids=str)
def test_both_routes_find_what_enumeration_finds(seed, needed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "subsystem": np.repeat([0, 1, 2], 2),
            "reliability": rng.uniform(0.5, 0.99, 6).round(3),
            "cost": rng.integers(1, 6, 6),
            "weight": rng.integers(1, 6, 6),
            "power": rng.integers(0, 4, 6),
        }
    )
    limits = {"cost": 20.0, "weight": 22.0, "power": 14.0}
    expected = enumerated(table, limits, needed, 3)
    for method in ("table", "milp"):
        if not expected:
            with pytest.raises(ValueError, match="limits must leave room"):
                redundancy_allocation(table, limits=limits, needed=needed, most=3, method=method)
            continue
        best = redundancy_allocation(table, limits=limits, needed=needed, most=3, method=method)
        assert best.reliability == pytest.approx(expected, rel=1e-12)
        assert best.reliability + best.unreliability == pytest.approx(1, abs=1e-15)
        for resource in limits:
            bought = [row for rows in best.parts for row in rows]
            assert table.loc[bought, resource].sum() == best.used[resource]


def test_the_33_optima_are_proven_in_a_fifth_of_a_second():
    redundancy_allocations(FYFFE, 130, [191])  # compiles
    _multiple_choice.multisets.cache_clear()
    start = time.process_time()
    found = redundancy_allocations(FYFFE, 130, range(159, 192))
    assert time.process_time() - start < 0.2
    assert len(found) == 33


def test_the_33_optima_agree_by_both_routes_and_with_the_published_digits():
    weights = range(159, 192, 33 // pace(8, 33))
    table = redundancy_allocations(FYFFE, 130, weights)
    whole = redundancy_allocations(FYFFE, 130, weights, method="milp")
    for weight, a, b in zip(weights, table, whole, strict=True):
        assert a.reliability == pytest.approx(b.reliability, abs=1e-12)
        if weight in DIFFERENT:  # the remembered digits stand one unit above the proven optimum
            assert f"{a.reliability:.5f}" == f"{DIFFERENT[weight] - 1e-5:.5f}"
    assert np.all(np.diff([a.reliability for a in table]) > 0)
    assert table[-1].reliability == pytest.approx(0.986811016, abs=1e-9)


def test_one_call_is_the_same_as_the_batch():
    for weight in (159, 175, 191):
        (batch,) = redundancy_allocations(FYFFE, 130, [weight])
        assert redundancy_allocation(FYFFE, 130, weight).parts == batch.parts


def test_amounts_that_are_not_whole_need_the_programme():
    table = FYFFE.query("subsystem <= 3").assign(cost=lambda t: t["cost"] + 0.5)
    with pytest.raises(ValueError, match="milp"):
        redundancy_allocation(table, cost_limit=20)
    best = redundancy_allocation(table, cost_limit=20, most=3, method="milp")
    assert best.reliability == pytest.approx(enumerated(table, {"cost": 20.0}, 1, 3), rel=1e-12)


def test_the_formulation_names_every_limit_and_size():
    text = redundancy_allocation(FYFFE, 130, 191).formulation
    assert "cost x_io <= 130" in text
    assert "weight x_io <= 191" in text
    assert "14 subsystems" in text


def test_a_table_without_room_and_a_table_too_large_are_refused():
    with pytest.raises(ValueError, match="cost_limit = 5"):
        redundancy_allocation(FYFFE, cost_limit=5)
    with pytest.raises(ValueError, match="at most 67108864 cells"):
        redundancy_allocation(FYFFE.assign(cost=FYFFE["cost"] * 10**6), cost_limit=1.3e8)
