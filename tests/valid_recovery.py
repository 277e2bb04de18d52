"""One valid call of what `training` offers on recovery; see `valid_calls`."""

from collections.abc import Callable

from relparallel.training import SharedEvents
from valid_workload import Arguments

TWOS = SharedEvents(sizes=(0.9, 0.1))
CALLS: dict[str, Callable[[], Arguments]] = {
    "training.JobShape": lambda: {
        "nodes": 64,
        "gpus_per_node": 8,
        "replicas": 4,
        "stages": 16,
        "tensor": 8,
        "nodes_per_replica": 16,
        "stages_per_node": 1,
    },
    "training.Recovery": lambda: {
        "policy": "elastic",
        "repair": 86400.0,
        "restart": 300.0,
        "pause": 30.0,
        "timeout": 600.0,
        "meeting": 5.0,
        "batch": "keep",
        "micro_batches": 8,
    },
    "training.Recovery bamboo": lambda: {"policy": "bamboo", "repair": 60.0, "overhead": 0.1},
    "training.Recovery oobleck": lambda: {
        "policy": "oobleck",
        "repair": 60.0,
        "smallest": 4,
        "largest": 7,
        "faults": 1,
        "layers": 32,
    },
    "training.Recovery recycle": lambda: {
        "policy": "recycle",
        "repair": 60.0,
        "micro_batches": 8,
        "bubble": 0.5,
    },
    "training.Recovery reduced": lambda: {
        "policy": "reduced_tensor",
        "repair": 60.0,
        "partial": 0.5,
        "divisor": True,
        "boost": 1.1,
    },
    "training.Recovery shards": lambda: {"policy": "spare_shards", "repair": 60.0, "holders": 3},
    "training.shortage_probability": lambda: {
        "nodes": 64,
        "spares": 2,
        "node_rate": 4e-8,
        "repair": 86400.0,
        "kind": "cold",
        "crews": 2,
    },
    "training.shortage_probability of shared events": lambda: {
        "nodes": 64,
        "spares": 2,
        "node_rate": 4e-8,
        "repair": 86400.0,
        "kind": "hot",
        "source": TWOS,
    },
    "training.spares_needed": lambda: {
        "nodes": 64,
        "node_rate": 4e-8,
        "repair": 86400.0,
        "shortage": 1e-3,
        "kind": "cold",
        "crews": 2,
    },
    "training.spares_needed of shared events": lambda: {
        "nodes": 64,
        "node_rate": 4e-8,
        "repair": 86400.0,
        "shortage": 1e-3,
        "kind": "hot",
        "source": TWOS,
    },
}
