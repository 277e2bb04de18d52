"""One valid call of what networks, degraded states and stragglers do to training; see `valid_calls`."""

from collections.abc import Callable
from functools import cache
from typing import Any

from valid_workload import Arguments, fields, model

import relparallel as rp


def parts() -> Any:
    return (rp.training.RepairableParts(name="leaf", count=4, rate=1e-6, repair=1e4, slowdown=1.5),)


def split() -> Any:
    return rp.parallel.Strategy(tensor=2, data=2)


@cache
def fabric() -> Any:
    return rp.topology.leaf_spine(leaves=2, spines=2, hosts_per_leaf=2)


CALLS: dict[str, Callable[[], Arguments]] = {
    "training.RepairableParts": lambda: fields(parts()[0]),
    "training.expected_speed": lambda: {
        "parts": parts(), "speed": None, "remainder": 1e-9, "most": 100,
    },
    "training.expected_speed of a function": lambda: {
        "parts": parts(), "speed": lambda down: 1 - 0.1 * down[0], "remainder": 1e-9, "most": 100,
    },
    "training.failure_model": lambda: {
        "topology": fabric(), "strategy": split(), "placement": rp.parallel.Placement(strategy=split()),
        "rates": "llama3", "workload": model(), "cluster": rp.hardware.cluster("a100-80gb-selene", gpus=4),
        "global_batch": 8, "network_rates": {"leaf": 1e-9, "cable": 2e-9}, "repair": 3600.0,
    },
    "training.failure_model (plan)": lambda: {
        "topology": (t := fabric()), "strategy": split(),
        "cluster": rp.hardware.cluster("a100-80gb-selene", gpus=4), "plan": rp.parallel.plan_rounds(
            rp.parallel.ring_all_reduce(4, 4), t
        ),
    },
    "training.joint_loss_rate": lambda: {"groups": 3, "copies": 2, "rate": 1e-6, "repair": 1e4},
    "training.network_impact": lambda: {
        "model": model(), "placement": rp.parallel.Placement(strategy=split()),
        "cluster": rp.hardware.cluster("a100-80gb-selene", gpus=4), "global_batch": 8, "network": fabric(),
        "software": "megatron-2022", "samples": 2,
    },
    "training.noise_slowdown": lambda: {
        "strategy": split(), "variation": 0.01, "micro_batches": 4, "sections": 8, "law": "normal",
    },
    "training.pipeline_slowdown": lambda: {
        "slow_stages": 1, "stages": 4, "micro_batches": 8, "factor": 1.1,
    },
    "training.published_network_rates": dict,
    "training.redundant_fabric": lambda: {
        "servers": 4, "rails": 2, "planes": 2, "gpus": 4, "servers_per_leaf": 2, "spines": 2, "card": 5e10,
        "nvlink": 4e11, "relay": True, "oversubscription": 2.0,
    },
    "training.rewired": lambda: {
        "model": rp.training.failure_model(fabric(), split(), cluster=rp.hardware.cluster(
            "a100-80gb-selene", gpus=4), repair=3600.0), "time": 60.0, "spares": 1, "fixed": ("nic",),
    },
    "training.slice_availability": lambda: {
        "slices": 3, "cubes_per_slice": 16, "host_up": 0.99, "cubes": 64, "hosts_per_cube": 16,
        "switched": True,
    },
    "training.slow_ranks": lambda: {
        "strategy": split(), "probability": 0.1, "factor": 1.5, "micro_batches": 4,
    },
    "training.usable_fraction": lambda: {
        "cubes_per_slice": 16, "host_up": 0.99, "cubes": 64, "hosts_per_cube": 16, "switched": True,
    },
}  # fmt: skip
MEANINGFUL: dict[str, dict[str, set[str]]] = {
    "training.network_impact": {"samples": {"none"}},  # all parts
    "training.rewired": {"fixed": {"empty"}},
    "training.RepairableParts": {"name": {"text"}, "slowdown": {"infinite"}},
}
