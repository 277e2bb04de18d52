import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, kstest

from relparallel.training import FailureLog, read_failure_log
from relparallel.training._independent_logs import independent
from relparallel.training.failure_readers import read_lanl
from relparallel.units import DAY, HOUR

SPAN = 200 * DAY
DATA = pytest.mark.skipif(
    "RELPARALLEL_DATA" not in os.environ, reason="RELPARALLEL_DATA names no folder with data"
)

COLUMNS = ("node", "start", "end", "cause", "resumed", "incident", "still")


def read_outages():
    path = Path(os.environ["RELPARALLEL_DATA"]) / "data/failures/infinitehbd/outages.csv"
    names = {"start": "start_days", "end": "end_days", "cause": "class", "clock": "d"}
    ignore = ["level", "description"]
    return read_failure_log(path, population=400, **names, ignore=ignore, overlaps="merge")


def read_los_alamos(system):
    name = "data/lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"
    return read_lanl(Path(os.environ["RELPARALLEL_DATA"]) / name, system)


def made(rows, population, unit=0.0):
    """A log of (node, start, end), with starts told in whole units of time."""
    node, start, end = (list(column) for column in zip(*sorted(rows), strict=True))
    start = np.floor(np.array(start) / unit) * unit if unit else start
    cause = ["x"] * len(node)
    times = {"begin": 0.0, "finish": SPAN, "overlaps": "merge"}
    return FailureLog(node=node, start=start, end=end, cause=cause, population=population, **times)


def lives(rng, name, rate, repair):
    """A node that fails at a rate whenever it is up, and is repaired."""
    now = rng.exponential(1 / rate)
    while now < SPAN:
        down = rng.lognormal(np.log(repair) - 1.4**2 / 2, 1.4)
        yield name, now, now + down
        now += down + rng.exponential(1 / rate)


def fleet(rng, rates, repair=2 * DAY, **given):
    rows = [row for k, rate in enumerate(rates) for row in lives(rng, f"n{k}", rate, repair)]
    return made(rows, len(rates), **given)


def equal(rng, nodes=60, failures=40, **given):
    return fleet(rng, np.full(nodes, failures / (nodes * SPAN)), **given)


def exponential_gaps(log):
    """The rival: Kolmogorov and Smirnov's test of the gaps against an exponential distribution."""
    return kstest(log.gaps() / log.gaps().mean(), "expon").pvalue


def refuted(log, **given):
    return log.report(np.random.default_rng(5), **given).refuted


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "repair"), [(60, 2 * DAY), (10, 8 * DAY)])
def test_of_independent_logs_one_in_a_hundred_is_refuted(nodes, repair):
    """The second fleet has a sixth of its nodes down."""
    rng = np.random.default_rng(11)
    found = [equal(rng, nodes, repair=repair).report(rng, replications=499).p for _ in range(300)]
    for level in (0.01, 0.2):
        assert sum(p <= level for p in found) <= binom.ppf(0.999, 300, level)
    assert sum(p <= 0.2 for p in found) >= binom.ppf(0.001, 300, 0.12)


def bursts(rng):
    """Every fourth failure takes two more nodes within half an hour."""
    rows = []
    for start in np.sort(rng.uniform(0, SPAN - HOUR, 80)):
        many = 3 if rng.random() < 0.25 else 1
        for name in rng.choice(200, many, replace=False):
            begin = start + rng.uniform(0, 0.5 * HOUR)
            rows.append((f"n{name}", begin, begin + rng.exponential(HOUR)))
    return made(rows, 200)


def waves(rng):
    """Ten nodes of a rack go within a day, thrice."""
    rows = []
    for start in [*rng.uniform(0, SPAN - DAY, 60), *np.repeat(rng.uniform(0, SPAN - DAY, 3), 10)]:
        begin = start + rng.uniform(0, DAY)
        rows.append((f"n{rng.integers(200)}", begin, begin + 2 * DAY))
    return made(rows, 200)


def infant(rng):
    """The first fifth of the time fails four times as often."""
    starts = np.append(rng.uniform(0, SPAN / 5, 80), rng.uniform(SPAN / 5, SPAN, 80))
    return made([(f"n{rng.integers(400)}", s, s + rng.exponential(DAY)) for s in starts], 400)


def lemons(rng):
    """One node in ten fails ten times as often."""
    return fleet(rng, np.repeat([10.0, 1.0], [10, 90]) / SPAN, repair=HOUR)


@pytest.mark.parametrize(
    ("log", "seen", "unseen", "rival"),
    [
        (bursts, "starts together", {"trend", "unequal nodes"}, True),
        (waves, "nodes down, drift kept", {"unequal nodes"}, True),
        (infant, "trend", {"starts together", "unequal nodes"}, False),
        (lemons, "unequal nodes", {"starts together", "trend", "nodes down"}, False),
    ],
)
def test_a_finding_names_what_is_refuted(log, seen, unseen, rival):
    """A test of exponential gaps takes bursts for waves, often misses drift, and always lemons."""
    logs = [log(np.random.default_rng(seed)) for seed in range(5)]
    found = [refuted(one, replications=499) for one in logs]
    assert sum(seen in names for names in found) >= 4
    assert not unseen & {name for names in found for name in names}
    assert (sum(exponential_gaps(one) < 0.01 for one in logs) >= 4) == rival


def test_starts_told_to_the_day_are_no_shared_events():
    """The rival refutes every log with rounded starts."""
    rng = np.random.default_rng(3)
    logs = [equal(rng, failures=120, unit=DAY) for _ in range(12)]
    found = [log.report(rng, replications=499) for log in logs]
    assert sum("starts together" in each.refuted for each in found) <= 1
    assert found[0].findings[0].expected > 0.3  # of one day; at random moments 0.05
    assert all(exponential_gaps(log) < 0.01 for log in logs)


def test_layouts_have_the_outages_of_the_log_and_no_two_at_once_on_a_node():
    rng = np.random.default_rng(2)
    log = equal(rng, 10, 80, repair=8 * DAY)
    own = log._outages()[1]
    for drift in (False, True):
        (drawn,) = independent(own, rng, 50, drift=drift)
        for start, end, node in zip(drawn.start, drawn.end, drawn.node, strict=True):
            assert np.allclose(np.sort(end - start), np.sort(log.repairs))
            order = np.lexsort((start, node))
            same = np.diff(node[order]) == 0
            assert (start[order][1:] >= end[order][:-1])[same].all()
            if drift:
                twelfths = np.arange(13) * SPAN / 12
                counts = [np.histogram(each, twelfths)[0].tolist() for each in (start, log.start)]
                assert counts[0] == counts[1]


@pytest.mark.slow
def test_the_layouts_are_those_of_a_fleet_that_is_often_down():
    """Nodes down vary as the binomial distribution says, not as Poisson's with uniform starts."""
    rng = np.random.default_rng(4)
    simulated, laid = [], []
    for _ in range(40):
        log = equal(rng, 10, 80, repair=8 * DAY)
        found = log.report(rng, replications=499).findings
        dispersion, nodes = found[2], found[4]
        simulated.append((dispersion.value, nodes.value))
        laid.append((dispersion.expected, nodes.expected))
    difference = np.subtract(simulated, laid)
    assert (np.abs(difference.mean(0)) < 4 * difference.std(0) / np.sqrt(40)).all()
    assert np.mean(laid, axis=0)[0] < 0.85  # Poisson: 1


def test_a_log_by_hand():
    """Two nodes of four: together for 10 days of 100, one alone for 20."""
    start, end = np.array([10.0, 20.0, 60.0]) * DAY, np.array([30.0, 40.0, 60.0]) * DAY
    rows = {"node": ["a", "b", "a"], "cause": ["x"] * 3, "begin": 0.0, "finish": 100 * DAY}
    log = FailureLog(start=start, end=end, population=4, **rows)
    assert log.down_distribution() == pytest.approx([0.7, 0.2, 0.1])
    assert log.notes == ("1 outages take no time: they stop a job, and no node is down",)
    found = log.report(np.random.default_rng(0))
    assert found.rate.value == pytest.approx(3 / (360 * DAY))  # 40 days of which nodes were down
    assert (found.mean_down, found.variance_down) == pytest.approx((0.4, 0.6 - 0.16))
    assert found.early == pytest.approx(2 / 25 / (1 / 75))
    assert found.repair.value == pytest.approx(40 / 3 * DAY)
    assert (found.median_repair, found.late_repair) == pytest.approx((20 * DAY, 20 * DAY))
    assert found.to_frame()["value"].to_dict() == pytest.approx(
        {
            "starts together": 0.0,
            "nodes down, drift kept": 0.44 / 0.4,
            "nodes down": 0.44 / 0.4,
            "trend": abs(0.3 - 0.5) * 6,
            "unequal nodes": (5 / 4 - 9 / 16) / (3 / 4),
        }
    )
    assert found.verdict == "independent: not refuted at 1 %; 3 failures are too few to say"
    assert found.verdict in found.explain()
    assert "it is not shown that the rate drifts" in found.explain()
    together = log.report(np.random.default_rng(0), window=10 * DAY).findings[0]
    assert together.value == pytest.approx(2 / 3)


def test_what_a_log_does_not_tell_is_said_by_name():
    start = np.arange(1.0, 41) * DAY
    rows = {"node": [f"n{k % 8}" for k in range(40)], "cause": ["x"] * 40, "start": start}
    unknown = FailureLog(**rows, end=np.full(40, np.nan), population=50)
    found = unknown.report(np.random.default_rng(0))
    assert [each.name for each in found.findings] == ["starts together", "trend", "unequal nodes"]
    assert found.mean_down is None
    assert found.repair is None
    assert "nodes down and repairs are not known; give repair=" in found.explain()
    for ask in (found.plot, unknown.down_distribution):
        with pytest.raises(ValueError, match="end must be known"):
            ask()
    some = FailureLog(**rows, end=np.where(start < 20 * DAY, start + HOUR, np.nan), population=50)
    found = some.report(np.random.default_rng(0))
    assert "21 outages have no end and do not count for repairs" in found.explain()
    assert found.repair.value == pytest.approx(HOUR)
    # the last failures of all eight nodes go on until the window ends
    assert found.down[-1] == 7
    many = FailureLog(**{**rows, "node": [f"n{k}" for k in range(40)]}, end=start, population=40)
    said = "every node failed, of equal ones 15 would not have: population= is the number"
    assert said in many.report(np.random.default_rng(0)).explain()
    with pytest.raises(ValueError, match="start must hold failures at two moments, got 1 row"):
        replace(some, **{name: getattr(some, name)[:1] for name in COLUMNS},
                finish=None, begin=None).report(np.random.default_rng(0))  # fmt: skip
    with pytest.raises(ValueError, match=r"replications must be an integer in \[499, 1000000\]"):
        some.report(np.random.default_rng(0), replications=99)
    with pytest.raises(TypeError, match="rng must be Generator"):
        some.report(0)
    with pytest.raises(ValueError, match="window must be a number >= 0"):
        some.report(np.random.default_rng(0), window=-1.0)


def test_the_picture_shows_the_log_and_the_band_of_independent_failures():
    log = waves(np.random.default_rng(0))
    found = log.report(np.random.default_rng(1))
    assert found.plot().get_xlabel() == "time [days]"
    inside = (found.band[0] <= found.down) & (found.down <= found.band[1])
    assert 0.5 < inside.mean() < 0.99
    at = np.array([((log.start <= t) & (log.end > t)).sum() for t in found.moments])
    assert np.array_equal(at, found.down)


@pytest.mark.slow
def test_the_interval_of_the_rate_holds_it_also_where_failures_come_together():
    """Poisson's interval is too narrow there."""
    inside, poisson = 0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        starts = np.repeat(rng.uniform(0, SPAN, rng.poisson(40)), 4)
        names = [f"n{k}" for k in rng.integers(10**6, size=starts.size)]
        log = made([(n, s, s) for n, s in zip(names, starts, strict=True)], 10**6)
        rate = log.report(rng, level=0.9, replications=99).rate
        truth = 160 / (10**6 * SPAN)
        inside += rate.lower <= truth <= rate.upper
        poisson += abs(starts.size - 160) < 1.96 * np.sqrt(starts.size)
    assert inside >= binom.ppf(0.001, 100, 0.93)
    assert poisson < 80


@pytest.mark.slow
@DATA
def test_real_logs_refute_independent_failures():
    found = read_outages().report(np.random.default_rng(1))
    assert (found.mean_down, found.variance_down) == pytest.approx((9.37, 53.3), rel=0.01)
    assert found.refuted == (
        "starts together",
        "nodes down, drift kept",
        "nodes down",
        "unequal nodes",
    )
    constant = found.findings[2]
    assert (constant.lower, constant.upper) == pytest.approx((0.64, 1.77), rel=0.1)
    for system in (8, 18, 20):
        names = read_los_alamos(system).report(np.random.default_rng(1), replications=499).refuted
        assert {"starts together", "nodes down", "unequal nodes"} <= {*names}


@DATA
def test_the_outages_of_a_real_log_are_replayed():
    log = read_outages()
    assert "14 outages take no time: they stop a job, and no node is down" in log.notes
    assert len(log.records()) == 582
    share = log.down_distribution()
    assert share[34:].sum() < 1e-3 < share[33:].sum()  # 33 spares, where the formula has 19
    assert share[20:].sum() == pytest.approx(0.158, rel=0.01)
