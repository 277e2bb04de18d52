"""What each layer of a ``config.json`` holds: how it mixes tokens, and its feed-forward block."""

from collections import Counter
from collections.abc import Mapping, Sequence
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


def _flat(values: Mapping[str, Any], nested: Sequence[str]) -> dict[str, Any]:
    """Fields that say something; those of a nested object by dotted names."""
    inner = {f"{n}.{name}": v for n in nested for name, v in (values.get(n) or {}).items()}
    outer = {name: value for name, value in values.items() if name not in nested}
    return {name: value for name, value in (outer | inner).items() if value is not None}


class Fields:
    """Fields of a file, whether they were read, and what was assumed; null means absent."""

    def __init__(self, values: Mapping[str, Any], family: Mapping[str, Any]) -> None:
        stated: dict[str, Any] = {}
        for name, value in _flat(values, family.get("nested", ())).items():
            new = family.get("rename", {}).get(name, name)
            if stated.get(new, value) != value:
                raise ValueError(f"{new} must be stated once, got {stated[new]} and {value}")
            stated[new] = value
        self._values = dict(family.get("constants", {})) | stated
        self._unread, self.family, self.notes = set(stated), family, list[str]()
        for name, text in family.get("derive", {}).items():
            self._values[name] = self.formula(text)

    def at(self, values: Mapping[str, Any]) -> "Fields":
        """The same file with other values of some fields: those of one layer."""
        other = Fields({}, {})
        other.__dict__.update(self.__dict__, _values=self._values | dict(values))
        return other

    def __getitem__(self, name: str) -> Any:
        """Value of a name in a formula; an optional field that is absent is 0."""
        if (value := self(name)) is None and name not in tables()["optional"]:
            raise KeyError(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        number: dict[str, Any] = {name: value}
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            require_int(at_least=0, **number)
        return 0 if value is None else value

    def formula(self, text: Any) -> Any:
        """What a formula of the table gives for this file."""
        if not isinstance(text, str):
            return text
        names: Any = self
        try:  # the table is ours: nothing of the file is evaluated
            return eval(f"({text})", {"__builtins__": {}, "max": max}, names)
        except NameError as error:
            raise ValueError(f"{error.name} is missing") from None
        except (ArithmeticError, IndexError) as error:
            raise ValueError(f"{text}: {error}") from None

    def __call__(self, *names: str, default: Any = None) -> Any:
        """Value of the first field that is there."""
        self._unread.difference_update(names)
        return next((self._values[name] for name in names if name in self._values), default)

    def size(self, size: str) -> Any:
        """A size of the table, by any name; 0 counts as absent, a list of layers as its mean."""
        stated = {name: self(name) for name in tables()["fields"][size]}
        none = (None, 0, -1) if size == "window" else (None, 0)
        found = [value for value in stated.values() if value not in none]
        if size != "vocabulary" and any(other != found[0] for other in found):
            raise ValueError(f"{size} must be stated once, got {stated!r:.80}")
        if found and not isinstance(found[0], list):
            require_int(at_least=0, **{size: found[0]})
        if not found or not isinstance(found[0], list):
            return max(found) if size == "vocabulary" and found else (found or [None])[0]
        if len(found[0]) != (layers := self.size("layers")):
            raise ValueError(f"{size} must be one number or {layers}, got {found[0]!r:.80}")
        listed = [one for one in found[0] if require_int(at_least=0, **{size: one})]
        mean = round(sum(listed) / max(len(listed), 1))
        if len(set(listed)) > 1:
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
    """How each layer mixes tokens, by the names in ``kinds`` of the table; some have several."""
    if every := fields.family.get("every"):
        return list(every) * layers
    known = {word: kind for kind, words in tables()["kinds"].items() for word in words}
    known |= fields.family.get("words", {})
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
    kinds = [known[word] for word in words]
    if stated is not None:  # of no use, or said again
        fields.size("window")
        fields(*compile(fields.family.get("layer", "0"), "", "eval").co_names)
    if shared := fields("indexer_types"):  # scores of tokens are those of an earlier layer
        fields("index_topk_freq", "index_skip_topk_offset", "index_share_for_mtp_iteration")
        if len(shared) != layers:
            raise ValueError(f"indexer_types must be {layers}, got {len(shared)}")
        kinds = ["shared" if t == "shared" else k for t, k in zip(shared, kinds, strict=True)]
    return kinds + ["linear"] * fields("linear_ffn_blocks", default=0)


def _by_rule(fields: Fields, layers: int) -> list[str]:
    """Kinds of layers where the file does not list them."""
    every = range(layers)
    if rule := fields.family.get("layer"):
        return [fields.at({"i": i, "L": layers}).formula(rule) for i in every]
    if (ratios := fields("compress_ratios")) is not None:
        return [f"ratio {ratio}" for ratio in ratios[:layers]]
    if fields("o_lora_rank"):
        raise ValueError("compress_ratios or layer_types is missing")
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


def overrides(fields: Fields, layers: int) -> list[dict[str, Any]]:
    """Sizes of a layer that are not those of the model."""
    own: list[dict[str, Any]] = [{} for _ in range(layers)]
    for index, values in fields("per_layer_config", default={}).items():
        if unknown := sorted(set(values) - set(tables()["per_layer"])):
            raise ValueError(f"per_layer_config.{unknown[0]} is not known")
        own[int(index)].update(values)
    for listed, name in fields.family.get("per_layer", {}).items():
        if len(values := fields(listed, default=[None] * layers)) != layers:
            raise ValueError(f"{listed} must be {layers}, got {len(values)}")
        for layer, value in zip(own, values, strict=True):
            layer |= {} if value in (None, fields(name)) else {name: value}
    return own


def window(fields: Fields) -> int | None:
    """Tokens that a query of a layer with a window looks at."""
    found, used = fields.size("window"), fields("use_sliding_window", default=True)
    return require_int(window=found, at_least=1) if found and used else None  # type: ignore[no-any-return]


def ffn_kinds(fields: Fields, layers: int) -> list[bool]:
    """Whether the feed-forward block of each layer is a mixture of experts."""
    every = range(layers)
    listed = fields("mlp_layer_types", "is_moe_layer")
    if listed is None and (rule := fields.family.get("mixture")):
        return [bool(fields.at({"i": i, "L": layers}).formula(rule)) for i in every]
    frequency = fields("moe_layer_freq", "moe_layer_frequency", "moe_layer_interval", default=1)
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


def by_formula(fields: Fields, kind: str, layers: int, hidden: int, gate: str | None) -> Mixer:
    """A mixer by the formulas of its row in ``mixers``."""
    row = dict(tables()["mixers"][fields.family.get("mixers", {}).get(kind, kind)])
    heads, kv, d, value = shape(fields, kind, hidden)
    columns = {None: 0, "entry": heads * value, "head": heads}[gate]
    names = {"h": hidden, "heads": heads, "kv": kv, "d": d, "value": value, "gate": columns}
    at = fields.at(names | {"kind": kind, "local": (kind == "sliding" and window(fields)) or 0})
    for name, text in row.pop("let", {}).items():
        at = at.at({name: at.formula(text)})
    sizes = {part: at.formula(text) for part, text in row.items()}
    return Mixer(
        layers=layers, **sizes | {part: sizes.get(part) or None for part in ("window", "top")}
    )


def gated(fields: Fields) -> str | None:
    """Whether the output of attention has a gate for each entry or each head."""
    found: str | None = (
        fields.family.get("gate") if fields("attn_output_gate", default=True) else None
    )
    for name, kinds in tables()["gates"].items():
        if stated := fields(name):
            if stated not in kinds:
                raise ValueError(f"{name} must be of {', '.join(map(str, kinds))}, got {stated}")
            found = kinds[stated]
    return found


def mixers(
    fields: Fields, kinds: list[str], hidden: int, layers: int
) -> tuple[dict[str, Any], tuple[Mixer, ...]]:
    """Arguments of `Transformer` for its own attention, and the mixers of other layers."""
    other = overrides(fields, layers)
    values = [tuple(o.items()) for o in [*other, *[{}] * (len(kinds) - layers)]]
    sized = zip(kinds, values, strict=True)
    counted = Counter((k, o) for k, o in sized if k not in ("dense", "experts", "none"))
    gate, latent = gated(fields), fields("kv_lora_rank")
    heads, kv, d, _ = shape(fields, "own", hidden)
    own, made = {"kv_heads": kv, "head_size": None if d * heads == hidden else d}, list[Mixer]()
    for (kind, sizes), n in counted.items():
        at = fields.at(dict(sizes))
        if kind == "sliding" and not window(fields) and fields("use_sliding_window", default=True):
            raise ValueError("layers with a window need sliding_window")
        if kind in fields.family.get("mixers", {}) or kind in tables()["mixers"]:
            made.append(by_formula(at, kind, n, hidden, gate))
        elif kind not in ("full", "sliding"):
            named = "linear attention" if kind == "state" else f"the kind {kind}"
            raise ValueError(f"{named} of {fields.family['name']} is not known")
        elif latent and (gate or sizes):
            made.append(by_formula(at, "latent", n, hidden, gate))
        elif not latent and (
            gate or fields("share_q_dim") or shape(at, kind, hidden) != (heads, kv, d, d)
        ):
            made.append(attention(at, kind, n, hidden, gate))
        elif kind == "sliding":
            own |= {"window": window(fields), "windowed_layers": n}
    total = sum(counted.values())
    if made or total != layers:
        own["attention_layers"] = total - sum(mixer.layers for mixer in made)
    return own, tuple(made)
