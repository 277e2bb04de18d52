"""Files that launchers take, written from the table of words that reads them."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import Any, Final

import yaml

from relparallel.parallel.launch_words import WORDS
from relparallel.parallel.launchers import SHARDING, TITAN, Launch, read_launch
from relparallel.parallel.stages import deal, in_letters
from relparallel.parallel.strategy import ENDS

FORMS: Final[Mapping[str, tuple[str, ...]]] = {
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
_START: Final = """{start} --nnodes={nodes} --nproc-per-node={host} --rdzv-backend=c10d \\
    --rdzv-id="{job}" --rdzv-endpoint="{head}:29500" --max-restarts=100 \\
    pretrain_gpt.py \\
    {arguments} \\
    "$@"
"""


def launch_file(
    told: Launch, form: str, ending: str, sizes: tuple[int, int], head: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and what its launcher has no word for.

    ``sizes``: layers of the model, and those behind them that predict further tokens. What the text
    does not say when it is read back stands in comments, from which `read_launch` takes it.
    """
    software = form if form in ("torchtitan", "bridge") else "megatron"
    titan = software == "torchtitan"
    said = _of_torchtitan(told, *sizes) if titan else _of_megatron(told, *sizes)
    rows = [
        (field, name, said[field])
        for (one, field), names in WORDS.items()
        if one == software and field in said
        for name in names
    ]
    bare = ending in (".args", ".txt") or form == "bridge"
    text = _text(rows, told, form, ending)
    kept: dict[str, Any] = {"data": told.strategy.data, "spares": told.spares} if bare else {}
    back = read_launch(_with(kept, text, software, ending, head), layers=sizes[0])
    wanted, found = ({**asdict(one.strategy), **one._asdict()} for one in (told, back))
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
    )


def _with(
    kept: Mapping[str, Any], text: str, software: str, ending: str, head: Sequence[str]
) -> str:
    """The text under its comments."""
    first = ["#!/bin/bash"] * (ending in (".sh", ".sbatch", ".slurm"))
    lines = [f"# {line}" for line in head]
    lines += [f"# relparallel: {name}={kept[name]} (no word of {software})" for name in kept]
    return "\n".join([*first, *lines, text])


def _text(rows: Sequence[tuple[str, str, Any]], told: Launch, form: str, ending: str) -> str:
    """What the launcher takes."""
    if form in ("torchtitan", "bridge") and ending != ".txt":
        sections: dict[str, dict[str, Any]] = {}
        for _, name, value in rows:
            above, _, below = name.rpartition(".")
            sections.setdefault(above, {})[below] = value
        if form == "bridge":
            return str(yaml.safe_dump(sections, sort_keys=False))
        return "\n".join(
            f"[{above}]\n"
            + "".join(f"{one} = {json.dumps(value)}\n" for one, value in values.items())
            for above, values in sections.items()
        )
    if form == "bridge":
        return "".join(f"{name}={_word(value)}\n" for _, name, value in rows)
    options = [
        f"--{name.replace('_', '-')}" + ("" if value is True else f" {_word(value)}")
        for _, name, value in rows
    ]
    if ending == ".args":
        return "\n".join(options) + "\n"
    nodes = told.strategy.gpus // (told.host or 1)
    every = nodes + told.spares
    start, asked = (
        ("torchrun", str(nodes)) if form == "megatron" else ("ft_launcher", f"{nodes}:{every}")
    )
    if form == "slurm":
        start = _SLURM.format(every=every, host=told.host) + (
            "ft_launcher" if told.spares else "torchrun"
        )
        asked = f"{nodes}:{every}" if told.spares else str(nodes)
    job, first = (
        ("$SLURM_JOB_ID", "$head")
        if form == "slurm"
        else ("relparallel", "${MASTER_ADDR:-localhost}")
    )
    return _START.format(
        start=start,
        nodes=asked,
        host=told.host,
        job=job,
        head=first,
        arguments=" \\\n    ".join(options),
    )


def _word(value: Any) -> str:
    """A value as a shell takes it."""
    return shlex.quote(str(value).lower() if isinstance(value, bool) else str(value))


def _common(told: Launch) -> dict[str, Any]:
    """What all software is told."""
    s = told.strategy
    names = ("tensor", "pipeline", "context", "expert")
    found: dict[str, Any] = {name: getattr(s, name) for name in names}
    if s.experts_over_tensor:
        found["expert_tensor"] = 1
    if told.global_batch is not None:
        found["global_batch"] = told.global_batch
    if told.save_every is not None:
        found["save_every"] = told.save_every
    return found


def _of_megatron(told: Launch, layers: int, mtp: int) -> dict[str, Any]:
    """Values by field as Megatron-LM and Megatron-Bridge take them."""
    s = told.strategy
    found = _common(told) | {"micro_batch": s.micro_batch}
    flags = {"sequence_parallel": s.sequence_parallel, "distributed_optimizer": s.zero_stage > 0}
    flags |= {"fsdp": s.zero_stage > 1}
    if s.zero_stage > 1:
        found["sharding"] = SHARDING[s.zero_stage]
    if s.zero_stage and s.shard not in (None, s.data):
        found["copies"] = s.data // s.shard_group
    if s.recompute in ("selective", "full"):
        found["recompute"] = s.recompute
    if s.recompute == "full":
        found |= {"method": "uniform", "unit": 1}
    ends = ENDS.index(s.ends_as_layers)
    chunks = s.pipeline * s.virtual_stages
    dealt = deal(layers, mtp, s)
    if (
        s.pipeline > 1
        and (layers + ends % 2 + ends // 2) % chunks == 0
        and (ends or len({*dealt.tolist()}) == 1)
    ):
        flags |= {"embedding": bool(ends % 2), "loss": ends > 1}
        if s.virtual_stages > 1:
            found["virtual_stages"] = s.virtual_stages
    elif s.pipeline > 1:
        found["layout"] = in_letters(dealt, mtp)
    return found | {name: True for name, value in flags.items() if value}


def _of_torchtitan(told: Launch, layers: int, mtp: int) -> dict[str, Any]:
    """Values by field as torchtitan takes them."""
    s = told.strategy
    found = _common(told)
    ranks = s.shard_group if s.zero_stage else 1
    found |= {"replicas": s.data // ranks, "ranks": ranks}
    if s.expert > 1:
        found["expert_tensor"] = s.expert_tensor
    if s.tensor > 1:
        found["sequence_parallel"] = s.sequence_parallel
    if s.zero_stage:
        found["reshard"] = "always" if s.zero_stage == 3 else "never"
    found["recompute"] = "selective" if s.recompute == "alternate" else s.recompute
    if found["recompute"] == "selective":  # its only kind
        found["parts"] = "op"
    batch = (told.global_batch or s.data * s.micro_batch) // s.data
    found["local_batch"] = s.micro_batch if s.pipeline == 1 else batch
    if s.pipeline > 1:
        found["micro_batch"] = s.micro_batch
        names = {ours: theirs for theirs, ours in TITAN.items()}
        found["schedule"] = names.get(
            s.schedule, "Interleaved1F1B" if s.virtual_stages > 1 else "1F1B"
        )
        each = deal(layers, mtp, s).tolist()
        places = zip(accumulate([0, *each]), each, strict=False)
        parts = [[f"layers.{first + k}" for k in range(many)] for first, many in places]
        parts[0].insert(0, "tok_embeddings")
        parts[-1] += ["norm", "output"]
        found["layout"] = parts
    if told.save_every is not None:
        found["saves"] = True
    return found
