"""Collectives and transfers on the two levels of links of a cluster, compiled for the step kernel.

Sizes are bytes, ``h`` is a row of `MACHINE`, ``inside`` the ranks of a group that share a node;
seconds.
"""

from typing import Any

import numba
import numpy as np

from relparallel.parallel.collective_time import one_ring, rings_in_rings

_one_ring: Any = numba.njit(cache=True)(one_ring)
_rings_in_rings: Any = numba.njit(cache=True)(rings_in_rings)


@numba.njit(cache=True)  # type: ignore[misc]
def gather(size: Any, ranks: Any, inside: Any, ring: Any, h: Any) -> Any:
    """Cheapest reduce-scatter or all-gather of a vector among ranks of which some share a node.

    The forms of `collective_time` with calibrated links, whose latencies are counted on their own.
    Over several nodes, two levels save network and use it later. The halves of an all-reduce have
    the rounds of a tree between nodes if those are fewer, either half alone goes round the
    ``ring``: NCCL has no tree for it.
    """
    if ranks <= 1:
        return 0.0
    near = size / (h.node_link * h.link_share)
    if ranks <= inside:
        return _one_ring(ranks, 0.0, near, 0.0, 0.0) + h["round"] * (1 + 0.25 * ranks) / 2
    nodes = np.ceil(ranks / inside)
    # as many groups leave the node at once
    far = size * h.node / inside / (h.network * h.network_share)
    moved = min(
        _one_ring(ranks, 0.0, near, 0.0, far), _rings_in_rings(inside, nodes, 0.0, near, 0.0, far)
    )
    return (
        moved
        + h["round"] / 2
        + (nodes - 1 if ring else min(nodes - 1, np.ceil(np.log2(nodes)))) * h.hop
    )


@numba.njit(cache=True)  # type: ignore[misc]
def in_node(h: Any, stride: Any, ranks: Any) -> Any:
    """Ranks of a group that share a node, where neighbours in the group are so many GPUs apart."""
    return min(max(h.node / stride, 1.0), ranks)


@numba.njit(cache=True)  # type: ignore[misc]
def exchange(size: Any, ranks: Any, inside: Any, copies: Any, h: Any) -> Any:
    """All-to-all of what each rank holds, in the node and out of it at once.

    A dispatcher that knows nodes sends a token once to each node that has some of its experts: to
    k (1 - (1 - 1/k)^a) of k nodes where a experts are drawn.
    """
    if ranks <= 1:
        return 0.0
    near = size * (inside - 1) / ranks / (h.node_link * h.link_share)
    if ranks <= inside:
        return near + h["round"] * (1 + 0.25 * ranks) / 2
    far = size * (ranks - inside) / ranks * h.node / (h.network * h.network_share)
    if h.node_dispatch > 0:
        nodes = ranks / inside
        far *= nodes * (1 - (1 - 1 / nodes) ** copies) / copies
    return max(near, far) + h["round"] / 2 + h.hop


@numba.njit(cache=True)  # type: ignore[misc]
def send(size: Any, apart: Any, h: Any) -> Any:
    """Transfer to a GPU so many GPUs further on, while all others of the node do the same."""
    if apart < h.node:
        return size / (h.node_link * h.link_share) + h["round"] / 2
    return size * h.node / (h.network * h.network_share) + h.hop
