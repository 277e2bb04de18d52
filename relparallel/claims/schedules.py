"""Published costs of pipeline schedules, each played by the simulator, and theorems on the others."""

import numpy as np

from relparallel import parallel
from relparallel.book import s34
from relparallel.claims.registry import reproduces
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
