"""One valid call of all that `planning` offers, and of the reader of model files; see `valid_calls`."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from valid_workload import Arguments, model

import relparallel as rp

FOLDER = Path(mkdtemp())  # of two files that are read


def written(name: str, content: Any) -> str:
    path = FOLDER / name
    path.write_text(json.dumps(content))
    return str(path)


def config() -> str:
    sizes = {"n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 100, "n_positions": 32}
    return written("config.json", {"model_type": "gpt2", **sizes})


def machine() -> str:
    return written("cluster.json", {"accelerator": "a100-80gb", "gpus": 16, "network_gbit": 800})


CALLS: dict[str, Callable[[], Arguments]] = {
    "planning.notation": lambda: {"strategy": rp.parallel.Strategy()},
    "planning.plan": lambda: {
        "model": model(), "cluster": machine(), "gpus": None, "global_batch": 8, "sequence": 32,
        "rates": "llama3", "price": 1.0, "fabric": None, "strategies": 1, "limits": {"tensor": 8},
    },
    "planning.sliders": lambda: {"plan": rp.plan(model(), machine(), global_batch=8, limits={"tensor": 8})},
    "planning.read_cluster": lambda: {"path": machine()},
    "planning.read_strategy": lambda: {"text": "TP8 PP2"},
    "workload.read_config": lambda: {"path": config(), "sequence": 8, "ignore": ["remark"]},
}  # fmt: skip
MEANINGFUL = {"workload.read_config": {"ignore": {"empty"}}}
