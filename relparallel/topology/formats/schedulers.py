"""Which nodes hang at which switch, as schedulers keep it: Slurm's files and topograph labels.

Slurm, ``topology.conf``: ``SwitchName=s0 Nodes=n[01-16]`` and ``SwitchName=top Switches=s[0-3]``,
or ``BlockName=b1 Nodes=n[01-18]`` and ``BlockSizes=18,36``; keys in any case, ``#`` begins a
comment, a line that ends in a backslash goes on. ``topology.yaml``: ``tree: {switches: [{switch,
nodes, children}]}`` or ``block: {block_sizes, blocks: [{block, nodes}]}``, of several the one with
``cluster_default: true``, else the first.

Topograph: nodes of Kubernetes (``kubectl get nodes -o json``, or yaml) with the labels ``tier-0``
and on of ``fabric.topograph.run`` or, in July 2026, ``network.topology.nvidia.com``; of old that
had ``leaf``, ``spine`` and ``core`` (``block`` and ``datacenter``). ``instances`` with
``network_layers``, the leaf first, are read too; its other output is ``topology.conf``. So are the
labels of clouds: AWS counts layers from the top, so that its ``network-node-layer-3`` is the leaf,
as the last of ``NetworkNodes`` of its ``describe-instance-topology``.

None of them says how many cables there are or how fast they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import networkx as nx
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from relparallel.topology.fabric import Topology
from relparallel.topology.formats import _text
from relparallel.topology.formats.graphs import layered
from relparallel.topology.parts import LINK_CAPACITY

UNMEASURED: Final = ("slurm", "topograph")
"""Designs whose cables say what hangs where, and nothing of their number and speed."""
_LABELS: Final = {  # the part that says how near a switch is to the node: a number or one of these
    r"(?:fabric\.topograph\.run|(?:[\w-]+\.)*topology\.nvidia\.com)/(?:fabric-)?tier-(\d+)": (),
    r"(?:[\w-]+\.)*topology\.nvidia\.com/(leaf|block|spine|core|datacenter)": (
        *("leaf", "block", "spine", "core", "datacenter"),
    ),
    r"topology\.k8s\.aws/network-node-layer-(\d)": tuple("987654321"),
    r"cloud\.google\.com/gce-topology-(subblock|block)": ("subblock", "block"),
    r"oci\.oraclecloud\.com/rdma\.(\w+)_id": ("local_block", "network_block", "hpc_island"),
}
_ENDS: Final = ("nodes", "switches")
_KEYS: Final = ("switchname", "blockname", "linkspeed", "blocksizes", *_ENDS)
_MOST: Final = 10**6  # names of a list


def read_slurm(path: str | os.PathLike[str]) -> Topology:
    """Nodes and switches of a ``topology.conf`` or ``topology.yaml``."""
    file = _text.require_path(path=path)
    text = _text.decoded(file)
    conf = re.search(r"(?im)^\s*(switch|block)(name|sizes)\s*=", text)
    found = list(_conf(file, text) if conf else _yaml(file))
    known: dict[str, int] = {}
    cables: dict[tuple[str, str], str] = {}  # and what the lower end is said to be
    for line, kind, names, below in found:
        hung = {low: key for key in _ENDS for low in _hosts(file, line, below.get(key, ""))}
        wrong = "" if hung else f"nothing hangs at {names}"
        if kind != found[0][1]:
            wrong = f"switches and blocks are of two plugins, {names}"
        if wrong:
            remedy = "give every SwitchName, or every BlockName, its Nodes"
            raise _text.malformed(file, line, wrong, remedy)
        for name in _hosts(file, line, names):
            if name in known:
                wrong = f"{kind} {name} stands on line {known[name]} too"
                raise _text.malformed(file, line, wrong, "name each once")
            known[name] = line
            cables |= {(low, name): key for low, key in hung.items()}
    for (low, high), key in cables.items():
        if (low in known) != (key == "switches"):
            said = "is a node and a switch" if low in known else "is named and not described"
            raise _text.malformed(
                file, known[high], f"{low} under {high} {said}", "correct its name"
            )
    if not known:
        raise ValueError(
            f"{file}: no switch and no block; name a topology.conf or topology.yaml of Slurm"
        )
    first = {"switch": "leaf"}.get(found[0][1], "block")
    return _tree(file, "slurm", list(cables), first, [])


def read_topograph(path: str | os.PathLike[str]) -> Topology:
    """Nodes and switches of the labels that topograph has written."""
    file = _text.require_path(path=path)
    data = _text.loaded(file)
    kept = data if isinstance(data, Mapping) else {"items": data}
    inner = next((kept[key] for key in ("items", "instances", "Instances") if key in kept), [data])
    chains: dict[str, list[str]] = {}
    for place, one in enumerate(inner if isinstance(inner, list) else [inner], 1):
        name, layers = _labelled(one)
        if not name or name in chains:
            wrong = f"{name} stands there twice" if name else f"no name and labels in {one!r:.80}"
            raise ValueError(f"{file}, node {place}: {wrong}; give every node once, with metadata")
        chains[name] = layers
    cables = [pair for name, layers in chains.items() for pair in pairwise([name, *layers])]
    if not cables:
        raise ValueError(
            f"{file}: no node has a label of a switch, such as network.topology.nvidia.com/leaf"
        )
    notes = []
    if bare := sum(not layers for layers in chains.values()):
        notes.append(f"{bare} of {len(chains)} nodes have no label of a switch and are left out")
    return _tree(file, "topograph", cables, "leaf", notes)


def _labelled(node: Any) -> tuple[str, list[str]]:
    """Name of a node and its switches from the nearest on; no name where it has none."""
    given = node if isinstance(node, Mapping) else {}
    for name, key, step in (("id", "network_layers", 1), ("InstanceId", "NetworkNodes", -1)):
        if isinstance(given.get(key), list):
            return str(given.get(name, "")), [str(layer) for layer in given[key][::step]]
    meta: Any = given.get("metadata")
    labels = meta.get("labels") if isinstance(meta, Mapping) else None
    if not isinstance(labels, Mapping):
        return "", []
    for pattern, words in _LABELS.items():
        found = {
            words.index(said[1]) if words else int(said[1]): str(value)
            for key, value in labels.items()
            if value and (said := re.fullmatch(pattern, str(key))) and said[1] in (words or said[1])
        }
        if found:
            break
    return str(meta.get("name", "")), [found[tier] for tier in sorted(found)]


def _conf(file: Path, text: str) -> Iterator[tuple[int, str, str, dict[str, str]]]:
    """Line, kind, names and what hangs there, of every switch or block of a ``topology.conf``."""
    lines = re.sub(r"#.*", "", text)
    # a line that goes on; the number of lines stays
    lines = re.sub(r"\\[ \t]*\n(.*)", r" \1\n", lines)
    for number, line in enumerate(lines.splitlines(), 1):
        line = re.sub(r'\s*=\s*(?:"([^"]*)")?', r"=\1", line)  # as Slurm takes it
        pairs = [
            (key.lower(), value) for key, _, value in (word.partition("=") for word in line.split())
        ]
        fields = dict(pairs)
        names = [kind for kind in ("switch", "block") if f"{kind}name" in fields]
        if (
            any(key not in _KEYS or not value for key, value in pairs)
            or len(fields) < len(pairs)
            or (fields and len(names) != 1 and list(fields) != ["blocksizes"])
        ):
            wrong = (
                "expected SwitchName or BlockName with Nodes, Switches, LinkSpeed, got "
                f"{line.strip()!r:.80}"
            )
            raise _text.malformed(file, number, wrong, "give each once, with a value")
        if names:
            yield number, names[0], fields[f"{names[0]}name"], fields


def _yaml(file: Path) -> Iterator[tuple[int, str, str, dict[str, str]]]:
    """The same of a ``topology.yaml``, with the place of the entry in its list for the line."""
    data = _text.loaded(file)
    several = [
        one for one in (data if isinstance(data, list) else [data]) if isinstance(one, Mapping)
    ]
    chosen = max(several, key=lambda one: one.get("cluster_default") is True, default={})
    for plugin, listed, kind in (("tree", "switches", "switch"), ("block", "blocks", "block")):
        inside = chosen.get(plugin)
        entries = inside.get(listed) if isinstance(inside, Mapping) else []
        for place, one in enumerate(entries if isinstance(entries, list) else [], 1):
            if (
                not isinstance(one, Mapping)
                or set(one) - {kind, "nodes", "children"}
                or kind not in one
            ):
                wrong = f"expected {kind}, nodes or children, got {one!r:.80}"
                raise _text.malformed(file, place, wrong, "correct that entry of the list")
            below = {"nodes": one.get("nodes", ""), "switches": one.get("children", "")}
            yield place, kind, str(one[kind]), {key: str(below[key]) for key in below}


def _hosts(file: Path, line: int, text: str) -> list[str]:
    """Names of a list of hosts such as ``gpu[001-064,070]``, each once."""
    wide = any(
        int(high) - int(low) >= _MOST for low, high in re.findall(r"(\d{1,18})-(\d{1,18})", text)
    )
    try:
        if wide or text == "ALL" or not re.fullmatch(r"[\w.,\[\]-]*", text):
            raise NodeSetException(f"at most {_MOST:,} names" if wide else "no list of names")
        return list(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        wrong = f"expected a list of hosts such as n[01-16,20], got {text!r:.80} ({error})"
        raise _text.malformed(file, line, wrong, "correct the list") from None


def _tree(
    file: Path, design: str, cables: list[tuple[str, str]], first: str, notes: list[str]
) -> Topology:
    """Topology of nodes under switches, from what hangs below what."""
    above: Any = nx.DiGraph()
    above.add_edges_from(cables, capacity=LINK_CAPACITY)
    if not nx.is_directed_acyclic_graph(above):
        circle = [low for low, _ in nx.find_cycle(above)]
        raise ValueError(f"{file}: {' under '.join([*circle, circle[0]])} is a circle; correct it")
    nodes = [name for name, below in above.in_degree() if not below]
    if wide := [name for name in nodes if above.out_degree(name) > 1]:
        told = f"{len(wide)} nodes hang at several switches, such as {wide[0]}"
        notes.append(f"{told}: they are joined to each of them")
    notes.append(
        f"{file.name} says what hangs where, not how many cables there are nor how fast they are"
    )
    graph, kinds = above.to_undirected(), ("node", first, "spine", "core")
    return layered(file, graph, nodes, kinds, design, notes)
