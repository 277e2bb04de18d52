"""Spare nodes: how often they run out, and how many are enough."""

import math
from bisect import bisect_left
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import NDArray

from relparallel._checks import (
    bare,
    require_broadcast,
    require_choice,
    require_instance,
    require_int,
    require_probability,
)
from relparallel.training._arguments import (
    MOST_NODES,
    Real,
    require_rate,
    require_single,
    require_time,
)
from relparallel.training.down_nodes import (
    able_to_fail,
    down_distribution,
    mixed_distribution,
    reach,
)
from relparallel.training.failure_sources import SharedEvents

KINDS: Final = ("cold", "hot")
LARGEST_LOAD: Final = 1e5  # nodes under repair at once, beyond every cluster


def loss_probability(servers: Any, load: Any, crews: float = math.inf) -> NDArray[np.float64]:
    """Erlang's B: all servers of a loss system busy; at most ``crews`` repairs at once. Broadcasts.

    Erlang 1917; only the mean of the repairs counts: Sevastyanov, Theory Probab. Appl. 2, 1957.
    """
    shape = np.broadcast_shapes(np.shape(servers), np.shape(load))
    load, busy = (np.asarray(load), np.ones(shape)) if shape else (float(load), 1.0)
    for count in range(1, int(np.max(servers, initial=0)) + 1):
        offered = load * busy
        after = offered / (min(count, crews) + offered)
        busy = np.where(count <= servers, after, busy) if shape else after
    return np.asarray(busy)


def shortage_probability(
    nodes: int,
    spares: int,
    node_rate: Real,
    repair: Real,
    kind: str = "cold",
    crews: int | None = None,
    source: SharedEvents | None = None,
) -> Real:
    """Share of the time in which spares run out and the job waits.

    Parameters
    ----------
    nodes, spares : int
        Nodes N that the job needs, and S held back.
    node_rate, repair : float or array
        Failures lam per node and second; mean time r until a failed node is back [s].
    kind : {"cold", "hot"}
        Cold: spares do not fail, and nothing fails while the job waits. Hot: all N + S nodes always
        can.
    crews : int, optional
        Repairs c that go on at the same time; every failed node has its own repairman where
        omitted.
    source : SharedEvents, optional
        How many nodes fail together, and how much the rate differs between months; each fails
        alone, at one rate, where omitted. Without ``crews``.

    Returns
    -------
    float or numpy.ndarray
        Probability.

    Notes
    -----
    Cold: Erlang's B with S + 1 servers and load N lam r. Hot: P(K > S), K binomial (N + S, lam r/(1
    + lam r)). Both depend on repairs through their mean only. With c repairmen and exponential
    repairs the nodes down are a birth-death chain, repaired at min(j, c)/r in state j: cold the
    same recursion with min(j, c) for j, hot the machine repair model. With shared events the chain
    of a job that waits (cold; exponential repairs), or Panjer's recursion with the share of nodes
    that can fail (hot): exact but for events that take a node which is down already.

    References
    ----------
    Erlang 1917; Palm 1947; Feller, "An Introduction to Probability Theory and Its Applications",
    XVII.7.

    Examples
    --------
    >>> round(shortage_probability(nodes=2048, spares=8, node_rate=0.00379, repair=1.0), 6)
    0.160858
    >>> round(shortage_probability(nodes=2048, spares=8, node_rate=0.00379, repair=1.0, kind="hot"), 6)
    0.374322
    >>> round(shortage_probability(nodes=2048, spares=8, node_rate=0.00379, repair=1.0, crews=8), 6)
    0.177398
    """
    require_int(nodes=nodes, at_least=1, at_most=MOST_NODES)
    require_int(spares=spares, at_least=0, at_most=MOST_NODES)
    require_choice(KINDS, kind=kind)
    if crews is not None:
        require_int(crews=crews, at_least=1, at_most=MOST_NODES)
    require_broadcast(node_rate=node_rate, repair=repair)
    load = require_rate(node_rate=node_rate) * require_time(repair=repair)
    require_instance((SharedEvents, type(None)), source=source)
    if source is not None:
        if crews is not None:
            raise ValueError(f"crews must be left out with a source, got {crews!r}")
        if len(source.sizes) > nodes:
            raise ValueError(
                f"source must have events of at most {nodes} nodes, got {len(source.sizes)}"
            )
        short = [_short(nodes, spares, each, kind, source) for each in np.ravel(load).tolist()]
        return bare(np.reshape(short, np.shape(load)))
    if kind == "cold":
        return bare(loss_probability(spares + 1, nodes * load, crews or math.inf))
    if crews is None:
        return bare(scipy.special.bdtrc(spares, nodes + spares, load / (1 + load)))
    down = np.arange(nodes + spares + 1)
    able = able_to_fail(down, nodes, spares, hot=True, waits=False) * np.maximum(
        (down + 1) / crews, 1.0
    )
    chance = [down_distribution({1: nodes * each}, able) for each in np.ravel(load).tolist()]
    short = [each[spares + 1 :].sum() for each in chance]
    return bare(np.reshape(short, np.shape(load)))


def _short(nodes: int, spares: int, load: float, kind: str, events: SharedEvents) -> float:
    """Shortage with shared events; ``load`` of one node."""
    rates, top, hot = events.rates(nodes * load), nodes + spares, kind == "hot"
    worst = max(factor for _, factor in events.phases)
    most = reach({n: worst * rate for n, rate in rates.items()}, top) if hot else spares
    down = np.arange(min(top, most + (0 if hot else max(rates))) + 1)
    able = able_to_fail(down, nodes, spares, hot, waits=True)
    chance = mixed_distribution(
        rates,
        dict.fromkeys(rates, 1.0),
        able,
        spares,
        cold=not hot,
        apart=not events.together,
        phases=events.phases,
    )
    return float(chance[spares + 1 :].sum())


def spares_needed(
    nodes: int,
    node_rate: float,
    repair: float,
    shortage: float,
    kind: str = "cold",
    crews: int | None = None,
    source: SharedEvents | None = None,
) -> int:
    """Smallest number of spares that keeps the shortage below a given share of the time.

    Parameters
    ----------
    nodes, node_rate, repair, kind, crews, source : int, float, float, str, int, SharedEvents
        As in `shortage_probability`.
    shortage : float
        Largest admitted share of time with a shortage, above 0.

    Returns
    -------
    int
        Spares S: about rho + z sqrt(rho) for a load rho = N lam r, see `spares_law`.

    Notes
    -----
    With c repairmen the shortage never falls below 1 - c/rho (cold), or below the probability that
    a Poisson number of mean c / (lam r) stays under N (hot).

    Examples
    --------
    >>> [spares_needed(nodes=n, node_rate=3.79e-3, repair=1.0, shortage=1e-3) for n in (128, 2048, 12500)]
    [4, 17, 67]
    >>> spares_needed(nodes=2048, node_rate=3.79e-3, repair=1.0, shortage=1e-3, crews=10)
    27
    >>> racks = SharedEvents(sizes=(0.9, 0.05, 0.0, 0.05))
    >>> spares_needed(nodes=2048, node_rate=3.79e-3, repair=1.0, shortage=1e-3, source=racks)
    21
    """
    require_single(shortage=shortage, node_rate=node_rate, repair=repair)
    allowed = float(require_probability(shortage=shortage))
    given = node_rate, repair, kind, crews, source
    shortage_probability(nodes, 0, *given)  # refuses bad arguments
    down = node_rate * repair
    if allowed < 1e-300:
        raise ValueError(f"shortage must be a number >= 1e-300 and <= 1, got {shortage!r}")
    if nodes * down > LARGEST_LOAD:
        raise ValueError(
            f"repair must keep nodes * node_rate * repair <= {LARGEST_LOAD:g}, got {repair!r}"
        )
    if allowed <= (limit := _least_shortage(nodes, down, kind, crews)):
        raise ValueError(
            f"crews must be more: a shortage of {limit:.3g} stays with any spares, got {crews}"
        )

    def enough(spares: int) -> bool:
        return bool(shortage_probability(nodes, spares, *given) <= allowed)

    low, high = -1, int(nodes * down)
    while not enough(high):
        low, high = high, high + high // 2 + 1
    return 1 + low + bisect_left(range(low + 1, high), True, key=enough)


def _least_shortage(nodes: int, down: float, kind: str, crews: int | None) -> float:
    """Shortage with infinitely many spares."""
    if crews is None or not down:
        return 0.0
    return (
        max(0.0, 1 - crews / (nodes * down))
        if kind == "cold"
        else float(scipy.special.pdtr(nodes - 1, crews / down))
    )
