"""One valid call of everything that `workload` offers; see `valid_calls`."""

import dataclasses
from collections.abc import Callable
from typing import Any

import relparallel as rp
from relparallel.book import s31

Arguments = dict[str, Any]


def fields(instance: Any) -> Arguments:
    """Return the constructor arguments of a dataclass instance."""
    return {field.name: getattr(instance, field.name) for field in dataclasses.fields(instance) if field.init}


def model() -> Any:
    return rp.workload.Transformer(layers=4, hidden=64, heads=8, vocabulary=1000, sequence=32)


def mixed() -> Any:
    return s31.rlhf(model(), model(), prompt=8, response=8, sequences=4)


def recurrent() -> Arguments:
    return {"inputs": 10, "hidden": 20, "layers": 2, "steps": 5, "batch": 3, "vocabulary": 100}


CALLS: dict[str, Callable[[], Arguments]] = {
    "workload.LatentAttention": lambda: fields(rp.workload.transformer("deepseek-v3").latent),
    "workload.Transformer": lambda: fields(model()),
    "workload.bert": lambda: {
        "layers": 2, "hidden": 64, "heads": 4, "ffn": 100, "vocabulary": 100, "sequence": 16, "batch": 2,
    },
    "workload.operators": lambda: {"model": model(), "micro_batch": 2, "tensor": 4},
    "workload.transformer": lambda: {"name": "gpt2-117m"},
    "workload.transformers": dict,
}  # fmt: skip

MEANINGFUL: dict[str, dict[str, set[str]]] = {}
