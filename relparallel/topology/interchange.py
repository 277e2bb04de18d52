"""Topologies from and to networkx, without loss.

A node attribute ``kind``, ``endpoint``, ``transit``, ``tier``, ``pod``, ``rail`` or
``device_class`` and an edge attribute ``multiplicity``, ``capacity`` or ``latency`` is the field of
that name; ``shared_risk`` on either is the tuple of names of its groups. Of the graph's own
attributes, ``design`` is ``meta``; ``kinds`` and ``device_classes`` order the names. Every other
attribute is kept under its own name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance
from relparallel.topology import _arrays
from relparallel.topology._arrays import IntArray
from relparallel.topology.parts import LINK_CAPACITY, Design, SharedRisk

if TYPE_CHECKING:
    import networkx as nx

Attributes = Mapping[str, Any]

_NODE_FIELDS: Final[Attributes] = {
    "kind": "node",
    "device_class": "node",
    "endpoint": True,
    "transit": True,
    "tier": -1,
    "pod": -1,
    "rail": -1,
}
EDGE_FIELDS: Final[Attributes] = {"multiplicity": 1, "capacity": LINK_CAPACITY, "latency": 0.0}
_RISK: Final = "shared_risk"


def graph_of(t: Any) -> nx.Graph[Any]:
    """Graph with every attribute of a topology."""
    import networkx as nx

    nodes = {
        "kind": [t.kinds[code] for code in t.node_kind.tolist()],
        "device_class": [t.device_classes[code] for code in t.device_class.tolist()],
        **{
            name: getattr(t, name).tolist()
            for name in ("endpoint", "transit", "tier", "pod", "rail")
        },
        **_risk_names(t, "nodes", t.num_nodes),
        **{name: values.tolist() for name, values in t.node_attributes.items()},
    }
    cables = {
        **{name: getattr(t, name).tolist() for name in EDGE_FIELDS},
        **_risk_names(t, "edges", len(t.edges)),
        **{name: values.tolist() for name, values in t.edge_attributes.items()},
    }
    own = {"design": t.meta, "kinds": t.kinds, "device_classes": t.device_classes}
    graph: nx.Graph[Any] = nx.Graph(**{**t.graph_attributes, **own})
    graph.add_nodes_from(zip(t.labels, _records(nodes, t.num_nodes), strict=True))
    ends = ((t.labels[u], t.labels[v]) for u, v in t.edges.tolist())
    graph.add_edges_from(
        (u, v, record) for (u, v), record in zip(ends, _records(cables, len(t.edges)), strict=True)
    )
    return graph


def fields_of(name: str, graph: nx.Graph[Any]) -> dict[str, Any]:
    """Fields of the topology of a graph."""
    import networkx as nx

    if graph.is_directed():
        raise ValueError(f"{name} must be undirected, got {graph}")
    if len(graph) == 0:
        raise ValueError(f"{name} must have at least one node, got {graph}")
    loops = list(nx.selfloop_edges(graph))
    if loops:
        raise ValueError(
            f"{name} must have no self-loops, got {loops[0]}: leave them out by "
            "graph.remove_edges_from(list(nx.selfloop_edges(graph))), those of a file by "
            "strict=False"
        )
    labels = tuple(graph)
    index = {label: i for i, label in enumerate(labels)}
    nodes = [graph.nodes[label] for label in labels]
    cables = _cables(graph, index)
    pairs = np.array(list(cables), dtype=np.int64).reshape(-1, 2)
    records = list(cables.values())
    node, edge = _columns(nodes, _NODE_FIELDS), _columns(records, EDGE_FIELDS)
    whole = dict(graph.graph)
    node_kind, kinds = _codes("kind", node.pop("kind"), whole.pop("kinds", ()))
    device_class, device_classes = _codes(
        "device_class", node.pop("device_class"), whole.pop("device_classes", ())
    )
    return {
        **{name: node.pop(name) for name in _NODE_FIELDS if name in node},
        **{name: edge.pop(name) for name in EDGE_FIELDS},
        "edges": pairs,
        "node_kind": node_kind,
        "kinds": kinds,
        "device_class": device_class,
        "device_classes": device_classes,
        "labels": labels,
        "shared_risk": _risks(node.pop(_RISK, None), edge.pop(_RISK, None)),
        "node_attributes": node,
        "edge_attributes": edge,
        "meta": whole.pop("design", Design(name="graph")),
        "graph_attributes": whole,
    }


def _cables(
    graph: nx.Graph[Any], index: Mapping[Any, int]
) -> dict[tuple[int, int], dict[str, Any]]:
    """Attributes of every joined pair u < v, ascending; parallel edges become one multiplicity."""
    cables: dict[tuple[int, int], dict[str, Any]] = {}
    for a, b, given in graph.edges(data=True):
        pair = (min(index[a], index[b]), max(index[a], index[b]))
        record = {"multiplicity": 1, **given}
        if pair in cables:
            count = cables[pair].pop("multiplicity") + record.pop("multiplicity")
            if record != cables[pair]:
                raise ValueError(
                    f"parallel edges must agree in all attributes, got {record} on ({a!r}, {b!r}): "
                    "give them "
                    "the same, such as the mean of their capacities"
                )
            record["multiplicity"] = count
        cables[pair] = record
    return dict(sorted(cables.items()))


def _columns(records: Sequence[Attributes], defaults: Attributes) -> dict[str, NDArray[Any]]:
    """One array per attribute, fields first; a missing value is the field's default, else None."""
    found = dict.fromkeys([*defaults, *(name for record in records for name in record)])
    return {
        name: _arrays.column([record.get(name, defaults.get(name)) for record in records])
        for name in found
    }


def _codes(
    name: str, values: NDArray[Any], order: Sequence[str]
) -> tuple[IntArray, tuple[str, ...]]:
    """Codes and names of a text attribute: names in the given order, then as they appear."""
    texts = [*require_instance((tuple, list), **{f"{name} order": order}), *values]
    for text in texts:
        require_instance(str, **{f"node attribute {name}": text})
    position = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    return np.array([position[value] for value in values], dtype=np.int64), tuple(position)


def _records(table: Mapping[str, Sequence[Any]], length: int) -> list[dict[str, Any]]:
    """One dictionary per row, without missing values."""
    return [
        {name: table[name][i] for name in table if table[name][i] is not None}
        for i in range(length)
    ]


def _risk_names(t: Any, part: str, length: int) -> dict[str, list[tuple[str, ...] | None]]:
    """Names of the groups of every member, as one more column where there are groups."""
    names: list[tuple[str, ...]] = [()] * length
    for group in t.shared_risk:
        for member in getattr(group, part):
            names[member] += (group.name,)
    return {_RISK: [found or None for found in names]} if t.shared_risk else {}


def _risks(nodes: NDArray[Any] | None, edges: NDArray[Any] | None) -> tuple[SharedRisk, ...]:
    """Groups of shared risk from the names on their members."""
    members: dict[str, dict[str, list[int]]] = {}
    for part, column in (("nodes", nodes), ("edges", edges)):
        for i, names in enumerate(() if column is None else column):
            for name in require_instance((tuple, list, type(None)), shared_risk=names) or ():
                members.setdefault(name, {"nodes": [], "edges": []})[part].append(i)
    return tuple(
        SharedRisk(name=name, nodes=tuple(group["nodes"]), edges=tuple(group["edges"]))
        for name, group in members.items()
    )
