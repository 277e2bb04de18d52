"""Hybrid networks: a packet-switched tree, and optical circuits that are wired anew for the demand.

Helios joins pods and c-Through racks; both kinds of group are numbered from 0. The builders give the packet
part, `reconfigure` the network with circuits. Letters of the papers: ``w`` wavelengths that share a fibre of
Helios (a superlink). Every wavelength and every other cable has 400 Gbit/s and no modelled latency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from relparallel._checks import (
    require_instance,
    require_int,
    require_probability,
)
from relparallel.topology import _arrays
from relparallel.topology._arrays import IntArray, require_size
from relparallel.topology.description import Description, closed_form, describe
from relparallel.topology.fabric import LINK_CAPACITY, Topology
from relparallel.topology.multi_rooted import tiered, tree_hops
from relparallel.topology.parts import Design
from relparallel.topology.switch_centric import leaf_spine

__all__ = ["Optics", "c_through", "group_pairs", "helios", "optics", "reconfigure"]

_GROUPS = {"helios": "pod switch", "c_through": "tor"}  # what circuits join


class Optics(NamedTuple):
    """What the circuit switches of a hybrid network can do."""

    switches: IntArray
    fibres: int
    capacity: float


def helios(
    pods: int, hosts_per_pod: int, electrical: float, optical: float, wavelengths: int = 8
) -> Topology:
    """Packet part of Helios: pod switches, each with a cable to every core switch.

    Parameters
    ----------
    pods, hosts_per_pod : int
        Pods, and hosts on each pod switch, at least 1.
    electrical : float
        Share of a pod's bandwidth that goes to packet core switches, above 0: hosts_per_pod times that many
        uplinks, rounded up to whole bundles of wavelengths; as many core switches.
    optical : float
        Share that goes to optical circuit switches, rounded down to whole bundles; each bundle is a fibre.
    wavelengths : int, optional
        Of a fibre, w.

    Returns
    -------
    Topology
        Hosts, pod switches, core switches; no circuits yet. Only switches forward. ``pod`` is -1 for the
        core.

    Raises
    ------
    TypeError, ValueError
        If a count is below 1, a share is not in its range, both exceed 1 together, or the network is too
        large to build.

    Notes
    -----
    A pod has as many circuits as fibres: hosts_per_pod optical/w.

    References
    ----------
    Farrington et al., "Helios: a hybrid electrical/optical switch architecture for modular data centers",
    SIGCOMM 2010, section 3.

    Examples
    --------
    >>> t = helios(pods=4, hosts_per_pod=16, electrical=0.5, optical=0.5)
    >>> t.num_hosts, t.num_switches, t.num_links
    (64, 12, 96)
    """
    form = _helios(pods, hosts_per_pod, electrical, optical, wavelengths)
    t = leaf_spine(pods, form.nodes["core"], hosts_per_pod)
    meta = Design(name="helios", parameters=form.parameters, paper="farrington2010helios")
    return replace(t, kinds=tuple(form.nodes), meta=meta)


@closed_form("helios")
def _helios(
    pods: int, hosts_per_pod: int, electrical: float, optical: float, wavelengths: int = 8
) -> Description:
    core, _ = _uplinks(pods, hosts_per_pod, electrical, optical, wavelengths)
    form = describe("leaf_spine", leaves=pods, spines=core, hosts_per_leaf=hosts_per_pod)
    return replace(
        form,
        design="helios",
        parameters={
            "pods": pods,
            "hosts_per_pod": hosts_per_pod,
            "electrical": electrical,
            "optical": optical,
            "wavelengths": wavelengths,
        },
        nodes={"host": form.hosts, "pod switch": pods, "core": core},
        degrees={"host": 1, "pod switch": hosts_per_pod + core, "core": pods},
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
        Hosts, top-of-rack switches (``tor``), aggregation switches, the core switch; no circuits yet. Only
        switches forward. ``pod`` is the aggregation switch; -1 for the core.

    Raises
    ------
    TypeError, ValueError
        If a count is no integer of at least 1, or the network is too large to build.

    Notes
    -----
    Every top-of-rack switch has one port on the circuit switch, so circuits are a matching of racks. The tree
    is oversubscribed by hosts_per_rack at the racks and racks_per_aggregation above them.

    References
    ----------
    Wang et al., "c-Through: part-time optics in data centers", SIGCOMM 2010, section 3.

    Examples
    --------
    >>> t = c_through(aggregations=2, racks_per_aggregation=3, hosts_per_rack=4)
    >>> t.num_hosts, t.num_switches, t.num_links
    (24, 9, 32)
    """
    form = _c_through(aggregations, racks_per_aggregation, hosts_per_rack)
    require_size("aggregations", aggregations, sum(form.nodes.values()) + form.links)
    host, tor, above = (np.arange(form.nodes[kind]) for kind in ("host", "tor", "aggregation"))
    rack, group = host // hosts_per_rack, tor // racks_per_aggregation
    pods = [rack // racks_per_aggregation, group, above]
    return tiered(form, "wang2010cthrough", pods, [rack, group, np.zeros_like(above)])


@closed_form("c_through")
def _c_through(aggregations: int, racks_per_aggregation: int, hosts_per_rack: int) -> Description:
    parameters = {
        "aggregations": aggregations,
        "racks_per_aggregation": racks_per_aggregation,
        "hosts_per_rack": hosts_per_rack,
    }
    require_int(**parameters, at_least=1)
    racks = aggregations * racks_per_aggregation
    hosts = racks * hosts_per_rack
    diameter, mean = tree_hops(hosts_per_rack, racks_per_aggregation, aggregations)
    return Description(
        design="c_through",
        parameters=parameters,
        nodes={"host": hosts, "tor": racks, "aggregation": aggregations, "core": 1},
        degrees={
            "host": 1,
            "tor": hosts_per_rack + 1,
            "aggregation": racks_per_aggregation + 1,
            "core": aggregations,
        },
        links=hosts + racks + aggregations,
        diameter=diameter,
        diameter_bound=diameter,
        mean_hops=mean,
        host_connectivity=int(hosts > 1),
    )


def reconfigure(topology: Topology, matching: Sequence[Sequence[int]]) -> Topology:
    """Wire the optical circuits of a hybrid network anew; those it has are taken down.

    Parameters
    ----------
    topology : Topology
        Built by `helios` or `c_through`, with circuits or without.
    matching : sequence of pairs of int
        Pods or racks to join, numbered from 0; a pair named twice gets two circuits.

    Returns
    -------
    Topology
        The packet part and a cable between the switches of every pair: w wavelengths wide for Helios.

    Raises
    ------
    TypeError, ValueError
        If the topology has no circuit switches, a pair is not one of two different groups, or a group stands
        in more pairs than it has circuits.

    Notes
    -----
    The fibres of a Helios pod send and receive separately, so any choice that respects their number is
    possible (every bipartite graph of degree d is the union of d matchings, by Koenig's theorem).

    References
    ----------
    Farrington et al., SIGCOMM 2010; Wang et al., SIGCOMM 2010.

    Examples
    --------
    >>> tree = c_through(aggregations=2, racks_per_aggregation=2, hosts_per_rack=4)
    >>> reconfigure(tree, [(0, 3), (1, 2)]).num_links - tree.num_links
    2
    """
    t, (group, fibres, capacity) = topology, optics(topology)
    pairs = group_pairs("matching", matching, group.size, fibres)
    kept = ~np.isin(t.edges, group).all(axis=1)
    circuits, parallel = _arrays.merged(group[pairs], t.num_nodes)
    order = np.lexsort(np.concatenate([t.edges[kept], circuits])[:, ::-1].T)
    added = {
        "edges": circuits,
        "multiplicity": parallel,
        "capacity": np.full(len(circuits), capacity),
        "latency": np.zeros(len(circuits)),
    }
    changed: dict[str, Any] = {
        name: np.concatenate([getattr(t, name)[kept], new])[order] for name, new in added.items()
    }
    return replace(t, **changed, edge_attributes={}, shared_risk=())


def optics(topology: Topology) -> Optics:
    """Switches that circuits of a hybrid network join, how many each can have, and their capacity."""
    t: Topology = require_instance(Topology, topology=topology)
    if t.meta.name not in _GROUPS:
        raise ValueError(f"topology must be one of the designs {', '.join(_GROUPS)}, got {t!r}")
    switches = np.flatnonzero(t.is_kind(_GROUPS[t.meta.name]))
    fibres = _uplinks(**t.meta.parameters)[1] if t.meta.name == "helios" else 1
    return Optics(switches, fibres, LINK_CAPACITY * t.meta.parameters.get("wavelengths", 1))


def _uplinks(
    pods: int, hosts_per_pod: int, electrical: float, optical: float, wavelengths: int
) -> tuple[int, int]:
    """Uplinks of a Helios pod to the packet core, and its fibres to circuit switches."""
    require_int(pods=pods, hosts_per_pod=hosts_per_pod, wavelengths=wavelengths, at_least=1)
    require_probability(electrical=electrical, optical=optical)
    if electrical == 0 or electrical + optical > 1 + 1e-12:
        raise ValueError(
            "electrical must be above 0 (the packet core joins all pods) and electrical + optical at most 1, "
            f"got {electrical} and optical={optical}"
        )
    bundles, exact = hosts_per_pod / wavelengths, 1e-9  # a whole number of bundles up to rounding is whole
    packet = min(math.ceil(electrical * bundles - exact) * wavelengths, hosts_per_pod)
    return packet, min(math.floor(optical * bundles + exact), (hosts_per_pod - packet) // wavelengths)


def group_pairs(name: str, pairs: Sequence[Sequence[int]], groups: int, circuits: int | None) -> IntArray:
    """Check pairs of two different groups, none in more pairs than it has circuits."""
    found = _arrays.integers(name, pairs, -1, 2, at_most=groups - 1)  # type: ignore[arg-type]
    if np.any(found[:, 0] == found[:, 1]):
        raise ValueError(f"{name} must join two different groups, got {found.tolist()}")
    used = np.bincount(found.ravel(), minlength=groups)
    if circuits is not None and used.max() > circuits:
        raise ValueError(f"{name} must leave every group at most {circuits} circuits, got {found.tolist()}")
    return found
