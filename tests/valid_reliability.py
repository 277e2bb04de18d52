"""Valid calls of evaluation, counting, bounds and estimates of reliability; see `valid_calls`."""

from collections.abc import Callable

import networkx as nx
import numpy as np

import relparallel as rp
from valid_workload import Arguments, fields

R = rp.reliability

CALLS: dict[str, Callable[[], Arguments]] = {
    "reliability.Reliability": lambda: fields(R.evaluate(nx.cycle_graph(4), link_up=0.9)),
    "reliability.availability": lambda: {"mtbf": 1e6, "mttr": 1e3, "needed": 2, "installed": 3},
    "reliability.compare": lambda: {
        "before": R.evaluate(nx.cycle_graph(4), link_up=0.9),
        "after": R.evaluate(nx.complete_graph(4), link_up=0.9),
    },
    "reliability.estimate": lambda: {
        "graph": nx.cycle_graph(4),
        "terminals": (0, 2),
        "link_up": 0.9,
        "node_up": 0.99,
        "method": "permutation",
        "rng": np.random.default_rng(1),
        "rtol": 0.1,
        "confidence": 0.95,
        "max_work": 1e8,
        "executor": None,
    },
    "reliability.estimate (by chances of failure)": lambda: {
        "graph": nx.cycle_graph(4),
        "link_down": 0.1,
        "node_down": 0.01,
        "samples": 100,
        "rng": np.random.default_rng(1),
    },
    "reliability.bounds": lambda: {
        "graph": nx.cycle_graph(4),
        "terminals": (0, 2),
        "link_up": 0.9,
        "node_up": 0.99,
        "method": "auto",
        "rtol": 1e-3,
        "max_states": 100,
        "max_steps": 1000,
    },
    "reliability.bounds (by chances of failure)": lambda: {
        "graph": nx.cycle_graph(4),
        "link_down": 0.1,
        "node_down": 0.01,
    },
    "reliability.evaluate": lambda: {
        "graph": nx.cycle_graph(4),
        "terminals": (0, 2),
        "link_up": 0.9,
        "node_up": 0.99,
        "method": "exact",
        "groups": None,
        "max_states": 1000,
        "max_seconds": 1.0,
    },
    "reliability.evaluate (by chances of failure)": lambda: {
        "graph": nx.cycle_graph(4),
        "link_down": 0.1,
        "node_down": 0.01,
    },
    "reliability.evaluate (with groups)": lambda: {
        **CALLS["reliability.evaluate"](),
        "method": "auto",
        "groups": [([1, (2, 3)], 0.1)],
    },
    "reliability.unavailability": lambda: {"mtbf": 1e6, "mttr": 1e3, "needed": 2, "installed": 3},
}
MEANINGFUL = {
    "reliability.Reliability": {"reason": {"text"}},
    "reliability.evaluate": {"groups": {"empty"}},  # there are none
    "reliability.evaluate (with groups)": {"groups": {"empty"}},
}
