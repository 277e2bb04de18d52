"""Notebook 12: redundancy, spares, maintenance, second routes and fabrics, chosen with a proof."""

from chapters.s12.components import component_table as component_table
from chapters.s12.disjoint_routes import disjoint_routes as disjoint_routes
from chapters.s12.equipment import (
    equipped as equipped,
    mean_lives as mean_lives,
    mean_repair as mean_repair,
)
from chapters.s12.fabric_choice import cheapest_fabric as cheapest_fabric
from chapters.s12.maintenance import (
    inspection_interval as inspection_interval,
    replacement_interval as replacement_interval,
)
from chapters.s12.redundancy_allocation import (
    redundancy_allocation as redundancy_allocation,
    redundancy_allocations as redundancy_allocations,
)
from chapters.s12.spare_parts import spares as spares
from chapters.s12.survivable_augmentation import (
    survivable_augmentation as survivable_augmentation,
)
