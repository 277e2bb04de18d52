"""One valid call of what `communication` offers on congestion control, links and flows; see `valid_calls`."""

from collections.abc import Callable

import numpy as np
from valid_workload import Arguments

from relparallel.communication import dcqcn
from relparallel.topology import leaf_spine

DCQCN: Arguments = {
    "flows": 4.0, "rate": 5e9, "feedback_delay": 5e-5, "increase": 5e6, "packet": 1e3, "kmin": 5e3,
    "kmax": 2e5, "pmax": 0.01, "gain": 0.004, "cnp_interval": 5e-5, "alpha_interval": 5.5e-5, "recovery": 5.0,
    "byte_counter": 1e7, "timer": 5.5e-5,
}  # fmt: skip
TIMELY: Arguments = {
    "flows": 4.0, "rate": 1.25e9, "feedback_delay": 4e-6, "increase": 1.25e6, "decrease": 0.8,
    "smoothing": 0.875, "burst": 16e3, "packet_size": 1e3, "low": 5e-5, "high": 5e-4, "shortest": 2e-5,
}  # fmt: skip
CALLS: dict[str, Callable[[], Arguments]] = {
    "communication.buffer_cycle": lambda: {
        "topology": leaf_spine(2, 2, 2), "routing": "updown", "alive": np.ones(16, dtype=bool),
    },
    "communication.credit_rate": lambda: {
        "buffer": [4096.0, 8192.0], "rate": 5e10, "length": 10.0, "packet": 4096.0, "response": 1e-7,
    },
    "communication.dcqcn": lambda: dict(DCQCN),
    "communication.dcqcn_plus": lambda: DCQCN | {"reference": 8.0},
    "communication.dctcp": lambda: {
        "flows": 4.0, "rate": 1.25e9, "feedback_delay": 1e-4, "packet": 1500.0, "kmin": 2e4, "kmax": 2e5,
        "pmax": 1.0, "gain": 0.06, "round_trip": 1e-4,
    },
    "communication.expected_max_load": lambda: {"flows": 3, "links": 2},
    "communication.hpcc": lambda: {
        "flows": 4.0, "rate": 1.25e10, "feedback_delay": 1e-5, "round_trip": 1e-5, "target": 0.95,
        "increase": 500.0,
    },
    "communication.incast_goodput": lambda: {
        "block": 1e6, "rate": 1.25e8, "timeout": 0.2, "senders": [2.0, 40.0], "window": 8e3, "buffer": 6.4e4,
    },
    "communication.loss_goodput": lambda: {"loss": [0.0, 0.01], "window": 120.0, "recovery": "go_back_n"},
    "communication.packet_efficiency": lambda: {"payload": [1024.0, 4096.0], "transport": "roce"},
    "communication.patched_timely": lambda: TIMELY | {"decrease": 0.008, "slope": 2.0},
    "communication.pause_spread": lambda: {
        "topology": leaf_spine(2, 2, 2), "target": 0, "alive": np.ones(16, dtype=bool),
    },
    "communication.pfc_headroom": lambda: {
        "rate": [1.25e9, 1.25e10], "length": 100.0, "mtu": 9216.0, "response": 3840.0,
    },
    "communication.place_flows": lambda: {
        "topology": leaf_spine(2, 2, 2), "flows": [(0, 2), (1, 3)], "method": "ecmp",
        "rng": np.random.default_rng(0),
    },
    "communication.stability_probability": lambda: {
        "model": dcqcn(flows=1.0, rate=5e9, feedback_delay=0.0), "topology": leaf_spine(2, 2, 2),
        "flows": {2: 1.0}, "hop_delay": 1e-5, "base_delay": 1e-6,
    },
    "communication.timely": lambda: dict(TIMELY),
}  # fmt: skip
