"""Valid calls of collectives and their times, a part of `valid_calls`."""

from collections.abc import Callable
from typing import Any

import numpy as np

import relparallel as rp
from valid_workload import Arguments, fields


def links() -> Any:
    return rp.parallel.Links(
        latency=1e-6, bandwidth=2e11, network_latency=5e-6, network_bandwidth=1e11, launch=1e-5
    )


def priced(kind: str = "all_reduce") -> Arguments:
    return {"kind": kind, "size": 1e6, "ranks": 16, "ranks_per_node": 8, "links": links()}


LEVELS = [(2, 1e-6, 1e11), (2, 1e-5, 1e10)]


CALLS: dict[str, Callable[[], Arguments]] = {
    "parallel.Links": lambda: fields(links()),
    "parallel.bytes_sent": lambda: {
        "rounds": rp.parallel.ring_all_reduce(2, 4),
        "ranks": 2,
        "element_bytes": 2.0,
    },
    "parallel.collective": lambda: {
        "kind": "all_reduce",
        "algorithm": "hierarchical",
        "ranks": 4,
        "elements": 8,
        "ranks_per_node": 2,
        "pieces": 2,
    },
    "parallel.collective (servers)": lambda: {
        "kind": "server_sum",
        "algorithm": "byteps",
        "ranks": 6,
        "elements": 8,
        "servers": 2,
    },
    "parallel.collective (factors)": lambda: {
        "kind": "all_reduce",
        "algorithm": "blueconnect",
        "ranks": 6,
        "elements": 12,
        "factors": (2, 3),
    },
    "parallel.plan_rounds": lambda: {
        "rounds": rp.parallel.ring_all_reduce(4, 4),
        "network": rp.topology.fat_tree(4),
        "nodes": [0, 1, 2, 3],
        "work": 1.0,
        "element_bytes": 2.0,
        "latency": 1e-6,
        "streamed": True,
        "stand_in": [0, 1, 2, 3],
    },
    "parallel.collective_time": lambda: {"algorithm": "ring", **priced(), "levels": None},
    "parallel.collective_time (levels)": lambda: {
        "kind": "all_reduce",
        "algorithm": "blueconnect",
        "size": 1e6,
        "levels": LEVELS,
    },
    "parallel.execute": lambda: {
        "rounds": rp.parallel.ring_all_reduce(2, 4),
        "vectors": np.ones((2, 4)),
    },
    "parallel.ring_all_reduce": lambda: {"ranks": 2, "elements": 4},
    "parallel.rounds_time": lambda: {
        "rounds": rp.parallel.ring_all_reduce(4, 4),
        "ranks_per_node": 2,
        "links": links(),
        "element_bytes": 2.0,
    },
}
