"""Published sizes, operations, memory and schedules of split models, from `workload` and `parallel`."""

from relparallel import parallel, units, workload
from relparallel.book import s33, s34
from relparallel.claims._rows import model_of, strategy_of
from relparallel.claims.registry import reproduces
from relparallel.published import Fact

_ROUNDED_TIME = (
    "the iteration time is printed as 1.10 s, and its rounding alone moves the value by 0.2 points"
)


@reproduces("ZERO-*", quantity="model-state memory*")
def zero_state(psi: float, dp: int, K: int, stage: int) -> float:
    """GB of model states per GPU."""
    return float(parallel.model_state_bytes(psi, dp, stage, optimizer_bytes=K)) / units.GB


@reproduces("ZERO-*", quantity="DP communication volume*")
def zero_volume(psi: float, dp: float, stage: int) -> float:
    """Elements sent per parameter, of two bytes each: two replicas send half of a vector."""
    model = workload.transformer("gpt3-175b")
    moved = s33.strategy_collectives(model, parallel.Strategy(data=2, zero_stage=stage), 2)
    return sum(c.bytes_sent for c in moved) / (2 * model.parameters) * 2 * (1 - 1 / dp)


@reproduces("ACT-*")
def activation_bytes(s: int, b: int, h: int, a: int, t: int, seqpar: bool, recompute: str) -> float:
    """Bytes kept of one layer."""
    return float(parallel.activation_bytes_per_layer(
        s, h, a, b, tensor=t, sequence_parallel=seqpar, recompute=recompute
    ))  # fmt: skip


@reproduces("KORTH-00*", quantity="params+grads+optimizer*")
def korthikanti_states(fact: Fact, tp: int, pp: int) -> float:
    """GiB of states per GPU: the figure counts the layers' weights only, with fp32 gradients."""
    weights = model_of(fact, vocabulary=1).layer_weights / (tp * pp)
    return float(parallel.model_state_bytes(weights, 1, 0, gradient_bytes=4)) / units.GIB


@reproduces("KORTH-00*", quantity="activation bytes per GPU")
def korthikanti_activations(fact: Fact, gbs: int, vstages: int, recompute: str, seqpar: bool) -> float:
    """GiB of activations on the first stage."""
    strategy = strategy_of(
        fact, data=1, virtual_stages=vstages, sequence_parallel=seqpar, schedule="interleaved_1f1b",
        recompute={"attn_only": "selective"}.get(recompute, recompute),
    )  # fmt: skip
    model = model_of(fact, vocabulary=1)
    return float(s34.stage_activation_bytes(model, strategy, strategy.micro_batches(gbs))[0]) / units.GIB


@reproduces("KORTH-00*", quantity="activation bytes relative*")
def korthikanti_relative(fact: Fact, gbs: int, vstages: int, recompute: str, seqpar: bool) -> float:
    """Percentage of the activations without recomputation or sequence parallelism."""
    kept = korthikanti_activations(fact, gbs, vstages, recompute, seqpar)
    return float(100 * kept / korthikanti_activations(fact, gbs, vstages, "none", seqpar=False))


@reproduces("PTDP-T-*")
def weak_scaling_time(fact: Fact, gbs: int, gpus: int, tflops: float) -> float:
    """Seconds per iteration: counted operations over the published rate."""
    return model_of(fact).flops_per_iteration(gbs, recompute="full") / (tflops * units.TFLOP * gpus)


@reproduces("KORTH-U-*", discrepancies=dict.fromkeys(("KORTH-U-0001", "KORTH-U-0002"), _ROUNDED_TIME))
def utilisation(fact: Fact, gbs: int, gpus: int, time: float, peak: float) -> float:
    """Percentage of the peak spent on operations of the model (MFU), or on recomputation as well (HFU)."""
    recompute = {"MFU": "none", "HFU": "selective"}[fact.quantity]
    return 100 * model_of(fact).flops_per_iteration(gbs, recompute=recompute) / (time * gpus * peak)


@reproduces("SCHED-*", system="1F1B / GPipe closed form", quantity="makespan")
def flush_makespan(p: int, m: int, TF: float, TB: float, TW: float, Tcomm: float) -> float:
    """Simulated span, the same for both schedules."""
    (span,) = {
        parallel.simulate_schedule(name, p, m, forward=TF, backward=TB + TW, communication=Tcomm).makespan
        for name in ("gpipe", "1f1b")
    }
    return span


@reproduces("SCHED-*", system="interleaved 1F1B closed form", quantity="bubble time / ideal time")
def interleaved_bubble(p: int, m: int, v: int) -> float:
    """Simulated idle over ideal time."""
    return parallel.simulate_schedule("interleaved_1f1b", p, m, v).bubble_fraction


@reproduces("SCHED-*", system="interleaved 1F1B memory penalty")
def interleaved_memory(p: int, v: int) -> float:
    """Simulated peak on stage 0 over that of 1F1B; any m of at least 2 p gives the same."""
    peaks = [
        parallel.simulate_schedule("interleaved_1f1b", p, 2 * p, chunks).peak_in_flight[0]
        for chunks in (v, 1)
    ]
    return float(peaks[0] / peaks[1])


@reproduces("SCHED-SIM-*", quantity="makespan")
def simulated_makespan(schedule: str, p: int, m: int, v: int, comm: float) -> float:
    """Simulated span."""
    run = parallel.simulate_schedule(schedule, p, m, v, forward=1.0, backward=2.0, communication=comm)
    return run.makespan


@reproduces("SCHED-SIM-*", quantity="peak in-flight*")
def simulated_peak(fact: Fact, schedule: str, p: int, m: int, v: int, comm: float) -> float:
    """Simulated peak on the first or the last stage."""
    peaks = parallel.simulate_schedule(schedule, p, m, v, communication=comm).peak_in_flight
    return float(peaks[-1 if fact.quantity.endswith("last stage") else 0])


@reproduces("ring_volume")
def ring_volume(N: int, K: str) -> float:
    """Bytes counted over the rounds of the ring; K reads "300e6 values*4 B"."""
    values = int(float(K.partition(" ")[0]))
    return float(parallel.bytes_sent(parallel.ring_all_reduce(N, values), N, element_bytes=4).max())
