"""Checkpoints with verifications between them against silent errors."""

from typing import NamedTuple

import numpy as np

from relparallel.training.checkpointing import verified_pattern_time


class VerifiedPattern(NamedTuple):
    """How often to save and to verify, and what share of the time is then work."""

    interval: float  #: work W between two checkpoints [s]
    verifications: int  #: n for each checkpoint
    share: float  #: work over expected time


def best_verified_pattern(
    mtbf: float, verification: float, checkpoint: float, restart: float
) -> VerifiedPattern:
    """Interval and number of verifications that make the time per unit of work smallest.

    M, V, C and R are in seconds; V and C are positive, for a free verification would be done all
    the time. From n about sqrt(C/V), W about sqrt((n V + C) M 2n/(n + 1)) the exact time per work
    is followed downhill in n, with the best W for each.

    >>> pattern = best_verified_pattern(mtbf=86400.0, verification=60.0, checkpoint=60.0, restart=60.0)
    >>> pattern.verifications, round(pattern.interval, 1), round(pattern.share, 4)
    (1, 3160.5, 0.9288)
    """
    from scipy.optimize import minimize_scalar

    def best(parts: int) -> tuple[float, float]:
        first = np.sqrt((parts * verification + checkpoint) * mtbf * 2 * parts / (parts + 1))

        def per_work(log_interval: float) -> float:
            work = float(np.exp(log_interval))
            time = verified_pattern_time(mtbf, work, verification, checkpoint, restart, parts)
            return float(np.log(time / work)) if np.isfinite(time) else 1e3 + log_interval

        bounds = (np.log(first) - 5, np.log(first) + 1)
        found = minimize_scalar(per_work, bounds=bounds, method="bounded", options={"xatol": 1e-9})
        return float(found.fun), float(np.exp(found.x))

    count = max(round(float(np.sqrt(checkpoint / verification))), 1)
    while count > 1 and best(count - 1)[0] <= best(count)[0]:
        count -= 1
    while best(count + 1)[0] < best(count)[0]:
        count += 1
    time, interval = best(count)
    return VerifiedPattern(interval=interval, verifications=count, share=float(np.exp(-time)))
