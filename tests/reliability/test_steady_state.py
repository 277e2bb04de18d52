from itertools import chain, combinations, product
from math import comb

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s13.common_cause import common_cause_unavailability, multiple_greek_letters
from relparallel.reliability import availability, evaluate, unavailability

TIMES = st.floats(1e-3, 1e12)


def test_the_textbook_case():
    assert availability(mtbf=999, mttr=1) == 0.999
    assert unavailability(mtbf=999, mttr=1) == 0.001
    assert availability(mtbf=1, mttr=0) == 1


@given(TIMES, TIMES, st.integers(1, 9), st.integers(1, 9))
def test_shares_add_up_to_one(mtbf, mttr, a, b):
    counts = {"needed": min(a, b), "installed": max(a, b)}
    total = availability(mtbf, mttr, **counts) + unavailability(mtbf, mttr, **counts)
    assert total == pytest.approx(1, abs=1e-14)


@given(TIMES, TIMES, st.integers(1, 9))
def test_series_and_parallel(mtbf, mttr, n):
    up, down = mtbf / (mtbf + mttr), mttr / (mtbf + mttr)
    assert availability(mtbf, mttr, needed=n, installed=n) == pytest.approx(up**n, rel=1e-13)
    assert unavailability(mtbf, mttr, installed=n) == pytest.approx(down**n, rel=1e-13)


def test_the_complement_keeps_its_digits():
    assert unavailability(1e9, 1e-6, installed=20) == pytest.approx(1e-300, rel=1e-12)
    assert unavailability(1e9, 1e-6, needed=2, installed=3) == pytest.approx(3e-30, rel=1e-12)


def test_parallel_components_are_parallel_cables():
    cables = nx.MultiGraph([(0, 1)] * 4)
    network = evaluate(cables, link_down=unavailability(1000.0, 30.0))
    assert network.unreliability == pytest.approx(
        unavailability(1000.0, 30.0, installed=4), rel=1e-14
    )
    path = evaluate(nx.path_graph(5), link_down=unavailability(1000.0, 30.0))
    assert path.unreliability == pytest.approx(
        unavailability(1000.0, 30.0, needed=4, installed=4), rel=1e-13
    )


def test_renewal_simulation_agrees():
    rng = np.random.default_rng(7)
    lives, repairs = rng.weibull(0.7, 200_000) * 100, rng.uniform(0, 20, 200_000)
    share = lives.sum() / (lives.sum() + repairs.sum())
    assert availability(lives.mean(), 10.0) == pytest.approx(share, rel=1e-3)


def test_arrays_broadcast():
    table = unavailability(
        np.array([[1.0], [2.0]]), np.array([1.0, 2.0, 3.0]), needed=2, installed=2
    )
    assert table.shape == (2, 3)
    up = 2 / 5
    assert table[1, 2] == pytest.approx(
        sum(comb(2, j) * up**j * (1 - up) ** (2 - j) for j in (0, 1))
    )


@pytest.mark.parametrize("function", [availability, unavailability])
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"mtbf": 0}, "mtbf"),
        ({"mtbf": float("inf")}, "mtbf"),
        ({"mtbf": float("nan")}, "mtbf"),
        ({"mtbf": "1"}, "mtbf"),
        ({"mtbf": []}, "mtbf"),
        ({"mttr": -1}, "mttr"),
        ({"mttr": None}, "mttr"),
        ({"mtbf": [1.0, 2.0], "mttr": [1.0, 2.0, 3.0]}, "mttr"),
        ({"needed": 0}, "needed"),
        ({"needed": 2}, "needed"),
        ({"needed": True}, "needed"),
        ({"installed": 1.0}, "installed"),
        ({"installed": 1001}, "installed"),
    ],
    ids=repr,
)
def test_bad_input_is_refused_by_name(function, arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"{name} must"):
        function(**{"mtbf": 100.0, "mttr": 1.0} | arguments)


def by_enumeration(needed, causes):
    """Sum over all combinations of causes, each present or not."""
    n, total = len(causes), 0.0
    sets = list(chain.from_iterable(combinations(range(n), k) for k in range(1, n + 1)))
    for present in product((False, True), repeat=len(sets)):
        chance, down = 1.0, set()
        for hit, parts in zip(present, sets, strict=True):
            chance *= causes[len(parts) - 1] if hit else 1 - causes[len(parts) - 1]
            down |= set(parts) if hit else set()
        total += chance * (n - len(down) < needed)
    return total


@pytest.mark.parametrize("n", [1, 2, 3])
def test_against_all_combinations_of_causes(n):
    causes = multiple_greek_letters(0.2, n, [0.3, 0.6][: n - 1])
    for needed in range(1, n + 1):
        assert common_cause_unavailability(needed, causes) == pytest.approx(
            by_enumeration(needed, causes), rel=1e-13
        )


@pytest.mark.parametrize("letters", [(), (0.1,), (0.1, 0.3), (0.1, 0.3, 0.9, 0.5)])
def test_the_causes_of_a_part_add_up(letters):
    causes = multiple_greek_letters(0.01, 5, letters)
    weights = [comb(4, k) for k in range(5)]
    assert np.dot(weights, causes) == pytest.approx(0.01, rel=1e-13)


def test_without_a_common_cause_parts_are_independent():
    causes = multiple_greek_letters(0.03, 6, [0.0])
    expected = unavailability(0.97, 0.03, needed=4, installed=6)
    assert common_cause_unavailability(4, causes) == pytest.approx(expected, rel=1e-12)


def test_the_beta_factor_has_both_routes():
    causes = multiple_greek_letters(0.01, 4, [0.2])
    quick = common_cause_unavailability(3, causes)
    slow = common_cause_unavailability(3, causes + np.array([0, 1e-300, 0, 0]))
    assert slow == pytest.approx(quick, rel=1e-12)
    assert causes.tolist() == pytest.approx([0.008, 0, 0, 0.002])


def test_a_common_cause_is_a_floor():
    for n in (3, 5, 8):
        down = common_cause_unavailability(1, multiple_greek_letters(1e-4, n, [0.05]))
        assert down == pytest.approx(5e-6, rel=1e-6)


def test_what_is_out_of_range_is_refused():
    with pytest.raises(ValueError, match="letters must be at most 1"):
        multiple_greek_letters(0.1, 2, [0.1, 0.1])
    with pytest.raises(ValueError, match="causes must have at most 10"):
        common_cause_unavailability(1, [0.1] * 11)
