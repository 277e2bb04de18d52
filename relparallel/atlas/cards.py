"""The card of a network: what it holds, costs, carries and survives.

``N`` hosts; a *host link* is the slowest cable of a host.
"""

from __future__ import annotations

from typing import Any, Final

import networkx as nx
import numpy as np

from relparallel._checks import require_instance, require_probability, require_real, require_rng
from relparallel._notices import told
from relparallel.atlas.availability import Downs, availability_rows
from relparallel.atlas.measures import (
    count_rows,
    cut_row,
    hop_rows,
    measured_hops,
    path_rows,
    shortest_paths,
    size,
    throughput_rows,
)
from relparallel.atlas.rows import Card
from relparallel.metrics import bisection
from relparallel.topology import Topology, as_topology
from relparallel.topology.conformance import as_built

_AT_ONCE: Final = 12  # starts of a bit-parallel search that cost as much as one routing
# routings that cost as much as one round in which the linear program refines its classes
_ROUND: Final = 40
# start nodes times arcs up to which the linear program is solved without symmetry
_PROGRAM: Final = 80_000


@told
def card(
    topology: Topology | nx.Graph[Any],
    *,
    link_up: float = 0.9999,
    switch_up: float = 0.9999,
    server_up: float = 0.999,
    work: float = 8e8,
    rng: np.random.Generator | None = None,
) -> Card:
    """Counts, cost, power, hops, cuts, throughput and availability of a network.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        With at least two hosts, all of them joined. Of a graph every node is a host.
    link_up, switch_up, server_up : float, optional
        Availability of one cable, of one switch, and of a host that forwards for others.
        Assumptions, not measurements: replace them by those of your own parts.
    work : float, optional
        Most start nodes times arcs of an exact routing; 12 times as many for hop counts, which
        search from 512 nodes at once, and a fortieth for each link of the diameter for the linear
        program over proved orbits. Above it bounds or a sample take its place.
    rng : numpy.random.Generator, optional
        Draws the sources of a sampled hop count; by default always the same.

    Returns
    -------
    Card
        Throughput is all-to-all, with the cables of the hosts as a limit: the aggregate one of
        shortest paths or, where their load is not counted, between one cable and what none can
        pass; the other one of the best routing. The pair of hosts whose paths and availability are
        given are the first and the last; both are taken to work.

    Notes
    -----
    Upper bounds of throughput hold for every routing: all cables together over the mean distance,
    the cut of the halving, the cables of a host. Shortest paths give the lower one; a linear
    program closes the bracket where it is small. The best lower bound also proves how many cables a
    halving cuts. Unavailability is between the certified bounds of
    `relparallel.reliability.bounds`. Leaf-spines have a closed form in its place, fat-trees one for
    up-down paths.

    Examples
    --------
    >>> from relparallel.topology import fat_tree
    >>> found = card(fat_tree(k=4))
    >>> found["hosts"].value, found["diameter"].value, found["all-to-all throughput"].value
    (16.0, 6.0, 1.0)
    """
    t = as_topology(topology, name="topology")
    if t.num_hosts < 2:
        raise ValueError(f"topology must have at least two hosts, got {t.num_hosts} in {t!r}")
    require_probability(link_up=link_up, switch_up=switch_up, server_up=server_up)
    require_real(work=work, at_least=0)
    single = {"link_up": link_up, "switch_up": switch_up, "server_up": server_up, "work": work}
    require_instance((int, float, np.number), **single)
    draw = np.random.default_rng(0) if rng is None else require_rng(rng=rng)
    form, (starts, arcs, symmetric) = as_built(t), size(t)
    hops = measured_hops(t, starts * arcs <= _AT_ONCE * work, draw)
    if hops.unreachable:
        raise ValueError(
            f"topology must join all hosts, got {hops.unreachable} pairs without a path in {t!r}"
        )
    routed = shortest_paths(t, symmetric) if starts * arcs <= work else None
    cut = bisection(t)
    solved = work / (_ROUND * hops.diameter) if symmetric else min(work, _PROGRAM)
    throughput = throughput_rows(t, hops, cut.upper, routed, starts * arcs <= solved)
    pair = (t.labels[t.hosts[0]], t.labels[t.hosts[-1]])
    downs = Downs(cable=1.0 - link_up, switch=1.0 - switch_up, server=1.0 - server_up)
    rows = (
        *count_rows(t),
        *hop_rows(t, hops, form, symmetric),
        cut_row(t, cut, routed, throughput[-1].lower),
        *throughput,
        *path_rows(t, form, pair),
        *availability_rows(t, form, pair, downs),
    )
    return Card(design=repr(t)[1:-1].removeprefix("Topology "), rows=rows)
