"""Published runs that fit or did not, and bytes per parameter, from `memory`."""

from typing import Any, Final

from evidence.claims._rows import model_of, strategy_of
from evidence.claims.registry import Rows
from relparallel import parallel, workload
from relparallel.parallel.gpu_memory import StageMemory
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


def megatron_bytes(d: int, precision: str) -> tuple[float, float]:
    """Bytes per parameter without sharding and with the distributed optimiser (ZeRO stage 1)."""
    model = workload.Transformer(layers=2, hidden=64, heads=4, vocabulary=512, sequence=16)
    needs = (
        parallel.memory(model, parallel.Strategy(data=d, zero_stage=stage), d, precision=precision)
        for stage in (0, 1)
    )
    plain, shared = (
        float((need.parameters + need.gradients + need.optimizer)[0]) / model.parameters
        for need in needs
    )
    return plain, shared


ROWS: Final[Rows] = {
    "MEGMEM-*": megatron_bytes,
}
