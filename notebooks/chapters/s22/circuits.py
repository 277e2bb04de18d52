"""Circuits on demand: groups that a hybrid network joins by light, for how long, what that carries.

`schedule_circuits` answers for the topologies of `helios` and `c_through`, whose pods and racks are
numbered from 0. A circuit is dark while it is rewired: the hold time is weighed against the
reconfiguration time.
"""

from itertools import chain
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from relparallel._checks import require_real
from relparallel.topology._arrays import FloatArray
from relparallel.topology.designs.optical import optics
from relparallel.topology.fabric import Topology


class CircuitSchedule(NamedTuple):
    """Circuits chosen for a demand, epoch by epoch, and what they carry."""

    matchings: tuple[tuple[tuple[int, int], ...], ...]  #: of every epoch the pairs of groups joined
    carried: FloatArray  #: [epochs] by its circuits [bytes]
    remaining: FloatArray  #: [groups, groups] to the packet part [bytes]
    hold_time: float  #: that circuits stand in every epoch [s]
    reconfiguration_time: float  #: that circuits are dark before [s]

    @property
    def duty(self) -> float:
        """Share of the time in which circuits carry data."""
        return self.hold_time / (self.hold_time + self.reconfiguration_time)

    @property
    def duration(self) -> float:
        """All epochs, dark times included [s]."""
        return len(self.matchings) * (self.hold_time + self.reconfiguration_time)

    @property
    def throughput(self) -> float:
        """What circuits carry per second, dark times included [bytes/s]."""
        return float(self.carried.sum()) / self.duration if self.matchings else 0.0


def schedule_circuits(
    topology: Topology,
    demand: ArrayLike,
    hold_time: float,
    reconfiguration_time: float,
    epochs: int = 1,
    *,
    directed: bool = False,
) -> CircuitSchedule:
    """Circuits by demand.

    in every epoch the matching of groups of `helios` or `c_through` that carries most.

    ``demand`` [groups, groups] is what waits in each pod or rack for each other [bytes], zero on
    the diagonal; circuits stand ``hold_time`` [s] in each of ``epochs``, and are dark for
    ``reconfiguration_time`` [s] before. With ``directed`` a group may send by light to one group
    while it receives from another (Helios); the pairs of the matchings are then (from, to).

    A circuit of capacity C carries min(d, C hold_time) in each direction; that is its weight. A
    matching of largest weight is found by Edmonds' blossom algorithm, a directed one as an
    assignment; O(groups^3). Where a pod has several circuits, each circuit switch in turn takes the
    best matching of what the ones before it leave. A longer hold time loses less of the time to
    rewiring, hold/(hold + reconfiguration), but keeps circuits whose demand has run dry. Farrington
    et al., SIGCOMM 2010, section 4; Wang et al., SIGCOMM 2010, section 3.3.

    >>> from relparallel.topology import c_through
    >>> t = c_through(aggregations=1, racks_per_aggregation=4, hosts_per_rack=4)
    >>> demand = [[0, 9, 8, 0], [0, 0, 0, 8], [0, 0, 0, 1], [0, 0, 0, 0]]
    >>> schedule_circuits(t, demand, hold_time=1.0, reconfiguration_time=0.012).matchings
    (((0, 2), (1, 3)),)
    """
    group, fibres, capacity = optics(topology)
    require_real(hold_time=hold_time, above=0)
    require_real(reconfiguration_time=reconfiguration_time, at_least=0)
    waiting = np.array(require_real(demand=demand, at_least=0))
    if waiting.shape != (group.size,) * 2 or np.any(np.diagonal(waiting)):
        raise ValueError(
            f"demand must be [{group.size}, {group.size}] with a diagonal of zeros, got {demand!r}"
        )
    matchings, carried = [], []
    for _ in range(epochs):
        before = waiting.sum()
        rounds = [_serve_heaviest(waiting, capacity * hold_time, directed) for _ in range(fibres)]
        matchings.append(tuple(sorted(chain(*rounds))))
        carried.append(before - waiting.sum())
    return CircuitSchedule(
        tuple(matchings), np.array(carried), waiting, hold_time, reconfiguration_time
    )


def circuit_demand(topology: Topology, waiting: ArrayLike) -> FloatArray:
    """Demand between racks or pods [bytes], as c-Through estimates it.

    what waits in the hosts' socket buffers.

    Sums over the hosts of each pair of groups of what waits in each host for each other, [hosts,
    hosts]; zero on the diagonal: that traffic needs no circuit (Wang et al., SIGCOMM 2010, section
    4.1).

    >>> from relparallel.topology import c_through
    >>> t = c_through(aggregations=1, racks_per_aggregation=2, hosts_per_rack=2)
    >>> circuit_demand(t, [[0, 9, 1, 2], [0, 0, 3, 0], [4, 0, 0, 0], [0, 0, 0, 0]]).tolist()
    [[0.0, 6.0], [4.0, 0.0]]
    """
    groups, hosts = optics(topology)[0].size, topology.num_hosts
    each = hosts // groups
    summed = np.reshape(waiting, (groups, each, groups, each)).sum(axis=(1, 3))
    return np.where(np.eye(groups, dtype=bool), 0.0, summed)


def _serve_heaviest(waiting: FloatArray, most: float, directed: bool) -> list[tuple[int, int]]:
    """Match groups that have most for each other; take what one circuit each carries from it."""
    weight = np.minimum(waiting, most)
    if directed:
        i, j = linear_sum_assignment(weight, maximize=True)
        i, j = np.array([i, j])[:, weight[i, j] > 0]
    else:
        i, j = np.array(_heaviest_matching(weight), dtype=np.int64).reshape(-1, 2).T
    for ends in ((i, j),) if directed else ((i, j), (j, i)):
        waiting[ends] -= np.minimum(waiting[ends], most)
    return list(zip(i.tolist(), j.tolist(), strict=True))


def _heaviest_matching(weight: FloatArray) -> list[tuple[int, int]]:
    """Pairs i < j of largest total weight in both directions."""
    both = np.triu(weight + weight.T, k=1)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_weighted_edges_from(
        (i, j, both[i, j].item()) for i, j in np.argwhere(both > 0).tolist()
    )
    return sorted((min(pair), max(pair)) for pair in nx.max_weight_matching(graph))
