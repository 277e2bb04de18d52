"""Files that launchers take, written from the table of words that reads them."""

import json
import shlex
from typing import Any, Final

import yaml

from relparallel.parallel.launch_words import WORDS
from relparallel.parallel.launchers import SHARDING, TITAN, Launch, read_launch
from relparallel.parallel.stages import deal, in_letters
from relparallel.parallel.strategy import ENDS, Strategy

FORMS: Final[dict[str, tuple[str, ...]]] = {
    "megatron": (".sh", ".args"),
    "nvrx": (".sh",),
    "slurm": (".sbatch", ".slurm", ".sh"),
    "torchtitan": (".toml",),
    "bridge": (".yaml", ".yml", ".txt"),
}
"""Forms of files that launchers take, and their endings."""
_SLURM: Final = """#SBATCH --nodes={every}
#SBATCH --gpus-per-node={host}
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun """
_START: Final = """{start} --nnodes={nodes} --nproc-per-node={host} --max-restarts=100 \\
    --rdzv-backend=c10d --rdzv-id="${{SLURM_JOB_ID:-0}}" --rdzv-endpoint="$head:29500" \\
    pretrain_gpt.py \\
    {arguments} \\
    "$@"
"""


def launch_file(
    told: Launch, form: str, ending: str, sizes: tuple[int, int], head: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and what its launcher has no word for.

    ``sizes``: layers of the model, and those behind them that predict further tokens. What the text
    does not say when it is read back stands in comments, from which `read_launch` takes it.
    """
    software = form if form in ("torchtitan", "bridge") else "megatron"
    said = (_of_torchtitan if software == "torchtitan" else _of_megatron)(told, *sizes)
    same = ("tensor", "pipeline", "context", "expert")
    said |= {name: getattr(told.strategy, name) for name in same}
    said |= {"global_batch": told.global_batch, "save_every": told.save_every}
    rows = [
        (name, said[field])
        for (one, field), names in WORDS.items()
        if one == software and said.get(field) is not None
        for name in names
    ]
    bare = ending in (".args", ".txt") or form == "bridge"
    text = _text(rows, told, form, ending)
    kept: dict[str, Any] = {"data": told.strategy.data, "spares": told.spares} if bare else {}
    back = read_launch(_with(kept, text, software, ending, head), layers=sizes[0])
    fields = tuple(Strategy.__dataclass_fields__)
    wanted, found = (
        {name: getattr(one.strategy, name) for name in fields} | one._asdict()
        for one in (told, back)
    )
    beside = ("strategy", "host", "stage_layers", "passed")
    kept |= {
        name: value for name, value in wanted.items() if name not in beside and value != found[name]
    }
    if kept.get("spares") == 0 == back.spares:
        del kept["spares"]
    return _with(kept, text, software, ending, head), tuple(
        f"{software} has no word for {name}={value}"
        + f": start it on {told.strategy.gpus:,} GPUs" * (name == "data")
        for name, value in kept.items()
        if name != "ends_as_layers" or said.get("layout") is None  # which says it as well
    )


def _with(
    kept: dict[str, Any], text: str, software: str, ending: str, head: tuple[str, ...]
) -> str:
    """The text under its comments."""
    first = ["#!/bin/bash"] * (ending in (".sh", ".sbatch", ".slurm"))
    lines = [f"# {line}" for line in head]
    lines += [f"# relparallel: {name}={kept[name]} (no word of {software})" for name in kept]
    return "\n".join([*first, *lines, text])


def _text(rows: list[tuple[str, Any]], told: Launch, form: str, ending: str) -> str:
    """What the launcher takes."""
    if form in ("torchtitan", "bridge") and ending != ".txt":
        sections: dict[str, dict[str, Any]] = {}
        for name, value in rows:
            above, _, below = name.rpartition(".")
            sections.setdefault(above or "parallelism", {})[below] = value
        if form == "bridge":
            return str(yaml.safe_dump(sections, sort_keys=False))
        lines = ((f"[{above}]", *map(_toml, below.items())) for above, below in sections.items())
        return "\n\n".join("\n".join(one) for one in lines) + "\n"
    words = [(name, shlex.quote(json.dumps(value).strip('"'))) for name, value in rows]
    if form == "bridge":
        return "".join(f"{name}={value}\n" for name, value in words)
    options = [
        f"--{name.replace('_', '-')}" + f" {value}" * (value != "true") for name, value in words
    ]
    if ending == ".args":
        return "\n".join(options) + "\n"
    nodes = told.strategy.gpus // (told.host or 1)
    every, stand_by = nodes + told.spares, form == "nvrx" or (form == "slurm" and told.spares > 0)
    start = _SLURM if form == "slurm" else "head=${{MASTER_ADDR:-localhost}}\n"
    return (start + _START).format(
        every=every,
        host=told.host,
        start="ft_launcher" if stand_by else "torchrun",
        nodes=f"{nodes}:{every}" if stand_by else nodes,
        arguments=" \\\n    ".join(options),
    )


def _toml(field: tuple[str, Any]) -> str:
    """A field of TOML, whose values are here those of JSON."""
    return f"{field[0]} = {json.dumps(field[1])}"


def _of_megatron(told: Launch, layers: int, mtp: int) -> dict[str, Any]:
    """Values by field as Megatron-LM and Megatron-Bridge take them; None is not written."""
    s, full = told.strategy, told.strategy.recompute == "full"
    zero, ends = s.zero_stage, ENDS.index(s.ends_as_layers) * (s.pipeline > 1)
    chunks = deal(layers, mtp, s)
    even = (ends > 0 or len({*chunks.tolist()}) == 1) and not (
        (layers + ends % 2 + ends // 2) % chunks.size
    )
    return {
        "expert_tensor": 1 if s.experts_over_tensor else None,
        "micro_batch": s.micro_batch,
        "sequence_parallel": s.sequence_parallel or None,
        "recompute": s.recompute if full or s.recompute == "selective" else None,
        "method": "uniform" if full else None,
        "unit": 1 if full else None,
        "distributed_optimizer": zero > 0 or None,
        "fsdp": zero > 1 or None,
        "sharding": SHARDING[zero] if zero > 1 else None,
        "copies": s.state_copies if zero and s.shard not in (None, s.data) else None,
        "embedding": (even and ends % 2 > 0) or None,
        "loss": (even and ends > 1) or None,
        "virtual_stages": s.virtual_stages if even and 1 < s.pipeline < chunks.size else None,
        "layout": None if even else in_letters(chunks, mtp),
    }


def _of_torchtitan(told: Launch, layers: int, mtp: int) -> dict[str, Any]:
    """Values by field as torchtitan takes them; None is not written."""
    s, piped = told.strategy, told.strategy.pipeline > 1
    ranks = s.shard_group if s.zero_stage else 1
    kept = s.recompute in ("none", "full")  # else its only kind, of every second product
    each = deal(layers, mtp, s).tolist()
    number = iter(range(layers))
    parts = [[f"layers.{next(number)}" for _ in range(many)] for many in each]
    parts[0].insert(0, "tok_embeddings")
    parts[-1] += ["norm", "output"]
    usual = "Interleaved1F1B" if s.virtual_stages > 1 else "1F1B"
    return {
        "replicas": s.data // ranks,
        "ranks": ranks,
        "reshard": ("always" if s.zero_stage == 3 else "never") if s.zero_stage else None,
        "expert_tensor": s.expert_tensor if s.expert > 1 else None,
        "sequence_parallel": s.sequence_parallel if s.tensor > 1 else None,
        "recompute": s.recompute if kept else "selective",
        "parts": None if kept else "op",
        "micro_batch": s.micro_batch if piped else None,
        "local_batch": (told.global_batch or s.micro_batch * s.data) // s.data
        if piped
        else s.micro_batch,
        "schedule": {ours: name for name, ours in TITAN.items()}.get(s.schedule, usual)
        if piped
        else None,
        "layout": parts if piped else None,
        "saves": True if told.save_every else None,
    }
