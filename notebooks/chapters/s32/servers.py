"""Parameter servers: plain, BytePS and supersteps in closed form."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import require_int


class Summation(NamedTuple):
    """How the sum of gradients is shared out, and how long that takes."""

    time: float  #: until every worker has the sum [s]
    server_bytes: float  #: summed by each server
    worker_bytes: float  #: summed by each worker


def superstep_time(work: ArrayLike, messages: ArrayLike, gap: float, barrier: float) -> float:
    """Time of a superstep of the bulk-synchronous model, max w + g max h + l [s].

    What each worker computes [s], and the more of what each sends and receives [bytes], with
    ``gap`` seconds for a byte: the slowest worker, the busiest NIC and the barrier. Valiant,
    Communications of the ACM 33(8), 1990, section 4.

    >>> superstep_time([1.0, 2.0], [1e9, 3e9], gap=1e-9, barrier=0.5)
    5.5
    """
    return float(np.max(work) + gap * np.max(messages) + barrier)


def server_time(
    workers: int, servers: int, size: float, bandwidth: float, replicas: int = 1
) -> float:
    """Time [s] in which servers of their own sum the gradients of all workers.

    max(M, (n + r - 1) M / k) / B: pushing, pulling and forwarding go on at once, the busiest NIC
    decides. M bytes of each of n workers, B [bytes/s] of every NIC, k servers of which each holds
    1/k of the keys. Each range of keys is held by r servers in a chain: a server forwards what it
    summed to the next r - 1. A lost server then costs no state; its range moves to the next. Li et
    al., OSDI 2014, section 4.3 (chain replication after aggregation).

    >>> [server_time(8, k, 1e9, 1e9) for k in (1, 4, 8, 16)]
    [8.0, 2.0, 1.0, 1.0]
    """
    require_int(replicas=replicas, at_least=1, at_most=servers)
    moved, rate = size, bandwidth
    return float(max(moved, (workers + replicas - 1) * moved / servers) / rate)


def byteps_time(gpu_machines: int, cpu_machines: int, size: float, bandwidth: float) -> Summation:
    """Time in which n GPU machines, helped by k CPU machines, sum their gradients of M bytes.

    M_cpu = 2 (n - 1) M / D and M_gpu = (n - k) M / D on each machine, t = 2 n (n - 1) M / (D B),
    with D = n^2 + k n - 2 k and B of every NIC [bytes/s]: the split that loads all NICs alike, n
    M_cpu = M + (n - 2) M_gpu. With k = 0 it is the ring, with n the parameter server. Jiang et al.,
    OSDI 2020, theorem 1.

    >>> found = byteps_time(gpu_machines=4, cpu_machines=2, size=1.0, bandwidth=1.0)
    >>> found.time, found.server_bytes, found.worker_bytes
    (1.2, 0.3, 0.1)
    """
    n, k = gpu_machines, require_int(cpu_machines=cpu_machines, at_least=0, at_most=gpu_machines)
    shared = n * n + k * n - 2 * k
    return Summation(
        time=float(2 * n * (n - 1) * size / (shared * bandwidth)),
        server_bytes=float(2 * (n - 1) * size / shared),
        worker_bytes=float((n - k) * size / shared),
    )
