"""Published costs of pipeline schedules, each played by the simulator."""

from typing import Final

import numpy as np

from chapters import s34
from evidence.claims.registry import Rows
from relparallel import parallel
from relparallel.parallel.timeline import Timeline
from relparallel.published import Fact

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


def zero_bubble_span(p: int, m: int, Tcomm: float, max_mem: str) -> float:
    """Longest span of a stage, by the schedule that keeps to the memory limit."""
    name, limit = ("zb_2p", 2 * p) if max_mem.startswith("2p") else ("zb_h1", p)
    timeline = parallel.simulate_schedule(name, p, m, communication=Tcomm)
    if timeline.peak_in_flight.max() > limit:
        raise ValueError(
            f"max_mem must hold the schedule, got {max_mem} for {timeline.peak_in_flight.max()}"
        )
    return _longest_stage(timeline)


def _share_time(stages: int, micro_batches: int) -> float:
    span = parallel.simulate_schedule("gpipe", stages, micro_batches).makespan
    return span / (stages * micro_batches)


def _growth(fact: Fact, p: int, measure: object) -> float:
    """What a measure gains from p to 2 p stages, over what it gains with 1F1B."""
    name = _NAMES[fact.quantity.rpartition(", ")[2]]
    gains = [measure(n, 2 * p) - measure(n, p) for n in (name, "1f1b")]  # type: ignore[operator]
    return float(gains[0] / gains[1])


def _idle(name: str, p: int) -> float:
    """Idle time of an iteration among others, in passes."""
    m = 6 * p
    return (
        s34.iteration_period(parallel.simulate_schedule(name, p, m, _chunks(name), iterations=3), m)
        - 3 * m
    )


def _peak(name: str, p: int) -> float:
    return float(parallel.simulate_schedule(name, p, 6 * p, _chunks(name)).peak_in_flight.max())


_UNEVEN = "its cells take unequal times, which the table does not give; equal stages are too fast"


ROWS: Final[Rows] = {
    "gpipe_* | bubble fraction* | GPipe": lambda K, M: (
        parallel.simulate_schedule("gpipe", K, M).idle_fraction
    ),
    "SCHED-0028": lambda p, m: parallel.simulate_schedule("1f1b", p, m).idle_fraction,
    # With equal stages, each with its share of the work of a mini-batch.
    "gpipe_* | normalised* | GPipe": (
        lambda K, M, base_K, base_M: _share_time(base_K, base_M) / _share_time(K, M),
        {"gpipe_amoeba_k8m32": _UNEVEN, "gpipe_amoeba_k2m32": _UNEVEN},
    ),
    # The table's B of 1F1B is (p - 1)/(m + p - 1).
    "SCHED-* | growth of the bubble* | zero-bubble README table": lambda p, fact: _growth(
        fact, p, _idle
    ),
    "SCHED-* | growth of peak activation memory* | zero-bubble README table": lambda p, fact: (
        _growth(fact, p, _peak)
    ),
    "SCHED-* | * | zero-bubble zb.py heuristic": zero_bubble_span,
}
