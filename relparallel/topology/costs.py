"""What a network is built of, and what that costs: ports, cables, transceivers, money and power.

The rules of counting: a cable has two ends, and each end sits in a port of a switch, of an optical
circuit switch (OCS) or of a host. It carries a transceiver at both ends, except where it enters an
OCS, whose mirrors pass the light on: a link that runs through an OCS is two cables and takes two of
its ports. Where a design says which links are optical, the others are copper without transceivers.
The fibres of a Helios pod and of a c-Through rack to the circuit switches are counted whatever
circuits are set up. Links of an NVSwitch stay inside the machine that is bought as one piece: they
are counted, not priced. The letters of the Helios study: ``w`` channels (wavelengths) of one fibre.

A price list names an item once for each quantity. An item without a published price is left out,
and a network that needs it cannot be billed by that list.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Final, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import Result, require_choice, require_instance
from relparallel.published import data_folder
from relparallel.topology._arrays import IntArray
from relparallel.topology.description import names, require_parameters, rules
from relparallel.topology.designs.optical import HYBRID, WAVELENGTHS, optics, uplinks
from relparallel.topology.fabric import Topology, as_topology

ITEMS: Final = ("switch port", "ocs port", "host port", "transceiver", "cable")
# in the same order
_COUNTS: Final = ("switch_ports", "ocs_ports", "host_ports", "transceivers", "cables")


class UnitPrices(NamedTuple):
    """Price and power of one piece of everything that a bill counts.

    >>> listed = unit_prices("helios2010")
    >>> cheaper = listed._replace(name="own", cost={**listed.cost, "switch port": 100.0})
    >>> cheaper.cost["switch port"], listed.cost["switch port"]
    (100.0, 500.0)
    """

    name: str  #: shipped lists stand in ``data/devices.csv`` with the source of every number
    cost: Mapping[str, float]  #: of one of each of `ITEMS` [USD], but for those without a price
    power: Mapping[str, float]  #: of the same [W]


@cache
def price_rows() -> pd.DataFrame:
    """Every row of the shipped price lists."""
    with (data_folder() / "devices.csv").open(newline="", encoding="utf-8") as file:
        return pd.DataFrame(list(csv.DictReader(file)))


def unit_prices(name: str = "helios2010") -> UnitPrices:
    """Shipped price list of that name.

    Parameters
    ----------
    name : {"helios2010", "ndr2024"}, optional
        10 Gbit/s equipment of 2010, as in the Helios study; or 400 Gbit/s InfiniBand of 2024 by
        street prices and data sheets, without a price of optical circuit switches. Compare designs
        by a list, do not order by it.

    Returns
    -------
    UnitPrices
        Cost [USD] and power [W] of every item.

    References
    ----------
    Farrington et al., "Helios: a hybrid electrical/optical switch architecture for modular data
    centers", SIGCOMM 2010. "H100 Freakonomics: the economical tiers of H100's", 2024, and its
    spreadsheet.

    Examples
    --------
    >>> unit_prices().power["switch port"], unit_prices("ndr2024").cost["switch port"]
    (12.5, 562.5)
    """
    rows = price_rows()
    require_choice(sorted(set(rows["prices"])), name=name)
    own = rows[rows["prices"] == name]
    table = {
        quantity: dict(zip(part["item"], part["value"].astype(float), strict=True))
        for quantity, part in own.groupby("quantity")
    }
    return UnitPrices(name=name, cost=table["cost"], power=table["power"])


@dataclass(frozen=True, kw_only=True, slots=True)
class BillOfMaterials(Result):
    """What a network is built of, with its prices."""

    design: str
    hosts: int  #: endpoints that share the bill
    switch_ports: int  #: cable ends at packet switches
    ocs_ports: int  #: at optical circuit switches
    host_ports: int  #: at hosts
    transceivers: int
    cables: int  #: a bundle of w channels on one fibre is one
    internal_links: int = 0  #: of NVSwitches, bought with the machine and not priced
    prices: UnitPrices  #: of one piece

    @property
    def counts(self) -> dict[str, int]:
        """Pieces of every item that is priced."""
        return {item: getattr(self, name) for item, name in zip(ITEMS, _COUNTS, strict=True)}

    @property
    def cost(self) -> float:
        """Of the whole [USD]."""
        return math.fsum(
            count * self.prices.cost.get(item, 0.0) for item, count in self.counts.items()
        )

    @property
    def power(self) -> float:
        """Of the whole [W]."""
        return math.fsum(
            count * self.prices.power.get(item, 0.0) for item, count in self.counts.items()
        )

    @property
    def cost_per_host(self) -> float:
        """USD for each host."""
        return self.cost / self.hosts

    @property
    def power_per_host(self) -> float:
        """W for each host."""
        return self.power / self.hosts

    @property
    def cables_per_host(self) -> float:
        """Cables for each host."""
        return self.cables / self.hosts

    def to_frame(self) -> pd.DataFrame:
        """Count, count per host, cost [USD] and power [W] of every item, and the total."""
        counts = pd.Series(self.counts, dtype=float).rename_axis("item")
        rows = pd.DataFrame(
            {
                "count": counts,
                "per host": counts / self.hosts,
                "cost [USD]": counts
                * pd.Series(dict(self.prices.cost)).reindex(ITEMS, fill_value=0.0),
                "power [W]": counts
                * pd.Series(dict(self.prices.power)).reindex(ITEMS, fill_value=0.0),
            }
        )
        rows.loc["total"] = [np.nan, np.nan, self.cost, self.power]
        return rows.rename_axis("item")

    def _said(self) -> str:
        return f"{self.design}: {self.hosts:,} hosts, prices of {self.prices.name}"


def bill_of_materials(
    design: str | Topology | nx.Graph[Any], *, prices: UnitPrices | None = None, **parameters: Any
) -> BillOfMaterials:
    """Ports, cables and transceivers of a network, and their cost and power.

    Parameters
    ----------
    design : str or Topology or networkx.Graph
        A network; or the name of a builder, which is called with ``parameters``; or ``"helios"``,
        whose core is billed by the closed form of its study: pods, hosts_per_pod, electrical,
        optical, wavelengths=8.
    prices : UnitPrices, optional
        Of one piece; `unit_prices` by default.
    **parameters
        Arguments of the builder; none with a network.

    Returns
    -------
    BillOfMaterials
        Counts, cost [USD], power [W], and all of them per host.

    Notes
    -----
    The core of Helios joins ``pods`` pods of U = hosts_per_pod uplinks. E = electrical U of them,
    rounded up to whole bundles of w, go to packet switches (a switch port, two transceivers and a
    fibre each); O = optical U, rounded down to whole bundles, go to circuit switches (a transceiver
    each; a fibre and an OCS port for each bundle of w). Pod switches and hosts are outside this
    bill, as in the study's table.

    Of a network every cable is counted, parallel ones singly; time is linear in the cables.

    References
    ----------
    Farrington et al., "Helios: a hybrid electrical/optical switch architecture for modular data
    centers", SIGCOMM 2010, cost, power and cables of the core.

    Examples
    --------
    >>> bill = bill_of_materials("helios", pods=64, hosts_per_pod=1024, electrical=0.10, optical=0.90)
    >>> bill.cost, round(bill.power), bill.cables
    (22147200.0, 157158, 14016)
    """
    asked = unit_prices() if prices is None else require_instance(UnitPrices, prices=prices)
    require_instance((str, Topology, nx.Graph), design=design)
    if not isinstance(design, str):
        if parameters:
            raise ValueError(
                f"parameters must be left out with a network, got {', '.join(parameters)}"
            )
        return _priced(_network(as_topology(design, name="design"), asked))
    require_choice(names(), design=design)
    if design == "helios":
        require_parameters(design, uplinks, parameters)
        return _priced(_helios_core(asked, **parameters))
    build = rules()[design].builder
    require_parameters(design, build, parameters)
    return _priced(_network(build(**parameters), asked))


def _priced(bill: BillOfMaterials) -> BillOfMaterials:
    """Return the bill if every piece has a price and a power."""
    require_priced(bill.prices, bill.counts, bill.design)
    return bill


class Fittings(NamedTuple):
    """What is plugged in where: the item of each node's ports, their number, what a pair takes."""

    item: NDArray[np.object_]  # [n]
    ports: IntArray  # [n]
    fibres: IntArray  # [n] to circuit switches that are no nodes, of `channels` each
    channels: int
    cables: IntArray  # [m]
    transceivers: IntArray  # [m]
    mirrors: IntArray  # [m] ports of circuit switches that its cables pass

    @property
    def counts(self) -> dict[str, int]:
        """Pieces of every item."""
        fibres = int(self.fibres.sum())
        counts = {item: int(self.ports[self.item == item].sum()) for item in ITEMS}
        counts["ocs port"] += int(self.mirrors.sum()) + fibres
        counts["transceiver"] = int(self.transceivers.sum()) + fibres * self.channels
        return counts | {"cable": int(self.cables.sum()) + fibres}


def fittings(t: Topology) -> Fittings:
    """Count the ends of all cables by what they plug into; links of NVSwitches are internal."""
    hardware = np.array(t.device_classes, dtype=object)[t.device_class]
    mirror = ~t.endpoint & (hardware == "ocs")
    fibres, channels, circuits = _fibres(t)
    links = np.where(_inside(t) | circuits, 0, t.multiplicity)
    ends = np.bincount(t.edges.ravel(), weights=np.repeat(links, 2), minlength=t.num_nodes)
    optical = np.broadcast_to(t.edge_attributes.get("optical", np.True_), links.shape)
    passing = links * optical if "optical" in t.edge_attributes else np.zeros_like(links)
    return Fittings(
        item=np.select([t.endpoint, mirror], ["host port", "ocs port"], "switch port").astype(
            object
        ),
        ports=ends.astype(np.int64) + fibres * channels,
        fibres=fibres,
        channels=channels,
        cables=links + passing,
        transceivers=links * optical * (2 - mirror[t.edges].sum(axis=1)),
        mirrors=2 * passing,
    )


def _inside(t: Topology) -> NDArray[np.bool_]:
    """Whether each pair is a link of an NVSwitch."""
    nvswitch = [name == "nvswitch" for name in t.device_classes]
    inner = ~t.endpoint & np.array(nvswitch)[t.device_class]
    return np.asarray(inner[t.edges].any(axis=1))


def _fibres(t: Topology) -> tuple[IntArray, int, NDArray[np.bool_]]:
    """Fibres of each node to circuit switches, channels per fibre, and pairs that circuits join."""
    fibres = np.zeros(t.num_nodes, dtype=np.int64)
    if t.meta.name not in HYBRID:
        return fibres, 1, np.zeros(len(t.edges), dtype=np.bool_)
    group, each, _ = optics(t)
    fibres[group] = each
    circuits = np.asarray(np.isin(t.edges, group).all(axis=1))
    return fibres, int(t.meta.parameters.get("wavelengths", 1)), circuits


def require_priced(prices: UnitPrices, counts: Mapping[str, int], design: str) -> None:
    """Refuse a list that has no price or no power of an item that is needed."""
    for item, field in product(ITEMS, ("cost", "power")):
        if counts[item] and item not in getattr(prices, field):
            raise ValueError(
                f"prices must have the {field} of an {item}, of which {design} takes "
                f"{counts[item]}, "
                f"got {prices.name}, which leaves it out"
            )


def _network(t: Topology, prices: UnitPrices) -> BillOfMaterials:
    """Bill of everything that is plugged in."""
    counts = fittings(t).counts
    return BillOfMaterials(
        design=str(t.meta),
        hosts=max(t.num_hosts, 1),
        internal_links=int(t.multiplicity[_inside(t)].sum()),
        prices=prices,
        **{name: counts[item] for item, name in zip(ITEMS, _COUNTS, strict=True)},
    )


def _helios_core(
    prices: UnitPrices, pods: int, hosts_per_pod: int, **shares: Any
) -> BillOfMaterials:
    """Bill of the core of Helios by the closed form of its study."""
    packet, fibres = uplinks(pods, hosts_per_pod, **shares)
    wavelengths = shares.get("wavelengths", WAVELENGTHS)
    given = ", ".join(f"{name}={shares[name]:g}" for name in ("electrical", "optical"))
    return BillOfMaterials(
        design=f"core of helios({pods=}, {hosts_per_pod=}, {given}, {wavelengths=})",
        hosts=pods * hosts_per_pod,
        switch_ports=pods * packet,
        ocs_ports=pods * fibres,
        host_ports=0,
        transceivers=pods * (2 * packet + fibres * wavelengths),
        cables=pods * (packet + fibres),
        prices=prices,
    )
