"""Checkpoints with verifications between them against silent errors."""

from dataclasses import dataclass

import numpy as np

from relparallel._checks import Result
from relparallel.training._arguments import require_time
from relparallel.training.checkpointing import verified_pattern_time


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedPattern(Result):
    """Work W between checkpoints [s], verifications n per checkpoint, work over expected time."""

    interval: float
    verifications: int
    share: float


def best_verified_pattern(
    mtbf: float, verification: float, checkpoint: float, restart: float
) -> VerifiedPattern:
    """Interval and number of verifications that make the time per unit of work smallest.

    Parameters
    ----------
    mtbf, verification, checkpoint, restart : float
        M, V, C and R [s]; V and C positive, a free verification would be done all the time.

    Returns
    -------
    VerifiedPattern
        From n about sqrt(C/V), W about sqrt((n V + C) M 2n/(n + 1)) the exact time per work is
        followed downhill in n, with the best W for each.

    Examples
    --------
    >>> pattern = best_verified_pattern(mtbf=86400.0, verification=60.0, checkpoint=60.0, restart=60.0)
    >>> pattern.verifications, round(pattern.interval, 1), round(pattern.share, 4)
    (1, 3160.5, 0.9288)
    """
    from scipy.optimize import minimize_scalar

    mtbf, verification = require_time(
        single=True, mtbf=mtbf, verification=verification, positive=True
    )
    checkpoint = require_time(single=True, checkpoint=checkpoint, positive=True)
    restart = require_time(single=True, restart=restart)

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
