"""One valid call of everything that `workload` offers; see `valid_calls`."""

import dataclasses
from collections.abc import Callable
from typing import Any

import relparallel as rp

Arguments = dict[str, Any]


def fields(instance: Any) -> Arguments:
    """Return the constructor arguments of a dataclass instance."""
    return {
        field.name: getattr(instance, field.name)
        for field in dataclasses.fields(instance)
        if field.init
    }


def model() -> Any:
    return rp.workload.Transformer(layers=4, hidden=64, heads=8, vocabulary=1000, sequence=32)


CALLS: dict[str, Callable[[], Arguments]] = {
    "workload.LatentAttention": lambda: fields(rp.workload.transformer("deepseek-v3").latent),
    "workload.Transformer": lambda: fields(model()),
    "workload.operators": lambda: {"model": model(), "micro_batch": 2, "tensor": 4},
    "workload.transformer": lambda: {"name": "gpt2-117m"},
    "workload.transformers": dict,
}

MEANINGFUL: dict[str, dict[str, set[str]]] = {}
