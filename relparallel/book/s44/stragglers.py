"""What waiting for the slowest costs: noise drawn anew in every step, and ranks that stay slow.

========  ============================================================
letter    meaning
========  ============================================================
n         ranks that wait for each other
p, m      stages of a pipeline, micro-batches of a step
D         replicas (data-parallel degree)
q, s      chance that a rank is slow, and its slowdown
========  ============================================================
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy

from relparallel._checks import Result, require_instance, require_int, require_real
from relparallel.metrics import Estimate
from relparallel.parallel import Strategy

LAWS: Final = {"normal": scipy.stats.norm(), "exponential": scipy.stats.expon()}
"""Laws by name: standard normal; exponential of mean 1."""
_MOST_ATOMS: Final = 10**6  # of a discrete law


def expected_maximum(count: int, law: Any = "normal") -> float:
    """Expected largest of n independent draws (David, Nagaraja, "Order statistics", 2003, section 3.1).

    E = int Q(e^{-e^{-g}/n}) e^{-g - e^{-g}} dg over all g, Q being the quantile: the uniform level of the
    largest is the n-th root of one uniform level, here that of a Gumbel variable, which is smooth for any
    continuous law. Adaptive quadrature, absolute error about 1e-9; for discrete scipy.stats laws the sum over
    their atoms. sqrt(2 ln n) is 11 to 43 % too large for n = 16,384 to 8; an exponential distribution has the
    harmonic number H_n.
    """
    n = require_int(count=count, at_least=1, at_most=10**12)
    return _moment(n, _law(law), 1)


def noise_slowdown(
    strategy: Strategy, variation: float, micro_batches: int, sections: int = 1, law: Any = "normal"
) -> Estimate:
    """Expected slowdown of a step by noise that every rank draws anew for every section of its work.

    Parameters
    ----------
    strategy : Strategy
        Tensor- and context-parallel ranks wait for each other after every section, stages after every
        micro-batch, replicas once in a step.
    variation : float
        Standard deviation over mean of a section of one rank.
    micro_batches, sections : int
        Of a step, m; of a micro-batch on a stage: collectives of its tensor-parallel groups.
    law : {"normal", "exponential"} or frozen scipy.stats law
        Shape of the noise, taken at mean 0 and standard deviation 1.

    Returns
    -------
    Estimate
        Time over that without noise. Without a pipeline one number, exact where all waits are for one section
        or the noise is normal and nothing but replicas waits. With one, a bracket.

    Notes
    -----
    A section lasts 1 + v e_t, with variance v^2 w_t; e and w are mean and variance of the largest of t
    draws. Sums of many sections are taken as normal, replicas wait for the largest of D. A pipeline has R = m
    + p - 1 rounds of k sections. Lower bound: one of its paths, 1 + v e_t + v sqrt(w_t/(k R)) e_D. Upper:
    stages in lockstep, the slowest of p in each round, 1 + v e_t + v sqrt(w_t/k) (e_p + sqrt(w_p/R) e_D).
    Eight quadratures.

    References
    ----------
    David, Nagaraja 2003, section 3.1; Petrini, Kerbyson, Pakin, "The case of the missing supercomputer
    performance", SC 2003: noise grows with how often ranks wait.

    Examples
    --------
    >>> data = noise_slowdown(Strategy(data=2048), 0.01, micro_batches=1)
    >>> round(float(data), 4)
    1.0344
    """
    s = require_instance(Strategy, strategy=strategy)
    v = _number(variation=variation, at_least=0, at_most=10)
    m = require_int(micro_batches=micro_batches, at_least=1, at_most=10**6)
    k = require_int(sections=sections, at_least=1, at_most=10**6)
    shape = _law(law)
    first, spread = _largest(s.tensor * s.context, shape)
    rounds = m + s.pipeline - 1
    mean, deviation = 1 + v * first, v * spread
    alone = s.tensor * s.context == 1
    single = alone and (rounds * k == 1 or shape is LAWS["normal"])
    last = shape if alone and rounds * k == 1 else LAWS["normal"]
    replicas = _largest(s.data, last)[0] / math.sqrt(rounds)
    lower = mean + deviation / math.sqrt(k) * replicas
    if s.pipeline == 1:
        return Estimate(value=lower, lower=lower, upper=lower, method="order statistics", exact=single)
    stage, round_spread = _largest(s.pipeline, LAWS["normal"])
    upper = max(mean + deviation / math.sqrt(k) * (stage + round_spread * replicas), lower)
    return Estimate(
        value=(lower + upper) / 2, lower=lower, upper=upper, method="one path, lockstep", exact=False
    )


def pipeline_slowdown(slow_stages: int, stages: int, micro_batches: int, factor: float) -> float:
    """Slowdown of a pipeline of which some stages are slower than the others.

    Parameters
    ----------
    slow_stages, stages, micro_batches : int
        j of p; micro-batches of a step, m.
    factor : float
        Time of a slow stage over that of another, s, at least 1.

    Returns
    -------
    float
        ((m - 1) max + sum of all stages)/(m + p - 1) (Narayanan et al., SC 2021, section 2.2, for equal
        stages): a flow shop with equal jobs, whose slowest stage works without a break while the others add
        their time once. Of a pipeline that is flushed, forward and backward in one.

    Examples
    --------
    >>> pipeline_slowdown(1, 4, 13, 1.25)
    1.203125
    """
    p = require_int(stages=stages, at_least=1, at_most=10**6)
    j = require_int(slow_stages=slow_stages, at_least=0)
    if j > p:
        raise ValueError(f"slow_stages must be at most stages = {p}, got {j}")
    m = require_int(micro_batches=micro_batches, at_least=1, at_most=10**9)
    extra = _number(factor=factor, at_least=1, at_most=1e9) - 1
    return 1 + extra * (m - 1 + j) / (m + p - 1) if j else 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SlowRanks(Result):
    """Slowdown of a job in which some ranks stay slow."""

    mean: float  # over jobs
    std: float
    hit: float  # probability that any rank is slow
    single: float  # slowdown by exactly one slow rank


def slow_ranks(strategy: Strategy, probability: float, factor: float, micro_batches: int) -> SlowRanks:
    """Slowdown of a job in which every rank is slow with some probability and stays so.

    Parameters
    ----------
    strategy : Strategy
        A slow rank slows its tensor- and context-parallel group, that is its stage; the slowest replica
        decides.
    probability, factor, micro_batches : float, float, int
        That a rank is slow, q; its time over that of another rank, s, at least 1; of a step, m.

    Returns
    -------
    SlowRanks
        Mean and standard deviation over jobs, chance of any slow rank, slowdown by one.

    Notes
    -----
    A stage is slow with Q = 1 - (1 - q)^(t c). Slow stages J of the worst replica: P(J <= j) = P(Bin(p, Q) <=
    j)^D; `pipeline_slowdown` of J is averaged, O(p). Unlike noise this does not average out over steps: the
    standard deviation stays. Drawn anew in every step the mean would be the same. One slow GPU of 384 cost
    BLOOM 5 to 6 % (Le Scao et al., row BLM-006).

    Examples
    --------
    >>> found = slow_ranks(Strategy(tensor=4, pipeline=12, data=8), 1e-3, 1.1, micro_batches=128)
    >>> round(found.hit, 3), round(found.single, 4)
    (0.319, 1.0921)
    """
    s = require_instance(Strategy, strategy=strategy)
    q = _number(probability=probability, at_least=0, at_most=1)
    each = [pipeline_slowdown(j, s.pipeline, micro_batches, factor) for j in range(s.pipeline + 1)]
    stage = -math.expm1(s.tensor * s.context * math.log1p(-q)) if q < 1 else 1.0
    below = scipy.stats.binom.cdf(np.arange(s.pipeline + 1), s.pipeline, stage) ** s.data
    chance = np.diff(below, prepend=0.0)
    extra = np.array(each) - 1
    mean = float(chance @ extra)
    return SlowRanks(
        mean=1 + mean, std=math.sqrt(float(chance @ (extra - mean) ** 2)), hit=float(1 - below[0]),
        single=each[1],
    )  # fmt: skip


def _law(law: Any) -> Any:
    """A distribution by name, or as given."""
    if isinstance(law, str) and law in LAWS:
        return LAWS[law]
    if not all(callable(getattr(law, name, None)) for name in ("isf", "ppf", "mean", "std")):
        raise ValueError(f"law must be one of {', '.join(LAWS)} or a frozen scipy.stats law, got {law!r}")
    if not math.isfinite(law.mean()):
        raise ValueError(f"law must have a finite mean, got {law!r}")
    return law


def _moment(n: int, law: Any, power: int) -> float:
    """Power of the largest of n draws, expected."""
    if callable(getattr(law, "pmf", None)):
        atoms = _atoms(n, law)
        larger = np.minimum(np.cumsum(law.pmf(atoms)[:0:-1])[::-1], 1.0)
        with np.errstate(divide="ignore"):
            above = -np.expm1(n * np.log1p(-larger))
        return float(atoms[0] ** power + np.diff(atoms**power) @ above)

    def weighted(g: float) -> float:
        tail = math.exp(-g)
        x = law.isf(-math.expm1(-tail / n)) if tail < n else law.ppf(math.exp(-tail / n))
        return float(x**power * math.exp(-g - tail))

    pieces = [(-6.0, 0.0), (0.0, 4.0), (4.0, 16.0), (16.0, 120.0), (120.0, 600.0)]
    return math.fsum(
        scipy.integrate.quad(weighted, low, high, epsabs=1e-11, limit=200)[0] for low, high in pieces
    )


def _atoms(n: int, law: Any) -> Any:
    """Values of a discrete law, without tails that no moment of the largest of n draws notices."""
    listed = getattr(getattr(law, "dist", law), "pk", None)
    if listed is not None:
        return np.unique(law.ppf(np.cumsum(listed) - np.asarray(listed) / 2))
    middle, spread, (least, most) = law.ppf(0.5), max(float(law.std()), 1.0), law.support()
    for wide in 2.0 ** np.arange(24):
        low = max(middle - np.ceil(wide * spread), least)
        high = min(middle + np.ceil(wide * spread), most)
        if high - low > _MOST_ATOMS:
            break
        beyond = max(law.pmf(low - 1), law.pmf(high + 1)) * wide * spread
        if n * wide**2 * beyond < 1e-17 and law.cdf(low - 1) + law.sf(high) < 1e-12:
            return np.arange(low, high + 1)
    raise ValueError(f"law must have at most {_MOST_ATOMS:,} atoms that count, got {law!r}")


def _largest(n: int, law: Any) -> tuple[float, float]:
    """Mean and standard deviation of the largest of n draws of a standardised distribution."""
    mean, scale = float(law.mean()), float(law.std())
    if not 0 < scale < math.inf:
        raise ValueError(f"law must have a finite standard deviation, got {scale}")
    first = _moment(n, law, 1)
    variance = max(_moment(n, law, 2) - first**2, 0.0)
    return (first - mean) / scale, math.sqrt(variance) / scale


def _number(**bounded: Any) -> float:
    """One number inside its bounds."""
    name = next(iter(bounded))
    value = require_real(**bounded)
    if not isinstance(value, float):
        raise TypeError(f"{name} must be one number, got {bounded[name]!r}")
    return value
