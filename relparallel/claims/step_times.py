"""Published rates of training, predicted by `step_time`, and its errors beside those of another model."""

from relparallel import hardware, parallel, units
from relparallel.claims._rows import model_of, strategy_of
from relparallel.claims.registry import reproduces
from relparallel.published import Fact

_ONE_ADAPTER = (
    "predicted with the whole network of a node; all six published rates of ZeRO-3 agree with 17 to 26 GB/s "
    "out of each node, about what one of its eight adapters carries"
)


@reproduces("PTDP-Z-*", discrepancies={f"PTDP-Z-{row:04d}": _ONE_ADAPTER for row in range(7, 13)})
def sharded_or_split_rate(fact: Fact, gbs: int, vstages: int, zero: int) -> float:
    """TFLOP/s per GPU of runs that no calibration has seen."""
    schedule = "interleaved_1f1b" if vstages > 1 else "1f1b"
    strategy = strategy_of(fact, virtual_stages=vstages, zero_stage=zero, schedule=schedule, recompute="full")
    model, machine = model_of(fact), hardware.cluster("a100-80gb-selene", strategy.gpus)
    seconds = parallel.step_time(model, strategy, machine, gbs, software="megatron-2021").total
    return model.flops_per_iteration(gbs, recompute="full") / (seconds * strategy.gpus * units.TFLOP)
