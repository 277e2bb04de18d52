"""Topology files of SimAI and ns-3 before it, read without mistakes of their generators and users.

Grammar, words separated by blanks::

    nodes gpus_per_server nvswitches switches links gpu_type
    id ...                                  the NVSwitches, then the switches, bottom tier first
    source target rate delay error_rate     one line for every cable

Ids run from 0 to nodes - 1; those not listed are GPUs, and GPU i is in server i // gpus_per_server.
Rates are written as ``400Gbps``, delays as ``0.0005ms``. The simulator reads as many cables as the
first line says and ignores the rest without a word, and it says nothing of a switch that no GPU
hangs at; a strict reading refuses both (aliyun/SimAI #51, #57 and #81). The first line of ns-3
(ASTRA-sim, HPCC) is ``nodes switches links``, and all ids that are not listed are hosts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from relparallel._checks import require_flag, require_instance, require_int
from relparallel.topology._arrays import FloatArray, IntArray, levels, parts
from relparallel.topology.fabric import Topology, as_topology
from relparallel.topology.formats import _text
from relparallel.topology.formats.simulators import cable_lines, hosts_first
from relparallel.topology.parts import Design

if TYPE_CHECKING:
    import networkx as nx

_CORRECT = "correct the line"
_SIMAI: Final = "nodes gpus_per_server nvswitches switches links gpu_type"
_NS3: Final = "nodes switches links"


@dataclass(frozen=True, kw_only=True, slots=True)
class _File:
    """What a file says, each cable with its line."""

    path: Path
    per_server: int
    gpu_type: str
    links: int
    gpus: IntArray
    nvswitches: IntArray
    switches: IntArray
    ends: IntArray
    capacity: FloatArray
    latency: FloatArray
    error_rate: FloatArray
    line: IntArray

    @property
    def nodes(self) -> int:
        return self.gpus.size + self.nvswitches.size + self.switches.size


def read_simai(
    path: str | os.PathLike[str], *, strict: bool = True, gpus_forward: bool = False
) -> Topology:
    """Topology of a SimAI file."""
    require_flag(strict=strict, gpus_forward=gpus_forward)
    file = _parsed(_text.require_path(path=path))
    _require_no_fault(file, strict)
    return _topology(file, gpus_forward)


def read_ns3(path: str | os.PathLike[str], *, strict: bool = True) -> Topology:
    """Topology of an ns-3 file; its hosts forward where some cable joins two of them."""
    require_flag(strict=strict)
    file = _parsed(_text.require_path(path=path), _NS3)
    _require_no_fault(file, strict)
    t = _topology(file, bool(np.isin(file.ends, file.gpus).all(axis=1).any()))
    return replace(t, meta=Design(name="ns3"))


def _require_no_fault(file: _File, strict: bool) -> None:
    """Refuse a file with faults where that is wanted."""
    faults = [f"line {line}: {wrong}; {remedy}" for line, wrong, remedy in sorted(_faults(file))]
    if strict and faults:
        raise ValueError(
            f"{file.path}, " + ", or read with strict=False\n".join([*faults, ""]).rstrip()
        )


def write_simai(
    topology: Topology | nx.Graph[Any],
    path: str | os.PathLike[str],
    *,
    gpus_per_server: int = 8,
    gpu_type: str = "H100",
) -> None:
    """Write a topology as a SimAI file."""
    t = as_topology(topology, name="topology")
    require_int(gpus_per_server=gpus_per_server, at_least=1)
    if t.num_hosts % gpus_per_server:
        raise ValueError(
            f"gpus_per_server must divide the {t.num_hosts} hosts, got {gpus_per_server}"
        )
    if len(require_instance(str, gpu_type=gpu_type).split()) != 1:
        raise ValueError(f"gpu_type must be one word, got {gpu_type!r}")
    nvswitch = (np.array(t.device_classes)[t.device_class] == "nvswitch") & ~t.endpoint
    by_tier = [~nvswitch & (t.tier == tier) for tier in np.unique(t.tier[t.switches])]
    number = hosts_first(t, nvswitch, *by_tier)
    inside = int(nvswitch.sum())
    counts = (t.num_nodes, gpus_per_server, inside, t.num_switches - inside, t.num_links)
    head = [
        f"{' '.join(map(str, counts))} {gpu_type}",
        " ".join(map(str, sorted(number[t.switches]))),
    ]
    _text.write(path, "\n".join([*head, *cable_lines(t, number)]) + "\n")


def _parsed(path: Path, wanted: str = _SIMAI) -> _File:
    """What the file says, or the first line that breaks the grammar."""
    lines = list(_text.numbered_lines(path)) or [(1, [])]
    (first, head), *rest = lines
    if not 0 <= len(head) - len(wanted.split()) <= (wanted == _SIMAI):
        raise _text.malformed(path, first, f"expected {wanted}, got {' '.join(head)!r}", _CORRECT)
    head = head if wanted == _SIMAI else [head[0], "1", "0", *head[1:], ""]
    nodes, per_server, inside, outside, links = (
        _count(path, first, word, int(i == 1)) for i, word in enumerate(head[:5])
    )
    listed: list[int] = []
    while rest and len(listed) < inside + outside:
        line, words = rest.pop(0)
        listed += [_count(path, line, word, 0, nodes - 1) for word in words]
    if len(listed) != inside + outside or len(set(listed)) < len(listed) or nodes <= len(listed):
        wrong = (
            f"expected the {inside} + {outside} different ids of switches out of {nodes} "
            f"nodes, got {listed}"
        )
        raise _text.malformed(
            path, first + 1, wrong, "list every NVSwitch and then every switch once"
        )
    cables = [_cable(path, line, words, nodes) for line, words in rest]
    table = list(zip(*cables, strict=True)) or [()] * 6
    return _File(
        path=path,
        per_server=per_server,
        gpu_type=head[5],
        links=links,
        gpus=np.setdiff1d(np.arange(nodes), listed),
        nvswitches=np.array(listed[:inside], dtype=np.int64),
        switches=np.array(listed[inside:], dtype=np.int64),
        ends=np.array([*zip(*table[:2], strict=True)], dtype=np.int64).reshape(-1, 2),
        capacity=np.array(table[2], dtype=float),
        latency=np.array(table[3], dtype=float),
        error_rate=np.array(table[4], dtype=float),
        line=np.array(table[5], dtype=np.int64),
    )


def _count(path: Path, line: int, word: str, at_least: int, at_most: int | None = None) -> int:
    """Whole number of that range."""
    if not (word.isascii() and word.isdigit()) or int(word) < at_least:
        raise _text.malformed(
            path, line, f"expected a whole number >= {at_least}, got {word!r}", _CORRECT
        )
    if at_most is not None and int(word) > at_most:
        raise _text.malformed(
            path, line, f"expected a node between 0 and {at_most}, got {word}", _CORRECT
        )
    return int(word)


def _cable(
    path: Path, line: int, words: list[str], nodes: int
) -> tuple[int, int, float, float, float, int]:
    """One cable: lower end, upper end, capacity, latency, error rate, line."""
    if len(words) != 5:
        wrong = f"expected source target rate delay error_rate, got {' '.join(words)!r}"
        raise _text.malformed(path, line, wrong, _CORRECT)
    u, v = sorted(_count(path, line, word, 0, nodes - 1) for word in words[:2])
    if u == v:
        raise _text.malformed(
            path, line, f"node {u} is joined to itself", "join two different nodes"
        )
    rate, delay, error = words[2:]
    try:
        capacity, latency, error_rate = _text.read_rate(rate), _text.read_delay(delay), float(error)
    except ValueError as refused:
        raise _text.malformed(path, line, str(refused), _CORRECT) from None
    if not 0 <= error_rate <= 1:
        raise _text.malformed(
            path, line, f"expected an error rate in [0, 1], got {words[4]}", _CORRECT
        )
    return u, v, capacity, latency, error_rate, line


def _faults(file: _File) -> Iterator[tuple[int, str, str]]:
    """Line, fault and remedy of everything that the simulator would not complain about."""
    found = len(file.ends)
    if file.links != found:
        wrong = f"the first line promises {file.links} links, the file has {found}"
        yield 1, wrong, f"write {found} as the number of links"
    if file.gpus.size % file.per_server:
        wrong = f"{file.gpus.size} GPUs do not fill servers of {file.per_server}"
        yield 1, wrong, "correct the number of nodes or of GPUs per server"
    degree = np.bincount(file.ends.ravel(), minlength=file.nodes)
    for node in np.flatnonzero(degree == 0).tolist():
        yield 2, f"node {node} has no cable", "add its cables or remove the node"
    for switch in _idle(file, degree) if file.gpu_type else ():  # ns-3 lists them in any order
        wrong = f"switch {switch} is a bottom switch without GPUs"
        yield 2, wrong, "attach GPUs to it or remove it"
    yield from _split_servers(file)
    yield from _unequal(file)
    found = np.unique(parts(file.ends, file.nodes)[degree > 0]).size
    if found > 1:
        wrong = f"the network falls into {found} parts"
        yield 1, wrong, "add the cables that join them"


def _idle(file: _File, degree: IntArray) -> list[int]:
    """Connected switches without GPUs that are listed before every neighbour."""
    both = np.concatenate([file.ends, file.ends[:, ::-1]])
    place = np.full(file.nodes, -1)
    place[file.switches] = np.arange(file.switches.size)
    lowest = np.full(file.nodes, file.nodes)
    np.minimum.at(lowest, both[:, 0], place[both[:, 1]])
    bottom = file.switches[(lowest > place)[file.switches] & (degree[file.switches] > 0)]
    return sorted(bottom.tolist())


def _split_servers(file: _File) -> Iterator[tuple[int, str, str]]:
    """Servers whose GPUs hang at different NVSwitches."""
    both = np.concatenate([file.ends, file.ends[:, ::-1]])
    inside = both[np.isin(both[:, 1], file.nvswitches)].tolist()
    near: dict[int, set[int]] = {gpu: set() for gpu in range(file.nodes)}
    for gpu, nvswitch in inside:
        near[gpu].add(nvswitch)
    for members in np.split(file.gpus, np.arange(file.per_server, file.gpus.size, file.per_server)):
        if any(near[gpu] != near[members[0]] for gpu in members.tolist()):
            wrong = f"GPUs {members[0]} to {members[-1]} of one server hang at different NVSwitches"
            yield 2, wrong, "join them to the same NVSwitches"


def _unequal(file: _File) -> Iterator[tuple[int, str, str]]:
    """Cables that differ from an earlier one between the same nodes."""
    first: dict[tuple[int, ...], tuple[tuple[float, ...], int]] = {}
    table = np.column_stack([file.capacity, file.latency, file.error_rate]).tolist()
    for pair, values, line in zip(file.ends.tolist(), table, file.line.tolist(), strict=True):
        known, where = first.setdefault(tuple(pair), (tuple(values), line))
        if known != tuple(values):
            wrong = f"the cable {pair[0]} {pair[1]} differs from the one on line {where}"
            yield line, wrong, "give both the same rate, delay and error rate"


def _topology(file: _File, gpus_forward: bool) -> Topology:
    """GPUs, NVSwitches and switches, with the cables merged that join the same nodes."""
    for line, wrong, remedy in _unequal(file):
        raise _text.malformed(file.path, line, wrong, remedy)
    order = np.concatenate([file.gpus, file.nvswitches, file.switches])
    number = np.empty(file.nodes, dtype=np.int64)
    number[order] = np.arange(file.nodes)
    ends = np.sort(number[file.ends], axis=1)
    gpus, inside = file.gpus.size, file.nvswitches.size
    t = Topology.of(
        edges=ends,
        node_kind={"gpu": gpus, "nvswitch": inside, "switch": file.switches.size},
        transit=np.arange(file.nodes) >= (0 if gpus_forward else gpus),
        tier=_tiers(ends, gpus, inside, file.nodes),
        pod=np.where(np.arange(file.nodes) < gpus, np.arange(file.nodes) // file.per_server, -1),
        meta=Design(
            name="simai", parameters={"gpus_per_server": file.per_server, "gpu_type": file.gpu_type}
        ),
    )
    first = np.unique(ends[:, 0] * file.nodes + ends[:, 1], return_index=True)[1]
    errors = {"error_rate": file.error_rate[first]} if file.error_rate.any() else {}
    return replace(
        t,
        capacity=file.capacity[first],
        latency=file.latency[first],
        labels=tuple(order.tolist()),
        edge_attributes=errors,
    )


def _tiers(ends: IntArray, gpus: int, nvswitches: int, nodes: int) -> IntArray:
    """Distance from the GPUs, 1 for NVSwitches; -1 for what no GPU reaches."""
    node = np.arange(nodes)
    nvswitch = (node >= gpus) & (node < gpus + nvswitches)
    tier = levels(ends[~nvswitch[ends].any(axis=1)], node < gpus)
    tier[nvswitch] = 1
    return tier
