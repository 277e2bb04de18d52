"""Colours of cables and switches: what kind of thing they are in their design."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.drawing.grids import is_nvswitch, levels, wraps
from relparallel.drawing.groups import clusters
from relparallel.plotting import PALETTE
from relparallel.topology import Topology

IntArray = NDArray[np.int64]

PLAIN: Final = "#9A9A9A"
_STRIPES: Final = (PLAIN, PALETTE["blue"], PALETTE["orange"], PALETTE["purple"], PALETTE["sky"])
_LIGHT, _NVLINK = PALETTE["vermilion"], PALETTE["green"]  # circuits of light; links of an NVSwitch


def cable_colours(t: Topology) -> NDArray[np.str_]:
    """One colour for each cable, by its stripe; circuits and NVLink have their own."""
    stripe = _STRIPE.get(t.meta.name)
    colours = np.array(_STRIPES)[np.zeros(len(t.edges), dtype=np.int64) if stripe is None else stripe(t)]
    colours[is_nvswitch(t)[t.edges].any(axis=1)] = _NVLINK
    light = t.edge_attributes.get("optical")
    if light is not None:
        colours[light] = _LIGHT
    if t.meta.name in ("helios", "c_through"):
        colours[t.tier[t.edges[:, 0]] == t.tier[t.edges[:, 1]]] = _LIGHT
    return np.asarray(colours)


def switch_colours(t: Topology) -> NDArray[np.str_]:
    """One colour for each node: black, NVSwitches green, the quadrics of a PolarFly vermilion."""
    colours = np.where(is_nvswitch(t), _NVLINK, PALETTE["black"])
    if t.meta.name == "polarfly":
        colours[-int(t.meta.parameters["q"]) - 1 :] = _LIGHT
    return np.asarray(colours)


def _apart(t: Topology) -> IntArray:
    """Cables between two groups."""
    return np.asarray(t.pod[t.edges[:, 0]] != t.pod[t.edges[:, 1]], dtype=np.int64)


def _within(t: Topology) -> IntArray:
    """Cables between switches of one subgroup or cluster."""
    group = clusters(t) if t.meta.name == "polarfly" else t.pod
    inside: NDArray[np.bool_] = (group[t.edges[:, 0]] == group[t.edges[:, 1]]) & (
        ~t.endpoint[t.edges].any(axis=1) | t.endpoint.all()
    )
    return inside.astype(np.int64)


def _lines(t: Topology) -> IntArray:
    """Of a HyperX, those along rows and along columns; of a HammingMesh, those to their switches."""
    if t.meta.name == "hammingmesh":
        kind = np.array([0, 1, 2])[t.node_kind]
        return np.asarray(kind[t.edges].max(axis=1))
    dims, first = t.meta.parameters["dims"], t.num_hosts if t.num_switches else 0
    row = (t.edges - first) // dims[-1]
    between = (t.edges >= first).all(axis=1)
    return np.where(between, 1 + (row[:, 0] != row[:, 1]), 0)


def _ab(t: Topology) -> IntArray:
    """Of an F10 tree, cables to the core from pods of type A and of type B."""
    core = t.tier[t.edges[:, 1]] == t.tier.max()
    return np.where(core, 1 + t.pod[t.edges[:, 0]] % 2, 0)


def _doubled(t: Topology) -> IntArray:
    """Of an Aspen tree, the level below which a pod can lose a cable."""
    tolerance = np.array([0, 0, *reversed(t.meta.parameters["fault_tolerance"])])
    return np.asarray(tolerance[t.tier[t.edges].max(axis=1)] > 0, dtype=np.int64)


def _planes(t: Topology) -> IntArray:
    """Of HPN, the plane of the leaf, which alternates."""
    leaf = np.array([kind == "leaf" for kind in t.kinds])[t.node_kind]
    number = np.array(t.labels, dtype=np.int64)[t.edges]
    first = np.array(t.labels, dtype=np.int64)[leaf].min(initial=np.iinfo(np.int64).max)
    return np.where(
        leaf[t.edges].any(axis=1), 1 + np.where(leaf[t.edges], number - first, 0).sum(axis=1) % 2, 0
    )


def _rails(t: Topology) -> IntArray:
    """Rail of a cable where there are at most four, else whether it is the first."""
    rail = t.rail[t.edges].max(axis=1)
    return np.where(rail >= 0, rail + 1, 0) if t.rail.max() < 4 else (rail == 0).astype(np.int64)


_STRIPE: Final[Mapping[str, Callable[[Topology], IntArray]]] = {
    "aspen": _doubled,
    "bcube": levels,
    "dcell": levels,
    "dgx_superpod": lambda t: (t.rail[t.edges].max(axis=1) == 0).astype(np.int64),
    "dragonfly": _apart,
    "dragonfly_plus": _apart,
    "f10": _ab,
    "ficonn": levels,
    "hammingmesh": _lines,
    "hpn7": _planes,
    "hyperx": _lines,
    "mdcube": _apart,
    "nvl72": _rails,
    "polarfly": _within,
    "rail_only": _rails,
    "slim_fly": _within,
    "torus": lambda t: wraps(t).astype(np.int64),
    "tpu_v4": lambda t: wraps(t).astype(np.int64),
}
