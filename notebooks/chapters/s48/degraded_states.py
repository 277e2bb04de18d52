"""Expected speed of a job whose parts fail and are repaired independently: likeliest states first.

What the states that were not looked at could change is at most their probability: a certified
bracket.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from relparallel._checks import instance, real, record, require_real, whole
from relparallel.metrics import Estimate
from relparallel.reliability.repair.likely_states import likely_states
from relparallel.training._arguments import FASTEST, LONGEST
from relparallel.training.factors import slowest_decides

_MOST_STATES = 10**6


@record
class RepairableParts:
    """Equal parts that fail independently and are repaired independently.

    Each of ``count`` fails ``rate`` times a second while it works, and works again after ``repair``
    [s] in the mean. ``slowdown`` is the time of a step over the usual one while at least one of
    them is down, infinite where the job stops.

    >>> RepairableParts(name="leaf", count=16, rate=1e-6, repair=1e6, slowdown=2.0).down
    0.5
    """

    name: str = instance(str)
    count: int = whole(at_least=1, at_most=10**7)
    rate: float = real(at_least=0, at_most=FASTEST)
    repair: float = real(at_least=0, at_most=LONGEST)
    slowdown: float = real(at_least=1, infinite=True, default=1.0)

    @property
    def down(self) -> float:
        """Probability that one is down, rate repair/(1 + rate repair), for any distributions."""
        load = self.rate * self.repair
        return load / (1 + load)


def expected_speed(
    parts: Sequence[RepairableParts],
    speed: Callable[[tuple[int, ...]], float] | None = None,
    remainder: float = 1e-9,
) -> Estimate:
    """Expected share of the full speed over the states of independent parts.

    ``speed`` gives the share, 0 to 1, from how many parts of each class are down; enumeration ends
    when all other states have at most the probability ``remainder``, or after a million, and the
    answer lies between the sum over the states seen and that sum plus their remainder: Li,
    Silvester, IEEE Trans. Commun. 1984. A state has the probability prod Bin(k_c; n_c, q_c).

    Without ``speed`` the down part with the largest slowdown decides, since steps wait for the
    slowest rank, and the answer is exact: classes by falling slowdown s_1 >= s_2 >= ..., with a_c =
    (1 - q_c)^n_c the chance that none of a class is down, E = prod a_c + sum_c (1 - a_c)/s_c
    prod_{b < c} a_b.

    >>> leaf = RepairableParts(name="leaf", count=1, rate=1.0, repair=1.0, slowdown=2.0)
    >>> float(expected_speed((leaf,)))
    0.75
    >>> expected_speed((leaf,), speed=lambda down: 1 - 0.5 * down[0]).exact
    False
    """
    if speed is None:
        slow = sorted(parts, key=lambda entry: -entry.slowdown)
        absent = np.exp([entry.count * math.log1p(-entry.down) for entry in slow])
        value = min(slowest_decides(absent, np.array([entry.slowdown for entry in slow])), 1.0)
        return Estimate(
            value=value, lower=value, upper=value, method="classes by slowdown", exact=True
        )
    down, probability, left = states_of(parts, remainder, _MOST_STATES)
    shares = [require_real(speed=speed(tuple(row)), at_least=0, at_most=1) for row in down.tolist()]
    lower = math.fsum(share * p for share, p in zip(shares, probability.tolist(), strict=True))
    upper = min(lower + left, 1.0)
    method, middle = f"{len(shares)} most likely states", min((lower + upper) / 2, upper)
    return Estimate(value=middle, lower=lower, upper=upper, method=method, exact=False)


def states_of(
    parts: Sequence[RepairableParts], remainder: float, most: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Numbers down in each class [states, classes], likeliest first, their chances and the rest."""
    far = [min(int(binom.isf(1e-18, p.count, p.down)) + 1, p.count) if p.down else 0 for p in parts]
    count = np.arange(max(far) + 2)
    chances = np.array([binom.pmf(count, p.count, p.down) for p in parts])
    chances[count > np.array(far)[:, None]] = 0.0
    order = np.argsort(-chances, axis=1, kind="stable")
    moved, places, probability, left = likely_states(
        np.take_along_axis(chances, order, axis=1), remainder, most
    )
    down = np.tile(order[:, 0], (len(moved), 1))
    row, column = np.nonzero(moved >= 0)
    part = moved[row, column]
    down[row, part] = order[part, places[row, column]]
    return down, probability, left
