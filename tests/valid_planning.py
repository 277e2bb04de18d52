"""One valid call of all of `planning`, and of readers of models and logs; see `valid_calls`."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import relparallel as rp
from valid_workload import Arguments, model

FOLDER = Path(mkdtemp())  # of two files that are read


def written(name: str, content: Any) -> str:
    path = FOLDER / name
    path.write_text(json.dumps(content))
    return str(path)


def log(name: str, *lines: str) -> str:
    path = FOLDER / name
    path.write_text("\n".join(lines))
    return str(path)


def events() -> str:
    steps = [f'{{"step_start_time": {9 + k}, "step_count": {k}}}' for k in range(3)]
    return log("events.jsonl", '{"job_start_time": 0}', *steps)


def results() -> str:
    rows = [
        (0, "init_start", None, {}),
        (1, "global_batch_size", 8, {}),
        (9, "init_stop", None, {}),
        (9, "block_start", None, {"samples_count": 0}),
        (99, "block_stop", None, {"samples_count": 80}),
    ]
    names = ("time_ms", "key", "value", "metadata")
    return log(
        "result_0.txt",
        *(":::MLLOG " + json.dumps(dict(zip(names, row, strict=True))) for row in rows),
    )


def printed() -> str:
    line = "completed step: {}, seconds: 4.1, Tokens/s/device: 6000.0, loss: 9"
    return log("maxtext.log", *map(line.format, range(4)))


def config() -> str:
    sizes = {"n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 100, "n_positions": 32}
    return written("config.json", {"model_type": "gpt2", **sizes})


def machine() -> str:
    return written("cluster.json", {"accelerator": "a100-80gb", "gpus": 16, "network_gbit": 800})


def measured() -> str:
    head = "model,cluster,gpus,strategy,batch,software,step [s]"
    return log("runs.csv", head, "gpt3-6.7b,a100-80gb-selene,64,TP8 DP8,64,mine,3.2")


CALLS: dict[str, Callable[[], Arguments]] = {
    "parallel.notation": lambda: {"strategy": rp.parallel.Strategy(), "short": True},
    "planning.plan": lambda: {
        "model": model(),
        "cluster": machine(),
        "gpus": None,
        "global_batch": 8,
        "sequence": 32,
        "rates": "llama3",
        "price": 1.0,
        "network": None,
        "measured": None,
        "only_measured": False,
        "like": "measured",
        "memory_margin": 0.1,
        "strategies": 1,
        "limits": {"tensor": 8},
        "ignore": (),
        "rank": "independent",
    },
    "planning.study": lambda: {
        "models": {"tiny": model()},
        "clusters": "a100-80gb-selene",
        "gpus": 16,
        "rates": "llama3",
        "price": 1.0,
        "executor": None,
    },
    "planning.learn": lambda: {"runs": measured(), "accept": False},
    "planning.read_cluster": lambda: {"path": machine()},
    "parallel.read_strategy": lambda: {"text": "TP8 PP2", "gpus": 32, "layers": 8},
    "parallel.read_launch": lambda: {
        "text": "--tensor-model-parallel-size 8",
        "gpus": 32,
        "layers": 8,
    },
    "training.read_run_log": lambda: {
        "path": events(),
        "dialect": "events",
        "checkpoint_every": 2,
    },
    "training.read_run_log of MLPerf": lambda: {"path": results(), "dialect": "mlperf"},
    "training.read_run_log of a trainer": lambda: {"path": printed(), "dialect": "maxtext"},
    "training.read_run_log of a table": lambda: {
        "path": log("steps.csv", "step,seconds", "1,40", "2,6", "3,6"),
        "dialect": "csv",
    },
    "workload.read_config": lambda: {"path": config(), "sequence": 8, "ignore": ["remark"]},
}
MEANINGFUL = {
    "planning.plan": {"ignore": {"empty"}},
    "workload.read_config": {"ignore": {"empty"}},
}
