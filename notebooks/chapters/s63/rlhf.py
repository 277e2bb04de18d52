"""Reinforcement learning from human feedback: a step writes, judges and trains, on four models."""

from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from relparallel.workload.language_models import Transformer

_TRAINING_BYTES = 16  # of a parameter: weight, gradient, its copy and two moments of Adam
_INFERENCE_BYTES = 2  # of a parameter that is not trained, and of a cached key or value


class Phase(NamedTuple):
    """Part of a mixed workload: FLOPs, how often it reads the weights, least bytes with caches."""

    name: str
    model: str
    flops: float
    weight_reads: int
    bytes: float


class MixedWorkload(NamedTuple):
    """Phases that follow each other, and the bytes of the models and cache in memory meanwhile."""

    phases: tuple[Phase, ...]
    states: tuple[tuple[str, float], ...]
    cache: float

    @property
    def flops(self) -> float:
        """Operations of a whole step [FLOP]."""
        return sum(phase.flops for phase in self.phases)

    @property
    def bytes(self) -> float:
        """Memory that models and cache take together [bytes]."""
        return sum(size for _, size in self.states) + self.cache

    def to_frame(self) -> pd.DataFrame:
        """Return the phases with their FLOPs, least bytes read and FLOPs per byte."""
        frame = pd.DataFrame(self.phases)
        frame["FLOP/byte"] = frame["flops"] / frame["bytes"]
        return frame.rename(columns={"name": "phase", "weight_reads": "weights read"})


def rlhf(
    actor: Transformer,
    critic: Transformer,
    *,
    prompt: int,
    response: int,
    sequences: int,
    epochs: int = 1,
) -> MixedWorkload:
    """One step of proximal policy optimization on a language model.

    writing, judging by four models, training two.

    The reference equals the ``actor`` in size, the reward model the ``critic``; ``prompt`` and
    ``response`` are tokens read and written per sequence, all ``sequences`` of the step are written
    together, and actor and critic train on them ``epochs`` times. Token i of an answer costs 2 W +
    2 h V + 4 L a d (prompt + i) and reads every weight once for all sequences. Whole passes count
    the full square of scores, as `Transformer.flops_per_iteration` does. Ouyang et al., 2022,
    section 3. Yao et al., "DeepSpeed-Chat", 2023, section 4 (hybrid engine).

    >>> actor = Transformer(layers=40, hidden=5120, heads=40, vocabulary=50272, sequence=512)
    >>> critic = Transformer(layers=24, hidden=1024, heads=16, vocabulary=50272, sequence=512)
    >>> step = rlhf(actor, critic, prompt=256, response=256, sequences=1024)
    >>> round(step.bytes / 1e9)
    667
    """
    cached = _cache(actor, sequences)
    trained = ("actor", "critic")
    models = {"actor": actor, "critic": critic, "reference": actor, "reward": critic}
    whole = {name: _pass(model, prompt + response, sequences) for name, model in models.items()}
    weights = {name: float(_INFERENCE_BYTES * model.parameters) for name, model in models.items()}
    steps_read = cached * sum(prompt + i for i in range(1, response + 1))
    writing = sum(_token(actor, prompt + i) for i in range(1, response + 1)) * sequences
    phases = [
        _phase("read prompts", "actor", _pass(actor, prompt, sequences), 1, weights["actor"]),
        _phase("write answers", "actor", writing, response, weights["actor"], steps_read),
    ]
    phases += [_phase("judge", name, whole[name], 1, weights[name]) for name in models]
    phases += [
        _phase("train", name, 3 * epochs * whole[name], 3 * epochs, weights[name])
        for name in trained
    ]
    bytes_of = {name: _TRAINING_BYTES if name in trained else _INFERENCE_BYTES for name in models}
    states = tuple(
        (name, float(bytes_of[name] * model.parameters)) for name, model in models.items()
    )
    return MixedWorkload(tuple(phases), states, cache=cached * (prompt + response))


def _phase(
    name: str, model: str, flops: float, reads: int, weights: float, caches: float = 0.0
) -> Phase:
    return Phase(name, model, flops, reads, reads * weights + caches)


def _pass(model: Transformer, tokens: int, sequences: int) -> float:
    """FLOPs of one forward pass."""
    return replace(model, sequence=tokens).flops_per_iteration(sequences) / 3


def _token(model: Transformer, context: int) -> float:
    """FLOPs of one more token behind a context that includes it."""
    products = 2 * model.active_weights + 2 * model.hidden * model.vocabulary
    return float(products + model.core_flops(context))


def _cache(model: Transformer, sequences: int) -> float:
    """Bytes of keys and values per token of every sequence; windows keep all, other mixers none."""
    width = 2 * model.key_value_heads * model.head_width
    if model.latent:
        width = model.latent.kv_rank + model.latent.rope
    return float(_INFERENCE_BYTES * model.attentions * width * sequences)
