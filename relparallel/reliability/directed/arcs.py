"""A question about a directed network as arrays: arcs, nodes, chances, and who must reach whom."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from relparallel._checks import require_choice, require_instance, require_probability
from relparallel.reliability.chances import Chance, parallel
from relparallel.reliability.problem import LinkChance, NodeChance, Problem, Terminals
from relparallel.reliability.questions.groups import members_of
from relparallel.reliability.questions.mixture import Group

if TYPE_CHECKING:
    import networkx as nx

Connection = Literal["reach", "mutual"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Arcs(Problem):
    """Which arcs and nodes fail with which chance; rows of ``edges`` are (tail, head); all nodes forward."""

    source: int
    mutual: bool

    @property
    def targets(self) -> list[int]:
        """Terminals but the source."""
        return [v for v in self.terminals.tolist() if v != self.source]


def read_arcs(
    graph: nx.DiGraph[Any],
    terminals: Terminals,
    link_up: LinkChance,
    node_up: NodeChance,
    link_down: LinkChance | None,
    node_down: NodeChance | None,
    connection: Connection,
    *,
    fractions: bool = False,
) -> Arcs:
    """Check the arguments of `evaluate` for a directed graph; parallel arcs become one, loops none.

    Chances become ``fractions``, in arrays of objects, if that is asked for.
    """
    import networkx as nx

    require_choice(("reach", "mutual"), connection=connection)
    if not isinstance(graph, nx.Graph) or not graph.is_directed():
        raise TypeError(f"graph must be a directed networkx graph, got {graph!r}")
    index = {label: v for v, label in enumerate(graph)}
    chosen = _terminals(index, terminals, connection)
    kind = Fraction if fractions else float
    records = [data for *_, data in graph.edges(data=True)]
    links = _values("link", link_up, link_down, list(graph.edges()), records, kind)
    nodes = _values(
        "node", node_up, node_down, list(index), list(dict(graph.nodes(data=True)).values()), kind
    )
    arcs: dict[tuple[int, int], Chance] = {}
    for (u, v), chance in zip(graph.edges(), links, strict=True):
        if u != v:
            arc = index[u], index[v]
            arcs[arc] = parallel(arcs[arc], chance) if arc in arcs else chance
    return Arcs(
        edges=np.array(list(arcs), dtype=np.int64).reshape(-1, 2),
        link=np.array(list(arcs.values()), dtype=object if fractions else float).reshape(-1, 2),
        node=np.array(nodes, dtype=object if fractions else float).reshape(-1, 2),
        terminals=np.sort(chosen),
        transit=np.ones(len(index), dtype=np.bool_),
        source=chosen[0],
        mutual=connection == "mutual",
    )


def _terminals(index: Mapping[Hashable, int], terminals: Terminals, connection: Connection) -> list[int]:
    """Indices of the terminals, the source first."""
    if isinstance(terminals, str):
        require_choice(("all", "nodes"), terminals=terminals)
        if connection == "reach":
            raise ValueError(f"terminals must name the source, and then the others, got {terminals!r}")
        return list(index.values())
    require_instance((tuple, list, range, np.ndarray), terminals=terminals)
    chosen = [index.get(label, -1) for label in terminals]
    if not chosen or min(chosen) < 0 or len(set(chosen)) < len(chosen):
        raise ValueError(f"terminals must be one or more distinct nodes of the graph, got {terminals!r}")
    return chosen


def _values(
    part: str,
    up: Any,
    down: Any,
    names: Sequence[Any],
    records: Sequence[Mapping[str, Any]],
    kind: type[Fraction | float],
) -> list[Chance]:
    """Chance of every part, from the one of the two arguments that the caller gave, in one kind of number."""
    if down is None:
        argument, given = f"{part}_up", up
    elif np.isscalar(up) and up == 1.0:
        argument, given = f"{part}_down", down
    else:
        raise ValueError(f"{part}_up must be left at 1.0 where {part}_down is given, got {up!r}")
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in set(names)]
        if unknown:
            what = "arcs (tail, head)" if part == "link" else "nodes"
            raise ValueError(f"{argument} must name {what} of the graph, got {unknown[0]!r}")
        values = [given.get(name, float(down is None)) for name in names]
    elif isinstance(given, str):
        if not all(given in record for record in records):
            raise ValueError(f"{argument} must name an attribute that every {part} has, got {given!r}")
        values = [record[given] for record in records]
    else:
        values = _spread(argument, given, len(names))
    checked = [kind(_checked(argument, value)) for value in values]
    return [(value, 1 - value) if down is None else (1 - value, value) for value in checked]


def _spread(argument: str, given: Any, length: int) -> list[Any]:
    """One probability for all, or one each."""
    if np.ndim(given) and np.shape(given) != (length,):
        raise ValueError(f"{argument} must be one probability or {length}, got shape {np.shape(given)}")
    return list(given) if np.ndim(given) else [_checked(argument, given)] * length


def _checked(argument: str, value: Any) -> Any:
    """A fraction as it is, everything else as a float; a probability."""
    if isinstance(value, Fraction):
        require_probability(**{argument: float(value)})
        return value
    if np.ndim(value):
        raise TypeError(f"{argument} must give one probability each, got {value!r}")
    return float(require_probability(**{argument: value}))


def read_arc_groups(graph: nx.DiGraph[Any], problem: Arcs, groups: Any) -> list[Group]:
    """Check the argument ``groups`` of `evaluate` for a directed graph: arcs by (tail, head), and nodes."""
    if not isinstance(groups, list | tuple):
        raise TypeError(f"groups must be a list of (members, probability) with directed, got {groups!r}")
    index = {label: v for v, label in enumerate(graph)}
    rows = {arc: row for row, arc in enumerate(map(tuple, problem.edges.tolist()))}
    kind, found = Fraction if problem.link.dtype == object else float, []
    for group in groups:
        nodes, links = members_of(group, index, rows)
        down = kind(_checked("groups", group[1]))
        found.append(Group(frozenset(nodes), frozenset(links), (1 - down, down)))
    return [group for group in found if group.chance[1] > 0]
