"""Plans of published profiles and measured runs, as tables that the project ships; see `derive`."""

import ast
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from chapters import s35, s37
from chapters.s35.profiles import read_profile
from chapters.s37.fusion import MERGING
from relparallel import parallel
from relparallel.hardware import cluster
from relparallel.parallel.prices import price_strategies
from relparallel.units import GB, GBIT, TFLOP
from relparallel.workload import Transformer

_PIPELINES: Final = {
    "vgg16": ("4@1e9", "16@1e9", "16@4e9", "4@1e9 straight", "4@16e9 4@1.25e9", "8@30e9 2@3.125e9"),
    "alexnet": ("4@1e9", "16@1e9", "4@16e9 4@1.25e9", "8@30e9 2@3.125e9"),
    "resnet50": ("4@1e9", "16@1e9", "4@16e9 4@1.25e9", "8@30e9 2@3.125e9"),
    "gnmt": ("4@1e9", "16@1e9", "4@16e9 4@1.25e9", "8@30e9 2@3.125e9"),
    "gnmt_large": ("4@1e9", "16@1e9"),
}  # devices@bytes per second, from the innermost level
_NETWORKS: Final = {
    "10GbE of 8": (5.230272768511732e-4, 8.570746975492128e-10),
    "10GbE of 16": (9.080981007148093e-4, 7.395651186836712e-10),
    "56Gb of 16": (2.3583677659915685e-4, 4.0594787739537565e-10),
    "2 ms, 3.3 GB/s": (2e-3, 3e-10),
}  # seconds of a message, and for each byte: three of MG-WFBP, and one where its rule is not the best
_GPT: Final = {
    1: (24, 1024, 16),
    2: (24, 1536, 16),
    4: (24, 2048, 32),
    8: (32, 2560, 32),
    16: (32, 4096, 32),
    32: (48, 5120, 40),
    64: (48, 8192, 64),
}  # layers, hidden size and heads of Alpa's GPT for so many GPUs, table 5
_METHODS: Final[Mapping[str, dict[str, Any]]] = {
    "megatron": {"zero_stage": 0},
    "parax.intra_only": {"pipeline": 1, "zero_stage": (0, 1, 2, 3)},
    "parax.inter_only": {"tensor": 1, "data": 1},
    "parax.auto": {"zero_stage": (0, 1, 2)},
}
_BATCH, _SEQUENCE, _WORDS = 1024, 1024, 51200


def _pipeline_table(paths: Sequence[Path]) -> pd.DataFrame:
    """Stages of measured models by PipeDream's planner, and of BERT-48 by DAPPLE's."""
    *profiles, dapple = paths
    rows = []
    for path in profiles:
        name = path.parent.name
        graph = read_profile(path)
        for setting in _PIPELINES[name]:
            pairs = [level.split("@") for level in setting.split() if "@" in level]
            levels = [(int(devices), float(bandwidth)) for devices, bandwidth in pairs]
            plan = s35.pipedream(graph, levels, straight="straight" in setting)
            rows.append((name, setting, plan, graph.totals, digest(path)))
    bert = read_profile(dapple, batch=2)
    for count in (4, 16):
        parts = {
            x: getattr(bert, x) * 32 / count for x in ("forward", "backward", "activation_bytes")
        }
        plan = s35.dapple(replace(bert, **parts), 2, 8, count)
        rows.append(
            (
                "bert-48",
                f"2x8, 64 sequences in {count} micro-batches",
                plan,
                bert.totals,
                digest(dapple),
            )
        )
    columns = ["profile", "levels", "seconds", "stages", "work", "parameter_bytes", "input_sha256"]
    return pd.DataFrame(
        [
            (
                name,
                levels,
                f"{plan.time:.12g}",
                " ".join(f"{s.start}-{s.stop}x{s.devices}" for s in plan.stages),
                f"{total['forward'] + total['backward']:.12g}",
                f"{total['parameter_bytes']:.12g}",
                source,
            )
            for name, levels, plan, total, source in rows
        ],
        columns=columns,
    )


def _gradient_table(paths: Sequence[Path]) -> pd.DataFrame:
    """When the last gradient has been sent [s], in how many messages, for each way of merging."""
    rows = []
    for path in paths:
        graph = read_profile(path)
        for network, (latency, per_byte) in _NETWORKS.items():
            link = {"latency": latency, "bandwidth": 1 / per_byte}
            ways = {way: s37.merge_gradients(graph, method=way, **link) for way in MERGING}
            ways["horovod"] = s37.fuse_gradients(graph, **link)
            for way, found in ways.items():
                end = f"{found.finish:.10g}"
                rows.append((path.parent.name, network, way, len(found.groups), end, digest(path)))
    columns = ["profile", "network", "way", "messages", "finish", "input_sha256"]
    return pd.DataFrame(rows, columns=columns)


def _alpa_table(paths: Sequence[Path]) -> pd.DataFrame:
    """GPT on 1 to 64 V100 as Alpa's authors measured it, and each method's fastest strategy here.

    TFLOP/s per GPU count the forward pass that is computed again, as theirs do.
    """
    rows = []
    for line in paths[0].read_text().splitlines():
        fields = line.split("\t")
        if len(fields) > 6 and fields[4] == "gpt":
            gpus, method = int(fields[2]) * int(fields[3]), fields[5]
            measured = float(ast.literal_eval(fields[6])["tflops"])
            layers, hidden, heads = _GPT[gpus]
            model = Transformer(
                layers=layers, hidden=hidden, heads=heads, vocabulary=_WORDS, sequence=_SEQUENCE
            )
            predicted, strategy = _fastest(model, gpus, _METHODS[method])
            rows.append((gpus, method, measured, predicted, strategy, digest(paths[0])))
    columns = ["gpus", "method", "measured", "predicted", "strategy", "input_sha256"]
    return pd.DataFrame(rows, columns=columns)


def _fastest(model: Transformer, gpus: int, limits: Mapping[str, Any]) -> tuple[float, str]:
    """TFLOP/s per GPU of the fastest strategy that fits, and its degrees; NaN where none fits."""
    whole = cluster("v100-16gb-dgx", gpus=max(gpus, 8))
    machine = replace(whole, network_bandwidth=25 * GBIT, gpus_per_node=min(gpus, 8))  # p3.16xlarge
    fixed = {"context": 1, "schedule": "1f1b", "recompute": "full", "sequence_parallel": False}
    grid = parallel.StrategyGrid.all(gpus, model, _BATCH, **fixed, **limits)
    # Alpa: 16 bytes a parameter
    kept: dict[str, Any] = {"software": "megatron-2021", "storage": "mixed"}
    found = price_strategies(model, grid, machine, _BATCH, **kept, reserve=1.5 * GB)
    if not found.feasible.any():
        return np.nan, ""
    best = int(np.nanargmin(np.where(found.feasible, found.time, np.nan)))
    seconds, strategy = float(found.time[best]), grid[best]
    tokens, h = _BATCH * _SEQUENCE, model.hidden
    flops = 96 * tokens * model.layers * h**2 * (1 + _SEQUENCE / (6 * h)) + 6 * tokens * h * _WORDS
    degrees = ("tensor", "pipeline", "data", "micro_batch", "zero_stage")
    shown = " ".join(f"{name}={getattr(strategy, name)}" for name in degrees)
    return flops / seconds / gpus / TFLOP, shown


def digest(*paths: Path) -> str:
    """Of input files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


_PROFILES: Final = "data/pipedream-profiles/{}/graph.txt"
_MEASURED: Final = (
    "alexnet",
    "densenet121",
    "gnmt",
    "gnmt_large",
    "inception_v3",
    "nasnetalarge",
    "nasnetamobile",
    "resnet101",
    "resnet50",
    "resnext101",
    "resnext50",
    "vgg16",
)
PLAN_TABLES: Final[Mapping[str, tuple[Callable[[Sequence[Path]], pd.DataFrame], list[str]]]] = {
    "pipelines": (
        _pipeline_table,
        [*map(_PROFILES.format, _PIPELINES), "data/dapple-profiles/bert-48-pbs-2.txt"],
    ),
    "gradients": (_gradient_table, [*map(_PROFILES.format, _MEASURED)]),
    "alpa_runs": (_alpa_table, ["data/alpa-osdi22/results_e2e_ref.tsv"]),
}
"""Each table with the function that computes it and the files that it reads."""
