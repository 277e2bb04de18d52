"""What each layer of a ``config.json`` holds: how it mixes tokens, and its feed-forward block."""

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import yaml

from relparallel._checks import require_int
from relparallel.published import data_folder
from relparallel.workload.mixers import Mixer

Shape = tuple[int, int, int, int]  # heads, those of keys and values, width of a key, of a value
_DENSE: Final = ("dense", "mlp", 0, False)


@cache
def tables() -> Mapping[str, Any]:
    """``data/model_families.yaml``."""
    loaded: Mapping[str, Any] = yaml.safe_load(
        (data_folder() / "model_families.yaml").read_text("utf-8")
    )
    return loaded


class Fields:
    """Fields of a file, whether they were read, and what was assumed; null means absent."""

    def __init__(self, values: Mapping[str, Any], family: Mapping[str, Any]) -> None:
        renames = family.get("rename", {})
        stated = {
            renames.get(name, name): value for name, value in values.items() if value is not None
        }
        self._values = dict(family.get("constants", {})) | stated
        self._unread, self.family, self.notes = set(stated), family, list[str]()

    def __call__(self, *names: str, default: Any = None) -> Any:
        """Value of the first field that is there."""
        self._unread.difference_update(names)
        return next((self._values[name] for name in names if name in self._values), default)

    def size(self, size: str) -> Any:
        """A size of the table, by any name; 0 counts as absent, a list of layers as its mean."""
        stated = {name: self(name) for name in tables()["fields"][size]}
        found = [value for value in stated.values() if value not in (None, 0)]
        if size != "vocabulary" and any(other != found[0] for other in found):
            raise ValueError(f"{size} must be stated once, got {stated!r:.80}")
        if found and not isinstance(found[0], list):
            require_int(at_least=0, **{size: found[0]})
        if not found or not isinstance(found[0], list):
            return max(found) if size == "vocabulary" and found else (found or [None])[0]
        mean = round(
            sum(require_int(at_least=0, **{size: one}) for one in found[0]) / len(found[0])
        )
        if len(set(found[0])) > 1:
            self.notes.append(f"{size} differs among layers: priced as its mean, {mean}")
        return mean

    def unread(self) -> list[str]:
        """Fields of the file that nothing has read and that say something."""
        return sorted(name for name in self._unread if self._values[name] not in (0, "", [], {}))

    def need(self, name: str) -> int:
        """A field that must be there, a whole number."""
        value: int = require_int(at_least=1, **{name: self(name)})
        return value


def mixer_kinds(fields: Fields, layers: int) -> list[str]:
    """How each layer mixes tokens, by the names in ``kinds`` of the table."""
    known = {word: kind for kind, words in tables()["kinds"].items() for word in words}
    stated = fields("hybrid_override_pattern", "layers_block_type", "layer_types")
    # may say the same again
    fields("full_attention_interval", "no_rope_layers", "hybrid_layer_pattern")
    words = _by_rule(fields, layers) if stated is None else stated
    further = fields.size("mtp_layers") or 0
    words = words[:layers] if len(words) == layers + further else words
    unknown = sorted({str(word) for word in words} - set(known))
    if unknown or len(words) != layers:
        said = f"{len(words)} of them" if not unknown else ", ".join(unknown)
        raise ValueError(f"kinds of the {layers} layers must be of {', '.join(known)}, got {said}")
    return [known[word] for word in words]


def _by_rule(fields: Fields, layers: int) -> list[str]:
    """Kinds of layers where the file does not list them."""
    every = range(layers)
    if (ratios := fields("compress_ratios")) is not None:
        return [f"ratio {ratio}" for ratio in ratios[:layers]]
    if fields("o_lora_rank"):
        raise ValueError("compress_ratios or layer_types is missing")
    if (full := fields("attn_type_list")) is not None:
        return ["attention" if one else "linear_attention" for one in full]
    if fields.family.get("state") == "kimi_delta":
        full = fields("linear_attn_config", default={})["full_attn_layers"]
        return ["attention" if i + 1 in full else "linear_attention" for i in every]
    if period := fields("full_attention_interval"):
        return ["linear_attention" if (i + 1) % period else "attention" for i in every]
    if not window(fields):
        return ["attention"] * layers
    if local := fields("hybrid_layer_pattern", "no_rope_layers"):
        return ["local" if one else "attention" for one in local]
    pattern = fields("sliding_window_pattern", "_sliding_window_pattern", default=0)
    if isinstance(pattern, str):
        return [pattern[i % len(pattern)] for i in every]
    if pattern := require_int(sliding_window_pattern=pattern, at_least=0):
        return ["local" if (i + 1) % pattern else "attention" for i in every]
    first = fields("max_window_layers", default=0) if fields("use_sliding_window") else 0
    return ["local" if i >= first else "attention" for i in every]


def window(fields: Fields) -> int | None:
    """Tokens that a query of a layer with a window looks at."""
    found, used = fields.size("window"), fields("use_sliding_window", default=True)
    return require_int(window=found, at_least=1) if found and used else None  # type: ignore[no-any-return]


def ffn_kinds(fields: Fields, layers: int) -> list[bool]:
    """Whether the feed-forward block of each layer is a mixture of experts."""
    every = range(layers)
    listed = fields("mlp_layer_types", "is_moe_layer")
    frequency = fields("moe_layer_freq", "moe_layer_interval", default=1)
    first = fields("first_k_dense_replace", "moe_layer_start_index", default=0)
    last = fields("moe_layer_end_index", default=layers - 1)
    step = fields("interleave_moe_layer_step", "decoder_sparse_step", default=1)
    whole = {
        "moe_layer_freq": 1 if isinstance(frequency, list) else frequency,
        "moe_layer_step": step,
    }
    require_int(at_least=1, **whole)
    for name in ("first_k_dense_replace", "moe_layer_start_index"):
        require_int(at_least=0, **{name: fields(name, default=0)})
    last = require_int(at_least=-1, moe_layer_end_index=last) % layers
    plain = set(fields("mlp_only_layers", default=[]))
    if listed is None and isinstance(frequency, list):
        listed = frequency
    if listed is not None:
        if len(listed) != layers:
            raise ValueError(f"kinds of feed-forward blocks must be {layers}, got {len(listed)}")
        return [kind not in _DENSE for kind in listed]
    if chosen := fields("moe_layers", "moe_layers_enum"):
        chosen = [int(i) for i in (chosen.split(",") if isinstance(chosen, str) else chosen)]
        return [i in chosen for i in every]
    return [
        first <= i <= last and (i + 1) % step == 0 and i % frequency == 0 and i not in plain
        for i in every
    ]


def shape(fields: Fields, kind: str, hidden: int) -> Shape:
    """Heads and widths of the attention of a kind of layer."""
    heads, kv, d = (fields.size(name) for name in ("heads", "kv_heads", "head_size"))
    if d is None and hidden % heads and not fields("kv_lora_rank"):
        raise ValueError(f"heads must divide hidden = {hidden}, got {heads}")
    d = hidden // heads if d is None else d
    value = fields("v_head_dim", default=d)
    if kind == "full" and (wide := fields("global_head_dim")):
        d = value = wide
        kv = fields("num_global_key_value_heads", default=kv) if fields("attention_k_eq_v") else kv
    if kind == "sliding":
        other = fields("attention_other_setting", default={})
        heads = other.get("num_attention_heads", fields("swa_num_attention_heads", default=heads))
        kv = other.get("num_attention_groups", fields("swa_num_key_value_heads", default=kv))
        d = other.get("head_dim", fields("swa_head_dim", default=d))
        value = fields("swa_v_head_dim", default=value)
    grouped = fields("new_decoder_architecture")
    kv = 1 if fields("multi_query") and not grouped else kv
    return heads, heads if kv is None else kv, d, value


def attention(fields: Fields, kind: str, layers: int, hidden: int, gate: str | None) -> Mixer:
    """Attention whose sizes are not those of `Transformer`: other heads, a gate, shared queries."""
    heads, kv, key, value = shape(fields, kind, hidden)
    rank = fields("share_q_dim")
    columns = {None: 0, "entry": heads * key, "head": heads}[gate]
    columns += kv * (key if kind == "full" and fields("attention_k_eq_v") else key + value)
    queries: tuple[tuple[int, int], ...] = ((hidden, columns + heads * key),)
    if rank:
        queries = ((hidden, columns + rank), (rank, heads * key))
    return Mixer(
        layers=layers,
        products=(*queries, (heads * value, hidden)),
        heads=heads,
        head_size=(key + value) // 2,
        window=window(fields) if kind == "sliding" else None,
    )


def state(fields: Fields, layers: int, hidden: int) -> Mixer:
    """Linear attention or a state space, by its row in ``states``."""
    if "state" not in fields.family:
        raise ValueError(f"linear attention of {fields.family['name']} is not known")
    row = tables()["states"][fields.family["state"]]
    nested = fields("linear_attn_config", default={})
    named = ("key_heads", "key", "value_heads", "value", "kernel", "rank")
    found = {size: nested.get(row[size]) or fields.need(row[size]) for size in named if size in row}
    keys, values = found["key_heads"] * found["key"], found["value_heads"] * found["value"]
    kernel, rank, mixed = found.get("kernel", 0), found.get("rank", 0), 2 * keys + values
    scalars = row["scalars"] * found["value_heads"]
    products = (
        (hidden, mixed + scalars + (2 * rank or values)),
        *((rank, values),) * (2 if rank else 0),
    )
    return Mixer(
        layers=layers,
        products=(*products, (values, hidden)),
        vectors=kernel * mixed + 3 * found["value_heads"] + values,
        operations=row["flops"] * values * found["key"] + 2 * kernel * mixed,
    )


def compressed(fields: Fields, kind: str, layers: int, hidden: int) -> Mixer:
    """DeepSeek-V4: one key that all heads share, a window, and keys made of several tokens each."""
    heads, d, rank = fields.size("heads"), fields.size("head_size"), fields("q_lora_rank")
    groups, out, streams = fields("o_groups"), fields("o_lora_rank"), fields("hc_mult")
    scored, size = fields("index_n_heads"), fields("index_head_dim")
    more: tuple[tuple[int, int], ...] = ()
    if kind == "sparse":
        more = ((hidden, 4 * d + 4 * size + scored), (rank, scored * size))
    elif kind == "heavy":
        more = ((hidden, 2 * d),)
    mixing = (streams * hidden, 2 * (2 + streams) * streams)  # of its residual streams
    rows = (
        (hidden, rank + d),
        (rank, heads * d),
        *more,
        mixing,
        (heads * d // groups, groups * out),
    )
    looked: dict[str, Any] = {"heavy": {"stride": 128}, "sliding": {}}
    looked["sparse"] = {"stride": 4, "top": fields("index_topk"), "index": scored * size}
    return Mixer(
        layers=layers,
        products=(*rows, (groups * out, hidden)),
        heads=heads,
        head_size=d,
        window=window(fields),
        **looked[kind],
    )


def mixers(
    fields: Fields, kinds: list[str], hidden: int
) -> tuple[dict[str, Any], tuple[Mixer, ...]]:
    """Arguments of `Transformer` for its own attention, and the mixers of other layers."""
    counted = Counter(kind for kind in kinds if kind not in ("dense", "experts"))
    if fields("o_lora_rank"):
        return {"attention_layers": 0}, tuple(
            compressed(fields, k, n, hidden) for k, n in counted.items()
        )
    gate = fields.family.get("gate") if fields("attn_output_gate", default=True) else None
    gate = "head" if fields("use_head_wise_attn_gate") else gate
    heads, kv, d, _ = shape(fields, "own", hidden)
    own, made = {"kv_heads": kv, "head_size": None if d * heads == hidden else d}, list[Mixer]()
    if counted["sliding"] and not window(fields) and fields("use_sliding_window", default=True):
        raise ValueError("layers with a window need sliding_window")
    for kind, n in counted.items():
        if kind == "state":
            made.append(state(fields, n, hidden))
        elif not fields("kv_lora_rank") and (
            gate or fields("share_q_dim") or shape(fields, kind, hidden) != (heads, kv, d, d)
        ):
            made.append(attention(fields, kind, n, hidden, gate))
        elif kind == "sliding":
            own |= {"window": window(fields), "windowed_layers": n}
    if made or len(kinds) > sum(counted.values()):
        own["attention_layers"] = sum(counted.values()) - sum(mixer.layers for mixer in made)
    return own, tuple(made)
