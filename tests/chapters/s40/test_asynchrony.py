"""Waiting workers: chain, closed forms, simulated events, recursion; delays and their effects."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters import descent, s40
from chapters.s40.staleness import spectral_radius

few = settings(max_examples=40, deadline=None)
clocks = st.integers(1, 40)
crews = st.integers(1, 6)
bounds = st.one_of(st.none(), st.integers(0, 6))


def times(count: int, workers: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).exponential(size=(count, workers)) + 1e-9


@pytest.mark.parametrize("s", [0, 3])
def test_two_workers_advance_at_the_closed_form(s):
    exact = s40.ssp_throughput(workers=2, staleness=s)
    assert exact == pytest.approx((2 * s + 2) / (2 * s + 3), rel=1e-12)
    simulated = s40.asynchronous_run(times(40_000, 2, s), s).throughput
    assert simulated == pytest.approx(exact, rel=0.01)


@given(s=st.integers(0, 8), slow=st.floats(0.05, 20))
@few
def test_two_unequal_workers_are_a_walk_between_two_walls(s, slow):
    """The lead takes 2 s + 3 values, each (rate/other rate) times as likely as the one before."""
    chance = slow ** np.arange(-(s + 1), s + 2)
    chance /= chance.sum()
    expected = (slow * (1 - chance[-1]) + 1 - chance[0]) / 2
    assert s40.ssp_throughput(2, s, rates=[slow, 1.0]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("workers", [1, 2, 5, 20])
def test_without_slack_a_clock_lasts_as_long_as_the_slowest_of_all(workers):
    assert s40.ssp_throughput(workers, 0) == pytest.approx(
        1 / np.sum(1 / np.arange(1, workers + 1))
    )


@given(
    workers=st.integers(2, 4), s=st.integers(0, 3), fail=st.floats(0, 2), repair=st.floats(0.1, 5)
)
@few
def test_more_slack_is_faster_and_failures_are_slower(workers, s, fail, repair):
    rate = partial(s40.ssp_throughput, workers, failure_rate=fail, repair_rate=repair)
    up = repair / (repair + fail)
    assert rate(s) < rate(s + 1) < rate(None) == pytest.approx(up)
    assert rate(s) <= s40.ssp_throughput(workers, s) * (1 + 1e-12)
    assert s40.ssp_throughput(1, s, 3.0, fail, repair) == pytest.approx(3 * up)


def test_workers_named_one_by_one_and_interchangeable_ones_agree():
    whole = s40.ssp_throughput(3, 2, 1.0, failure_rate=0.2, repair_rate=0.5)
    apart = s40.ssp_throughput(3, 2, [1.0, 1.0, 1.0 + 1e-12], failure_rate=0.2, repair_rate=0.5)
    assert whole == pytest.approx(apart, rel=1e-9)


def events(workers: int, s: int, fail: float, repair: float, count: int) -> float:
    """Rate of the workers, drawn event by event."""
    rng, clock, up = np.random.default_rng(2), np.zeros(workers, int), np.ones(workers, bool)
    elapsed = 0.0
    for _ in range(count):
        rates = np.concatenate([up * (clock - clock.min() <= s), fail * up, repair * ~up])
        elapsed += rng.exponential(1 / rates.sum())
        what, worker = divmod(int(rng.choice(3 * workers, p=rates / rates.sum())), workers)
        clock[worker] += what == 0
        up[worker] = what != 1 if what else up[worker]
    return clock.sum() / workers / elapsed


def test_the_chain_with_failures_is_what_happens_event_by_event():
    exact = s40.ssp_throughput(2, 3, failure_rate=0.5, repair_rate=0.5)
    assert events(2, 3, 0.5, 0.5, 150_000) == pytest.approx(exact, rel=0.01)


@given(seed=st.integers(0, 99), count=clocks, workers=crews, s=bounds)
@few
def test_a_worker_starts_as_soon_as_the_bound_lets_it(seed, count, workers, s):
    spent = times(count, workers, seed)
    run = s40.asynchronous_run(spent, s)
    start = run.finish - spent
    for c in range(count):
        for p in range(workers):
            own = run.finish[c - 1, p] if c else 0.0
            others = run.finish[c - s - 1].max() if s is not None and c > s else 0.0
            assert start[c, p] == pytest.approx(max(own, others))
    assert run.read == pytest.approx(start)


@given(seed=st.integers(0, 99), workers=crews, s=st.integers(0, 4))
@few
def test_a_cached_copy_holds_every_clock_that_the_bound_asks_for(seed, workers, s):
    run = s40.asynchronous_run(times(40, workers, seed), s, fetch=None)
    fresh = s40.asynchronous_run(times(40, workers, seed), s)
    assert run.finish == pytest.approx(fresh.finish)
    for c in range(s + 1, 40):
        assert np.all(run.read[c] >= run.finish[c - s - 1].max() - 1e-12)
    assert len(np.unique(run.read)) <= len(np.unique(fresh.read))
    assert np.all(run.delays >= fresh.delays)


@given(seed=st.integers(0, 99), workers=crews, s=st.integers(0, 4))
@few
def test_a_bound_limits_the_updates_that_are_missed(seed, workers, s):
    """Others are at most s clocks ahead and s behind what is seen; a copy also lacks s own ones."""
    spent = times(40, workers, seed)
    spent[:, 0] *= 50
    others = (workers - 1) * (2 * s + 1)
    assert s40.asynchronous_run(spent, s).delays.max() <= others
    copied = s40.asynchronous_run(spent, s, fetch=None).delays
    assert copied.max() <= others + s


def test_the_regret_of_stale_steps_is_within_the_theorem():
    """Theorem 1 of Ho et al. on |w - c|: L = 1, and 2 F**2 = 1, the largest square distance."""
    workers = 5
    spent = times(300, workers, 7) * [9, 1, 1, 1, 1]
    centres = np.random.default_rng(8).uniform(-1, 1, spent.size)
    best = np.median(centres)
    for s in (0, 2, 8):
        late = s40.asynchronous_run(spent, s, fetch=None).delays
        step = (0.5 / (2 * (s + 1) * workers * np.arange(1, spent.size + 1))) ** 0.5
        drawn = iter(centres)
        path = descent.delayed_descent(
            lambda w, _, drawn=drawn: np.sign(w - next(drawn)), [best + 1], step, late[:, None]
        )
        read = path[np.arange(spent.size) - late, 0]
        regret = np.sum(np.abs(read - centres) - np.abs(best - centres))
        assert np.abs(path - best).max() <= 1
        assert 0 < regret <= 4 * 0.5**0.5 * (2 * (s + 1) * workers * spent.size) ** 0.5


def test_asynchronous_workers_miss_one_update_of_each_other_worker():
    """Whatever the clock times: between two updates of a worker others make P - 1 on average."""
    for seed, spread in ((1, 0.1), (2, 3.0)):
        spent = np.random.default_rng(seed).lognormal(sigma=spread, size=(4000, 6))
        spent /= spent.mean(axis=0)
        delays = s40.asynchronous_run(spent).delays
        assert delays.mean() == pytest.approx(5, rel=0.02)
    assert s40.asynchronous_run(times(4000, 6, 1)).delays.var() == pytest.approx(5 * 6, rel=0.06)


@given(seed=st.integers(0, 99), rate=st.floats(0.01, 0.5))
@few
def test_a_run_with_a_delay_for_every_update_is_the_recursion(seed, rate):
    delays = s40.asynchronous_run(times(15, 3, seed)).delays
    path = descent.delayed_descent(
        s40.quadratic_gradient(1.0), [1.0, 2.0], np.full(45, rate), delays[:, None]
    )
    weights = [1.0]
    for t, delay in enumerate(delays):
        assert delay <= t
        weights.append(weights[-1] - rate * weights[t - delay])
    assert path[:, 0] == pytest.approx(np.array(weights))
    assert path[:, 1] == pytest.approx(2 * np.array(weights))


def test_rows_of_delays_that_do_not_fit_are_refused():
    run = partial(descent.delayed_descent, s40.quadratic_gradient(1.0), [1.0], np.ones(4))
    with pytest.raises(
        ValueError, match="forward_delay must have one row for each of 4 updates, got 3"
    ):
        run(np.ones((3, 1)))
    with pytest.raises(
        ValueError, match="staleness must give at most 5000 states with 12 workers, got 40"
    ):
        s40.ssp_throughput(12, 40)


@given(workers=st.integers(1, 40), curvature=st.floats(0.1, 10))
@few
def test_the_mean_of_asynchronous_runs_is_stable_up_to_its_closed_form(workers, curvature):
    method = partial(s40.asynchronous_taps, workers=workers, curvature=curvature)
    step = 2 * (2 * workers - 1) / curvature
    assert spectral_radius(method(0.999 * step)) < 1 < spectral_radius(method(1.001 * step))


def test_the_mean_over_runs_with_random_workers_is_that_of_the_taps():
    rng, workers, rate, runs, updates = np.random.default_rng(3), 4, 0.3, 20_000, 12
    seen, weight = np.ones((runs, workers)), np.ones(runs)  # what every worker has read
    taps, mean = s40.asynchronous_taps(rate, workers), [1.0, 1.0 - rate]
    for _ in range(updates):
        who = rng.integers(workers, size=runs)
        weight = weight - rate * seen[np.arange(runs), who]
        seen[np.arange(runs), who] = weight
        mean.append(taps[0] * mean[-1] + taps[1] * mean[-2])
    assert weight.mean() == pytest.approx(mean[updates], abs=5 * weight.std() / runs**0.5)
