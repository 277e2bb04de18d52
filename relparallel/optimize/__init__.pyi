from .disjoint_routes import disjoint_routes as disjoint_routes
from .fabric_choice import cheapest_fabric as cheapest_fabric
from .halving import hypar as hypar, tofu as tofu
from .joint_break_even import break_even_rate as break_even_rate
from .joint_plans import joint as joint
from .joint_report import in_degrees as in_degrees
from .maintenance import (
    inspection_interval as inspection_interval,
    replacement_interval as replacement_interval,
)
from .model_switching import switch_plan as switch_plan, switching_time as switching_time
from .nexus import nexus as nexus
from .operator_strategies import (
    OperatorProblem as OperatorProblem,
    anneal_plan as anneal_plan,
    operator_plan as operator_plan,
)
from .partition import throughput_partition as throughput_partition
from .pipelines import alpa as alpa, dapple as dapple, pipedream as pipedream, stanza as stanza
from .redundancy_allocation import (
    redundancy_allocation as redundancy_allocation,
    redundancy_allocations as redundancy_allocations,
)
from .reliable_network import reliable_network as reliable_network
from .replica_placement import ReplicaPlacement as ReplicaPlacement, place_replicas as place_replicas
from .shared_jobs import (
    StatisticalGoodput as StatisticalGoodput,
    modelled_application as modelled_application,
)
from .sharing import share_cluster as share_cluster
from .spare_parts import spares as spares
from .stage_order import stage_order as stage_order
from .stage_split import best_stage_layers as best_stage_layers
from .survivable_augmentation import survivable_augmentation as survivable_augmentation
