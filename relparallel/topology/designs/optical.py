"""Networks whose optical circuits are wired anew: for the demand, for a failed part, for another shape.

Helios joins pods and c-Through racks; both kinds of group are numbered from 0. The builders give the packet
part, `reconfigure` the network with circuits. The cubes of a TPU v4 slice are joined by circuits alone.
Letters of the papers: ``w`` wavelengths that share a fibre of Helios (a superlink). Every wavelength and
every other cable has 400 Gbit/s and no modelled latency.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from relparallel._checks import require_instance, require_int, require_probability
from relparallel.topology import _arrays
from relparallel.topology._arrays import BoolArray, IntArray
from relparallel.topology.description import Description, design, planned
from relparallel.topology.designs._shared import nested, tiered, tree_hops
from relparallel.topology.designs.direct import CUBE, on_switches
from relparallel.topology.designs.switch_centric import leaf_spine, leaf_spine_form, leaf_spine_moves
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
        raise ValueError(f"electrical must be above 0, for the packet core joins all pods, got {electrical}")
    form = leaf_spine_form(pods, core, hosts_per_pod)
    kinds = {"host": "host", "leaf": "pod switch", "spine": "core"}
    return replace(
        form,
        nodes={kinds[kind]: count for kind, count in form.nodes.items()},
        degrees={kinds[kind]: count for kind, count in form.degrees.items()},
    )


@design(
    closed_form=_helios,
    symmetries=lambda pods, hosts_per_pod, **shares: leaf_spine_moves(
        pods, uplinks(pods, hosts_per_pod, **shares)[0], hosts_per_pod
    ),
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

    Notes
    -----
    A pod has as many circuits as fibres: hosts_per_pod optical/w. Source: Farrington et al., SIGCOMM 2010,
    section 3.

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


@design(
    closed_form=_c_through,
    symmetries=lambda aggregations, racks_per_aggregation, hosts_per_rack: nested(
        "pod rack host, pod rack, pod, core",
        pod=aggregations, rack=racks_per_aggregation, host=hosts_per_rack, core=1,
    ),
    paper="wang2010cthrough",
)  # fmt: skip
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

    Notes
    -----
    Every top-of-rack switch has one port on the circuit switch, so circuits are a matching of racks. The tree
    is oversubscribed by hosts_per_rack at the racks and racks_per_aggregation above them. Source: Wang et
    al., SIGCOMM 2010, section 3.

    Examples
    --------
    >>> t = c_through(aggregations=2, racks_per_aggregation=3, hosts_per_rack=4)
    >>> t.num_hosts, t.num_switches, t.num_links
    (24, 9, 32)
    """
    form = planned("c_through", aggregations, racks_per_aggregation, hosts_per_rack)
    host, tor, above, _ = (np.arange(count) for count in form.nodes.values())
    rack, group = host // hosts_per_rack, tor // racks_per_aggregation
    return tiered(form, [rack // racks_per_aggregation, group, above], [rack, group, np.zeros_like(above)])


def reconfigure(topology: Topology, matching: Sequence[Sequence[int]]) -> Topology:
    """Wire the optical circuits of a network anew; those it has are taken down.

    Parameters
    ----------
    topology : Topology
        Built by `helios`, `c_through` or `tpu_v4`, with circuits or without.
    matching : sequence of int, pairs or triples
        Helios and c-Through: pairs of pods or racks to join, numbered from 0; a pair named twice gets two
        circuits. TPU v4: triples (dimension, i, j) join the last face of cube i along that dimension, chip by
        chip, to the first face of cube j; cubes have the numbers of ``topology.pod``.

    Returns
    -------
    Topology
        The other cables as they were, and a cable for every circuit: w wavelengths wide for Helios.

    Notes
    -----
    The fibres of a Helios pod send and receive separately, so any choice that respects their number is
    possible (every bipartite graph of degree d is the union of d matchings, by Koenig's theorem). The 16
    switches of a dimension of a TPU v4 pod each join any last faces to any first faces; rings give the torus
    of the slice, shifted rings a twisted one. Source: Farrington et al., SIGCOMM 2010; Wang et al., SIGCOMM
    2010; Jouppi et al., ISCA 2023, section 2.

    Examples
    --------
    >>> tree = c_through(aggregations=2, racks_per_aggregation=2, hosts_per_rack=4)
    >>> reconfigure(tree, [(0, 3), (1, 2)]).num_links - tree.num_links
    2
    """
    t: Topology = require_instance(Topology, topology=topology)
    if t.meta.name == "tpu_v4":
        return _with_faces_joined(t, matching)
    _require_design(t, *HYBRID, "tpu_v4")
    group, fibres, capacity = optics(t)
    pairs = group_pairs("matching", matching, group.size, fibres)
    circuits, parallel = _arrays.merged(group[pairs], t.num_nodes)
    kept = np.asarray(~np.isin(t.edges, group).all(axis=1))
    wired, _ = _rewired(t, kept, circuits, parallel, capacity)
    return replace(wired, edge_attributes={}, shared_risk=())


def _rewired(
    t: Topology, kept: BoolArray, circuits: IntArray, parallel: IntArray, capacity: float
) -> tuple[Topology, IntArray]:
    """Network with the kept cables and the circuits, and the order in which these now stand."""
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
    changed |= {"edge_attributes": {}, "shared_risk": ()}  # both name cables by place
    return replace(t, **changed), order


def _with_faces_joined(t: Topology, matching: Sequence[Sequence[int]]) -> Topology:
    """TPU v4 slice whose cubes are joined face to face as told."""
    found = _arrays.integers("matching", matching, -1, 3)  # type: ignore[arg-type]
    cube, place = np.unique(t.pod, return_inverse=True)
    within = np.stack(np.unravel_index(np.arange(t.num_nodes), t.meta.parameters["dims"])) % CUBE
    chip = np.lexsort((*within[::-1], place)).reshape(cube.size, CUBE, CUBE, CUBE)
    if np.any(found[:, 0] > 2) or not np.isin(found[:, 1:], cube).all():
        raise ValueError(
            f"matching must name dimensions 0 to 2 and cubes among {cube.tolist()}, got {found.tolist()}"
        )
    for end in (1, 2):
        if len(np.unique(found[:, [0, end]], axis=0)) < len(found):
            raise ValueError(f"matching must leave every face in one circuit, got {found.tolist()}")
    joined = [
        [chip[np.searchsorted(cube, i)].take(side, axis).ravel() for i, side in ((a, CUBE - 1), (b, 0))]
        for axis, a, b in found.tolist()
    ]
    circuits = np.sort(np.array(joined, dtype=np.int64).reshape(-1, 2, CUBE**2).swapaxes(1, 2).reshape(-1, 2))
    kept = ~t.edge_attributes["optical"]
    ones = np.ones(len(circuits), dtype=np.int64)
    wired, order = _rewired(t, kept, circuits, ones, LINK_CAPACITY)
    switch = np.repeat(found[:, 0], CUBE**2) * CUBE**2 + np.tile(np.arange(CUBE**2), len(found))
    return on_switches(wired, np.concatenate([np.full(kept.sum(), -1), switch])[order])


def optics(topology: Topology) -> Optics:
    """Switches that circuits of a hybrid network join, how many each can have, and their capacity."""
    t: Topology = require_instance(Topology, topology=topology)
    _require_design(t, *HYBRID)
    switches = np.flatnonzero(t.is_kind(HYBRID[t.meta.name]))
    fibres = uplinks(**t.meta.parameters)[1] if t.meta.name == "helios" else 1
    return Optics(switches, fibres, LINK_CAPACITY * t.meta.parameters.get("wavelengths", 1))


def _require_design(t: Topology, *designs: str) -> None:
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
