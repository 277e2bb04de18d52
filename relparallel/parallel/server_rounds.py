"""Servers that sum gradients, alone or beside the workers: time and rounds; and the time of a superstep.

n workers send M bytes each and want the sum back; a NIC carries B bytes/s each way, both ways at once. Of the
n + k ranks of a round the first n are workers with a gradient each, the last k are servers, which start from
zero. Every generator stands under the kind "server_sum" and leaves the sum with all workers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import Result, require_int, require_real
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Summation(Result):
    """How the sum of gradients is shared out, and how long that takes."""

    time: float  #: until every worker has the sum [s]
    server_bytes: float  #: summed by each server
    worker_bytes: float  #: summed by each worker


def superstep_time(work: ArrayLike, messages: ArrayLike, gap: float, barrier: float) -> float:
    """Time of a superstep of the bulk-synchronous model, max w + g max h + l.

    Parameters
    ----------
    work, messages : array_like [workers]
        What each computes [s], and the more of what each sends and receives [bytes].
    gap, barrier : float
        Seconds for a byte, and for the barrier.

    Returns
    -------
    float
        Of the slowest worker, the busiest NIC and the barrier [s]. Valiant, Communications of the ACM 33(8),
        1990, section 4.

    Examples
    --------
    >>> superstep_time([1.0, 2.0], [1e9, 3e9], gap=1e-9, barrier=0.5)
    5.5
    """
    computed, sent = (
        np.max(require_real(work=work, at_least=0)), np.max(require_real(messages=messages, at_least=0)),
    )  # fmt: skip
    rate = require_real(gap=gap, at_least=0)
    return float(computed + rate * sent + require_real(barrier=barrier, at_least=0))


def server_time(workers: int, servers: int, size: float, bandwidth: float, replicas: int = 1) -> float:
    """Time in which servers of their own sum the gradients of all workers.

    Parameters
    ----------
    workers, servers, replicas : int
        n, and k of which each holds 1/k of the keys. Each range of keys is held by r servers in a chain: a
        server forwards what it summed to the next r - 1. A lost server then costs no state; its range moves
        to the next.
    size, bandwidth : float
        M [bytes] of a worker, and B of every NIC [bytes/s].

    Returns
    -------
    float
        max(M, (n + r - 1) M / k) / B: pushing, pulling and forwarding go on at once, the busiest NIC decides.
        Li et al., OSDI 2014, section 4.3 (chain replication after aggregation).

    Examples
    --------
    >>> [server_time(8, k, 1e9, 1e9) for k in (1, 4, 8, 16)]
    [8.0, 2.0, 1.0, 1.0]
    """
    require_int(workers=workers, servers=servers, at_least=1)
    require_int(replicas=replicas, at_least=1, at_most=servers)
    moved, rate = require_real(size=size, at_least=0), require_real(bandwidth=bandwidth, above=0)
    return float(max(moved, (workers + replicas - 1) * moved / servers) / rate)


def byteps_time(gpu_machines: int, cpu_machines: int, size: float, bandwidth: float) -> Summation:
    """Time in which GPU machines, with the help of CPU machines, sum their gradients.

    Parameters
    ----------
    gpu_machines, cpu_machines : int
        n of at least 2, and k of 0 to n; with 0 it is the ring, with n the parameter server.
    size, bandwidth : float
        M [bytes] of a GPU machine, and B of every NIC [bytes/s].

    Returns
    -------
    Summation
        M_cpu = 2 (n - 1) M / D and M_gpu = (n - k) M / D on each machine, t = 2 n (n - 1) M / (D B), with D =
        n^2 + k n - 2 k: the split that loads all NICs alike, n M_cpu = M + (n - 2) M_gpu. Jiang et al., OSDI
        2020, theorem 1.

    Examples
    --------
    >>> found = byteps_time(gpu_machines=4, cpu_machines=2, size=1.0, bandwidth=1.0)
    >>> found.time, found.server_bytes, found.worker_bytes
    (1.2, 0.3, 0.1)
    """
    n = require_int(gpu_machines=gpu_machines, at_least=2)
    k = require_int(cpu_machines=cpu_machines, at_least=0, at_most=gpu_machines)
    moved, rate = require_real(size=size, at_least=0), require_real(bandwidth=bandwidth, above=0)
    shared = n * n + k * n - 2 * k
    return Summation(
        time=float(2 * n * (n - 1) * moved / (shared * rate)),
        server_bytes=float(2 * (n - 1) * moved / shared), worker_bytes=float((n - k) * moved / shared),
    )  # fmt: skip


@algorithm("server_sum", "flat")
def server_rounds(ranks: int, elements: int, servers: int = 1, replicas: int = 1) -> Iterator[Round]:
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

    Ranks: n workers, n/g servers of nodes, k servers. On switches instead of machines this is summation in
    the network (SHARP; NVLS with one level). Graham et al., COM-HPC 2016.
    """
    nodes = _nodes(ranks - servers, ranks_per_node + 1, elements, servers)
    n = nodes * ranks_per_node
    worker, node = np.arange(n, dtype=np.int64), n + np.arange(nodes)
    ends = worker, node[worker // ranks_per_node]
    push, pull = _push_and_pull(node, n + nodes + np.arange(servers), bounds(servers, elements))
    return iter((messages(*ends, 0, elements, True), push, pull, messages(*ends[::-1], 0, elements, False)))


@algorithm("server_sum", "gpu_hierarchical")
def gpu_hierarchical_server_rounds(
    ranks: int, elements: int, servers: int = 1, ranks_per_node: int = 1
) -> Iterator[Round]:
    """Reduce-scatter among the g GPUs of every node, push and pull each chunk by its GPU, gather.

    Ranks: n GPUs, k servers. The network carries one vector a node, each way. Jiang et al., OSDI 2020, 4.2.
    """
    g = ranks_per_node
    n = g * _nodes(ranks - servers, g, elements, servers)
    cut = bounds(g, elements)
    between = together(
        placed(server_rounds(n // g + servers, int(cut[chunk + 1] - cut[chunk]), servers),
               np.concatenate([np.arange(gpu, n, g), np.arange(n, ranks)]), int(cut[chunk]))
        for gpu in range(g) for chunk in [(gpu + 1) % g] if cut[chunk + 1] > cut[chunk]
    )  # fmt: skip
    inside = (in_nodes(n, g, ring, elements) for ring in (ring_reduce_scatter, ring_all_gather))
    return chain(next(inside), between, next(inside))


def _push_and_pull(workers: Whole, summers: Whole, cut: Whole) -> tuple[Round, Round]:
    """Every worker sends part j to summer j, who sends the sum back; nobody sends to itself."""
    worker, part = (grid.ravel() for grid in np.meshgrid(workers, np.arange(summers.size), indexing="ij"))
    apart = worker != summers[part]
    worker, part = worker[apart], part[apart]
    span = cut[part], cut[part + 1]
    return (
        messages(worker, summers[part], *span, True), messages(summers[part], worker, *span, False),
    )  # fmt: skip


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
        raise ValueError(f"ranks_per_node must give nodes of {size} among {others} ranks, got a rest")
    return others // size
