"""How a cluster is wired: one pure function per design, and the `Topology` they return."""

from relparallel.topology.conformance import Description, check, describe
from relparallel.topology.direct import torus
from relparallel.topology.fabric import LINK_CAPACITY, Topology
from relparallel.topology.flows import disjoint_paths
from relparallel.topology.interchange import as_topology
from relparallel.topology.parts import Design, SharedRisk
from relparallel.topology.server_centric import bcube, dcell
from relparallel.topology.switch_centric import fat_tree, leaf_spine

__all__ = [
    "LINK_CAPACITY",
    "Description",
    "Design",
    "SharedRisk",
    "Topology",
    "as_topology",
    "bcube",
    "check",
    "dcell",
    "describe",
    "disjoint_paths",
    "fat_tree",
    "leaf_spine",
    "torus",
]
