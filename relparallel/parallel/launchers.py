"""What launchers are told, read into a strategy and what stands beside it in their files."""

import math
import re
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple
from warnings import warn

from relparallel._checks import require_choice, require_instance, require_int
from relparallel.parallel.launch_words import WORDS, said_by_field
from relparallel.parallel.schedules import group_size
from relparallel.parallel.stages import deal, in_chunks, read_layout
from relparallel.parallel.strategy import DEGREES, ENDS, Strategy
from relparallel.parallel.strategy_text import read_notation, strategy_of
from relparallel.topology.formats._text import data_of, decoded

TITAN: Final[dict[str, str]] = {
    "1F1B": "1f1b",
    "GPipe": "gpipe",
    "Interleaved1F1B": "interleaved_1f1b",
    "ZBVZeroBubble": "zb_v",
}
"""Schedules of torchtitan that are known here."""
MODULES: Final = {"between": ["layernorm", "moe_act"], "mlp": ["mlp"]}
"""Modules of Megatron-Core that kinds of recomputation stand for."""
SHARDING: Final = ("no_shard", "optim", "optim_grads", "optim_grads_params")
"""Sharding strategies of Megatron-FSDP, in the order of the ZeRO stages that they are."""
_FILES: Final = (".toml", ".json", ".yaml", ".yml", ".sh", ".args", ".txt", ".sbatch", ".slurm")
_STRATEGY: Final = tuple(Strategy.__dataclass_fields__)
_DIRECT: Final = (
    *DEGREES,
    *("expert", "expert_tensor", "virtual_stages", "shard", "micro_batch", "sequence_parallel"),
)
_ONE: Final = "tensor pipeline context expert micro_batch copies replicas unit"
_UNSAID: Final[dict[str, Any]] = {
    **dict.fromkeys(field for _, field in WORDS),
    **dict.fromkeys(_ONE.split(), 1),
    "ranks": -1,
    "accumulation": 0,
    "saves": True,
    "offloads": True,
    "offload_layers": 0,
    "offload_share": "1",
    "sharding": SHARDING[-1],
}
_CHUNKS: Final = re.compile(
    r"layout[\s=:]*(\S+)|(?<!\S)(E[EtmL|(),*\d]*L|\d+(?:x\d+)?(?:\+\d+(?:x\d+)?)+)(?!\S)"
)


class Launch(NamedTuple):
    """What a launcher is told: a strategy, and what stands beside it in its files.

    ``stage_layers`` are the layers of every chunk where they are said, ``offload`` is that of
    `memory`, ``passed`` are the words that change nothing of a strategy.
    """

    strategy: Strategy
    host: int | None = None  # GPUs of a node
    spares: int = 0  # nodes that stand by
    save_every: int | None = None  # steps between two checkpoints
    global_batch: int | None = None
    stage_layers: tuple[int, ...] | None = None
    offload: str = "none"
    passed: tuple[str, ...] = ()

    def beside(self, model: Any = None) -> dict[str, Any]:
        """What a strategy (of a model) does not hold of it, as `step_time` takes it."""
        found: dict[str, Any] = {} if self.offload == "none" else {"offload": self.offload}
        if (chunks := self.stage_layers) is not None:
            rules = (0, 1) if model is None else (model.mtp_layers,)
            dealt = (deal(sum(chunks), more, self.strategy).tolist() for more in rules)
            if [*chunks] not in dealt:
                found["stage_layers"] = in_chunks(chunks)
        return found


def read_launch(
    text: str | PathLike[str], gpus: int | None = None, layers: int | None = None
) -> Launch:
    """Read what a launcher is told: a strategy, its layers, spares and checkpoints.

    Parameters
    ----------
    text : str or path
        A strategy in words, as `read_strategy` takes it; arguments of Megatron-LM, overrides of
        Megatron-Bridge or NeMo; or a file: a shell or Slurm script with such arguments (variables
        that it sets are put in), torchtitan's TOML, DeepSpeed's JSON, YAML of Megatron-Bridge.
    gpus : int, optional
        GPUs to fill, where the text names neither replicas nor nodes.
    layers : int, optional
        Layers of the model, for words that count some of them.

    Returns
    -------
    Launch
        ``strategy``; ``spares``, nodes that stand by; ``save_every`` [steps]; ``global_batch``
        [sequences]; ``stage_layers`` and ``offload``, as `step_time` and `memory` take them;
        ``host``, GPUs of a node; ``passed``, words that change nothing of a strategy (a learning
        rate, a path). What is not said is None, or nothing; a word that tells of a strategy and is
        not known is refused.

    Examples
    --------
    >>> told = read_launch("--tensor-model-parallel-size 4 --use-distributed-optimizer", gpus=16)
    >>> told.strategy.tensor, told.strategy.data, told.strategy.zero_stage
    (4, 4, 1)
    """
    require_instance((str, PathLike), text=text)
    for name, given in (("layers", layers), ("gpus", gpus)):
        if given is not None:
            require_int(at_least=1, **{name: given})
    path = Path(text)
    if isinstance(text, str) and (path.suffix not in _FILES or re.search(r"[\n=]| -", text)):
        return _read(text, "", gpus, layers)
    try:
        return _read(decoded(path), path.suffix, gpus, layers)
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).removeprefix(f'{path}, ')}") from None


def read_strategy(
    text: str | PathLike[str], gpus: int | None = None, layers: int | None = None
) -> Strategy:
    """Read a strategy from its usual notation, or from what a launcher is told.

    Parameters
    ----------
    text : str or path
        Such as "TP8 PP16 DP128 VPP8 ZeRO-1 SP full", "TP 8, PP 16" or "tp2-pp8", each thing once.
        ETP1 are whole experts; VPP, VP or v the chunks per stage, or all their layers, "4x15+1" or
        "Et*4|(t*4|)*14tL"; MBS the sequences in a micro-batch; "ZeRO-1/16" or "shard=16" the ranks
        that share the state; FSDP is ZeRO-3, FSDP16 and HSDP16 with 16 ranks in a shard group, HSDP
        8x16 with 8 such groups; a schedule by its name; none, selective, full, alternate, between
        or mlp recompute. What is not named is 1, or not done. With chunks the schedule is the interleaved
        one. Or arguments or a file of a launcher, as `read_launch` takes them.
    gpus : int, optional
        GPUs to fill: the data-parallel degree where the text has none.
    layers : int, optional
        Layers of the model, for words that count some of them.

    Returns
    -------
    Strategy
        What the text says. Layers of chunks that no rule deals out, and what leaves the GPU, are no
        part of a strategy: a warning says what `step_time` and `memory` have to be told as well.

    Examples
    --------
    >>> read_strategy("TP8 PP16 VPP8 ZeRO-1", gpus=16384).data
    128
    >>> read_strategy("--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2").pipeline
    2
    """
    told = read_launch(text, gpus, layers)
    for name, value in told.beside().items():
        said = f"no strategy holds {name}={value!r} of the text: tell step_time or memory as well"
        warn(said, stacklevel=2)
    return told.strategy


def _read(text: str, ending: str, gpus: int | None, layers: int | None) -> Launch:
    """A text in any form, with what a file of ours says in its comments."""
    if found := said_by_field(text, ending):
        comments = re.findall(r"^# relparallel: (\w+)=(\S+)", text, re.MULTILINE)
        kept = {name: data_of(value, name) for name, value in comments}
        return _launch(*found, kept, gpus, layers)
    chunks = _CHUNKS.search(text)
    if chunks is None:
        return _with_chunks(read_notation(text), None, gpus)
    fields = read_notation(f"{text[: chunks.start()]} {text[chunks.end() :]}")
    return _with_chunks(fields, chunks[1] or chunks[2], gpus)


def _with_chunks(fields: dict[str, Any], said: Any, gpus: int | None) -> Launch:
    """A strategy whose chunks have these layers: a layout, or lists of the names of modules."""
    if said is None:
        return Launch(strategy_of(fields, gpus))
    if isinstance(said, list) and all(isinstance(stage, list) for stage in said):
        layer = re.compile(r"(^|\.)layers\.\d+$|^decoder$|^t$")
        chunks = [sum(bool(layer.search(str(name))) for name in stage) for stage in said]
    else:
        text = "".join(map(str, said)).strip("'\"")
        chunks = read_layout(text) or []
        if not chunks:
            raise ValueError(
                f"layout must be like '4x15+1' or 'Et*4|(t*4|)*14*tL', got {text!r:.80}"
            )
    stages = fields.get("pipeline", 1)
    virtual, rest = divmod(len(chunks), stages)
    if rest or fields.setdefault("virtual_stages", virtual) != virtual:
        many = fields.get("virtual_stages", "as many")
        raise ValueError(
            f"layout must have {many} chunks in each of {stages} stages, got {said!r:.80}"
        )
    return Launch(strategy_of(fields, gpus), stage_layers=tuple(chunks))


def _launch(
    said: dict[str, Any],
    passed: list[str],
    kept: dict[str, Any],
    gpus: int | None,
    layers: int | None,
) -> Launch:
    """What was said by field, put together by the rules of the software that was told."""
    if layers not in (None, said.setdefault("layers", layers)):
        raise ValueError(f"num_layers must be the {layers} of the model, got {said['layers']}")
    titan, whole = "torchtitan" in said, "deepspeed" in said and "micro_batch" not in said
    said = _UNSAID | (_usual_of_torchtitan(_UNSAID | said) if titan else {}) | said
    tensor, pipeline = said["tensor"], said["pipeline"]
    split = tensor * pipeline * said["context"]
    nodes, every, hosts = (
        [int(one) for one in re.findall(r"\d+", str(said[name]))] or [0]
        for name in ("nodes", "every_node", "host")
    )
    running = nodes[0] or every[0]
    own = running * hosts[-1]
    if own % split:  # of an example, whose user has others
        own, passed = 0, [*passed, "nnodes"]
    gpus = own or gpus
    data = kept.get("data") or max((gpus or split) // split, 1)
    if whole and said["global_batch"]:  # DeepSpeed's micro-batch is what is left of the batch
        said["micro_batch"] = said["global_batch"] // (data * (said["accumulation"] or 1)) or 1
    fields: dict[str, Any] = {name: said[name] for name in _DIRECT if said[name] is not None}
    if titan and pipeline == 1:
        fields["micro_batch"] = said["local_batch"] or 1
    if tensor == 1:  # without tensor ranks it says nothing
        fields.pop("expert_tensor", None)
    fields |= {"recompute": _recompute(said), "zero_stage": _zero_stage(said)}
    fields |= _replicas(said, data)
    if pipeline > 1:
        fields |= _schedule(said, pipeline)
    fields |= {name: value for name, value in kept.items() if name in _STRATEGY}
    told = _with_chunks(fields, said["layout"] if pipeline > 1 else None, gpus)
    s = told.strategy.for_gpus(own) if own else told.strategy
    batch = max(said["global_batch"] or said["accumulation"] * s.micro_batch * s.data, 0) or None
    if batch and said["group"] and s.virtual_stages > 1:
        m = batch // (s.micro_batch * s.data)
        if said["group"] != (least := int(group_size(pipeline, m))):
            raise ValueError(
                f"microbatch_group_size_per_vp_stage must be {least}, the fewest of {m} "
                f"micro-batches that none waits for, got {said['group']}"
            )
    beside = {
        "host": hosts[-1] or None,
        "spares": max(running, *nodes, *every) - running,
        "save_every": said["save_every"] if said["saves"] else None,
        "global_batch": batch,
        "offload": _offload(said),
        "passed": tuple(passed),
    }
    more = {name: value for name, value in kept.items() if name not in _STRATEGY}
    return told._replace(**{**beside, **more})


def _usual_of_torchtitan(said: dict[str, Any]) -> dict[str, Any]:
    """What torchtitan does where nothing else is said."""
    tensor, free = said["tensor"], not said["layout"]
    kept = {"never": True, "always": False}.get(said["reshard"], said["pipeline"] > 1)
    return {
        "sequence_parallel": tensor > 1,
        "expert_tensor": 1 if said["expert"] > 1 else tensor,
        "zero_stage": 0 if said["ranks"] == 1 else 2 if kept else 3,
        "parts": "2",  # every second layer
        "embedding": free,
        "loss": free,
    }


def _recompute(said: dict[str, Any]) -> str:
    """What is computed again; parts of a layer, and some of the layers, are refused by name."""
    usual = "selective" if said["core"] else "none"
    usual = "full" if said["every_layer"] or said["method"] else usual
    kind, titan = str(said["recompute"] or usual).lower(), "torchtitan" in said
    many, chunks = said["unit"], said["pipeline"] * (said["virtual_stages"] or 1)
    wrong = "" if kind in ("none", "selective", "full") else kind
    if kind == "selective":
        parts = {*re.findall(r"\w+", str(said["parts"] or ""))}
        if not titan and parts:
            kind = next((name for name, own in MODULES.items() if parts == {*own}), kind)
        wrong = ", ".join(parts - {"op" if titan else "core_attn"}) * (kind == "selective")
    elif kind == "full" and said["method"] == "block":
        if many * chunks < (said["layers"] or math.inf):
            wrong = f"{many} layers of a stage"
    elif kind == "full" and many > 1:
        wrong = f"{many} layers at once"
    if wrong:
        raise ValueError(
            "recompute must be none, selective (core_attn, the attention core), full (every layer), "
            "between (layernorm and moe_act), mlp or alternate (every second matrix product: "
            f"torchtitan's op), got {wrong}"
        )
    return "alternate" if titan and kind == "selective" else kind


def _zero_stage(said: dict[str, Any]) -> int:
    """ZeRO stage of a distributed optimizer, of FSDP, or as DeepSpeed names it."""
    if said["fsdp"]:
        known = require_choice(SHARDING, data_parallel_sharding_strategy=said["sharding"])
        return SHARDING.index(known)
    shared = "distributed" in (said["optimizer"] or "")  # as NeMo names it
    return int(said["zero_stage"] or said["distributed_optimizer"] or shared)


def _replicas(said: dict[str, Any], data: int) -> dict[str, int]:
    """Replicas, and the ranks that share a state: torchtitan's degrees, Megatron's copies."""
    if "torchtitan" in said:
        replicas, ranks = said["replicas"], said["ranks"]
        own = ranks if ranks > 0 else max(data // replicas, 1)
        return {"data": replicas * own} | ({"shard": own} if replicas > 1 and ranks != 1 else {})
    copies = said["copies"]
    if data % copies:
        raise ValueError(
            f"num_distributed_optimizer_instances must divide the {data} replicas, got {copies}"
        )
    return {"shard": data // copies} if copies > 1 else {}


def _schedule(said: dict[str, Any], pipeline: int) -> dict[str, Any]:
    """The schedule that torchtitan names, the chunks, and what takes the place of a layer."""
    more = [bool(said[end]) for end in ("embedding", "loss")]
    fields: dict[str, Any] = {"ends_as_layers": ENDS[more[0] + 2 * more[1]]}
    if name := said["schedule"]:
        name = {one.lower(): one for one in TITAN}.get(name.lower(), name)
        fields["schedule"] = TITAN[require_choice(tuple(TITAN), pipeline_parallel_schedule=name)]
        if name == "Interleaved1F1B" and not (said["layout"] or said["chunk_layers"]):
            fields["virtual_stages"] = 2  # torchtitan's, where nothing else is said
    if each := said["chunk_layers"]:
        if said["layers"] is None:
            raise ValueError("layers must be those of the model where words count some, got None")
        chunks, rest = divmod(said["layers"] + sum(more), each)
        chunks += rest > 0
        if chunks % pipeline or (rest and "torchtitan" not in said):
            raise ValueError(f"layers of a chunk must fill {pipeline} stages alike, got {each}")
        fields["virtual_stages"] = chunks // pipeline
    return fields


def _offload(said: dict[str, Any]) -> str:
    """What leaves the GPU: one kind of `memory`, of all layers."""
    found = [one for one in ("parameters", "optimizer", "activations") if said[f"offload_{one}"]]
    if found[:2] == ["parameters", "optimizer"]:
        del found[1]  # it goes with them
    if found[:1] == ["optimizer"] and float(said["offload_share"]) != 1:
        found[0] = f"{said['offload_share']} of the optimizer"
    if many := said["offload_layers"] * said["offloads"]:
        # one layer at least stays in Megatron
        some = many < (said["layers"] or math.inf) - 1
        found.append(f"activations of {many} layers" if some else "activations")
    if len(found) > 1 or " of " in "".join(found):
        raise ValueError(
            "offload must be one of none, activations (of all layers, whose number is given), "
            f"optimizer or parameters, got {' and '.join(found)}"
        )
    return found[0] if found else "none"
