"""Karp and Luby's estimator on the likely cuts, with a bound on what the other cuts could add.

Draw a listed cut A_i with probability P(A_i) / S1, S1 = sum P(A_j), fail its parts, draw all other
parts from their own chances and count the listed cuts N >= 1 that are down. Then S1 / N has the
mean sum_i P(A_i) E[1/N | A_i] = P(some listed cut is down): a state with N cuts down is drawn in N
ways. Its values lie in (0, S1], and the rarer failures are, the closer N is to 1: the relative
error does not grow as the unreliability falls to zero.

Two errors remain. *Sampling*: the interval is the empirical Bernstein inequality of Maurer and
Pontil for values in [0, 1], valid for any number of samples, so that samples that happen to be all
equal do not pass for certainty; it is cut by Bonferroni's and Hunter's inequalities, which need no
samples. *Bias*: cuts that are not listed add at most ``rest`` of `cuts`, which is added to the
upper end.

References
----------
Karp and Luby, "Monte-Carlo algorithms for enumeration and reliability problems", FOCS 1983.
Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization", COLT 2009.
"""

import math
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.bounding.cut_bounds import (
    PAIRED,
    near_minimum_cuts,
    part_chances,
    rest_bound,
    union_bracket,
)
from relparallel.reliability.bounding.cut_families import MAX_STEPS, CutFamily
from relparallel.reliability.frontier.decomposition import combine, into_blocks
from relparallel.reliability.problem import Problem
from relparallel.reliability.sampling.moments import UnreliabilityEstimate

_PILOT: Final = 2**12  # samples before the first look
_FEW: Final = 2**6  # samples, whatever they cost
_MOST: Final = 2**22
_WORK: Final = 2**31  # elementary steps of all samples of a block, some seconds


def karp_luby(
    problem: Problem,
    *,
    rng: np.random.Generator,
    rtol: float = 1e-2,
    confidence: float = 0.95,
    samples: int | None = None,
    max_steps: int = MAX_STEPS,
    max_work: float = _WORK,
) -> UnreliabilityEstimate:
    """Estimate the unreliability from likely cuts; the interval covers chance and cuts left out."""
    apart, blocks = into_blocks(problem)
    risk = (1 - confidence) / max(len(blocks), 1)
    steps, work = int(min(max_steps, max_work)), min(max_work, _WORK)
    found = [_block(block.problem, rng, rtol, risk, samples, steps, work) for block in blocks]
    lower, upper = combine(apart, ((x.lower, x.upper) for x in found))
    value, _ = combine(apart, ((x.value, x.value) for x in found))
    _, biased = combine(apart, ((x.value, min(x.value + x.bias_bound, 1.0)) for x in found))
    return UnreliabilityEstimate(
        value=min(max(value, lower), upper),
        lower=lower,
        upper=upper,
        method="karp_luby",
        confidence=confidence,
        bias_bound=biased - value,
        samples=sum(x.samples for x in found),
        work=float(sum(x.work for x in found)),
    )


def _block(
    block: Problem,
    rng: np.random.Generator,
    rtol: float,
    risk: float,
    samples: int | None,
    max_steps: int,
    max_work: float,
) -> UnreliabilityEstimate:
    """Estimate of one block, with an interval that errs with at most the given risk."""
    family = near_minimum_cuts(block, rtol / 5, max_steps)
    low, high = union_bracket(block, family)
    rest = rest_bound(block, family)
    total = float(family.chances.sum())
    mean, width, drawn = 1.0, 1.0, 0
    if total > 0.0 and high > low:
        mean, width, drawn = _shares(block, family, rng, rtol / 2, risk, samples, max_work)
    lower = max(low, total * (mean - width))
    upper = max(min(high, total * (mean + width)), lower)
    return UnreliabilityEstimate(
        value=min(max(total * mean, lower), upper),
        lower=lower,
        upper=min(upper + rest, 1.0),
        method="karp_luby",
        confidence=1 - risk,
        bias_bound=rest,
        samples=drawn,
        work=2 * family.steps + min(len(family), PAIRED) ** 2 // 2 + drawn * len(block.link),
    )


def _shares(
    block: Problem,
    family: CutFamily,
    rng: np.random.Generator,
    rtol: float,
    risk: float,
    samples: int | None,
    max_work: float,
) -> tuple[float, float, int]:
    """Mean of 1/N, the half width of its interval, and the number of samples.

    A pilot says how many samples are needed; they are drawn afresh, so that the pilot cannot bias
    them.
    """
    down = part_chances(block)
    owners, where = _owners(family, len(down))
    draws = (family.starts, family.parts, np.cumsum(family.chances), down, where, owners)
    if samples is None:
        most = max(int(max_work / _steps(family, down, where)), _FEW)
        mean, variance = _draw(*draws, min(_PILOT, most), rng)
        log = math.log(4 / risk)
        samples = math.ceil(
            max(_PILOT, 7 * log / (rtol * mean), 4 * variance * log / (rtol * mean) ** 2)
        )
        samples = min(samples, most, _MOST)
    mean, variance = _draw(*draws, samples, rng)
    log = math.log(4 / risk)  # two sides: 2 / (risk / 2)
    width = math.sqrt(2 * variance * log / samples) + 7 * log / (3 * max(samples - 1, 1))
    return mean, width, samples


def _steps(family: CutFamily, down: NDArray[np.float64], where: NDArray[np.int64]) -> float:
    """Elementary steps of a sample, about: parts, and the cuts that each failed part belongs to."""
    owners = np.diff(where)
    forced = (
        np.add.reduceat(owners[family.parts], family.starts[:-1])
        @ family.chances
        / family.chances.sum()
    )
    return float(len(down) + down @ owners + forced)


def _owners(family: CutFamily, parts: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cuts that each part belongs to, in compressed rows."""
    owner = np.repeat(np.arange(len(family)), family.sizes)
    where = np.zeros(parts + 1, dtype=np.int64)
    np.cumsum(np.bincount(family.parts, minlength=parts), out=where[1:])
    return owner[np.argsort(family.parts, kind="stable")], where


@numba.njit(cache=True)
def _draw(starts, parts, running, down, where, owners, samples, rng):  # type: ignore[no-untyped-def]
    """Mean and unbiased variance of 1/N over the samples."""
    missing, touched = starts[1:] - starts[:-1], np.empty(len(parts) + 1, np.int64)
    left, forced = missing.copy(), np.full(len(down), -1, np.int64)
    mean, square = 0.0, 0.0
    for sample in range(samples):
        drawn = min(
            np.searchsorted(running, rng.random() * running[-1], side="right"), len(missing) - 1
        )
        for k in range(starts[drawn], starts[drawn + 1]):
            forced[parts[k]] = sample
        broken, seen = 0, 0
        for e in range(len(down)):
            if forced[e] == sample or (
                down[e] > 0.0 and where[e + 1] > where[e] and rng.random() < down[e]
            ):
                for k in range(where[e], where[e + 1]):
                    cut = owners[k]
                    if left[cut] == missing[cut]:
                        touched[seen] = cut
                        seen += 1
                    left[cut] -= 1
                    broken += left[cut] == 0
        for k in range(seen):
            left[touched[k]] = missing[touched[k]]
        share = 1.0 / broken
        change = share - mean
        mean += change / (sample + 1)
        square += change * (share - mean)
    return mean, square / max(samples - 1, 1)
