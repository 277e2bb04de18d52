"""Models from the ``config.json`` that stands beside their weights on Hugging Face.

A family says what its code does, in ``data/model_families.yaml``; the file says the sizes. A field
that is neither read nor known to leave the sizes alone is refused by its name: it may change the
model.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

from relparallel._checks import require_flag, require_instance, require_int
from relparallel.topology.formats._text import once
from relparallel.workload import _layers
from relparallel.workload.language_models import LatentAttention, Transformer

_LATENT: Final = {
    "q_rank": "q_lora_rank",
    "kv_rank": "kv_lora_rank",
    "nope": "qk_nope_head_dim",
    "rope": "qk_rope_head_dim",
    "value": "v_head_dim",
    "index_heads": "index_n_heads",
    "index_size": "index_head_dim",
}
_FLAGS: Final = ("gated", "biases", "learned_positions", "tied", "qk_norm")
_WRAPPERS: Final = ("text_config", "llm_config", "language_config", "thinker_config")
_WHOLE: Final = ("ForCausalLM", "ForConditionalGeneration")
_LENGTHS: Final = (
    "initial_context_length",
    "original_max_position_embeddings",
    "seq_length",
    "n_positions",
    "max_sequence_length",
    "max_seq_len",
    "model_max_length",
    "max_position_embedding",
    "max_position_embeddings",
)
_BLOCKS: Final = {  # fields of block_configs
    "attention": ("no_op", "replace_with_linear", "n_heads_in_group"),
    "ffn": ("no_op", "replace_with_linear", "ffn_mult"),
}
_SIZED: Final = r".*_(size|dim|rank|heads|layers)$"
_VERSION: Final = "transformers_version"
_MOST_LAYERS: Final = 10**5  # more than any model has: each of them is looked at
_STRETCHED: Final = "original_max_position_embeddings"
_TOWER: Final = re.compile(
    r"(vision|visual|audio|image|video|img|speech|mm)_.*|vision|visual|embd_layer"
)


class ModelConfig(NamedTuple):
    """A model read from a file: its name, its sizes, and what of the file was not modelled.

    ``active_parameters`` are those that a token passes, as the model card counts them; a note says
    how.
    """

    name: str
    model: Transformer
    active_parameters: int
    notes: tuple[str, ...]


def read_config(
    path: str | PathLike[str], *, sequence: int | None = None, ignore: Sequence[str] = ()
) -> ModelConfig:
    """Read a ``config.json`` of Hugging Face Transformers.

    Parameters
    ----------
    path : str or path
        The file of one of the families in ``data/model_families.yaml``, or of another one that is
        written as Llama's are. Of a model with images or sound, the language model is read.
    sequence : int, optional
        Tokens of a sequence in training. Where omitted, the length before any stretching of
        positions that the file states, else the longest that it allows; the notes say which.
    ignore : sequence of str
        Fields that are not read and change nothing.

    Returns
    -------
    ModelConfig
        Sizes with which parameters are within 0.5 % of those of the checkpoint without its layers
        of multi-token prediction, which ``mtp_layers`` counts. Layers may differ in windows, mixers
        and experts. An encoder-decoder becomes as many layers of mean size: the heads of its
        attention are 3/2 as wide, since the decoder has two attentions in a layer. Images become
        sequences of patches.

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
    asked = None if sequence is None else require_int(sequence=sequence, at_least=1)
    config, opened = _opened(_loaded(where))
    family, said = _family(config, where)
    try:
        fields = _layers.Fields(_unfolded(config), family)
        sizes = _sizes(fields)
        length, source = _length(fields, sizes, asked)
        latent = LatentAttention(**sizes.pop("latent")) if "latent" in sizes else None
        model = Transformer(**sizes | {"sequence": length}, latent=latent)
    except (
        LookupError,
        TypeError,
        ValueError,
        ZeroDivisionError,
        OverflowError,
        AttributeError,
    ) as error:
        why = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"path must hold the sizes of a model, got {where}: {why}") from None
    harmless = _harmless(family)
    unknown = [
        name for name in fields.unread() if name not in ignore and not harmless.fullmatch(name)
    ]
    if unknown:
        raise ValueError(
            f"path must hold fields whose effect is known, got {', '.join(unknown)} in {where}: "
            f"--ignore {' '.join(unknown)} (in Python ignore={unknown}) takes them, where they "
            "change neither parameters nor operations"
        )
    active, counted = _active(model, family.get("card"))
    own = (family["note"],) if "note" in family else ()
    notes = (*opened, *said, *own, *fields.notes, f"sequences of {length} tokens, {source}")
    notes += (counted,) if model.mixture_layers else ()
    return ModelConfig(name=where.stem, model=model, active_parameters=active, notes=notes)


def _harmless(family: Mapping[str, Any]) -> re.Pattern[str]:
    """Fields that change no size; a pattern with a gap never takes what is named as a size."""
    patterns = _layers.tables()["harmless"]
    wide = "|".join(pattern for pattern in patterns if ".*" in pattern)
    named = [pattern for pattern in patterns if ".*" not in pattern]
    return re.compile("|".join([*named, *family.get("ignore", ()), f"(?!{_SIZED})(?:{wide})"]))


def _loaded(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=once)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"path must name a JSON file, got {path} ({error})") from None
    if not isinstance(config, dict):
        raise ValueError(f"path must hold one JSON object, got {type(config).__name__} in {path}")
    return config


def _opened(config: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The language model inside a wrapper, and what was left out."""
    outer, inner, notes = dict(config), dict(config), list[str]()
    while found := next(
        (inner[name] for name in _WRAPPERS if isinstance(inner.get(name), dict)), None
    ):
        inner = {name: outer.get(name) for name in ("model_type", "architectures")} | found
        tied = outer.get("tie_word_embeddings")
        said = inner.setdefault("tie_word_embeddings", tied)
        if tied not in (None, said):  # the wrapper's word counts since version 5
            inner["tie_word_embeddings"] = tied if str(outer.get(_VERSION)) >= "5" else said
            said = inner["tie_word_embeddings"]
            notes.append(f"tie_word_embeddings is stated twice: {said} is taken")
    towers = sorted(
        {n for c in (outer, inner) for n in c if _TOWER.fullmatch(n) and isinstance(c[n], dict)}
    )
    if inner != outer or towers:
        left = ", ".join(towers) or "what the wrapper adds"
        notes.append(f"the language model only: {left} of {outer.get('model_type')} is left out")
    return {name: value for name, value in inner.items() if name not in towers}, notes


def _family(config: Mapping[str, Any], path: Path) -> tuple[Mapping[str, Any], list[str]]:
    """Row of the table, and what was assumed; the type of a wrapper's text ends in ``_text``."""
    rows = _layers.tables()["families"]
    known = {
        name: row for family, row in rows.items() for name in (family, *row.get("aliases", ()))
    }
    said, architectures = str(config.get("model_type")), config.get("architectures")
    built = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    snake = re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", built.split("For")[0]).lower()
    for name in (built, said, said.removesuffix("_text")):
        if name in known:
            return {"name": name} | known[name], []
    if snake in known:
        return {"name": snake} | known[snake], [f"{said} is read as {built} says"]
    name = said.removesuffix("_text")
    if built.endswith(_WHOLE) and config.get("hidden_act") == "silu":
        return {"name": name}, [
            f"{said} is no known family: read as a Llama, all its fields being understood"
        ]
    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ValueError(
        f"path must hold a model of the {len(known)} types in data/model_families.yaml, or one "
        f"whose architecture is of them or like Llama's, got {said} in {path}{hint}"
    )


def _unfolded(config: Mapping[str, Any]) -> dict[str, Any]:
    """A file whose layers differ by ``block_configs``, with a list of every size instead."""
    unfolded = dict(config)
    if not (blocks := unfolded.pop("block_configs", None)):
        return unfolded
    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    kinds, groups, widths = list[str](), list[int | None](), list[int]()
    for block in blocks:
        for part, said in block.items():
            known = _BLOCKS.get(part, ())
            for name in said if isinstance(said, Mapping) else ("",):
                if name not in known and (not name or said[name]):
                    raise ValueError(f"block_configs.{part}.{name} is not known, got {said!r:.80}")
        mixer, ffn = block["attention"], block["ffn"]
        left_out, linear = mixer.get("no_op"), mixer.get("replace_with_linear")
        kinds.append("no_op" if left_out else "linear" if linear else "attention")
        groups.append(mixer["n_heads_in_group"] if kinds[-1] == "attention" else None)
        whole = not (ffn.get("no_op") or ffn.get("replace_with_linear"))
        widths.append(-(int(2 * ffn["ffn_mult"] * hidden / 3) // -256) * 256 if whole else 0)
    kv_heads = [heads // group if group else None for group in groups]
    return unfolded | {
        "layer_types": kinds,
        "num_key_value_heads": next(filter(None, kv_heads), heads),
        "num_key_value_heads_per_layer": kv_heads,
        "intermediate_size": widths,
        "linear_ffn_blocks": sum(bool(b["ffn"].get("replace_with_linear")) for b in blocks),
    }


def _sizes(fields: _layers.Fields) -> dict[str, Any]:
    """Arguments of `Transformer`, without the length of a sequence."""
    family = fields.family
    sizes: dict[str, Any] = {"gated": True} | dict.fromkeys(_FLAGS[1:], False)
    sizes |= {name: family[name] for name in _FLAGS if name in family}
    sizes |= {name: fields.size(name) for name in ("layers", "hidden", "heads", "vocabulary")}
    listed = fields("layers_block_type", "hybrid_override_pattern", default=())
    sizes["layers"] = sizes["layers"] or len(listed) or None
    if fields("tie_word_embeddings") is not None:
        sizes["tied"] = require_flag(tie_word_embeddings=fields("tie_word_embeddings"))
    if family["name"] in _SPECIAL:
        fields.notes.append(_SPECIAL[family["name"]](fields, sizes))
        return sizes
    missing = [name for name in ("layers", "hidden", "heads", "vocabulary") if sizes[name] is None]
    if missing:
        raise ValueError(f"{' or '.join(_layers.tables()['fields'][missing[0]])} is missing")
    layers = require_int(layers=sizes["layers"], at_least=1, at_most=_MOST_LAYERS)
    hidden, _ = require_int(hidden=sizes["hidden"], heads=sizes["heads"], at_least=1)
    kinds = _layers.mixer_kinds(fields, layers)
    own, mixers = _layers.mixers(fields, kinds, hidden, layers)
    sizes |= {**own, "mixers": mixers, "ffn": fields.size("ffn")} | _latent(fields)
    if fields("use_double_wide_mlp"):  # in the layers that make no keys and values
        sizes["ffn"] += round(sizes["ffn"] * fields.need("num_kv_shared_layers") / layers)
    sizes |= _experts(fields, sizes, kinds)
    dense = sizes.get("dense_layers", sizes.get("ffn_layers", 1))
    if sizes["ffn"] is None and sizes["gated"] and dense:
        raise ValueError("intermediate_size is missing")
    sizes["vectors"] = _vectors(fields, sizes)
    sizes["mtp_layers"] = _further(fields)
    if len(counted := Counter(kinds)) > 1:
        said = ", ".join(f"{n} {kind}" for kind, n in counted.items())
        fields.notes.append(f"layers differ ({said}): times and bytes take the mean layer")
    if sizes.get("window"):
        which = own.get("windowed_layers", "all")
        fields.notes.append(
            f"queries look at {sizes['window']} tokens, chunks count as windows, in {which} layers"
        )
    return sizes


def _latent(fields: _layers.Fields) -> dict[str, Any]:
    """Latent attention, with an index where the family has one."""
    if not fields("kv_lora_rank"):
        return {}
    latent = {size: fields(name) for size, name in _LATENT.items() if fields(name)}
    for name in ("qk_nope_head_dim", "v_head_dim"):
        fields.need(name)
    latent["rope"] = require_int(qk_rope_head_dim=fields("qk_rope_head_dim"), at_least=0)
    if "q_rank" not in latent:  # then layers that choose keys are mixers
        latent = {size: width for size, width in latent.items() if not size.startswith("index")}
    best = fields("index_topk") if "index_heads" in latent else None
    looked = {} if best is None else {"window": best}
    return {"latent": latent, "kv_heads": None, "head_size": None, **looked}


def _experts(
    fields: _layers.Fields, sizes: Mapping[str, Any], kinds: Sequence[str]
) -> dict[str, Any]:
    """Feed-forward blocks; ``kinds`` of layers name them where a layer has one block of any kind."""
    blocks = [kind == "experts" for kind in kinds if kind in ("dense", "experts")]
    found: dict[str, Any] = {}
    if blocks or fields.family.get("single"):
        found["ffn_layers"] = len(blocks)
    elif isinstance(widths := fields("intermediate_size"), list) and 0 in widths:
        found["ffn_layers"] = len(widths) - widths.count(0)
    experts = (fields.size("experts") or 0) if fields("is_moe", default=True) else 0
    if experts <= 1:
        return found | {"ffn": fields.size("shared_ffn") or sizes["ffn"]}
    blocks = blocks or _layers.ffn_kinds(fields, sizes["layers"])
    width = fields.size("expert_ffn") or sizes["ffn"]
    shared = fields.size("shared_experts")
    wide = fields.size("shared_ffn")
    wide = wide * (shared or 1) if wide else (shared or 0) * width
    if fields("enable_moe_block"):  # the dense block stands beside the experts
        wide = sizes["ffn"]
    if latent := fields("moe_latent_size"):
        fields.notes.append(
            f"experts read {latent} of {sizes['hidden']} numbers: priced as narrower ones of all"
        )
        found["routed"] = latent
        found["vectors"] = 2 * sum(blocks) * latent * sizes["hidden"]
        width = width * latent // sizes["hidden"]
    active = fields.size("active_experts")
    if empty := fields("zero_expert_num"):
        require_int(zero_expert_num=empty, at_least=1)
        mean = round(active * experts / (experts + empty))
        fields.notes.append(
            f"{empty} of {experts + empty} experts compute nothing: {mean} of {active} do so in the "
            "mean, where tokens are spread evenly"
        )
        active = mean
        found["vectors"] = found.get("vectors", 0) + sum(blocks) * empty * sizes["hidden"]  # router
    dense = blocks.count(False)
    if wide % width and dense:
        raise ValueError(f"shared experts must be a multiple of experts {width} wide, got {wide}")
    if wide % width:  # beside every mixture stands a dense block
        found |= {"ffn": wide, "ffn_layers": 2 * len(blocks)}
        wide, dense = 0, len(blocks)
    return found | {
        "experts": experts,
        "active_experts": active,
        "expert_ffn": width,
        "shared_experts": wide // width,
        "dense_layers": dense,
    }


def _vectors(fields: _layers.Fields, sizes: Mapping[str, Any]) -> int:
    """Parameters of no product: biases of queries, keys and values; embedding tables per layer."""
    layers, h = sizes["layers"], sizes["hidden"]
    heads, kv, d, _ = _layers.shape(fields, "own", h)
    found = sizes.get("vectors", 0)
    found += fields.at({"h": h, "L": layers}).formula(fields.family.get("vectors", 0))
    biased = fields(
        "attention_bias",
        "qkv_bias",
        "add_qkv_bias",
        "use_qkv_bias",
        default=fields.family.get("qkv_bias"),
    )
    if (
        require_flag(attention_bias=biased or False)
        and not sizes["biases"]
        and "latent" not in sizes
    ):
        found += layers * (heads + 2 * kv) * d
    if fields.family.get("expert_bias"):
        found += layers * sizes["experts"] * (2 * sizes["expert_ffn"] + h)
    others = ("mlp_bias", "use_bias", "bias", "lm_head_bias", "mamba_proj_bias", "add_bias_linear")
    if any(list(map(fields, others))) and not sizes["biases"]:
        fields.notes.append("biases besides those of queries, keys and values are not counted")
    if width := fields("hidden_size_per_layer_input"):
        words = fields("vocab_size_per_layer_input", default=sizes["vocabulary"])
        found += layers * (words * width + 3 * h * width + h)
        found -= fields("num_kv_shared_layers", default=0) * 2 * h * kv * d
        fields.notes.append(
            "embeddings of every layer are counted as parameters, and cost no operations"
        )
    if (beside := fields("word_embed_proj_dim", default=h)) != h:
        raise ValueError(f"word_embed_proj_dim must be hidden_size, {h}, got {beside}")
    return int(found)


def _further(fields: _layers.Fields) -> int:
    """Layers of multi-token prediction."""
    modules, each = fields.size("mtp_layers") or 0, fields("mtp_transformer_layers", default=1)
    count = int(modules * each) if fields("use_mtp", default=True) else 0
    if count:
        fields.notes.append(
            f"multi-token prediction, {count} layer(s): costs time and memory, is not among the "
            "parameters; "
            "dataclasses.replace(model, mtp_layers=0) leaves it out"
        )
    return count


def _active(model: Transformer, card: str | None) -> tuple[int, str]:
    """Parameters that one token passes, as the model card counts them, and how that is."""
    table, active = model.vocabulary * model.hidden, model.active_parameters
    tables = (1 if model.tied else 2) * table
    left = {None: 0, "output": table, "layers": tables}
    if card in left:
        said = {
            None: "embeddings among them",
            "output": "without the input embedding",
            "layers": "without embeddings",
        }
        return active - left[
            card
        ], f"{(active - left[card]) / 1e9:.4g}e9 active parameters, {said[card]}"
    further = model.mtp_layers * model.mtp_weights
    idle = model.mtp_layers * (model.experts - model.active_experts) * model.expert_weights
    whole, active = model.parameters - tables + further, active - tables + further - idle
    return active, (
        f"its card counts {whole / 1e9:.4g}e9 parameters, {active / 1e9:.4g}e9 of them active: "
        "with "
        "the layer that predicts more tokens, without embeddings"
    )


def _length(fields: _layers.Fields, sizes: dict[str, Any], asked: int | None) -> tuple[int, str]:
    """Length of a sequence, and what says it."""
    stretched = fields("rope_scaling", "rope_parameters", default={})
    found = {name: fields(name) for name in _LENGTHS if fields(name) is not None}
    if isinstance(stretched, Mapping) and _STRETCHED in stretched:
        found = {_STRETCHED: stretched[_STRETCHED]} | found
    own = sizes.pop("sequence", None)
    if asked:
        return asked, "as asked"
    if own:
        return own, "as the family has it"
    if not found:
        raise ValueError(f"none of {', '.join(_LENGTHS)} is there: give sequence")
    name, length = next(iter(found.items()))
    most = ", the most that it allows: give sequence to train on fewer"
    return length, f"{name} in the file" + (most if name == _LENGTHS[-1] else "")


def _mean_layer(fields: _layers.Fields, sizes: dict[str, Any]) -> str:
    """Encoder and decoder as one stack of layers of mean size."""
    decoder = fields("num_decoder_layers", default=sizes["layers"])
    if decoder != sizes["layers"] or "gated" in str(fields("feed_forward_proj", default="")):
        raise ValueError("only stacks of equal length without gates are modelled")
    sizes |= {
        "layers": 2 * decoder,
        "head_size": 3 * fields.need("d_kv") // 2,
        "ffn": fields.size("ffn"),
    }
    sizes["sequence"] = fields("n_positions", default=512)
    return (
        f"encoder and decoder are priced as layers of mean size, on {sizes['sequence']} tokens each"
    )


def _patches(fields: _layers.Fields, sizes: dict[str, Any]) -> str:
    """Patches of an image and one token that is classified; patches and classes replace words."""
    size = fields.need("patch_size")
    sizes |= {"sequence": (fields.need("image_size") // size) ** 2 + 1, "ffn": fields.size("ffn")}
    pixels = fields("num_channels", default=3) * size**2
    fields("qkv_bias")  # as all matrices of the family
    sizes["vocabulary"] = (pixels + fields("num_labels", default=1000)) // 2
    return "patches and classes are priced as a vocabulary of their mean"


_SPECIAL: Final[Mapping[str, Callable[..., str]]] = {"t5": _mean_layer, "vit": _patches}
