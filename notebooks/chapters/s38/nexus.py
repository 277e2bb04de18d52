"""Serving models in batches on few GPUs: squishy bin packing (Nexus), beside the least number.

A GPU that serves sessions in turn with duty cycle d takes batches of ``ceil(rate d)`` requests of
each. A request waits at most for one cycle and its own batch: ``d + l(b) <= objective``, and ``sum
l(b) <= d``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import require_real
from relparallel.optimize._milp import least

FloatArray = NDArray[np.float64]
_MOST: Final = 12  # sessions whose sets are looked through
_NEAR: Final = 1e-9  # relative slack of a whole number of requests


class _Session(NamedTuple):
    name: str
    latency: FloatArray  # of a batch of 1, 2, ...
    objective: float
    rate: float

    def batches(self, duty: float) -> int:
        """Requests that come in a cycle."""
        return max(1, int(np.ceil(self.rate * duty * (1 - _NEAR))))


class _Load(NamedTuple):
    """Sessions that one GPU serves in turn, and its duty cycle [s]."""

    sessions: tuple[_Session, ...]
    duty: float

    @property
    def busy(self) -> float:
        """Share of the cycle that the GPU computes."""
        return float(sum(s.latency[s.batches(self.duty) - 1] for s in self.sessions) / self.duty)


class ServingPlan(NamedTuple):
    """Which GPU serves which sessions."""

    loads: tuple[_Load, ...]
    # fewest GPUs for the same saturated GPUs and unsplit rests; None: nobody looked
    optimum: int | None
    bound: float  # GPUs without which the rates cannot be served, however requests are split

    @property
    def gpus(self) -> int:
        """GPUs in use."""
        return len(self.loads)

    def to_frame(self) -> pd.DataFrame:
        """A row per session of each GPU: batch, duty cycle and worst latency [s], share of time."""
        rows = [
            (
                gpu,
                s.name,
                s.batches(load.duty),
                load.duty,
                load.busy,
                s.latency[s.batches(load.duty) - 1],
            )
            for gpu, load in enumerate(self.loads)
            for s in load.sessions
        ]
        found = pd.DataFrame(rows, columns=["gpu", "session", "batch", "duty", "busy", "worst"])
        found["worst"] += found["duty"]
        return found[["gpu", "session", "batch", "duty", "worst", "busy"]]


def nexus(
    latencies: Mapping[str, Sequence[float]],
    objectives: Mapping[str, float],
    rates: Mapping[str, float],
) -> ServingPlan:
    """Sessions of batched inference packed on GPUs.

    Shen et al., "Nexus", SOSP 2019, section 6.1 and algorithm 1.

    By session: growing seconds of a batch of 1, 2, ... requests; most seconds from a request to its
    answer; requests per second. GPUs that a session fills alone run the batch with ``2 l(b) <=
    objective`` that serves most, the largest where batches pay; the rest of each session, by
    falling share of a GPU, joins the GPU that it fills best. Up to 12 rests the fewest GPUs are
    found too, by covering with all sets that one GPU can serve at some duty cycle.

    >>> batch = [4, 8, 16]
    >>> measured = {"A": [50, 75, 100], "B": [50, 90, 125], "C": [60, 95, 125]}
    >>> latencies = {name: np.interp(range(1, 17), batch, ms) / 1e3 for name, ms in measured.items()}
    >>> plan = nexus(latencies, {"A": 0.2, "B": 0.25, "C": 0.25}, {"A": 64, "B": 32, "C": 32})
    >>> plan.to_frame()[["gpu", "session", "batch", "duty"]].to_numpy().tolist()
    [[0, 'A', 8, 0.125], [0, 'B', 4, 0.125], [1, 'C', 5, 0.15625]]
    """
    sessions = _sessions(latencies, objectives, rates)
    alone, rests = [], []
    for session in sessions:
        full, rest = _saturated(session)
        alone += full
        rests += rest
    loads: list[_Load] = []
    for load in sorted(rests, key=lambda load: -load.busy):
        _join(loads, load)
    fewest = (
        len(alone) + _fewest([load.sessions[0] for load in rests]) if len(rests) <= _MOST else None
    )
    bound = sum(
        s.rate * float(np.min(s.latency / np.arange(1, s.latency.size + 1))) for s in sessions
    )
    return ServingPlan((*alone, *loads), fewest, bound)


def _sessions(
    latencies: Mapping[str, Any], objectives: Mapping[str, float], rates: Mapping[str, float]
) -> list[_Session]:
    """Sessions; only batches that meet the objective."""
    found = []
    for name, measured in latencies.items():
        objective, rate = objectives[name], float(require_real(rates=rates[name], above=0))
        latency = np.maximum.accumulate(np.asarray(require_real(latencies=measured, above=0)))
        if 2 * latency[0] > objective:
            raise ValueError(
                f"objectives must be at least twice the latency of one request, {2 * latency[0]:g} "
                "s for "
                f"{name}, got {objective:g}"
            )
        found.append(_Session(name, latency[latency < objective], objective, rate))
    return found


def _saturated(session: _Session) -> tuple[list[_Load], list[_Load]]:
    """GPUs a session fills alone, and one for the rest, at the batch in time that serves most."""
    speed = (np.arange(session.latency.size) + 1) / session.latency
    best = _fastest(speed, 2 * session.latency <= session.objective)
    full = int(session.rate / speed[best] * (1 + _NEAR))
    filled = _Load((session._replace(rate=float(speed[best])),), float(session.latency[best]))
    rate = session.rate - full * speed[best]
    if rate <= _NEAR * session.rate:
        return [filled] * full, []
    rest = session._replace(rate=float(rate))
    cycles = (np.arange(session.latency.size) + 1) / rate
    late = cycles + session.latency > session.objective * (1 + _NEAR)
    duty = session.objective - session.latency[0] if late[0] else cycles[_fastest(speed, ~late)]
    return [filled] * full, [_Load((rest,), float(duty))]


def _fastest(speed: FloatArray, allowed: NDArray[np.bool_]) -> int:
    """The last of the allowed batches that serve most requests per second."""
    most = speed[allowed].max() * (1 - _NEAR)
    return int(np.flatnonzero(allowed & (speed >= most))[-1])


def _join(loads: list[_Load], load: _Load) -> None:
    """Put a load where the GPU is busiest afterwards, or on a new one."""
    merged = [_Load(other.sessions + load.sessions, min(other.duty, load.duty)) for other in loads]
    fits = [place for place, both in enumerate(merged) if both.busy <= 1 + _NEAR]
    if fits:
        best = max(fits, key=lambda place: merged[place].busy)
        loads[best] = merged[best]
    else:
        loads.append(load)


def _fewest(rests: list[_Session]) -> int:
    """Fewest GPUs, by an integer programme over the largest sets that one GPU can serve."""
    if not rests:
        return 0
    alone = [frozenset([i]) for i in range(len(rests))]
    level, largest = set(alone), []
    while level:
        wider = {group | one for group in level for one in alone if not one <= group}
        served = {group for group in wider if _served([rests[i] for i in group])}
        largest += [group for group in level if not any(group < other for other in served)]
        level = served
    columns = sorted(largest, key=sorted)
    member = np.array([[float(i in group) for group in columns] for i in range(len(rests))])
    chosen, _ = least(np.ones(len(columns)), member, 1.0)
    return 0 if chosen is None else int(chosen.sum())


def _served(sessions: list[_Session]) -> bool:
    """Whether some duty cycle serves them all; batches change where one more request comes."""
    ends = np.unique(np.concatenate([(np.arange(s.latency.size) + 1) / s.rate for s in sessions]))
    limit = min(s.objective for s in sessions)
    begin = 0.0
    for end in [*ends[ends < limit], limit]:
        batch = [s.batches(end) for s in sessions]
        if all(b <= s.latency.size for b, s in zip(batch, sessions, strict=True)):
            spent = [float(s.latency[b - 1]) for b, s in zip(batch, sessions, strict=True)]
            latest = min(end, *(s.objective - t for s, t in zip(sessions, spent, strict=True)))
            if max(sum(spent), begin) <= latest * (1 + _NEAR):
                return True
        begin = end
    return False
