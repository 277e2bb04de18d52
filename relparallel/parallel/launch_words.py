"""The words of launchers: one table, and how values by field come out of a text or a file.

Megatron-LM's arguments, overrides of Megatron-Bridge and NeMo, torchtitan's TOML, DeepSpeed's JSON,
and the nodes that Slurm, torchrun and NVRx's ft_launcher start.
"""

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from relparallel._checks import meant
from relparallel.topology.formats._text import data_of

# A row: field ("?": yes or no, "'": a text, "*": a list, else a whole number); Megatron-LM's argument,
# or a short name in scripts around it; sections that Megatron-Bridge has it in; torchtitan's field,
# of [parallelism] unless it says so; DeepSpeed's. Of several rows of a field the first that a
# software has is written. Sources: Megatron-LM d98e8a6 and Megatron-Bridge 067f987 of August 2026;
# torchtitan 0.2, job_config.py; deepspeed.ai, config-json and autotp-training.
_TABLE: Final = """
tensor tensor_model_parallel_size model tensor_parallel_degree tensor_parallel.autotp_size
tensor - - - tensor_parallel.tp.tp_size
pipeline pipeline_model_parallel_size model pipeline_parallel_degree pipeline.stages
context context_parallel_size model context_parallel_degree -
expert expert_model_parallel_size model expert_parallel_degree moe.ep_size
expert - - - expert_parallel.autoep_size
expert_tensor expert_tensor_parallel_size model expert_tensor_parallel_degree -
replicas - - data_parallel_replicate_degree -
ranks - - data_parallel_shard_degree -
copies num_distributed_optimizer_instances ddp - -
shard - - - zero_optimization.mics_shard_size
virtual_stages num_virtual_stages_per_pipeline_rank - - -
virtual_stages virtual_pipeline_model_parallel_size model - -
group microbatch_group_size_per_virtual_pipeline_stage - - -
group microbatch_group_size_per_vp_stage model - -
chunk_layers num_layers_per_virtual_pipeline_stage - pipeline_parallel_layers_per_stage -
layout* pipeline_model_parallel_layout model module_fqns_per_model_part -
layout* - - pipeline_parallel_module_fqns_per_model_part -
embedding? account_for_embedding_in_pipeline_split model pipeline_parallel_first_stage_less_layers -
loss? account_for_loss_in_pipeline_split model pipeline_parallel_last_stage_less_layers -
layers num_layers model - -
micro_batch micro_batch_size train pipeline_parallel_microbatch_size train_micro_batch_size_per_gpu
micro_batch - - - per_device_train_batch_size
local_batch - - training.local_batch_size -
local_batch - - training.batch_size -
global_batch global_batch_size train training.global_batch_size train_batch_size
accumulation - - - gradient_accumulation_steps
sequence_parallel? sequence_parallel model enable_sequence_parallel -
recompute' recompute_granularity model activation_checkpoint.mode -
recompute' activations_checkpoint_granularity model - -
parts* recompute_modules model activation_checkpoint.selective_ac_option -
method' recompute_method model - -
method' activations_checkpoint_method model - -
unit recompute_num_layers model - -
unit activations_checkpoint_num_layers model - -
core? recompute_activations - - -
every_layer? checkpoint_activations - - activation_checkpointing.partition_activations
distributed_optimizer? use_distributed_optimizer ddp,optimizer - -
fsdp? use_megatron_fsdp ddp,dist - -
fsdp? use_torch_fsdp2 dist - -
fsdp? use_custom_fsdp ddp - -
sharding' data_parallel_sharding_strategy ddp - -
reshard' - - fsdp_reshard_after_forward -
zero_stage - - - zero_optimization.stage
zero_stage - - - zero_stage
optimizer' optim.name - - -
schedule' - - pipeline_parallel_schedule -
offload_layers cpu_offloading_num_layers model - -
offloads? cpu_offloading model - -
offload_optimizer? optimizer_cpu_offload optimizer - zero_optimization.offload_optimizer.device
offload_share' optimizer_offload_fraction optimizer - zero_optimization.offload_optimizer.ratio
offload_parameters? - - training.enable_cpu_offload zero_optimization.offload_param.device
offload_activations? - - - activation_checkpointing.cpu_checkpointing
save_every save_interval checkpoint checkpoint.interval -
saves? - - checkpoint.enable -
saves? - - checkpoint.enable_checkpoint -
nodes' nnodes - - -
every_node' nodes - - -
host' nproc_per_node - - -
host' gpus_per_node - - -
every_node' num_nodes - - -
host' gres - - -
host' trainer.devices - - -
tensor tp - - -
pipeline pp - - -
context cp - - -
expert ep - - -
expert_tensor etp - - -
virtual_stages vpp - - -
micro_batch mbs - - -
data dp - - -
"""
_READ: Final = ("megatron", "torchtitan", "deepspeed")
WORDS: Final[dict[tuple[str, str], tuple[str, ...]]] = {}
"""By software and field: the names that are written."""
_FIELDS: Final[dict[str, tuple[str, str]]] = {}  # by name: field with its sign, and software
for _row in _TABLE.strip().splitlines():
    _field, _word, _sections, *_others = _row.split()
    for _software, _name in zip(_READ, (_word, *_others), strict=True):
        if _name != "-":
            _FIELDS[_name] = _field, _software
            WORDS.setdefault((_software, _field.rstrip("?'*")), (_name,))
    if _sections != "-":
        _every = tuple(f"{one}.{_word}" for one in _sections.split(","))
        WORDS.setdefault(("bridge", _field.rstrip("?'*")), _every)
_ASIDE: Final = (
    *("nodes", "every_node", "host", "layers", "global_batch", "save_every", "saves"),
    *("optimizer", "offloads"),
)

# Words that sound like a strategy; among these, those that change nothing of one; values, too.
_TELLING: Final = re.compile(
    r"parallel|pipeline|virtual|recompute|offload|fsdp|shard|layout|micro_?batch|activations_check"
    r"|checkpoint_activ|distributed_optimizer|hpz|(^|_)(tp|pp|cp|ep|dp|sp)(_size)?$"
)
_SILENT: Final = re.compile(
    r"ckpt|^rl_|^eval_|inference|overlap|backend|float8|dtype|random|fully"
    r"|graph|fsdp_(?!shard)|async|loss_parallel|torch_opt|layer_wise|param_layout|delay|deallocate|buffer"
    r"|rotate|balanc|tokenizer|timeout|min_offload|pinned|offloading_activations"
    r"|data_?loader|vision"
)
_NOTHING: Final = ("", "none", "null", "auto", "false", "0", "1", "-1", "[]", "{}", "default")
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::?[-=]([^}]*))?\}|\$(\w+)")
_NOTATION: Final = re.compile(r"(tp|pp|cp|dp|ep|etp|vpp|mbs|zero|fsdp|hsdp)-?\d", re.IGNORECASE)


_TABLES: Final = {".toml": r"^\s*\[[\w.]+\]\s*$", ".yaml": r"\A\s*\{|^\w+:\s*\n\s+\w"}


def said_by_field(text: str, ending: str) -> tuple[dict[str, Any], list[str]] | None:
    """Values by field, and the words that were passed over; None: no words of a launcher.

    ``ending`` is that of a file. The software whose rules fill what is not said is a field too.
    """
    looks = (end for end, form in _TABLES.items() if re.search(form, text, re.MULTILINE))
    kind = ending or next(looks, "")
    if kind == ".toml":
        try:
            return _known(_flat(tomllib.loads(text)))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"text must be TOML, got {error}") from None
    if kind in (".json", ".yaml", ".yml"):
        return _known(_flat(data_of(text, "text")))
    if re.search(r"(?:^|\s|\(|\"|')--[A-Za-z]|(?:^|\s)\+*[\w.]*[._]\w+=", text):
        return _known(_arguments(text, script=bool(ending)))
    return None


def _flat(data: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Keys with those above them, and values that are no mappings."""
    if not isinstance(data, Mapping):
        raise ValueError(f"text must be fields with values, got {data!r:.80}")
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _arguments(text: str, script: bool) -> list[tuple[str, Any]]:
    """Arguments and overrides of a command or a script, with the variables that it sets put in."""
    slurm = "\n".join(re.findall(r"^#SBATCH\s+(.*)$", text, re.MULTILINE))
    slurm = re.sub(r"(?<!\S)-N\s*", "--nodes=", slurm)
    pairs: list[tuple[str, list[str]]] = []
    variables: dict[str, str] = {}

    def put(found: re.Match[str]) -> str:
        value = variables.get(found[1] or found[3], found[2])
        return found[0] if value is None else value

    try:
        words = [*_words(slurm + "\n" + re.sub(r"\\\r?\n", " ", text))]
    except ValueError as error:
        raise ValueError(f"text must have every quotation closed, got {error}") from None
    for word in (_VARIABLE.sub(put, one) for one in words):
        given = re.fullmatch(r"(--|\+*)([A-Za-z_][\w.-]*)(?:=\(?(.*))?", word, re.DOTALL)
        sign, name, value = given.groups() if given else ("", "", None)
        if sign == "--" or (value is not None and ("." in name or name in _FIELDS)):
            pairs.append((name.replace("-", "_"), [] if value is None else [value]))
        elif value is not None and not re.search(r"\s", value):
            if variables.setdefault(name, value) != value:  # which one, a run of it decides
                variables[name] = f"${name} of several values"
        elif not script and _NOTATION.match(word):
            raise ValueError(f"text must be words or arguments throughout, got {word!r} as well")
        elif pairs and word.strip("("):
            pairs[-1][1].append(word)
    return [(name, values or True) for name, values in pairs]


def _words(text: str) -> Iterator[str]:
    """Words of a command; those that are kept in a variable are words of their own."""
    for word in shlex.split(text, comments=True):
        kept = re.fullmatch(r"\w+\+?=\(?(.*--.*)", word, re.DOTALL)
        yield from _words(kept[1]) if kept else (word if "(" in word else word.rstrip(")"),)


def _known(pairs: Iterable[tuple[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """Values by field; a word that tells of a strategy and is not known is refused."""
    said: dict[str, Any] = {}
    passed = []
    for name, value in pairs:
        parts = [part.lstrip("-").replace("-", "_") for part in name.split(".")]
        ways = (".".join(parts[k:]) for k in range(len(parts)))
        key = next((way for way in ways if way in _FIELDS), None)
        first = value[0] if isinstance(value, list) and value else value
        if key is None:
            telling = _TELLING.search(parts[-1]) and not _SILENT.search(parts[-1])
            if telling and str(first).lower() not in _NOTHING:
                raise ValueError(
                    f"text must say a strategy in words that are known, got {name} = {first!r:.60}"
                    f"{meant(_FIELDS, parts[-1])}; leave it out if it changes nothing"
                )
            passed.append(name)
            continue
        sign, software = _FIELDS[key]
        field = sign.rstrip("?'*")
        found = _value(sign, name, value if sign.endswith("*") else first)
        if found is None or (field in said and field in (*_ASIDE, "fsdp")):
            continue  # the first counts
        if said.setdefault(field, found) != found:
            raise ValueError(f"text must say {name} once, got {said[field]!r:.60}, {found!r:.60}")
        said[software] = True
    if not said.keys() - {*_ASIDE, *_READ}:
        raise ValueError(
            "text must have a word of a strategy, such as --tensor-model-parallel-size, "
            f"parallelism.tensor_parallel_degree or zero_optimization.stage, got {passed[:4]}"
        )
    return said, passed


def _value(sign: str, name: str, value: Any) -> Any:
    """A value as its field has it, None where it says nothing."""
    text = str(value).strip()
    if text.lower() in ("none", "null", "auto", "", "[]"):
        return None
    if sign.endswith("?"):  # what follows an argument that has no value is no value
        return text.lower() not in ("false", "0")
    if "$" in text:
        if sign.rstrip("'") in _ASIDE:
            return None  # the machine gives it, or whoever starts the script
        raise ValueError(f"text must set the value of {name}, got {text!r:.60}")
    if sign.endswith(("'", "*")):  # of -1 devices are all
        return value if isinstance(value, list) else (text if text != "-1" else None)
    if not re.fullmatch(r"[+-]?\d{1,9}", text):
        raise ValueError(f"{name} must be a whole number, got {value!r:.60}")
    return int(text)
