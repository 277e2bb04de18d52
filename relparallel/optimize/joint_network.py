"""A network under a job: how fast it lets strategies be, what losing its parts does, what it costs.

What a lost part leaves of the bandwidth depends on the degrees alone and is found once for each;
what that does to the step depends on the whole strategy and is priced row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.parallel.prices import Pricing
from relparallel.parallel.quantities import Split
from relparallel.parallel.strategy import DEGREES
from relparallel.topology import Topology
from relparallel.training import ComponentClass
from relparallel.training.network_failures import NetworkImpact, WiredJob
from relparallel.training.network_parts import NetworkPart, parts_of
from relparallel.units import GBIT

_PORT: Final = 400 * GBIT  # what a port, cable and transceiver of the price list "ndr2024" carry
_SAMPLES: Final = 2  # as `network_impact`

Vector = dict[str, float]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Wiring:
    """A network and the job on it."""

    network: Topology
    job: Cluster
    costs: Pricing
    rates: Mapping[str, float]
    order: tuple[str, ...] = DEGREES
    _left: dict[tuple[int, ...], tuple[tuple[NetworkPart, ...], list[Vector]]] = field(
        default_factory=dict
    )

    def scaled(self, factor: float) -> Wiring:
        """All rates times a factor; what has been found out about the network is kept."""
        return replace(self, rates={name: factor * rate for name, rate in self.rates.items()})

    def classes(self, strategy: Strategy) -> tuple[ComponentClass, ...]:
        """What fails in the network under a strategy."""
        if not any(self.rates.values()):
            return ()
        degrees = (strategy.tensor, strategy.pipeline, strategy.data, strategy.context)
        if degrees not in self._left:
            self._left[degrees] = self._bandwidths(strategy)
        parts, vectors = self._left[degrees]
        time = self._times(strategy, vectors)
        slowed = np.maximum(time / time[0], 1.0).tolist()
        priced = tuple(replace(part, slowdown=slowed[round(part.slowdown) - 1]) for part in parts)
        found = NetworkImpact(parts=priced, step=float(time[0]))
        known = {part.name for part in priced}
        rates = {name: rate for name, rate in self.rates.items() if name in known}
        return found.component_classes(rates, self.job)

    def _bandwidths(self, strategy: Strategy) -> tuple[tuple[NetworkPart, ...], list[Vector]]:
        """What each kind of part takes; as its slowdown the number of what is left, from 1 on."""
        numbers: dict[tuple[float, ...], float] = {}
        vectors: list[Vector] = []

        def number(has: Vector) -> float:
            usual = vectors[0] if vectors else has
            # sums in any order
            key = tuple(round(_over(has[name], usual[name]), 9) for name in has)
            if key not in numbers:
                vectors.append(dict(has))
                numbers[key] = float(len(vectors))
            return numbers[key]

        job = WiredJob.of(
            Placement(strategy=strategy, order=self.order), self.job, self.network, number
        )
        named = [part for part in parts_of(self.network) if self.rates.get(part.name)]
        parts = job.kinds(named, _SAMPLES)
        return parts, [{name: _over(job.usual[name], has[name]) for name in has} for has in vectors]

    def _times(self, strategy: Strategy, vectors: list[Vector]) -> NDArray[np.float64]:
        """Step of one strategy, for each vector of factors by which its groups are slower."""
        slow = {name: np.array([vector[name] for vector in vectors]) for name in vectors[0]}
        time = self.costs.time(Split.of(strategy, self.costs.global_batch), slow)
        return np.broadcast_to(time, len(vectors))


def _over(one: float, other: float) -> float:
    """Ratio of two bandwidths, 1 where nothing limits either."""
    return 1.0 if one == other else one / other


def part_rates(
    network: Topology, given: Mapping[str, float], named: Iterable[str] | None = None
) -> dict[str, float]:
    """Rates by name of the part, of rates by name or by kind.

    "cable" stands for every cable outside servers, "switch" for packet switches; parts inside a
    server (cards, NVSwitches and their cables) stand in the failure table of the servers.
    """
    kind, ends = np.array(network.kinds), np.sort(network.node_kind[network.edges], axis=1)
    joined = np.unique(ends[_outside(network)], axis=0).tolist()
    hardware = np.array(network.device_classes, dtype=object)[network.device_class]
    packet = np.unique(
        kind[network.node_kind[~network.endpoint & (hardware == "switch") & ~_card(network)]]
    )
    spelled = {
        "cable": [f"{kind[low]}-{kind[high]} cable" for low, high in joined],
        "switch": packet.tolist(),
    }
    rates = {name: rate for key, rate in given.items() for name in spelled.get(key, ())}
    known = {part.name for part in parts_of(network)}
    return rates | {name: rate for name, rate in given.items() if name in known}


def network_price(network: Topology) -> float:
    """Of everything outside the servers [USD], at the prices of 400 Gbit/s equipment ("ndr2024").

    A link of another speed counts as so many of 400 Gbit/s: bundles, or ports that are split.
    """
    from relparallel.topology.costs import fittings, unit_prices  # loads every design

    prices, found = unit_prices("ndr2024").cost, fittings(network)
    item = np.where(_card(network), "host port", found.item)
    port = np.array([prices.get(name, np.nan) for name in item])
    each = port[network.edges].sum(axis=1) + prices["cable"]
    each = each * found.cables + prices["transceiver"] * found.transceivers
    outside = _outside(network)
    if np.isnan(each[outside]).any():
        raise ValueError(f"network must be built of what the list ndr2024 prices, got {network!r}")
    return float((each * network.capacity / _PORT)[outside].sum())


def _card(t: Topology) -> NDArray[np.bool_]:
    """Nodes that are network cards."""
    return np.asarray(np.array(t.kinds)[t.node_kind] == "nic")


def _outside(t: Topology) -> NDArray[np.bool_]:
    """Pairs of joined nodes that are not inside one server."""
    card, kind = _card(t), np.array(t.kinds)[t.node_kind]
    inside = (kind[t.edges] == "nvswitch").any(axis=1)
    own = card[t.edges].any(axis=1) & t.endpoint[t.edges].any(axis=1)
    return np.asarray(~(inside | own))
