"""What k failed nodes hit when every set of k nodes is as likely as every other.

A job of N nodes falls into U units of g nodes each. The functions return one entry or row for every
k = 0 … ``down`` and only add and multiply positive numbers, so that small probabilities keep their
digits.
"""

import math
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def unit_clean(nodes: int, size: int, down: int) -> Array:
    """Probability that a given unit has no failed node, C(N - g, k) / C(N, k); O(down)."""
    failed, clean = np.arange(down), np.ones(down + 1)
    clean[1:] = np.cumprod(np.maximum(nodes - size - failed, 0) / (nodes - failed))
    return clean


def failed_in_unit(nodes: int, size: int, down: int) -> Array:
    """Probability that a given unit has i failed nodes, shape (down + 1, min(g, down) + 1)."""
    most = min(size, down)
    inside, found = np.arange(most + 1), np.zeros((down + 1, most + 1))
    found[0, 0] = 1.0
    for failed in range(down):
        outside = np.maximum(nodes - size - failed + inside, 0)
        found[failed + 1] = found[failed] * outside / (nodes - failed)
        found[failed + 1, 1:] += found[failed, :-1] * (size - inside[:-1]) / (nodes - failed)
    return found


def units_hit(units: int, size: int, down: int) -> Array:
    """Probability that exactly j units are hit, shape (down + 1, min(U, down) + 1).

    A Markov chain in k: of the N - k nodes still up, j g - k stand in units that are hit already.
    O(down min(U, down)).
    """
    most = min(units, down)
    hit, found = np.arange(most + 1), np.zeros((down + 1, most + 1))
    held, clean = (hit * size).astype(np.float64), (units - hit).astype(np.float64)
    found[0, 0] = 1.0
    for failed in range(down):
        # no more units are hit than nodes have failed, and none fewer than hold them
        first, end = -(-failed // size), min(failed, most) + 1
        now, left = found[failed, first:end], units * size - failed
        found[failed + 1, first:end] = now * (held[first:end] - failed) / left
        stop = min(end, most)
        more = now[: stop - first] * clean[first:stop] * size / left
        found[failed + 1, first + 1 : stop + 1] += more
    return found


def all_units_hit(units: int, size: int, down: int) -> Array:
    """Probability that every unit is hit, with k = 0 … ``down``; found once for about as many."""
    return _all_units_hit(units, size, min(1 << down.bit_length(), units * size))[: down + 1]


@lru_cache(maxsize=64)
def _all_units_hit(units: int, size: int, down: int) -> Array:
    """The last column of `units_hit`."""
    found = units_hit(units, size, down)[:, units].copy()
    found.flags.writeable = False
    return found


def set_inside(nodes: int, size: int, down: int) -> float:
    """Probability that some set of g nodes is down whole, with k of N down; N/g such sets, disjoint."""
    if down < size:
        return 0.0
    share = down / (nodes + 1)
    each = binomial(size, share, down)
    each[size] = 0.0
    clean = power(each, nodes // size, down)
    clean = product(clean, binomial(nodes % size, share, down), down)
    chance = binomial(nodes, share, down)[down]
    return float(1 - min(clean[down] / chance, 1.0)) if down < clean.size else 1.0


def product(one: Array, other: Array, down: int) -> Array:
    """Coefficients 0 … down of a product of two polynomials."""
    return np.convolve(one[: down + 1], other[: down + 1])[: down + 1]


def power(base: Array, exponent: int, down: int) -> Array:
    """Coefficients 0 … down of a power of a polynomial, by squaring."""
    result, square = np.ones(1), base[: down + 1]
    while exponent:
        if exponent & 1:
            result = product(result, square, down)
        exponent >>= 1
        if exponent:
            square = product(square, square, down)
    return result


def binomial(size: int, share: float, down: int) -> Array:
    """Probability that k of g nodes are down, each with a probability; k = 0 … min(g, down)."""
    return power(np.array([1 - share, share]), size, down)


def among_sets(nodes: int, down: int, joint: Callable[[float], Array]) -> Array:
    """Mean of a quantity over all sets of k nodes, from its mean if nodes fail independently.

    ``joint(q)`` gives, for every k = 0 … down, the mean of the quantity times 1 where k nodes are
    down, each with probability q. Divided by P(k down) that is the mean over the sets, whatever q;
    a few values of q keep P(k down) far above the smallest float.
    """
    mean, start = np.zeros(down + 1), 0
    while start <= down:
        share = min((start + 300) / nodes, (start + nodes + 1) / (2 * nodes + 2))
        chance = np.zeros(down + 1)
        found = binomial(nodes, share, down)
        chance[: found.size] = found
        stop = start + int(np.argmin(np.append(chance[start:] > 1e-200, False)))
        mean[start:stop] = joint(share)[start:stop] / chance[start:stop]
        start = stop
    return mean


@cache
def surviving_sets(stages: int, pipelines: int, most: int, ring: bool = True) -> tuple[int, ...]:
    """Numbers of sets of 0 … ``most`` nodes without neighbours, in D rings or chains of P nodes.

    The power of the polynomial is one of whole numbers: its value at 2^w (Kronecker's
    substitution), where w bits hold every coefficient, cut off behind the last one wanted.
    """
    few = min(most, (stages + (not ring)) // 2)
    if ring:
        counts = [1] + [
            stages * math.comb(stages - k, k) // (stages - k) for k in range(1, few + 1)
        ]
    else:
        counts = [math.comb(stages - k + 1, k) for k in range(few + 1)]
    nodes = stages * pipelines
    width = math.comb(nodes, min(most, nodes // 2)).bit_length()
    packed = sum(count << (width * k) for k, count in enumerate(counts))
    power = pow(packed, pipelines, 1 << width * (most + 1))
    mask = (1 << width) - 1
    return tuple(power >> (width * k) & mask for k in range(most + 1))
