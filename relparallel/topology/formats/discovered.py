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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, pairwise, takewhile
from pathlib import Path
from typing import Any, Final

import networkx as nx

from relparallel._checks import require_instance, require_real
from relparallel.hardware import accelerator as named_accelerator
from relparallel.topology.fabric import Topology
from relparallel.topology.formats import _text
from relparallel.topology.formats.graphs import topology_of
from relparallel.topology.parts import LINK_CAPACITY, Design
from relparallel.units import GB, GBIT

_SPEEDS: Final = "SDR 2.5 DDR 5 QDR 10 FDR10 10 FDR 14 EDR 25 HDR 50 NDR 100 XDR 200"
_LANES: Final = {word: float(gbit) for word, gbit in re.findall(r"(\w+) ([\d.]+)", _SPEEDS)}
_BLOCK: Final = re.compile(r'\s*(?:Switch|Ca|Rt)\s+\d+\s+"([SHR]-[^"]+)"(?:[^"#]*#\s*"([^"]*)")?')
_PORT: Final = re.compile(
    r'\s*\[(\d+)\](?:\[ext \d+\])?(?:\([^)]*\))?\s+"([SHR]-[^"]+)"\[(\d+)\][^#]*(.*)'
)
_DEVICE: Final = r"H(\S+)\s+(HCA-\d+|\w+_\w+|(?:ib|roce|rdma|opa)\w*)"
_COMMON: Final = {  # from the nearest on
    "PIX": "PCIe switch",
    "PXB": "PCIe bridges",
    "PHB": "host bridge",
    "NODE": "NUMA node",
    "SYS": "sockets",
}
_NVLINK: Final = 25 * GB  # of generations 2 to 4, one way
_NVLINKS: Final = 18  # of a GPU, at most
_HOSTS: Final = ("host", "server", "srv", "client", "h")
_SWITCHES: Final = ("leaf", "spine", "core", "tor", "agg", "switch", "sw", "router", "border")
_PLAIN: Final = ("linux", "host", "ext-container", "k8s-kind", "generic_vm")
_ROUTING: Final = r"frr|quagga|bird|gobgp|vyos|sonic|cumulus|openvswitch"
_OUTSIDE: Final = ("host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy")

Pair = tuple[str, str]  # of devices, or of a GUID and the number of its port


def read_ibnetdiscover(path: str | os.PathLike[str], *, devices: str | None = None) -> Topology:
    """Hosts, switches and every cable of a scan, or of the adapters whose device matches."""
    file = _text.require_path(path=path)
    said, cables, bare = _scan(file)
    if not cables:
        raise ValueError(f"{file}: no cable joins what it lists; scan from a host of the fabric")
    called, device = _called(said)
    inside = {guid for guid, name in said.items() if name.endswith("Aggregation Node")}  # SHARP
    chosen = _pattern(devices=devices)
    other = {g for g in said if g[0] == "H" and chosen and not chosen.fullmatch(device.get(g, ""))}
    label = {guid: name for guid, name in called.items() if guid not in inside | other}
    graph: Any = nx.MultiGraph()
    for ((a, _), (b, _)), rates in cables.items():
        if {a, b} <= label.keys():
            adapter = {"device": device.get(a, device.get(b))}
            graph.add_edge(label[a], label[b], capacity=min(rates, default=400) * GBIT, **adapter)
    speeds = Counter(data["capacity"] / GBIT for *_, data in graph.edges(data=True))
    hosts = [label[guid] for guid in label if guid.startswith("H-")]
    kinds = sorted({device[guid] for guid in device if guid not in other})
    if chosen and not hosts:
        raise ValueError(
            f"devices must match some of {', '.join(device.values()):.80}, got {devices!r}"
        )
    notes = [
        f"cables by Gbit/s: {', '.join(f'{many} of {rate:g}' for rate, many in speeds.items())}",
        f"{len(hosts)} adapters are of {len(set(hosts))} hosts, by their names",
    ]
    if len(kinds) > 1:
        told = f"devices of adapters: {', '.join(kinds):.80}"
        notes.append(f"{told}; devices= of topology.read takes a pattern, to leave storage out")
    counted = {
        "hosts have no cable": len({*hosts} - {*graph}),
        "of them share a name: each is taken for a host": sum(one.endswith(")") for one in hosts),
        "cables say no speed: 400 Gbit/s is taken": sum(not rates for rates in cables.values()),
        "ports without a cable are left out": bare,
        "aggregation nodes inside switches are left out": len(inside),
        "adapters of other devices are left out": len(other - inside),
    }
    notes += [f"{many} {what}" for what, many in counted.items() if many]
    for a, b in nx.Graph(graph).edges():
        same = list(graph[a][b].values())
        if len({data["capacity"] for data in same}) > 1:
            notes.append(f"cables between {a} and {b} differ in speed: each has their mean")
            mean = sum(data["capacity"] for data in same) / len(same)
            graph.add_edges_from((a, b, key, {"capacity": mean}) for key in list(graph[a][b]))
    return _tiers(file, graph, hosts, label.values(), "ibnetdiscover", notes)


def _scan(file: Path) -> tuple[dict[str, str], dict[tuple[Pair, ...], list[float]], int]:
    """Name of every GUID, speeds [Gbit/s] at the ends of every cable, ports without a cable."""
    own, bare = "", 0
    heads: dict[str, str] = {}
    names: dict[str, str] = {}
    ends: dict[Pair, Pair] = {}
    cables: dict[tuple[Pair, ...], list[float]] = {}
    for line, text in enumerate(_text.decoded(file).splitlines(), 1):
        if head := _BLOCK.match(text):
            own = head[1].replace("-0x", "-")
            heads[own] = head[2] or own
        elif (port := _PORT.match(text)) and own:
            here, there = (own, port[1]), (port[2].replace("-0x", "-"), port[3])
            for end, other in ((here, there), (there, here)):
                if ends.setdefault(end, other) != other:
                    wrong = f"port {end[1]} of {end[0]} has two cables"
                    raise _text.malformed(file, line, wrong, "read one scan at a time")
            names.setdefault(there[0], (re.findall('"([^"]*)"', port[4]) or [there[0]])[0])
            rates = cables.setdefault(tuple(sorted((here, there))), [])
            rates += _gbit(file, line, re.sub('"[^"]*"', "", port[4]))
        elif re.match(r'\s*\[\d+\].*"[SHR]-', text):
            wrong = f"expected a port of the Switch or Ca before it, got {text.strip()!r:.80}"
            raise _text.malformed(file, line, wrong, "correct it")
        else:
            bare += bool(re.match(r"\s*\[\d+\]", text))
    # what stands on the front of a switch
    said = {g: re.sub("^MF0;([^:]+):[^/]+/U1$", r"\1", n) for g, n in (names | heads).items()}
    return said, cables, bare


def _gbit(file: Path, line: int, text: str) -> list[float]:
    """Speed of a cable, ``4xNDR`` as 400, where one is said."""
    said = re.findall(r"\b(\d+)x ?([A-Z]+\d*)", text, re.IGNORECASE)[-1:]
    if unknown := [f"{n}x{word}" for n, word in said if word.upper() not in _LANES]:
        wrong = f"expected lanes of {', '.join(_LANES)}, got {unknown[0]}"
        raise _text.malformed(file, line, wrong, "correct the speed")
    return [int(lanes) * _LANES[word.upper()] for lanes, word in said]


def _called(said: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Label of every GUID, one for all adapters of a host, and the device of every adapter."""
    parts = {guid: re.fullmatch(_DEVICE, guid[0] + name) for guid, name in said.items()}
    # two that are called alike: a name of the maker, localhost
    many = Counter([*said.values(), *{part[1] for part in parts.values() if part}])
    label = {
        guid: f"{said[guid]} ({guid})" if many[said[guid]] > 1 else part[1] if part else said[guid]
        for guid, part in parts.items()
    }
    return label, {guid: part[2] for guid, part in parts.items() if part}


def _tiers(
    file: Path, graph: Any, hosts: list[str], nodes: Iterable[str], name: str, notes: list[str]
) -> Topology:
    """Topology of hosts under switches, which are called by their distance from the hosts."""
    every = dict.fromkeys([*hosts, *nodes])
    graph.add_nodes_from(every)
    layers = nx.bfs_layers(graph, set(hosts)) if hosts else ()
    tier = {node: rank for rank, layer in enumerate(layers) for node in layer}
    kinds = {-1: "switch", 0: "host", 1: "leaf", 2: "spine", 3: "core"}
    made: Any = nx.MultiGraph()
    for node in sorted(every, key=lambda one: tier.get(one, len(every))):
        rank = tier.get(node, -1)
        what = {"kind": kinds.get(rank, f"tier {rank}"), "endpoint": not rank, "tier": rank}
        made.add_node(node, transit=bool(rank), device_class="switch" if rank else "host", **what)
    made.add_edges_from(graph.edges(data=True))
    if lost := [node for node in made if node not in tier]:
        notes.append(f"no host reaches {len(lost)} switches, such as {lost[0]}")
    return replace(topology_of(file, made, False, notes), meta=Design(name=name))


def read_nvidia_smi(
    path: str | os.PathLike[str],
    *,
    accelerator: str | None = None,
    link_bandwidth: float | None = None,
) -> Topology:
    """Inside of a node from ``nvidia-smi topo -m``: GPUs, adapters, NVLinks and what PCIe joins."""
    file = _text.require_path(path=path)
    if accelerator is not None and link_bandwidth is not None:
        raise ValueError(f"link_bandwidth must be None with accelerator, got {link_bandwidth!r}")
    device = None if accelerator is None else named_accelerator(accelerator)
    near, numa, called = _matrix(file)
    names = list(called)
    gpus = [name for name in names if name.startswith("GPU")]
    nvlinks = _nvlinks(near, gpus)
    most = max(sum(many for *ends, many in nvlinks if gpu in ends) for gpu in gpus)
    given = None if link_bandwidth is None else require_real(link_bandwidth=link_bandwidth, above=0)
    speed = device.node_link / max(most, 1) if device else given or _NVLINK
    lane = device.host_link if device and device.host_link else LINK_CAPACITY
    graph: Any = nx.MultiGraph()
    graph.add_nodes_from(gpus, kind="gpu", tier=0, endpoint=True, transit=False)
    graph.add_nodes_from(names[len(gpus) :], kind="nic", endpoint=False)
    hubs = dict.fromkeys(hub for _, hub, _ in nvlinks if hub not in called)
    graph.add_nodes_from(hubs, kind="nvswitch", endpoint=False)
    for a, b, many in nvlinks:
        graph.add_edges_from([(a, b)] * many, capacity=speed)
    for kind, joint, below in _hubs(names, near, numa):
        graph.add_node(joint, kind=kind, endpoint=False)
        graph.add_edges_from(((low, joint) for low in below), capacity=lane)
    notes = [f"{sum(many for *_, many in nvlinks)} NVLinks, at most {most} of a GPU"]
    notes += ["one node stands for all NVSwitches, which the file does not count"] * bool(hubs)
    if device is None:
        told = f"an NVLink {speed / GB:g} GB/s, " if nvlinks and given is None else ""
        notes.append(f"one way {told}PCIe {lane / GB:g} GB/s are taken: accelerator= says them")
    t = topology_of(file, nx.relabel_nodes(graph, called), False, notes)
    return replace(t, meta=Design(name="nvidia-smi"))


def _nvlinks(near: Mapping[Pair, str], gpus: list[str]) -> list[tuple[str, str, int]]:
    """Ends and number of NVLinks: between GPUs, or of a GPU and its NVSwitches."""
    links: Any = nx.Graph()
    links.add_nodes_from(gpus)
    links.add_weighted_edges_from((*pair, int(w[2:])) for pair, w in near.items() if w[:2] == "NV")
    found: list[tuple[str, str, int]] = []
    for number, some in enumerate(nx.connected_components(links)):
        inner = [edge for edge in links.edges(data="weight") if edge[0] in some]
        if max(many for _, many in links.degree(some, weight="weight")) > _NVLINKS:
            # more than a GPU has: to NVSwitches, where the matrix gives every pair all of them
            widest = {gpu: max(many for a, b, many in inner if gpu in (a, b)) for gpu in some}
            found += [(gpu, f"nvswitch {number}", widest[gpu]) for gpu in gpus if gpu in some]
        else:
            found += inner
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
    text = re.sub(r"\x1b?\[[\d;]*m", "", _text.decoded(file))
    names: list[str] = []
    found: dict[frozenset[str], str] = {}
    numa: dict[str, str] = {}
    for line, words in enumerate(map(str.split, text.splitlines()), 1):
        if not names and re.fullmatch(r"GPU\d+", "".join(words[:1])) and words[1:2] != ["X"]:
            names = list(takewhile(lambda word: word not in ("CPU", "NUMA", "GPU"), words))
        elif words and words[0] in names and frozenset(words[:1]) not in found:
            cells = ["SYS" if cell == "SOC" else cell for cell in words[1 : len(names) + 1]]
            for name, cell in zip(names, [*cells, *[""] * len(names)], strict=False):
                own = name == words[0]
                right = cell == "X" if own else cell in _COMMON or re.fullmatch(r"NV\d+", cell)
                if not right or found.setdefault(frozenset((words[0], name)), cell) != cell:
                    wanted = "X" if own else f"the same as above, NV4 or {', '.join(_COMMON)}"
                    wrong = f"expected {wanted} between {words[0]} and {name}, got {cell!r}"
                    raise _text.malformed(file, line, wrong, "paste the matrix as it was printed")
            if (node := "".join(words[len(names) + 2 : len(names) + 3])).isdigit():
                numa[words[0]] = node
    for name in names or ["GPU0"]:
        if name.startswith("GPU") and frozenset((name,)) not in found:
            raise ValueError(f"{file}: no row of {name}; write nvidia-smi topo -m to the file")
    legend = dict(re.findall(r"(?m)^\s*(NIC\d+): *(\S+)", text))
    pairs = {pair: found.get(frozenset(pair), "") for pair in combinations(names, 2)}
    return pairs, numa, {name: legend.get(name, name) for name in names}


def read_containerlab(path: str | os.PathLike[str], *, hosts: str | None = None) -> Topology:
    """Nodes and links of a lab; hosts are those whose names match, else told by group, name, kind."""
    file = _text.require_path(path=path)
    lab = _fields(_fields(_text.loaded(file)).get("topology"))
    nodes = {str(name): _fields(node) for name, node in _fields(lab.get("nodes")).items()}
    links = lab.get("links") or []
    if not nodes or not isinstance(links, list):
        raise ValueError(f"{file}: expected topology with nodes and links, got {lab!r:.80}")
    chosen = _pattern(hosts=hosts)
    found = [
        name
        for name, node in nodes.items()
        if (chosen.fullmatch(name) if chosen else _is_host(name, node, lab))
    ]
    if chosen and not found:
        raise ValueError(f"hosts must match names of nodes, {', '.join(nodes):.80}, got {hosts!r}")
    graph: Any = nx.MultiGraph()
    taken, outside = set[str](), 0
    for place, link in enumerate(links, 1):
        ends = [
            f"{end.get('node')}:{end.get('interface')}" if isinstance(end, Mapping) else str(end)
            for end in _fields(link).get("endpoints") or ()
        ]
        names = [end.partition(":")[0] for end in ends]
        kind = str(_fields(link).get("type", "veth"))
        if not kind.startswith("veth") or any(n in _OUTSIDE and n not in nodes for n in names):
            outside += 1
            continue
        wrong = [f"{name!r} is no node" for name in names if name not in nodes]
        wrong += [f"{end} has a cable already" for end in ends if ":" in end and end in taken]
        if wrong or len(names) != 2:
            wrong.append(f"expected two ends, got {link!r:.80}")
            raise ValueError(f"{file}, link {place}: {wrong[0]}; correct the link")
        taken.update(ends)
        graph.add_edge(*names)
    told = "as asked" if chosen else "by group, name and kind"
    notes = [f"hosts {told}: {', '.join(found) or 'none':.80}; hosts= takes a pattern of names"]
    notes += [f"{outside} links out of the lab are left out"] if outside else []
    return _tiers(file, graph, found, nodes, "containerlab", notes)


def _pattern(**named: str | None) -> re.Pattern[str] | None:
    """Regular expression of an argument, where it is given."""
    ((name, value),) = named.items()
    try:
        return None if value is None else re.compile(require_instance(str, **named))
    except re.error as error:
        raise ValueError(f"{name} must be a regular expression, got {value!r} ({error})") from None


def _fields(value: Any) -> dict[str, Any]:
    """What a block of YAML says, nothing where it is none."""
    return dict(value) if isinstance(value, Mapping) else {}


def _is_host(name: str, own: Mapping[str, Any], lab: Mapping[str, Any]) -> bool:
    """Whether group and name of a node, the last word first, or else its kind say so."""
    base, groups, kinds = (_fields(lab.get(key)) for key in ("defaults", "groups", "kinds"))
    group = _fields(groups.get(own.get("group", base.get("group"))))
    kind = own.get("kind", group.get("kind", base.get("kind")))
    given = {**base, **_fields(kinds.get(kind)), **group, **own}
    for word in reversed(re.findall("[a-z]+", f"{name} {given.get('group', '')}".lower())):
        if word in _HOSTS or word.endswith(_HOSTS[:4]):
            return True
        if word in _SWITCHES or word.endswith(_SWITCHES[:2]):
            return False
    return kind in _PLAIN and not re.search(_ROUTING, str(given.get("image", "")))
