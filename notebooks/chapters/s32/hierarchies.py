"""All-reduces over levels of links: groups that a network shows, and rounds of several levels."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import average, fcluster
from scipy.spatial.distance import squareform

from relparallel.parallel.collectives import Round, checked
from relparallel.parallel.levels import require_levels


def level_rounds_time(
    rounds: Iterable[Round], levels: Sequence[tuple[int, float, float]], *, element_bytes: float = 1
) -> float:
    """Seconds of rounds of messages on any number of levels of links.

    A round lasts until the rank that sends most on any level is done. Ranks are numbered level by
    level, the innermost fastest. ``levels`` are (ranks, latency, bandwidth) from the innermost: how
    many units of the level below one of the level joins; latency [s] and bandwidth [bytes/s] of one
    rank to ranks that no inner level joins to it.

    >>> from relparallel.parallel import ring_all_reduce
    >>> level_rounds_time(ring_all_reduce(4, 400), [(2, 0.0, 1e3), (2, 1.0, 1e2)])
    12.0
    """
    known = require_levels(levels)
    width = np.cumprod([ranks for ranks, _, _ in known])
    seconds = 0.0
    for step in checked(rounds):
        level = np.sum([step.source // w != step.destination // w for w in width], axis=0)
        if level.max(initial=0) >= len(known):
            raise ValueError(f"rounds must have ranks below {width[-1]}, which the levels join")
        spent = [0.0]
        for i, (_, latency, bandwidth) in enumerate(known):
            if (on := level == i).any():
                most = np.bincount(step.source[on], weights=step.elements[on]).max()
                spent.append(latency + most * element_bytes / bandwidth)
        seconds += max(spent)
    return float(seconds)


def ready_rounds_time(
    rounds: Iterable[Round], levels: Sequence[tuple[int, float, float]], *, element_bytes: float = 1
) -> float:
    """Seconds of rounds that do not keep step: a rank sends as soon as it has what it needs.

    A message leaves when its sender has received all of its earlier rounds and has put its earlier
    messages of the same level on the link; it holds the link for its bytes, and arrives a latency
    later. Levels as for `level_rounds_time`, of which this is never more.

    >>> from relparallel.parallel import ring_all_reduce
    >>> round(ready_rounds_time(ring_all_reduce(4, 400), [(2, 0.0, 1e3), (2, 1.0, 1e2)]), 9)
    7.2
    """
    known = require_levels(levels)
    width = np.cumprod([ranks for ranks, _, _ in known])
    latency, bandwidth = (np.array([level[i] for level in known]) for i in (1, 2))
    received, free = np.zeros(width[-1]), np.zeros((width[-1], len(known)))
    for step in checked(rounds):
        level = np.sum([step.source // w != step.destination // w for w in width], axis=0)
        start = np.maximum(received[step.source], free[step.source, level])
        sent = start + step.elements * element_bytes / bandwidth[level]
        np.maximum.at(free, (step.source, level), sent)
        np.maximum.at(received, step.destination, sent + latency[level])
    return float(received.max())


def flip_size(sizes: NDArray[np.float64], ratio: ArrayLike) -> float:
    """First size at which a ratio rises through 1, between sizes by logarithms; nan if it does not.

    >>> round(flip_size(np.array([1.0, 10.0, 100.0]), [0.1, 0.5, 2.0]), 6)
    31.622777
    """
    log = np.log(np.asarray(ratio, dtype=float))
    rises = np.flatnonzero((log[:-1] < 0) & (log[1:] >= 0))
    if not len(rises):
        return float("nan")
    pair = slice(rises[0], rises[0] + 2)
    return float(np.exp(np.interp(0.0, log[pair], np.log(sizes[pair]))))


def discover_groups(probes: ArrayLike, groups: int | None = None) -> NDArray[np.int64]:
    """Groups of machines, such as racks, by latencies between them: each machine's group number.

    ``probes`` [machines, machines] are measured latencies [s]; the diagonal is not read, both
    directions of a pair count. Average linkage merges the closest groups first, down to ``groups``,
    or to as many as stand before the largest ratio of two merging distances. Noise below half of
    the step between two levels of distance cannot part a rack or join two. Luo et al., "PLink:
    discovering and exploiting datacenter network locality", MLSys 2020, section 3.

    >>> discover_groups([[0, 1, 5, 5], [1, 0, 5, 5], [5, 5, 0, 1.2], [5, 5, 1, 0]]).tolist()
    [0, 0, 1, 1]
    """
    measured = np.asarray(probes, dtype=float)
    n = len(measured)
    both = (measured + measured.T) / 2
    np.fill_diagonal(both, 0.0)
    tree = average(squareform(both, checks=False))
    if groups is None:
        height = np.maximum(tree[:, 2], np.finfo(float).tiny)
        groups = n - 1 - int(np.argmax(height[1:] / height[:-1])) if n > 2 else 2
    label = fcluster(tree, groups, criterion="maxclust")
    _, first, number = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[number], dtype=np.int64)
