"""Intervals from few failures: they hold what is true as often as they say, and rivals do not."""

import numpy as np
import pytest
from scipy.stats import chi2

from relparallel.training import FailureLog
from relparallel.training.failure_rates import counted_rate, counted_repair
from relparallel.units import DAY, HOUR

SPAN = 90 * DAY


def log(start, repair=0.0, still=None, **more):
    start = np.asarray(start, dtype=float)
    order = np.argsort(start)
    end = np.broadcast_to(start + repair, start.shape)[order]
    given = {"begin": 0.0, "finish": SPAN, "overlaps": "keep", "population": 10**6} | more
    return FailureLog(
        node=[f"n{k}" for k in range(start.size)],
        start=start[order].tolist(),
        end=end.tolist(),
        cause=["x"] * start.size,
        still=still,
        **given,
    )


def test_two_failures_of_64_nodes_in_ninety_days():
    """0.347 per 1000 node-days, 0.06 to 1.1 (chi-squared quantiles of 4 and 6 degrees)."""
    found = log([60 * DAY, 61 * DAY], population=64).rate_interval()
    per = 1000 * DAY
    assert found.value * per == pytest.approx(2 / 5.76)
    bounds = chi2.ppf([0.05, 0.95], [4, 6]) / 2 / 5.76
    assert (found.lower * per, found.upper * per) == pytest.approx(tuple(bounds))
    wider = log([60 * DAY, 61 * DAY], population=64).rate_interval(0.99)
    assert wider.lower < found.lower < found.upper < wider.upper
    with pytest.raises(ValueError, match="level must be a number > 0 and < 1, got 1"):
        log([DAY]).rate_interval(1.0)


def test_no_failure_is_an_answer():
    found = log([], population=64).rate_interval()
    assert found.value * 64 * SPAN == pytest.approx(0.5)
    assert (found.lower, found.upper * 64 * SPAN) == (0.0, pytest.approx(-np.log(0.05)))
    assert "no failure, mean of the posterior" in found.method
    (entry,) = log([], population=64).classes()
    assert (entry.level, entry.rate, entry.repair) == ("node", pytest.approx(found.value), None)
    assert "0 failures of 64 nodes in 90 days" in repr(log([], population=64))


def test_intervals_of_rates_hold_the_rate():
    """Garwood's at least as often as it says; of the posterior, over rates, as often; a normal one not."""
    rng = np.random.default_rng(0)
    garwood, posterior, normal = [], [], []
    for many in rng.uniform(3, 30, 1500):
        one = log(rng.uniform(0, SPAN, rng.poisson(many)))
        truth, found = many / (10**6 * SPAN), one.rate_interval()
        garwood.append(found.lower <= truth <= found.upper)
        low, high = counted_rate(one).value * counted_rate(one).rates(np.array([0.05, 0.95]))
        posterior.append(low <= truth <= high)
        normal.append(abs(one.start.size - many) < 1.645 * np.sqrt(one.start.size))
    assert 0.9 <= np.mean(garwood) < 0.96
    assert 0.88 < np.mean(posterior) < 0.93
    assert np.mean(normal) < np.mean(posterior)


def test_few_failures_come_together_where_chance_hardly_gives_that():
    alone = log([10 * DAY, 11 * DAY]).rate_interval()
    assert counted_rate(log([10 * DAY, 11 * DAY])).number == 2  # one day in ninety is chance
    week = np.arange(10) * 0.5 * DAY + 10 * DAY
    spread = counted_rate(log(week))
    assert spread.number < 2
    assert log(week).rate_interval().upper > 2.5 * 10 / 2 * alone.value
    event = log(week, incident=np.zeros(10, dtype=np.int64))  # one that took ten nodes
    assert (counted_rate(event).number, event.rate) == (1, pytest.approx(event.outage_rate / 10))


def test_a_node_that_is_down_cannot_fail():
    """Nodes down by the rate and the mean repair are those of the log; a rate by the window is less."""
    rng = np.random.default_rng(1)
    start = rng.uniform(0, 60 * DAY, 40)
    one = log(start, rng.exponential(10 * DAY, 40), population=50)
    load = one.rate * (np.minimum(one.end, SPAN) - one.start).mean()
    down = one.down_distribution()
    mean = down @ np.arange(down.size)
    assert 50 * load / (1 + load) == pytest.approx(mean)
    window = 40 / (50 * SPAN) / one.rate * load
    assert 50 * window / (1 + window) < 0.95 * mean


@pytest.mark.parametrize("law", ["exponential", "lognormal", "constant"])
def test_repairs_that_have_not_ended_count_as_long_as_they_lasted(law):
    """Rivals: those that ended alone; all time under repair over those, where all last the same."""
    rng, found, ended, total = np.random.default_rng(2), [], [], []
    for _ in range(300):
        start = rng.uniform(0, SPAN, 15)
        took = {
            "exponential": rng.exponential(6 * DAY, 15),
            "lognormal": rng.lognormal(np.log(6 * DAY) - np.log(5) / 2, np.log(5) ** 0.5, 15),
            "constant": np.full(15, 6 * DAY) + rng.uniform(-1, 1, 15),
        }[law]
        still = start + took > SPAN
        end = np.where(still, np.nan, took)
        if still.all():
            continue
        order = np.argsort(start)
        one = log(start, end, still=still[order])
        found.append(one.repair_of("x") / (6 * DAY))
        ended.append(took[~still].mean() / (6 * DAY))
        total.append(np.minimum(took, SPAN - start).sum() / (~still).sum() / (6 * DAY))
    error = 4 * np.std(found) / len(found) ** 0.5
    assert abs(np.mean(found) - 1) < error + {"lognormal": 0.1}.get(law, 0.0)
    assert abs(np.mean(ended) - 1) > abs(np.mean(found) - 1) or law == "constant"
    assert abs(np.mean(total) - 1) > 0.02 or law != "constant"


def test_a_tail_by_hand():
    """Ended after 2 and 4 h, one still down after 30: 2 + 2 2/3 + 26/3, and 18 more of a third."""
    one = log([0.0, HOUR, SPAN - 30 * HOUR], np.array([2 * HOUR, 4 * HOUR, np.nan]))
    assert one.still.tolist() == [False, False, True]
    assert one.repair_of("x") == pytest.approx((2 + 4 / 3 + 26 / 3 + 18 / 3) * HOUR)
    assert log([DAY], np.nan).repair_of("x") is None


def test_intervals_of_mean_repairs_hold_the_mean():
    rng, inside, wide = np.random.default_rng(3), [], []
    for many in rng.integers(3, 30, 800):
        found = counted_repair(log(rng.uniform(0, SPAN / 2, many), rng.exponential(DAY, many)))
        low, high = found.value * found.means(np.array([0.05, 0.95]))
        inside.append(low <= DAY <= high)
        wide.append(high / low)
    assert 0.88 < np.mean(inside) < 0.95
    same = counted_repair(log([DAY, 2 * DAY], DAY))  # as somebody gave it
    assert same.means(np.array([0.05, 0.95])).tolist() == [1, 1]
