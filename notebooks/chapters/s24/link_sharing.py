"""Flows on links of a network: buffers that wait for each other, spreading pauses, hash collisions.

A link that never drops pauses its sender, and a paused buffer pauses the next. Buffers that can
wait for each other in a circle can stand still for ever.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csgraph, hstack

from relparallel._checks import require_choice, require_rng
from relparallel.metrics._paths import distances
from relparallel.topology import Topology, as_topology, paths
from relparallel.topology._arrays import BoolArray, IntArray, adjacency
from relparallel.topology.routing import node_index

_MOST_HOSTS: Final = 1024  # of networks whose buffers are compared pair by pair


class _Buffers(NamedTuple):
    """Arcs u -> v of the living links, hops between all nodes, which arcs lead to which host."""

    tail: IntArray
    head: IntArray
    hops: NDArray[np.float64]  # [n, n]
    hosts: IntArray
    toward: BoolArray  # [hosts, arcs] on a shortest path from some host


def _buffers(topology: Topology | nx.Graph[Any], alive: BoolArray | None = None) -> _Buffers:
    """The arcs that shortest paths between hosts use, one destination at a time."""
    t = as_topology(topology, name="topology")
    if not 2 <= t.num_hosts <= _MOST_HOSTS:
        raise ValueError(f"topology must have 2 to {_MOST_HOSTS} hosts, got {t.num_hosts} in {t!r}")
    size = t.num_nodes + len(t.edges)
    lives = np.ones(size, bool) if alive is None else alive
    edges = t.edges[lives[t.num_nodes :] & lives[t.edges].all(axis=1)]
    indptr, head = adjacency(edges, t.num_nodes)
    tail = np.repeat(np.arange(t.num_nodes), np.diff(indptr))
    hops = distances(indptr, head, t.transit, np.ones(head.size), np.arange(t.num_nodes))
    toward = np.empty((t.num_hosts, head.size), bool)
    for i, host in enumerate(t.hosts):
        closer = hops[host, tail] == hops[host, head] + 1
        through = hops[t.hosts] + hops[host] == hops[host, t.hosts][:, None]
        open_ends = (t.transit[head] | (head == host)) & np.isfinite(hops[host, tail])
        toward[i] = closer & open_ends & (through & np.isfinite(hops[t.hosts])).any(axis=0)[tail]
    return _Buffers(tail, head, hops, t.hosts, toward)


def buffer_cycle(
    topology: Topology | nx.Graph[Any], routing: str = "ecmp", alive: BoolArray | None = None
) -> tuple[tuple[Hashable, Hashable], ...]:
    """Links whose buffers can wait for each other in a circle, in its order; empty if none can.

    ``routing`` "ecmp" takes all shortest paths between hosts (at most 1024), "updown" every turn
    but those from a way down to a way up. ``alive`` says which nodes, then which rows of ``edges``,
    work, [n + m]; routes go round what fails. Without a circle no pause can close a deadlock; with
    one it takes the right traffic. Dally and Seitz, IEEE Transactions on Computers 36, 1987; Hu et
    al., "Deadlocks in Datacenter Networks", HotNets 2016.

    >>> from relparallel.topology import fat_tree, torus
    >>> buffer_cycle(fat_tree(4)), len(buffer_cycle(torus((5, 5))))
    ((), 5)
    """
    require_choice(("ecmp", "updown"), routing=routing)
    t, b = as_topology(topology, name="topology"), _buffers(topology, alive)
    first, second = _turns(b)
    first, second = (part[t.transit[b.head[first]]] for part in (first, second))
    if routing == "ecmp":
        used = np.zeros(first.size, bool)
        for arcs in b.toward:
            used |= arcs[first] & arcs[second]
    else:
        if np.any(t.tier[b.tail] == t.tier[b.head]):
            raise ValueError(
                f"routing must be 'ecmp' where links join nodes of one tier, got 'updown' in {t!r}"
            )
        down, up = t.tier[b.head] < t.tier[b.tail], t.tier[b.head] > t.tier[b.tail]
        used = ~(down[first] & up[second])
    first, second = first[used], second[used]
    waits = coo_array((np.ones(first.size), (first, second)), shape=(b.head.size, b.head.size))
    if csgraph.connected_components(waits, connection="strong")[0] == b.head.size:
        return ()
    graph = nx.DiGraph(zip(first.tolist(), second.tolist(), strict=True))
    circle = [arc for arc, _ in nx.find_cycle(graph)]
    return tuple((t.labels[b.tail[arc]], t.labels[b.head[arc]]) for arc in circle)


def _turns(b: _Buffers) -> tuple[IntArray, IntArray]:
    """Pairs of arcs u -> v and v -> w with u != w."""
    starts = np.searchsorted(b.tail, np.arange(len(b.hops) + 1))
    many = np.diff(starts)[b.head]
    first = np.repeat(np.arange(b.head.size), many)
    second = np.arange(first.size) - np.repeat(np.cumsum(many) - many, many) + starts[b.head[first]]
    away = b.head[second] != b.tail[first]
    return first[away], second[away]


def pause_spread(topology: Topology | nx.Graph[Any], target: Hashable) -> NDArray[np.float64]:
    """How many innocent pairs of hosts a stuck receiver stops as pauses spread towards the senders.

    ``target`` takes nothing any more, while all others send to it. Entry k: share of ordered pairs
    of other hosts of whose shortest paths one uses a link that is paused after k links. All are
    stopped when the pauses have reached the hosts.

    >>> from relparallel.topology import leaf_spine
    >>> pause_spread(leaf_spine(leaves=4, spines=2, hosts_per_leaf=2), 0).round(3).tolist()
    [0.0, 0.0, 0.286, 0.857, 1.0]
    """
    t, b = as_topology(topology, name="topology"), _buffers(topology)
    stuck = node_index(t, "target", target)
    if not t.endpoint[stuck]:
        raise ValueError(f"target must be a host of {t!r}, got {target!r}")
    others = b.hosts[b.hosts != stuck]
    hops = b.hops[np.ix_(others, others)]
    pairs = np.isfinite(hops) & ~np.eye(others.size, dtype=bool)
    arcs = np.flatnonzero(b.toward[b.hosts == stuck][0])
    depth = b.hops[stuck, b.tail[arcs]].astype(np.int64)
    hit, share = np.zeros_like(pairs), [0.0]
    for k in range(1, depth.max(initial=0) + 1):
        for arc in arcs[depth == k]:
            way = b.hops[others, b.tail[arc]][:, None] + 1 + b.hops[b.head[arc], others]
            passes = t.transit[b.head[arc]] | (b.head[arc] == others)
            hit |= pairs & (way == hops) & passes
        share.append(float(hit.sum() / pairs.sum()))
    return np.array(share)


def expected_max_load(flows: int, links: int) -> float:
    """How many of n flows the busiest of m equal links carries on average if each picks at random.

    Exact to rounding: sum over k of P(max > k), with P(max <= k) = n! [x^n] (sum_{j <= k} x^j/j!)^m
    / m^n and powers by squaring. A central scheduler reaches ceil(n/m).

    >>> round(expected_max_load(2, 2), 12), round(expected_max_load(16, 16), 3)
    (1.5, 3.078)
    """
    n, m = flows, links
    order, factorials = np.arange(n + 1), np.append(0.0, np.cumsum(np.log(np.arange(1, n + 1))))
    # of (n x/m)^j/j!, whose sums stay in range
    series = np.exp(order * math.log(max(n, 1) / m) - factorials)
    whole = factorials[n] - n * math.log(max(n, 1))
    total = 0.0
    for k in range(n):
        square, power, left = np.where(order <= k, series, 0.0), np.eye(1, n + 1)[0], m
        while left:
            power = np.convolve(power, square)[: n + 1] if left % 2 else power
            left //= 2
            square = np.convolve(square, square)[: n + 1] if left else square
        total += 1.0 - (math.exp(math.log(power[n]) + whole) if power[n] > 0 else 0.0)
    return total


class FlowPlacement(NamedTuple):
    """Flows on paths: busiest link's ``load`` [flows per cable], and labels along the ``paths``."""

    load: float
    paths: tuple[tuple[Hashable, ...], ...]


def place_flows(
    topology: Topology | nx.Graph[Any],
    flows: Sequence[tuple[Hashable, Hashable]],
    method: str = "best",
    rng: np.random.Generator | None = None,
) -> FlowPlacement:
    """Every equal flow on one of its shortest paths: Al-Fares et al., "Hedera", NSDI 2010.

    ``method`` "best": so that the busiest link carries least (integer program, HiGHS); "first_fit":
    in turn where the busiest link is least loaded, as Hedera's global first fit; "ecmp": each on a
    random path, drawn by ``rng``.

    >>> from relparallel.topology import fat_tree
    >>> flows = [(host, (host + 8) % 16) for host in range(16)]
    >>> place_flows(fat_tree(4), flows).load
    1.0
    """
    require_choice(("best", "first_fit", "ecmp"), method=method)
    t = as_topology(topology, name="topology")
    listed = [paths(t, *pair) for pair in flows]
    if not all(listed):
        raise ValueError("flows must be joined by paths")
    options = [_on_arcs(t, found) for found in listed]
    arcs = 2 * len(t.edges)
    weight = 1 / np.tile(t.multiplicity, 2)
    if method == "ecmp":
        chosen = [int(require_rng(rng=rng).integers(len(found))) for found in listed]
    elif method == "first_fit":
        chosen = _first_fit(options, weight)
    else:
        chosen = _least_load(options, weight)
    load = np.bincount(
        np.concatenate([o[c] for o, c in zip(options, chosen, strict=True)]), minlength=arcs
    )
    taken = tuple(found[c] for found, c in zip(listed, chosen, strict=True))
    return FlowPlacement(load=float((load * weight).max()), paths=taken)


def _on_arcs(t: Topology, found: Sequence[tuple[Hashable, ...]]) -> list[IntArray]:
    """Numbers of the directed links along every path: rows of ``edges``, then the same reversed."""
    m, n = len(t.edges), t.num_nodes
    key = t.edges[:, 0] * n + t.edges[:, 1]
    walks = [np.array([t.index_of(label) for label in path]) for path in found]
    arcs = []
    for walk in walks:
        low, high = np.minimum(walk[1:], walk[:-1]), np.maximum(walk[1:], walk[:-1])
        arcs.append(np.searchsorted(key, low * n + high) + m * (walk[:-1] > walk[1:]))
    return arcs


def _first_fit(options: list[list[IntArray]], weight: NDArray[np.float64]) -> list[int]:
    """One flow after the other on the path where the busiest link is least loaded."""
    load, chosen = np.zeros(weight.size), []
    for ways in options:
        after = [(load[arcs] + 1) * weight[arcs] for arcs in ways]
        chosen.append(min(range(len(ways)), key=lambda i: (after[i].max(), after[i].sum())))
        load[ways[chosen[-1]]] += 1
    return chosen


def _least_load(options: list[list[IntArray]], weight: NDArray[np.float64]) -> list[int]:
    """Path of every flow such that the largest load is least: an integer program."""
    flow = np.repeat(np.arange(len(options)), [len(ways) for ways in options])
    ways = [arcs for some in options for arcs in some]
    column, row = (
        np.repeat(np.arange(len(ways)), [arcs.size for arcs in ways]),
        np.concatenate(ways),
    )
    uses = coo_array((weight[row], (row, column)), shape=(weight.size, len(ways)))
    limit = hstack([uses, coo_array(-np.ones((weight.size, 1)))])
    one = coo_array(
        (np.ones(flow.size), (flow, np.arange(flow.size))), shape=(len(options), len(ways) + 1)
    )
    found: Any = milp(
        np.append(np.zeros(len(ways)), 1.0),
        constraints=[LinearConstraint(limit, ub=0), LinearConstraint(one, 1, 1)],
        integrality=np.append(np.ones(len(ways)), 0),
        bounds=Bounds(0, np.inf),
    )
    return [int(found.x[:-1][flow == i].argmax()) for i in range(len(options))]
