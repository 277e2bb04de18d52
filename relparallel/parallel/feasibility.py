"""Rules that a strategy has to keep with a model, a batch and a cluster, and which it breaks first.

One compiled list of rules serves a single strategy, which gets an error, and a grid, whose rows get
a code.
"""

from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.parallel._memory_kernel import counted_ends
from relparallel.parallel._records import choice_record
from relparallel.parallel.notation import notation
from relparallel.parallel.schedules import SCHEDULES, V_SHAPED
from relparallel.parallel.strategy import Strategy
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
    "pipeline must divide the micro-batches where stages are interleaved",
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
_CHIMERA: Final = SCHEDULES.index("chimera")
_FOLDED: Final = tuple(SCHEDULES.index(name) for name in V_SHAPED)


@numba.njit(cache=True)  # type: ignore[misc]
def _broken(
    heads: Any,
    keys: Any,
    width: Any,
    expert_width: Any,
    layers: Any,
    mtp: Any,
    sequence: Any,
    experts: Any,
    batch: Any,
    gpus: Any,
    node: Any,
    choices: Any,
    out: Any,
) -> None:
    """Bits of the rules that every strategy breaks, the first lowest; no rule about GPUs if 0."""
    for i in range(choices.size):
        s = choices[i]
        t, p, v = np.int64(s.tensor), np.int64(s.pipeline), np.int64(s.virtual_stages)
        d, c, split = np.int64(s["data"]), np.int64(s.context), s.sequence_parallel > 0
        chunks, together, folded = p * v, d * s.micro_batch, s.schedule in _FOLDED
        whole = s.experts_over_tensor > 0
        places = layers + sum(counted_ends(layers, mtp, p, v, folded, np.int64(s.ends_as_layers)))
        broken = (
            gpus > 0 and t * p * d * c > gpus,
            heads % t != 0,
            keys % t != 0 and t % keys != 0,
            width % t != 0 or (expert_width % t != 0 and not whole),
            chunks > places or (v > 1 and not folded and 0 < places % chunks < p * (v - 1)),
            c > 1 and sequence % (2 * c) != 0,
            split and sequence // c % t != 0,
            split and t == 1,
            experts % s.expert != 0,
            d * c * (t if whole else 1) % s.expert != 0,
            d % s.shard != 0,
            batch % together != 0,
            v > 1 and not folded and (s.schedule != _INTERLEAVED or p == 1),
            v > 1 and not folded and batch // together % p != 0,
            folded and v != 2,
            s.schedule == _CHIMERA and p % 2 != 0,
            node > 0 and node % t != 0 and t % node != 0,
            whole and t > 1 and not split,
        )
        bits: Any = 0
        for k in range(len(broken)):
            bits |= np.int32(broken[k]) << k
        out[i] = bits


def broken_rules(
    model: Transformer, choices: NDArray[Any], global_batch: int, gpus: int = 0, node: int = 0
) -> NDArray[np.int32]:
    """Rules that each strategy breaks; memory is not looked at."""
    out = np.empty(choices.size, dtype=np.int32)
    _broken(
        model.heads,
        model.key_value_heads,
        model.ffn_hidden,
        model.expert_hidden,
        model.layers,
        model.mtp_layers,
        model.sequence,
        model.experts,
        global_batch,
        gpus,
        node,
        choices,
        out,
    )
    return out


def first_broken(rules: NDArray[np.int32]) -> NDArray[np.int8]:
    """Places in `REASONS` of the first rule that each strategy breaks, `FEASIBLE` where none."""
    return np.frexp((rules & -rules).astype(np.float64))[1].astype(np.int8)


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
    rules = broken_rules(model, choice_record(strategy), global_batch, node=node)
    (code,) = first_broken(rules & ~(DEALT if dealt else 0))
    if code != FEASIBLE:
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
        raise ValueError(
            f"strategy breaks a rule: {REASONS[code]}; got {notation(strategy)} with {said}"
        )
