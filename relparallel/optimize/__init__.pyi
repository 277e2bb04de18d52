from .cheapest_network import reliable_network as reliable_network
from .joint_plans import joint as joint
from .replica_placement import (
    ReplicaPlacement as ReplicaPlacement,
    place_replicas as place_replicas,
)
