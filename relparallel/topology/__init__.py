"""How a cluster is wired: one pure function per design, and the `Topology` they return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relparallel._lazy import offered

if TYPE_CHECKING:
    from relparallel.topology.circuits import CircuitSchedule, schedule_circuits
    from relparallel.topology.conformance import check
    from relparallel.topology.costs import BillOfMaterials, bill_of_materials
    from relparallel.topology.description import Description, describe, names
    from relparallel.topology.direct import hammingmesh, torus, tpu_v4
    from relparallel.topology.equipment import equipped, mean_lives, mean_repair
    from relparallel.topology.fabric import LINK_CAPACITY, Topology
    from relparallel.topology.failures import Scenarios, sample_failures
    from relparallel.topology.finite_geometry import polarfly, slim_fly
    from relparallel.topology.flows import disjoint_paths
    from relparallel.topology.formats import (
        lint_simai,
        read_graphml,
        read_simai,
        write_booksim,
        write_graphml,
        write_htsim,
        write_ns3,
        write_simai,
    )
    from relparallel.topology.gpu_clusters import nvl72, rail_only
    from relparallel.topology.growing import grow
    from relparallel.topology.interchange import as_topology
    from relparallel.topology.low_diameter import dragonfly, dragonfly_plus, hyperx
    from relparallel.topology.multi_rooted import aspen, three_tier, vl2
    from relparallel.topology.optical import c_through, helios, reconfigure
    from relparallel.topology.parts import Design, SharedRisk
    from relparallel.topology.prices import UnitPrices, unit_prices
    from relparallel.topology.published_clusters import dgx_superpod, hpn7, meta_roce
    from relparallel.topology.random_graphs import jellyfish, xpander
    from relparallel.topology.risks import racks, with_power_domains
    from relparallel.topology.routing import (
        bcube_paths,
        dcell_route,
        ecmp_paths,
        ficonn_route,
        up_down_paths,
        vl2_route,
    )
    from relparallel.topology.server_centric import bcube, dcell, ficonn, mdcube
    from relparallel.topology.switch_centric import f10, fat_tree, leaf_spine
    from relparallel.topology.symmetry import arc_orbits, automorphisms, is_automorphism, orbits

__all__ = [
    "LINK_CAPACITY",
    "BillOfMaterials",
    "CircuitSchedule",
    "Description",
    "Design",
    "Scenarios",
    "SharedRisk",
    "Topology",
    "UnitPrices",
    "arc_orbits",
    "as_topology",
    "aspen",
    "automorphisms",
    "bcube",
    "bcube_paths",
    "bill_of_materials",
    "c_through",
    "check",
    "dcell",
    "dcell_route",
    "describe",
    "dgx_superpod",
    "disjoint_paths",
    "dragonfly",
    "dragonfly_plus",
    "ecmp_paths",
    "equipped",
    "f10",
    "fat_tree",
    "ficonn",
    "ficonn_route",
    "grow",
    "hammingmesh",
    "helios",
    "hpn7",
    "hyperx",
    "is_automorphism",
    "jellyfish",
    "leaf_spine",
    "lint_simai",
    "mdcube",
    "mean_lives",
    "mean_repair",
    "meta_roce",
    "names",
    "nvl72",
    "orbits",
    "polarfly",
    "racks",
    "rail_only",
    "read_graphml",
    "read_simai",
    "reconfigure",
    "sample_failures",
    "schedule_circuits",
    "slim_fly",
    "three_tier",
    "torus",
    "tpu_v4",
    "unit_prices",
    "up_down_paths",
    "vl2",
    "vl2_route",
    "with_power_domains",
    "write_booksim",
    "write_graphml",
    "write_htsim",
    "write_ns3",
    "write_simai",
    "xpander",
]

__getattr__, __dir__ = offered(
    __name__,
    {
        "circuits": ("CircuitSchedule", "schedule_circuits"),
        "conformance": ("check",),
        "costs": ("BillOfMaterials", "bill_of_materials"),
        "description": ("Description", "describe", "names"),
        "direct": ("hammingmesh", "torus", "tpu_v4"),
        "equipment": ("equipped", "mean_lives", "mean_repair"),
        "fabric": ("LINK_CAPACITY", "Topology"),
        "failures": ("Scenarios", "sample_failures"),
        "finite_geometry": ("polarfly", "slim_fly"),
        "flows": ("disjoint_paths",),
        "formats": (
            "lint_simai",
            "read_graphml",
            "read_simai",
            "write_booksim",
            "write_graphml",
            "write_htsim",
            "write_ns3",
            "write_simai",
        ),
        "gpu_clusters": ("nvl72", "rail_only"),
        "growing": ("grow",),
        "interchange": ("as_topology",),
        "low_diameter": ("dragonfly", "dragonfly_plus", "hyperx"),
        "multi_rooted": ("aspen", "three_tier", "vl2"),
        "optical": ("c_through", "helios", "reconfigure"),
        "parts": ("Design", "SharedRisk"),
        "prices": ("UnitPrices", "unit_prices"),
        "published_clusters": ("dgx_superpod", "hpn7", "meta_roce"),
        "random_graphs": ("jellyfish", "xpander"),
        "risks": ("racks", "with_power_domains"),
        "routing": ("bcube_paths", "dcell_route", "ecmp_paths", "ficonn_route", "up_down_paths", "vl2_route"),
        "server_centric": ("bcube", "dcell", "ficonn", "mdcube"),
        "switch_centric": ("f10", "fat_tree", "leaf_spine"),
        "symmetry": ("arc_orbits", "automorphisms", "is_automorphism", "orbits"),
    },
)
