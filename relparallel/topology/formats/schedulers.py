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
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import networkx as nx
import numpy as np
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from relparallel.topology import _arrays
from relparallel.topology.fabric import Topology
from relparallel.topology.formats import _text
from relparallel.topology.parts import Design

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
_KEYS: Final = ("switchname", "blockname", "nodes", "switches", "linkspeed", "blocksizes")
_MOST: Final = 10**6  # names of a list


def read_slurm(path: str | os.PathLike[str]) -> Topology:
    """Nodes and switches of a ``topology.conf`` or ``topology.yaml``."""
    file = _text.require_path(path=path)
    text = _text.decoded(file)
    conf = re.search(r"(?im)^\s*(switch|block)(name|sizes)\s*=", text)
    found = list(_conf(file, text) if conf else _yaml(file))
    known: dict[str, int] = {}
    cables: list[tuple[str, str]] = []
    parents: list[tuple[str, str]] = []
    for line, kind, names, below in found:
        if not below or kind != found[0][1]:
            wrong = (
                f"switches and blocks are of two plugins, {names}"
                if below
                else f"nothing hangs at {names}"
            )
            raise _text.malformed(
                file, line, wrong, "give every SwitchName, or every BlockName, its Nodes"
            )
        for name in _hosts(file, line, names):
            if name in known:
                wrong = f"{kind} {name} stands on line {known[name]} too"
                raise _text.malformed(file, line, wrong, "name each once")
            known[name] = line
            cables += [(low, name) for low in _hosts(file, line, below.get("nodes", ""))]
            parents += [(low, name) for low in _hosts(file, line, below.get("switches", ""))]
    if bad := [pair for pair in parents if pair[0] not in known] + [
        p for p in cables if p[0] in known
    ]:
        low, high = bad[0]
        said = "is named and not described" if low not in known else "is a node and a switch"
        raise _text.malformed(file, known[high], f"{low} under {high} {said}", "correct its name")
    if not known:
        raise ValueError(
            f"{file}: no switch and no block; name a topology.conf or topology.yaml of Slurm"
        )
    return _tree(file, "slurm", list(known), [*cables, *parents], found[0][1], [])


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
    bare = sum(not layers for layers in chains.values())
    notes = (
        [f"{bare} of {len(chains)} nodes have no label of a switch and are left out"]
        if bare
        else []
    )
    pairs = [
        pair
        for node, layers in chains.items()
        for pair in zip([node, *layers], layers, strict=False)
    ]
    switches = dict.fromkeys(layer for layers in chains.values() for layer in layers)
    if not switches:
        raise ValueError(
            f"{file}: no node has a label of a switch, such as network.topology.nvidia.com/leaf"
        )
    return _tree(file, "topograph", list(switches), list(dict.fromkeys(pairs)), "switch", notes)


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
            below = {key: value for key, value in pairs if key in ("nodes", "switches")}
            yield number, names[0], fields[f"{names[0]}name"], below


def _yaml(file: Path) -> Iterator[tuple[int, str, str, dict[str, str]]]:
    """The same of a ``topology.yaml``, with the place of the entry in its list for the line."""
    data = _text.loaded(file)
    several = [
        one for one in (data if isinstance(data, list) else [data]) if isinstance(one, Mapping)
    ]
    chosen = next(
        (one for one in several if one.get("cluster_default") is True), (several or [{}])[0]
    )
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
            below = {
                ("nodes", "switches")[key != "nodes"]: str(one[key]) for key in one if key != kind
            }
            yield place, kind, str(one[kind]), below


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
    file: Path,
    design: str,
    switches: list[str],
    cables: list[tuple[str, str]],
    first: str,
    notes: list[str],
) -> Topology:
    """Topology of nodes under switches, whose tier is the distance from the nodes."""
    nodes = list(dict.fromkeys(low for low, _ in cables if low not in set(switches)))
    number = {name: place for place, name in enumerate([*nodes, *switches])}
    ends = np.array([(number[low], number[high]) for low, high in cables], dtype=np.int64)
    if not nx.is_directed_acyclic_graph(above_it := nx.DiGraph(cables)):
        circle = [low for low, _ in nx.find_cycle(above_it)]
        raise ValueError(f"{file}: {' under '.join([*circle, circle[0]])} is a circle; correct it")
    tier = _arrays.levels(ends, np.arange(len(number)) < len(nodes))
    if (tier < 0).any():
        raise ValueError(
            f"{file}: {[*number][int(tier.argmin())]} has no node below it; correct it"
        )
    order = np.argsort(tier, kind="stable")
    place = np.argsort(order)
    kinds = ["node", {"switch": "leaf"}.get(first, first), "spine", "core"]
    kinds += [f"tier {level}" for level in range(4, int(tier.max()) + 1)]
    t = Topology.of(
        edges=place[ends],
        node_kind={kinds[level]: int(n) for level, n in enumerate(np.bincount(tier))},
        transit=tier[order] > 0,
        device_class=dict.fromkeys(kinds[1:], "switch"),
        meta=Design(name=design),
    )
    above = np.bincount(ends[:, 0], minlength=len(nodes))[: len(nodes)]
    if (above > 1).any():
        told = (
            f"{(above > 1).sum()} nodes hang at several switches, such as "
            f"{nodes[int(above.argmax())]}"
        )
        notes = [*notes, f"{told}: they are joined to each of them"]
    notes.append(
        f"{file.name} says what hangs where, not how many cables there are nor how fast they are"
    )
    labels = tuple(np.array([*number], dtype=object)[order].tolist())
    return replace(t, labels=labels, graph_attributes={"notes": tuple(notes)})
