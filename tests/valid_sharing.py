"""One valid call of what `optimize` offers on shared clusters and GPUs, and `workload` on tiles."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from valid_workload import Arguments, fields

import relparallel as rp

FOLDER = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
TIMES = "local_bsz,step_time,sync_time"
FILES = {
    "placements.csv": f"placement,{TIMES}\n1,8,0.2,0\n2,8,0.3,0.1\n11,8,0.4,0.2\n1,64,0.7,0\n44,64,0.9,0.2\n",
    "scalability.csv": f"num_nodes,num_replicas,{TIMES}\n8,32,8,0.5,0.3\n",
    "validation-64.csv": "progress,iteration,grad_sqr,grad_var\n10,10,1,2\n20,20,1,2\n",
    "jobs.csv": "name,time,application,num_replicas,batch_size\na,0,app,2,128\n",
}


def folder() -> Path:
    """An application and a workload in the format of Pollux's artefact."""
    for name, text in FILES.items():
        (FOLDER / name).write_text(text)
    return FOLDER


def goodput() -> Any:
    return rp.optimize.StatisticalGoodput(
        compute=0.1, compute_per_sample=0.01, nodes=0.05, nodes_per_replica=0.005, local=0.02,
        local_per_replica=0.002, overlap=2.0, noise=1280.0, batch=128,
    )  # fmt: skip


def application() -> Any:
    return rp.optimize.modelled_application(goodput(), epochs=1, steps=10.0, limits=(8, 64, 1024), name="app")


def times() -> Any:
    rows = [(1, 1), (1, 2), (2, 4), (4, 16)]
    table = pd.DataFrame(rows, columns=["num_nodes", "num_replicas"]).assign(local_bsz=16)
    return table.assign(step_time=[0.3, 0.35, 0.4, 0.5], sync_time=[0.0, 0.05, 0.1, 0.2])


def operators() -> list[Any]:
    sizes = {"m": 8, "n": 8, "k": 4}
    product = rp.workload.TileOperator(
        name="product", writes="C[m,n]", reads=("A[m,k]", "B[k,n]"), sizes=sizes, flops=2.0
    )
    return [product]


CALLS: dict[str, Callable[[], Arguments]] = {
    "optimize.StatisticalGoodput": lambda: fields(goodput()),
    "optimize.modelled_application": lambda: {
        "model": goodput(), "epochs": 2, "steps": 10.0, "limits": (8, 64, 1024), "name": "app",
    },
    "optimize.nexus": lambda: {
        "latencies": {"a": [0.05, 0.06]}, "objectives": {"a": 0.3}, "rates": {"a": 30.0},
    },
    "optimize.read_application": lambda: {"folder": folder(), "epochs": 2, "largest": 64, "most": 8},
    "optimize.read_shared_jobs": lambda: {"path": folder() / "jobs.csv"},
    "optimize.share_cluster": lambda: {
        "jobs": rp.optimize.read_shared_jobs(folder() / "jobs.csv"), "applications": {"app": application()},
        "policy": "elastic", "nodes": 1, "interval": 60.0, "restart": 30.0, "node_rate": 1e-6,
        "repair": 600.0, "checkpoint": 600.0, "rng": np.random.default_rng(0),
    },
    "optimize.statistical_goodput_fit": lambda: {"times": times(), "noise": 100.0, "batch": 16},
    "optimize.switch_plan": lambda: {
        "send": [3.0, 1.0], "compute": [1.0, 1.0], "per_send": 0.5, "per_group": 0.1,
    },
    "optimize.switching_time": lambda: {
        "send": [3.0, 1.0], "compute": [1.0, 1.0], "groups": [2], "per_send": 0.5, "per_group": 0.1,
    },
    "workload.TileOperator": lambda: fields(operators()[0]),
    "workload.tile_schedule": lambda: {
        "operators": operators(), "memory": 64.0, "density": {"A": 0.5}, "stream": True, "chunk": 4,
        "connect": True,
    },
}  # fmt: skip

FREE = {"text"}
MEANINGFUL: dict[str, dict[str, set[str]]] = {
    "optimize.modelled_application": {"name": FREE},
    "optimize.read_application": {"folder": FREE},
    "optimize.read_shared_jobs": {"path": FREE},
    "optimize.share_cluster": {"rng": {"none"}},
    "workload.TileOperator": {"name": FREE},
}
