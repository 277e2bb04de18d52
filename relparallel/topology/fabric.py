"""`Topology`: how a cluster is wired, as arrays.

Nodes are 0..n-1 and cables join two of them. Parallel cables stand once in ``edges``, with their
number in ``multiplicity``: a hop count needs the pair once, a failure model needs every cable. A
*host* is an endpoint of traffic (a server, a GPU, any node of a torus); every other node is a
switch. A node that may forward traffic of others has ``transit``: the hosts of a Clos network do
not, the servers of BCube and DCell do.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_flag, require_instance, require_int, require_real
from relparallel.topology import _arrays
from relparallel.topology._arrays import BoolArray, FloatArray, IntArray
from relparallel.topology.interchange import fields_of, graph_of
from relparallel.topology.parts import LINK_CAPACITY, Design, SharedRisk, risk_groups

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Topology:
    """A wired cluster: n nodes, m joined pairs, one array per attribute.

    Use the builders, `Topology.of` or `Topology.from_networkx`; the constructor takes arrays
    already in order. Change an attribute with ``dataclasses.replace(topology, latency=...)``.
    Arrays are read-only.

    Parameters
    ----------
    edges : int array [m, 2]
        Joined pairs u < v in ascending order, each once.
    node_kind : int array [n]
        Index into ``kinds``.
    kinds : tuple of str
        The roles nodes play, such as ``("host", "edge", "aggregation", "core")``.
    endpoint, transit : bool array [n]
        Whether the node is a host; whether it forwards traffic of others.
    tier, pod, rail : int array [n]
        Layer, group and plane of the node; -1 where the design has none.
    device_class : int array [n]
        Index into ``device_classes``: the hardware a node is made of, to which rates, cost and
        power belong.
    device_classes : tuple of str
        Names of the hardware classes.
    multiplicity : int array [m]
        Parallel cables of the pair, at least 1.
    capacity : float array [m]
        Of one cable in one direction [bytes/s].
    latency : float array [m]
        Of one cable [s]; 0 where it is not modelled.
    labels : sequence of hashable
        Name of every node: 0..n-1 for the builders, the node itself for a networkx graph.
    shared_risk : tuple of SharedRisk
        Groups of components that fail together.
    node_attributes, edge_attributes : Mapping of str to array
        Further attributes by name, [n] and [m]; None in an object array marks a missing value.
    graph_attributes : Mapping
        Further attributes of the whole.
    meta : Design
        Where the topology comes from.

    Examples
    --------
    >>> Topology.of(edges=[(0, 1)], node_kind={"server": 2}, meta=Design(name="cable"))
    <Topology cable(): 2 hosts, 0 switches, 1 links>
    """

    edges: IntArray
    node_kind: IntArray
    kinds: tuple[str, ...]
    endpoint: BoolArray
    transit: BoolArray
    tier: IntArray
    pod: IntArray
    rail: IntArray
    device_class: IntArray
    device_classes: tuple[str, ...]
    multiplicity: IntArray
    capacity: FloatArray
    latency: FloatArray
    labels: Sequence[Hashable]
    shared_risk: tuple[SharedRisk, ...] = ()
    node_attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    edge_attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    graph_attributes: Mapping[str, Any] = field(default_factory=dict)
    meta: Design

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        require_instance(Design, meta=self.meta)
        kinds = _arrays.names("kinds", self.kinds)
        classes = _arrays.names("device_classes", self.device_classes)
        node_kind = _arrays.integers("node_kind", self.node_kind, -1, at_most=len(kinds) - 1)
        n = node_kind.size
        if n == 0:
            raise ValueError("node_kind must hold at least one node, got none")
        edges = _arrays.ordered_pairs(self.edges, n)
        m = len(edges)
        checked: dict[str, Any] = {
            "kinds": kinds,
            "device_classes": classes,
            "node_kind": node_kind,
            "edges": edges,
            "device_class": _arrays.integers(
                "device_class", self.device_class, n, at_most=len(classes) - 1, per="node_kind"
            ),
            "multiplicity": _arrays.integers(
                "multiplicity", self.multiplicity, m, at_least=1, per="edges"
            ),
            "capacity": _arrays.reals("capacity", self.capacity, m, "edges", above=0.0),
            "latency": _arrays.reals("latency", self.latency, m, "edges", at_least=0.0),
            "labels": _arrays.distinct_labels(self.labels, n),
            "shared_risk": risk_groups(self.shared_risk, n, m),
            "node_attributes": _arrays.columns(
                "node_attributes", self.node_attributes, n, "node_kind"
            ),
            "edge_attributes": _arrays.columns("edge_attributes", self.edge_attributes, m, "edges"),
            "graph_attributes": dict(
                require_instance(Mapping, graph_attributes=self.graph_attributes)
            ),
        }
        for name in ("tier", "pod", "rail"):
            checked[name] = _arrays.integers(
                name, getattr(self, name), n, at_least=-1, per="node_kind"
            )
        for name in ("endpoint", "transit"):
            checked[name] = _arrays.flags(name, getattr(self, name), n, "node_kind")
        for name, value in checked.items():
            stored = _arrays.read_only(value) if isinstance(value, np.ndarray) else value
            object.__setattr__(self, name, stored)

    @classmethod
    def of(
        cls,
        *,
        edges: ArrayLike,
        node_kind: Mapping[str, int],
        meta: Design,
        endpoint: ArrayLike | None = None,
        transit: ArrayLike | None = None,
        tier: ArrayLike | None = None,
        pod: ArrayLike | None = None,
        rail: ArrayLike | None = None,
        device_class: Mapping[str, str] | None = None,
        capacity: float = LINK_CAPACITY,
        latency: float = 0.0,
    ) -> Topology:
        """Build from cables in any order; a pair named several times has that many parallel cables.

        ``node_kind`` is the number of nodes of each kind, in the order in which nodes are numbered;
        ``device_class`` the hardware of kinds that are not their own class; ``capacity`` [bytes/s]
        and ``latency`` [s] are those of every cable. By default the first kind are the hosts, all
        nodes forward, ``tier`` is the position of the kind, and there is no pod and no rail.

        Examples
        --------
        >>> twice = Topology.of(edges=[(1, 0), (0, 1)], node_kind={"server": 2}, meta=Design(name="trunk"))
        >>> twice.edges.tolist(), twice.multiplicity.tolist(), twice.num_links
        ([[0, 1]], [2], 2)
        """
        require_instance(Mapping, node_kind=node_kind)
        counts = [require_int(node_kind=count, at_least=0) for count in node_kind.values()]
        kind = np.repeat(np.arange(len(counts)), counts)
        pairs, multiplicity = _arrays.merged(edges, kind.size)
        other = require_instance(Mapping, device_class={} if device_class is None else device_class)
        hardware = [other.get(name, name) for name in node_kind]
        classes = tuple(dict.fromkeys(hardware))
        none = np.full(kind.size, -1)
        return cls(
            edges=pairs,
            node_kind=kind,
            kinds=tuple(node_kind),
            endpoint=np.asarray(kind == 0 if endpoint is None else endpoint),
            transit=np.asarray(kind >= 0 if transit is None else transit),
            tier=np.asarray(kind if tier is None else tier),
            pod=np.asarray(none if pod is None else pod),
            rail=np.asarray(none if rail is None else rail),
            device_class=np.array([classes.index(name) for name in hardware], dtype=np.int64)[kind],
            device_classes=classes,
            multiplicity=multiplicity,
            capacity=np.full(len(pairs), require_real(capacity=capacity, above=0)),
            latency=np.full(len(pairs), require_real(latency=latency, at_least=0)),
            labels=range(kind.size),
            meta=meta,
        )

    @property
    def num_nodes(self) -> int:
        """Hosts and switches."""
        return int(self.node_kind.size)

    @property
    def num_hosts(self) -> int:
        """Endpoints of traffic."""
        return int(np.count_nonzero(self.endpoint))

    @property
    def num_switches(self) -> int:
        """Nodes that are no hosts."""
        return self.num_nodes - self.num_hosts

    @property
    def num_links(self) -> int:
        """Cables, parallel ones counted singly."""
        return int(self.multiplicity.sum())

    @cached_property
    def hosts(self) -> IntArray:
        """Indices of the hosts, ascending."""
        return np.flatnonzero(self.endpoint)

    @cached_property
    def switches(self) -> IntArray:
        """Indices of the nodes that are no hosts, ascending."""
        return np.flatnonzero(~self.endpoint)

    @cached_property
    def degrees(self) -> IntArray:
        """Cables at every node, [n], parallel ones counted singly."""
        cables = np.tile(self.multiplicity, 2)
        return np.bincount(self.edges.T.ravel(), weights=cables, minlength=self.num_nodes).astype(
            np.int64
        )

    @cached_property
    def _neighbours(self) -> tuple[IntArray, IntArray]:
        """Rows of the adjacency matrix: lower neighbours first, so each row is ascending."""
        return _arrays.adjacency(self.edges, self.num_nodes)

    @property
    def indptr(self) -> IntArray:
        """Where each node's neighbours start in `indices`, [n + 1]."""
        return self._neighbours[0]

    @property
    def indices(self) -> IntArray:
        """Neighbours of v, sorted: ``indices[indptr[v]:indptr[v + 1]]``; parallel cables once."""
        return self._neighbours[1]

    @cached_property
    def _position(self) -> dict[Hashable, int]:
        return {label: index for index, label in enumerate(self.labels)}

    def index_of(self, label: Hashable) -> int:
        """Index of the node with this label."""
        try:
            if isinstance(label, complex):  # equal to a number, but not the name of a node
                raise TypeError(label)
            if isinstance(self.labels, range):
                return self.labels.index(label)  # type: ignore[arg-type]
            return self._position[label]
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"label must be a node of {self!r}, got {label!r}") from None

    def is_kind(self, kind: str) -> BoolArray:
        """Which nodes are of the named kind, [n]."""
        if kind not in self.kinds:
            raise ValueError(f"kind must be one of {', '.join(self.kinds)}, got {kind!r}")
        return np.asarray(self.node_kind == self.kinds.index(kind))

    def to_networkx(self) -> nx.Graph[Any]:
        """Graph with every attribute; `from_networkx` gives the same topology back.

        Nodes are the labels, in order. Node attributes kind, endpoint, transit, tier, pod, rail and
        device_class; edge attributes multiplicity, capacity and latency; shared_risk (names of
        groups) where there is one; further attributes under their own names. ``graph["design"]`` is
        ``meta``.
        """
        return graph_of(self)

    @classmethod
    def from_networkx(cls, graph: nx.Graph[Any], *, strict: bool = True) -> Topology:
        """Topology of an undirected graph whose nodes are the labels; `as_topology` says more.

        A graph in several parts, which have no distance, is refused where ``strict``; failures
        leave such.
        """
        import networkx as nx

        found = as_topology(require_instance(nx.Graph, graph=graph))
        if require_flag(strict=strict):
            _arrays.require_one_part("graph", found.edges, found.num_nodes)
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        return all(
            _arrays.same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)
        )

    def __repr__(self) -> str:
        counts = f"{self.num_hosts} hosts, {self.num_switches} switches, {self.num_links} links"
        return f"<Topology {self.meta}: {counts}>"


def as_topology(graph: Topology | nx.Graph[Any], *, name: str = "graph") -> Topology:
    """Return a topology as it is, and read an undirected networkx graph as one.

    Parameters
    ----------
    graph : Topology or networkx.Graph or networkx.MultiGraph
        Every node is an endpoint and forwards, every edge is one cable of 400 Gbit/s and latency 0,
        unless attributes with the names of `Topology.to_networkx` say otherwise.
    name : str, optional
        How errors call the argument.

    Returns
    -------
    Topology
        Labels are the nodes of the graph, in its order; parallel edges are merged into
        ``multiplicity``.

    Examples
    --------
    >>> import networkx as nx
    >>> as_topology(nx.MultiGraph([("a", "b"), ("b", "a"), ("b", "c")])).multiplicity.tolist()
    [2, 1]
    """
    require_instance(str, name=name)
    if isinstance(graph, Topology):
        return graph
    import networkx as nx

    require_instance((Topology, nx.Graph), **{name: graph})
    return Topology(**fields_of(name, graph))
