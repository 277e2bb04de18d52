"""What every node and cable of a network costs, draws, delays, and how often it works.

Builders wire a design and say what hardware its parts are (``device_class``); this module puts the
numbers of one generation of hardware on them. Every default has its source: prices and latency in
``data/devices.csv``, failures and repairs in ``data/published/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from relparallel._checks import require_real
from relparallel.hardware import llama3_interruptions
from relparallel.published import facts
from relparallel.topology._arrays import FloatArray
from relparallel.topology.costs import (
    ITEMS,
    UnitPrices,
    fittings,
    price_rows,
    require_priced,
    unit_prices,
)
from relparallel.topology.fabric import Topology, as_topology
from relparallel.units import MICROSECOND, MINUTE, MONTH

if TYPE_CHECKING:
    import networkx as nx

_MODERN: Final = "ndr2024"  # the list of 400 Gbit/s equipment


def mean_lives() -> dict[str, float]:
    """Mean time between failures [s] of one part of every device class, and of one ``"cable"``.

    ``gpu`` and ``accelerator``: all causes of level gpu of the Llama 3 run. ``server`` and
    ``node``: all causes of level node, and those of its GPUs. ``nvswitch``: infinite, because the
    tables file its faults under GPUs. ``switch``, ``cable``: as Alibaba reports of its top-of-rack
    switches and of the links below them. Optical circuit switches have no published number. Llama
    Team, "The Llama 3 Herd of Models", arXiv:2407.21783, table 5 (facts L3-010 to L3-027). Qian et
    al., "Alibaba HPN: a data center network for large language model training", SIGCOMM 2024
    (HPN-001, HPN-002).

    >>> from relparallel.units import YEAR
    >>> {part: round(life / YEAR, 1) for part, life in mean_lives().items()}  # doctest: +ELLIPSIS
    {'gpu': 9.0, 'accelerator': 9.0, 'server': 0.9, 'node': 0.9, 'nvswitch': inf, 'switch': 163.4, ...}
    """
    table, published = llama3_interruptions(), facts("training-reliability")
    gpu = sum(row.rate for row in table.causes if row.level == "gpu")
    node = sum(row.rate for row in table.causes if row.level == "node")
    each = max(row.components for row in table.causes if row.level == "gpu")
    nodes = max(row.components for row in table.causes if row.level == "node")
    server = node + gpu * each / nodes
    link, switch = (float(published[f"HPN-00{i}"].value_text) / MONTH for i in (1, 2))
    per_second = {"gpu": gpu, "accelerator": gpu, "server": server, "node": server, "nvswitch": 0.0}
    per_second |= {"switch": switch, "cable": link}
    return {part: 1 / rate if rate else float("inf") for part, rate in per_second.items()}


def mean_repair() -> float:
    """Mean time to repair a part [s]: of the 23,739 repairs of the LANL clusters, 1996 to 2005.

    Los Alamos National Laboratory, failure data release LA-UR-05-7318 (fact LANL-003).

    >>> round(mean_repair() / 3600, 2)
    5.87
    """
    return float(str(facts("training-reliability")["LANL-003"].values[0])) * MINUTE


def equipped(
    topology: Topology | nx.Graph[Any],
    *,
    prices: UnitPrices | None = None,
    mtbf: Mapping[str, float] | None = None,
    mttr: float | Mapping[str, float] | None = None,
) -> Topology:
    """The network with latency, cost, power, failures and repairs on every node and cable.

    Attributes ``cost`` [USD], ``power`` [W], ``mtbf`` [s], ``mttr`` [s] and ``availability`` = MTBF
    / (MTBF + MTTR) of every node and of every pair. Cost and power of a node are those of its
    ports, of a pair those of all its cables and transceivers, and all of them add up to those of
    `bill_of_materials`; other attributes of a pair are those of one cable, as `evaluate` asks.
    Latency is 500 ns, and 25 ns to an NVSwitch, as in ``data/devices.csv``.

    ``prices`` are the list ``ndr2024`` by default. ``mtbf`` [s] is by device class and ``"cable"``,
    infinite where a part never fails, and as `mean_lives` says where left out; ``mttr`` [s] is of
    all or by the same names, and `mean_repair` where left out.

    >>> import relparallel as rp
    >>> t = equipped(rp.topology.leaf_spine(leaves=2, spines=2, hosts_per_leaf=1))
    >>> t.edge_attributes["cost"].tolist(), t.node_attributes["power"].round(1).tolist()
    ([1280.0, 1280.0, 1280.0, 1280.0, 1280.0, 1280.0], [0.0, 0.0, 35.0, 35.0, 23.3, 23.3])
    >>> chances = {"link_up": "availability", "node_up": "availability"}
    >>> f"{rp.reliability.evaluate(t, terminals=[0, 1], **chances).unreliability:.3e}"
    '1.436e-03'
    """
    t = as_topology(topology, name="topology")
    parts = [*t.device_classes, "cable"]
    own, usual = (mttr, None) if isinstance(mttr, Mapping) else ({}, mttr)
    lives = mean_lives() | dict(mtbf or {})
    repairs: dict[str, float] = dict.fromkeys(
        parts, mean_repair() if usual is None else usual
    ) | dict(own)
    if unknown := {*(mtbf or {}), *own} - {*parts, *mean_lives()}:
        raise ValueError(f"mtbf and mttr must be of {', '.join(lives)}, got {unknown.pop()}")
    require_real(mtbf=list(lives.values()), above=0, infinite=True)
    require_real(mttr=list(repairs.values()), at_least=0)
    missing = set(parts) - set(lives)
    if missing:
        raise ValueError(
            f"mtbf must name every device class of {t!r}, got nothing for {missing.pop()!r}"
        )
    node, edge = _money(t, prices or unit_prices(_MODERN))
    for name, found in (("mtbf", lives), ("mttr", repairs)):
        node[name] = np.array([found[part] for part in t.device_classes])[t.device_class]
        edge[name] = np.full(len(t.edges), found["cable"])
    for part in (node, edge):
        part["availability"] = 1 / (1 + part["mttr"] / part["mtbf"])
    return replace(
        t,
        latency=_latency(t),
        node_attributes={**t.node_attributes, **node},
        edge_attributes={**t.edge_attributes, **edge},
    )


def _latency(t: Topology) -> FloatArray:
    """Default latency of every pair [s]."""
    rows = price_rows().set_index(["prices", "item", "quantity"])["value"]
    cable, inside = (
        float(rows[_MODERN, item, "latency"]) * MICROSECOND for item in ("cable", "nvlink")
    )
    return np.where(fittings(t).cables > 0, cable, inside)


def _money(t: Topology, prices: UnitPrices) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Cost and power of the ports of every node, and of cables and transceivers of every pair."""
    found = fittings(t)
    require_priced(prices, found.counts, repr(t))
    node, edge = {}, {}
    for field in ("cost", "power"):
        one = {name: getattr(prices, field).get(name, 0.0) for name in ITEMS}
        fibre = one["cable"] + one["ocs port"] + found.channels * one["transceiver"]
        node[field] = (
            found.ports * np.array([one[name] for name in found.item]) + found.fibres * fibre
        )
        passed = found.mirrors * one["ocs port"]
        edge[field] = found.cables * one["cable"] + found.transceivers * one["transceiver"] + passed
    return node, edge
