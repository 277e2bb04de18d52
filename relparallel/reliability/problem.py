"""A reliability question as arrays: links and nodes with their chances, and the terminals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_choice, require_instance, require_probability
from relparallel.topology import Topology, as_topology

__all__ = ["LinkChance", "NodeChance", "Problem", "Terminals", "read_problem"]

FloatArray = NDArray[np.float64]
Terminals = Literal["all", "switches", "nodes"] | Sequence[Hashable] | Set[Hashable] | NDArray[Any]
LinkChance = ArrayLike | Mapping[tuple[Hashable, Hashable], float] | str
NodeChance = ArrayLike | Mapping[Hashable, float] | str


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Which parts fail with which chance, and which nodes have to be connected.

    Attributes
    ----------
    edges : int64[m, 2]
        Joined pairs, each once.
    link : float64[m, 2]
        Up- and down-probability of a pair: down when all its parallel cables are.
    node : float64[n, 2]
        Up- and down-probability of a node.
    terminals : int64[K]
        Ascending.
    transit : bool[n]
        Which nodes forward.
    """

    edges: NDArray[np.int64]
    link: FloatArray
    node: FloatArray
    terminals: NDArray[np.int64]
    transit: NDArray[np.bool_]


def read_problem(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals,
    link_up: LinkChance,
    node_up: NodeChance,
    link_down: LinkChance | None = None,
    node_down: NodeChance | None = None,
) -> Problem:
    """Check the arguments of `evaluate` and turn them into arrays; links that cannot help are left out."""
    topology = as_topology(graph)
    chosen = _terminals(topology, terminals)
    up, down = _either("link", link_up, link_down, partial(_links, topology, graph))
    node = _either("node", node_up, node_down, partial(_nodes, topology))
    cables = topology.multiplicity
    with np.errstate(divide="ignore"):  # log(0) of a perfect cable
        some = np.where(cables == 1, up, -np.expm1(cables * np.log1p(-up)))
    useful = topology.transit | np.isin(np.arange(topology.num_nodes), chosen)
    keep = useful[topology.edges].all(axis=1) & (some > 0)
    return Problem(
        edges=topology.edges[keep],
        link=np.column_stack([some, down**cables])[keep],
        node=np.column_stack(node),
        terminals=chosen,
        transit=topology.transit,
    )


def _either(
    part: str, up: Any, down: Any, read: Callable[[str, Any, float], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Up- and down-probabilities from the one of the two that the caller gave."""
    if down is None:
        values = read(f"{part}_up", up, 1.0)
        return values, 1.0 - values
    if not np.isscalar(up) or up != 1.0:
        raise ValueError(f"{part}_up must be left at 1.0 where {part}_down is given, got {up!r}")
    values = read(f"{part}_down", down, 0.0)
    return 1.0 - values, values


def _terminals(topology: Topology, terminals: Terminals) -> NDArray[np.int64]:
    """Ascending indices of the nodes that have to be connected."""
    named = {"all": topology.hosts, "switches": topology.switches, "nodes": np.arange(topology.num_nodes)}
    if isinstance(terminals, str):
        chosen = named[require_choice(tuple(named), terminals=terminals)]
    else:
        require_instance((tuple, list, range, set, frozenset, np.ndarray), terminals=terminals)
        chosen = np.array([_index("terminals", topology, label) for label in terminals], dtype=np.int64)
    if chosen.size == 0 or np.unique(chosen).size < chosen.size:
        raise ValueError(f"terminals must be one or more distinct nodes, got {terminals!r}")
    return np.sort(chosen)


def _index(argument: str, topology: Topology, label: Any) -> int:
    """Index of a node that the caller names in ``argument``."""
    try:
        return topology.index_of(label)
    except ValueError:
        raise ValueError(f"{argument} must name nodes of {topology!r}, got {label!r}") from None


def _links(
    topology: Topology, graph: Topology | nx.Graph[Any], argument: str, given: LinkChance, rest: float
) -> FloatArray:
    """Probability for one cable of every joined pair; ``rest`` where a mapping says nothing."""
    if isinstance(given, str):
        return _attribute(argument, topology.edge_attributes, given)
    row = {pair: i for i, pair in enumerate(map(tuple, topology.edges.tolist()))}
    if isinstance(given, Mapping):
        values = np.full(len(row), rest)
        for ends, chance in given.items():
            values[_row(argument, topology, row, ends)] = require_probability(**{argument: chance})
        return values
    values = _spread(argument, given, len(row))
    if np.ndim(given) == 0 or isinstance(graph, Topology):
        return values
    order = [_row(argument, topology, row, ends) for ends in graph.edges()]
    if len(order) > len(row):
        raise ValueError(
            f"{argument} must be a number, a mapping or a name for parallel edges, got {given!r}"
        )
    return values[np.argsort(order)]


def _row(argument: str, topology: Topology, row: Mapping[Any, int], ends: Any) -> int:
    """Row of the joined pair that a mapping names by its two ends."""
    if not isinstance(ends, tuple) or len(ends) != 2:
        raise TypeError(f"{argument} must have pairs of nodes as keys, got {ends!r}")
    u, v = sorted(_index(argument, topology, end) for end in ends)
    if (u, v) not in row:
        raise ValueError(f"{argument} must name links of {topology!r}, got {ends!r}")
    return row[u, v]


def _nodes(topology: Topology, argument: str, given: NodeChance, rest: float) -> FloatArray:
    """Probability for every node; ``rest`` where a mapping says nothing."""
    if isinstance(given, str):
        return _attribute(argument, topology.node_attributes, given)
    if not isinstance(given, Mapping):
        return _spread(argument, given, topology.num_nodes)
    values = np.full(topology.num_nodes, rest)
    for label, chance in given.items():
        values[_index(argument, topology, label)] = require_probability(**{argument: chance})
    return values


def _attribute(argument: str, attributes: Mapping[str, Any], name: str) -> FloatArray:
    """A column of the topology as probabilities."""
    if name not in attributes:
        known = ", ".join(attributes) or "there is none"
        raise ValueError(f"{argument} must name an attribute ({known}), got {name!r}")
    return np.asarray(require_probability(**{argument: attributes[name]}))


def _spread(argument: str, values: ArrayLike, length: int) -> FloatArray:
    """One probability for all, or one each."""
    chances = np.asarray(require_probability(**{argument: values}))
    if chances.ndim and chances.shape != (length,):
        raise ValueError(f"{argument} must be one probability or {length}, got shape {chances.shape}")
    return np.broadcast_to(chances, (length,))
