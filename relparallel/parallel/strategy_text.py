"""Strategies as people write them, "TP8 PP16 DP128 VPP8 ZeRO-1 SP full", written and read back."""

import re
from typing import Any, Final

from relparallel._checks import MOST_DEVICES, require_flag, require_instance, require_int
from relparallel.parallel.schedules import SCHEDULES, TABLE
from relparallel.parallel.strategy import ENDS, RECOMPUTE, Strategy

NUMBERS: Final = {
    "tp": "tensor",
    "pp": "pipeline",
    "cp": "context",
    "dp": "data",
    "ep": "expert",
    "etp": "expert_tensor",
    "vpp": "virtual_stages",
    "vp": "virtual_stages",
    "v": "virtual_stages",
    "mbs": "micro_batch",
    "zero": "zero_stage",
    **{n: n for n in ("tensor", "pipeline", "context", "data", "expert", "shard")},
}
_SCHEDULES: Final = {name.replace("_", ""): name for name in SCHEDULES} | {
    "interleaved": "interleaved_1f1b"
}
_BETWEEN: Final = re.compile(r"[\s,;|+*×x/_()-]*")
_WORD: Final = re.compile(
    r"(?:(?P<sharded>[FH]SDP)(?:[\s=:-]*(?P<copies>\d{1,9}(?=\s*[x×]\s*\d)))?(?:[\s=:x×-]*(?P<ranks>\d{1,9}))?"
    rf"|(?P<schedule>{'|'.join(n.replace('_', '[_-]?') for n in sorted(SCHEDULES, key=len, reverse=True))}"
    r"|interleaved)"
    rf"|ends[\s=:-]*(?P<ends>{'|'.join(ENDS)})"
    rf"|(?:recompute[\s=:-]*)?(?P<recompute>{'|'.join(RECOMPUTE)})(?:\s+recompute)?"
    r"|(?P<sequence>SP|sequence[\s_-]parallel)(?!\s*[=:]?\s*\d))(?![A-Za-z_])"
    r"|(?P<name>[A-Za-z]+)[\s=:-]*(?P<number>\d{1,9})(?:/(?P<shard>\d{1,9}))?(?![\d.])",
    re.IGNORECASE,
)
_EXAMPLE: Final = "'TP8 PP16 DP128 EP64 ETP1 VPP8 MBS2 ZeRO-1/16 SP selective zb_v ends=both'"


def notation(strategy: Strategy, short: bool = False) -> str:
    """Name a strategy by all that tells it from others.

    Parameters
    ----------
    strategy : Strategy
        Any.
    short : bool
        For a table: the degrees TP, PP, CP and DP, and nothing else.

    Returns
    -------
    str
        The degrees, CP and EP where above 1; ETP1 for whole experts, VPP for chunks per stage, the
        schedule where it is neither 1F1B nor, with chunks, the interleaved one, MBS for sequences
        in a micro-batch, ZeRO with the ranks of a shard group, SP, recomputation, and what counts
        as a layer. `read_strategy` gives the strategy back.

    Examples
    --------
    >>> notation(Strategy(tensor=8, pipeline=16, data=128, zero_stage=1, shard=16, recompute="full"))
    'TP8 PP16 DP128 ZeRO-1/16 full'
    >>> notation(Strategy(tensor=8, pipeline=16, data=128, zero_stage=1), short=True)
    'TP8 PP16 CP1 DP128'
    """
    s = require_instance(Strategy, strategy=strategy)
    if require_flag(short=short):
        return f"TP{s.tensor} PP{s.pipeline} CP{s.context} DP{s.data}"
    usual = "interleaved_1f1b" if s.virtual_stages > 1 else "1f1b"
    group = "" if s.shard is None else f"/{s.shard}" if s.zero_stage else f"shard={s.shard}"
    said = (
        f"TP{s.tensor} PP{s.pipeline}",
        f"CP{s.context}" * (s.context > 1),
        f"DP{s.data}",
        f"EP{s.expert}" * (s.expert > 1),
        "ETP1" * s.experts_over_tensor,
        f"VPP{s.virtual_stages}" * (s.virtual_stages > 1),
        s.schedule * (s.schedule != usual),
        f"MBS{s.micro_batch}" * (s.micro_batch > 1),
        f"ZeRO-{s.zero_stage}" * (s.zero_stage > 0) + group,
        "SP" * s.sequence_parallel,
        s.recompute * (s.recompute != "none"),
        f"ends={s.ends_as_layers}" * (s.ends_as_layers != "auto"),
    )
    return " ".join(word for word in said if word)


def read_notation(text: str) -> dict[str, Any]:
    """Fields that the words of a text give."""
    fields: dict[str, Any] = {}
    place = _BETWEEN.match(text, 0).end()  # type: ignore[union-attr]
    while place < len(text):
        found = _WORD.match(text, place)
        said = _fields(found) if found else {}
        if found is None or not said:
            raise ValueError(f"text must be like {_EXAMPLE}, got {text[place:].split()[0]!r:.80}")
        if twice := sorted(said.keys() & fields.keys()):
            raise ValueError(f"text must name {twice[0]} once, got {text!r:.120}")
        fields |= said
        place = _BETWEEN.match(text, found.end()).end()  # type: ignore[union-attr]
    if not fields:
        raise ValueError(f"text must be like {_EXAMPLE}, got {text!r:.80}")
    return fields


def _fields(found: re.Match[str]) -> dict[str, Any]:
    """Fields that one word gives; none where it is unknown."""
    word = {name: value for name, value in found.groupdict().items() if value is not None}
    if "sharded" in word:
        return _sharded(found[0], word)
    if "sequence" in word:
        return {"sequence_parallel": True}
    if "schedule" in word:
        return {"schedule": _SCHEDULES[re.sub("[_-]", "", word["schedule"].lower())]}
    for name, field in (("recompute", "recompute"), ("ends", "ends_as_layers")):
        if name in word:
            return {field: word[name].lower()}
    known = NUMBERS.get(word["name"].lower())
    if known is None or ("shard" in word and known != "zero_stage"):
        return {}
    return {known: int(word["number"])} | ({"shard": int(word["shard"])} if "shard" in word else {})


def _sharded(said: str, word: dict[str, str]) -> dict[str, Any]:
    """Fields of FSDP and HSDP."""
    if "ranks" not in word:
        if word["sharded"].upper() == "HSDP":
            raise ValueError(
                f"text must name the ranks of a shard group, such as HSDP16, got {said!r}"
            )
        return {"zero_stage": 3}
    ranks = int(word["ranks"])
    if word["sharded"].upper() == "FSDP" and (ranks <= 2 or "copies" in word):
        raise ValueError(
            f"text must say 'FSDP DP2' for two ranks (FSDP2 is a version), got {said!r}"
        )
    copies = {"data": int(word["copies"]) * ranks} if "copies" in word else {}
    return {"zero_stage": 3, "shard": ranks, **copies}


def strategy_of(fields: dict[str, Any], gpus: int | None) -> Strategy:
    """A strategy from what was named, and what follows from that."""
    fields = dict(fields)
    tensor, whole = fields.get("tensor", 1), fields.pop("expert_tensor", None)
    if whole == 1:
        fields.setdefault("experts_over_tensor", True)
    elif whole not in (None, tensor):
        raise ValueError(f"text must have an ETP of 1 or of TP = {tensor}, got ETP{whole}")
    order = fields.get("schedule")
    if order is not None and TABLE[order].chunks > 1:
        fields.setdefault("virtual_stages", TABLE[order].chunks)
    if order is None and fields.get("virtual_stages", 1) > 1:
        fields["schedule"] = "interleaved_1f1b"
    if "data" not in fields:
        if gpus is not None:
            others = Strategy(
                **{n: fields.get(n, 1) for n in ("tensor", "pipeline", "context")}
            ).gpus
            fields["data"] = max(
                require_int(gpus=gpus, at_least=1, at_most=MOST_DEVICES) // others, 1
            )
        elif "shard" in fields:
            fields["data"] = fields["shard"]
    return Strategy(**fields)
