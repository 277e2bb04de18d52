"""Effective training time of a job that restarts as a whole: mean, spread and best value.

Letters as in `checkpointing`: work W, checkpoint C, mean time between failures M, restart R, down D.
Every function broadcasts over its arguments.
"""

from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from relparallel._checks import Result, require_choice
from relparallel.training._arguments import (
    Real,
    normal_percentiles,
    plain,
    require_time,
    require_together,
    skewness_over,
)
from relparallel.training.factors import best_rollback

MODELS: Final = ("exact", "kokolis")


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectiveTime(Result):
    """Share of the wall time that becomes saved work: its mean, and its spread over a finite run.

    The long-run mean, the variance of the share times the length of the run [s] (None where the model gives a
    mean only), that length [s], and the third central moment times its square [s^2].
    """

    mean: Real
    variance_rate: Real | None = None
    horizon: Real | None = None
    third_rate: Real = 0.0

    @property
    def sd(self) -> Real:
        """Standard deviation of the share over the run of length ``horizon``."""
        if self.horizon is None:
            raise ValueError("horizon must be given for a standard deviation, got None")
        return self.std(self.horizon)

    def percentiles(self, levels: Real, horizon: Real | None = None) -> Real:
        """Return percentiles (levels in percent) of the share over a run [s], without simulation.

        Of any stretch of a long run, the work that is undone in it deducted, as `simulate` counts it; within
        0.1 points of simulation where (R + W/2)/M < 0.5 and the run holds 30 failures. A run that begins
        with a restart, or counts only what its last checkpoint holds, reaches up to (R + W)/T less with the
        length T.
        """
        std = self.sd if horizon is None else self.std(horizon)
        if np.ndim(self.mean) or np.ndim(std):
            raise ValueError("horizon and times must be numbers for percentiles, got arrays")
        run: Any = self.horizon if horizon is None else horizon
        skewness = skewness_over(float(run), float(cast(float, self.variance_rate)), float(self.third_rate))
        return normal_percentiles(float(self.mean), float(std), levels, skewness)

    def std(self, horizon: Real) -> Real:
        """Return the standard deviation over a run of a given length [s], long against the MTBF."""
        horizon = require_time(horizon=horizon, positive=True)
        if self.variance_rate is None:
            raise ValueError("method must be 'exact' for a standard deviation, got a first-order mean")
        require_together(horizon=horizon, variance_rate=self.variance_rate)
        return plain(np.sqrt(self.variance_rate / horizon))


def expected_segment_time(
    mtbf: Real, interval: Real, checkpoint: Real, restart: Real, down: Real = 0.0
) -> Real:
    """Mean wall time to finish one interval of work and its checkpoint, failures included.

    References
    ----------
    Daly 2006 (the complete wall-clock model). Herault and Robert, "Fault-Tolerance Techniques for
    High-Performance Computing", 2015.
    """
    from scipy.special import exprel

    mtbf, interval, checkpoint, restart, down = _times(mtbf, interval, checkpoint, restart, down)
    period = interval + checkpoint
    with np.errstate(over="ignore"):
        return plain(np.exp(restart / mtbf) * (1 + down / mtbf) * period * exprel(period / mtbf))


def effective_training_time_ratio(
    mtbf: Real,
    interval: Real,
    checkpoint: Real,
    restart: Real,
    down: Real = 0.0,
    method: str = "exact",
    horizon: Real | None = None,
) -> EffectiveTime:
    """Share of the wall time that becomes saved work (ETTR).

    Parameters
    ----------
    mtbf, interval, checkpoint, restart, down : float or array
        M, W, C, R and D [s].
    method : {"exact", "kokolis"}
        The exact exponential model, or the first-order form of Kokolis et al.
    horizon : float or array, optional
        Length of the run [s] for ``.sd`` and ``.percentiles``.

    Returns
    -------
    EffectiveTime
        ``.mean``; for the exact model also ``.sd`` or ``.std(horizon)``, and ``.percentiles(levels)``.

    Notes
    -----
    Exact mean W / E with E of `expected_segment_time`. Its renewal cycle runs from one completed restart to
    the next: a time to failure (a geometric number of whole segments and a remainder), then restarts until
    one passes. Kokolis: (1 - (R + D + W/2)/M) / (1 + C/W), lower by the second order; 0 where it would
    be negative.

    References
    ----------
    Daly 2006. Kokolis et al., HPCA 2025, section on the expected ETTR.

    Examples
    --------
    >>> r = effective_training_time_ratio(mtbf=86400/(2048*6.5e-3), interval=1800, checkpoint=30, restart=300)
    >>> round(r.mean, 4)
    0.813
    >>> year = effective_training_time_ratio(1823.7, 600, checkpoint=10, restart=300, horizon=365 * 86400)
    >>> round(year.sd, 5), year.percentiles((5, 50, 95)).round(4).tolist()
    (0.00203, [0.6993, 0.7026, 0.706])
    """
    from scipy.special import exprel

    mtbf, interval, checkpoint, restart, down = _times(mtbf, interval, checkpoint, restart, down)
    require_time(interval=interval, positive=True)
    require_choice(MODELS, method=method)
    if horizon is not None:
        require_together(mtbf=mtbf, horizon=require_time(horizon=horizon, positive=True))
    if method == "kokolis":
        mean = (1 - (restart + down + interval / 2) / mtbf) / (1 + checkpoint / interval)
        return EffectiveTime(mean=plain(np.maximum(mean, 0.0)), horizon=horizon)
    period = interval + checkpoint
    scale = np.exp(-restart / mtbf) / (1 + down / mtbf)
    with np.errstate(over="ignore"):
        mean = interval * scale / (period * exprel(period / mtbf))
    variance_rate, third_rate = _spread_rates(mean, mtbf, interval, period, restart, down)
    return EffectiveTime(
        mean=plain(mean), variance_rate=plain(variance_rate), horizon=horizon, third_rate=plain(third_rate)
    )


def optimal_training_time_ratio(checkpoint: Real, mtbf: Real, restart: Real, down: Real = 0.0) -> Real:
    """Largest share of useful time that any checkpoint interval reaches.

    Parameters
    ----------
    checkpoint, mtbf, restart, down : float or array
        C, M, R and D [s].

    Returns
    -------
    float or numpy.ndarray
        (1 - W*/M) e^{-R/M} M/(M + D): at its best, checkpointing together with the work done twice costs
        exactly the share W*/M of the time, where W* is the interval itself; about sqrt(2C/M).

    Examples
    --------
    >>> round(optimal_training_time_ratio(checkpoint=60, mtbf=86400/(2048*3.79e-3), restart=900), 4)
    0.8298
    """
    checkpoint, restart, down = require_time(checkpoint=checkpoint, restart=restart, down=down)
    mtbf = require_time(mtbf=mtbf, positive=True)
    require_together(checkpoint=checkpoint, mtbf=mtbf, restart=restart, down=down)
    return plain(best_rollback(checkpoint, restart, 1 / np.asarray(mtbf))[0] / (1 + down / mtbf))


def _times(
    mtbf: Real, interval: Real, checkpoint: Real, restart: Real, down: Real
) -> tuple[Real, Real, Real, Real, Real]:
    """Check the five times of the exponential model."""
    require_together(mtbf=mtbf, interval=interval, checkpoint=checkpoint, restart=restart, down=down)
    times = require_time(interval=interval, checkpoint=checkpoint, restart=restart, down=down)
    return require_time(mtbf=mtbf, positive=True), *times


def _spread_rates(
    share: Real, mtbf: Real, interval: Real, period: Real, restart: Real, down: Real
) -> tuple[Real, Real]:
    """Second and third cumulant of the work saved per time, of a renewal cycle of length X that saves Y.

    With Z = Y - share X: E[Z^2]/E[X], and (E[Z^3] - 3 E[Z^2] E[Z X]/E[X])/E[X].
    """
    # X = K period + remainder + recovery, Y = K interval, three independent parts; K counts whole segments.
    x, r = period / mtbf, restart / mtbf
    segments = np.exp(-x) / np.expm1(-x) ** 2  # Var K, geometric
    gain = interval - share * period
    left, rest = _truncated(period, mtbf), _recovery(restart, mtbf, down)
    cycle = np.exp(r) * (mtbf + down)
    second: Real = (gain**2 * segments + share**2 * (left[1] + rest[0])) / cycle
    both = gain * period * segments - share * (left[1] + rest[0])
    cubes = gain**3 * segments / np.tanh(x / 2) - share**3 * (left[2] + rest[1])
    third: Real = (cubes - 3 * second * both) / cycle
    return second, third


def _recovery(restart: Real, mtbf: Real, down: Real) -> tuple[Real, Real]:
    """Second and third cumulant of the time until a restart passes: a geometric number of failed tries."""
    r = restart / mtbf
    tries, again = np.expm1(r), np.exp(r)  # mean number n, n + 1
    mean, variance, third = _truncated(restart, mtbf)
    mean = mean + down
    return (
        tries * variance + tries * again * mean**2,
        tries * third + 3 * tries * again * mean * variance + tries * again * (2 * again - 1) * mean**3,
    )


def _truncated(bound: Real, mean: Real) -> tuple[Real, Real, Real]:
    """Mean, variance and third cumulant of an exponential time that is known to be shorter than ``bound``."""
    u = np.asarray(bound / mean)
    small, near, v = np.minimum(u, 0.02), np.minimum(u, 0.1), np.maximum(u, 0.02)
    with np.errstate(over="ignore"):  # sinh and expm1 of a long bound: the condition no longer matters
        first = np.where(u < 0.02, small / 2 - small**2 / 12 + small**4 / 720, 1 - v / np.expm1(v))
        second = np.where(u < 0.02, small**2 / 12 - small**4 / 240, 1 - (v / 2 / np.sinh(v / 2)) ** 2)
        third = np.where(
            u < 0.1, near**4 / 120 - near**6 / 1512 + near**8 / 28800,
            2 - v**3 / 4 / np.sinh(v / 2) ** 2 / np.tanh(v / 2),
        )  # fmt: skip
    return first * mean, second * mean**2, third * mean**3
