"""Networks as tools have found them, or build them: ibnetdiscover, nvidia-smi, containerlab.

``ibnetdiscover``: blocks ``Switch 65 "S-guid" # "name"``, ``Ca`` (adapters) and ``Rt`` (routers),
each with its ports, ``[1] "H-guid"[1](guid) # "node-a mlx5_0" lid 9 4xNDR``. A cable stands in the
blocks of both ends; the switches tell all where the adapters are missing. An adapter is called by
its host and its device. A speed is lanes times the nominal rate of one.

``nvidia-smi topo -m``: a matrix of GPUs and adapters, whose entries say what two have in common:
``NV4`` (four NVLinks), ``PIX``, ``PXB``, ``PHB``, ``NODE`` or ``SYS``.

containerlab: ``topology`` with ``nodes``, which inherit from ``groups``, ``kinds`` and
``defaults``, and ``links``, whose ends are ``node:interface`` or ``{node, interface}``.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise, takewhile
from math import inf
from pathlib import Path
from typing import Any, Final

import networkx as nx

from relparallel._checks import require_instance, require_real
from relparallel.hardware import accelerator as named_accelerator
from relparallel.topology.fabric import Topology
from relparallel.topology.formats import _text
from relparallel.topology.formats.graphs import layered, topology_of
from relparallel.topology.parts import LINK_CAPACITY
from relparallel.units import GB, GBIT

_SPEEDS: Final = "SDR 2.5 DDR 5 QDR 10 FDR10 10 FDR 14 EDR 25 HDR 50 NDR 100 XDR 200"
_LANES: Final = {word: float(gbit) for word, gbit in re.findall(r"(\w+) ([\d.]+)", _SPEEDS)}
_BLOCK: Final = re.compile(r'\s*(?:Switch|Ca|Rt)\s+\d+\s+"([SHR]-[^"]+)"(?:[^"#]*#\s*"([^"]*)")?')
_PORT: Final = re.compile(  # number, GUID and port of the other end, its name, lanes, rate of one
    r'\s*\[(\d+)\](?:\[ext \d+\])?(?:\([^)]*\))?\s+"([SHR]-[^"]+)"\[(\d+)\]'
    r'[^#]*(?:[^"]*"([^"]*)")?(?:.*?\b(\d+)(?i:x ?([A-Z]+\d*)))?'
)
_DEVICE: Final = r"^\S+\s+(HCA-\d+|\w+_\w+|(?:ib|roce|rdma|opa)\w*)$"
_COMMON: Final = {  # from the nearest on
    "PIX": "PCIe switch",
    "PXB": "PCIe bridges",
    "PHB": "host bridge",
    "NODE": "NUMA node",
    "SYS": "sockets",
}
_NVLINK: Final = 25 * GB  # of generations 2 to 4, one way
_NVLINKS: Final = 18  # of a GPU, at most
_KINDS: Final = ("host", "leaf", "spine", "core")
_ROLE: Final = (
    r"(?P<host>\w*(host|server|srv|client)|h)"
    r"|\w*(leaf|spine)|core|tor|agg|switch|sw|router|border"
)
_PLAIN: Final = ("linux", "host", "ext-container", "k8s-kind", "generic_vm")
_ROUTING: Final = r"frr|quagga|bird|gobgp|vyos|sonic|cumulus|openvswitch"
_OUTSIDE: Final = {"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"}

Pair = tuple[str, str]  # of devices, or of a GUID and the number of its port


def read_ibnetdiscover(path: str | os.PathLike[str], *, devices: str | None = None) -> Topology:
    """Hosts, switches and every cable of a scan, or of the adapters whose device matches."""
    file = _text.require_path(path=path)
    said, cables, bare = _scan(file)
    if not cables:
        raise ValueError(f"{file}: no cable joins what it lists; scan from a host of the fabric")
    inside = {guid for guid, name in said.items() if name.endswith("Aggregation Node")}  # SHARP
    device = {g: "".join(re.findall(_DEVICE, name)) for g, name in said.items() if g[0] == "H"}
    other = device.keys() - _chosen(device, "some of", devices=devices)
    alike = Counter(said.values())  # a name of the maker and localhost name no host
    label = {
        g: f"{name} ({g})" if alike[name] > 1 else name.removesuffix(device.get(g, "")).rstrip()
        for g, name in said.items()
        if g not in inside | other
    }
    hosts = [name for guid, name in label.items() if guid in device]
    graph: Any = nx.MultiGraph()
    graph.add_nodes_from([*hosts, *label.values()])
    bundles: dict[Pair, list[float]] = defaultdict(list)
    for ((a, _), (b, _)), rate in cables.items():
        if {a, b} <= label.keys():
            low, high = sorted((label[a], label[b]))
            bundles[low, high].append(400 if rate == inf else rate)
    speeds = Counter(rate for rates in bundles.values() for rate in rates)
    notes = [
        f"cables by Gbit/s: {', '.join(f'{many} of {rate:g}' for rate, many in speeds.items())}",
        f"{len(hosts)} adapters are of {len(set(hosts))} hosts, by their names",
    ]
    kinds = sorted({device[guid] for guid in label if device.get(guid)})
    if len(kinds) > 1:
        told = f"devices of adapters: {', '.join(kinds):.80}"
        notes.append(f"{told}; devices= of topology.read takes a pattern, to leave storage out")
    for (a, b), rates in bundles.items():
        graph.add_edges_from([(a, b)] * len(rates), capacity=sum(rates) / len(rates) * GBIT)
        if len(set(rates)) > 1:
            notes.append(f"cables between {a} and {b} differ in speed: each has their mean")
    counted = {
        "of them share a name: each is taken for a host": sum(one.endswith(")") for one in hosts),
        "cables say no speed: 400 Gbit/s is taken": [*cables.values()].count(inf),
        "ports without a cable are left out": bare,
        "aggregation nodes inside switches are left out": len(inside),
        "adapters of other devices are left out": len(other - inside),
    }
    notes += [f"{many} {what}" for what, many in counted.items() if many]
    return layered(file, graph, hosts, _KINDS, "ibnetdiscover", notes)


def _scan(file: Path) -> tuple[dict[str, str], dict[tuple[Pair, ...], float], int]:
    """Name of every GUID, speed [Gbit/s] of every cable, infinite if unsaid, ports without one."""
    text = re.sub(r'"([SHR])-0x', r'"\1-', _text.decoded(file))
    # what stands on the front of a switch
    text = re.sub(r'"MF0;([^:"]+):[^/"]+/U1"', r'"\1"', text)
    own, bare = "", 0
    names: dict[str, str] = {}
    ends: dict[Pair, Pair] = {}
    cables: dict[tuple[Pair, ...], float] = {}
    for line, row in enumerate(text.splitlines(), 1):
        if head := _BLOCK.match(row):
            own = head[1]
            names[own] = head[2] or own
        elif (port := _PORT.match(row)) and own:
            number, guid, far, name, lanes, word = port.groups()
            here, there = (own, number), (guid, far)
            for end, other in ((here, there), (there, here)):
                if ends.setdefault(end, other) != other:
                    wrong = f"port {end[1]} of {end[0]} has two cables"
                    raise _text.malformed(file, line, wrong, "read one scan at a time")
            if word and word.upper() not in _LANES:
                wrong = f"expected lanes of {', '.join(_LANES)}, got {lanes}x{word}"
                raise _text.malformed(file, line, wrong, "correct the speed")
            names.setdefault(guid, name or guid)
            cable = tuple(sorted((here, there)))
            rate = int(lanes) * _LANES[word.upper()] if word else inf
            cables[cable] = min(rate, cables.get(cable, inf))
        elif stray := re.match(r'\s*\[\d+\](.*"[SHR]-)?', row):
            bare += 1
            if stray[1]:
                wrong = f"expected a port of the Switch or Ca before it, got {row.strip()!r:.80}"
                raise _text.malformed(file, line, wrong, "correct it")
    return names, cables, bare


def read_nvidia_smi(
    path: str | os.PathLike[str],
    *,
    accelerator: str | None = None,
    link_bandwidth: float | None = None,
) -> Topology:
    """Inside of a node from ``nvidia-smi topo -m``: GPUs, adapters, NVLinks and what PCIe joins."""
    file = _text.require_path(path=path)
    near, numa, called = _matrix(file)
    gpus = [name for name in called if name.startswith("GPU")]
    nvlinks = _nvlinks(near, gpus)
    most = max(sum(many for *ends, many in nvlinks if gpu in ends) for gpu in gpus)
    notes = [f"{sum(many for *_, many in nvlinks)} NVLinks, at most {most} of a GPU"]
    hubs = dict.fromkeys(hub for _, hub, _ in nvlinks if hub not in called)
    notes += ["one node stands for all NVSwitches, which the file does not count"] * bool(hubs)
    speed, lane = _NVLINK, LINK_CAPACITY
    if link_bandwidth is not None:
        speed = require_real(link_bandwidth=link_bandwidth, above=0)
    if accelerator is not None:
        if link_bandwidth is not None:
            raise ValueError(f"link_bandwidth must be None with accelerator, got {link_bandwidth}")
        device = named_accelerator(accelerator)
        speed, lane = device.node_link / max(most, 1), device.host_link or lane
    else:
        told = f"an NVLink {speed / GB:g} GB/s, " if nvlinks and link_bandwidth is None else ""
        notes.append(f"one way {told}PCIe {lane / GB:g} GB/s are taken: accelerator= says them")
    graph: Any = nx.MultiGraph()
    graph.add_nodes_from(called, kind="nic", endpoint=False)
    graph.add_nodes_from(gpus, kind="gpu", tier=0, endpoint=True, transit=False)
    graph.add_nodes_from(hubs, kind="nvswitch", endpoint=False)
    for a, b, many in nvlinks:
        graph.add_edges_from([(a, b)] * many, capacity=speed)
    for kind, joint, below in _hubs([*called], near, numa):
        graph.add_node(joint, kind=kind, endpoint=False)
        graph.add_edges_from(((low, joint) for low in below), capacity=lane)
    return topology_of(file, nx.relabel_nodes(graph, called), False, notes, "nvidia-smi")


def _nvlinks(near: Mapping[Pair, str], gpus: list[str]) -> list[tuple[str, str, int]]:
    """Ends and number of NVLinks: between GPUs, or of a GPU and its NVSwitches."""
    links: Any = nx.Graph()
    links.add_nodes_from(gpus)
    links.add_weighted_edges_from((*pair, int(w[2:])) for pair, w in near.items() if w[:2] == "NV")
    found: list[tuple[str, str, int]] = []
    for number, some in enumerate(nx.connected_components(links)):
        if max(many for _, many in links.degree(some, weight="weight")) > _NVLINKS:
            # more than a GPU has: to NVSwitches, where the matrix gives every pair all of them
            for gpu in some:
                most = max(many for *_, many in links.edges(gpu, data="weight"))
                found.append((gpu, f"nvswitch {number}", most))
        else:
            found += links.edges(some, data="weight")
    return found


def _hubs(
    names: list[str], near: Mapping[Pair, str], numa: Mapping[str, str]
) -> Iterator[tuple[str, str, list[str]]]:
    """Kind, name and what hangs at every part that joins several devices, from the lowest on."""
    top = {name: name for name in names}
    joined: Any = nx.Graph()
    joined.add_nodes_from(names)
    for word, kind in _COMMON.items():
        joined.add_edges_from(pair for pair, cell in near.items() if cell == word)
        if word == "NODE":  # NVLinks hide what else two GPUs have in common
            joined.add_edges_from(p for p in combinations(numa, 2) if numa[p[0]] == numa[p[1]])
        joined.add_edges_from(pairwise(names) if word == "SYS" else ())
        for number, some in enumerate(nx.connected_components(joined)):
            below = list(dict.fromkeys(top[name] for name in names if name in some))
            if len(below) > 1:
                yield kind, f"{kind} {number}", below
                top.update(dict.fromkeys(some, f"{kind} {number}"))


def _matrix(file: Path) -> tuple[dict[Pair, str], dict[str, str], dict[str, str]]:
    """What two devices have in common, the NUMA node of GPUs, and the name of every device."""
    text = re.sub(r"\x1b?\[[\d;]*m", "", _text.decoded(file)).replace("SOC", "SYS")
    names: list[str] = []
    found: dict[Pair, str] = {}
    numa: dict[str, str] = {}
    for line, words in enumerate(map(str.split, text.splitlines()), 1):
        own = "".join(words[:1])
        if not names and re.fullmatch(r"GPU\d+", own) and words[1:2] != ["X"]:
            names = list(takewhile(lambda word: word not in ("CPU", "NUMA", "GPU"), words))
        elif own in names and (own, own) not in found:
            for name, cell in zip(names, [*words[1:], *[""] * len(names)], strict=False):
                allowed = "X" if name == own else rf"NV\d+|{'|'.join(_COMMON)}"
                if not re.fullmatch(allowed, cell) or found.get((name, own), cell) != cell:
                    wanted = (
                        "X" if name == own else f"the same as above, NV4 or {', '.join(_COMMON)}"
                    )
                    wrong = f"expected {wanted} between {own} and {name}, got {cell!r}"
                    raise _text.malformed(file, line, wrong, "paste the matrix as it was printed")
                found[own, name] = cell
            if (node := "".join(words[len(names) + 2 : len(names) + 3])).isdigit():
                numa[own] = node
    for name in names or ["GPU0"]:
        if name.startswith("GPU") and (name, name) not in found:
            raise ValueError(f"{file}: no row of {name}; write nvidia-smi topo -m to the file")
    legend = dict(re.findall(r"(?m)^\s*(NIC\d+): *(\S+)", text))
    return found, numa, {name: legend.get(name, name) for name in names}


def read_containerlab(path: str | os.PathLike[str], *, hosts: str | None = None) -> Topology:
    """Nodes and links of a lab; hosts are those whose names match, else told by group, name, kind."""
    file = _text.require_path(path=path)
    lab = _fields(_fields(_text.loaded(file)).get("topology"))
    nodes = {str(name): _fields(node) for name, node in _fields(lab.get("nodes")).items()}
    links = lab.get("links") or []
    if not nodes or not isinstance(links, list):
        raise ValueError(f"{file}: expected topology with nodes and links, got {lab!r:.80}")
    found = _chosen({name: name for name in nodes}, "names of nodes,", hosts=hosts)
    if hosts is None:
        found = [name for name in nodes if _is_host(name, nodes[name], lab)]
    graph: Any = nx.MultiGraph()
    graph.add_nodes_from([*found, *nodes])
    taken, outside = set[str](), 0
    for place, link in enumerate(links, 1):
        said = _fields(link)
        ends = [
            f"{end.get('node')}:{end.get('interface')}" if isinstance(end, Mapping) else str(end)
            for end in said.get("endpoints") or ()
        ]
        names = [end.partition(":")[0] for end in ends]
        if not str(said.get("type", "veth")).startswith("veth") or (_OUTSIDE - {*nodes}) & {*names}:
            outside += 1
            continue
        wrong = [f"{name!r} is no node" for name in names if name not in nodes]
        wrong += [f"{end} has a cable already" for end in ends if ":" in end and end in taken]
        if wrong or len(names) != 2:
            wrong.append(f"expected two ends, got {link!r:.80}")
            raise ValueError(f"{file}, link {place}: {wrong[0]}; correct the link")
        taken.update(ends)
        graph.add_edge(*names)
    told = "as asked" if hosts else "by group, name and kind"
    notes = [f"hosts {told}: {', '.join(found) or 'none':.80}; hosts= takes a pattern of names"]
    notes += [f"{outside} links out of the lab are left out"] if outside else []
    return layered(file, graph, found, _KINDS, "containerlab", notes)


def _chosen(known: Mapping[str, str], what: str, **named: str | None) -> list[str]:
    """Of whom the name matches the regular expression of an argument; all where it is None."""
    ((name, value),) = named.items()
    if value is None:
        return list(known)
    try:
        pattern = re.compile(require_instance(str, **named))
    except re.error as error:
        raise ValueError(f"{name} must be a regular expression, got {value!r} ({error})") from None
    if found := [key for key, text in known.items() if pattern.fullmatch(text)]:
        return found
    allowed = ", ".join(filter(None, known.values()))
    raise ValueError(f"{name} must match {what} {allowed:.80}, got {value!r}")


def _fields(value: Any) -> dict[str, Any]:
    """What a block of YAML says, nothing where it is none."""
    return dict(value) if isinstance(value, Mapping) else {}


def _is_host(name: str, own: Mapping[str, Any], lab: Mapping[str, Any]) -> bool:
    """Whether group and name of a node, the last word first, or else its kind say so."""
    base, groups, kinds = (_fields(lab.get(key)) for key in ("defaults", "groups", "kinds"))
    group = _fields(groups.get(own.get("group", base.get("group"))))
    kind = {**base, **group, **own}.get("kind", "")
    given = {**base, **_fields(kinds.get(kind)), **group, **own}
    words = re.findall("[a-z]+", f"{name} {given.get('group', '')}".lower())
    if roles := [role for word in words if (role := re.fullmatch(_ROLE, word))]:
        return bool(roles[-1]["host"])
    return kind in _PLAIN and not re.search(_ROUTING, str(given.get("image", "")))
