from .conformance import check as check
from .costs import (
    bill_of_materials as bill_of_materials,
    unit_prices as unit_prices,
)
from .description import describe as describe, names as names
from .designs.direct import hammingmesh as hammingmesh, torus as torus, tpu_v4 as tpu_v4
from .designs.finite_geometry import polarfly as polarfly, slim_fly as slim_fly
from .designs.gpu_clusters import nvl72 as nvl72, rail_only as rail_only
from .designs.low_diameter import (
    dragonfly as dragonfly,
    dragonfly_plus as dragonfly_plus,
    hyperx as hyperx,
)
from .designs.modular_cubes import mdcube as mdcube
from .designs.multi_rooted import aspen as aspen, three_tier as three_tier, vl2 as vl2
from .designs.optical import c_through as c_through, helios as helios
from .designs.published_clusters import (
    dgx_superpod as dgx_superpod,
    hpn7 as hpn7,
    meta_roce as meta_roce,
)
from .designs.random_graphs import jellyfish as jellyfish, xpander as xpander
from .designs.server_centric import bcube as bcube, dcell as dcell, ficonn as ficonn
from .designs.switch_centric import f10 as f10, fat_tree as fat_tree, leaf_spine as leaf_spine
from .fabric import Topology as Topology, as_topology as as_topology
from .formats import read as read, write as write
from .parts import Design as Design, SharedRisk as SharedRisk
from .routing import paths as paths
from .symmetry import orbits as orbits
