"""Communication beside computation: how both slow down, and what of the communication still shows.

The closed forms are exact, and `prefetched_timeline` runs the same tasks on the simulator of schedules. Where
messages may be sent in several orders, see `order`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_real
from relparallel.parallel._arguments import bare, require_column
from relparallel.parallel.timeline import Timeline, simulate_timeline


def overlap_time(
    compute: ArrayLike,
    communication: ArrayLike,
    *,
    compute_slowdown: ArrayLike = 1.0,
    communication_slowdown: ArrayLike = 1.0,
) -> Any:
    """Time of a computation and a communication that start together and slow each other down.

    Parameters
    ----------
    compute, communication : array_like
        Seconds of each alone, at least 0.
    compute_slowdown, communication_slowdown : array_like
        How many times longer each takes while the other runs, at least 1.

    Returns
    -------
    float or numpy.ndarray
        Seconds until both are done: of the stretched times x = a X and y = b Y the shorter ends first, and
        the rest of the other runs at full speed, x + (y - x)/b or y + (x - y)/a. To overlap is no slower than
        one after the other exactly if 1/a + 1/b >= 1. Miao et al., "Galvatron", VLDB 2022.

    Examples
    --------
    >>> overlap_time(3.0, 1.0, compute_slowdown=1.6, communication_slowdown=1.25)  # by 1.25 s 0.78 s done
    3.46875
    """
    x, y = require_real(compute=compute, communication=communication, at_least=0)
    a, b = require_real(
        compute_slowdown=compute_slowdown, communication_slowdown=communication_slowdown, at_least=1
    )
    first = np.minimum(a * x, b * y)
    return bare(first + np.maximum(x - first / a, y - first / b))


def prefetched_time(compute: ArrayLike, gather: ArrayLike, scatter: ArrayLike = 0.0) -> float:
    """Time of a pass over sharded layers that gathers the next layer while one is at work.

    Parameters
    ----------
    compute : array_like
        Seconds of each layer, [layers].
    gather, scatter : array_like
        Seconds to gather the parameters and to scatter the gradients of each layer, [layers] or one for all;
        the second is 0 in a forward pass.

    Returns
    -------
    float
        Seconds, g_1 + sum over i of max(f_i, g_(i+1) + s_(i-1)) + s_n: under the work of layer i go the
        gathering for i + 1 and the scattering of i - 1, and all three end before layer i + 1 starts, which
        limits memory to two layers. Zhao et al., "PyTorch FSDP", VLDB 2023, section 3.3.

    Examples
    --------
    >>> prefetched_time([3.0, 3.0, 3.0], 2.0)
    11.0
    """
    work, got = _columns(compute, gather=gather)
    back = require_column("scatter", scatter, work.size, at_least=0)
    beside = np.append(got[1:], 0.0) + np.append(0.0, back[:-1])
    return float(got[0] + np.maximum(work, beside).sum() + back[-1])


def prefetched_timeline(compute: ArrayLike, gather: ArrayLike, scatter: ArrayLike = 0.0) -> Timeline:
    """Simulate such a pass on two resources: 0 computes, 1 communicates.

    Parameters
    ----------
    compute, gather, scatter : array_like
        Seconds, as `prefetched_time` takes them.

    Returns
    -------
    Timeline
        Tasks of kinds "compute", "gather" and "scatter".

    Examples
    --------
    >>> prefetched_timeline([3.0, 3.0, 3.0], 2.0).makespan
    11.0
    """
    work, sent = _columns(compute, gather=gather)
    back = require_column("scatter", scatter, work.size, at_least=0)
    # A layer starts when its own gathering, the work before and the scattering two before are done; with it
    # starts the gathering for the next layer, then the scattering of the layer before.
    layer_needs, gather_needs = [(1, 0, 0), (0, 0, 1), (2, 0, 2)], [(0, 1, 2), (2, 1, 3)]
    scatter_needs = [(0, 2, 0), (1, 2, -1), (1, 2, -2), (2, 2, 1)]
    needs, layer = layer_needs + gather_needs + scatter_needs, np.arange(work.size)
    return _timeline(("compute", "gather", "scatter"), (work, sent, back), layer, needs)


def _columns(compute: ArrayLike, **other: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times of computation and of communication, one entry per layer."""
    work = np.asarray(require_real(compute=compute, at_least=0))
    if work.ndim != 1:
        raise ValueError(f"compute must be a list of times, got shape {work.shape}")
    ((name, times),) = other.items()
    return work, require_column(name, times, work.size, at_least=0)


def _timeline(
    kinds: tuple[str, ...], durations: tuple[NDArray[np.float64], ...], layer: NDArray[np.int64],
    needs: list[tuple[int, int, int]],
) -> Timeline:  # fmt: skip
    """Timeline of one task of each kind for each layer.

    A need (before, after, d): the task of kind ``after`` in layer i waits for kind ``before`` in layer i - d.
    """
    n, many = layer.size, len(kinds)
    edges = [
        (before * n + layer[keep] - apart, after * n + layer[keep])
        for before, after, apart in needs
        for keep in [(layer - apart >= 0) & (layer - apart < n)]
    ]
    before, after = (np.concatenate(side) for side in zip(*edges, strict=True))
    kind, item = np.repeat(np.arange(many), n), np.tile(layer, many)
    resource, duration = np.minimum(kind, 1), np.concatenate(durations)
    start = simulate_timeline(resource, duration, item, before, after)
    return Timeline(
        resources=2, resource=resource, start=start, duration=duration, holding=np.zeros(n * many),
        kind=np.array(kinds)[kind], item=item, part=np.zeros(n * many, dtype=np.int64),
    )  # fmt: skip
