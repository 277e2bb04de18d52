"""What every node and cable of a network costs, draws, delays, and how often it works.

Builders wire a design and say what hardware its parts are (``device_class``); this module puts the numbers of
one generation of hardware on them. Every default has its source: prices and latency in ``data/devices.csv``,
failures and repairs in ``data/published/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from relparallel._checks import require_instance, require_real
from relparallel.hardware import ComponentRates, llama3_interruptions
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


def mean_lives(rates: ComponentRates | None = None) -> dict[str, float]:
    """Mean time between failures of one part of every device class, and of one cable.

    Parameters
    ----------
    rates : ComponentRates, optional
        Failure table of GPUs and nodes; that of the Llama 3 run by default.

    Returns
    -------
    dict of str to float
        By device class [s], and ``"cable"``. ``gpu`` and ``accelerator``: all causes of level gpu. ``server``
        and ``node``: all causes of level node, and those of its GPUs. ``nvswitch``: infinite, because the
        tables file its faults under GPUs. ``switch``, ``cable``: as Alibaba reports of its top-of-rack
        switches and of the links below them. Optical circuit switches have no published number.

    References
    ----------
    Llama Team, "The Llama 3 Herd of Models", arXiv:2407.21783, table 5 (facts L3-010 to L3-027). Qian et al.,
    "Alibaba HPN: a data center network for large language model training", SIGCOMM 2024 (HPN-001, HPN-002).

    Examples
    --------
    >>> from relparallel.units import YEAR
    >>> {part: round(life / YEAR, 1) for part, life in mean_lives().items()}  # doctest: +ELLIPSIS
    {'gpu': 9.0, 'accelerator': 9.0, 'server': 0.9, 'node': 0.9, 'nvswitch': inf, 'switch': 163.4, ...}
    """
    table = llama3_interruptions() if rates is None else require_instance(ComponentRates, rates=rates)
    published = facts("training-reliability")
    gpu = sum(row.rate for row in table.causes if row.level == "gpu")
    node = sum(row.rate for row in table.causes if row.level == "node")
    each = max((row.components for row in table.causes if row.level == "gpu"), default=0)
    nodes = max((row.components for row in table.causes if row.level == "node"), default=1)
    server = node + gpu * each / nodes
    link, switch = (float(published[f"HPN-00{i}"].value_text) / MONTH for i in (1, 2))
    per_second = {"gpu": gpu, "accelerator": gpu, "server": server, "node": server, "nvswitch": 0.0}
    per_second |= {"switch": switch, "cable": link}
    return {part: 1 / rate if rate else float("inf") for part, rate in per_second.items()}


def mean_repair() -> float:
    """Mean time to repair a part.

    Returns
    -------
    float
        Mean of the 23,739 repairs of the LANL clusters, 1996 to 2005 [s].

    References
    ----------
    Los Alamos National Laboratory, failure data release LA-UR-05-7318 (fact LANL-003).

    Examples
    --------
    >>> round(mean_repair() / 3600, 2)
    5.87
    """
    value = facts("training-reliability")["LANL-003"].values[0]
    return float(require_real(mean_repair=value)) * MINUTE


def equipped(
    topology: Topology | nx.Graph[Any],
    *,
    prices: UnitPrices | None = None,
    latency: float | None = None,
    mtbf: Mapping[str, float] | None = None,
    mttr: float | Mapping[str, float] | None = None,
) -> Topology:
    """Put cost, power, latency, failures and repairs on every node and cable.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        The network.
    prices : UnitPrices, optional
        The list ``ndr2024`` by default.
    latency : float, optional
        Of every link [s]; by default 500 ns, and 25 ns to an NVSwitch, as in ``data/devices.csv``.
    mtbf : Mapping of str to float, optional
        Mean time between failures [s] of device classes and of ``"cable"``, infinite where a part never
        fails; what is left out is as `mean_lives` says.
    mttr : float or Mapping of str to float, optional
        Mean time to repair [s], of all or by the same names; what is left out is `mean_repair`.

    Returns
    -------
    Topology
        The same network with latency, and with attributes ``cost`` [USD], ``power`` [W], ``mtbf`` [s],
        ``mttr`` [s] and ``availability`` of every node and of every pair. Cost and power of a pair are those
        of all its cables and transceivers; its other attributes are those of one cable, as `evaluate` asks.

    Notes
    -----
    availability = MTBF / (MTBF + MTTR), 1 where the MTBF is infinite. A node's cost and power are those of
    its ports; all of them add up to those of `bill_of_materials`. Linear time.

    Examples
    --------
    >>> import relparallel as rp
    >>> t = equipped(rp.topology.leaf_spine(leaves=2, spines=2, hosts_per_leaf=1))
    >>> t.edge_attributes["cost"].tolist(), t.node_attributes["power"].round(1).tolist()
    ([1280.0, 1280.0, 1280.0, 1280.0, 1280.0, 1280.0], [0.0, 0.0, 35.0, 35.0, 23.3, 23.3])
    >>> chances = {"link_up": "availability", "node_up": "availability"}
    >>> f"{rp.reliability.evaluate(t, terminals=[0, 1], **chances).unreliability:.3e}"
    '1.436e-03'
    """
    t = as_topology(topology, name="topology")
    billed = unit_prices(_MODERN) if prices is None else require_instance(UnitPrices, prices=prices)
    delay = _latency(t) if latency is None else np.full(len(t.edges), _one("latency", latency, at_least=0))
    lives = mean_lives() | _times("mtbf", {} if mtbf is None else mtbf, t, above=0, infinite=True)
    given = {} if mttr is None else mttr if isinstance(mttr, Mapping) else dict.fromkeys(_parts(t), mttr)
    repairs = dict.fromkeys(_parts(t), mean_repair()) | _times("mttr", given, t, at_least=0)
    node, edge = _money(t, billed)
    for name, found in (("mtbf", lives), ("mttr", repairs)):
        node[name], edge[name] = _spread(t, name, found)
    for part in (node, edge):
        part["availability"] = 1 / (1 + part["mttr"] / part["mtbf"])
    return replace(
        t,
        latency=delay,
        node_attributes={**t.node_attributes, **node},
        edge_attributes={**t.edge_attributes, **edge},
    )


def _latency(t: Topology) -> FloatArray:
    """Default latency of every pair [s]."""
    rows = price_rows().set_index(["prices", "item", "quantity"])["value"]
    cable, inside = (float(rows[_MODERN, item, "latency"]) * MICROSECOND for item in ("cable", "nvlink"))
    return np.where(fittings(t).cables > 0, cable, inside)


def _parts(t: Topology) -> list[str]:
    return [*t.device_classes, "cable"]


def _one(name: str, value: Any, **bounds: Any) -> float:
    """One number inside the bounds."""
    checked = require_real(**{name: value}, **bounds)
    if np.ndim(checked):
        raise TypeError(f"{name} must be one number, got {value!r}")
    return float(checked)


def _times(name: str, given: Mapping[str, Any], t: Topology, **bounds: Any) -> dict[str, float]:
    """Times by device class; only of classes that exist."""
    known = {*_parts(t), *mean_lives()}
    if not set(require_instance(Mapping, **{name: given})) <= known:
        raise ValueError(f"{name} must be of {', '.join(sorted(known))}, got {', '.join(map(str, given))}")
    return {part: _one(name, time, **bounds) for part, time in given.items()}


def _spread(t: Topology, name: str, times: Mapping[str, float]) -> tuple[FloatArray, FloatArray]:
    """Time of every node and of every pair."""
    missing = [part for part in _parts(t) if part not in times]
    if missing:
        raise ValueError(f"{name} must name every device class of {t!r}, got nothing for {missing[0]!r}")
    by_class = np.array([times[part] for part in t.device_classes])
    return by_class[t.device_class], np.full(len(t.edges), times["cable"])


def _money(t: Topology, prices: UnitPrices) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Cost and power of the ports of every node, and of the cables and transceivers of every pair."""
    found = fittings(t)
    require_priced(prices, found.counts, repr(t))
    node, edge = {}, {}
    for field in ("cost", "power"):
        one: Mapping[str, float] = {name: getattr(prices, field).get(name, 0.0) for name in ITEMS}
        fibre = one["cable"] + one["ocs port"] + found.channels * one["transceiver"]
        node[field] = found.ports * np.array([one[name] for name in found.item]) + found.fibres * fibre
        passed = found.mirrors * one["ocs port"]
        edge[field] = found.cables * one["cable"] + found.transceivers * one["transceiver"] + passed
    return node, edge
