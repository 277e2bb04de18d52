"""Routing that defines a design: the paths of its paper, as tuples of nodes from source to target.

A path names every node on it, switches included, so it can be drawn and counted in links. Source
and target are labels of hosts. None of the routes looks at failures or load.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise, repeat
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import require_choice, require_instance, require_rng
from relparallel.topology._arrays import BoolArray, levels
from relparallel.topology.designs.server_centric import copy_cable, dcell_servers, ficonn_servers
from relparallel.topology.fabric import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx
    from scipy.sparse import csr_array

Path = tuple[Hashable, ...]  # of labels
Walk = tuple[int, ...]  # of indices

_MOST_PATHS: Final = 2**16  # paths that are listed


def paths(
    topology: Topology | nx.Graph[Any],
    source: Hashable,
    target: Hashable,
    routing: str = "ecmp",
    *,
    rng: np.random.Generator | None = None,
) -> tuple[Path, ...]:
    """Paths between two nodes, as tuples of labels from source to target.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        A node without ``transit`` lies on no path but its own.
    source, target : hashable
        Labels of two different nodes.
    routing : {"ecmp", "updown", "design"}, optional
        All shortest paths; all that go up a tier with every link and then down; or the routing that
        the paper of a BCube, DCell, FiConn or VL2 defines.
    rng : numpy.random.Generator, optional
        Chooses the intermediate switch of VL2.

    Returns
    -------
    tuple of tuples
        The shortest first, once for every choice of parallel cables; empty where no such path joins
        the nodes. BCube: k+1 paths that share no server and no switch. DCell and FiConn: one path
        of at most 2^(k+1) - 1 server hops, not always a shortest.

    Notes
    -----
    Up-down routes cannot wait for each other in a circle, so they need no virtual channels.

    References
    ----------
    Guo et al., SIGCOMM 2008 and 2009; Li et al., INFOCOM 2009; Greenberg et al., SIGCOMM 2009;
    Schroeder et al., "Autonet", IEEE Journal on Selected Areas in Communications 9, 1991.

    Examples
    --------
    >>> from relparallel.topology import bcube
    >>> paths(bcube(n=4, k=1), 0, 5, "design")
    ((0, 20, 4, 17, 5), (0, 16, 1, 21, 5))
    """
    require_choice(("ecmp", "updown", "design"), routing=routing)
    if routing != "design":
        return (ecmp_paths if routing == "ecmp" else up_down_paths)(topology, source, target)
    t = as_topology(topology, name="topology")
    if t.meta.name == "bcube":
        return bcube_paths(t, source, target)
    if t.meta.name == "vl2":
        return (vl2_route(t, source, target, rng=require_rng(rng=rng)),)
    return ((ficonn_route if t.meta.name == "ficonn" else dcell_route)(t, source, target),)


def bcube_paths(topology: Topology, source: Hashable, target: Hashable) -> tuple[Path, ...]:
    """The k+1 parallel paths of BCube source routing; path i leaves the source at level k - i.

    Digits are corrected from level i down and round (BuildPathSet, Guo et al. 2009, section 3.3).
    Where digit i is right, the path first moves to a neighbour of the source at level i and
    corrects digit i last.
    """
    s, d = _servers(topology, "bcube", source, target)
    n, k = (int(topology.meta.parameters[letter]) for letter in ("n", "k"))
    return tuple(_bcube_path(s, d, n, k, level) for level in range(k, -1, -1))


def dcell_route(topology: Topology, source: Hashable, target: Hashable) -> Path:
    """DCellRouting: over the one cable between copies, level by level (Guo et al. 2008, 4.1)."""
    s, d = _servers(topology, "dcell", source, target)
    n, k = (int(topology.meta.parameters[letter]) for letter in ("n", "k"))
    return _copy_by_copy(s, d, dcell_servers(n, k), [1] * k)


def ficonn_route(topology: Topology, source: Hashable, target: Hashable) -> Path:
    """FiConn's traffic-oblivious routing, level by level as in DCell (Li et al. 2009, IV-A)."""
    s, d = _servers(topology, "ficonn", source, target)
    n, k = (int(topology.meta.parameters[letter]) for letter in ("n", "k"))
    return _copy_by_copy(s, d, ficonn_servers(n, k), [2**level for level in range(1, k + 1)])


def vl2_route(
    topology: Topology, source: Hashable, target: Hashable, *, rng: np.random.Generator
) -> Path:
    """Valiant load balancing of VL2: to a random intermediate switch and down; a rack is not left.

    All intermediate switches and both aggregation switches of a rack are equally likely (Greenberg
    et al., SIGCOMM 2009, section 4.2.2).
    """
    s, d = _servers(topology, "vl2", source, target)
    require_rng(rng=rng)
    (up,), (down,) = _above(topology, s), _above(topology, d)
    if up == down:
        return s, up, d
    first, last = (rng.choice(_above(topology, tor)).item() for tor in (up, down))
    return s, up, first, rng.choice(_above(topology, first)).item(), last, down, d


def ecmp_paths(
    topology: Topology | nx.Graph[Any], source: Hashable, target: Hashable
) -> tuple[Path, ...]:
    """All shortest paths between two nodes, by one breadth-first search from the target."""
    t, s, d = ends_of(topology, source, target)
    usable = t.transit.copy()
    usable[[s, d]] = True
    away = levels(t.edges[usable[t.edges].all(axis=1)], np.arange(t.num_nodes) == d)

    def closer(v: int) -> list[int]:
        return [w for w in _neighbours(t, v) if away[w] == away[v] - 1] if away[v] > 0 else []

    return _listed(t, (walk for walk in _walks((s,), closer) if walk[-1] == d))


def up_down_paths(
    topology: Topology | nx.Graph[Any], source: Hashable, target: Hashable
) -> tuple[Path, ...]:
    """All paths that go up a tier with every link and then down, over every common ancestor."""
    t, s, d = ends_of(topology, source, target)
    descents: dict[int, list[Walk]] = {}
    for walk in _climbs(t, d):
        descents.setdefault(walk[-1], []).append(walk[-2::-1])
    found = (
        (*up, *down)
        for up in _climbs(t, s)
        for down in descents.get(up[-1], ())
        if not set(up) & set(down)
    )
    return _listed(t, found)


def _servers(
    topology: Topology, design: str, source: Hashable, target: Hashable
) -> tuple[int, int]:
    """Check the design, and return the indices of two different servers."""
    t: Topology = require_instance(Topology, topology=topology)
    if t.meta.name != design:
        raise ValueError(f"topology must be built by {design}, got {t!r}")
    _, *ends = ends_of(t, source, target)
    for name, label, end in zip(("source", "target"), (source, target), ends, strict=True):
        if not t.endpoint[end]:
            raise ValueError(f"{name} must be a server of {t!r}, got {label!r}")
    return ends[0], ends[1]


def ends_of(
    topology: Topology | nx.Graph[Any], source: Hashable, target: Hashable
) -> tuple[Topology, int, int]:
    """Topology, and the indices of two different nodes."""
    t = as_topology(topology, name="topology")
    s, d = node_index(t, "source", source), node_index(t, "target", target)
    if s == d:
        raise ValueError(f"target must differ from source, got {target!r} for both")
    return t, s, d


def _bcube_path(s: int, d: int, n: int, k: int, first: int) -> Walk:
    """Path that leaves server s at level ``first``, then corrects the digits below it and round."""
    order = [*range(first - 1, -1, -1), *range(k, first, -1)]
    place = n**first
    if s // place % n == d // place % n:
        digits = [(first, (s // place + 1) % n), *((level, None) for level in order), (first, None)]
    else:
        digits = [(level, None) for level in (first, *order)]
    walk = [s]
    for level, digit in digits:
        walk += _bcube_step(walk[-1], level, d // n**level % n if digit is None else digit, n, k)
    return tuple(walk)


def _bcube_step(server: int, level: int, digit: int, n: int, k: int) -> list[int]:
    """Switch and server that set one digit; nothing where it is right."""
    place = n**level
    old, low = server // place % n, server % place
    switch = n ** (k + 1) + level * n**k + server // (n * place) * place + low
    return [] if old == digit else [switch, server + (digit - old) * place]


def _copy_by_copy(s: int, d: int, sizes: Sequence[int], steps: Sequence[int]) -> Walk:
    """Route in a network of copies of copies, each two of a level joined by one cable."""
    if s == d:
        return (s,)
    level = next(level for level, size in enumerate(sizes) if s // size == d // size)
    if level == 0:
        return s, sizes[-1] + s // sizes[0], d
    base = s // sizes[level] * sizes[level]
    i, j = ((server - base) // sizes[level - 1] for server in (s, d))
    out, back = copy_cable(sizes[level - 1], steps[level - 1], min(i, j), max(i, j))
    if i > j:
        out, back = back, out
    inside = _copy_by_copy(s, base + out, sizes, steps)
    return inside + _copy_by_copy(base + back, d, sizes, steps)


def _neighbours(t: Topology, v: int) -> list[int]:
    """Nodes that a cable joins to v."""
    found: list[int] = t.indices[t.indptr[v] : t.indptr[v + 1]].tolist()
    return found


def _above(t: Topology, v: int) -> list[int]:
    """Neighbours in a higher tier."""
    return [w for w in _neighbours(t, v) if t.tier[w] > t.tier[v]]


def _walks(walk: Walk, onward: Callable[[int], list[int]]) -> Iterator[Walk]:
    """The walk and all its continuations, depth first."""
    yield walk
    for node in onward(walk[-1]):
        yield from _walks((*walk, node), onward)


def _climbs(t: Topology, start: int) -> Iterator[Walk]:
    """Walks that go up a tier with every link, the one of a single node included."""
    return _walks((start,), lambda v: _above(t, v) if t.transit[v] or v == start else [])


def _listed(t: Topology, walks: Iterable[Walk]) -> tuple[Path, ...]:
    """Labels along the walks, once for every choice of parallel cables; the shortest first."""
    several = t.multiplicity > 1
    pairs = map(frozenset, t.edges[several].tolist())
    cables = dict(zip(pairs, t.multiplicity[several].tolist(), strict=True))
    choices = (
        repeat(walk, prod(cables.get(frozenset(pair), 1) for pair in pairwise(walk)))
        for walk in walks
    )
    listed = islice(chain.from_iterable(choices), _MOST_PATHS + 1)
    found = sorted(listed, key=lambda walk: (len(walk), walk))
    if len(found) > _MOST_PATHS:
        raise ValueError(
            f"target must be at the end of at most {_MOST_PATHS} paths from source in {t!r}"
        )
    return tuple(tuple(t.labels[v] for v in walk) for walk in found)


class Flow(NamedTuple):
    """A largest flow: how many units, over which arcs, of which capacities."""

    value: int
    sent: csr_array
    arcs: csr_array

    def near_side(self, source: int) -> BoolArray:
        """Nodes on the near side of the minimum cut that it leaves."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order

        left = csr_array(self.arcs - self.sent)
        left.data = np.maximum(left.data, 0)
        left.eliminate_zeros()
        near = np.zeros(left.shape[0], dtype=np.bool_)
        near[breadth_first_order(left, source, return_predecessors=False)] = True
        return near


def maximum_flow(
    tail: ArrayLike, head: ArrayLike, units: ArrayLike, nodes: int, source: int, target: int
) -> Flow:
    """Largest flow over arcs of whole capacities (Dinic); parallel arcs add up."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    ends = np.asarray(tail, dtype=np.int32), np.asarray(head, dtype=np.int32)
    arcs = csr_array((np.asarray(units, dtype=np.int32), ends), shape=(nodes, nodes))
    found = maximum_flow(arcs, source, target, method="dinic")
    return Flow(int(found.flow_value), found.flow, arcs)


def flow_of_paths(t: Topology, s: int, d: int, share: str) -> Flow:
    """Flow of paths from s to d that share no cable or, if they share ``"ends"`` alone, no node.

    In the second case, node v is entered at v + n and left at v.
    """
    n, split = t.num_nodes, share == "ends"
    tail, head = np.concatenate([t.edges, t.edges[:, ::-1]]).T
    cables = np.ones(tail.size, dtype=np.int64) if split else np.tile(t.multiplicity, 2)
    forwards = t.transit.copy()
    forwards[[s, d]] = False
    usable = (forwards[tail] | (tail == s)) & (forwards[head] | (head == d))
    tail, head, cables = tail[usable], head[usable], cables[usable]
    if not split:
        return maximum_flow(tail, head, cables, n, s, d)
    inner = np.flatnonzero(forwards)
    tail, head = np.concatenate([tail, inner + n]), np.concatenate([head + n, inner])
    return maximum_flow(tail, head, np.concatenate([cables, np.ones(inner.size)]), 2 * n, s, d + n)


def disjoint_paths(topology: Topology | nx.Graph[Any], source: Hashable, target: Hashable) -> int:
    """Largest number of source-target paths that share no cable: a maximum flow (Menger)."""
    return flow_of_paths(*ends_of(topology, source, target), "nodes").value


def node_index(topology: Topology, name: str, label: Hashable) -> int:
    """Index of the node that an argument of that name labels."""
    try:
        return topology.index_of(label)
    except ValueError:
        raise ValueError(f"{name} must be a node of {topology!r}, got {label!r}") from None
