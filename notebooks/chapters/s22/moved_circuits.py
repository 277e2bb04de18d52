"""A fabric after its circuits have moved."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relparallel.topology import _arrays
from relparallel.topology._arrays import BoolArray, IntArray
from relparallel.topology.designs.direct import CUBE, on_switches
from relparallel.topology.designs.optical import HYBRID, optics, require_design
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import LINK_CAPACITY


def reconfigure(topology: Topology, matching: Sequence[Sequence[int]]) -> Topology:
    """The network with its optical circuits wired anew; those it has are taken down.

    Of Helios and c-Through ``matching`` has pairs of pods or racks to join, numbered from 0; a pair
    named twice gets two circuits, and a cable for a circuit is w wavelengths wide for Helios. Of
    TPU v4: triples (dimension, i, j) join the last face of cube i along that dimension, chip by
    chip, to the first face of cube j; cubes have the numbers of ``topology.pod``.

    The fibres of a Helios pod send and receive separately, so any choice that respects their number
    is possible (every bipartite graph of degree d is the union of d matchings, by Koenig's
    theorem). The 16 switches of a dimension of a TPU v4 pod each join any last faces to any first
    faces; rings give the torus of the slice, shifted rings a twisted one. Farrington et al.,
    SIGCOMM 2010; Wang et al., SIGCOMM 2010; Jouppi et al., ISCA 2023, section 2.

    >>> from relparallel.topology import c_through
    >>> tree = c_through(aggregations=2, racks_per_aggregation=2, hosts_per_rack=4)
    >>> reconfigure(tree, [(0, 3), (1, 2)]).num_links - tree.num_links
    2
    """
    t = topology
    if t.meta.name == "tpu_v4":
        return _with_faces_joined(t, matching)
    require_design(t, *HYBRID, "tpu_v4")
    group, fibres, capacity = optics(t)
    pairs = _group_pairs(matching, group.size, fibres)
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
        known = f"dimensions 0 to 2 and cubes among {cube.tolist()}"
        raise ValueError(f"matching must name {known}, got {found.tolist()}")
    for end in (1, 2):
        if len(np.unique(found[:, [0, end]], axis=0)) < len(found):
            raise ValueError(f"matching must leave every face in one circuit, got {found.tolist()}")
    joined = [
        [
            chip[np.searchsorted(cube, i)].take(side, axis).ravel()
            for i, side in ((a, CUBE - 1), (b, 0))
        ]
        for axis, a, b in found.tolist()
    ]
    circuits = np.sort(
        np.array(joined, dtype=np.int64).reshape(-1, 2, CUBE**2).swapaxes(1, 2).reshape(-1, 2)
    )
    kept = ~t.edge_attributes["optical"]
    ones = np.ones(len(circuits), dtype=np.int64)
    wired, order = _rewired(t, kept, circuits, ones, LINK_CAPACITY)
    switch = np.repeat(found[:, 0], CUBE**2) * CUBE**2 + np.tile(np.arange(CUBE**2), len(found))
    return on_switches(wired, np.concatenate([np.full(kept.sum(), -1), switch])[order])


def _group_pairs(matching: Sequence[Sequence[int]], groups: int, circuits: int) -> IntArray:
    """Pairs of two different groups, none in more pairs than it has circuits."""
    found = _arrays.integers("matching", matching, -1, 2, at_most=groups - 1)  # type: ignore[arg-type]
    if np.any(found[:, 0] == found[:, 1]):
        raise ValueError(f"matching must join two different groups, got {found.tolist()}")
    if np.bincount(found.ravel(), minlength=groups).max() > circuits:
        raise ValueError(
            f"matching must leave every group at most {circuits} circuits, got {found.tolist()}"
        )
    return found
