"""Which device of a server runs which stage of a pipeline: neighbouring stages on fast links."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from chapters.s35._ideals import FloatArray
from relparallel._checks import require_choice, require_real

# : NVLinks between the GPUs of a DGX-1 with V100 (``nvidia-smi topo -m``), each of 25 GB/s either
# way.
DGX1_NVLINKS: Final = (
    (0, 1, 1, 2, 2, 0, 0, 0),
    (1, 0, 2, 1, 0, 2, 0, 0),
    (1, 2, 0, 2, 0, 0, 1, 0),
    (2, 1, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 1, 1, 2),
    (0, 2, 0, 0, 1, 0, 2, 1),
    (0, 0, 1, 0, 1, 2, 0, 2),
    (0, 0, 0, 1, 2, 1, 2, 0),
)
_MOST_DEVICES: Final = 16


class StageOrder(NamedTuple):
    """Device of each stage; the route of each output to the next stage, and what it takes [s].

    A route of two devices that no NVLink joins goes over PCIe. ``value`` is what was minimised [s].
    """

    devices: tuple[int, ...]
    routes: tuple[tuple[int, ...], ...]
    seconds: FloatArray
    value: float


def stage_order(
    nvlink: ArrayLike,
    sizes: ArrayLike,
    *,
    pcie: float,
    latency: float = 0.0,
    pcie_latency: float = 0.0,
    grouped: int = 1,
    objective: str = "sum",
    last: Sequence[int] | None = None,
) -> StageOrder:
    """The order of devices along which a pipeline sends in the least time.

    ``nvlink`` is the bandwidth between devices [B/s], shape [n, n], symmetric, 0 where no NVLink
    is, n <= 16; ``sizes`` are the bytes that each stage but the last sends for a micro-batch, fewer
    than n of them; ``pcie`` is the bandwidth between any two devices through the host [B/s],
    ``pcie_latency`` the seconds of a call, which ``grouped`` micro-batches share; ``latency`` the
    seconds of a transfer over one NVLink. Minimised is the "sum" of all transfers of a micro-batch,
    or the "bottleneck", the longest one, and of such orders the one of least sum. ``last``: devices
    that may run the last stage.

    ``t(b) = min(sum over a path of NVLinks (latency + b/B), pcie_latency/grouped + b/pcie)``: each
    device of a path stores and forwards. Held-Karp over sets of devices (J. SIAM 1962): the number
    of devices in a set tells which output comes next. O(2^n n^2). Transfers do not share links in
    time.

    >>> ring = [[0, 9, 0, 3], [9, 0, 9, 0], [0, 9, 0, 9], [3, 0, 9, 0]]
    >>> found = stage_order(ring, [18, 18, 9], pcie=1.0)
    >>> found.devices, found.seconds.tolist()
    ((3, 2, 1, 0), [2.0, 2.0, 1.0])
    """
    links, bytes_sent = np.asarray(nvlink, dtype=float), np.asarray(sizes, dtype=float)
    n = len(links)
    if n > _MOST_DEVICES or (links != links.T).any():
        raise ValueError(f"nvlink must be symmetric, of at most {_MOST_DEVICES} devices")
    require_real(
        nvlink=links, sizes=bytes_sent, latency=latency, pcie_latency=pcie_latency, at_least=0
    )
    require_real(pcie=pcie, above=0)
    require_choice(("sum", "bottleneck"), objective=objective)
    ends = list(range(n) if last is None else last)
    hops = [_hops(links, b, latency) for b in bytes_sent]
    paths = [np.asarray(nx.floyd_warshall_numpy(graph, range(n))) for graph in hops]
    over_host = pcie_latency / grouped + bytes_sent / pcie
    costs = [np.minimum(path, time) for path, time in zip(paths, over_host, strict=True)]
    value, devices = _held_karp(costs, ends, np.add if objective == "sum" else np.maximum)
    if objective == "bottleneck":
        _, devices = _held_karp(
            [np.where(cost <= value, cost, np.inf) for cost in costs], ends, np.add
        )
    pairs = list(pairwise(devices))
    routes = [
        (u, v)
        if over_host[i] < paths[i][u, v]
        else tuple(nx.shortest_path(hops[i], u, v, "weight"))
        for i, (u, v) in enumerate(pairs)
    ]
    seconds = np.array([cost[pair] for cost, pair in zip(costs, pairs, strict=True)])
    return StageOrder(devices, tuple(routes), seconds, value)


def _hops(links: FloatArray, size: float, latency: float) -> "nx.Graph[int]":
    """NVLinks with the seconds of so many bytes."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(links)))
    for u, v in zip(*np.nonzero(np.triu(links)), strict=True):
        graph.add_edge(int(u), int(v), weight=latency + size / links[u, v])
    return graph


def _held_karp(
    costs: list[FloatArray], ends: list[int], combine: np.ufunc
) -> tuple[float, tuple[int, ...]]:
    """Least value of a path of len(costs) steps through distinct devices to one of ``ends``."""
    n = len(costs[0])
    sets = np.arange(1 << n)
    size = np.bitwise_count(sets)
    best = np.full((1 << n, n), np.inf)
    best[1 << np.arange(n), np.arange(n)] = 0.0
    before = np.zeros((1 << n, n), dtype=np.int8)
    for step, cost in enumerate(costs, 1):
        for j in range(n):
            held = sets[(size == step) & (sets >> j & 1 == 0)]
            through = combine(best[held], cost[:, j])
            before[held | 1 << j, j] = through.argmin(axis=1)
            best[held | 1 << j, j] = through.min(axis=1)
    final = sets[size == len(costs) + 1]
    at, end = np.unravel_index(best[np.ix_(final, ends)].argmin(), (final.size, len(ends)))
    held_now, j = int(final[at]), ends[int(end)]
    value, order = float(best[held_now, j]), [j]
    for _ in costs:
        earlier = int(before[held_now, j])
        held_now, j = held_now & ~(1 << j), earlier
        order.append(j)
    return value, tuple(order[::-1])
