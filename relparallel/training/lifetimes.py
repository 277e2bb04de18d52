"""Distributions of lives: how long a new part lasts, and how much life is left at a given age.

An old fleet is stationary: a part met at a random time has the equilibrium residual life, density
S(t)/m, and n parts fail n/m times per second whatever the distribution. A new fleet is not.
"""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from relparallel._checks import (
    bare,
    real,
    record,
    require_choice,
    require_instance,
    require_int,
    require_rng,
    whole,
)
from relparallel.training._arguments import LONGEST, SHORTEST, Real, require_time

WEIBULL, LOGNORMAL, EMPIRICAL = 0, 1, 2
MOST_PARTS: Final = 10**7
AGES: Final = ("stationary", "new")
Ages: TypeAlias = Any  # "stationary", "new" or an array of ages [s]


@record(eq=False)
class Lifetime:
    """Distribution of a part's life; made by `exponential`, `weibull`, `lognormal` or `empirical`.

    Weibull: S(t) = exp(-(t/s)^k), m = s Gamma(1 + 1/k). Lognormal: S(t) = Phi((mu - ln t)/sigma),
    m = exp(mu + sigma^2/2). O(1) per life, with observed lives O(log of their number).

    Examples
    --------
    >>> round(Lifetime.weibull(mean=100.0, shape=0.7).survival(100.0), 4)
    0.3075
    """

    kind: int = whole(at_least=WEIBULL, at_most=EMPIRICAL)
    mean: float = real(at_least=SHORTEST, at_most=LONGEST)  # m [s]
    # Weibull's k, or sigma of the logarithm
    shape: float = real(above=0.0, at_most=100.0, default=1.0)
    # observed [s]
    lives: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False)

    def __post_init__(self) -> None:
        lives = np.empty(0)
        if not isinstance(self.lives, np.ndarray) or self.lives.size:
            lives = np.sort(np.ravel(require_time(lives=self.lives, positive=True)))
        if (self.kind == EMPIRICAL) != bool(lives.size):
            raise ValueError(
                f"lives must be given for kind {EMPIRICAL} and only there, got {lives.size}"
            )
        if self.kind == WEIBULL and not self.scale > 0:
            raise ValueError(
                f"shape must leave a scale above 0 at mean = {self.mean:g}, got {self.shape!r}"
            )
        if lives.size and not np.isclose(lives.mean(), self.mean, rtol=1e-9):
            raise ValueError(f"mean must be that of lives = {lives.mean():g}, got {self.mean!r}")
        object.__setattr__(self, "lives", lives)

    @classmethod
    def exponential(cls, mean: float) -> Lifetime:
        """Return the distribution without memory; mean life in seconds."""
        return cls(kind=WEIBULL, mean=mean)

    @classmethod
    def weibull(cls, mean: float, shape: float) -> Lifetime:
        """Return the Weibull distribution; below shape 1 new parts fail most, above it old ones."""
        return cls(kind=WEIBULL, mean=mean, shape=shape)

    @classmethod
    def lognormal(cls, mean: float, sigma: float) -> Lifetime:
        """Return the distribution whose logarithm is normal with standard deviation sigma."""
        return cls(kind=LOGNORMAL, mean=mean, shape=sigma)

    @classmethod
    def empirical(cls, lives: NDArray[np.float64]) -> Lifetime:
        """Return the distribution that draws one of the observed lives [s] at random."""
        if not np.size(lives):
            raise ValueError("lives must hold at least one observed life, got 0")
        lives = np.atleast_1d(require_time(lives=lives, positive=True))
        return cls(kind=EMPIRICAL, mean=float(lives.mean()), lives=lives)

    @property
    def scale(self) -> float:
        """Weibull's scale s, or the lognormal median exp(mu) [s]; for observed lives the mean."""
        if self.kind == LOGNORMAL:
            return float(self.mean * np.exp(-(self.shape**2) / 2))
        return float(self.mean / scipy.special.gamma(1 + 1 / self.shape))

    @property
    def draws(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What a compiled loop draws lives from: kind, scale and exponent; observed lives."""
        exponent = 1 / self.shape if self.kind == WEIBULL else self.shape
        return np.array(
            [self.kind, 1.0 if self.kind == EMPIRICAL else self.scale, exponent]
        ), self.lives

    def scaled(self, mean: float) -> Lifetime:
        """Return the distribution of X mean / m, with another mean life [s]."""
        mean = require_time(mean=mean, positive=True)
        return Lifetime(
            kind=self.kind, mean=mean, shape=self.shape, lives=self.lives * (mean / self.mean)
        )

    def survival(self, time: Real) -> Real:
        """Return P(X > time), time in seconds."""
        time = np.asarray(require_time(time=time), dtype=np.float64)
        if self.kind == EMPIRICAL:
            return bare(1 - np.searchsorted(self.lives, time, side="right") / self.lives.size)
        return bare(np.exp(self._log_survival(time)))

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Return so many lives of new parts [s]."""
        return self.remaining(rng, count, "new")

    def remaining(
        self, rng: np.random.Generator, count: int, ages: Ages = "stationary"
    ) -> NDArray[np.float64]:
        """Return the remaining lives of running parts [s] (Cox, "Renewal Theory", 1962, chapter 5).

        Parts met at a random time of an old fleet: a uniform share of a life drawn with density
        proportional to its length; "new" ones: a life; of given ages [s]: X - age under the
        condition X > age.
        """
        require_rng(rng=rng)
        require_int(count=count, at_least=1, at_most=MOST_PARTS)
        ages = require_ages(ages, count)
        if isinstance(ages, str):
            lives = self._draw(rng, count, longer=ages == "stationary")
            return lives * rng.random(count) if ages == "stationary" else lives
        return self._conditional(rng, ages)

    def first_of(self, parts: int) -> float:
        """Return the mean time until the first of n new parts fails, the integral of S(t)^n [s].

        For the Weibull distribution m n^(-1/k). Adaptive quadrature over the logarithm of the time,
        to 1e-10; a sum over observed lives.
        """
        require_int(parts=parts, at_least=1, at_most=MOST_PARTS)
        if self.kind == EMPIRICAL:
            steps = np.diff(self.lives, prepend=0.0)
            return float(steps @ (1 - np.arange(self.lives.size) / self.lives.size) ** parts)

        def area(logarithm: float) -> float:
            time = self.scale * np.exp(logarithm)
            return float(np.exp(parts * self._log_survival(time)) * time)

        # Lives spread over about 1/k, or sigma, of the logarithm; the time itself adds 40 below.
        width = min(1 / self.shape if self.kind == WEIBULL else 6 * self.shape, 30.0)
        ends = np.linspace(-40 - 17 * width, 7 * width + 1, 121)
        return sum(
            scipy.integrate.quad(area, a, b, epsrel=1e-11)[0] for a, b in pairwise(ends.tolist())
        )

    def _draw(self, rng: np.random.Generator, count: int, longer: bool) -> NDArray[np.float64]:
        """Lives of new parts, or lives chosen in proportion to their length."""
        if self.kind == WEIBULL:
            draws = (
                rng.gamma(1 + 1 / self.shape, size=count)
                if longer
                else rng.standard_exponential(count)
            )
            return np.asarray(self.scale * draws ** (1 / self.shape))
        if self.kind == LOGNORMAL:
            more = self.shape if longer else 0.0
            return np.asarray(self.scale * np.exp(self.shape * (rng.standard_normal(count) + more)))
        weights = self.lives / self.lives.sum() if longer else None
        return rng.choice(self.lives, size=count, p=weights)

    def _conditional(
        self, rng: np.random.Generator, ages: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """X - age, given X > age."""
        draws = rng.standard_exponential(ages.size)  # -log of S(X)/S(age)
        if self.kind == WEIBULL:
            left = ((ages / self.scale) ** self.shape + draws) ** (1 / self.shape)
            return np.asarray(self.scale * left - ages)
        if self.kind == LOGNORMAL:
            left = np.exp(-self.shape * scipy.special.ndtri_exp(self._log_survival(ages) - draws))
            return np.asarray(self.scale * left - ages)
        first = np.searchsorted(self.lives, ages, side="right")
        if (first == self.lives.size).any():
            most = self.lives[-1]
            raise ValueError(
                f"ages must be below the longest observed life {most:g}, got {ages.max():g}"
            )
        return self.lives[rng.integers(first, self.lives.size)] - ages

    def _log_survival(self, time: Any) -> Any:
        """Log S(t) of the two distributions that have a formula."""
        if self.kind == WEIBULL:
            return -((time / self.scale) ** self.shape)
        with np.errstate(divide="ignore"):
            return scipy.special.log_ndtr(-np.log(time / self.scale) / self.shape)


def require_ages(ages: Ages, count: int) -> Ages:
    """Return "stationary", "new" or one age [s] for each part."""
    if isinstance(ages, str):
        return require_choice(AGES, ages=ages)
    if np.shape(ages) not in ((), (count,)):
        raise ValueError(
            f"ages must be one number or {count} of them, got shape {np.shape(ages)}: {ages!r}"
        )
    return np.broadcast_to(require_time(ages=ages), count)


def fleet_failures(
    lifetime: Lifetime,
    parts: int,
    horizon: float,
    rng: np.random.Generator,
    ages: Ages = "stationary",
    replications: int = 100,
) -> NDArray[np.int64]:
    """Failures of parts that are replaced at once by new ones, in each of some repetitions.

    From the stationary state n horizon / m on average, whatever the distribution (Cox, "Renewal
    Theory", 1962, chapters 4 and 5). O(failures).
    """
    require_instance(Lifetime, lifetime=lifetime)
    require_int(parts=parts, replications=replications, at_least=1, at_most=MOST_PARTS)
    require_rng(rng=rng)
    require_time(single=True, horizon=horizon, positive=True)
    found = np.zeros(replications, dtype=np.int64)
    for repetition in range(replications):
        ends = lifetime.remaining(rng, parts, ages)
        while (ends := ends[ends <= horizon]).size:
            found[repetition] += ends.size
            ends = ends + lifetime.sample(rng, ends.size)
    return found
