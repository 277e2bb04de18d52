"""How many spares of every kind of part to keep, for the least money.

Cold and hot spares of a running fleet are those of `relparallel.training.shortage_probability`
(Erlang's loss formula, a binomial tail). Parts on a shelf follow Palm's theorem: with Poisson
failures of rate n / MTBF and a lead time of mean L, the orders under way are Poisson with mean n L
/ MTBF, whatever the distribution of the lead time; S spares are not enough while more than S orders
are under way.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import pdtrc

from chapters.s12._multiple_choice import Options, by_programme
from relparallel._checks import require_number, require_real, require_whole
from relparallel.training import shortage_probability

FloatArray = NDArray[np.float64]
MOST_SPARES: Final = 100_000
FORMULATION: Final = """minimise    sum_i c_i S_i
subject to  sum_i log(1 - P_i(S_i)) >= log({availability:.12g})
            S_i = 0, 1, 2, ...    ({classes} kinds of parts, one binary for each of {levels} stock levels)
where       P_i(S) is the probability that S spares of kind i are not enough ({kind})"""


class SparesPlan(NamedTuple):
    """The cheapest stock that is enough."""

    spares: tuple[int, ...]  # of every kind of part
    shortage: tuple[float, ...]  # probability that they are not enough, by kind
    availability: float  # probability that all of them are enough
    cost: float  # of all spares
    formulation: str  # the programme that was solved


def spares(
    count: ArrayLike,
    mtbf: ArrayLike,
    lead: ArrayLike,
    availability: float,
    *,
    price: ArrayLike = 1.0,
    kind: str = "shelf",
) -> SparesPlan:
    """Cheapest stock of every kind of part so that with probability ``availability`` none is short.

    By kind of part: how many are in use, the mean time between failures of one and until a failed
    one is replaced or repaired [s], and the price of a spare. ``kind``: parts on a "shelf" for a
    fleet that goes on failing, or spares of a job that waits ("cold"), or spares that run and fail
    themselves ("hot").

    One kind of part: the smallest S with P(S) <= 1 - A. Several: a multiple choice with one
    knapsack row, solved to gap 0; stock levels run from what is enough alone to what is enough if
    every kind gets the same share of the shortage, and on while a level still can be cheaper.
    Greedy buying by gain per price only finds the corners of the frontier. Palm 1938; Sherbrooke,
    "METRIC: a multi-echelon technique for recoverable item control", Operations Research 16, 1968;
    Erlang 1917.

    >>> plan = spares([1000, 100], mtbf=[1e8, 5e7], lead=[1e6, 1e6], availability=0.99, price=[1.0, 8.0])
    >>> plan.spares, plan.cost
    ((19, 6), 67.0)
    """
    wanted = require_number(availability=availability, above=0, below=1)
    parts = _parts(count, mtbf, lead, price)
    floors, tops = _levels(parts, kind, wanted)
    short = [
        np.array([_short(part, s, kind) for s in range(low, high + 1)])
        for part, low, high in zip(parts, floors, tops, strict=True)
    ]
    prices = np.array([part[3] for part in parts])
    stock = _cheapest(short, floors, prices, wanted)
    lack = [float(short[i][s - floors[i]]) for i, s in enumerate(stock)]
    return SparesPlan(
        spares=tuple(stock),
        shortage=tuple(lack),
        availability=math.exp(sum(math.log1p(-p) for p in lack)),
        cost=float(prices @ np.array(stock)),
        formulation=FORMULATION.format(
            availability=wanted, classes=len(parts), levels=sum(map(len, short)), kind=kind
        ),
    )


def _parts(count: Any, mtbf: Any, lead: Any, price: Any) -> list[tuple[float, ...]]:
    """Count, MTBF, lead time and price of every kind."""
    count = require_whole(count=count, at_least=1)
    mtbf = require_real(mtbf=mtbf, above=0)
    lead, price = require_real(lead=lead, price=price, at_least=0)
    return [
        tuple(row)
        for row in np.column_stack(np.broadcast_arrays(np.atleast_1d(count), mtbf, lead, price))
    ]


def _short(part: tuple[float, ...], spares: int, kind: str) -> float:
    """Probability that so many spares of a part are not enough."""
    count, mtbf, lead, _ = part
    if kind == "shelf":
        return float(pdtrc(spares, count * lead / mtbf))
    return float(shortage_probability(int(count), spares, 1 / mtbf, lead, kind))


def _levels(
    parts: list[tuple[float, ...]], kind: str, wanted: float
) -> tuple[list[int], list[int]]:
    """Least stock that is enough alone, and most stock that an optimum holds, of every kind."""
    alone = [_enough(part, kind, 1 - wanted) for part in parts]
    shared = [_enough(part, kind, -math.expm1(math.log(wanted) / len(parts))) for part in parts]
    budget = sum(part[3] * s for part, s in zip(parts, shared, strict=True))
    spent = sum(part[3] * s for part, s in zip(parts, alone, strict=True))
    tops = []
    for part, low, fair in zip(parts, alone, shared, strict=True):
        # No more than the whole budget allows beside the least stock of the others; free parts need
        # no bound.
        most = (
            low + int((budget - spent) / part[3] + 1e-9) if part[3] else _enough(part, kind, 1e-15)
        )
        tops.append(max(fair, min(most, _enough(part, kind, 1e-15))))
    return alone, tops


def _enough(part: tuple[float, ...], kind: str, allowed: float) -> int:
    """Smallest stock whose shortage is allowed, by doubling and bisection."""
    low, high = -1, 1
    while _short(part, high, kind) > allowed:
        low, high = high, 2 * high
        if high > MOST_SPARES:
            raise ValueError(
                f"lead must need at most {MOST_SPARES} spares, got {part[2]} s for {part[0]:g}"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _short(part, middle, kind) <= allowed else (middle, high)
    return high


def _cheapest(
    short: list[FloatArray], floors: list[int], prices: FloatArray, wanted: float
) -> list[int]:
    """Stock of every kind: one level each, least cost, enough together."""
    if len(short) == 1:
        return [floors[0] + int(np.argmax(short[0] <= 1 - wanted))]
    options = [
        Options(
            use=np.log1p(-levels)[:, None] / math.log(wanted), gain=-price * np.arange(levels.size)
        )
        for price, levels in zip(prices.tolist(), short, strict=True)
    ]
    (picks,) = by_programme(options, np.ones((1, 1)), ("shortage",))
    return [low + pick for low, pick in zip(floors, picks, strict=True)]
