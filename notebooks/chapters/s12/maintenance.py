"""When to replace a part before it fails, and how often to look whether it has."""

import math
from typing import Final, NamedTuple

import numpy as np
import scipy

from relparallel._checks import require_choice, require_number

STEPS: Final = 1500  # of the renewal equation
FEW: Final = 200  # steps up to the optimum, below which they are made shorter


class MaintenancePlan(NamedTuple):
    """The interval of least cost per time, beside doing nothing."""

    interval: float  # T [s]; infinite where planned replacement never pays
    cost_rate: float  # per second at this interval
    unplanned: float  # cost per second without any plan


def replacement_interval(
    shape: float, scale: float, planned: float, failure: float, policy: str = "age"
) -> MaintenancePlan:
    """The interval at which replacing a part of Weibull life costs least in the long run.

    The Weibull distribution F = 1 - S has the shape b, from 0.1 to 50 (a part ages if it is above
    1), and the ``scale`` eta [s]; c_p is the price of a ``planned`` replacement, c_f of a
    ``failure``, or of a minimal repair. Minimised over T is, by ``policy``,

        age:     (c_p S(T) + c_f F(T)) / integral_0^T S: replace at age T
        block:   (c_p + c_f M(T)) / T, M = F + M * dF: replace every T, and at every failure
        minimal: (c_p + c_f (T/eta)^b) / T: replace every T, repair in between

    Age: h(T) integral_0^T S - F(T) = c_p / (c_f - c_p), whose left side grows with T for b > 1; the
    integral is an incomplete gamma function. Minimal: T = eta (c_p / (c_f (b - 1)))^(1/b), in
    closed form. Block: M by trapezoids on the renewal equation, and the least of its local minima
    up to three scales, compared with M(T)/T -> 1/mean. Infinite where waiting for the failure costs
    least.

    Barlow and Hunter, "Optimum preventive maintenance policies", Operations Research 8, 1960.
    Barlow and Proschan, "Mathematical Theory of Reliability", 1965, chapters 3 and 4.

    >>> replacement_interval(shape=0.7, scale=1e7, planned=1.0, failure=10.0).interval
    inf
    >>> replacement_interval(shape=2.0, scale=1e7, planned=1.0, failure=4.0, policy="minimal").interval
    5000000.0
    """
    b, eta = require_number(shape=shape, at_least=0.1, at_most=50.0), scale
    c_p, c_f = require_number(planned=planned, failure=failure, above=0)
    require_choice(("age", "block", "minimal"), policy=policy)
    waiting = c_f / math.gamma(1 + 1 / b)  # per scale
    if policy == "minimal":
        time = (c_p / (c_f * (b - 1))) ** (1 / b) if b > 1 else math.inf
        cost = c_p / time + c_f * time ** (b - 1) if b > 1 else c_f if b == 1 else 0.0
        waiting = math.inf if b > 1 else cost
    else:
        time, cost = (_age if policy == "age" else _block)(b, c_p, c_f)
    if not cost < waiting:
        time, cost = math.inf, waiting
    return MaintenancePlan(time * eta, cost / eta, waiting / eta)


def _age(b: float, c_p: float, c_f: float) -> tuple[float, float]:
    """Optimum age in scales, and its cost per scale."""
    if b <= 1 or c_f <= c_p:
        return math.inf, math.inf

    def up(t: float) -> float:  # integral of the survival function
        return float(math.gamma(1 + 1 / b) * scipy.special.gammainc(1 / b, t**b))

    def slope(t: float) -> float:
        return float(b * t ** (b - 1) * up(t) + math.expm1(-(t**b)) - c_p / (c_f - c_p))

    high = 1.0
    while slope(high) < 0:
        high *= 2
        if high > 1e6:
            return math.inf, math.inf
    best = float(scipy.optimize.brentq(slope, 0.0, high, xtol=1e-200, rtol=1e-14, maxiter=1000))
    return best, (c_f - c_p) * b * best ** (b - 1)


def _block(b: float, c_p: float, c_f: float) -> tuple[float, float]:
    """Optimum block in scales, its cost per scale: cheap replacements are due long before one."""
    horizon = 3.0
    while True:
        best, cost, low = _block_within(horizon, b, c_p, c_f)
        if low >= FEW or horizon < 1e-100:
            return best, cost
        horizon *= 4 * (low + 1) / STEPS


def _block_within(horizon: float, b: float, c_p: float, c_f: float) -> tuple[float, float, int]:
    """Optimum block up to a horizon in scales, its cost per scale, and the step that it lies at."""
    times = np.linspace(0.0, horizon, STEPS + 1)
    life = -np.expm1(-(times**b))
    middle = -np.expm1(-((times + times[1] / 2) ** b))  # F half a step further
    renewals = np.zeros(STEPS + 1)
    for i in range(1, STEPS + 1):  # M(t_i) = F(t_i) + sum_j F(t_i - t_(j-1/2)) dM_j
        past = np.diff(renewals[:i]) @ middle[i - 1 : 0 : -1]
        renewals[i] = (life[i] + past - middle[0] * renewals[i - 1]) / (1 - middle[0])
    rate = (c_p + c_f * renewals[1:]) / times[1:]
    low = int(rate.argmin())
    if low in (0, STEPS - 1):
        return float(times[1 + low]), float(rate[low]), low
    # the parabola of three points, in steps: squares of seconds would leave the floats
    step = times[1]
    bend, slope, least = np.polyfit(np.arange(low, low + 3), rate[low - 1 : low + 2], 2)
    best = -slope / (2 * bend)
    return float(best * step), float(least + slope * best / 2), low


def inspection_interval(rate: float, inspection: float, downtime: float) -> MaintenancePlan:
    """The interval at which looking for hidden failures costs least in the long run.

    A part fails ``rate`` = lam times a second, which nobody sees; a look has the price c_i
    (``inspection``) and renews the part, and every second that it is down unseen costs c_d
    (``downtime``): minimise over T ``c_i / T + c_d (1 - (1 - exp(-lam T)) / (lam T))``. The
    derivative vanishes where (1 + y) exp(-y) = 1 - c_i lam / c_d for y = lam T, which is Lambert's
    function: y = -1 - W_-1(-(1 - c_i lam / c_d) / e). For small y it is Young's interval sqrt(2 c_i
    / (c_d lam)): an inspection is to hidden failures what a checkpoint is to lost work. Infinite
    where a look costs more than it can save. Barlow and Proschan, "Mathematical Theory of
    Reliability", 1965, chapter 4.3. Young 1974.

    >>> plan = inspection_interval(rate=1e-7, inspection=50.0, downtime=1.0)
    >>> round(plan.interval), round((2 * 50 / 1e-7) ** 0.5)
    (31656, 31623)
    """
    lam, c_i, c_d = require_number(rate=rate, inspection=inspection, downtime=downtime, above=0)
    saved = 1 - c_i * lam / c_d
    if saved <= 0:
        return MaintenancePlan(math.inf, cost_rate=c_d, unplanned=c_d)
    y = -1 - float(scipy.special.lambertw(-saved / math.e, -1).real)
    # where Lambert's function has lost digits
    y = y if y > 1e-5 else math.sqrt(2 * c_i * lam / c_d)
    unseen = 1 + math.expm1(-y) / y if y > 1e-5 else y / 2
    return MaintenancePlan(y / lam, c_i * lam / y + c_d * unseen, unplanned=c_d)
