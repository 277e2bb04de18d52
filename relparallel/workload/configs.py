"""Models from the ``config.json`` that stands beside their weights on Hugging Face.

A family says what its code does; the file says the sizes. A field that is neither read nor known to leave the
sizes alone is refused by its name: it may change the model.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from relparallel._checks import Result, require_instance, require_int
from relparallel.workload.transformer import LatentAttention, Transformer

_NAMES: Final = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "num_heads"),
    "kv_heads": ("num_key_value_heads",),
    "head_size": ("head_dim", "d_kv"),
    "ffn": ("intermediate_size", "n_inner", "d_ff"),
    "vocabulary": ("vocab_size",),
    "experts": ("num_local_experts", "n_routed_experts", "num_experts"),
    "active_experts": ("num_experts_per_tok", "experts_per_token"),
    "expert_ffn": ("moe_intermediate_size",),
    "shared_experts": ("n_shared_experts",),
    "dense_layers": ("first_k_dense_replace",),
}
_LATENT: Final = {
    "q_rank": "q_lora_rank", "kv_rank": "kv_lora_rank", "nope": "qk_nope_head_dim",
    "rope": "qk_rope_head_dim", "value": "v_head_dim",
}  # fmt: skip
_DECODER: Final = {"gated": True, "biases": False, "learned_positions": False, "tied": False}
_OLDER: Final = {"gated": False, "biases": True, "learned_positions": True, "tied": True}
_FAMILIES: Final[Mapping[str, Mapping[str, bool]]] = {
    **dict.fromkeys(("llama", "mistral", "mixtral", "qwen2", "gpt_oss"), _DECODER),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3"), _DECODER),
    **dict.fromkeys(("qwen3", "qwen3_moe"), _DECODER | {"qk_norm": True}),
    **dict.fromkeys(("gpt2", "bert"), _OLDER),
    "vit": _OLDER | {"tied": False},
    "bloom": _OLDER | {"learned_positions": False},
    "t5": _OLDER | {"learned_positions": False, "biases": False},
}
_LENGTHS: Final = ("initial_context_length", "seq_length", "n_positions", "max_position_embeddings")
_READ: Final = {
    *(name for names in _NAMES.values() for name in names), *_LATENT.values(), *_LENGTHS, "model_type",
    "tie_word_embeddings", "rope_scaling", "sliding_window", "use_sliding_window", "layer_types",
    "num_nextn_predict_layers", "attention_bias", "mlp_bias", "qkv_bias", "moe_layer_freq",
    "decoder_sparse_step", "mlp_only_layers", "image_size", "patch_size", "num_channels", "num_labels",
    "num_decoder_layers", "is_encoder_decoder", "type_vocab_size", "n_ctx", "hidden_act",
    "activation_function", "feed_forward_proj",
}  # fmt: skip
_HARMLESS: Final = re.compile(
    r"_.*|.*_token_id|.*dropout.*|.*_pdrop|output_.*|.*init.*|.*_eps(ilon)?|.*rope_theta|architectures|auto_map"
    r"|transcribed|transformers_version|torch_dtype|dtype|use_cache|pretraining_tp|max_window_layers|swiglu_limit"
    r"|relative_attention_.*|quantization_config|n_group|topk_.*|norm_topk_prob|routed_scaling_factor"
    r"|scoring_func|ep_size|router_.*|aux_loss_alpha|seq_aux|id2label|label2id|problem_type|pad_.*"
    r"|layer_norm_epsilon|position_embedding_type|gradient_checkpointing|attn_implementation"
)
_WINDOW: Final = "attention windows of {} tokens are priced as attention to the whole sequence"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig(Result):
    """A model that was read from a file: its name, its sizes, and what of the file was not modelled."""

    name: str
    model: Transformer
    notes: tuple[str, ...]


def read_config(
    path: str | PathLike[str], *, sequence: int | None = None, ignore: Sequence[str] = ()
) -> ModelConfig:
    """Read a ``config.json`` of Hugging Face Transformers.

    Parameters
    ----------
    path : str or path
        The file. Families: Llama, Mistral, Mixtral, Qwen 2 and 3 (also MoE), gpt-oss, DeepSeek V2 and V3,
        GPT-2, BLOOM, BERT, T5 and ViT.
    sequence : int, optional
        Tokens of a sequence in training. Where omitted, the length before any stretching of positions
        that the file states, else the longest that it allows; the notes say which.
    ignore : sequence of str
        Fields that are not read and change nothing.

    Returns
    -------
    ModelConfig
        Sizes with which parameters are within 0.5 % of those of the checkpoint. An encoder-decoder becomes as
        many layers of mean size: the heads of its attention are 3/2 as wide, since the decoder has two
        attentions in a layer. Images become sequences of patches.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "config.json"
    >>> sizes = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
    >>> _ = path.write_text(json.dumps(sizes | {"n_positions": 1024}))
    >>> read_config(path).model.parameters
    124439808
    """
    where = Path(require_instance((str, PathLike), path=path))
    require_instance((list, tuple), ignore=ignore)
    config = _loaded(where)
    family = str(config.get("model_type"))
    if family not in _FAMILIES:
        raise ValueError(f"path must hold a model of {', '.join(sorted(_FAMILIES))}, got {family} in {where}")
    unknown = sorted(k for k in config if k not in _READ and k not in ignore and not _HARMLESS.fullmatch(k))
    if unknown:
        raise ValueError(
            f"path must hold fields whose effect is known, got {', '.join(unknown)} in {where}: "
            f"ignore=[...] takes those that change neither parameters nor operations"
        )
    sizes = _sizes(config, where)
    if sequence is not None:
        sizes["sequence"] = require_int(sequence=sequence, at_least=1)
    try:
        notes = _refused_or_noted(config)
        if family in _SPECIAL:
            notes.append(_SPECIAL[family](config, sizes))
        if "sequence" not in sizes:
            sizes["sequence"], said = _length(config)
            notes.append(f"sequences of {sizes['sequence']} tokens, {said} in the file")
        for name in ("layers", "hidden", "heads", "vocabulary"):
            if name not in sizes:
                raise ValueError(f"{' or '.join(_NAMES[name])} is missing")
        latent = LatentAttention(**sizes.pop("latent")) if "latent" in sizes else None
        model = Transformer(**sizes, latent=latent)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        said = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"path must hold the sizes of a model, got {where}: {said}") from None
    return ModelConfig(name=where.stem, model=model, notes=tuple(notes))


def _loaded(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"path must name a JSON file, got {path} ({error})") from None
    if not isinstance(config, dict):
        raise ValueError(f"path must hold one JSON object, got {type(config).__name__} in {path}")
    return config


def _sizes(config: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Arguments of `Transformer` that the file states, those of the family among them."""
    sizes: dict[str, Any] = dict(_FAMILIES[config["model_type"]])
    for size, names in _NAMES.items():
        found = [config[name] for name in names if config.get(name) is not None]
        if any(other != found[0] for other in found):
            raise ValueError(f"path must state {size} once, got {found!r:.80} in {path}")
        sizes |= {size: found[0]} if found else {}
    if config.get("tie_word_embeddings") is not None:
        sizes["tied"] = bool(config["tie_word_embeddings"])
    if config.get("kv_lora_rank") is not None:
        sizes["latent"] = {size: config.get(name) for size, name in _LATENT.items()}
        sizes.pop("kv_heads", None)
        sizes.pop("head_size", None)
    return sizes


def _refused_or_noted(config: Mapping[str, Any]) -> list[str]:
    """What of the file is not modelled, in words; what would change the model by much is refused."""
    for name, usual in (("moe_layer_freq", 1), ("decoder_sparse_step", 1), ("mlp_only_layers", [])):
        if config.get(name, usual) != usual:
            raise ValueError(f"{name} is modelled as {usual} only, got {config[name]!r:.80}")
    notes = []
    window = config.get("sliding_window")
    if window and config.get("use_sliding_window", True):
        notes.append(_WINDOW.format(window))
    if config.get("num_nextn_predict_layers"):
        notes.append("layers that predict further tokens are not counted")
    if config["model_type"] in ("qwen2", "gpt_oss") or config.get("attention_bias"):
        notes.append("biases of the attention, and of experts, are not counted")
    return notes


def _length(config: Mapping[str, Any]) -> tuple[int, str]:
    """Length of a sequence, and the field that says it."""
    stretched = config.get("rope_scaling")
    if isinstance(stretched, Mapping) and "original_max_position_embeddings" in stretched:
        return stretched["original_max_position_embeddings"], "original_max_position_embeddings"
    for name in _LENGTHS:
        if config.get(name) is not None:
            return config[name], name
    raise ValueError(f"none of {', '.join(_LENGTHS)} is there: give sequence")


def _mean_layer(config: Mapping[str, Any], sizes: dict[str, Any]) -> str:
    """Encoder and decoder as one stack of layers of mean size."""
    decoder = config.get("num_decoder_layers", sizes["layers"])
    if decoder != sizes["layers"] or "gated" in str(config.get("feed_forward_proj", "")):
        raise ValueError("only stacks of equal length without gates are modelled")
    sizes["layers"] += decoder
    sizes["head_size"] = 3 * sizes["head_size"] // 2
    sizes.setdefault("sequence", 512)
    return f"encoder and decoder are priced as layers of mean size, on {sizes['sequence']} tokens each"


def _patches(config: Mapping[str, Any], sizes: dict[str, Any]) -> str:
    """Patches of an image and one token that is classified; patches and classes in the place of words."""
    sizes["sequence"] = (config["image_size"] // config["patch_size"]) ** 2 + 1
    pixels = config.get("num_channels", 3) * config["patch_size"] ** 2
    sizes["vocabulary"] = (pixels + config.get("num_labels", 1000)) // 2
    return "patches and classes are priced as a vocabulary of their mean"


_SPECIAL: Final[Mapping[str, Callable[..., str]]] = {"t5": _mean_layer, "vit": _patches}
