"""Calls in reliability and parallel, with another value of every optional argument."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

import relparallel as rp
from chapters.s37.fusion import merge_gradients
from relparallel.hardware import cluster
from relparallel.parallel import Placement, Strategy, StrategyGrid, calibration
from relparallel.training import (
    redundant_fabric,
)
from valid_ordering import chain


class Case(NamedTuple):
    """A valid call; other values of optional arguments, of a mapping with what they need."""

    function: str
    base: Mapping[str, Any]
    others: Mapping[str, Any]
    shown: Callable[[Any], Any] = lambda found: found


class Needs(NamedTuple):
    """A value of an optional argument that goes with another value of a required one."""

    value: Any
    required: Mapping[str, Any]


def without(others: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {one: value for one, value in others.items() if one != name}


# reliability
RING = nx.cycle_graph(5)
RING.add_edge(0, 2)
TORUS = rp.topology.torus((3, 4))
CHANCES = {
    "terminals": (1, 4),
    "link_up": 0.8,
    "node_up": 0.9,
    "link_down": 0.15,
    "node_down": 0.05,
}
UP, DOWN = {"link_up": 0.9, "node_up": 0.95}, {"link_down": 0.1, "node_down": 0.02}
EVALUATE = {
    **CHANCES,
    "method": "bounds",
    "groups": [([1, (2, 3)], 0.1)],
    "max_states": 1,
    "max_seconds": 1e-7,
}
BOUNDS = {**CHANCES, "method": "auto", "rtol": 0.2, "max_states": 200, "max_steps": 10**8}
ESTIMATE = {
    **CHANCES,
    "method": "auto",
    "rtol": 0.2,
    "confidence": 0.8,
    "samples": 300,
    "max_work": 1e5,
    "executor": ThreadPoolExecutor(1),
}
RELIABILITY = {
    "evaluate by chances of being up": Case(
        "reliability.evaluate", {"graph": RING, **UP}, EVALUATE
    ),
    "evaluate by chances of failure": Case(
        "reliability.evaluate", {"graph": RING, **DOWN}, EVALUATE
    ),
    "evaluate with groups": Case(
        "reliability.evaluate", {"graph": RING, "groups": [([3, (0, 1)], 0.2)]}, EVALUATE
    ),
    "evaluate by bounds": Case(
        "reliability.evaluate",
        {"graph": RING, **DOWN, "method": "bounds"},
        EVALUATE | {"method": "auto"},
    ),
    "evaluate by the frontier DP": Case(
        "reliability.evaluate", {"graph": RING, **UP, "method": "exact"}, EVALUATE
    ),
    "bounds": Case("reliability.bounds", {"graph": TORUS, **UP}, BOUNDS | {"method": "bonferroni"}),
    **{
        f"bounds by {method}": Case(
            "reliability.bounds", {"graph": TORUS, **DOWN, "method": method}, BOUNDS
        )
        for method in ("anytime", "bonferroni", "subgraph", "disjoint")
    },
    **{
        f"estimate by {method}": Case(
            "reliability.estimate",
            {"graph": nx.petersen_graph(), **chances, "method": method, "rng": 1},
            ESTIMATE | {"method": "karp_luby" if method == "crude" else "crude"},
        )
        for method, chances in {
            "auto": UP,
            "crude": UP,
            "karp_luby": DOWN,
        }.items()
    },
    "estimate by permutation": Case(
        "reliability.estimate",
        {"graph": nx.petersen_graph(), **DOWN, "method": "permutation", "rng": 1},
        ESTIMATE | {"rtol": 2e-3, "node_down": 0.01, "confidence": 0.99, "method": "crude"},
    ),
    "estimate of so many samples": Case(
        "reliability.estimate",
        {"graph": nx.petersen_graph(), **UP, "rng": 1, "samples": 200},
        ESTIMATE | {"method": "crude"},
    ),
}

# parallel
GPT = rp.transformer("gpt3-6.7b")
HOME, OTHER = (cluster(name, gpus=16) for name in ("h100-80gb-dgx", "a100-80gb-selene"))
SPLIT = Strategy(tensor=4, pipeline=2, data=2)
PIPELINES_APART = ("tensor", "context", "pipeline", "data")
WIRED, SLOWER = (
    redundant_fabric(servers=2, servers_per_leaf=1, planes=2, card=card) for card in (4e10, 3e10)
)
ALIVE = np.arange(WIRED.num_nodes + len(WIRED.edges)) != WIRED.num_nodes - 1
SOFTWARE = "megatron-2025"
STEP = {
    "software": SOFTWARE,
    "precision": "fp8",
    "calibrated": calibration("a100-80gb"),
    "placement": Placement(strategy=SPLIT, order=PIPELINES_APART),
    "network": WIRED,
    "alive": np.linspace(0.5, 1.0, 18),
    "stage_layers": [15, 17],
    "offload": "activations",
}
JOB = {"model": GPT, "strategy": SPLIT, "global_batch": 16}
MEMORY = {
    "software": "nemo-2024",
    "precision": "fp8",
    "flash_attention": False,
    "dropout": True,
    "offload": "activations",
    "offload_to": "nvme",
    "stage_layers": [15, 17],
    "cluster": OTHER,
}
GRID = {
    "model": GPT,
    "grid": StrategyGrid.all(gpus=16, model=GPT, global_batch=16, schedule="1f1b", tensor=[1, 4]),
    "cluster": HOME,
    "global_batch": 16,
}
PRICE = {
    "software": SOFTWARE,
    "precision": "fp8",
    "calibrated": calibration("a100-80gb"),
    "storage": "fp32",
    "dropout": True,
    "reserve": 60e9,
    "complete": True,
    "network": WIRED,
    "executor": ThreadPoolExecutor(1),
}
LAYERS = chain([1.0, 2.0, 1.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0, 1.0], [4e6, 8e6, 6e6, 9e6, 12e6])
LINE = {"graph": LAYERS, "network": (0.5, 1e6)}
LOSSES = {"loss": 1e-6, "timeout": 0.1, "rng": 1}
ORDER = {
    "policy": "forward",
    "partition": 2.5e6,
    "credit": 3,
    "bucket": 11e6,
    "groups": merge_gradients(LAYERS, latency=0.5, bandwidth=4e6),
    "loss": 2e-6,
    "timeout": 0.3,
    "rng": 2,
}
PARALLEL = {
    "step_time": Case("parallel.step_time", {**JOB, "cluster": HOME}, STEP),
    "step_time on a network": Case(
        "parallel.step_time",
        {**JOB, "cluster": HOME, "network": WIRED},
        STEP | {"network": SLOWER, "alive": ALIVE},
    ),
    "memory": Case("parallel.memory", JOB, without(MEMORY, "cluster")),
    "memory on a cluster": Case("parallel.memory", JOB, without(MEMORY, "precision")),
    "memory by software": Case("parallel.memory", JOB | {"software": SOFTWARE}, MEMORY),
    "memory with offloading": Case(
        "parallel.memory",
        {**JOB, "offload": "optimizer"},
        without(without(MEMORY, "cluster"), "precision"),
    ),
    "price_strategies": Case("parallel.price_strategies", GRID, PRICE),
    "order": Case("parallel.order", LINE, ORDER),
    **{
        f"order by {policy}": Case(
            "parallel.order",
            LINE | LOSSES | {"policy": policy},
            ORDER | ({"policy": "fifo"} if policy != "ddp" else {}),
        )
        for policy in ("forward", "ddp", "bytescheduler", "tic", "p3")
    },
    "order of groups": Case(
        "parallel.order",
        LINE | {"groups": ORDER["groups"]},
        ORDER | {"policy": "ddp", "groups": None},
    ),
}
