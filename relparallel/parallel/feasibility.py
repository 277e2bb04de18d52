"""Rules that a strategy has to keep with a model, a batch and a cluster, and which it breaks first.

One list of rules serves a single strategy, which gets an error, and a grid, whose rows get a code.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_int
from relparallel.hardware import Cluster
from relparallel.parallel.quantities import CHIMERA, Numbers, Split, folded, where
from relparallel.parallel.schedules import SCHEDULES
from relparallel.parallel.stages import Pipeline, counted_ends, require_stage_layers
from relparallel.parallel.strategy import Strategy
from relparallel.parallel.strategy_text import notation
from relparallel.workload import Transformer

RULES: Final = (
    "tensor * pipeline * data * context must be at most the GPUs of the cluster",
    "tensor must divide the heads",
    "tensor must divide the heads of keys and values, or be a multiple of them",
    "tensor must divide the feed-forward width",
    "pipeline * virtual_stages must be at most the layers and what counts as one, and interleaved "
    "chunks but "
    "the last of each stage equal",
    "context must divide the sequence in two parts each",
    "tensor must divide the sequence where it is split",
    "sequence_parallel needs tensor above 1",
    "expert must divide the experts",
    "expert must divide data * context, times tensor with experts_over_tensor",
    "shard must divide data",
    "data * micro_batch must divide the global batch",
    "virtual_stages above 1 needs a V-shaped schedule, or the interleaved one and pipeline above 1",
    "pipeline must be at most the micro-batches where stages are interleaved",
    "V-shaped schedules need virtual_stages 2",
    "chimera needs an even pipeline",
    "tensor must divide the GPUs of a node, or be a multiple of them",
    "experts_over_tensor needs sequence_parallel where tensor is above 1",
)
"""What a strategy has to keep, in the order in which it is asked."""

FEASIBLE: Final = 0
REASONS: Final = ("feasible", *RULES, "memory")
"""What a code means: 0 is feasible, the last one that the memory of a GPU is exceeded."""

DEALT: Final = 1 << next(k for k, rule in enumerate(RULES) if "at most the layers" in rule)
"""Bit of the rule about layers on stages, which whoever says them does not have to keep."""
WIDTH: Final = 1 << next(k for k, rule in enumerate(RULES) if "feed-forward" in rule)
"""Bit of the rule about the feed-forward blocks, those of the experts too."""
_INTERLEAVED: Final = SCHEDULES.index("interleaved_1f1b")


def broken_rules(
    model: Transformer, s: Split, global_batch: int, gpus: int = 0, node: int = 0
) -> Numbers:
    """Bits of the rules that strategies break, the first rule lowest; memory is not looked at.

    No rule about the GPUs, or about those of a node, where these are 0.
    """
    t, p, v, d, c = s.tensor, s.pipeline, s.virtual_stages, s.data, s.context
    keys, chunks, together = model.key_value_heads, p * v, d * s.micro_batch
    split, whole, v_shaped = s.sequence_parallel > 0, s.experts_over_tensor > 0, folded(s.schedule)
    interleaved = (v > 1) & np.logical_not(v_shaped)
    ends = counted_ends(model.layers, model.mtp_layers, p, v, v_shaped, s.ends_as_layers)
    places = model.layers + ends[0] + ends[1]
    rest = places % chunks
    broken = (
        (gpus > 0) & (t * p * d * c > gpus),
        model.heads % t != 0,
        (keys % t != 0) & (t % keys != 0),
        (model.ffn_hidden % t != 0) | ((model.expert_hidden % t != 0) & np.logical_not(whole)),
        (chunks > places) | (interleaved & (rest > 0) & (rest < p * (v - 1))),
        (c > 1) & (model.sequence % (2 * c) != 0),
        split & (model.sequence // c % t != 0),
        split & (t == 1),
        model.experts % s.expert != 0,
        d * c * where(whole, t, 1) % s.expert != 0,
        d % s.shard != 0,
        global_batch % together != 0,
        interleaved & ((s.schedule != _INTERLEAVED) | (p == 1)),
        interleaved & (global_batch // together < p),
        v_shaped & (v != 2),
        (s.schedule == CHIMERA) & (p % 2 != 0),
        (node > 0) & (node % t != 0) & (t % max(node, 1) != 0),
        whole & (t > 1) & np.logical_not(split),
    )
    bits: dict[tuple[int, ...], Numbers] = {}  # of rules that look at the same axes
    for k, breaks in enumerate(broken):
        bits[np.shape(breaks)] = bits.get(np.shape(breaks), 0) + breaks * np.int32(1 << k)
    return sum(bits.values())


def rules_of_rows(
    model: Transformer, rows: NDArray[Any], global_batch: int, gpus: int = 0, node: int = 0
) -> NDArray[np.int32]:
    """Bits of the rules that every row of a grid breaks; as `broken_rules`."""
    found = broken_rules(model, Split.of_columns(rows, global_batch), global_batch, gpus, node)
    return np.broadcast_to(found, rows.size)


def first_broken(rules: NDArray[np.int32]) -> NDArray[np.int8]:
    """Places in `REASONS` of the first rule that each strategy breaks, `FEASIBLE` where none."""
    return np.frexp((rules & -rules).astype(np.float64))[1].astype(np.int8)


def pipeline_of(
    model: Transformer,
    strategy: Strategy,
    cluster: Cluster | None,
    global_batch: int,
    stage_layers: Sequence[int] | str | None = None,
) -> Pipeline:
    """Check a strategy against what it splits and where it runs: the one door of a step's price."""
    require_instance(Transformer, model=model)
    require_instance(Strategy, strategy=strategy)
    require_instance((Cluster, type(None)), cluster=cluster)
    require_int(global_batch=global_batch, at_least=1)
    said = None if stage_layers is None else require_stage_layers(model, strategy, stage_layers)
    require_feasible(model, strategy, cluster, global_batch, dealt=said is not None)
    return Pipeline(model, strategy, global_batch, said)


def require_feasible(
    model: Transformer,
    strategy: Strategy,
    cluster: Cluster | None,
    global_batch: int,
    *,
    dealt: bool = False,
) -> None:
    """Raise a ValueError naming the rule that a strategy breaks; ``dealt``: layers are given."""
    if cluster is not None and strategy.gpus > cluster.gpus:
        raise ValueError(
            f"strategy must fit the {cluster.gpus} GPUs of the cluster, got {strategy.gpus} "
            f"(tensor * pipeline * data * context)"
        )
    node = 0 if cluster is None else cluster.gpus_per_node
    rules = int(broken_rules(model, Split.of(strategy), global_batch, node=node))
    rules &= ~(DEALT if dealt else 0)
    if rules:
        sizes = {
            "layers": model.layers,
            "heads": model.heads,
            "key-value heads": model.key_value_heads,
            "feed-forward width": model.ffn_hidden,
            "experts": model.experts,
            "sequence": model.sequence,
            "batch": global_batch,
        }
        said = ", ".join(f"{name} {size}" for name, size in sizes.items())
        rule = RULES[(rules & -rules).bit_length() - 1]
        raise ValueError(f"strategy breaks a rule: {rule}; got {notation(strategy)} with {said}")
