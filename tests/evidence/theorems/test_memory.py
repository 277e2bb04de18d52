"""Theorems on memory: what is kept, and which runs fit."""

from theorem_table import theorem

from evidence.claims._rows import model_of
from evidence.claims.memory import bloom_memory, bloom_rows
from evidence.training_steps import measured_runs
from relparallel import hardware, parallel
from relparallel.published import facts


def _jean_zay() -> hardware.Cluster:
    return hardware.cluster("a100-80gb-jean-zay", gpus=384)


@theorem("THM-bloom-memory", system="ZeRO / DeepSpeed")
def test_bloom_verdicts():
    """BLOOM tuning runs that ran are said to fit an A100, and those that failed not to."""
    # Right verdicts, and rows.
    right = [
        bloom_memory(fact).fits(_jean_zay()).fits == (fact.value_text != "OOM")
        for fact in bloom_rows()
    ]
    return float(sum(right)), float(len(right))


@theorem("THM-mpt-memory", system="FSDP")
def test_mpt_fits():
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
def test_mpt_parameters():
    """The llm-foundry models have the published 12 L h^2 + 13 L h + 2 h + (V + s) h parameters."""
    # Rows whose count is reproduced to the last parameter, and rows.
    rows = [fact for fact in facts("parallelism-cost").values() if fact.id.startswith("MPT-")]
    counted = [
        model_of(fact, hidden=fact.inputs["d_model"]).parameters == fact.inputs["params"]
        for fact in rows
    ]
    return float(sum(counted)), float(len(rows))
