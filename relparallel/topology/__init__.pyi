from .circuits import CircuitSchedule as CircuitSchedule, schedule_circuits as schedule_circuits
from .conformance import check as check
from .costs import BillOfMaterials as BillOfMaterials, bill_of_materials as bill_of_materials
from .description import Description as Description, describe as describe, names as names
from .designs.direct import hammingmesh as hammingmesh, torus as torus, tpu_v4 as tpu_v4
from .designs.finite_geometry import polarfly as polarfly, slim_fly as slim_fly
from .designs.gpu_clusters import nvl72 as nvl72, rail_only as rail_only
from .designs.low_diameter import dragonfly as dragonfly, dragonfly_plus as dragonfly_plus, hyperx as hyperx
from .designs.mdcube import mdcube as mdcube
from .designs.multi_rooted import aspen as aspen, three_tier as three_tier, vl2 as vl2
from .designs.optical import c_through as c_through, helios as helios, reconfigure as reconfigure
from .designs.published_clusters import dgx_superpod as dgx_superpod, hpn7 as hpn7, meta_roce as meta_roce
from .designs.random_graphs import jellyfish as jellyfish, xpander as xpander
from .designs.server_centric import bcube as bcube, dcell as dcell, ficonn as ficonn
from .designs.switch_centric import f10 as f10, fat_tree as fat_tree, leaf_spine as leaf_spine
from .equipment import equipped as equipped, mean_lives as mean_lives, mean_repair as mean_repair
from .fabric import LINK_CAPACITY as LINK_CAPACITY, Topology as Topology
from .failures import Scenarios as Scenarios, sample_failures as sample_failures
from .flows import disjoint_paths as disjoint_paths
from .formats import (
    lint_simai as lint_simai,
    read_graphml as read_graphml,
    read_simai as read_simai,
    write_booksim as write_booksim,
    write_graphml as write_graphml,
    write_htsim as write_htsim,
    write_ns3 as write_ns3,
    write_simai as write_simai,
)
from .interchange import as_topology as as_topology
from .parts import Design as Design, SharedRisk as SharedRisk
from .prices import UnitPrices as UnitPrices, unit_prices as unit_prices
from .risks import racks as racks, with_power_domains as with_power_domains
from .routing import (
    bcube_paths as bcube_paths,
    dcell_route as dcell_route,
    ecmp_paths as ecmp_paths,
    ficonn_route as ficonn_route,
    up_down_paths as up_down_paths,
    vl2_route as vl2_route,
)
from .symmetry import (
    arc_orbits as arc_orbits,
    automorphisms as automorphisms,
    is_automorphism as is_automorphism,
    orbits as orbits,
    refine_colours as refine_colours,
)
