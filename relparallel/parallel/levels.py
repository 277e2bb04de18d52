"""All-reduces over several levels of links: rounds, price, the best factors; and which machines are close."""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_int, require_number, require_real
from relparallel.parallel.algorithms import between_nodes, in_nodes
from relparallel.parallel.collectives import (
    Round,
    algorithm,
    checked,
    require_group,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)


@algorithm("all_reduce", "blueconnect")
def blueconnect_all_reduce(
    ranks: int, elements: int, factors: Sequence[int] | None = None
) -> Iterator[Round]:
    """Reduce-scatter in groups of p_1 ranks, each chunk in p_2 such groups, and so on; then gather back.

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
        From the innermost: ranks p_i that a group of the level joins, a_i [s] for a round, b_i [bytes/s].

    Returns
    -------
    float
        Sum over levels of 2 ((p_i - 1) a_i + (p_i - 1)/p_i S_i / b_i), where S_i shrinks by p_i from level to
        level: the slower a level, the later it should come (`best_blueconnect_order`). One level is the ring.
        Cho et al., MLSys 2019, section 3.

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
        The prime factors of all levels, the fastest level first. Latencies do not depend on the order, two
        neighbours (p, b), (q, c) cost (1 - 1/p)(1 - 1/q)(1/b - 1/c) S more than the other way round, and a
        group of p q ranks costs (p - 1)(q - 1) latencies more than one of p and one of q.

    Examples
    --------
    >>> [ranks for ranks, _, _ in best_blueconnect_order(1e8, [(4, 5e-6, 12.5e9), (6, 3e-6, 150e9)])]
    [2, 3, 2, 2]
    """
    require_number(size=size, at_least=0)
    cut = [(prime, a, b) for p, a, b in require_levels(levels) for prime in prime_factors(p)]
    return tuple(sorted(cut, key=lambda level: -level[2]))


def level_rounds_time(
    rounds: Iterable[Round], levels: Sequence[tuple[int, float, float]], *, element_bytes: float = 1
) -> float:
    """Price rounds on any number of levels of links.

    Parameters
    ----------
    rounds, element_bytes : iterable of Round, float
        Messages, round by round; ranks are numbered level by level, the innermost fastest. Bytes of one
        element, above 0.
    levels : sequence of (ranks, latency, bandwidth)
        From the innermost: how many units of the level below one of the level joins; latency [s] and
        bandwidth [bytes/s] of one rank to ranks that no inner level joins to it.

    Returns
    -------
    float
        Seconds: a round lasts until the rank that sends most on any level is done.

    Examples
    --------
    >>> level_rounds_time(ring_all_reduce(4, 400), [(2, 0.0, 1e3), (2, 1.0, 1e2)])
    12.0
    """
    known = require_levels(levels)
    require_number(element_bytes=element_bytes, above=0)
    width = np.cumprod([ranks for ranks, _, _ in known])
    seconds = 0.0
    for step in checked(rounds):
        level = np.sum([step.source // w != step.destination // w for w in width], axis=0)
        if level.max(initial=0) >= len(known):
            raise ValueError(f"rounds must have ranks below {width[-1]}, which the levels join")
        seconds += max(
            (a + np.bincount(step.source[on], weights=step.elements[on]).max() * element_bytes / b
             for i, (_, a, b) in enumerate(known) for on in [level == i] if on.any()), default=0.0,
        )  # fmt: skip
    return float(seconds)


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


def discover_groups(probes: ArrayLike, groups: int | None = None) -> NDArray[np.int64]:
    """Find groups of machines, such as racks, by the latencies between them.

    Parameters
    ----------
    probes : array_like [machines, machines]
        Measured latencies [s]; the diagonal is not read, both directions of a pair count.
    groups : int, optional
        How many groups; where omitted, as many as stand before the largest ratio of two merging distances.

    Returns
    -------
    numpy.ndarray of int [machines]
        Number of each machine's group, in the order of first members. Average linkage merges the closest
        groups first, O(machines^2 log machines). Noise below half of the step between two levels of distance
        cannot part a rack or join two. Luo et al., "PLink: discovering and exploiting datacenter network
        locality", MLSys 2020, section 3.

    Examples
    --------
    >>> discover_groups([[0, 1, 5, 5], [1, 0, 5, 5], [5, 5, 0, 1.2], [5, 5, 1, 0]]).tolist()
    [0, 0, 1, 1]
    """
    from scipy.cluster.hierarchy import average, fcluster
    from scipy.spatial.distance import squareform

    measured = np.asarray(require_real(probes=probes, at_least=0))
    n = len(measured) if measured.ndim == 2 else 0
    if n < 2 or measured.shape != (n, n):
        raise ValueError(f"probes must be [machines, machines], at least two, got shape {measured.shape}")
    both = (measured + measured.T) / 2
    np.fill_diagonal(both, 0.0)
    tree = average(squareform(both, checks=False))
    if groups is None:
        height = np.maximum(tree[:, 2], np.finfo(float).tiny)
        groups = n - 1 - int(np.argmax(height[1:] / height[:-1])) if n > 2 else 2
    label = fcluster(tree, require_int(groups=groups, at_least=1, at_most=n), criterion="maxclust")
    _, first, number = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[number], dtype=np.int64)
