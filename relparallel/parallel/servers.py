"""Servers that sum gradients, alone or beside the workers: time and rounds; time of a superstep.

n workers send M bytes each and want the sum back; a NIC carries B bytes/s each way, both ways at
once. Of the n + k ranks of a round the first n are workers with a gradient each, the last k are
servers, which start from zero. Every generator stands under the kind "server_sum" and leaves the
sum with all workers.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np

from relparallel._checks import require_int
from relparallel.parallel.algorithms import in_nodes
from relparallel.parallel.collectives import (
    Round,
    Whole,
    algorithm,
    bounds,
    messages,
    placed,
    require_group,
    ring_all_gather,
    ring_reduce_scatter,
    together,
)


@algorithm("server_sum", "flat")
def server_rounds(
    ranks: int, elements: int, servers: int = 1, replicas: int = 1
) -> Iterator[Round]:
    """Push every k-th of the vector to its server, forward it to r - 1 more, pull it back.

    Li et al., OSDI 2014, section 4.3.
    """
    n, k = _workers(ranks, elements, servers), servers
    require_int(replicas=replicas, at_least=1, at_most=servers)
    cut, keys = bounds(k, elements), np.arange(k, dtype=np.int64)
    push, pull = _push_and_pull(np.arange(n), n + keys, cut)
    forward = [
        messages(n + (keys + copy - 1) % k, n + (keys + copy) % k, cut[keys], cut[keys + 1], False)
        for copy in range(1, replicas)
    ]
    return iter((push, *forward, pull))


@algorithm("server_sum", "byteps")
def byteps_rounds(ranks: int, elements: int, servers: int = 1) -> Iterator[Round]:
    """Push to k servers and to the other workers what each of them sums, and pull it back.

    The shares are those of `byteps_time`, to whole elements. Jiang et al., OSDI 2020, theorem 1.
    """
    n, k = _workers(ranks, elements, servers), servers
    require_int(servers=servers, at_least=1, at_most=n)
    by_servers = elements * 2 * k * (n - 1) // (n * n + k * n - 2 * k)
    cut = np.concatenate([bounds(k, by_servers), by_servers + bounds(n, elements - by_servers)[1:]])
    return iter(_push_and_pull(np.arange(n), np.roll(np.arange(n + k), k), cut))


@algorithm("server_sum", "hierarchical")
def hierarchical_server_rounds(
    ranks: int, elements: int, servers: int = 1, ranks_per_node: int = 1
) -> Iterator[Round]:
    """Sum whole vectors at a server of every node of g workers, then at k servers of all nodes.

    Ranks: n workers, n/g servers of nodes, k servers. On switches instead of machines this is
    summation in the network (SHARP; NVLS with one level). Graham et al., COM-HPC 2016.
    """
    nodes = _nodes(ranks - servers, ranks_per_node + 1, elements, servers)
    n = nodes * ranks_per_node
    worker, node = np.arange(n, dtype=np.int64), n + np.arange(nodes)
    ends = worker, node[worker // ranks_per_node]
    push, pull = _push_and_pull(node, n + nodes + np.arange(servers), bounds(servers, elements))
    return iter(
        (messages(*ends, 0, elements, True), push, pull, messages(*ends[::-1], 0, elements, False))
    )


@algorithm("server_sum", "gpu_hierarchical")
def gpu_hierarchical_server_rounds(
    ranks: int, elements: int, servers: int = 1, ranks_per_node: int = 1
) -> Iterator[Round]:
    """Reduce-scatter among the g GPUs of every node, push and pull each chunk by its GPU, gather.

    Ranks: n GPUs, k servers. The network carries one vector a node, each way. Jiang et al., OSDI
    2020, 4.2.
    """
    g = ranks_per_node
    n = g * _nodes(ranks - servers, g, elements, servers)
    cut = bounds(g, elements)
    between = together(
        placed(
            server_rounds(n // g + servers, int(cut[chunk + 1] - cut[chunk]), servers),
            np.concatenate([np.arange(gpu, n, g), np.arange(n, ranks)]),
            int(cut[chunk]),
        )
        for gpu in range(g)
        for chunk in [(gpu + 1) % g]
        if cut[chunk + 1] > cut[chunk]
    )
    inside = (in_nodes(n, g, ring, elements) for ring in (ring_reduce_scatter, ring_all_gather))
    return chain(next(inside), between, next(inside))


def _push_and_pull(workers: Whole, summers: Whole, cut: Whole) -> tuple[Round, Round]:
    """Every worker sends part j to summer j, who sends the sum back; nobody sends to itself."""
    worker, part = (
        grid.ravel() for grid in np.meshgrid(workers, np.arange(summers.size), indexing="ij")
    )
    apart = worker != summers[part]
    worker, part = worker[apart], part[apart]
    span = cut[part], cut[part + 1]
    return (
        messages(worker, summers[part], *span, True),
        messages(summers[part], worker, *span, False),
    )


def _workers(ranks: int, elements: int, servers: int) -> int:
    """Check the numbers; return that of the workers."""
    require_group(ranks, elements)
    require_int(servers=servers, at_least=1, at_most=ranks - 1)
    return ranks - servers


def _nodes(others: int, size: int, elements: int, servers: int) -> int:
    """Nodes of so many ranks, among all but the servers."""
    require_int(servers=servers, at_least=1)
    require_group(others + servers, elements)
    require_int(ranks_per_node=size, at_least=1)
    if others < 1 or others % size:
        raise ValueError(
            f"ranks_per_node must give nodes of {size} among {others} ranks, got a rest"
        )
    return others // size
