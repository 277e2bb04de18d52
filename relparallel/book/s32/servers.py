"""Parameter servers: plain, BytePS and supersteps in closed form."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import Result, require_int, require_real


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
