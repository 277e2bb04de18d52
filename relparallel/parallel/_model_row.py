"""A model as the kernels take it: one row of numbers, in which all layers are equal."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.workload import Transformer
from relparallel.workload.mixers import attended

MODEL: Final = np.dtype((np.record, [(name, np.float64) for name in (
    "layers", "hidden", "heads", "kv_heads", "head", "ffn", "matrices", "vocabulary", "sequence",
    "experts", "active", "shared", "expert_ffn", "mixture", "layer_weights", "expert_weights",
    "positions", "tied", "biases", "attention", "span", "dense", "blocks", "mixer", "core", "kept", "mtp",
)]))  # fmt: skip
"""Sizes of a model; ``matrices`` is 2, or 3 with a gate; ``positions``, ``tied`` and ``biases`` are 0 or 1.

What layers do not share is a mean over all of them: the shares ``mixture`` with experts, ``dense`` with a
dense block, ``attention`` with the own attention, whose queries look at ``span`` tokens (a masked half
counted); weights, without and with those that expert parallelism splits; ``blocks`` in a layer over two; and
of other mixers columns of products, FLOPs of a token besides (a masked half left out) and numbers it keeps.
``mtp`` layers of multi-token prediction come behind the last one.
"""

_SAME: Final = ("layers", "hidden", "heads", "vocabulary", "sequence", "experts", "tied", "biases")


def model_record(model: Transformer) -> NDArray[Any]:
    """Sizes of a model, one row of `MODEL`."""
    L, mixers = model.layers, model.mixers
    own = model.mixture_layers * model.experts * model.expert_weights  # what expert parallelism splits
    plain = model.ffn_blocks - model.mixture_layers
    return row_of(
        MODEL,
        **{name: getattr(model, name) for name in _SAME},
        kv_heads=model.key_value_heads,
        head=model.head_width,
        ffn=model.ffn_hidden,
        matrices=2 + model.gated,
        active=model.active_experts,
        shared=model.shared_experts,
        expert_ffn=model.expert_hidden,
        mixture=model.mixture_layers / L,
        layer_weights=(model.layer_weights - own) / L,
        expert_weights=own / L,
        positions=model.learned_positions,
        attention=model.attentions / L,
        span=_span(model) / L,
        dense=1 - (L - plain) / L,
        blocks=(model.attentions + model.mixed + model.ffn_blocks) / (2 * L),
        mixer=sum(m.layers * m.weights for m in mixers) / (model.hidden * L),
        core=model.other_flops(model.sequence, causal=True) / L,
        kept=sum(m.layers * m.kept for m in mixers) / L,
        mtp=model.mtp_layers,
    )


def _span(model: Transformer) -> float:
    """Tokens that queries of the model's own attention look at in all layers, a masked half counted."""
    full = (model.attentions - model.windowed) * model.sequence
    return full + model.windowed * 2 * attended(model.sequence, model.window, causal=True)


def row_of(dtype: np.dtype[Any], **values: Any) -> NDArray[Any]:
    """One row of a structured array, every field given."""
    if set(values) != set(dtype.names or ()):
        raise TypeError(f"values must be {dtype.names}, got {tuple(values)}")
    row = np.zeros(1, dtype)
    for name, value in values.items():
        row[name] = value
    return row
