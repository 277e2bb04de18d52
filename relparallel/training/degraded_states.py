"""Expected speed of a job whose parts fail and are repaired independently: most likely states first.

What the states that were not looked at could change is at most their probability: a certified bracket.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_int, require_real
from relparallel.metrics import Estimate
from relparallel.reliability.repair.likely_states import likely_states as most_likely
from relparallel.training._arguments import require_rate, require_time


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairableParts:
    """Equal parts that fail independently and are repaired independently.

    Parameters
    ----------
    name : str
        What they are.
    count : int
        How many, at least 1.
    rate : float
        Failures per part and second while it works.
    repair : float
        Mean time until a failed part works again [s].
    slowdown : float
        Time of a step over the usual one while at least one of them is down, at least 1; infinite where the
        job stops.

    Examples
    --------
    >>> RepairableParts(name="leaf", count=16, rate=1e-6, repair=1e6, slowdown=2.0).down
    0.5
    """

    name: str
    count: int
    rate: float
    repair: float
    slowdown: float = 1.0

    def __post_init__(self) -> None:
        require_instance(str, name=self.name)
        require_int(count=self.count, at_least=1, at_most=10**7)
        require_instance(float, rate=require_rate(rate=self.rate))
        require_instance(float, repair=require_time(repair=self.repair))
        slowdown = require_real(slowdown=self.slowdown, at_least=1, infinite=True)
        require_instance(float, slowdown=slowdown)

    @property
    def down(self) -> float:
        """Probability that one of them is down, rate repair/(1 + rate repair), whatever the laws."""
        load = self.rate * self.repair
        return load / (1 + load)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LikelyStates:
    """States of a system, most likely first.

    Parameters
    ----------
    down : int array [states, classes]
        Parts of each class that are down.
    probability : float array [states]
        Of each state, falling.
    remainder : float
        Probability of all other states.

    Examples
    --------
    >>> parts = (RepairableParts(name="card", count=2, rate=0.2, repair=1.0),)
    >>> likely_states(parts, remainder=0.3).down.ravel().tolist()
    [0, 1]
    """

    down: NDArray[np.int64]
    probability: NDArray[np.float64]
    remainder: float

    def __post_init__(self) -> None:
        probability = np.asarray(require_real(probability=self.probability, at_least=0, at_most=1))
        down = np.asarray(self.down)
        if down.ndim != 2 or down.dtype.kind not in "iu" or probability.shape != down.shape[:1]:
            raise ValueError(
                f"down must be an int array [states, classes], a row for each probability, got {self.down!r}"
            )
        require_instance(float, remainder=require_real(remainder=self.remainder, at_least=0, at_most=1))


def likely_states(
    parts: Sequence[RepairableParts], remainder: float = 1e-9, most: int = 10**6
) -> LikelyStates:
    """Enumerate the states of independent parts, most likely first.

    Parameters
    ----------
    parts : sequence of RepairableParts
        Classes of parts; a state is how many of each are down.
    remainder : float
        Enumeration ends when all other states have at most this probability.
    most : int
        It also ends after so many states.

    Returns
    -------
    LikelyStates
        With the probability that is left.

    Notes
    -----
    A state has the probability prod Bin(k_c; n_c, q_c). Counts of every class are sorted by theirs; from a
    state one class moves on by one, never one before the last class that has moved, so that each state is met
    once: a heap, O(S (c + log S)) for S states and c classes.

    References
    ----------
    Li, Silvester, "Performance analysis of networks with unreliable components", IEEE Trans. Commun. 1984:
    bounds from the most probable states.

    Examples
    --------
    >>> leaf = RepairableParts(name="leaf", count=64, rate=2e-10, repair=86400.0)
    >>> states = likely_states((leaf,), remainder=1e-6)
    >>> states.down.ravel().tolist(), states.remainder < 1e-6
    ([0, 1], True)
    """
    _classes(parts)
    limit = require_real(remainder=remainder, at_least=0, at_most=1)
    wanted = require_int(most=most, at_least=1, at_most=10**8)
    counts, chances = _sorted_counts(parts)
    moved, places, probability, _ = most_likely(chances, limit, wanted)
    down = np.tile(counts[:, 0], (len(moved), 1))
    row, column = np.nonzero(moved >= 0)
    part = moved[row, column]
    down[row, part] = counts[part, places[row, column]]
    left = max(1 - math.fsum(probability), 0.0)
    return LikelyStates(down=down, probability=probability, remainder=left)


def expected_speed(
    parts: Sequence[RepairableParts],
    speed: Callable[[tuple[int, ...]], float] | None = None,
    remainder: float = 1e-9,
    most: int = 10**6,
) -> Estimate:
    """Expected share of the full speed over the states of independent parts.

    Parameters
    ----------
    parts : sequence of RepairableParts
        Classes of parts.
    speed : callable, optional
        Share of the full speed, 0 to 1, from how many parts of each class are down. Where omitted, the down
        part with the largest slowdown decides: steps wait for the slowest rank.
    remainder, most : float, int
        As in `likely_states`; of no account where ``speed`` is omitted.

    Returns
    -------
    Estimate
        Exact where ``speed`` is omitted, else between the sum over the states seen and that sum plus their
        remainder.

    Notes
    -----
    Omitted: classes by falling slowdown s_1 >= s_2 >= ..., with a_c = (1 - q_c)^n_c the chance that none of a
    class is down: E = prod a_c + sum_c (1 - a_c)/s_c prod_{b < c} a_b; O(c log c).

    References
    ----------
    Li, Silvester, IEEE Trans. Commun. 1984.

    Examples
    --------
    >>> leaf = RepairableParts(name="leaf", count=1, rate=1.0, repair=1.0, slowdown=2.0)
    >>> float(expected_speed((leaf,)))
    0.75
    >>> expected_speed((leaf,), speed=lambda down: 1 - 0.5 * down[0]).exact
    False
    """
    _classes(parts)
    if speed is None:
        require_real(remainder=remainder, at_least=0, at_most=1)
        require_int(most=most, at_least=1)
        value = _worst_part_decides(parts)
        return Estimate(value=value, lower=value, upper=value, method="classes by slowdown", exact=True)
    if not callable(speed):
        raise TypeError(f"speed must be a function of the counts that are down, got {speed!r}")
    states = likely_states(parts, remainder, most)
    shares = [require_real(speed=speed(tuple(row)), at_least=0, at_most=1) for row in states.down.tolist()]
    lower = math.fsum(share * p for share, p in zip(shares, states.probability.tolist(), strict=True))
    upper = min(lower + states.remainder, 1.0)
    method = f"{len(shares)} most likely states"
    middle = min((lower + upper) / 2, upper)
    return Estimate(value=middle, lower=lower, upper=upper, method=method, exact=False)


def _worst_part_decides(parts: Sequence[RepairableParts]) -> float:
    """Expected 1/slowdown of the worst class with a part that is down."""
    speed, none_worse = 0.0, 1.0
    for entry in sorted(parts, key=lambda entry: -entry.slowdown):
        up = math.exp(entry.count * math.log1p(-entry.down))
        speed += none_worse * (1 - up) / entry.slowdown
        none_worse *= up
    return speed + none_worse


def _sorted_counts(parts: Sequence[RepairableParts]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts of every class by falling probability, and these, 0 for counts that never occur."""
    from scipy.stats import binom

    far = [min(int(binom.isf(1e-18, p.count, p.down)) + 1, p.count) if p.down else 0 for p in parts]
    count = np.arange(max(far) + 2)
    chances = np.array([binom.pmf(count, p.count, p.down) for p in parts])
    chances[count > np.array(far)[:, None]] = 0.0
    order = np.argsort(-chances, axis=1, kind="stable")
    return order, np.take_along_axis(chances, order, axis=1)


def _classes(parts: Sequence[RepairableParts]) -> None:
    """Refuse anything but a sequence of at least one class of parts."""
    if not isinstance(parts, tuple | list) or not parts:
        raise TypeError(f"parts must be a sequence of RepairableParts, got {parts!r}")
    for entry in parts:
        require_instance(RepairableParts, parts=entry)
