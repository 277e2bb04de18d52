"""Published costs of pipeline schedules, each played by the simulator, and theorems on the others."""

import numpy as np

from relparallel import parallel
from relparallel.book import s34
from relparallel.claims.registry import reproduces, theorem
from relparallel.parallel.timeline import Timeline
from relparallel.published import Fact

_ZERO_BUBBLE = "zero-bubble zb.py heuristic"
_README = "zero-bubble README table"
_NAMES = {
    "1F1B": "1f1b",
    "ZB1P": "zb_h1",
    "ZB2P": "zb_2p",
    "ZBV": "zb_v",
    "V-Half": "v_half",
    "V-Min": "v_min",
}


def _chunks(name: str) -> int:
    return 2 if name in ("zb_v", "v_half", "v_min") else 1


def _longest_stage(timeline: Timeline) -> float:
    """Time from the start of a stage's first pass to the end of its last, on the longest stage."""
    begin = np.full(timeline.resources, np.inf)
    np.minimum.at(begin, timeline.resource, timeline.start)
    end = np.zeros(timeline.resources)
    np.maximum.at(end, timeline.resource, timeline.finish)
    return float((end - begin).max())


@reproduces("SCHED-*", system=_ZERO_BUBBLE)
def zero_bubble_span(p: int, m: int, Tcomm: float, max_mem: str) -> float:
    """Longest span of a stage, by the schedule that keeps to the memory limit."""
    name, limit = ("zb_2p", 2 * p) if max_mem.startswith("2p") else ("zb_h1", p)
    timeline = parallel.simulate_schedule(name, p, m, communication=Tcomm)
    if timeline.peak_in_flight.max() > limit:
        raise ValueError(f"max_mem must hold the schedule, got {max_mem} for {timeline.peak_in_flight.max()}")
    return _longest_stage(timeline)


@reproduces("gpipe_*", system="GPipe", quantity="bubble fraction*")
def gpipe_bubble(K: int, M: int) -> float:
    """Simulated idle share of the stages."""
    return parallel.simulate_schedule("gpipe", K, M).idle_fraction


_UNEVEN = "its cells take unequal times, which the table does not give; equal stages are too fast"


@reproduces(
    "gpipe_*", system="GPipe", quantity="normalised*",
    discrepancies={"gpipe_amoeba_k8m32": _UNEVEN, "gpipe_amoeba_k2m32": _UNEVEN},
)  # fmt: skip
def gpipe_speedup(K: int, M: int, base_K: int, base_M: int) -> float:
    """Simulated with equal stages, each with its share of the work of a mini-batch."""
    seconds = [
        parallel.simulate_schedule("gpipe", k, m).makespan / (k * m) for k, m in ((base_K, base_M), (K, M))
    ]
    return seconds[0] / seconds[1]


@reproduces("SCHED-0028")
def flush_bubble_rate(p: int, m: int) -> float:
    """Simulated idle share."""
    return parallel.simulate_schedule("1f1b", p, m).idle_fraction


def _growth(fact: Fact, p: int, measure: object) -> float:
    """What a measure gains from p to 2 p stages, over what it gains with 1F1B."""
    name = _NAMES[fact.quantity.rpartition(", ")[2]]
    gains = [measure(n, 2 * p) - measure(n, p) for n in (name, "1f1b")]  # type: ignore[operator]
    return float(gains[0] / gains[1])


def _idle(name: str, p: int) -> float:
    """Idle time of an iteration among others, in passes."""
    m = 6 * p
    return (
        s34.iteration_period(parallel.simulate_schedule(name, p, m, _chunks(name), iterations=3), m) - 3 * m
    )


def _peak(name: str, p: int) -> float:
    return float(parallel.simulate_schedule(name, p, 6 * p, _chunks(name)).peak_in_flight.max())


@reproduces("SCHED-*", system=_README, quantity="growth of the bubble*")
def bubble_growth(p: int, fact: Fact) -> float:
    """Simulated; the table's B of 1F1B is (p - 1)/(m + p - 1)."""
    return _growth(fact, p, _idle)


@reproduces("SCHED-*", system=_README, quantity="growth of peak activation memory*")
def memory_growth(p: int, fact: Fact) -> float:
    """Simulated."""
    return _growth(fact, p, _peak)


@theorem("THM-chimera-bubble", system="Zero-bubble and Chimera")
def chimera_bubble() -> tuple[float, float]:
    """With equal passes, simulated Chimera idles (D - 2)/(2 N + D - 2) of the time."""
    # Idle share of 8 stages and 32 micro-batches, simulated and by Li and Hoefler's table 2.
    return parallel.simulate_schedule("chimera", 8, 32, forward=1.0, backward=1.0).idle_fraction, 6 / (64 + 6)


@theorem("THM-zero-bubble-forms", system="Zero-bubble and Chimera")
def zero_bubble_forms() -> tuple[float, float]:
    """With unequal passes H1 idles (p - 1)(f + b - w), and 2p (p - 1)(f + b - 2 w)."""
    # Idle times of 6 stages, H1 and a hundred times 2p, simulated and by Qi et al.'s table 1.
    f, b, w, p, m = 1.0, 1.25, 0.75, 6, 24
    played = (
        parallel.simulate_schedule(name, p, m, forward=f, backward=b + w, backward_weight=w, iterations=3)
        for name in ("zb_h1", "zb_2p")
    )
    idle = [s34.iteration_period(timeline, m) - m * (f + b + w) for timeline in played]
    return idle[0] + 100 * idle[1], (p - 1) * (f + b - w) + 100 * (p - 1) * (f + b - 2 * w)


@theorem("THM-pipedream-versions", system="PipeDream (asynchronous 1F1B)")
def pipedream_versions() -> tuple[float, float]:
    """PipeDream keeps p - i weight versions on stage i, with one update per p at most two."""
    # Sum over 9 stages, plus a hundred times the most of PipeDream-2BW.
    one = s34.weight_versions(parallel.simulate_schedule("pipedream", 9, 36), 1)
    two = s34.weight_versions(parallel.simulate_schedule("pipedream_2bw", 9, 9, iterations=4), 9)
    return float(one.sum() + 100 * two.max()), 9 * 10 / 2 + 100 * 2


@theorem("THM-pipedream-throughput", system="PipeDream (asynchronous 1F1B)")
def pipedream_throughput() -> tuple[float, float]:
    """Without a flush the slowest stage alone sets the pace, whatever the others take."""
    # Seconds per 10 micro-batches, simulated, and ten times the slowest stage's passes.
    timeline = parallel.simulate_schedule(
        "pipedream", 4, 10, forward=[1, 2, 1.5, 1], backward=[2, 3, 3, 3], iterations=6
    )
    return s34.iteration_period(timeline, 10), 10 * 5.0


@theorem("THM-pipemare-delay", system="PipeMare")
def pipemare_delay() -> tuple[float, float]:
    """In simulated PipeMare 2 (P - i) + 1 updates lie between stage i's forward pass and its own."""
    # Sum over 7 stages of the delays and of the closed form, weighted by the stage.
    delay = parallel.weight_delay(parallel.simulate_schedule("pipemare", 7, 42), 1)
    stage = np.arange(1, 8)
    return float(delay @ stage), float((2 * (7 - stage) + 1) @ stage)


@theorem("THM-dapple-limit", system="DAPPLE schedule")
def dapple_limit() -> tuple[float, float]:
    """Early backward passes with K_i = min(p - i, D) warm-up passes hold at most D micro-batches."""
    # Sum of the simulated peaks of 8 stages with D = 5, and of min(p - i, D).
    peaks = parallel.simulate_schedule("dapple", 8, 24, most_in_flight=5).peak_in_flight
    return float(peaks.sum()), float(np.minimum(8 - np.arange(8), 5).sum())


@theorem("THM-eager-hides", system="Eager-1F1B")
def eager_hides() -> tuple[float, float]:
    """Eager-1F1B keeps a pipeline busy while a transfer is no longer than half a pass pair."""
    # Seconds from one micro-batch to the next in a long run whose transfers take 1.5, and without any.
    long = parallel.simulate_schedule("eager_1f1b", 4, 200, communication=1.5)
    short = parallel.simulate_schedule("eager_1f1b", 4, 100, communication=1.5)
    return (long.makespan - short.makespan) / 100, 3.0


@theorem("THM-1f1b-optimal", system="Schedule synthesis")
def one_forward_one_backward_optimal() -> tuple[float, float]:
    """No order of 4 stages, 8 micro-batches and undivided passes beats 1F1B under its memory."""
    # Span by exhaustive search, and simulated.
    best = s34.best_order(4, 8, most_in_flight=4)
    return float(best.span), parallel.simulate_schedule("1f1b", 4, 8).makespan


@theorem("THM-zero-bubble-synthesis", system="Schedule synthesis")
def zero_bubble_synthesis() -> tuple[float, float]:
    """With divided passes search finds H1's span under memory p, no bubble from 2 p - 1 on."""
    # Digits of the idle times under memory p, 2 p - 2 and 2 p - 1 for 4 stages and 8 micro-batches.
    idle = [
        s34.best_order(4, 8, backward_weight=1, most_in_flight=limit, local=True).span - 24
        for limit in (4, 6, 7)
    ]
    form = parallel.bubble_fraction("zb_h1", 4, 8) * 24
    return 100.0 * idle[0] + 10 * idle[1] + idle[2], 100 * form + 10 * 1 + 0


@theorem("THM-bubble-filling", system="Schedule synthesis")
def bubble_filling() -> tuple[float, float]:
    """Unit tasks fill the bubble (p - 1)(f + b) of every 1F1B stage completely."""
    # Seconds filled on 5 stages by as many unit tasks as would ever fit, and the bubbles' sum.
    timeline = parallel.simulate_schedule("1f1b", 5, 10)
    filling = s34.fill_bubbles(timeline, np.repeat(np.arange(5), 20), 1.0)
    return float(filling.filled.sum()), 5 * 4 * 3.0
