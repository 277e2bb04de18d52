"""Closed forms whose rounds differ: sums of the slower of two levels, and the best number of pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from relparallel.parallel.links import Links

_MOST_PIECES: Final = 2.0**20


def pipelined(size: Any, depth: Any, levels: Sequence[tuple[Any, Any]]) -> Any:
    """Time of depth + p - 1 rounds of size/p bytes at the slowest level, for the best whole p.

    The best p is sqrt((depth - 1) beta N/alpha) on one level; on several, the best of one or where the levels
    are equally fast, since the time of each is convex in p.
    """
    candidates = [np.asarray(1.0)]
    for latency, bandwidth in levels:
        ideal = np.sqrt(_over((depth - 1).clip(0) * size, latency * bandwidth))
        candidates += [np.floor(ideal), np.ceil(ideal)]
    if len(levels) == 2:
        (a, b), (c, d) = levels
        even = _over(size * (1 / d - 1 / b), a - c)
        candidates += [np.floor(even), np.ceil(even)]

    def time(pieces: Any) -> Any:
        p = np.clip(pieces, 1.0, _MOST_PIECES)
        slowest = np.max(np.broadcast_arrays(*(a + size / p / b for a, b in levels)), axis=0)
        return np.where(depth > 0, (depth + p - 1) * slowest, 0.0)

    return np.min(np.broadcast_arrays(*map(time, candidates)), axis=0)


def _over(above: Any, below: Any) -> Any:
    """Quotient; very large where nothing is below."""
    below = np.asarray(below, dtype=np.float64)
    return np.where(below != 0, above / np.where(below != 0, below, 1.0), _MOST_PIECES).clip(0)


def _sum_of_larger(count: Any, p: Any, q: Any, r: Any, s: Any) -> Any:
    """Sum of max(p + q j, r + s j) over j = 1 ... count: two arithmetic series that meet once."""
    meet = np.floor(np.where(q != s, (r - p) / np.where(q != s, q - s, 1.0), 0.0))
    first = np.clip(meet, 0, count)  # up to here the one with the smaller slope is larger
    flat, steep = np.where(q < s, p, r), np.where(q < s, r, p)
    low, high = np.minimum(q, s), np.maximum(q, s)
    flat, steep = np.where(q == s, np.maximum(p, r), flat), np.where(q == s, np.maximum(p, r), steep)
    triangle = first * (first + 1) / 2
    return flat * first + low * triangle + steep * (count - first) + high * (
        count * (count + 1) / 2 - triangle
    )  # fmt: skip


def all_to_all_direct(size: Any, n: Any, g: Any, links: Links) -> Any:
    """In the round to the rank d places on, min(d, n - d, g) messages leave every node."""
    near = links.latency + size / n / links.bandwidth
    chunk = size / n / links.network_bandwidth
    mixed = 2 * _sum_of_larger(g - 1, near, 0.0 * near, links.network_latency, chunk)
    far = (n - 1 - 2 * (g - 1)) * (links.network_latency + g * chunk)
    return np.where(n > g, mixed + far, (n - 1) * near)


def all_to_all_ring(size: Any, n: Any, g: Any, links: Links) -> Any:
    """One chunk less in every round, to the next rank."""
    none = (np.zeros_like(size / n), 0.0 * size / n)
    near = (links.latency, size / n / links.bandwidth)
    far = (links.network_latency, size / n / links.network_bandwidth)
    return _sum_of_larger(
        n - 1,
        *(np.where(g > 1, x, y) for x, y in zip(near, none, strict=True)),
        *(np.where(n > g, x, y) for x, y in zip(far, none, strict=True)),
    )


def bruck(size: Any, n: Any, g: Any, links: Links) -> Any:
    """In round j, min(2^j, n - 2^j) chunks to the rank 2^j places back."""
    seconds: Any = 0.0
    for level in range(int(np.max(n) - 1).bit_length()):
        reach = np.clip(np.minimum(2.0**level, n - 2.0**level), 0, None)
        sent = reach * size / n
        near = np.where((reach < g) & (g > 1), links.latency + sent / links.bandwidth, 0.0)
        out = np.minimum(reach, g) * sent
        far = np.where(n > g, links.network_latency + out / links.network_bandwidth, 0.0)
        seconds = seconds + np.where(2.0**level < n, np.maximum(near, far), 0.0)
    return seconds
