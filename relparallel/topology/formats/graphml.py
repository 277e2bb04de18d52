"""Topologies as GraphML, the XML format of graphs that most tools read, without loss.

Grammar: ``<graphml>`` holds ``<key>`` elements (name and type of an attribute) and one undirected
``<graph>`` of ``<node id>`` and ``<edge source target>``, each with ``<data>`` elements. Nodes and
edges have the attributes of `Topology.to_networkx`. A number, a truth value or a plain text is
written as it is; any other value is the text ``python:`` and its literal, such as ``python:('rack',
3)``. The ``relparallel`` attribute of the graph is a literal of the design, of the order of kinds
and device classes, of the type of the labels, and of the graph's own attributes. A file without it
comes from another tool: ids are labels, missing attributes have defaults.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Hashable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import ParseError

import networkx as nx
import numpy as np

from relparallel._checks import require_flag
from relparallel.topology._arrays import require_one_part
from relparallel.topology.fabric import Topology, as_topology
from relparallel.topology.formats import _text
from relparallel.topology.interchange import EDGE_FIELDS
from relparallel.topology.parts import Design

_OURS: Final = "relparallel"
_LITERAL: Final = "python:"


def write_graphml(topology: Topology | nx.Graph[Any], path: str | os.PathLike[str]) -> None:
    """Write a topology with every attribute as GraphML; `read_graphml` gives the same back."""
    t = as_topology(topology, name="topology")
    target = _text.require_path(path=path)
    kind, ids = _ids(list(t.labels))
    plain = nx.relabel_nodes(t.to_networkx(), dict(zip(t.labels, ids, strict=True)))
    for *owner, data in [*plain.nodes(data=True), *plain.edges(data=True)]:
        named = f"node {owner[0]}" if len(owner) == 1 else f"edge ({', '.join(owner)})"
        data.update({name: _scalar(value, f"{name} of {named}") for name, value in data.items()})
    head = {
        "design": (t.meta.name, dict(t.meta.parameters), t.meta.paper),
        "kinds": t.kinds,
        "device_classes": t.device_classes,
        "labels": kind,
        "attributes": dict(t.graph_attributes),
    }
    plain.graph = {_OURS: _literal(head, "the graph")}
    file = BytesIO()
    nx.write_graphml_xml(plain, file, prettyprint=True)
    _text.write(target, file.getvalue())


def read_graphml(path: str | os.PathLike[str], *, strict: bool = True) -> Topology:
    """Topology of a GraphML file, of this package or of another tool."""
    require_flag(strict=strict)
    file = _text.require_path(path=path)
    try:
        graph = nx.read_graphml(file, node_type=str)
    except ParseError as error:
        raise _text.malformed(
            file, error.position[0], f"no XML ({error})", "write the file again"
        ) from None
    except (
        nx.NetworkXError,
        AttributeError,
        KeyError,
        StopIteration,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(
            f"{file}: no GraphML that can be read ({error}); write the file again"
        ) from None
    for default in ("node_default", "edge_default"):
        graph.graph.pop(default, None)
    try:
        found = _decoded(graph, file, strict)
    except (SyntaxError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file}: {error}; correct the attribute in the file") from None
    if strict:
        require_one_part(str(file), found.edges, found.num_nodes)
    return found


def _decoded(graph: Any, file: Path, strict: bool) -> Topology:
    """Topology of the graph as read: literals evaluated, labels and graph attributes restored."""
    ours = graph.graph.pop(_OURS, None)
    for data in [*(d for _, d in graph.nodes(data=True)), *(d for *_, d in graph.edges(data=True))]:
        if ours is None:
            data.pop("id", None)  # the tool's own name of an edge
        for name, value in data.items():
            data[name] = _value(value)
    if ours is None:
        return as_topology(foreign(graph, strict), name=str(file))
    head = _value(ours)
    if head["labels"] != "str":
        graph = nx.relabel_nodes(graph, {name: ast.literal_eval(name) for name in graph})
    name, parameters, paper = head["design"]
    design = Design(name=name, parameters=parameters, paper=paper)
    graph.graph.update(head["attributes"])
    graph.graph.update(design=design, kinds=head["kinds"], device_classes=head["device_classes"])
    return as_topology(graph, name=str(file))


def foreign(graph: Any, strict: bool) -> nx.MultiGraph[Any]:
    """Cables of another tool's graph: opposite arcs are one, those in the same direction parallel.

    An attribute in which parallel cables differ becomes the tuple of its values. Where not
    ``strict``, cables from a node to itself are left out.
    """
    made: Any = (nx.MultiDiGraph if graph.is_directed() else nx.MultiGraph)(**graph.graph)
    made.add_nodes_from(graph.nodes(data=True))
    made.add_edges_from(graph.edges(data=True))  # numbered from 0 in each direction
    cables: nx.MultiGraph[Any] = made.to_undirected()
    if not strict:
        cables.remove_edges_from([(u, v) for u, v in cables.edges() if u == v])
    for u, v in {(u, v) for u, v, key in cables.edges(keys=True) if key}:
        parallel = list(cables[u][v].values())
        for name in set().union(*parallel) - EDGE_FIELDS.keys():
            said = tuple(cable.get(name) for cable in parallel)
            for cable in parallel:
                cable[name] = said[0] if len(set(said)) == 1 else said
    return cables


def _ids(labels: list[Hashable]) -> tuple[str, list[str]]:
    """Ids of all nodes: the labels where all are plain texts, their literals otherwise."""
    texts = [label for label in labels if isinstance(label, str) and _is_plain(label)]
    if len(texts) == len(labels):
        return "str", texts
    return "literal", [
        _literal(label, f"label {label!r}").removeprefix(_LITERAL) for label in labels
    ]


def _scalar(value: Any, owner: str) -> bool | int | float | str:
    """The value as GraphML can hold it."""
    bare = _bare(value)
    if isinstance(bare, bool | int | float) or (isinstance(bare, str) and _is_plain(bare)):
        return bare
    return _literal(bare, owner)


def _is_plain(text: str) -> bool:
    """Whether XML keeps the text as it is, and it is not read as a literal."""
    return text.isprintable() and text.strip() == text != "" and not text.startswith(_LITERAL)


def _literal(value: Any, owner: str) -> str:
    """Literal of the value, proved to give the value back."""
    text = repr(_bare(value))
    try:
        same = ast.literal_eval(text) == _bare(value)
    except (ValueError, SyntaxError):
        same = False
    if not same:
        raise ValueError(
            f"{owner} must be made of numbers, texts, tuples, lists, dicts and sets, got {value!r}"
        )
    return _LITERAL + text


def _bare(value: Any) -> Any:
    """The value with numpy numbers as Python numbers, in containers too."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {_bare(key): _bare(inner) for key, inner in value.items()}
    return type(value)(map(_bare, value)) if type(value) in (tuple, list, set) else value


def _value(value: Any) -> Any:
    """Value of an attribute as read."""
    literal = isinstance(value, str) and value.startswith(_LITERAL)
    return ast.literal_eval(value.removeprefix(_LITERAL)) if literal else value
