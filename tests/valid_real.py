"""One valid call of what `training` offers on failure logs, fits, replays and published runs."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from valid_workload import Arguments, fields

import relparallel as rp
from relparallel.training.replay import SpotTrace

FOLDER = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

LANL = """System,nodes,nodenumz,Prob Started,Prob Fixed,Down Time,Hardware,Software,Undetermined,Network,\
Facilities,Human Error
2,49,0,6/21/2005 10:54,6/21/2005 11:00,6,Graphics,,,,,
20,512,7,9/6/2005 9:13,9/6/2005 9:19,7,,,,,,
"""
FREE = {"text"}
MEANINGFUL: dict[str, dict[str, set[str]]] = {
    "training.read_failure_log": {"path": FREE, "ignore": {"empty"}},
    "training.read_lanl": {"path": FREE},
    "training.read_spot_trace": {"path": FREE},
}


def written(name: str, text: str) -> str:
    """Path of a file with this text."""
    (FOLDER / name).write_text(text)
    return str(FOLDER / name)


def log() -> Any:
    return rp.training.FailureLog(
        node=["a", "b", "a", "c"], start=[1.0, 3.0, 9.0, 20.0], end=[2.0, 4.0, 11.0, 25.0],
        cause=["gpu"] * 4, population=4, finish=30.0,
    )  # fmt: skip


def trace() -> Any:
    return SpotTrace(time=[0.0, 60.0, 120.0], size=[4, 3, 4])


CALLS: dict[str, Callable[[], Arguments]] = {
    "training.FailureLog": lambda: fields(log()),
    "training.best_replay": lambda: {"gaps": [1000.0, 250.0], "checkpoint": 10.0, "restart": 50.0},
    "training.fit_lifetimes": lambda: {
        "times": [1.0, 2.0, 6.0], "censored": 3.0, "laws": ("weibull",), "samples": 2,
        "rng": np.random.default_rng(0),
    },
    "training.predict_runs": lambda: {"points": 2.0},
    "training.published_runs": dict,
    "training.read_failure_log": lambda: {
        "path": written("log.csv", "host,from,to,why,note\nn1,0,2,gpu,x\nn2,3,4,nic,y\n"), "population": 4,
        "node": "host", "start": "from", "end": "to", "cause": "why", "clock": "h", "finish": 9e4,
        "overlaps": "merge", "ignore": ["note"],
    },
    "training.read_lanl": lambda: {"path": written("lanl.csv", LANL), "system": 20},
    "training.read_spot_trace": lambda: {"path": written("spot.csv", "0,8\n1.5,7\n"), "clock": "h"},
    "training.replay_gaps": lambda: {
        "gaps": [1000.0, 250.0], "interval": 100.0, "checkpoint": 10.0, "restart": 50.0,
    },
    "training.replay_sizes": lambda: {
        "trace": trace(), "nodes": 4, "speeds": {"drop": [1.0, 0.5]}, "pause": {"drop": 6.0},
    },
}  # fmt: skip
