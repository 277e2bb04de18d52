"""Public ``config.json`` files, from the table beside, and the blocks that their fields come in."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import yaml


class Public(NamedTuple):
    """Fields of a file, parameters, and those that a token passes if a model card states them."""

    config: dict[str, Any]
    parameters: float
    active: float | None = None


def kinds(layers: int, period: int, others: str = "sliding_attention") -> list[str]:
    """Every period-th layer has full attention."""
    return [others if (i + 1) % period else "full_attention" for i in range(layers)]


def plain(
    family: str, layers: int, hidden: int, heads: int, kv: int, ffn: int, words: int, **more: Any
) -> dict[str, Any]:
    """Fields that most files have."""
    return {
        "model_type": family,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "intermediate_size": ffn,
        "vocab_size": words,
        "hidden_act": "silu",
        "max_position_embeddings": 8192,
        "rope_theta": 10000.0,
        "rms_norm_eps": 1e-6,
        "attention_dropout": 0.0,
        "use_cache": True,
        "initializer_range": 0.02,
    } | more


def latent(q_rank: int | None, nope: int, value: int) -> dict[str, Any]:
    return {
        "kv_lora_rank": 512,
        "q_lora_rank": q_rank,
        "qk_nope_head_dim": nope,
        "qk_rope_head_dim": 64,
        "v_head_dim": value,
    }


def experts(many: int, active: int, width: int, shared: int, **more: Any) -> dict[str, Any]:
    return {
        "n_routed_experts": many,
        "num_experts_per_tok": active,
        "moe_intermediate_size": width,
        "n_shared_experts": shared,
    } | more


PUBLIC = {
    name: Public(**fields)
    for name, fields in yaml.safe_load(
        Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    ).items()
}
