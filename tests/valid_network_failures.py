"""A valid call of what networks, degraded states, stragglers do to training; see `valid_calls`."""

from collections.abc import Callable
from functools import cache
from typing import Any

import relparallel as rp
from valid_workload import Arguments, model


def split() -> Any:
    return rp.parallel.Strategy(tensor=2, data=2)


@cache
def fabric() -> Any:
    return rp.topology.leaf_spine(leaves=2, spines=2, hosts_per_leaf=2)


CALLS: dict[str, Callable[[], Arguments]] = {
    "training.failure_model": lambda: {
        "topology": fabric(),
        "strategy": split(),
        "placement": rp.parallel.Placement(strategy=split()),
        "rates": "llama3",
        "workload": model(),
        "cluster": rp.hardware.cluster("a100-80gb-selene", gpus=4),
        "global_batch": 8,
        "network_rates": {"leaf": 1e-9, "cable": 2e-9},
        "repair": 3600.0,
        "software": "megatron-2022",
    },
    "training.failure_model (plan)": lambda: {
        "topology": (t := fabric()),
        "strategy": split(),
        "cluster": rp.hardware.cluster("a100-80gb-selene", gpus=4),
        "plan": rp.parallel.plan_rounds(rp.parallel.ring_all_reduce(4, 4), t),
    },
    "training.network_impact": lambda: {
        "model": model(),
        "placement": rp.parallel.Placement(strategy=split()),
        "cluster": rp.hardware.cluster("a100-80gb-selene", gpus=4),
        "global_batch": 8,
        "network": fabric(),
        "software": "megatron-2022",
        "samples": 2,
    },
    "training.needed": lambda: {
        "strategy": split(),
        "network": fabric(),
        "model": model(),
        "cluster": rp.hardware.cluster("a100-80gb-selene", gpus=4),
        "global_batch": 8,
        "lost": 2,
        "software": "megatron-2022",
        "samples": 2,
    },
    "training.needed (bounds)": lambda: {
        "strategy": rp.parallel.Placement(strategy=split()),
        "network": fabric(),
    },
    "training.published_network_rates": dict,
    "training.redundant_fabric": lambda: {
        "servers": 4,
        "rails": 2,
        "planes": 2,
        "gpus": 4,
        "servers_per_leaf": 2,
        "spines": 2,
        "card": 5e10,
        "nvlink": 4e11,
        "relay": True,
        "oversubscription": 2.0,
    },
}
MEANINGFUL: dict[str, dict[str, set[str]]] = {
    "training.needed": {"samples": {"none"}},  # all parts
    "training.network_impact": {"samples": {"none"}},
}
