"""Published runs that fit or did not, and bytes per parameter, from `memory`."""

from typing import Any

from relparallel import hardware, parallel, workload
from relparallel.claims._rows import model_of, strategy_of
from relparallel.claims.registry import reproduces, theorem
from relparallel.parallel.measured_runs import measured_runs
from relparallel.parallel.memory import StageMemory
from relparallel.published import Fact, facts


def bloom_rows() -> list[Fact]:
    """Rows of the BLOOM tuning: runs with a time, and runs that failed for want of memory."""
    return [fact for fact in facts("parallelism-cost").values() if fact.id.startswith("BLOOM-")]


def bloom_memory(fact: Fact) -> StageMemory:
    """Bytes of a BLOOM tuning run; from its degrees and sizes, never from its memory column."""
    row: Any = fact.inputs
    model = model_of(fact, vocabulary=250880, learned_positions=False)
    strategy = strategy_of(fact, recompute=row["recompute"], zero_stage=row["zero"])
    precision = "deepspeed-fp16" if row["era"] == "fp16" else "deepspeed-bf16-2022"
    software = "megatron-deepspeed-2022"
    return parallel.memory(model, strategy, row["gbs"], software=software, precision=precision)


def _jean_zay() -> hardware.Cluster:
    return hardware.cluster("a100-80gb-jean-zay", gpus=384)


@theorem("THM-bloom-memory", system="ZeRO / DeepSpeed")
def bloom_verdicts() -> tuple[float, float]:
    """BLOOM tuning runs that ran are said to fit an A100, and those that failed not to."""
    # Right verdicts, and rows.
    right = [bloom_memory(fact).fits(_jean_zay()).fits == (fact.value_text != "OOM") for fact in bloom_rows()]
    return float(sum(right)), float(len(right))


@theorem("THM-mpt-memory", system="FSDP")
def mpt_fits() -> tuple[float, float]:
    """Every llm-foundry run is said to fit its GPU, though they fill it."""
    # Runs that fit, and runs.
    runs = [run for run in measured_runs() if run.source.startswith("MPT")]
    fits = [
        parallel.memory(run.model, run.strategy, run.global_batch, software=run.software)
        .fits(run.cluster)
        .fits
        for run in runs
    ]
    return float(sum(fits)), float(len(fits))


@theorem("THM-mpt-parameters", system="FSDP")
def mpt_parameters() -> tuple[float, float]:
    """The llm-foundry models have the published 12 L h^2 + 13 L h + 2 h + (V + s) h parameters."""
    # Rows whose count is reproduced to the last parameter, and rows.
    rows = [fact for fact in facts("parallelism-cost").values() if fact.id.startswith("MPT-")]
    counted = [
        model_of(fact, hidden=fact.inputs["d_model"]).parameters == fact.inputs["params"] for fact in rows
    ]
    return float(sum(counted)), float(len(rows))


@reproduces("MEGMEM-*")
def megatron_bytes(d: int, precision: str) -> tuple[float, float]:
    """Bytes per parameter without sharding, and with the distributed optimiser, which is ZeRO stage 1."""
    model = workload.Transformer(layers=2, hidden=64, heads=4, vocabulary=512, sequence=16)
    needs = (
        parallel.memory(model, parallel.Strategy(data=d, zero_stage=stage), d, precision=precision)
        for stage in (0, 1)
    )
    plain, shared = (
        float((need.parameters + need.gradients + need.optimizer)[0]) / model.parameters for need in needs
    )
    return plain, shared
