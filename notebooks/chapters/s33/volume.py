"""What a strategy moves: its collectives, their sizes, and how often each happens in an iteration.

L layers of hidden size h read s tokens of each of b sequences, in m micro-batches of a replica; t,
p, d, c and e are the degrees, k the experts of a token, v the chunks per stage, psi the parameters
of the model.
"""

from typing import Final, NamedTuple

from relparallel.parallel.collective_forms import RINGS
from relparallel.parallel.strategy import Strategy
from relparallel.workload import Transformer

_HALF: Final = 2  # bytes of an fp16 or bf16 number


class Collective(NamedTuple):
    """A communication in which every GPU takes part: ``payload`` bytes, so many times an iteration.

    The payload is the vector that is reduced, gathered or sent; of an all-to-all what a rank has.
    """

    kind: str
    degree: str
    ranks: int
    payload: float
    times: float

    @property
    def bytes_sent(self) -> float:
        """Bytes that one GPU sends for it in an iteration, by rings or a direct exchange."""
        share = (
            1.0 if self.kind == "send" else RINGS.get(self.kind, 1) * (self.ranks - 1) / self.ranks
        )
        return share * self.payload * self.times


def strategy_collectives(
    model: Transformer, strategy: Strategy, global_batch: int
) -> tuple[Collective, ...]:
    """The communication of one training iteration of ``global_batch`` sequences over all replicas.

    Tensor, context, expert, pipeline, then data parallelism; degrees of 1 give none. ``expert``
    must be 1 where ZeRO shards the state.

    - Tensor: per layer and micro-batch 2 all-reduces of 2 b s h/c bytes forward and 2 backward, 2
      more when all layers are recomputed; sequence parallelism replaces each by a reduce-scatter
      and an all-gather.
    - Context: per layer and micro-batch the keys and values of the whole sequence are gathered in
      both passes, and once more when recomputed; their gradients are scattered.
    - Expert: per layer with experts 2 all-to-alls of 2 b s h k/c bytes forward and 2 backward, 2
      more when recomputed; 1/t of it with `experts_over_tensor`, where without shared experts such
      a layer has half of the tensor collectives.
    - Pipeline: 2 b s h/c bytes per micro-batch over each of the p v - 1 boundaries, forward and
      back.
    - Data: the gradients of psi/(t p) parameters, 2 bytes each, over d c ranks: an all-reduce (of
      the experts' own parameters over d c/e); with ZeRO a reduce-scatter and an all-gather of the
      parameters inside the shard group (stage 3 gathers twice), and an all-reduce of each shard
      over the copies.

    Narayanan et al., SC 2021, section 3. Korthikanti et al. 2022, section 4. Rajbhandari et al., SC
    2020.

    >>> gpt = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    >>> strategy = Strategy(tensor=8, pipeline=8, data=16)
    >>> [(c.degree, round(c.bytes_sent / 1e9, 1)) for c in strategy_collectives(gpt, strategy, 1536)]
    [('tensor', 405.9), ('pipeline', 8.5), ('data', 10.2)]
    """
    if (strategy.expert > 1 or strategy.experts_over_tensor) and strategy.zero_stage > 0:
        raise ValueError(
            f"strategy must have expert 1 or zero_stage 0, got {strategy.expert} and "
            f"{strategy.zero_stage}"
        )
    if model.experts % strategy.expert and strategy.expert > 1:
        raise ValueError(
            f"strategy must have an expert degree that divides the {model.experts} experts, "
            f"got {strategy.expert}"
        )
    m = strategy.micro_batches(global_batch)
    every = [*_passes(model, strategy, m), *_data(model, strategy)]
    return tuple(collective for collective in every if collective.bytes_sent > 0)


def _passes(model: Transformer, s: Strategy, m: int) -> list[Collective]:
    """What the passes of m micro-batches send."""
    tokens, layers = s.micro_batch * model.sequence, m * model.layers / s.pipeline
    # between two layers on a context-parallel rank
    activation = _HALF * tokens * model.hidden / s.context
    keys = _HALF * 2 * tokens * model.key_value_heads * model.head_width / s.tensor
    times, gathers = {
        "full": (6, 3),
        "alternate": (5, 2.5),
        "mlp": (4 + (model.experts == 1), 2),
    }.get(s.recompute, (4, 2))
    kinds = ("reduce_scatter", "all_gather") if s.sequence_parallel else ("all_reduce",)
    mixtures = m * model.mixture_layers / s.pipeline * times
    whole = s.tensor // s.expert_tensor
    # by tensor parallelism
    untouched = mixtures / 2 if whole > 1 and model.shared_experts == 0 else 0
    boundaries = s.pipeline * s.virtual_stages - 1
    return [
        *(
            Collective(kind, "tensor", s.tensor, activation, layers * times - untouched)
            for kind in kinds
        ),
        Collective("all_gather", "context", s.context, keys, gathers * layers),
        Collective("reduce_scatter", "context", s.context, keys, layers),
        Collective(
            "all_to_all", "expert", s.expert, activation * model.active_experts / whole, mixtures
        ),
        Collective("send", "pipeline", s.pipeline, activation, 2 * m * boundaries / s.pipeline),
    ]


def _data(model: Transformer, strategy: Strategy) -> list[Collective]:
    """What the replicas send."""
    replicas, split = strategy.data * strategy.context, strategy.tensor * strategy.pipeline
    payload = _HALF * model.parameters / split
    if strategy.zero_stage == 0:
        whole = strategy.tensor // strategy.expert_tensor
        apart = strategy.expert * whole > 1
        own = model.mixture_layers * model.experts * model.expert_weights if apart else 0
        experts = _HALF * own / split
        ranks, held = replicas * whole // strategy.expert, experts * whole / strategy.expert
        return [
            Collective("all_reduce", "data", replicas, payload - experts, 1),
            Collective("all_reduce", "data", ranks, held, 1),
        ]
    ranks, gathers = strategy.shard_group, 2 if strategy.zero_stage == 3 else 1
    return [
        Collective("reduce_scatter", "data", ranks, payload, 1),
        Collective(
            "all_reduce", "data", strategy.state_copies * strategy.context, payload / ranks, 1
        ),
        Collective("all_gather", "data", ranks, payload, gathers),
    ]
