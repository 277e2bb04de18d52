"""A reliability question as arrays: links and nodes with their chances, and the terminals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from operator import is_
from typing import Any, Final, Literal, NamedTuple

import networkx as nx
import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_choice, require_instance, require_probability
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.probability import Chance
from relparallel.topology import Topology, as_topology

FloatArray = NDArray[np.float64]
Terminals = Literal["all", "switches", "nodes"] | Sequence[Hashable] | Set[Hashable] | NDArray[Any]
LinkChance = ArrayLike | Mapping[Any, float] | str  # Any: key types are invariant
NodeChance = ArrayLike | Mapping[Any, float] | str


@dataclass(frozen=True, slots=True)
class Group:
    """Parts that fail together: node indices, rows of ``Problem.edges``, chance of the event."""

    nodes: frozenset[int]
    links: frozenset[int]
    chance: Chance


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Which parts fail with which chance, and which nodes have to be connected.

    Chances are (up, down), floats or objects that are fractions.
    """

    edges: NDArray[np.int64]
    link: FloatArray
    node: FloatArray
    terminals: NDArray[np.int64]
    transit: NDArray[np.bool_]
    groups: tuple[Group, ...] = ()

    @property
    def in_fractions(self) -> bool:
        """Whether chances are fractions."""
        return self.link.dtype == object


def read_problem(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals,
    link_up: LinkChance,
    node_up: NodeChance,
    link_down: LinkChance | None = None,
    node_down: NodeChance | None = None,
) -> Problem:
    """Check arguments of `evaluate`, turn them into arrays; leave out links that cannot help."""
    simple = _read_simple(graph, terminals, link_up, node_up, link_down, node_down)
    if simple is not None:
        return simple
    topology = as_topology(graph)
    chosen = _terminals(topology, terminals)
    link = read_chances(links_of(topology, graph), link_up, link_down)
    node = read_chances(nodes_of(topology), node_up, node_down)
    (up, down), cables = link.T, topology.multiplicity
    if link.dtype == object:
        some = 1 - down**cables
    else:
        with np.errstate(divide="ignore"):  # log(0) of a perfect cable
            some = np.where(cables == 1, up, -np.expm1(cables * np.log1p(-up)))
    useful = topology.transit | np.isin(np.arange(topology.num_nodes), chosen)
    alive = (some > 0) & (node[:, 0] > 0)[topology.edges].all(axis=1)
    # others may become so without what is always down
    plain = topology.transit | (topology.degrees <= 1)
    keep = useful[topology.edges].all(axis=1) & (alive | plain[topology.edges].all(axis=1))
    found = Problem(
        edges=topology.edges[keep],
        link=np.column_stack([some, down**cables])[keep],
        node=node,
        terminals=chosen,
        transit=topology.transit.copy(),  # not read-only, for which loops would be compiled anew
    )
    return of_one_kind(found)


def of_one_kind(problem: Problem) -> Problem:
    """All chances as fractions where some are."""
    chances = [problem.link, problem.node]
    given = [group.chance[1] for group in problem.groups]
    if not any(values.dtype == object for values in chances) and not any(map(_is_fraction, given)):
        return problem
    link, node = (_fractions(_down(*chance) for chance in values.tolist()) for values in chances)
    groups = []
    for group in problem.groups:
        down = Fraction(group.chance[1])
        groups.append(replace(group, chance=(1 - down, down)))
    return replace(
        problem,
        link=np.column_stack([1 - link, link]),
        node=np.column_stack([1 - node, node]),
        groups=tuple(groups),
    )


def _down(up: Any, down: Any) -> Fraction:
    """The smaller one of both is exact."""
    return Fraction(down) if down < up else 1 - Fraction(up)


def _is_fraction(value: object) -> bool:
    return isinstance(value, Fraction)


def _fractions(values: Iterable[Any]) -> NDArray[Any]:
    """An array of fractions, which may be empty."""
    listed = list(map(Fraction, values))
    found = np.empty(len(listed), dtype=object)
    found[:] = listed
    return found


def _read_simple(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals,
    link_up: Any,
    node_up: Any,
    link_down: Any,
    node_down: Any,
) -> Problem | None:
    """Problem of a bare networkx graph with one chance for links and one for nodes, read quickly.

    None for every other, and for every mistake: the general way reads it, or says what is wrong. A
    grid of 3 x 3 is read in 11 us instead of 1.2 ms, which would be twenty times as long as its
    exact answer takes.
    """
    link, node = _one_chance(link_up, link_down), _one_chance(node_up, node_down)
    if isinstance(graph, Topology) or link is None or node is None:
        return None
    if type(graph) is not nx.Graph:
        return None
    inner: Any = graph
    nodes, near = inner._node, inner._adj
    if type(near) is not dict or not near:  # a view, or empty
        return None
    around, n = near.values(), len(near)
    for records in (nodes.values(), *map(dict.values, around)):
        if any(records) and not all(map(FIELDS.isdisjoint, records)):
            return None
    ends = chain.from_iterable(around)
    index = None if list(near) == list(range(n)) else dict(zip(near, range(n), strict=True))
    chosen = _quick_terminals(terminals, near, index)
    if chosen is None:
        return None
    near_by = [*map(len, around), *(ends if index is None else map(index.__getitem__, ends))]
    edges, links, nodes_up, transit = _arrays(
        np.fromiter(near_by, np.int64, len(near_by)), n, *link, *node
    )
    if n + 2 * len(edges) < len(near_by):  # there is a loop
        return None
    return Problem(edges=edges, link=links, node=nodes_up, terminals=chosen, transit=transit)


@numba.njit(cache=True)
def _arrays(near_by, n, link_up, link_down, node_up, node_down):  # type: ignore[no-untyped-def]
    """Edges u < v, ascending, chances of links and nodes, and transit, from lists of neighbours.

    ``near_by`` holds the degrees of the n nodes and then their neighbours. Going through the nodes
    in order finds the upper ends of every node's links in order.
    """
    place, row, found = np.empty(n, np.int64), n, 0
    for v in range(n):
        place[v] = found
        for _ in range(near_by[v]):
            found += near_by[row] > v
            row += 1
    edges, links = np.empty((found, 2), np.int64), np.empty((found, 2))
    links[:, 0], links[:, 1] = link_up, link_down
    nodes = np.empty((n, 2))
    nodes[:, 0], nodes[:, 1] = node_up, node_down
    row = n
    for u in range(n):
        for _ in range(near_by[u]):
            v = near_by[row]
            row += 1
            if v < u:
                edges[place[v], 0], edges[place[v], 1] = v, u
                place[v] += 1
    return edges, links, nodes, np.ones(n, np.bool_)


#: Attributes with which a node or an edge of a networkx graph means more: see `as_topology`.
FIELDS: Final = frozenset(
    (
        *("kind", "device_class", "endpoint", "transit", "tier", "pod", "rail", "shared_risk"),
        *("multiplicity", "capacity", "latency"),
    )
)


def _one_chance(up: Any, down: Any) -> tuple[float, float] | None:
    """(up, down) of one number by which a part can be up; None of anything else."""
    given = up if down is None else down
    if not isinstance(given, float) and type(given) is not int:
        return None
    if down is None:
        return (float(up), float(1.0 - up)) if 0.0 < up <= 1.0 else None
    plain = isinstance(up, float) and up == 1.0 and 0.0 <= down < 1.0
    return (float(1.0 - down), float(down)) if plain else None


def _quick_terminals(
    terminals: Any, nodes: Mapping[Hashable, Any], index: Mapping[Hashable, int] | None
) -> NDArray[np.int64] | None:
    """Ascending indices of the terminals; None where they are not plainly given.

    Without an ``index`` nodes are named by their own.
    """
    if isinstance(terminals, str):
        return np.arange(len(nodes)) if terminals in ("all", "nodes") else None
    if type(terminals) not in (tuple, list, range):
        return None
    if len(terminals) == len(nodes) and all(map(is_, terminals, nodes)):
        return np.arange(len(nodes))
    if not _NAMES.issuperset(map(type, terminals)):
        return None
    named = set(terminals)
    if not 0 < len(named) == len(terminals) or not named <= nodes.keys():
        return None
    return np.array(
        sorted(named if index is None else map(index.__getitem__, named)), dtype=np.int64
    )


_NAMES: Final = frozenset((int, str, tuple))  # types of labels


def mute_terminals(problem: Problem) -> list[int]:
    """Terminals that forward nothing and have several links, where terminals are three or more."""
    if len(problem.terminals) <= 2 or 0 not in problem.transit.tobytes():  # all forward
        return []
    links = np.bincount(problem.edges.ravel(), minlength=len(problem.node))
    return [v for v in problem.terminals.tolist() if not problem.transit[v] and links[v] > 1]


def require_relays(problem: Problem) -> None:
    """Refuse what plain connectivity does not answer: see Notes of `evaluate`."""
    mute = mute_terminals(problem)
    if mute:
        raise NotExactError(
            "terminals must forward or have one link for the frontier DP when there are three or "
            "more, "
            f"got node {mute[0]} with several; evaluate brackets them pair by pair with "
            "method='bounds', and "
            "samples with 'monte_carlo'"
        )


def _terminals(topology: Topology, terminals: Terminals) -> NDArray[np.int64]:
    """Ascending indices of the nodes that have to be connected."""
    named = {
        "all": topology.hosts,
        "switches": topology.switches,
        "nodes": np.arange(topology.num_nodes),
    }
    if isinstance(terminals, str):
        chosen = named[require_choice(tuple(named), terminals=terminals)]
    else:
        require_instance((tuple, list, range, set, frozenset, np.ndarray), terminals=terminals)
        chosen = np.array(
            [_index("terminals", topology, label) for label in terminals], dtype=np.int64
        )
    if chosen.size == 0 or np.unique(chosen).size < chosen.size:
        raise ValueError(f"terminals must be one or more distinct nodes, got {terminals!r}")
    return np.sort(chosen)


def _index(argument: str, topology: Topology, label: Any) -> int:
    """Index of a node that the caller names in ``argument``."""
    try:
        return topology.index_of(label)
    except ValueError:
        raise ValueError(f"{argument} must name nodes of {topology!r}, got {label!r}") from None


class Parts(NamedTuple):
    """The links or the nodes of a graph: how arguments name them, and in which order they come."""

    name: str
    length: int
    row: Callable[[str, Any], int]
    column: Callable[[str, str], Any]
    given: Callable[[], list[Any]] | None = None


def nodes_of(topology: Topology) -> Parts:
    """Nodes by label."""

    def row(argument: str, label: Any) -> int:
        return _index(argument, topology, label)

    return Parts("node", topology.num_nodes, row, _attribute(topology.node_attributes))


def links_of(topology: Topology, graph: Topology | nx.Graph[Any]) -> Parts:
    """Joined pairs of nodes by their two labels."""
    place = {pair: i for i, pair in enumerate(map(tuple, topology.edges.tolist()))}

    def row(argument: str, ends: Any) -> int:
        if not isinstance(ends, tuple) or len(ends) != 2:
            raise TypeError(f"{argument} must have pairs of nodes as keys, got {ends!r}")
        u, v = sorted(_index(argument, topology, end) for end in ends)
        if (u, v) not in place:
            raise ValueError(f"{argument} must name links of {topology!r}, got {ends!r}")
        return place[u, v]

    given = None if isinstance(graph, Topology) else lambda: list(graph.edges())
    return Parts("link", len(place), row, _attribute(topology.edge_attributes), given)


def _attribute(attributes: Mapping[str, Any]) -> Callable[[str, str], Any]:
    """A column of the topology as probabilities."""

    def column(argument: str, name: str) -> Any:
        if name not in attributes:
            known = ", ".join(attributes) or "there is none"
            raise ValueError(
                f"{argument} must be a probability or name an attribute ({known}), got {name!r}"
            )
        return attributes[name]

    return column


def read_chances(parts: Parts, up: Any, down: Any) -> NDArray[Any]:
    """Chances [count, 2] from the one of two arguments that the caller gave."""
    if down is None:
        values = read_values(parts, f"{parts.name}_up", up, 1)
        return np.column_stack([values, 1 - values])
    if not np.isscalar(up) or up != 1.0:
        raise ValueError(
            f"{parts.name}_up must be left at 1.0 where {parts.name}_down is given, got {up!r}"
        )
    values = read_values(parts, f"{parts.name}_down", down, 0)
    return np.column_stack([1 - values, values])


def read_values(
    parts: Parts,
    argument: str,
    given: Any,
    rest: float,
    read: Callable[[str, Any], Any] | None = None,
) -> NDArray[Any]:
    """A number for every part, by default a probability; ``rest`` where a mapping says nothing."""
    read = read or _probabilities
    if isinstance(given, Mapping):
        named = {}
        for name, value in given.items():
            i = parts.row(argument, name)
            if i in named:
                raise ValueError(
                    f"{argument} must name every {parts.name} once, got {name!r} a second time"
                )
            if np.ndim(value):
                raise TypeError(f"{argument} must give one number each, got {value!r}")
            named[i] = read(argument, value)
        return _listed([named.get(i, rest) for i in range(parts.length)])
    values = read(argument, parts.column(argument, given) if isinstance(given, str) else given)
    if np.ndim(values) == 0:
        return _listed([values] * parts.length)
    if values.shape != (parts.length,):
        raise ValueError(
            f"{argument} must be one number or {parts.length}, got shape {values.shape}"
        )
    if isinstance(given, str) or parts.given is None:
        return np.asarray(values)
    order = [parts.row(argument, ends) for ends in parts.given()]
    if len(order) > parts.length:
        raise ValueError(
            f"{argument} must be a number, a mapping or a name for parallel edges, got {given!r}"
        )
    return np.asarray(values[np.argsort(order)])


def _listed(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers as an array: of fractions where some are."""
    return (
        _fractions(values) if any(map(_is_fraction, values)) else np.array(values, dtype=np.float64)
    )


def _probabilities(argument: str, given: Any) -> Any:
    """One probability, or an array of them."""
    if np.ndim(given) == 0:
        return read_number(argument, given)
    if not len(given) or (isinstance(given, np.ndarray) and given.dtype != object):
        return np.asarray(require_probability(**{argument: given})) if len(given) else np.empty(0)
    if any(map(_is_fraction, given)):
        return _fractions(read_number(argument, value) for value in given)
    return np.asarray(require_probability(**{argument: given}))


def read_number(argument: str, value: Any) -> Any:
    """One probability: a fraction as it is, everything else as a float."""
    if isinstance(value, Fraction):
        require_probability(**{argument: float(value)})
        return value
    if np.ndim(value):
        raise TypeError(f"{argument} must give one probability each, got {value!r}")
    return float(require_probability(**{argument: value}))
