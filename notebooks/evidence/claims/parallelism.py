"""Published sizes, operations, memory, schedules of split models, from `workload`, `parallel`."""

from typing import Final

from chapters import s33, s34
from evidence.claims._rows import model_of, strategy_of
from evidence.claims.registry import Rows
from relparallel import hardware, parallel, units, workload
from relparallel.published import Fact

# operations of the model, or recomputed as well
_COUNTED: Final = {"MFU": "none", "HFU": "selective"}


def zero_volume(psi: float, dp: float, stage: int) -> float:
    """Elements sent per parameter, of two bytes each: two replicas send half of a vector."""
    model = workload.transformer("gpt3-175b")
    moved = s33.strategy_collectives(model, parallel.Strategy(data=2, zero_stage=stage), 2)
    return sum(c.bytes_sent for c in moved) / (2 * model.parameters) * 2 * (1 - 1 / dp)


def korthikanti_activations(
    fact: Fact, gbs: int, vstages: int, recompute: str, seqpar: bool
) -> float:
    """GiB of activations on the first stage."""
    strategy = strategy_of(
        fact,
        data=1,
        virtual_stages=vstages,
        sequence_parallel=seqpar,
        schedule="interleaved_1f1b",
        recompute={"attn_only": "selective"}.get(recompute, recompute),
    )
    model = model_of(fact, vocabulary=1)
    return (
        float(s34.stage_activation_bytes(model, strategy, strategy.micro_batches(gbs))[0])
        / units.GIB
    )


def korthikanti_relative(fact: Fact, gbs: int, vstages: int, recompute: str, seqpar: bool) -> float:
    """Percentage of the activations without recomputation or sequence parallelism."""
    kept = korthikanti_activations(fact, gbs, vstages, recompute, seqpar)
    return float(100 * kept / korthikanti_activations(fact, gbs, vstages, "none", seqpar=False))


def flush_makespan(p: int, m: int, TF: float, TB: float, TW: float, Tcomm: float) -> float:
    """Simulated span, the same for both schedules."""
    (span,) = {
        parallel.simulate_schedule(
            name, p, m, forward=TF, backward=TB + TW, communication=Tcomm
        ).makespan
        for name in ("gpipe", "1f1b")
    }
    return span


def interleaved_memory(p: int, v: int) -> float:
    """Simulated peak on stage 0 over that of 1F1B; any m of at least 2 p gives the same."""
    peaks = [
        parallel.simulate_schedule("interleaved_1f1b", p, 2 * p, chunks).peak_in_flight[0]
        for chunks in (v, 1)
    ]
    return float(peaks[0] / peaks[1])


_ONE_ADAPTER = (
    "predicted with the whole network of a node; all six published rates of ZeRO-3 agree with 17 "
    "to 26 GB/s "
    "out of each node, about what one of its eight adapters carries"
)


def sharded_or_split_rate(fact: Fact, gbs: int, vstages: int, zero: int) -> float:
    """TFLOP/s per GPU of runs that no calibration has seen."""
    schedule = "interleaved_1f1b" if vstages > 1 else "1f1b"
    strategy = strategy_of(
        fact, virtual_stages=vstages, zero_stage=zero, schedule=schedule, recompute="full"
    )
    model, machine = model_of(fact), hardware.cluster("a100-80gb-selene", strategy.gpus)
    seconds = parallel.step_time(model, strategy, machine, gbs, software="megatron-2021").total
    return model.flops_per_iteration(gbs, recompute="full") / (
        seconds * strategy.gpus * units.TFLOP
    )


ROWS: Final[Rows] = {
    "ZERO-* | model-state memory*": (
        lambda psi, dp, K, stage: (
            parallel.model_state_bytes(psi, dp, stage, optimizer_bytes=K) / units.GB
        ),
        dict.fromkeys(
            ("ZERO-0039", "ZERO-0051", "ZERO-0053", "ZERO-0054"),
            "a rounding: the table cuts the digits after the point off",
        ),
    ),
    "ACT-*": lambda s, b, h, a, t, seqpar, recompute: parallel.activation_bytes_per_layer(
        s, h, a, b, tensor=t, sequence_parallel=seqpar, recompute=recompute
    ),
    # The figure counts the weights of the layers only, with fp32 gradients.
    "KORTH-00* | params+grads+optimizer*": lambda fact, tp, pp: (
        parallel.model_state_bytes(
            model_of(fact, vocabulary=1).layer_weights / (tp * pp), 1, 0, gradient_bytes=4
        )
        / units.GIB
    ),
    # Counted operations over the published rate.
    "PTDP-T-*": lambda fact, gbs, gpus, tflops: (
        model_of(fact).flops_per_iteration(gbs, recompute="full") / (tflops * units.TFLOP * gpus)
    ),
    "KORTH-U-*": (
        lambda fact, gbs, gpus, time, peak: (
            100
            * model_of(fact).flops_per_iteration(gbs, recompute=_COUNTED[fact.quantity])
            / (time * gpus * peak)
        ),
        dict.fromkeys(
            ("KORTH-U-0001", "KORTH-U-0002"),
            "the iteration time is printed as 1.10 s, and its rounding alone moves the value by "
            "0.2 points",
        ),
    ),
    "SCHED-* | bubble time / ideal time | interleaved 1F1B closed form": lambda p, m, v: (
        parallel.simulate_schedule("interleaved_1f1b", p, m, v).bubble_fraction
    ),
    "SCHED-SIM-* | makespan": lambda schedule, p, m, v, comm: (
        parallel.simulate_schedule(
            schedule, p, m, v, forward=1.0, backward=2.0, communication=comm
        ).makespan
    ),
    "SCHED-SIM-* | peak in-flight*": lambda fact, schedule, p, m, v, comm: (
        parallel.simulate_schedule(schedule, p, m, v, communication=comm).peak_in_flight[
            -1 if fact.quantity.endswith("last stage") else 0
        ]
    ),
    # Counted over the rounds; K reads "300e6 values*4 B".
    "ring_volume": lambda N, K: parallel.bytes_sent(
        parallel.ring_all_reduce(N, int(float(K.partition(" ")[0]))), N, element_bytes=4
    ).max(),
    "ZERO-* | DP communication volume*": zero_volume,
    "KORTH-00* | activation bytes per GPU": korthikanti_activations,
    "KORTH-00* | activation bytes relative*": korthikanti_relative,
    "SCHED-* | makespan | 1F1B / GPipe closed form": flush_makespan,
    "SCHED-* | * | interleaved 1F1B memory penalty": interleaved_memory,
    "PTDP-Z-*": (
        sharded_or_split_rate,
        {f"PTDP-Z-{row:04d}": _ONE_ADAPTER for row in range(7, 13)},
    ),
}
