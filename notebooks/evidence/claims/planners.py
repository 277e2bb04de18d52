"""Published plans of pipelines and operators, merged gradients, on profiles by ``data/derived``."""

from typing import Any, Final

import numpy as np
import pandas as pd

from chapters import s35
from chapters.s35.mesh_program import MeshProgram
from chapters.s35.pipelines import dapple_sum
from evidence.claims._rows import derived
from evidence.claims.registry import Rows
from relparallel.units import MILLISECOND
from relparallel.workload import LayerGraph


def _derived(table: str, **where: Any) -> pd.Series:
    """The row of a derived table."""
    found = derived(table)
    for column, value in where.items():
        found = found[found[column] == value]
    return found.iloc[0]


def _stages(profile: str, levels: str) -> tuple[int, ...]:
    """Devices of each stage."""
    stages = _derived("pipelines", profile=profile, levels=levels)["stages"]
    return tuple(int(stage.partition("x")[2]) for stage in stages.split())


def mlp_problem(
    layers: int, batch: int, hidden: int, mesh: Any, per_byte: Any
) -> s35.OperatorProblem:
    """A training step of dense layers: forward, gradients of inputs and weights, new weights."""
    program = MeshProgram(mesh, [1.0] * len(mesh), per_byte)
    inputs = [program.matrix(batch, hidden)]
    weights = [program.matrix(hidden, hidden) for _ in range(layers)]
    for weight in weights:
        inputs.append(program.product(inputs[-1], weight))
    gradient = program.together(inputs[-1])
    for layer in reversed(range(layers)):
        program.stored(
            program.product(inputs[layer], gradient, left_sum=0, right_sum=0), weights[layer]
        )
        if layer:
            gradient = program.product(gradient, weights[layer], right_sum=1)
    return program.problem()


_WAYS: Final = ("none", "optimal", "all")


def data_parallel_speedup(profile: str, workers: int, bandwidth: float) -> float:
    """Of one stage on all workers: the whole model as one layer, planned."""
    row = _derived("pipelines", profile=profile)
    whole = LayerGraph(
        names=(profile,),
        kinds=("model",),
        forward=np.array([row["work"]]),
        backward=np.zeros(1),
        activation_bytes=np.zeros(1),
        parameter_bytes=np.array([row["parameter_bytes"]]),
        edges=np.empty((0, 2), dtype=int),
        unit="s",
    )
    return float(row["work"]) / s35.pipedream(whole, [(workers, bandwidth)]).time


def rule_is_optimal(profiles: int, networks: int) -> int:
    """Pairs of the first profiles and published networks where rule and optimum end together."""
    table = derived("gradients")
    ends = table.pivot_table(
        index=["profile", "network"], columns="way", values="finish", sort=False
    )
    names = ["alexnet", "vgg16", "resnet50", "resnet101", "gnmt"][:profiles]
    chosen = ends.loc[(names, list(dict.fromkeys(table["network"]))[:networks]), :]
    return int((chosen["greedy"] <= chosen["optimal"] * (1 + 1e-6)).sum())


def alpa_of_attention(batch: int, sequence: int, hidden: int, devices: int) -> float:
    """Cost of the best strategies of an attention block that gathers nothing, needed by all."""
    program = MeshProgram((devices, 1), [1.0, 1.0], [1.0, 1.0], gather=1e8)
    tokens = program.matrix(batch * sequence, hidden)
    heads = [program.product(tokens, program.matrix(hidden, hidden)) for _ in range(3)]
    program.whole(program.product(program.together(*heads), program.matrix(hidden, hidden)))
    return s35.operator_plan(program.problem())[1]


_SPLIT: Final = (
    "layers split 64 ways over 25 Gbit/s: the runtime reached 0.57 of what its "
    "bandwidth would allow"
)
_STRAIGHT: Final = "48 layers fill no straight pipeline of 64 stages here; theirs replicates some"


def alpa_run(gpus: int, method: str) -> float:
    """TFLOP/s per GPU of the fastest strategy, times the one factor fitted to all runs of GPT."""
    table = derived("alpa_runs")
    factor = float((table["measured"] / table["predicted"]).median())
    row = table[(table["gpus"] == gpus) & (table["method"] == method)].iloc[0]
    return factor * float(row["predicted"])


ROWS: Final[Rows] = {
    # Seconds of the slowest stage, and devices of each stage.
    "pd_* | optimal time per stage* | PipeDream SOSP19": lambda profile, levels: _derived(
        "pipelines", profile=profile, levels=levels
    )["seconds"],
    "pd_vgg16_conf16": lambda profile, levels: _stages(profile, levels),
    "dapple_plan_bert48": lambda levels: _stages("bert-48", levels),
    # Of a sum across machines.
    "dapple_allreduce_fn": lambda gpus, size: dapple_sum(size, gpus, across=True),
    # Messages of the rule; end [ms] of wait-free backpropagation, of the optimum and of one
    # message.
    "mgwfbp_* | finish of last gradient*": lambda profile, network: (
        int(_derived("gradients", profile=profile, network=network, way="greedy")["messages"]),
        *(
            float(_derived("gradients", profile=profile, network=network, way=way)["finish"])
            / MILLISECOND
            for way in _WAYS
        ),
    ),
    # The second axis of the mesh costs ``slow`` per byte, the first one 1.
    "alpa_ilp_mlp*": lambda layers, batch, hidden, rows, columns, slow: s35.operator_plan(
        mlp_problem(layers, batch, hidden, (rows, columns), (1.0, slow))
    )[1],
    "pd_dp_speedup_*": data_parallel_speedup,
    "mgwfbp_greedy_opt": rule_is_optimal,
    "alpa_ilp_attn_fwd": alpa_of_attention,
    "alpa_e2e_gpt_*": (
        alpa_run,
        {"alpa_e2e_gpt_intra_64": _SPLIT, "alpa_e2e_gpt_inter_64": _STRAIGHT},
    ),
}
