"""Products of whole numbers in digits, against Python's own."""

import numpy as np
import pytest

from relparallel.reliability.closed_forms.limb_rows import DIGIT, products, to_digits, to_numbers


def numbers(rng, count, bits):
    """Chances in units of 2^-bits: none, one, the last below one, and any."""
    one = 2**bits
    drawn = [int.from_bytes(rng.bytes(bits // 8), "little") for _ in range(count - 3)]
    return [0, one, one - 1, *drawn]


@pytest.mark.parametrize("places", [1, 2, 15, 70])
def test_digits_are_read_back(places):
    given = numbers(np.random.default_rng(places), 40, DIGIT * places)
    digits = to_digits(given, places + 1)
    assert digits.shape == (40, places + 1)
    assert digits.max() < 2**DIGIT
    assert to_numbers(digits.T) == given


@pytest.mark.parametrize("count", [1, 31, 32, 33, 80])
@pytest.mark.parametrize("places", [2, 15, 70])
def test_sums_of_products_lose_one_unit_at_most(places, count):
    """Some numbers at once and others not, and as many terms as 34 pods have; a sum may be none."""
    rng, bits, terms = np.random.default_rng(count), DIGIT * places, 18
    x = [[v >> 5 for v in numbers(rng, terms, bits)] for _ in range(count)]
    y = numbers(rng, terms, bits)
    left, right = rng.permutation(terms), rng.permutation(terms)
    ends = np.array([0, 1, 7, terms])
    stacked = np.stack([to_digits(row, places + 1) for row in x], axis=2)
    found = products(stacked, to_digits(y, places + 1), left, right, ends)
    for entry, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        for row, value in zip(x, to_numbers(found[entry]), strict=True):
            exact = sum(row[i] * y[j] for i, j in zip(left[start:end], right[start:end], strict=True))
            assert 0 <= (exact >> bits) - value <= 1


def test_the_largest_digits_of_the_longest_numbers_do_not_overflow():
    """More terms and digits than chances of 32 pods ever have, all of them as large as can be."""
    places, terms = 150, 20
    large = 2 ** (DIGIT * places) - 1
    x = np.repeat(to_digits([large >> 5] * terms, places + 1)[..., None], 3, axis=2)
    y, order = to_digits([large] * terms, places + 1), np.arange(terms)
    exact = terms * (large >> 5) * large >> DIGIT * places
    for value in to_numbers(products(x, y, order, order, np.array([terms]))[0]):
        assert 0 <= exact - value <= 1
