"""Collectives and transfers on the two levels of links of a cluster, as the time of a step needs them.

Sizes are bytes, ``h`` is a `Machine`, ``inside`` the ranks of a group that share a node; seconds.
"""

import numpy as np

from relparallel.parallel.collective_time import one_ring, rings_in_rings
from relparallel.parallel.columns import Numbers, some, where
from relparallel.parallel.records import Rates


def gather(size: Numbers, ranks: Numbers, inside: Numbers, ring: Numbers, h: Rates) -> Numbers:
    """Cheapest reduce-scatter or all-gather of a vector among ranks of which some share a node.

    The forms of `collective_time` with calibrated links, whose latencies are counted on their own.
    Over several nodes, two levels save network and use it later. The halves of an all-reduce have
    the rounds of a tree between nodes if those are fewer, either half alone goes round the
    ``ring``: NCCL has no tree for it.
    """
    if not some(ranks > 1):
        return 0.0
    near = size / (h.node_link * h.link_share)
    found = one_ring(ranks, 0.0, near, 0.0, 0.0) + h.round * (1 + 0.25 * ranks) / 2
    if some(ranks > inside):
        nodes = np.ceil(ranks / inside)
        # so many groups leave the node
        far = size * h.node / inside / (h.network * h.network_share)
        moved = np.minimum(
            one_ring(ranks, 0.0, near, 0.0, far), rings_in_rings(inside, nodes, 0.0, near, 0.0, far)
        )
        hops = where(ring, nodes - 1, np.minimum(nodes - 1, np.ceil(np.log2(nodes))))
        found = where(ranks <= inside, found, moved + h.round / 2 + hops * h.hop)
    return where(ranks <= 1, 0.0, found)


def in_node(h: Rates, stride: Numbers, ranks: Numbers) -> Numbers:
    """Ranks of a group that share a node, where neighbours in the group are so many GPUs apart."""
    return np.minimum(np.maximum(h.node / stride, 1.0), ranks)


def exchange(size: Numbers, ranks: Numbers, inside: Numbers, copies: Numbers, h: Rates) -> Numbers:
    """All-to-all of what each rank holds, in the node and out of it at once.

    A dispatcher that knows nodes sends a token once to each node that has some of its experts: to
    k (1 - (1 - 1/k)^a) of k nodes where a experts are drawn.
    """
    near = size * (inside - 1) / ranks / (h.node_link * h.link_share)
    far = size * (ranks - inside) / ranks * h.node / (h.network * h.exchange_share)
    if some(h.node_dispatch > 0):
        nodes = ranks / inside
        fewer = far * (nodes * (1 - (1 - 1 / nodes) ** copies) / copies)
        far = where(h.node_dispatch > 0, fewer, far)
    within = near + h.round * (1 + 0.25 * ranks) / 2
    across = np.maximum(near, far) + h.round / 2 + h.hop
    return where(ranks <= 1, 0.0, where(ranks <= inside, within, across))


def send(size: Numbers, apart: Numbers, h: Rates) -> Numbers:
    """Transfer to a GPU so many GPUs further on, while all others of the node do the same."""
    within = size / (h.node_link * h.link_share) + h.round / 2
    return where(apart < h.node, within, size * h.node / (h.network * h.network_share) + h.hop)
