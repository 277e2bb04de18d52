"""A routing whose busiest cable tells what all-to-all traffic can reach: shortest paths, or a design's own.

DCell and FiConn come with a routing by levels: from the source to the server with the one cable between both
copies, over it, and on to the target, each part again so within its copy.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from relparallel.metrics import ecmp_load
from relparallel.topology import Description, Topology
from relparallel.topology._arrays import FloatArray, IntArray
from relparallel.topology.designs.server_centric import dcell_servers, ficonn_servers

_ENTRIES: Final = 2**23  # most pairs of servers of one copy, whose demand is held at once


class Routing(NamedTuple):
    """Throughput of all hosts together [host links], units over the busiest cable, and what they are of."""

    throughput: float
    busiest: float
    exact: bool  # whether it is the load of shortest paths
    how: str


def shortest_paths(t: Topology, symmetric: bool) -> Routing:
    """All shortest paths, split evenly."""
    load = ecmp_load(t)
    busiest = float((load.flow / t.multiplicity[:, None]).max())
    how = "exact run, proved orbits, shortest paths" if symmetric else "exact run, shortest paths"
    return Routing(load.throughput, busiest, True, how)


def own_routing(t: Topology, form: Description | None) -> Routing | None:
    """That of the design, where its load is known without a search; ``form`` says that it is built so."""
    if form is None or form.design not in _SIZES or np.ptp(t.capacity):
        return None
    busiest = _by_levels(form.design, form.parameters["n"], form.parameters["k"])
    if busiest is None:
        return None
    pairs = t.num_hosts * (t.num_hosts - 1)
    return Routing(pairs / busiest, busiest, False, f"{form.design} routing by levels, exact count")


def _by_levels(design: str, n: int, k: int) -> float | None:
    """Units over the busiest cable when every server sends one to each other; None where that is too large.

    The copies of the highest level carry the same, so one of them tells: between its servers goes one unit,
    and all that another copy exchanges with a server goes through the port towards it.
    """
    if k == 0:
        return n - 1.0
    inside = _SIZES[design](n, k)[k - 1]
    if inside**2 > _ENTRIES:
        return None
    port = np.zeros(inside)
    port[_ports(design, k, np.arange(_SIZES[design](n, k)[k] // inside - 1))] = inside
    return max(float(inside) ** 2, _busiest(design, n, k - 1, 1.0 + port + port[:, None]))


def _busiest(design: str, n: int, level: int, demand: FloatArray) -> float:
    """Largest load inside one copy of a level, of a demand between its servers [from, to]."""
    if level == 0:
        other = demand * ~np.eye(n, dtype=bool)
        return float(max(other.sum(axis=0).max(), other.sum(axis=1).max()))
    inside = _SIZES[design](n, level)[level - 1]
    copies = len(demand) // inside
    blocks = demand.reshape(copies, inside, copies, inside)
    sent, received = (
        blocks.sum(axis=3),
        blocks.sum(axis=1),
    )  # [copy, server, to copy], [from copy, copy, server]
    most = float((sent.sum(axis=1) * ~np.eye(copies, dtype=bool)).max())
    for copy in range(copies):
        others = np.delete(np.arange(copies), copy)
        port = _ports(design, level, np.arange(copies - 1))
        inner = blocks[copy, :, copy].copy()
        inner[:, port] += sent[copy][:, others]
        inner[port] += received[others, copy]
        most = max(most, _busiest(design, n, level - 1, inner))
    return most


def _ports(design: str, level: int, number: IntArray) -> IntArray:
    """Servers of a copy that have a cable of this level: to the other copies, in order."""
    return number if design == "dcell" else number * 2**level + 2 ** (level - 1) - 1


_SIZES: Final = {"dcell": dcell_servers, "ficonn": ficonn_servers}
