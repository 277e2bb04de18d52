"""Directed networks: the first terminal reaches the others, or all reach one another."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from relparallel._checks import require_choice, require_instance, require_probability
from relparallel.reliability.chances import CERTAIN, Chance, parallel, series
from relparallel.reliability.problem import LinkChance, NodeChance, Terminals
from relparallel.reliability.questions.reachability import sweep_arcs
from relparallel.reliability.result import Reliability, exactly

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Directed", "solve_directed"]

Directed = Literal["reach", "mutual"]
Arcs = dict[tuple[int, int], Chance]

_STATES: Final = 2**18  # largest layer of the programme in plain Python


def solve_directed(
    graph: nx.DiGraph[Any],
    terminals: Terminals,
    link_up: LinkChance = 1.0,
    node_up: NodeChance = 1.0,
    *,
    link_down: LinkChance | None = None,
    node_down: NodeChance | None = None,
    connection: Directed = "reach",
    max_states: int = _STATES,
) -> Reliability:
    """Probability that the terminals of a directed network are up and connected.

    Parameters
    ----------
    graph : networkx.DiGraph or networkx.MultiDiGraph
        The network; every node forwards.
    terminals : "all", "nodes" or sequence of labels
        With "reach" the first is the source.
    link_up, node_up, link_down, node_down
        As for `evaluate`, arcs by (tail, head) or in the order of ``graph.edges``.
    connection : {"reach", "mutual"}
        Whether the source must reach the others, or every terminal every other.
    max_states : int, optional
        Largest layer of the programme.

    Returns
    -------
    Reliability
        Exact.

    Raises
    ------
    NotExactError
        If a layer holds more states.
    TypeError, ValueError
        If an argument is not as stated.

    Notes
    -----
    Arcs off every way between terminals go, nodes with one way in and one way out become arcs; then a
    frontier programme keeps which live nodes reach which (at most 2^(w^2) states, w live nodes).

    Examples
    --------
    >>> import networkx as nx
    >>> both_ways = nx.DiGraph([("s", "a"), ("a", "t"), ("s", "b"), ("b", "t"), ("a", "b"), ("b", "a")])
    >>> round(solve_directed(both_ways, ("s", "t"), 0.9).reliability, 6)
    0.97848
    """
    import networkx as nx

    require_choice(("reach", "mutual"), connection=connection)
    if not isinstance(graph, nx.Graph) or not graph.is_directed():
        raise TypeError(f"graph must be a directed networkx graph, got {graph!r}")
    index = {label: v for v, label in enumerate(graph)}
    chosen = _terminals(index, terminals, connection)
    if link_down is None:
        arcs = _arcs(graph, index, "link_up", link_up, False)
    else:
        _untouched("link", link_up)
        arcs = _arcs(graph, index, "link_down", link_down, True)
    if node_down is None:
        node = _nodes(graph, index, "node_up", node_up, False)
    else:
        _untouched("node", node_up)
        node = _nodes(graph, index, "node_down", node_down, True)
    always = series(*(node[v] for v in chosen))
    source, *targets = chosen
    if not targets:
        return exactly(*always, "exact")
    node |= dict.fromkeys(chosen, CERTAIN)
    if not _reduce(arcs, node, source, frozenset(targets), connection == "mutual"):
        return exactly(0.0, 1.0, "exact")
    found, width, visited = sweep_arcs(
        arcs, node, source, targets, connection == "mutual", min(max_states, _STATES)
    )
    return exactly(*series(always, found), "exact", width=width, states=visited)


def _untouched(part: str, up: Any) -> None:
    if not np.isscalar(up) or up != 1.0:
        raise ValueError(f"{part}_up must be left at 1.0 where {part}_down is given, got {up!r}")


def _terminals(index: Mapping[Hashable, int], terminals: Terminals, connection: Directed) -> list[int]:
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


def _arcs(
    graph: nx.DiGraph[Any], index: Mapping[Hashable, int], argument: str, given: Any, fails: bool
) -> Arcs:
    """Chance of every arc that can be up; parallel arcs are one."""
    ends = list(graph.edges())
    if isinstance(given, Mapping):
        if not all(isinstance(key, tuple) and len(key) == 2 and graph.has_edge(*key) for key in given):
            raise ValueError(f"{argument} must name arcs (tail, head) of {graph}, got {list(given)!r}")
        values = [given.get(pair, 0.0 if fails else 1.0) for pair in ends]
    elif isinstance(given, str):
        values = [_attribute(argument, data, given) for *_, data in graph.edges(data=True)]
    else:
        values = _spread(argument, given, len(ends))
    arcs: Arcs = {}
    for (u, v), value in zip(ends, values, strict=True):
        chance = _chance(argument, value, fails)
        if u == v or chance[0] == 0.0:
            continue
        arc = index[u], index[v]
        arcs[arc] = parallel(arcs[arc], chance) if arc in arcs else chance
    return arcs


def _nodes(
    graph: nx.DiGraph[Any], index: Mapping[Hashable, int], argument: str, given: Any, fails: bool
) -> dict[int, Chance]:
    """Chance of every node."""
    if isinstance(given, Mapping):
        if set(given) - set(index):
            raise ValueError(f"{argument} must name nodes of {graph}, got {list(given)!r}")
        values = [given.get(label, 0.0 if fails else 1.0) for label in index]
    elif isinstance(given, str):
        values = [_attribute(argument, graph.nodes[label], given) for label in index]
    else:
        values = _spread(argument, given, len(index))
    return {v: _chance(argument, value, fails) for v, value in enumerate(values)}


def _attribute(argument: str, data: Mapping[str, Any], name: str) -> Any:
    if name not in data:
        raise ValueError(f"{argument} must name an attribute that every part has, got {name!r}")
    return data[name]


def _spread(argument: str, given: Any, length: int) -> list[float]:
    """One probability for all, or one each."""
    values = np.asarray(require_probability(**{argument: given}) if length or np.ndim(given) == 0 else given)
    if values.ndim and values.shape != (length,):
        raise ValueError(f"{argument} must be one probability or {length}, got shape {values.shape}")
    return [float(value) for value in np.broadcast_to(values, (length,))]


def _chance(argument: str, value: Any, fails: bool) -> Chance:
    checked = require_probability(**{argument: value})
    return (1.0 - checked, checked) if fails else (checked, 1.0 - checked)


def _reduce(
    arcs: Arcs, node: Mapping[int, Chance], source: int, targets: frozenset[int], mutual: bool
) -> bool:
    """Drop and replace arcs, in place; return whether the terminals can be connected at all."""
    terminals = targets | {source}
    if not mutual:
        for arc in [(u, v) for u, v in arcs if v == source or targets == {u}]:
            del arcs[arc]
    changed = True
    while changed:
        turned = {(v, u): chance for (u, v), chance in arcs.items()}
        after, before = _reached(arcs, {source}), _reached(turned, terminals if mutual else targets)
        if not targets <= after or (mutual and not targets <= _reached(turned, {source})):
            return False
        for arc in [(u, v) for u, v in arcs if u not in after or v not in before]:
            del arcs[arc]
        inner = sorted({v for arc in arcs for v in arc} - terminals)
        changed = sum(_shortcut(arcs, node, v) for v in inner) > 0
    return True


def _shortcut(arcs: Arcs, node: Mapping[int, Chance], v: int) -> bool:
    """Simplify at a node with a single way in or out; return whether anything changed."""
    tails, heads = {a for a, b in arcs if b == v}, {b for a, b in arcs if a == v}
    useless = {(v, a) for a in tails if len(tails) == 1} | {(b, v) for b in heads if len(heads) == 1}
    found = useless & set(arcs)
    for arc in found:
        del arcs[arc]
    if found or len(tails) != 1 or len(heads) != 1:
        return bool(found)
    (a,), (b,) = tails, heads
    chance = series(arcs.pop((a, v)), node[v], arcs.pop((v, b)))
    arcs[a, b] = parallel(arcs[a, b], chance) if (a, b) in arcs else chance
    return True


def _reached(arcs: Arcs, start: Set[int]) -> set[int]:
    """All nodes that these reach."""
    heads: dict[int, list[int]] = {}
    for u, v in arcs:
        heads.setdefault(u, []).append(v)
    found, todo = set(start), list(start)
    while todo:
        for v in heads.get(todo.pop(), []):
            if v not in found:
                found.add(v)
                todo.append(v)
    return found
