"""Fields of a cluster file, each also an option of the command line: how one is read, what it says.

Nothing is loaded for it: the command line is built from this table.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple


def _of(kinds: Any, what: str, value: Any) -> Any:
    """The value, which must be of the kinds; true and false are no numbers."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise TypeError(f"expected {what}, got {value!r:.80}")
    return value


def whole(value: Any) -> int:
    """A whole number of a file."""
    found = number(value)
    if not found.is_integer():
        raise ValueError(f"expected a whole number, got {value!r:.80}")
    return int(found)


def number(value: Any) -> float:
    """A number of a file; YAML takes 989e12 for a word."""
    try:
        return float(_of((int, float, str), "a number", value))
    except ValueError:
        raise ValueError(f"expected a number without a unit, got {value!r:.80}") from None


def word(value: Any) -> str:
    """A text of a file."""
    return str(_of((int, str), "a text", value))


def rates(value: Any) -> dict[str, float]:
    """Rates by number format."""
    formats = _of(dict, "rates by number format, such as bf16: 989e12", value or None)
    return {word(key): number(rate) for key, rate in formats.items()}


def flag(value: Any) -> Any:
    """True or false."""
    return _of(bool, "true or false", value)


def file(value: Any) -> Path:
    """A file, beside the one that names it."""
    return Path(word(value))


def moment(value: Any) -> float | str:
    """Seconds or a date; YAML knows dates."""
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, str) else number(value)


def words(value: Any) -> list[str]:
    """One text or several."""
    return [word(one) for one in (value if isinstance(value, list) else [value])]


def pairs(value: Any) -> dict[str, str]:
    """A mapping, or texts such as fabric=rack."""
    if isinstance(value, dict):
        return {word(key): word(one) for key, one in value.items()}
    parts = [one.split("=", 1) for one in words(value)]
    if bad := [part for part in parts if len(part) < 2]:
        raise ValueError(f"must be NAME=VALUE, got {bad[0][0]!r:.80}")
    return dict(parts)


def limits(value: Any) -> dict[str, list[Any]]:
    """Values of axes of strategies: a mapping, or texts such as tensor=1,2,4 and pipeline<=16."""
    if isinstance(value, dict):
        value = [f"{axis}={said}" for axis, said in value.items()]
    found: dict[str, list[Any]] = {}
    for text in words(value):
        read = re.fullmatch(r"(\w+)=?(<?)=([\w,]+)", re.sub(r"[][' ]", "", text))
        if read is None:
            raise ValueError(f"must be AXIS=VALUE,VALUE or AXIS<=NUMBER, got {text!r:.80}")
        axis, at_most, said = read.groups()
        if at_most:
            found[axis] = [*range(axis != "zero_stage", whole(said) + 1)]
            continue
        found[axis] = [
            int(x) if x.isdecimal() else _FLAGS.get(x.lower(), x) for x in said.split(",")
        ]
        if axis not in _WORDED and any(not isinstance(x, int) for x in found[axis]):
            raise ValueError(f"must have numbers, got {text!r:.80}")
    return found


def device(value: Any) -> Any:
    """An accelerator by name, or an own one by its fields."""
    return value if isinstance(value, dict) else word(value)


_FLAGS: Final = {"true": True, "false": False}
_WORDED: Final = (
    *("recompute", "schedule", "ends_as_layers", "sequence_parallel", "experts_over_tensor"),
)


class Field(NamedTuple):
    """How a field is read, what it says, what stands for its value, and the argument of `plan`."""

    read: Callable[[Any], Any]
    about: str
    unit: str = "N"
    argument: str = ""  # where it has another name


MACHINE: Final[Mapping[str, Field]] = {
    "cluster": Field(word, "published cluster, which has what is not said here", "NAME"),
    "name": Field(word, "of the cluster in tables", "NAME"),
    "accelerator": Field(device, "of a cluster without a name, as `clusters` lists them", "NAME"),
    "gpus": Field(whole, "GPUs, for one cluster or each"),
    "nodes": Field(whole, "the same in nodes"),
    "gpus_per_node": Field(whole, "default 8, or as published"),
    "network_gbit": Field(number, "of a node to the others, one direction [Gbit/s]", "X"),
    "nodes_per_switch": Field(whole, "nodes that stop with one switch; default 1"),
    "nodes_per_rack": Field(whole, "nodes that share a rack or its power; default 1"),
    "gpus_per_tray": Field(whole, "GPUs that share a host; default all of a node"),
    "nvlink_trays": Field(whole, "NVLink switch trays of a node; default none"),
    "spare_trays": Field(whole, "trays of a node besides those of the job; default 0"),
}
"""What a cluster is made of."""
QUESTION: Final[Mapping[str, Field]] = {
    "batch": Field(
        whole,
        "sequences of a step; default 4e6 to 16e6 tokens, divisible by the nodes",
        argument="global_batch",
    ),
    "sequence": Field(whole, "tokens of a sequence; default as published, of a file at most 8192"),
    "price": Field(number, "of a GPU-hour, in any currency, for all or each", "X"),
    "strategies": Field(whole, "rows for each cluster; default 5"),
    "network": Field(word, "whose parts fail too: a file or a name, rail-optimised", "NAME"),
    "software": Field(word, "default the newest measured on the accelerator", "NAME"),
    "precision": Field(word, "of products with weights: bf16 (default), fp8 or fp4", "FORMAT"),
    "storage": Field(
        number,
        "that checkpoints are written and read with [GB/s]; default Llama 3's, by the GPUs",
        "GB/S",
        "storage_bandwidth",
    ),
    "spares": Field(whole, "nodes held back; default the best of up to 5 in 100"),
    "measured": Field(
        file,
        "own runs that correct predictions: a CSV file with the columns strategy and tokens/s or "
        "another speed, and where they differ from the plan model, cluster, batch, software; or the "
        "log of a run, as a trainer prints it",
        "FILE",
    ),
    "limits": Field(
        limits,
        "values that strategies may have: context=1 tensor=1,2,4,8 'pipeline<=16'; of tensor, "
        "pipeline, data, context, expert, micro_batch, virtual_stages, zero_stage, recompute and "
        "other axes of StrategyGrid",
        "AXIS=VALUES",
    ),
    "like": Field(
        word, "measured: only degrees that somebody has run for that kind of model", "WHAT"
    ),
    "memory_margin": Field(number, "share of the GPU memory that stays free; default 0.05", "X"),
    "only_measured": Field(flag, "choose among the measured strategies only"),
    "rank": Field(
        word,
        "rows by the formula for independent failures (default), by that for events that nodes of "
        "the log share, or by a replay of the log: independent, events or replay",
        "HOW",
    ),
    "ignore": Field(
        words, "fields of config.json and columns of the log that change nothing", "NAME"
    ),
}
"""What a plan is asked besides; their arguments are those of `plan`."""
LOG: Final[Mapping[str, Field]] = {
    "failures": Field(
        file, "own failure log: a CSV file with one row per failure, or another", "FILE"
    ),
    "watched": Field(whole, "nodes that the failure log covers"),
    "dialect": Field(
        word,
        "of the log, recognised where omitted: csv, slurm, slurmctld, torchelastic, nvrx, "
        "nvrx-cycles or xid",
        "NAME",
    ),
    "since": Field(
        moment, "when the observation window of the log began: a date, or seconds", "TIME"
    ),
    "until": Field(moment, "when it ended; default as the log's dated lines say", "TIME"),
    "clock": Field(word, "of a csv log: iso, s, min, h, d or a format", "UNIT"),
    "overlaps": Field(word, "of failures of one node in the log: refuse, merge or keep", "HOW"),
    "delimiter": Field(word, "between the fields of a csv or slurm log", "SIGN"),
    "repair": Field(number, "of every failure of the log without an end [s]", "SECONDS"),
    "states": Field(words, "of a slurm, slurmctld or xid log: what counts as a failure", "NAME"),
    "silence": Field(
        number,
        "of an xid log: after which another line of a node is another failure; default 180 [s]",
        "SECONDS",
    ),
    "jobs": Field(words, "of a slurm log: jobs that count; default all", "NAME"),
    "levels": Field(
        pairs,
        "what fails with a cause of the log: gpu, node (default), switch, rack or job",
        "CAUSE=LEVEL",
    ),
}
"""Of the failure log; their arguments are those of `read_failure_log`."""
FIELDS: Final[Mapping[str, Field]] = {**MACHINE, **QUESTION, **LOG}
"""All, in the order in which a file has them."""
EACH: Final = ("gpus", "price")
"""Of which an option has one value for each cluster."""
SEVERAL: Final = (words, pairs, limits)
"""What reads several values."""
