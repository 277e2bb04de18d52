"""Rounds of messages placed on a network: the load of every link, the time, the cost of a loss.

Messages take all shortest paths of what works equally (ECMP). Round after round, each lasts until
its busiest link is done. A *stream* of many small pieces keeps all rounds busy at once and lasts as
long as the link that carries most in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    Result,
    require_flag,
    require_indices,
    require_instance,
    require_number,
)
from relparallel.parallel.collectives import Round, checked
from relparallel.parallel.flows import Wiring
from relparallel.topology import Topology

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundPlan(Result):
    """Rounds of messages between network nodes; `plan_rounds` makes one and explains the fields.

    Links are the pairs of joined nodes from the lower to the higher node, then all of them the
    other way.
    """

    rounds: tuple[Round, ...]
    network: Topology
    nodes: Ints
    element_bytes: float
    latency: float
    streamed: bool
    stand_in: Ints
    work: float

    def load(self, failed: ArrayLike = ()) -> Floats:
        """Bytes over every link without what failed, all rounds together, [links]."""
        living, cables = self._left(failed)
        return np.asarray(self._sent(self._places(living), cables).sum(axis=0), dtype=np.float64)

    def time(self, failed: ArrayLike = ()) -> float:
        """Seconds of all rounds without what failed: nodes by number, pair of nodes e as nodes + e.

        Infinite where a rank is lost that nobody stands in for, or where two no longer reach each
        other.
        """
        living, cables = self._left(failed)
        return self.time_on(living, cables)

    def slowdown(self, failed: ArrayLike = ()) -> float:
        """Step with what failed over the step without: (work + time(failed))/(work + time())."""
        return self.slowdown_on(*self._left(failed))

    @cached_property
    def step(self) -> float:
        """Seconds of a step while everything works."""
        return self.work + self.time()

    def time_on(self, living: NDArray[np.bool_], cables: Ints) -> float:
        """`time` on the living nodes and the living cables of every pair."""
        nodes = self._places(living)
        if not living[nodes].all():
            return np.inf
        sent = self._sent(nodes, cables)
        if not np.isfinite(sent.data).all():
            return np.inf
        per_byte = np.divide(
            1.0, self.network.capacity * cables, out=np.zeros(cables.size), where=cables > 0
        )
        seconds = sent * np.tile(per_byte, 2)
        busiest = seconds.sum(axis=0).max() if self.streamed else seconds.max(axis=1).sum()
        return float(busiest + self.latency * len(self.rounds))

    def slowdown_on(self, living: NDArray[np.bool_], cables: Ints) -> float:
        """`slowdown` on the living nodes and each pair's living cables; 1 if nothing takes time."""
        return (self.work + self.time_on(living, cables)) / self.step if self.step > 0 else 1.0

    @cached_property
    def _wiring(self) -> Wiring:
        return Wiring.of(self.network)

    def _places(self, living: NDArray[np.bool_]) -> Ints:
        """Node of every rank, or of the rank that stands in for it."""
        return np.where(living[self.nodes], self.nodes, self.nodes[self.stand_in])

    def _left(self, failed: ArrayLike) -> tuple[NDArray[np.bool_], Ints]:
        """Living nodes, and living cables of every pair."""
        n, t = self.network.num_nodes, self.network
        alive = np.ones(n + len(t.edges), dtype=np.bool_)
        alive[require_indices("failed", failed, alive.size)] = False
        return alive[:n], t.multiplicity * (alive[n:] & alive[t.edges].all(axis=1))

    def _sent(self, nodes: Ints, cables: Ints) -> scipy.sparse.csr_array:
        """Bytes per link and round, [rounds, links]; infinite where a message has no path."""
        which = np.repeat(np.arange(len(self.rounds)), [step.source.size for step in self.rounds])
        ends = np.concatenate(
            [np.stack([nodes[step.source], nodes[step.destination]]) for step in self.rounds], 1
        )
        size = np.concatenate([step.elements for step in self.rounds]) * self.element_bytes
        apart = (ends[0] != ends[1]) & (size > 0)
        pairs, pair = np.unique(ends[:, apart], axis=1, return_inverse=True)
        flow = self._wiring.flows(cables, pairs.T.copy())
        shape = len(self.rounds), pairs.shape[1]
        sent: scipy.sparse.csr_array = (
            scipy.sparse.coo_array((size[apart], (which[apart], pair.ravel())), shape=shape).tocsr()
            @ flow
        )
        if (np.diff(flow.indptr) == 0).any():
            sent.data[:] = np.inf
        return sent


def plan_rounds(
    rounds: Iterable[Round],
    network: Topology,
    *,
    nodes: ArrayLike | None = None,
    element_bytes: float = 1,
    latency: float = 0.0,
    streamed: bool = False,
    stand_in: ArrayLike | None = None,
    work: float = 0.0,
) -> RoundPlan:
    """Place rounds of messages on a network.

    Parameters
    ----------
    rounds : iterable of Round
        Messages, round by round, at least one round.
    network, nodes : Topology, array_like of int [ranks], optional
        Links with their bandwidths; node of every rank, hosts or switches, the hosts in order where
        omitted. Ranks that share a node reach each other without the network.
    element_bytes, latency : float
        Bytes of one element, above 0, and seconds of every round.
    streamed : bool
        Whether the vector is cut into so many pieces that all rounds go on at once.
    stand_in : array_like of int [ranks], optional
        Who does the work of a rank when its node is lost; the rank itself where nobody does.
    work : float
        Seconds of a step beside the rounds, which a lost part leaves as they are.

    Returns
    -------
    RoundPlan
        With ``load(failed=())`` of every link [bytes], ``time(failed=())`` [s] and
        ``slowdown(failed=())``. A round takes latency + max over links of bytes/bandwidth, a stream
        the same of the bytes of all rounds. Al-Fares et al., SIGCOMM 2008, section 3 (equal shares
        of all shortest paths).

    Examples
    --------
    >>> from relparallel.parallel import ring_all_reduce
    >>> from relparallel.topology import fat_tree
    >>> t = fat_tree(k=4)  # 16 hosts, links of 50 GB/s
    >>> plan = plan_rounds(ring_all_reduce(ranks=16, elements=16 * 10**8), t)
    >>> round(plan.time(), 9), round(2 * 15 * 1e8 / 50e9, 9)
    (0.06, 0.06)
    >>> lost = t.num_nodes + int((t.edges[:, 0] >= 16).argmax())  # an edge switch keeps one of two cables
    >>> plan.slowdown(failed=[lost]), plan.slowdown(failed=[0])
    (1.0, inf)
    """
    t = require_instance(Topology, network=network)
    steps = tuple(checked(rounds))
    place = (
        t.hosts.astype(np.int64) if nodes is None else require_indices("nodes", nodes, t.num_nodes)
    )
    most = max(
        (int(max(s.source.max(), s.destination.max())) for s in steps if s.source.size), default=-1
    )
    if not 0 <= most < place.size:
        raise ValueError(
            f"nodes must give a node for every rank of the rounds, which go up to {most}, got "
            f"{nodes!r:.80}"
        )
    ranks = most + 1
    own = np.arange(ranks) if stand_in is None else require_indices("stand_in", stand_in, ranks)
    if own.size != ranks:
        raise ValueError(f"stand_in must name a rank for each of {ranks}, got {stand_in!r:.80}")
    require_number(element_bytes=element_bytes, above=0)
    require_number(latency=latency, work=work, at_least=0)
    return RoundPlan(
        rounds=steps,
        network=t,
        nodes=place[:ranks],
        element_bytes=element_bytes,
        latency=latency,
        streamed=require_flag(streamed=streamed),
        stand_in=own,
        work=work,
    )
