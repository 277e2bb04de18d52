"""The words of launchers: one table, and how values by field come out of a text or a file.

Megatron-LM's arguments, overrides of Megatron-Bridge and NeMo, torchtitan's TOML, DeepSpeed's JSON,
and the nodes that Slurm, torchrun and NVRx's ft_launcher start.
"""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from relparallel._checks import meant
from relparallel.parallel.strategy_text import NUMBERS
from relparallel.topology.formats._text import data_of

# A row: field ("?": yes or no, "'": a text, else a whole number); Megatron-LM's argument; sections
# of Megatron-Bridge, or the name there; torchtitan's field, of [parallelism] unless it says so;
# DeepSpeed's. Of several rows of a field the first that a software has is written. Sources:
# Megatron-LM d98e8a6 and Megatron-Bridge 067f987 of August 2026; torchtitan 0.2, job_config.py;
# deepspeed.ai, config-json and autotp-training.
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
virtual_stages num_virtual_stages_per_pipeline_rank model.virtual_pipeline_model_parallel_size - -
chunk_layers num_layers_per_virtual_pipeline_stage - pipeline_parallel_layers_per_stage -
layout' pipeline_model_parallel_layout model module_fqns_per_model_part -
layout' - - pipeline_parallel_module_fqns_per_model_part -
embedding? account_for_embedding_in_pipeline_split model pipeline_parallel_first_stage_less_layers -
loss? account_for_loss_in_pipeline_split model pipeline_parallel_last_stage_less_layers -
layers num_layers model - -
micro_batch micro_batch_size train pipeline_parallel_microbatch_size train_micro_batch_size_per_gpu
local_batch - - training.local_batch_size -
local_batch - - training.batch_size -
global_batch global_batch_size train training.global_batch_size train_batch_size
accumulation - - - gradient_accumulation_steps
sequence_parallel? sequence_parallel model enable_sequence_parallel -
recompute' recompute_granularity model activation_checkpoint.mode -
recompute' - model.activations_checkpoint_granularity - -
parts' recompute_modules model activation_checkpoint.selective_ac_option -
method' recompute_method model - -
method' - model.activations_checkpoint_method - -
unit recompute_num_layers model - -
unit - model.activations_checkpoint_num_layers - -
core? recompute_activations - - -
every_layer? checkpoint_activations - - activation_checkpointing.partition_activations
distributed_optimizer? use_distributed_optimizer ddp,optimizer - -
fsdp? use_megatron_fsdp ddp,dist - -
fsdp? use_torch_fsdp2 dist - -
fsdp? use_custom_fsdp ddp - -
sharding' data_parallel_sharding_strategy ddp - -
reshard' - - fsdp_reshard_after_forward -
zero_stage - - - zero_optimization.stage
schedule' - - pipeline_parallel_schedule -
offload_layers cpu_offloading_num_layers model - -
offload_optimizer? optimizer_cpu_offload optimizer - zero_optimization.offload_optimizer.device
offload_parameters? - - training.enable_cpu_offload zero_optimization.offload_param.device
offload_activations? - - - activation_checkpointing.cpu_checkpointing
save_every save_interval checkpoint checkpoint.interval -
saves? - - checkpoint.enable -
saves? - - checkpoint.enable_checkpoint -
nodes' nnodes - - -
every_node' nodes - - -
host' nproc_per_node - - -
host' gpus_per_node - - -
"""
SOFTWARE: Final = ("megatron", "bridge", "torchtitan", "deepspeed")
WORDS: Final[dict[tuple[str, str], tuple[str, ...]]] = {}
"""By software and field: the names that are written."""
_FIELDS: Final[dict[str, tuple[str, str]]] = {}  # by name: field with its sign, and software


def _enter(field: str, megatron: str, bridge: str, titan: str, deepspeed: str) -> None:
    """Enter a row under the names that each software has for it, and under older sections."""
    whole = bridge if "." in bridge else f"{bridge},".replace(",", f".{megatron},").rstrip(",")
    titan = titan if "." in titan or titan == "-" else f"parallelism.{titan}"
    columns = megatron, "-" if bridge == "-" else whole, titan, deepspeed
    for software, names in zip(SOFTWARE, columns, strict=True):
        if names != "-":
            WORDS.setdefault((software, field.rstrip("?'")), tuple(names.split(",")))
            for name in names.split(","):
                _FIELDS[name] = field, software
                if name.startswith(("parallelism.", "model.")):
                    _FIELDS.setdefault(name.rpartition(".")[2], (field, software))


for _row in _TABLE.strip().splitlines():
    _enter(*_row.split())
for _name in ("tp", "pp", "cp", "dp", "ep", "etp", "vpp", "mbs"):  # in scripts around these
    _FIELDS[_name] = NUMBERS[_name], "megatron"
_ASIDE: Final = ("nodes", "every_node", "host", "layers", "global_batch", "save_every", "saves")

# Words that sound like a strategy; among these, those that change nothing of one; values, too.
_TELLING: Final = re.compile(
    r"parallel|pipeline|virtual|recompute|offload|fsdp|shard|layout|micro_?batch|activations_check"
    r"|checkpoint_activ|distributed_optimizer|per_vp_stage|hpz|(^|_)(tp|pp|cp|ep|dp|sp)(_size)?$"
)
_SILENT: Final = re.compile(
    r"ckpt|^rl_|^eval_|^model_parallel_size|inference|overlap|backend|float8|dtype|random|fully"
    r"|graph|fsdp_|async|loss_parallel|torch_opt|layer_wise|param_layout|delay|deallocate|buffer"
    r"|rotate|balanc|tokenizer|timeout|min_offload|pinned|offloading_activations|offload_fraction"
    r"|data_?loader|vision"
)
_NOTHING: Final = ("", "none", "null", "auto", "false", "0", "1", "-1", "[]", "{}", "default")
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)")
_NOTATION: Final = re.compile(r"(tp|pp|cp|dp|ep|etp|vpp|mbs|zero|fsdp|hsdp)-?\d", re.IGNORECASE)


def said_by_field(text: str, ending: str) -> tuple[dict[str, Any], list[str]] | None:
    """Values by field, and the words that were passed over; None: no words of a launcher.

    ``ending`` is that of a file. The software whose rules fill what is not said is a field too.
    """
    if ending == ".toml" or (not ending and re.search(r"^\s*\[[\w.]+\]\s*$", text, re.MULTILINE)):
        try:
            return _known(_flat(tomllib.loads(text)))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"text must be TOML, got {error}") from None
    nested = text.lstrip()[:1] == "{" or re.search(r"^\w+:\s*\n\s+\w", text, re.MULTILINE)
    if ending in (".json", ".yaml", ".yml") or (not ending and nested):
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


def _arguments(text: str, script: bool) -> Iterator[tuple[str, Any]]:
    """Arguments and overrides of a command or a script, with the variables that it sets put in."""
    slurm = "\n".join(re.findall(r"^#SBATCH\s+(.*)$", text, re.MULTILINE))
    try:
        words = shlex.split(slurm + "\n" + re.sub(r"\\\r?\n", " ", text), comments=True)[::-1]
    except ValueError as error:
        raise ValueError(f"text must have every quotation closed, got {error}") from None
    pairs: list[tuple[str, list[str]]] = []
    variables: dict[str, str] = {}

    def put(found: re.Match[str]) -> str:
        value = variables.get(found[1] or found[3], found[2])
        return found[0] if value is None else value

    while words:
        word = words.pop()
        option = re.fullmatch(r"--([A-Za-z][\w.-]*)(?:=(.*))?", word, re.DOTALL)
        given = re.fullmatch(r"\+*([A-Za-z_][\w.]*)=\(?(.*)", word, re.DOTALL)
        if option:
            value = [] if option[2] is None else [option[2]]
            pairs.append((option[1].replace("-", "_"), value))
        elif given and "--" in given[2]:  # arguments that are kept in a variable
            words.extend(reversed(shlex.split(given[2])))
        elif given and ("." in given[1] or given[1] in _FIELDS):
            pairs.append((given[1], [given[2]]))
        elif given and not re.search(r"\s", given[2]):
            variables[given[1]] = _VARIABLE.sub(put, given[2])
        elif not script and _NOTATION.match(word):
            raise ValueError(f"text must be words or arguments throughout, got {word!r} as well")
        elif pairs and word.strip("()"):
            pairs[-1][1].append(word if "(" in word else word.rstrip(")"))

    for name, values in pairs:
        yield name, [_VARIABLE.sub(put, one) for one in values] or True


def _known(pairs: Iterator[tuple[str, Any]]) -> tuple[dict[str, Any], list[str]]:
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
        (sign, software), whole = _FIELDS[key], isinstance(value, list)
        field = sign.rstrip("?'")
        found = _value(sign, name, value if whole and field in ("layout", "parts") else first)
        if found is None:
            continue
        if field in said and (field in _ASIDE or field == "fsdp"):
            continue  # the first counts
        if said.get(field, found) != found:
            raise ValueError(f"text must say {name} once, got {said[field]!r:.60}, {found!r:.60}")
        said |= {field: found, software: True}
    if not said.keys() - {*_ASIDE, *SOFTWARE}:
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
        if sign.rstrip("?'") in _ASIDE:
            return None  # the machine gives it, or whoever starts the script
        raise ValueError(f"text must set the value of {name}, got {text!r:.60}")
    if sign.endswith("'"):
        return value if isinstance(value, list) else text
    if not re.fullmatch(r"[+-]?\d{1,9}", text):
        raise ValueError(f"{name} must be a whole number, got {value!r:.60}")
    return int(text)
