"""Distributions of lives and repairs fitted to what was seen: exponential, Weibull, lognormal.

All three are distributions of log T = mu + sigma Z with a fixed distribution of Z, so one
likelihood with one gradient serves them, lives that had not ended included.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from relparallel._checks import require_rng
from relparallel.training._arguments import require_time
from relparallel.training.lifetimes import Lifetime

LAWS: Final = ("exponential", "weibull", "lognormal")
Times = NDArray[np.float64]


class LifetimeFit(NamedTuple):
    """A distribution fitted by maximum likelihood: log T = mu + sigma Z, T in seconds."""

    law: str
    location: float  # mu
    spread: float  # sigma, 1 for the exponential distribution
    covariance: NDArray[np.float64]  # of mu and log sigma, from the curvature of the likelihood
    log_likelihood: float
    distance: float  # Kolmogorov-Smirnov, to the Kaplan-Meier curve
    events: int
    censored: int = 0
    p_value: float | None = None  # share of samples of the fit, fitted again, that lie as far off

    @property
    def parameters(self) -> dict[str, float]:
        """Mean; or shape and scale; or sigma and median. Times in seconds."""
        if self.law == "exponential":
            # without the noise of a logarithm and back
            return {"mean": float(f"{np.exp(self.location):.15g}")}
        if self.law == "weibull":
            return {"shape": 1 / self.spread, "scale": float(np.exp(self.location))}
        return {"sigma": self.spread, "median": float(np.exp(self.location))}

    @property
    def mean(self) -> float:
        """Mean of the distribution [s]."""
        if self.law == "lognormal":
            return float(np.exp(self.location + self.spread**2 / 2))
        return float(np.exp(self.location) * special.gamma(1 + self.spread))

    @property
    def aic(self) -> float:
        """Akaike's criterion; the smaller the better."""
        return 2 * len(self.parameters) - 2 * self.log_likelihood

    def interval(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return a large-sample confidence interval per parameter, symmetric in its logarithm."""
        wide = special.ndtri((1 + level) / 2) * np.sqrt(np.diag(self.covariance))
        errors = {"shape": wide[1], "sigma": wide[1]}
        factor = {name: float(np.exp(errors.get(name, wide[0]))) for name in self.parameters}
        return {
            name: (value / factor[name], value * factor[name])
            for name, value in self.parameters.items()
        }

    def cdf(self, times: Any) -> Times:
        """Return the probability that a life ends by given times, positive [s]."""
        z = (np.log(require_time(positive=True, times=times)) - self.location) / self.spread
        return np.asarray(special.ndtr(z) if self.law == "lognormal" else -np.expm1(-np.exp(z)))

    @property
    def lifetime(self) -> Lifetime:
        """The distribution for `simulate` and `fleet_failures`."""
        if self.law == "lognormal":
            return Lifetime.lognormal(mean=self.mean, sigma=self.spread)
        return Lifetime.weibull(mean=self.mean, shape=1 / self.spread)


def fit_lifetimes(
    times: Sequence[float] | Times,
    censored: Sequence[float] | Times | float | None = None,
    laws: tuple[str, ...] = LAWS,
    samples: int = 0,
    rng: np.random.Generator | None = None,
) -> tuple[LifetimeFit, ...]:
    """Distributions fitted to times between failures or to repair times [s], the best one first.

    ``times`` are lives that ended, ``censored`` lives that had not: the time since the last
    failure; zero counts as none. With ``samples`` of the fitted distribution, each fitted again,
    there is a ``p_value`` (parametric bootstrap). In the order of Akaike's criterion, of the
    largest likelihood: log f of lives that ended and log S of the others. Lawless, "Statistical
    Models and Methods for Lifetime Data", 2nd ed., chapters 2, 5. Stute, Gonzalez Manteiga and
    Presedo Quindimil, "Bootstrap based goodness-of-fit tests", Metrika 40, 1993.

    >>> lives = 3600 * np.random.default_rng(0).weibull(0.7, 500)
    >>> best = fit_lifetimes(lives)[0]
    >>> best.law, round(best.parameters["shape"], 2)
    ('weibull', 0.73)
    """
    ended = np.atleast_1d(require_time(positive=True, times=times))
    running = np.atleast_1d(require_time(censored=0.0 if censored is None else censored))
    running = running[running > 0]
    if samples:
        require_rng(rng=rng)
    if len(np.unique(ended)) < 2 and set(laws) - {"exponential"}:
        raise ValueError(
            f"times must hold two different lives for two parameters, got {ended[0]:g}"
        )
    fits = [_fit(law, ended, running, samples, rng) for law in laws]
    return tuple(sorted(fits, key=lambda fit: fit.aic))


def _fit(
    law: str, ended: Times, running: Times, samples: int, rng: np.random.Generator | None
) -> LifetimeFit:
    """Maximum likelihood, distance, and p-value where it is asked for."""
    location, log_spread = _maximum(law, ended, running)
    covariance = _covariance(law, location, log_spread, ended, running)
    bare = LifetimeFit(
        law=law,
        location=location,
        spread=float(np.exp(log_spread)),
        covariance=covariance,
        log_likelihood=_likelihood(law, location, log_spread, ended, running)[0],
        distance=0.0,
        events=len(ended),
        censored=len(running),
    )
    found = _distance(bare, ended, running)
    p_value = None
    if samples and rng is not None:
        farther = sum(_resampled(bare, len(ended), rng) >= found for _ in range(samples))
        p_value = (1 + farther) / (1 + samples)
    return bare._replace(distance=found, p_value=p_value)


def _resampled(fit: LifetimeFit, size: int, rng: np.random.Generator) -> float:
    """Distance of a sample of a distribution to the distribution fitted to this sample."""
    z = (
        rng.standard_normal(size)
        if fit.law == "lognormal"
        else np.log(rng.standard_exponential(size))
    )
    lives, none = np.exp(fit.location + fit.spread * z), np.empty(0)
    location, log_spread = _maximum(fit.law, lives, none)
    return _distance(fit._replace(location=location, spread=float(np.exp(log_spread))), lives, none)


def _maximum(law: str, ended: Times, running: Times) -> tuple[float, float]:
    """Mu and log sigma of the largest likelihood."""
    if law == "exponential":
        return float(np.log((ended.sum() + running.sum()) / len(ended))), 0.0
    logs = np.log(ended)
    if law == "lognormal" and not len(running):
        return float(logs.mean()), float(np.log(logs.std()))

    def downhill(x: Times) -> tuple[float, Times]:
        value, gradient = _likelihood(law, x[0], x[1], ended, running)
        return -value / len(ended), -gradient / len(ended)

    first = np.array([logs.mean(), np.log(logs.std())])
    found = optimize.minimize(downhill, first, jac=True, method="BFGS", options={"gtol": 1e-9})
    return float(found.x[0]), float(found.x[1])


def _likelihood(
    law: str, location: float, log_spread: float, ended: Times, running: Times
) -> tuple[float, Times]:
    """Log-likelihood and its gradient in mu and log sigma."""
    spread = np.exp(log_spread)
    z, w = (np.log(ended) - location) / spread, (np.log(running) - location) / spread
    if law == "lognormal":
        density, slope = -(z**2) / 2 - np.log(2 * np.pi) / 2, -z
        survival = special.log_ndtr(-w)
        fall = -np.exp(-(w**2) / 2 - np.log(2 * np.pi) / 2 - survival)
    else:
        grown = np.exp(np.minimum(z, 700.0))
        density, slope = z - grown, 1 - grown
        survival = -np.exp(np.minimum(w, 700.0))
        fall = survival
    value = float(np.sum(density - log_spread - np.log(ended)) + np.sum(survival))
    pull = slope.sum() + fall.sum()
    return value, np.array([-pull / spread, -len(ended) - slope @ z - fall @ w])


def _covariance(
    law: str, location: float, log_spread: float, ended: Times, running: Times
) -> Times:
    """Inverse of the observed information of mu and log sigma."""
    if law == "exponential":
        return np.array([[1 / len(ended), 0.0], [0.0, 0.0]])
    step = 1e-5
    slopes = [
        _likelihood(law, location + a, log_spread + b, ended, running)[1]
        - _likelihood(law, location - a, log_spread - b, ended, running)[1]
        for a, b in ((step, 0.0), (0.0, step))
    ]
    return np.asarray(np.linalg.inv(-np.array(slopes) / (2 * step)))


def _distance(fit: LifetimeFit, ended: Times, running: Times) -> float:
    """Largest distance of the distribution from the Kaplan-Meier curve, below and at each jump."""
    lives, deaths = np.unique(ended, return_counts=True)
    every = np.sort(np.concatenate([ended, running]))
    at_risk = len(every) - np.searchsorted(every, lives, side="left")
    curve = 1 - np.cumprod(1 - deaths / at_risk)
    fitted, before = fit.cdf(lives), np.concatenate([[0.0], curve[:-1]])
    return float(max(np.abs(curve - fitted).max(), np.abs(before - fitted).max()))
