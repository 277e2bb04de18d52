"""Published training runs as models, strategies and clusters, for a step-time model to predict."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

import pandas as pd

from relparallel._checks import require_flag
from relparallel.hardware import Cluster, accelerator, accelerators, cluster
from relparallel.parallel.feasibility import require_feasible
from relparallel.parallel.run import Run, step_seconds
from relparallel.parallel.strategy import Strategy
from relparallel.published import Fact, facts, shipped_rows
from relparallel.units import GBIT, GIB
from relparallel.workload import Transformer, transformer

# Prefix of the rows: name of the set, software, cluster, vocabulary where the row does not give it.
# Megatron pads the vocabulary to a multiple of 128 tensor-parallel ranks at most: 50,257 words
# become 50,304 or more.
_SETS: Final[Mapping[str, tuple[str, str, str, int]]] = {
    "PTDP-T": ("PTD-P", "megatron-2021", "a100-80gb-selene", 51200),
    "KORTH": ("Korthikanti", "megatron-2022", "a100-80gb-selene", 51200),
    "BLOOM": ("BLOOM", "megatron-deepspeed-2022", "a100-80gb-jean-zay", 250880),
    "MPT": ("MPT", "llm-foundry-2023", "", 50368),
}
_MPT_CLUSTER: Final = {
    "a100_80gb": "a100-80gb-roce",
    "a100_40gb": "a100-40gb-roce",
    "h100_80gb": "h100-80gb-roce",
}
_BRIDGE_CLUSTER: Final = {
    "DGX-H100": ("H100", "h100-80gb-dgx"),
    "DGX-B200": ("B200", "b200-180gb-dgx"),
    "DGX-GB200": ("GB200", "gb200-186gb-nvl72"),
    "DGX-B300": ("B300", "b300-270gb-dgx"),
    "DGX-GB300": ("GB300", "gb300-279gb-nvl72"),
}
# models, and layers that predict further tokens: as the counted FLOPs of a token have them
_BRIDGE_MODEL: Final = {
    "LLAMA3_8B": ("llama3-8b", 0),
    "LLAMA3_70B": ("llama3-70b", 0),
    "LLAMA3.1_405B": ("llama3-405b", 0),
    "GPT OSS 120B": ("gpt-oss-120b", 0),
    "Qwen3_30B_a3B": ("qwen3-30b-a3b", 0),
    "Qwen3_235B_a22B": ("qwen3-235b-a22b", 0),
    "DeepSeekV3": ("deepseek-v3", 1),
    "DeepSeekV3 (dropless)": ("deepseek-v3", 1),
    "DeepSeekV3 (w/o MTP)": ("deepseek-v3", 0),
    "DeepSeekV3 (w/ MTP)": ("deepseek-v3", 1),
    "DeepSeekV4 Flash": ("deepseek-v4-flash", 1),
    "Kimi_K2": ("kimi-k2-1t", 0),
    "Nemotron_3_Nano": ("nemotron-3-nano", 0),
    "Nemotron_3_5_Lightning": ("nemotron-3-nano", 2),  # the same layers
    "Nemotron_3_Super": ("nemotron-3-super", 2),
}
# containers of half a year, and what they are called
_CONTAINERS: Final = {"26.02": "2026h1", "26.04": "2026h1", "26.06": "2026", "26.08": "2026"}
# three times as slow as its neighbours, for no reason that is known
_OUTLIERS: Final = ("VTRAIN-M-0016",)
_LAYOUT: Final = (
    "tensor",
    "pipeline",
    "data",
    "context",
    "expert",
    "virtual_stages",
    "micro_batch",
    "global_batch",
)
_SIZES: Final = (
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "dense_layers",
    "mtp_layers",
    "vocabulary",
    "sequence",
)
# what a row says of itself, as an option of its software
_OPTIONS: Final = {
    "adapters_only": "adapters",
    "async_tp": "async_tp",
    "compiled=no": "eager",
    "cuda_graph": "cuda_graphs",
    "cuda_graphs": "cuda_graphs",
    "full_cuda_graph": "cuda_graphs",
    "layer_cuda_graph": "cuda_graphs",
    "partial_graphs": "partial_graphs",
    "exchange_overlap": "exchange_overlap",
    "rowwise": "rowwise",
}
_ALTERNATE: Final = "recompute=every_second_product"
_SPLIT_EXPERTS: Final = "experts_split_by_tensor"
_UNKNOWN: Final = {
    "cp_exchange=all-to-all": "context ranks exchange heads, not keys and values",
    "schedule=DualPipe": "micro-batches enter a pipeline at both ends and overlap",
}  # what a row says of itself that no strategy can


def measured_runs(*, outliers: bool = False) -> tuple[Run, ...]:
    """Measured steps of the published facts whose inputs are complete.

    Parameters
    ----------
    outliers : bool
        Whether to keep the one declared outlier.

    Returns
    -------
    tuple of Run
        Megatron-LM (rows PTDP-T and KORTH), the BLOOM tuning runs, llm-foundry, pre-training with
        Megatron-Bridge, and those of ``data/measured_runs.csv`` that a `Strategy` can say: MLPerf
        Training, SimuMax, torchtitan and vTrain. `refused_runs` has the others.

    Examples
    --------
    >>> run = next(run for run in measured_runs() if run.id == "PTDP-T-0010")
    >>> run.strategy.gpus, run.time
    (3072, 102.63)
    """
    require_flag(outliers=outliers)
    found = (run for run in _every().values() if isinstance(run, Run))
    return tuple(run for run in found if outliers or run.id not in _OUTLIERS)


def refused_runs() -> pd.DataFrame:
    """Published rows that no strategy can say, by run, with the reason."""
    rows = {
        row["id"]: (row["source"], row["accelerator"]) for row in shipped_rows("measured_runs.csv")
    }
    rows |= {
        name: ("Megatron-Bridge", str(fact.inputs.get("system"))) for name, fact in _timed().items()
    }
    refused = [
        (name, *rows[name], said) for name, said in _every().items() if isinstance(said, str)
    ]
    return pd.DataFrame(refused, columns=["run", "source", "accelerator", "reason"]).set_index(
        "run"
    )


@cache
def _every() -> dict[str, Run | str]:
    """Every published row by name, or why it is no run."""
    read = {name: partial(_run, fact) for name, fact in _timed().items()}
    read |= {row["id"]: partial(row_as_run, row) for row in shipped_rows("measured_runs.csv")}
    found: dict[str, Run | str] = {}
    for name, run in read.items():
        try:
            found[name] = run()
        except ValueError as error:
            found[name] = str(error).partition(", got")[0]
    return found


def row_as_run(row: Mapping[str, str]) -> Run:
    """Run of a row of the table; ValueError says what no strategy, or no data sheet, can say."""
    for option in set(row["options"].split()) & set(_UNKNOWN):
        raise ValueError(_UNKNOWN[option])
    if row["accelerator"] not in accelerators():
        raise ValueError(f"no data sheet of {row['accelerator']}")
    needed = (*_LAYOUT, "network_gbit") if int(row["gpus"]) > int(row["gpus_per_node"]) else _LAYOUT
    for name in (name for name in ("software", *needed) if not row[name]):
        raise ValueError(f"{name} is not published")
    device, gpus = accelerator(row["accelerator"]), int(row["gpus"])
    if row["precision"] not in device.matmul:
        raise ValueError(f"products in {row['precision']} were not measured on {device.name}")
    sizes: dict[str, Any] = {name: int(row[name]) for name in _SIZES if row[name]}
    model = replace(transformer(row["model"]), **sizes) if row["model"] else Transformer(**sizes)
    degrees: dict[str, Any] = {name: int(row[name]) for name in _LAYOUT[:-1]}
    strategy = Strategy(
        **degrees,
        recompute="alternate" if _ALTERNATE in row["options"].split() else row["recompute"],
        experts_over_tensor=degrees["expert"] > 1 and _SPLIT_EXPERTS not in row["options"],
        sequence_parallel=row["sequence_parallel"] == "1",
        zero_stage=int(row["zero_stage"]),
        schedule="interleaved_1f1b" if int(row["virtual_stages"]) > 1 else "1f1b",
    ).for_gpus(gpus)
    node, batch = min(int(row["gpus_per_node"]), gpus), int(row["global_batch"])
    place = Cluster(
        nodes=gpus // node,
        gpus_per_node=node,
        accelerator=device,
        # of no account in a single node
        network_bandwidth=float(row["network_gbit"] or 100 * node) * GBIT,
    )
    require_feasible(model, strategy, place, batch)
    return Run(
        id=row["id"],
        source=row["source"] + ", adapters" * ("adapters_only" in row["options"]),
        model=model,
        strategy=strategy,
        cluster=place,
        global_batch=batch,
        software=_with_options(row),
        time=step_seconds(float(row["value"]), row["unit"], model, batch, gpus),
        precision=row["precision"],
        memory=float(row["memory_gib"] or 0) * GIB,
    )


def _with_options(row: Mapping[str, str]) -> str:
    """Software of a row with what the row switches on, or leaves off."""
    said = row["options"].split()
    chosen = {_OPTIONS[option] for option in said if option in _OPTIONS}
    if "MLPerf" in row["source"]:
        chosen.add("mlperf")
        if int(row["tensor"]) > 1 and "tp_overlap" not in said:
            chosen.add("no_tp_overlap")
    return "+".join([row["software"], *sorted(chosen)])


def _set_of(fact: Fact) -> str:
    return fact.id.rpartition("-")[0]


def _timed() -> dict[str, Fact]:
    """Measured steps of the sets, with every degree given but for some of Megatron-Bridge."""
    return {
        fact.id: fact
        for fact in facts("parallelism-cost").values()
        if _set_of(fact) == "BRIDGE"
        or (
            _set_of(fact) in _SETS
            and (fact.quantity == "iteration time" or fact.unit == "tokens/s/GPU")
        )
    }


def _run(fact: Fact) -> Run:
    read = {"MPT": _mpt, "BRIDGE": _bridge}.get(_set_of(fact), _megatron)
    source, software, place, model, strategy = read(fact, dict(fact.inputs))
    gpus, batch = int(fact.inputs["gpus"]), int(fact.inputs["gbs"])
    said = str(fact.inputs.get("precision", "")).lower()
    return Run(
        id=fact.id,
        source=source,
        model=model,
        strategy=strategy.for_gpus(gpus),
        cluster=cluster(place, gpus),
        global_batch=batch,
        software=software,
        precision=next((name for name in ("fp4", "fp8") if name in said), "bf16"),
        time=step_seconds(float(fact.value_text.partition(" ")[0]), fact.unit, model, batch, gpus),
    )


Read = tuple[str, str, str, Transformer, Strategy]


def _megatron(fact: Fact, row: Mapping[str, Any]) -> Read:
    """Three-dimensional parallelism."""
    source, software, place, vocabulary = _SETS[_set_of(fact)]
    chunks = int(row.get("vstages", 1))
    recompute = str(row["recompute"]).partition(" ")[0]
    strategy = Strategy(
        tensor=row["tp"],
        pipeline=row["pp"],
        data=row["dp"],
        micro_batch=row["mbs"],
        virtual_stages=chunks,
        schedule="interleaved_1f1b" if chunks > 1 else "1f1b",
        sequence_parallel=bool(row.get("seqpar", False)),
        recompute={"attn_only": "selective"}.get(recompute, recompute),
        zero_stage=int(row.get("zero", 0)),
    )
    return source, software, place, _gpt(row, row["h"], vocabulary), strategy


def _mpt(fact: Fact, row: Mapping[str, Any]) -> Read:
    """FSDP over all GPUs."""
    source, software, _, vocabulary = _SETS["MPT"]
    strategy = Strategy(
        data=row["gpus"],
        micro_batch=row["mbs"],
        zero_stage={"FULL_SHARD": 3, "SHARD_GRAD_OP": 2}[row["sharding"]],
        recompute=row["recompute"],
    )
    place = _MPT_CLUSTER[row["gpu"]]
    named = f"{source}, H100" if "h100" in place else source
    return named, software, place, _gpt(row, row["d_model"], vocabulary), strategy


def _bridge(fact: Fact, row: Mapping[str, Any]) -> Read:
    """Llama 3 and mixtures of experts, with FSDP or tensor, context and pipeline parallelism."""
    _require_plain(row)
    name, further = _BRIDGE_MODEL[row["model"]]
    model = replace(transformer(name), sequence=row["s"], mtp_layers=further)
    chunks = row["vstages"] if isinstance(row["vstages"], int) else 1
    split = row["tp"] * row["pp"] * row["cp"]
    strategy = Strategy(
        tensor=row["tp"],
        pipeline=row["pp"],
        context=row["cp"],
        data=row["gpus"] // split,
        expert=row["ep"] if model.experts > 1 else 1,
        experts_over_tensor=model.experts > 1,
        micro_batch=row["mbs"],
        virtual_stages=chunks,
        sequence_parallel=row["tp"] > 1,
        schedule="interleaved_1f1b" if chunks > 1 else "1f1b",
        zero_stage=3 if row.get("fsdp", 0) else 1,
    )
    device, place = _BRIDGE_CLUSTER[row["system"]]
    apart = name == "gpt-oss-120b"
    kinds = (
        (" GPT-OSS", apart),
        (" MoE", model.experts > 1 and not apart),
        (" fp4", "FP4" in str(row["precision"])),
    )
    kind = "Megatron-Bridge" + "".join(name for name, holds in kinds if holds)
    year = _CONTAINERS.get(str(row["container"])[:5], "2025")
    software = "+".join([f"megatron-bridge-{year}", *str(row.get("options", "")).split()])
    return f"{kind}, {device}", software, place, model, strategy


def _require_plain(row: Mapping[str, Any]) -> None:
    """Say what of a row of Megatron-Bridge no strategy can say, or what it does not say."""
    refused = {
        "tokens are dropped, how many is not published": "tokendrop" in str(row["model"]),
        f"no sizes of {row['model']}": row["model"] not in _BRIDGE_MODEL,
        "fine-tuning: how much of its sequences is padding is not published": "Pre"
        not in str(row["phase"]),
        "a second run on another split stands in brackets": not isinstance(row["tp"], int),
        "FSDP on racks of NVLink needs recomputation to fit, of which nothing is said": (
            "GB" in str(row["system"]) and bool(row.get("fsdp", 0))
        ),
    }
    for reason in (reason for reason, holds in refused.items() if holds):
        raise ValueError(reason)


def _gpt(row: Mapping[str, Any], hidden: int, vocabulary: int) -> Transformer:
    return Transformer(
        layers=row["layers"],
        hidden=hidden,
        heads=row["heads"],
        sequence=row["s"],
        vocabulary=vocabulary,
    )
