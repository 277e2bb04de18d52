"""Networks whose optical circuits are rewired: for demand, for a failed part, for another shape.

Helios joins pods and c-Through racks; both kinds of group are numbered from 0. The builders give
the packet part, `reconfigure` the network with circuits. The cubes of a TPU v4 slice are joined by
circuits alone. Letters of the papers: ``w`` wavelengths that share a fibre of Helios (a superlink).
Every wavelength and every other cable has 400 Gbit/s and no modelled latency.
"""

import math
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from relparallel._checks import require_instance, require_int, require_probability
from relparallel.topology._arrays import IntArray
from relparallel.topology.description import Description, design, planned
from relparallel.topology.designs._shared import nested, tiered, tree_hops
from relparallel.topology.designs.switch_centric import (
    leaf_spine,
    leaf_spine_form,
    leaf_spine_moves,
)
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import LINK_CAPACITY

WAVELENGTHS: Final = 8  # w of the Helios study, as in data/devices.csv
HYBRID: Final = {"helios": "pod switch", "c_through": "tor"}  # what circuits join


class Optics(NamedTuple):
    """What the circuit switches of a hybrid network can do."""

    switches: IntArray
    fibres: int
    capacity: float


def _helios(
    pods: int, hosts_per_pod: int, electrical: float, optical: float, wavelengths: int = WAVELENGTHS
) -> Description:
    core, _ = uplinks(pods, hosts_per_pod, electrical, optical, wavelengths)
    if core == 0:
        raise ValueError(
            f"electrical must be above 0, for the packet core joins all pods, got {electrical}"
        )
    form = leaf_spine_form(pods, core, hosts_per_pod)
    kinds = {"host": "host", "leaf": "pod switch", "spine": "core"}
    return replace(
        form,
        nodes={kinds[kind]: count for kind, count in form.nodes.items()},
        degrees={kinds[kind]: count for kind, count in form.degrees.items()},
    )


def _circuits(t: Topology) -> IntArray:
    """Stripes: light between two switches of one tier."""
    return np.where(t.tier[t.edges[:, 0]] == t.tier[t.edges[:, 1]], 5, 0)


def _helios_sizes(hosts: int) -> list[dict[str, float]]:
    """Half light; large pods, but at least eight of them where there are hosts enough."""
    pod = next((size for size in (1024, 256, 64) if hosts >= 8 * size), 16)
    return [{"pods": round(hosts / pod), "hosts_per_pod": pod, "electrical": 0.5, "optical": 0.5}]


@design(
    closed_form=_helios,
    symmetries=lambda pods, hosts_per_pod, **shares: leaf_spine_moves(
        pods, uplinks(pods, hosts_per_pod, **shares)[0], hosts_per_pod
    ),
    stripes=_circuits,
    sizes=_helios_sizes,
    paper="farrington2010helios",
)
def helios(
    pods: int, hosts_per_pod: int, electrical: float, optical: float, wavelengths: int = WAVELENGTHS
) -> Topology:
    """Packet part of Helios: pod switches, each with a cable to every core switch.

    Parameters
    ----------
    pods, hosts_per_pod : int
        Pods, and hosts on each pod switch, at least 1.
    electrical : float
        Share of a pod's bandwidth that goes to packet core switches, above 0: hosts_per_pod times
        that many uplinks, rounded up to whole bundles of wavelengths; as many core switches.
    optical : float
        Share that goes to optical circuit switches, rounded down to whole bundles; each bundle is a
        fibre.
    wavelengths : int, optional
        Of a fibre, w.

    Returns
    -------
    Topology
        Hosts, pod switches, core switches; no circuits yet. Only switches forward. ``pod`` is -1
        for the core.

    Notes
    -----
    A pod has as many circuits as fibres: hosts_per_pod optical/w. Source: Farrington et al.,
    SIGCOMM 2010, section 3.

    Examples
    --------
    >>> t = helios(pods=4, hosts_per_pod=16, electrical=0.5, optical=0.5)
    >>> t.num_hosts, t.num_switches, t.num_links
    (64, 12, 96)
    """
    form = planned("helios", pods, hosts_per_pod, electrical, optical, wavelengths)
    t = leaf_spine(pods, form.nodes["core"], hosts_per_pod)
    return replace(t, kinds=tuple(form.nodes), meta=form.meta)


def _c_through(aggregations: int, racks_per_aggregation: int, hosts_per_rack: int) -> Description:
    require_int(aggregations=aggregations, racks_per_aggregation=racks_per_aggregation, at_least=1)
    require_int(hosts_per_rack=hosts_per_rack, at_least=1)
    racks = aggregations * racks_per_aggregation
    hosts = racks * hosts_per_rack
    diameter, mean = tree_hops(hosts_per_rack, racks_per_aggregation, aggregations)
    return Description(
        nodes={"host": hosts, "tor": racks, "aggregation": aggregations, "core": 1},
        degrees={
            "host": 1,
            "tor": hosts_per_rack + 1,
            "aggregation": racks_per_aggregation + 1,
            "core": aggregations,
        },
        links=hosts + racks + aggregations,
        diameter=diameter,
        mean_hops=mean,
        host_connectivity=int(hosts > 1),
    )


def _c_through_sizes(hosts: int) -> list[dict[str, int]]:
    rack = min(48, hosts // 4)
    racks = round(hosts / rack)
    groups = round(math.sqrt(racks))
    near = round(racks / groups)
    return [{"aggregations": groups, "racks_per_aggregation": near, "hosts_per_rack": rack}]


@design(
    closed_form=_c_through,
    symmetries=lambda aggregations, racks_per_aggregation, hosts_per_rack: nested(
        "pod rack host, pod rack, pod, core",
        pod=aggregations,
        rack=racks_per_aggregation,
        host=hosts_per_rack,
        core=1,
    ),
    stripes=_circuits,
    sizes=_c_through_sizes,
    paper="wang2010cthrough",
)
def c_through(aggregations: int, racks_per_aggregation: int, hosts_per_rack: int) -> Topology:
    """Packet part of c-Through: a plain tree of one core, aggregation and top-of-rack switches.

    Parameters
    ----------
    aggregations : int
        Aggregation switches on the core switch, at least 1.
    racks_per_aggregation, hosts_per_rack : int
        Top-of-rack switches on each of them, and hosts on each rack, at least 1.

    Returns
    -------
    Topology
        Hosts, top-of-rack switches (``tor``), aggregation switches, the core switch; no circuits
        yet. Only switches forward. ``pod`` is the aggregation switch; -1 for the core.

    Notes
    -----
    Every top-of-rack switch has one port on the circuit switch, so circuits are a matching of
    racks. The tree is oversubscribed by hosts_per_rack at the racks and racks_per_aggregation above
    them. Source: Wang et al., SIGCOMM 2010, section 3.

    Examples
    --------
    >>> t = c_through(aggregations=2, racks_per_aggregation=3, hosts_per_rack=4)
    >>> t.num_hosts, t.num_switches, t.num_links
    (24, 9, 32)
    """
    form = planned("c_through", aggregations, racks_per_aggregation, hosts_per_rack)
    host, tor, above, _ = (np.arange(count) for count in form.nodes.values())
    rack, group = host // hosts_per_rack, tor // racks_per_aggregation
    return tiered(
        form, [rack // racks_per_aggregation, group, above], [rack, group, np.zeros_like(above)]
    )


def optics(topology: Topology) -> Optics:
    """Switches that circuits of a hybrid network join, how many each can have, their capacity."""
    t: Topology = require_instance(Topology, topology=topology)
    require_design(t, *HYBRID)
    switches = np.flatnonzero(t.is_kind(HYBRID[t.meta.name]))
    fibres = uplinks(**t.meta.parameters)[1] if t.meta.name == "helios" else 1
    return Optics(switches, fibres, LINK_CAPACITY * t.meta.parameters.get("wavelengths", 1))


def require_design(t: Topology, *designs: str) -> None:
    """Refuse a network that none of the designs has built."""
    if t.meta.name not in designs:
        raise ValueError(f"topology must be one of the designs {', '.join(designs)}, got {t!r}")


def uplinks(
    pods: int, hosts_per_pod: int, electrical: float, optical: float, wavelengths: int = WAVELENGTHS
) -> tuple[int, int]:
    """Uplinks of a Helios pod to the packet core, and its fibres to circuit switches."""
    require_int(pods=pods, hosts_per_pod=hosts_per_pod, wavelengths=wavelengths, at_least=1)
    require_probability(electrical=electrical, optical=optical)
    if electrical + optical > 1 + 1e-12:
        raise ValueError(f"electrical + optical must be at most 1, got {electrical} + {optical}")
    # a whole number of bundles up to rounding is whole
    bundles, exact = hosts_per_pod / wavelengths, 1e-9
    packet = min(math.ceil(electrical * bundles - exact) * wavelengths, hosts_per_pod)
    return packet, min(
        math.floor(optical * bundles + exact), (hosts_per_pod - packet) // wavelengths
    )
