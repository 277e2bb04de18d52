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
from typing import Any, NamedTuple

import numpy as np
import scipy

from relparallel._checks import require_number
from relparallel.metrics import Estimate
from relparallel.parallel import Strategy
from relparallel.training.order_statistics import LAWS, largest, law_of


def noise_slowdown(
    strategy: Strategy, variation: float, micro_batches: int, sections: int = 1, law: Any = "normal"
) -> Estimate:
    """Expected slowdown of a step by noise that each rank draws anew for every section of its work.

    Tensor- and context-parallel ranks wait for each other after every section, stages after every
    micro-batch, replicas once in a step. ``variation`` v is the standard deviation over mean of a
    section of one rank; a micro-batch has k ``sections`` on a stage, the collectives of its
    tensor-parallel groups; ``law``, "normal", "exponential" or a frozen scipy.stats law, is the
    shape of the noise, taken at mean 0 and standard deviation 1. Without a pipeline one number,
    exact where all waits are for one section or the noise is normal and nothing but replicas waits;
    with one, a bracket.

    A section lasts 1 + v e_t, with variance v^2 w_t; e and w are mean and variance of the largest
    of t draws. Sums of many sections are taken as normal, replicas wait for the largest of D. A
    pipeline has R = m + p - 1 rounds of k sections. Lower bound: one of its paths, 1 + v e_t + v
    sqrt(w_t/(k R)) e_D. Upper: stages in lockstep, the slowest of p in each round, 1 + v e_t + v
    sqrt(w_t/k) (e_p + sqrt(w_p/R) e_D).

    David, Nagaraja 2003, section 3.1; Petrini, Kerbyson, Pakin, "The case of the missing
    supercomputer performance", SC 2003: noise grows with how often ranks wait.

    >>> data = noise_slowdown(Strategy(data=2048), 0.01, micro_batches=1)
    >>> round(float(data), 4)
    1.0344
    """
    s, shape, k = strategy, law_of(law), sections
    v = require_number(variation=variation, at_least=0)
    first, spread = largest(s.tensor * s.context, shape)
    rounds = micro_batches + s.pipeline - 1
    mean, deviation = 1 + v * first, v * spread
    alone = s.tensor * s.context == 1
    single = alone and (rounds * k == 1 or shape is LAWS["normal"])
    last = shape if alone and rounds * k == 1 else LAWS["normal"]
    replicas = largest(s.data, last)[0] / math.sqrt(rounds)
    lower = mean + deviation / math.sqrt(k) * replicas
    if s.pipeline == 1:
        return Estimate(
            value=lower, lower=lower, upper=lower, method="order statistics", exact=single
        )
    stage, round_spread = largest(s.pipeline, LAWS["normal"])
    upper = max(mean + deviation / math.sqrt(k) * (stage + round_spread * replicas), lower)
    middle = (lower + upper) / 2
    return Estimate(
        value=middle, lower=lower, upper=upper, method="one path, lockstep", exact=False
    )


def pipeline_slowdown(slow_stages: int, stages: int, micro_batches: int, factor: float) -> float:
    """Slowdown of a pipeline of which j of p stages are ``factor`` times slower than the others.

    ((m - 1) max + sum of all stages)/(m + p - 1) (Narayanan et al., SC 2021, section 2.2, for equal
    stages): a flow shop with equal jobs, whose slowest stage works without a break while the others
    add their time once. Of a pipeline that is flushed, forward and backward in one.

    >>> pipeline_slowdown(1, 4, 13, 1.25)
    1.203125
    """
    j, p, m = slow_stages, stages, micro_batches
    if j > p:
        raise ValueError(f"slow_stages must be at most stages = {p}, got {j}")
    extra = require_number(factor=factor, at_least=1) - 1
    return 1 + extra * (m - 1 + j) / (m + p - 1) if j else 1.0


class SlowRanks(NamedTuple):
    """Slowdown of a job in which some ranks stay slow."""

    mean: float  # over jobs
    std: float
    hit: float  # probability that any rank is slow
    single: float  # slowdown by exactly one slow rank


def slow_ranks(
    strategy: Strategy, probability: float, factor: float, micro_batches: int
) -> SlowRanks:
    """Slowdown of a job where every rank is ``factor`` times slower with some chance and stays so.

    A slow rank, each with the ``probability`` q, slows its tensor- and context-parallel group, that
    is its stage, with Q = 1 - (1 - q)^(t c); the slowest replica decides. Slow stages J of the
    worst replica: P(J <= j) = P(Bin(p, Q) <= j)^D; `pipeline_slowdown` of J is averaged. Unlike
    noise this does not average out over steps: the standard deviation stays. Drawn anew in every
    step the mean would be the same. One slow GPU of 384 cost BLOOM 5 to 6 % (Le Scao et al., row
    BLM-006).
    """
    s, q = strategy, require_number(probability=probability, at_least=0, at_most=1)
    each = [pipeline_slowdown(j, s.pipeline, micro_batches, factor) for j in range(s.pipeline + 1)]
    stage = -math.expm1(s.tensor * s.context * math.log1p(-q)) if q < 1 else 1.0
    below = scipy.stats.binom.cdf(np.arange(s.pipeline + 1), s.pipeline, stage) ** s.data
    chance = np.diff(below, prepend=0.0)
    extra = np.array(each) - 1
    mean = float(chance @ extra)
    std = math.sqrt(float(chance @ (extra - mean) ** 2))
    return SlowRanks(1 + mean, std, hit=float(1 - below[0]), single=each[1])
