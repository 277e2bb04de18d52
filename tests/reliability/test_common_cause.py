from itertools import chain, combinations, product
from math import comb

import numpy as np
import pytest

from relparallel.reliability import common_cause_unavailability, multiple_greek_letters, unavailability


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
