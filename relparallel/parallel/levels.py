"""All-reduces over levels of links: rounds, price, the best factors; which machines are close."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np

from relparallel._checks import require_int, require_number, require_real
from relparallel.parallel.algorithms import between_nodes, in_nodes
from relparallel.parallel.collectives import (
    Round,
    algorithm,
    require_group,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)


@algorithm("all_reduce", "blueconnect")
def blueconnect_all_reduce(
    ranks: int, elements: int, factors: Sequence[int] | None = None
) -> Iterator[Round]:
    """Reduce-scatter in groups of p_1 ranks, each chunk in p_2 such groups, etc.; then gather back.

    The factors multiply to n; its prime factors where omitted. Cho et al., MLSys 2019, section 3.
    """
    require_group(ranks, elements)
    sizes = prime_factors(ranks) if factors is None else factors
    if isinstance(sizes, str) or not isinstance(sizes, Sequence) or not sizes:
        raise TypeError(f"factors must be a sequence of integers, got {sizes!r}")
    first, *rest = (require_int(factors=factor, at_least=1) for factor in sizes)
    if math.prod((first, *rest)) != ranks:
        raise ValueError(f"factors must multiply to ranks = {ranks}, got {factors!r}")
    if not rest:
        return ring_all_reduce(ranks, elements)
    return chain(
        in_nodes(ranks, first, ring_reduce_scatter, elements),
        between_nodes(ranks, first, partial(blueconnect_all_reduce, factors=rest), elements),
        in_nodes(ranks, first, ring_all_gather, elements),
    )


def prime_factors(number: int) -> list[int]:
    """Prime factors from the smallest; 1 of 1."""
    for prime in range(2, math.isqrt(number) + 1):
        if number % prime == 0:
            return [prime, *prime_factors(number // prime)]
    return [number]


def blueconnect_time(size: float, levels: Sequence[tuple[int, float, float]]) -> float:
    """Time of an all-reduce by reduce-scatters and all-gathers on every level of links.

    Parameters
    ----------
    size : float
        S [bytes] of every rank.
    levels : sequence of (ranks, latency, bandwidth)
        From the innermost: ranks p_i that a group of the level joins, a_i [s] for a round, b_i
        [bytes/s].

    Returns
    -------
    float
        Sum over levels of 2 ((p_i - 1) a_i + (p_i - 1)/p_i S_i / b_i), where S_i shrinks by p_i
        from level to level: the slower a level, the later it should come
        (`best_blueconnect_order`). One level is the ring. Cho et al., MLSys 2019, section 3.

    Examples
    --------
    >>> blueconnect_time(100e6, [(8, 3e-6, 150e9), (4, 5e-6, 12.5e9)]) < blueconnect_time(
    ...     100e6, [(32, 5e-6, 12.5e9)])
    True
    """
    left, total = float(require_real(size=size, at_least=0)), 0.0
    for ranks, latency, bandwidth in require_levels(levels):
        total += 2 * ((ranks - 1) * latency + (ranks - 1) / ranks * left / bandwidth)
        left /= ranks
    return total


def best_blueconnect_order(
    size: float, levels: Sequence[tuple[int, float, float]]
) -> tuple[tuple[int, float, float], ...]:
    """Levels cut into groups and put in order so that `blueconnect_time` is least.

    Parameters
    ----------
    size, levels : float, sequence of (ranks, latency, bandwidth)
        As `blueconnect_time` takes them.

    Returns
    -------
    tuple of (ranks, latency, bandwidth)
        The prime factors of all levels, the fastest level first. Latencies do not depend on the
        order, two neighbours (p, b), (q, c) cost (1 - 1/p)(1 - 1/q)(1/b - 1/c) S more than the
        other way round, and a group of p q ranks costs (p - 1)(q - 1) latencies more than one of p
        and one of q.

    Examples
    --------
    >>> [ranks for ranks, _, _ in best_blueconnect_order(1e8, [(4, 5e-6, 12.5e9), (6, 3e-6, 150e9)])]
    [2, 3, 2, 2]
    """
    require_number(size=size, at_least=0)
    cut = [(prime, a, b) for p, a, b in require_levels(levels) for prime in prime_factors(p)]
    return tuple(sorted(cut, key=lambda level: -level[2]))


def require_levels(levels: Sequence[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """Ranks, latency and bandwidth of every level, or why they are none."""
    allowed = "1 to 64 levels of (ranks of 1 to 2**31, latency >= 0 [s], bandwidth > 0 [bytes/s])"
    if isinstance(levels, str) or not isinstance(levels, Sequence | np.ndarray):
        raise TypeError(f"levels must be {allowed}, got {levels!r:.80}")
    try:
        known = [(int(p), float(a), float(b)) for p, a, b in levels]
        whole = all(p == given[0] for (p, _, _), given in zip(known, levels, strict=True))
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"levels must be {allowed}, got {levels!r:.80}") from None
    valid = all(1 <= p <= 2**31 and 0 <= a < math.inf and 0 < b < math.inf for p, a, b in known)
    if not (1 <= len(known) <= 64 and whole and valid):
        raise ValueError(f"levels must be {allowed}, got {levels!r:.80}")
    return known
