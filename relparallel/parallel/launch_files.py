"""Files that launchers take, written from the table of words that reads them."""

import json
import shlex
from dataclasses import asdict
from typing import Any, Final

import yaml

from relparallel.parallel.launch_words import WORDS
from relparallel.parallel.launchers import MODULES, SHARDING, TITAN, Launch, read_launch
from relparallel.parallel.schedules import group_size
from relparallel.parallel.stages import deal, in_letters

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
    s, software = told.strategy, form if form in ("torchtitan", "bridge") else "megatron"
    beside = {"global_batch": told.global_batch, "save_every": told.save_every}
    said = asdict(s) | {"data": None} | beside
    said |= (_of_torchtitan if software == "torchtitan" else _of_megatron)(told, *sizes)
    words = {
        name: said[field]
        for (one, field), names in WORDS.items()
        if one == software and said.get(field) is not None
        for name in names
    }
    body = _text(words, told, form, ending)

    def text(kept: dict[str, Any]) -> str:
        unsaid = (f"relparallel: {name}={kept[name]} (no word of {software})" for name in kept)
        first = ["#!/bin/bash"] * (ending in (".sh", ".sbatch", ".slurm"))
        return "\n".join([*first, *(f"# {line}" for line in (*head, *unsaid)), body])

    kept = {"data": s.data} if form == "bridge" or ending == ".args" else {}
    back = read_launch(text(kept), layers=sizes[0])
    wanted, found = (asdict(one.strategy) | one._asdict() for one in (told, back))
    aside = ("strategy", "host", "stage_layers", "passed")
    kept |= {name: wanted[name] for name in wanted if wanted[name] != found[name]}
    kept = {name: value for name, value in kept.items() if name not in aside}
    lost = [
        f"{software} has no word for {name}={value}"
        + f": start it on {s.gpus:,} GPUs" * (name == "data")
        for name, value in kept.items()
        if name != "ends_as_layers" or said.get("layout") is None  # which says it as well
    ]
    m, p = (told.global_batch or 0) // (s.data * s.micro_batch), s.pipeline
    if software == "torchtitan" and s.virtual_stages > 1 and m % max(m // p, 1):
        lost.append(f"PyTorch interleaves {m} micro-batches on {p} stages in no equal rounds")
    return text(kept), tuple(lost)


def _text(words: dict[str, Any], told: Launch, form: str, ending: str) -> str:
    """What the launcher takes."""
    if ending in (".toml", ".yaml", ".yml"):
        sections: dict[str, dict[str, Any]] = {}
        for name, value in words.items():
            above, _, below = name.rpartition(".")
            sections.setdefault(above or "parallelism", {})[below] = value
        if form == "bridge":
            return str(yaml.safe_dump(sections, sort_keys=False))
        return "\n".join(  # values of TOML are here those of JSON
            f"[{above}]\n" + "".join(f"{name} = {json.dumps(one[name])}\n" for name in one)
            for above, one in sections.items()
        )
    said = {name: shlex.quote(json.dumps(value).strip('"')) for name, value in words.items()}
    if form == "bridge":
        return "".join(f"{name}={value}\n" for name, value in said.items())
    said |= {name: " ".join(value) for name, value in words.items() if isinstance(value, list)}
    options = [
        f"--{name.replace('_', '-')}" + f" {value}" * (value != "true")
        for name, value in said.items()
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


def _of_megatron(told: Launch, layers: int, mtp: int) -> dict[str, Any]:
    """Values by field as Megatron-LM and Megatron-Bridge take them; None is not written."""
    s, full = told.strategy, told.strategy.recompute == "full"
    zero, chunks = s.zero_stage, deal(layers, mtp, s)
    group = int(group_size(s.pipeline, (told.global_batch or 0) // (s.data * s.micro_batch)))
    even = len({*chunks.tolist()}) == 1
    said = {
        "expert_tensor": int(s.experts_over_tensor),
        "sequence_parallel": s.sequence_parallel,
        "recompute": s.recompute
        if full
        else "selective" * (s.recompute in ("selective", *MODULES)),
        "parts": MODULES.get(s.recompute),
        "method": "uniform" * full,
        "unit": int(full),
        "distributed_optimizer": zero > 0,
        "fsdp": zero > 1,
        "sharding": SHARDING[zero] * (zero > 1),
        "copies": s.state_copies * (zero > 0 and s.shard not in (None, s.data)),
        "virtual_stages": s.virtual_stages * (even and 1 < s.pipeline < chunks.size),
        "group": group * (s.virtual_stages > 1 and group > s.pipeline),
        "layout": "" if even else in_letters(chunks, mtp),
    }
    return {field: value or None for field, value in said.items()}


def _of_torchtitan(told: Launch, layers: int, mtp: int) -> dict[str, Any]:
    """Values by field as torchtitan takes them; None is not written."""
    s = told.strategy
    ranks = s.shard_group if s.zero_stage else 1
    said = {
        "replicas": s.data // ranks,
        "ranks": ranks,
        "reshard": {0: None, 3: "always"}.get(s.zero_stage, "never"),
        "expert_tensor": s.expert_tensor if s.expert > 1 else None,
        "sequence_parallel": None,  # always with tensor: 0.2 refuses a file that says so
        "local_batch": s.micro_batch,
        "micro_batch": None,
        "schedule": None,
        "saves": True if told.save_every else None,
    }
    said |= {"recompute": None} if s.recompute in MODULES else {}
    if s.recompute in ("selective", "alternate"):  # its only kind, of every second product
        said |= {"recompute": "selective", "parts": "op"}
    if s.pipeline == 1:
        return said
    number = iter(range(layers))
    parts = [
        [f"layers.{next(number)}" for _ in range(many)] for many in deal(layers, mtp, s).tolist()
    ]
    parts[0].insert(0, "tok_embeddings")
    parts[-1] += ["norm", "output"]
    usual = "Interleaved1F1B" if s.virtual_stages > 1 else "1F1B"
    return said | {
        "micro_batch": s.micro_batch,
        "local_batch": (told.global_batch or s.micro_batch * s.data) // s.data,
        "schedule": {ours: name for name, ours in TITAN.items()}.get(s.schedule, usual),
        "layout": parts,
    }
