"""How much of all-to-all traffic every cable carries when hosts use all shortest paths (ECMP).

Every ordered pair of hosts sends one unit. A cable's *load* in one direction is what passes through
it over its capacity, in units of a host link. Letters of the papers: ``N`` hosts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from relparallel._checks import Result, require_choice
from relparallel.metrics._network import (
    Network,
    arcs_of,
    carriers,
    link_capacity,
    network,
    require_alive,
    require_hosts,
)
from relparallel.metrics._paths import spread
from relparallel.topology import Topology
from relparallel.topology._arrays import BoolArray, FloatArray, IntArray
from relparallel.topology.symmetry import arc_orbits, orbits

if TYPE_CHECKING:
    import networkx as nx
Split = Literal["paths", "hops"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LinkLoad(Result):
    """Traffic of all ordered pairs of hosts, one unit each, on every pair of joined nodes."""

    edges: IntArray  #: [m, 2] the joined nodes u < v
    flow: FloatArray  #: [m, 2] units from u to v and from v to u, over all parallel cables
    # : [m] of the living cables in one direction [host links]; 0 where none lives
    capacity: FloatArray
    pairs: int  #: ordered pairs of living hosts that a path joins
    unreachable: int  #: the other pairs, which send nothing

    @property
    def load(self) -> FloatArray:
        """Flow over capacity, [m, 2]; 0 where no cable lives."""
        living = self.capacity > 0
        return np.where(
            living[:, None], self.flow / np.where(living, self.capacity, 1.0)[:, None], 0.0
        )

    @property
    def maximum(self) -> float:
        """Load of the busiest cable in its busier direction, to twelve digits; 0 if no traffic."""
        return float(f"{self.load.max(initial=0.0):.12g}")

    @property
    def throughput(self) -> float:
        """Sum over joined pairs of what each gets when the busiest cable is full [host links]."""
        return self.pairs / self.maximum if self.pairs else 0.0

    def to_frame(self) -> pd.DataFrame:
        """A row per direction with source, target, flow, capacity and load, the busiest first."""
        ends = np.concatenate([self.edges, self.edges[:, ::-1]])
        found = {
            "source": ends[:, 0],
            "target": ends[:, 1],
            "flow": self.flow.T.ravel(),
            "capacity": np.tile(self.capacity, 2),
            "load": self.load.T.ravel(),
        }
        return pd.DataFrame(found).sort_values(
            "load", ascending=False, kind="stable", ignore_index=True
        )

    def _said(self) -> str:
        apart = f", {self.unreachable} pairs unreachable" if self.unreachable else ""
        return f"{self.pairs} pairs{apart}, largest load {self.maximum:.6g}"


def ecmp_load(
    topology: Topology | nx.Graph[Any], alive: BoolArray | None = None, *, split: Split = "paths"
) -> LinkLoad:
    """Load of every cable when each ordered pair of hosts sends one unit over its shortest paths.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        Of a graph every node is a host. A node without ``transit`` is passed through by no path.
    alive : bool array [n + m], optional
        Which nodes, then which rows of ``edges``, work; all by default.
    split : {"paths", "hops"}, optional
        Evenly over all shortest paths, as edge betweenness counts; or at every node evenly over the
        cables of all next hops, as switches hash.

    Returns
    -------
    LinkLoad
        Exact. Parallel cables share what their pair carries.

    Notes
    -----
    One breadth-first search to every class of twin hosts, O(classes x m), or, in the intact
    network, to one host of every orbit of proved symmetries, with the mean over each orbit of
    cables. The two splits agree where paths branch alike, as in fat-trees and BCube, and differ in
    DCell.

    References
    ----------
    Brandes, "On variants of shortest-path betweenness centrality and their generic computation",
    Social Networks 2008.

    Examples
    --------
    >>> from relparallel.topology import leaf_spine
    >>> ecmp_load(leaf_spine(leaves=3, spines=2, hosts_per_leaf=2)).maximum  # 2 hosts x 4 others / 2 spines
    5.0
    """
    t = require_hosts(topology)
    require_choice(("paths", "hops"), split=split)
    weight, cables = arcs_of(t, require_alive(t, alive))
    return load_of(t, weight, cables, split, symmetric=alive is None)


def load_of(
    t: Topology, weight: FloatArray, cables: IntArray, split: Split, *, symmetric: bool = False
) -> LinkLoad:
    """Load with these living hosts and cables; from one host of every orbit where all live."""
    net = network(t, weight, cables)
    roots = np.flatnonzero(net.weight)
    classes, scale = roots.size, net.weight[roots]
    if symmetric:
        roots, scale = min(
            (roots, scale), _one_of_each_orbit(t, net), key=lambda some: some[0].size
        )
    static = (net.indptr, net.head.astype(np.int32), net.cables, net.transit, net.weight)
    against = np.zeros(net.head.size)
    joined = spread(*static, roots, scale, split == "paths", against)
    up, back = _among_twins(net, split), net.reverse
    load = up + (up + against)[back]
    arc, share = carriers(t, net, cables)
    flow = load[arc] * share if load.size else np.zeros(arc.shape)
    if roots.size < classes:  # the same traffic spread evenly over every orbit
        orbit = arc_orbits(t)
        flow = (np.bincount(orbit.ravel(), weights=flow.ravel()) / np.bincount(orbit.ravel()))[
            orbit
        ]
    meeting = np.unique(net.tail[_meeting(net)])
    among = round(float((net.weight[meeting] * (net.weight[meeting] - 1)).sum()))
    hosts, pairs = int(weight.sum()), round(joined) + among
    return LinkLoad(
        edges=t.edges,
        flow=flow,
        capacity=cables * t.capacity / link_capacity(t),
        pairs=pairs,
        unreachable=hosts * (hosts - 1) - pairs,
    )


def _one_of_each_orbit(t: Topology, net: Network) -> tuple[IntArray, FloatArray]:
    """One class of hosts for each orbit of hosts, and the hosts of the orbit."""
    orbit = orbits(t)[t.hosts]
    _, first, count = np.unique(orbit, return_index=True, return_counts=True)
    return net.member[t.hosts[first]], count.astype(np.float64)


def _meeting(net: Network) -> BoolArray:
    """Arcs from a class of several twins to a node through which they meet."""
    return (net.weight[net.tail] > 1) & net.transit[net.head]


def _among_twins(net: Network, split: Split) -> FloatArray:
    """Traffic between twins on its way up: through any common forwarding neighbour; then down."""
    meeting = _meeting(net)
    width = np.where(meeting, net.cables ** (2 if split == "paths" else 1), 0.0)
    total = np.bincount(net.tail, weights=width, minlength=net.weight.size)[net.tail]
    sent = net.weight[net.tail] * (net.weight[net.tail] - 1)
    return np.divide(width * sent, total, out=np.zeros_like(width), where=meeting)
