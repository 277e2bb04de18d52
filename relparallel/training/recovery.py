"""What a job does after a failure: wait for the repair, take a spare, or go on with fewer replicas.

========  ==========================================================  =====================
letter    meaning                                                     argument
========  ==========================================================  =====================
N         nodes of the job                                            ``nodes``
g         nodes that stop together                                    ``nodes_per_replica``
D         N/g, the units that can drop out                            (from the two above)
lam       failures per node and second                                ``node_rate``
r         mean time until a failed node is back [s]                   ``repair``
a         1/(1 + lam r), share of time a node is up
S         nodes held back as spares                                   ``spares``
m         micro-batches per replica and step with all replicas up     ``micro_batches``
U         units up, binomial (D, a^g)
========  ==========================================================  =====================

Nodes fail and are repaired independently, every failed node by a crew of its own; only the mean repair time
counts. Every function broadcasts over rates and times.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, gammaln, xlog1py, xlogy

from relparallel._checks import require_choice, require_flag, require_int, require_probability, require_real
from relparallel.training._arguments import Real, plain, require_rate, require_time, require_together

__all__ = ["elastic_throughput", "erlang_b", "shortage_probability", "spares_needed"]

BATCHES: Final = ("shrink", "keep")
KINDS: Final = ("cold", "hot")
MOST_NODES: Final = 10**6
LARGEST_LOAD: Final = 1e7  # nodes under repair at once, beyond which no answer is worth the time


def erlang_b(servers: int, load: Real) -> Real:
    """Probability that all servers of a loss system are busy.

    Parameters
    ----------
    servers : int
        Servers c, at least 0.
    load : float or array
        Offered load rho: arrival rate times mean service time.

    Returns
    -------
    float or numpy.ndarray
        Erlang's B(c, rho), in [0, 1].

    Raises
    ------
    TypeError, ValueError
        If ``servers`` is no integer or negative, or the load is negative or not finite.

    Notes
    -----
    rho^c/c! / sum_{j<=c} rho^j/j!, by the recursion B(c) = rho B(c-1) / (c + rho B(c-1)): O(c), no overflow.
    It depends on the service times through their mean only.

    References
    ----------
    Erlang 1917. Insensitivity: Sevastyanov, Theory Probab. Appl. 2, 1957.

    Examples
    --------
    >>> round(erlang_b(servers=9, load=2048 * 0.00379), 6)
    0.160858
    """
    require_int(servers=servers, at_least=0, at_most=MOST_NODES)
    return plain(_erlang_b(np.asarray(servers), require_real(load=load, at_least=0, at_most=1e30)))


def _erlang_b(servers: NDArray[np.int64], load: Any) -> NDArray[np.float64]:
    """Erlang's B for arrays of servers and loads that broadcast."""
    servers, load = np.broadcast_arrays(servers, np.asarray(load, dtype=np.float64))
    busy = np.ones(load.shape)
    for count in range(1, int(servers.max()) + 1):
        offered = load * busy
        busy = np.where(count <= servers, offered / (count + offered), busy)
    return busy


def shortage_probability(nodes: int, spares: int, node_rate: Real, repair: Real, kind: str = "cold") -> Real:
    """Share of the time in which spares run out and the job waits.

    Parameters
    ----------
    nodes : int
        Nodes N that the job needs.
    spares : int
        Nodes S held back.
    node_rate : float or array
        Failures per node and second.
    repair : float or array
        Mean time until a failed node is back [s].
    kind : {"cold", "hot"}
        Cold: spares do not fail, and nothing fails while the job waits. Hot: all N + S nodes always can.

    Returns
    -------
    float or numpy.ndarray
        Probability.

    Raises
    ------
    TypeError, ValueError
        If a count is no integer or out of range, a rate or time is negative or not finite, or there is no
        such kind.

    Notes
    -----
    Cold: Erlang's B with S + 1 servers and load N lam r. Hot: P(K > S), K binomial (N + S, 1 - a).

    References
    ----------
    Erlang 1917; binomial tail by the incomplete beta function.

    Examples
    --------
    >>> round(shortage_probability(nodes=2048, spares=8, node_rate=0.00379, repair=1.0), 6)
    0.160858
    >>> round(shortage_probability(nodes=2048, spares=8, node_rate=0.00379, repair=1.0, kind="hot"), 6)
    0.374322
    """
    require_int(nodes=nodes, at_least=1, at_most=MOST_NODES)
    require_int(spares=spares, at_least=0, at_most=MOST_NODES)
    require_choice(KINDS, kind=kind)
    load = require_rate(node_rate=node_rate) * require_time(repair=repair)
    if kind == "cold":
        return plain(_erlang_b(np.asarray(spares + 1), nodes * load))
    return plain(bdtrc(spares, nodes + spares, load / (1 + load)))


def spares_needed(nodes: int, node_rate: float, repair: float, probability: float, kind: str = "cold") -> int:
    """Smallest number of spares that keeps the shortage below a given probability.

    Parameters
    ----------
    nodes : int
        Nodes N that the job needs.
    node_rate : float
        Failures per node and second.
    repair : float
        Mean time until a failed node is back [s].
    probability : float
        Largest admitted share of time with a shortage, above 0.
    kind : {"cold", "hot"}
        As in `shortage_probability`.

    Returns
    -------
    int
        Spares S.

    Raises
    ------
    TypeError, ValueError
        As `shortage_probability`; also if the probability is 0, or more than ten million nodes would be under
        repair at once.

    Notes
    -----
    About rho + z sqrt(rho) for a load rho = N lam r: the share of spares falls with the size of the cluster.

    References
    ----------
    Erlang 1917 (the inverse of his formula).

    Examples
    --------
    >>> [spares_needed(nodes=n, node_rate=3.79e-3, repair=1.0, probability=1e-3) for n in (128, 2048, 12500)]
    [4, 17, 67]
    """
    require_int(nodes=nodes, at_least=1, at_most=MOST_NODES)
    require_choice(KINDS, kind=kind)
    allowed = float(require_probability(probability=probability))
    down = float(require_rate(node_rate=node_rate)) * float(require_time(repair=repair))
    if allowed < 1e-300:
        raise ValueError(f"probability must be a number >= 1e-300 and <= 1, got {probability!r}")
    if nodes * down > LARGEST_LOAD:
        raise ValueError(f"repair must keep nodes * node_rate * repair <= {LARGEST_LOAD:g}, got {repair!r}")
    return _cold_spares(nodes * down, allowed) if kind == "cold" else _hot_spares(nodes, down, allowed)


def _cold_spares(load: float, allowed: float) -> int:
    """First S with B(S + 1, load) <= allowed, along the recursion."""
    spares, busy = 0, load / (1 + load)
    while busy > allowed:
        spares += 1
        busy = load * busy / (spares + 1 + load * busy)
    return spares


def _hot_spares(nodes: int, down: float, allowed: float) -> int:
    """First S with P(more than S of N + S nodes are down) <= allowed, by bisection."""
    low, high = -1, 1
    while bdtrc(high, nodes + high, down / (1 + down)) > allowed:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = bdtrc(middle, nodes + middle, down / (1 + down)) <= allowed
        low, high = (low, middle) if enough else (middle, high)
    return high


def elastic_throughput(
    nodes: int,
    nodes_per_replica: int,
    node_rate: Real,
    repair: Real,
    pause: Real,
    batch: str = "shrink",
    micro_batches: int | None = None,
    regroup: bool = False,
) -> Real:
    """Share of the failure-free throughput that a job keeps when it drops the replicas that are hit.

    Parameters
    ----------
    nodes : int
        Nodes N of the job, a multiple of ``nodes_per_replica``.
    nodes_per_replica : int
        Nodes g that stop together.
    node_rate : float or array
        Failures per node and second.
    repair : float or array
        Mean time until a failed node is back [s].
    pause : float or array
        Standstill of the whole job at each failure [s]: detection, regrouping, the step done again.
    batch : {"shrink", "keep"}
        "shrink": the global batch shrinks with the replicas. "keep": it is kept, so that the remaining
        replicas do more micro-batches each, a whole number of them.
    micro_batches : int, optional
        Micro-batches m per replica and step with all replicas up; for ``batch="keep"`` and only there.
    regroup : bool
        False: healthy nodes of a broken replica idle. True: they are put together to whole replicas.

    Returns
    -------
    float or numpy.ndarray
        Share in [0, 1].

    Raises
    ------
    TypeError, ValueError
        If a count is no integer or out of range, ``nodes`` is no multiple of ``nodes_per_replica``, a rate or
        time is negative or not finite, or ``micro_batches`` is missing or superfluous.

    Notes
    -----
    "shrink" E[U/D] = a^g; "keep" E[m / ceil(D m / U)] where U = 0 counts 0; both times
    1 / (1 + N lam pause). With ``regroup`` U = floor((N - K)/g), K binomial (N, 1 - a), instead of U binomial
    (D, a^g). The pause counts failures at rate N lam, as if nodes under repair could fail as well, and
    neglects a second failure within it: both second order. O(D) per element, O(N) with ``regroup``.

    References
    ----------
    Independent machines: Barlow and Proschan, "Mathematical Theory of Reliability", 1965, chapter 5.

    Examples
    --------
    >>> job = dict(nodes=2048, nodes_per_replica=16, node_rate=3.79e-3 / 86400, repair=86400, pause=30)
    >>> round(elastic_throughput(**job), 5)
    0.93874
    >>> round(elastic_throughput(**job, batch="keep", micro_batches=8), 5)
    0.88581
    """
    require_int(nodes_per_replica=nodes_per_replica, at_least=1, at_most=MOST_NODES)
    if require_int(nodes=nodes, at_least=1, at_most=MOST_NODES) % nodes_per_replica:
        raise ValueError(f"nodes must be a multiple of nodes_per_replica = {nodes_per_replica}, got {nodes}")
    _check_batch(batch, micro_batches)
    require_flag(regroup=regroup)
    require_together(node_rate=node_rate, repair=repair, pause=pause)
    node_rate, pause = require_rate(node_rate=node_rate), require_time(pause=pause)
    up = 1 / (1 + node_rate * require_time(repair=repair))
    replicas = nodes // nodes_per_replica
    if batch == "shrink" and not regroup:
        share = up**nodes_per_replica
    else:
        trials, success = (nodes, up) if regroup else (replicas, up**nodes_per_replica)
        alive = np.arange(trials + 1) // (trials // replicas)
        share = _binomial(trials, success) @ _speed(alive, replicas, batch, micro_batches)
    return plain(share / (1 + nodes * node_rate * pause))


def _check_batch(batch: str, micro_batches: int | None) -> None:
    """Refuse micro-batches where they mean nothing, and ask for them where they are needed."""
    require_choice(BATCHES, batch=batch)
    if batch == "keep":
        require_int(micro_batches=micro_batches, at_least=1, at_most=10**9)
    elif micro_batches is not None:
        raise ValueError(f"micro_batches must be left out unless batch is 'keep', got {micro_batches!r}")


def _speed(
    alive: NDArray[np.int64], replicas: int, batch: str, micro_batches: int | None
) -> NDArray[np.float64]:
    """Throughput, as a share of the full one, with a given number of replicas alive."""
    if batch == "shrink" or micro_batches is None:
        return alive / replicas
    rounds = -(-replicas * micro_batches // np.maximum(alive, 1))
    return np.where(alive > 0, micro_batches / rounds, 0.0)


def _binomial(trials: int, success: Any) -> NDArray[np.float64]:
    """Binomial probabilities of 0 … trials along a new last axis."""
    success = np.asarray(success, dtype=np.float64)[..., None]
    count = np.arange(trials + 1)
    choose = gammaln(trials + 1) - gammaln(count + 1) - gammaln(trials - count + 1)
    return np.exp(choose + xlogy(count, success) + xlog1py(trials - count, -success))
