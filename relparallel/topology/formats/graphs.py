"""Graphs of other tools: GML and node-link JSON as networkx writes them, networks of SNDlib in XML.

What is said of nodes and links is kept by name; ``capacity`` [bytes/s], ``latency`` [s] and
``multiplicity`` are those of the topology. Parallel links become one of that multiplicity. SNDlib
does not say the unit of its capacities, so they are kept as ``installed``; demands, costs and
modules are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from math import inf
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx

from relparallel._checks import require_flag
from relparallel.topology._arrays import require_one_part
from relparallel.topology.fabric import Topology, as_topology
from relparallel.topology.formats import _text
from relparallel.topology.formats.graphml import foreign
from relparallel.topology.parts import Design


def read_gml(path: str | os.PathLike[str], *, strict: bool = True) -> Topology:
    """Topology of a GML file; its labels are the nodes', or their ids where two are the same."""
    file, notes = _text.require_path(path=path), list[str]()
    text, label = _text.decoded(file), "label"
    for _ in range(3):
        try:
            return topology_of(file, nx.parse_gml(text, label=label), strict, notes)
        except (nx.NetworkXError, UnicodeEncodeError, RecursionError) as error:
            said = str(error)
        if "is duplicated" in said and "edge" in said and "multigraph 1" not in text:
            text = text.replace("[", "[ multigraph 1 ", 1)
        elif label == "label" and "label" in said:
            label, notes = "id", ["nodes are named by their ids: " + said]
        else:
            break
    raise ValueError(f"{file}: no GML that can be read ({said}); correct it") from None


def read_json(path: str | os.PathLike[str], *, strict: bool = True) -> Topology:
    """Topology of node-link JSON, whose links networkx calls ``edges`` or, before, ``links``."""
    file = _text.require_path(path=path)
    data = _text.loaded(file)
    keys = [name for name in ("edges", "links") if isinstance(data, dict) and data.get(name)]
    if len(keys) > 1:
        raise ValueError(f"{file}: expected edges or links, got both; leave one of them out")
    try:
        graph = nx.node_link_graph(
            {"edges": []} | data | {"multigraph": True}, edges=(*keys, "edges")[0]
        )
        known = {node["id"] for node in data["nodes"]}
    except (nx.NetworkXError, KeyError, TypeError, AttributeError, ValueError) as error:
        wrong = f"expected nodes with ids, and edges or links with source and target ({error!r})"
        raise ValueError(f"{file}: {wrong}; write it by networkx.node_link_data") from None
    if strange := [node for node in graph if node not in known]:
        raise ValueError(f"{file}: a link ends at {strange[0]!r}, which is no node; correct the id")
    if len(known) < len(data["nodes"]):
        raise ValueError(f"{file}: an id stands twice; correct the id")
    return topology_of(file, graph, strict, [])


def read_sndlib(path: str | os.PathLike[str], *, strict: bool = True) -> Topology:
    """Topology of an SNDlib network, each node with its place, each link with what is installed."""
    file = _text.require_path(path=path)
    try:
        root = ElementTree.fromstring(_text.decoded(file))
    except ElementTree.ParseError as error:
        raise _text.malformed(
            file, error.position[0], f"no XML ({error})", "write the file again"
        ) from None
    graph: Any = nx.MultiGraph()
    try:
        for node in root.iterfind(".//{*}nodes/{*}node"):
            x, y = (float(node.findtext(f".//{{*}}{axis}", "nan")) for axis in "xy")
            graph.add_node(node.attrib["id"], x=x, y=y)
        for link in root.iterfind(".//{*}links/{*}link"):
            ends = [str(link.findtext(f"{{*}}{end}")).strip() for end in ("source", "target")]
            if not all(end in graph for end in ends):
                raise KeyError(f"link {link.get('id')!r} joins {ends}")
            installed = float(link.findtext("{*}preInstalledModule/{*}capacity", "0"))
            if not 0 <= installed < inf:
                raise ValueError(f"link {link.get('id')!r} has a capacity of {installed}")
            graph.add_edge(*ends, installed=installed, id=link.attrib["id"])
    except (KeyError, ValueError) as error:
        raise ValueError(f"{file}: no network of SNDlib ({error}); correct it") from None
    demands = len(root.findall(".//{*}demand"))
    return topology_of(file, graph, strict, [f"{demands} demands are left out"] if demands else [])


def topology_of(
    file: Path, graph: Any, strict: bool, notes: list[str], design: str = "graph"
) -> Topology:
    """Topology of a graph as read, with what was made of it."""
    cables = foreign(graph, require_flag(strict=strict))
    loops = nx.number_of_selfloops(graph)
    if loops and not strict:
        notes.append(f"{loops} cables from a node to itself are left out")
    if parallel := cables.number_of_edges() - nx.Graph(cables).number_of_edges():
        notes.append(f"{parallel} parallel cables are kept as multiplicity")
    if not nx.get_edge_attributes(cables, "capacity"):
        notes.append("no capacity is given: every cable is taken to carry 400 Gbit/s")
    cables.graph = {"notes": tuple(notes), "design": Design(name=design)}
    cables.graph |= {"file": graph.graph} if graph.graph else {}
    try:
        found = as_topology(cables, name=str(file))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file}: {error}; correct it in the file") from None
    if strict:
        require_one_part(str(file), found.edges, found.num_nodes)
    return found


def layered(
    file: Path,
    graph: Any,
    hosts: Iterable[str],
    kinds: Sequence[str],
    design: str,
    notes: list[str],
) -> Topology:
    """Topology of hosts under switches, whose tier and kind are their distance from the hosts."""
    layers = nx.bfs_layers(graph, dict.fromkeys(hosts))
    tier = {node: rank for rank, layer in enumerate(layers) for node in layer}
    made: Any = nx.MultiGraph()
    for node in sorted(graph, key=lambda one: tier.get(one, len(graph))):
        rank = tier.get(node, -1)
        kind = ["switch", *kinds, f"tier {rank}"][min(rank, len(kinds)) + 1]
        made.add_node(node, kind=kind, tier=rank, endpoint=not rank, transit=bool(rank))
        made.nodes[node]["device_class"] = "switch" if rank else kind
    made.add_edges_from(graph.edges(data=True))
    if lost := [node for node in made if node not in tier]:
        notes = [*notes, f"no host reaches {len(lost)} switches, such as {lost[0]}"]
    return topology_of(file, made, False, notes, design)
