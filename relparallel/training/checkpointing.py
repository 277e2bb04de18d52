"""Checkpoints of a whole job: what one costs, how often to write it, what time is left to train.

The job computes W seconds, writes a checkpoint in C seconds, and so on. Failures strike at rate
1/M, while it computes, writes and restarts. A failure costs D seconds of standstill, R seconds of
restart and all work since the last checkpoint.

========  ==================================================  ================
letter    meaning                                             argument
========  ==================================================  ================
W         work between two checkpoints [s]                    ``interval``
C         blocking time of one checkpoint [s]                 ``checkpoint``
M         mean time between failures of the job [s]           ``mtbf``
R         restart: load the checkpoint, warm up [s]           ``restart``
D         down: nothing runs and nothing fails [s]            ``down``
========  ==================================================  ================

Every function broadcasts over its arguments.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from relparallel._checks import (
    Result,
    bare,
    require_broadcast,
    require_choice,
    require_int,
    require_real,
)
from relparallel.training._arguments import Real, require_time
from relparallel.training.checkpoint_policies import Cause, Checkpointing, CheckpointLevel
from relparallel.training.factors import best_rollback, lost_share
from relparallel.training.rollback_forms import Rollback, rollback

METHODS: Final = ("exact", "daly", "young")
MODELS: Final = ("exact", "kokolis")


def checkpoint_time(parameters: Real, bandwidth: Real, bytes_per_parameter: Real = 14.0) -> Real:
    """Blocking time to write the training state of a model.

    Parameters
    ----------
    parameters : float or array
        Parameters of the model.
    bandwidth : float or array
        Rate at which the job as a whole writes [bytes/s].
    bytes_per_parameter : float or array
        14 with Adam in mixed precision: 2 for the weights, 4 each for master weights and two
        moments.

    Returns
    -------
    float or numpy.ndarray
        Time C of one checkpoint [s]; no gradients, each byte once, whatever the number of replicas.

    References
    ----------
    Rajbhandari et al., "ZeRO", SC 2020, section 3.1: 2 + 2 + 12 bytes, gradients included.

    Examples
    --------
    >>> round(checkpoint_time(parameters=1.008e12, bandwidth=57.5e9), 1)
    245.4
    """
    require_real(parameters=parameters, at_least=1.0, at_most=1e18)
    require_real(bandwidth=bandwidth, at_least=1.0, at_most=1e18)
    require_real(bytes_per_parameter=bytes_per_parameter, above=0.0, at_most=1e3)
    require_broadcast(
        parameters=parameters, bandwidth=bandwidth, bytes_per_parameter=bytes_per_parameter
    )
    return bare(np.multiply(parameters, bytes_per_parameter) / bandwidth)


def checkpoint_interval(checkpoint: Real, mtbf: Real, method: str = "exact") -> Real:
    """Work between two checkpoints that makes the expected time per unit of work smallest.

    Parameters
    ----------
    checkpoint : float or array
        Blocking time C of one checkpoint [s].
    mtbf : float or array
        Mean time M between failures of the job [s].
    method : {"exact", "daly", "young"}
        Optimum of the exact model, or one of its two classical approximations.

    Returns
    -------
    float or numpy.ndarray
        Interval W [s], not counting the checkpoint itself.

    Notes
    -----
    Exact: W = M (1 + W_0(-e^{-1-C/M})) with Lambert's W_0, whatever R and D are. With s =
    sqrt(2C/M) its series is M (s - s^2/3 + s^3/36 + s^4/270 + ...): Young keeps the first term,
    Daly the first three. Close to the branch point, where W_0 loses half its digits, the series is
    summed instead; the relative error stays below 1e-13.

    References
    ----------
    Young, Commun. ACM 17(9), 1974. Daly, Future Gener. Comput. Syst. 22(3), 2006, eq. 37.

    Examples
    --------
    >>> [round(float(checkpoint_interval(60, 10800, m)), 3) for m in ("young", "daly", "exact")]
    [1138.42, 1098.771, 1098.776]
    """
    checkpoint, mtbf = require_time(checkpoint=checkpoint), require_time(mtbf=mtbf, positive=True)
    require_choice(METHODS, method=method)
    require_broadcast(checkpoint=checkpoint, mtbf=mtbf)
    if method == "exact":
        return bare(mtbf * lost_share(checkpoint / mtbf))
    s = np.sqrt(2 * checkpoint / mtbf)
    if method == "young":
        return bare(mtbf * s)
    return mtbf * np.where(s < 2, s - s**2 / 3 + s**3 / 36, 1.0)[()]  # Daly 2006, eq. 37


def availability_optimal_interval(checkpoint: Real, mtbf: Real, restart: Real) -> Real:
    """Time between checkpoints that maximises a first-order availability, restart included.

    Saxena et al., arXiv:2410.18124, 2024.
    """
    checkpoint, restart = require_time(checkpoint=checkpoint, restart=restart)
    mtbf = require_time(mtbf=mtbf, positive=True)
    require_broadcast(checkpoint=checkpoint, mtbf=mtbf, restart=restart)
    return bare(checkpoint + np.sqrt(2 * (mtbf + restart) * checkpoint + checkpoint**2))


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectiveTime(Result):
    """Share of wall time that becomes saved work: its mean, and its spread over a finite run."""

    mean: Real  # over a long run
    # M, W, C, R and D of the exact model; None of a first-order mean
    times: tuple[Real, ...] | None = None
    horizon: float | None = None  # length of a run [s]

    @property
    def sd(self) -> Real:
        """Standard deviation of the share over the run of length ``horizon``."""
        if self.horizon is None:
            raise ValueError("horizon must be given for a standard deviation, got None")
        return self.std(self.horizon)

    def std(self, horizon: Real) -> Real:
        """Return the standard deviation over a run of a given length [s], long against the MTBF."""
        return self.long_run.std(horizon)

    def percentiles(self, levels: Real, horizon: float | None = None) -> Real:
        """Return percentiles (levels in percent) of the share over a run [s], without simulation.

        Of any stretch of a long run, the work that is undone in it deducted, as `simulate` counts
        it; within 0.1 points of simulation where (R + W/2)/M < 0.5 and the run holds 30 failures. A
        run that begins with a restart, or counts only what its last checkpoint holds, reaches up to
        (R + W)/T less with the length T.
        """
        run = self.horizon if horizon is None else horizon
        if run is None:
            raise ValueError("horizon must be given for percentiles, got None")
        return self.long_run.percentiles(levels, run)

    @property
    def long_run(self) -> Rollback:
        """The same job as one level of checkpoints: its variance and third cumulant."""
        if self.times is None:
            raise ValueError("method must be 'exact' for a spread, got a first-order mean")
        if any(np.ndim(time) for time in self.times) or self.times[-1]:
            raise ValueError(f"times must be numbers, and down 0, for a spread, got {self.times}")
        mtbf, interval, checkpoint, restart = map(float, self.times[:-1])
        level = CheckpointLevel(name="storage", cost=checkpoint, restart=restart)
        causes = [Cause(level="job", rate=1 / mtbf)]
        return rollback(Checkpointing(levels=(level,), interval=interval), causes)


def expected_segment_time(
    mtbf: Real, interval: Real, checkpoint: Real, restart: Real, down: Real = 0.0
) -> Real:
    """Mean wall time to finish one interval of work and its checkpoint, failures included.

    Daly 2006 (the complete wall-clock model). Herault and Robert, "Fault-Tolerance Techniques for
    High-Performance Computing", 2015.
    """
    from scipy.special import exprel

    mtbf, interval, checkpoint, restart, down = _times(mtbf, interval, checkpoint, restart, down)
    period = interval + checkpoint
    with np.errstate(over="ignore"):
        return bare(np.exp(restart / mtbf) * (1 + down / mtbf) * period * exprel(period / mtbf))


def effective_training_time_ratio(
    mtbf: Real,
    interval: Real,
    checkpoint: Real,
    restart: Real,
    down: Real = 0.0,
    method: str = "exact",
    horizon: float | None = None,
) -> EffectiveTime:
    """Share of the wall time that becomes saved work (ETTR).

    Parameters
    ----------
    mtbf, interval, checkpoint, restart, down : float or array
        M, W, C, R and D [s].
    method : {"exact", "kokolis"}
        The exact exponential model, or the first-order form of Kokolis et al.
    horizon : float, optional
        Length of the run [s] for ``.sd`` and ``.percentiles``.

    Returns
    -------
    EffectiveTime
        ``.mean``; for numbers, the exact model and D = 0 also ``.sd`` or ``.std(horizon)``, and
        ``.percentiles(levels)``.

    Notes
    -----
    Exact mean W / E with E of `expected_segment_time`; the spread is that of `rollback` with one
    level. Kokolis: (1 - (R + D + W/2)/M) / (1 + C/W), lower by the second order; 0 where it would
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
    times = mtbf, interval, checkpoint, restart, down = _times(
        mtbf, interval, checkpoint, restart, down
    )
    require_time(interval=interval, positive=True)
    require_choice(MODELS, method=method)
    if horizon is not None:
        require_time(horizon=horizon, positive=True, single=True)
    if method == "kokolis":
        mean = (1 - (restart + down + interval / 2) / mtbf) / (1 + checkpoint / interval)
        return EffectiveTime(mean=bare(np.maximum(mean, 0.0)), horizon=horizon)
    mean = interval / np.asarray(expected_segment_time(*times))
    return EffectiveTime(mean=bare(mean), times=times, horizon=horizon)


def optimal_training_time_ratio(
    checkpoint: Real, mtbf: Real, restart: Real, down: Real = 0.0
) -> Real:
    """Largest share of useful time that any checkpoint interval reaches.

    Parameters
    ----------
    checkpoint, mtbf, restart, down : float or array
        C, M, R and D [s].

    Returns
    -------
    float or numpy.ndarray
        (1 - W*/M) e^{-R/M} M/(M + D): at its best, checkpointing together with the work done twice
        costs exactly the share W*/M of the time, where W* is the interval itself; about sqrt(2C/M).

    Examples
    --------
    >>> round(optimal_training_time_ratio(checkpoint=60, mtbf=86400/(2048*3.79e-3), restart=900), 4)
    0.8298
    """
    checkpoint, restart, down = require_time(checkpoint=checkpoint, restart=restart, down=down)
    mtbf = require_time(mtbf=mtbf, positive=True)
    require_broadcast(checkpoint=checkpoint, mtbf=mtbf, restart=restart, down=down)
    return bare(best_rollback(checkpoint, restart, 1 / np.asarray(mtbf))[0] / (1 + down / mtbf))


def _times(
    mtbf: Real, interval: Real, checkpoint: Real, restart: Real, down: Real
) -> tuple[Real, Real, Real, Real, Real]:
    """Check the five times of the exponential model."""
    require_broadcast(
        mtbf=mtbf, interval=interval, checkpoint=checkpoint, restart=restart, down=down
    )
    times = require_time(interval=interval, checkpoint=checkpoint, restart=restart, down=down)
    return require_time(mtbf=mtbf, positive=True), *times


def verified_pattern_time(
    mtbf: Real,
    interval: Real,
    verification: Real,
    checkpoint: Real,
    restart: Real,
    verifications: int = 1,
) -> Real:
    """Mean time of one pattern under silent errors, every one of which strikes work and is found.

    A pattern is W seconds of work in n equal parts, a verification of V seconds after each, and a
    checkpoint of C seconds at the end. Errors strike the work at rate 1/M and are seen by the next
    verification only; then the job goes back to the last checkpoint in R seconds. With w = W/n and
    p = e^{-w/M}: (p^-n - 1) ((w + V)/(1 - p) + R) + C. Benoit, Robert, Raina, "Efficient
    Checkpoint/Verification Patterns", Int. J. HPCA 31(1), 2017.
    """
    require_broadcast(
        mtbf=mtbf,
        interval=interval,
        verification=verification,
        checkpoint=checkpoint,
        restart=restart,
    )
    mtbf, interval = require_time(mtbf=mtbf, interval=interval, positive=True)
    verification, checkpoint, restart = require_time(
        verification=verification, checkpoint=checkpoint, restart=restart
    )
    part = interval / require_int(verifications=verifications, at_least=1, at_most=10**6)
    with np.errstate(over="ignore"):
        failing = np.expm1(interval / mtbf)
        return bare(
            failing * ((part + verification) / -np.expm1(-part / mtbf) + restart) + checkpoint
        )
