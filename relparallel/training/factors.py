"""Factors of the relative goodput, each written once; the goodput is their product."""

from dataclasses import dataclass, fields
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import Result
from relparallel.training._arguments import Real

NEVER: Final = 1e-15  # 1/s: losses of the last replica that are rarer are left out


@dataclass(frozen=True, kw_only=True, slots=True)
class Factors(Result):
    """What is kept: numbers, or arrays broadcast over candidates; what is omitted keeps all."""

    # nodes that the job is laid out for, over those that are paid for (spares stand by)
    active: Real = 1.0
    scheduled: Real = 1.0  # time outside planned pauses
    availability: Real = 1.0  # of it, time in which the job has nodes enough to run
    recovery: Real = 1.0  # of it, time outside pauses after failures that need no rollback
    rollback: Real = 1.0  # of it, what checkpoints, work done again, detection and restarts leave
    degraded_nodes: Real = 1.0  # mean speed with nodes missing
    degraded_parts: Real = 1.0  # mean speed with slow parts: the slowest of them sets the pace

    @property
    def share(self) -> Any:
        """Relative goodput: throughput kept under failures over the failure-free throughput."""
        return prod(getattr(self, name) for name in FACTORS)

    @property
    def running(self) -> Any:
        """Share of the time in which the job runs or goes back."""
        return self.scheduled * self.availability * self.recovery

    @property
    def speed(self) -> Any:
        """Mean speed while it runs."""
        return self.degraded_nodes * self.degraded_parts


FACTORS: Final = tuple(entry.name for entry in fields(Factors))


def lost_share(ratio: Real) -> Real:
    """Optimal W/M for a given C/M: the root y of -log(1 - y) - y = C/M."""
    from scipy.special import lambertw

    ratio = np.asarray(ratio, dtype=np.float64)
    s = np.sqrt(2 * ratio)
    near = s * np.polynomial.polynomial.polyval(np.minimum(s, 0.1), _SERIES)
    far = 1 + lambertw(-np.exp(-1 - np.maximum(ratio, 0.005))).real
    return np.where(s < 0.1, near, far)[()]


# W/M in powers of s = sqrt(2C/M), from s on: minus Temme's expansion of lambda - 1 - log(lambda) =
# s^2/2.
_SERIES: Final = (
    1.0,
    -1 / 3,
    1 / 36,
    1 / 270,
    1 / 4320,
    -1 / 17010,
    -139 / 5443200,
    -1 / 204120,
    -571 / 2351462400,
)


def best_rollback(checkpoint: Any, restart: Any, rate: Any) -> tuple[Any, Any]:
    """Largest share that one level of checkpoints leaves, and the interval that reaches it.

    (1 - y) e^{-R L} with the root y = L W of -log(1 - y) - y = C L, for failures at rate L (Daly
    2006).
    """
    lost = np.asarray(lost_share(checkpoint * rate))
    interval = np.divide(lost, rate, out=np.full(lost.shape, np.inf), where=np.asarray(rate) > 0)
    return (1 - lost) * np.exp(-restart * rate), interval


def slowest_decides(absent: NDArray[np.float64], slowdown: NDArray[np.float64]) -> float:
    """Mean speed with slow parts, slowest kind first, each kind absent with a probability."""
    none = np.cumprod(np.concatenate([[1.0], absent]))
    return float(none[-1] + ((none[:-1] - none[1:]) / slowdown).sum())


def late_share(
    rate: NDArray[np.float64],
    detection: NDArray[np.float64],
    pause: float,
    meeting: float,
    timeout: float,
) -> float:
    """Share of failures behind which a time-out passes before the pause.

    Those that strike while the processes meet after another one, and those that strike in a
    standstill with a time-out, which begin it anew.
    """
    total = rate.sum()
    if not total * timeout:
        return 0.0
    chance = rate / total
    into = chance @ np.exp(-total * detection) * -np.expm1(-total * meeting)
    out = chance @ np.exp(-total * (detection + pause + timeout))
    return float(into / (into + out))


def outside_pauses(rate: NDArray[np.float64], pause: NDArray[np.float64]) -> float:
    """Time share outside pauses d_i that every failure begins anew: sum_i (v_i / v) e^{-v d_i}."""
    total = rate.sum()
    return float(rate @ np.exp(-total * pause) / total) if total else 1.0


def fading(horizon: float, memory: Real) -> Real:
    """Variance of a mean over a time, times that, over its limit for long ones: 1 - (1 - e^-x)/x.

    Of what is alike over times t with e^{-t/memory}; x is the horizon over the memory.
    """
    x = np.maximum(horizon / np.maximum(memory, 1e-300), 1e-12)
    return 1 + np.expm1(-x) / x
