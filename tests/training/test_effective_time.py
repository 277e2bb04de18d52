import numpy as np
import pytest
from hypothesis import given, strategies as st

import relparallel as rp
from pace import pace
from relparallel.training import (
    checkpoint_interval,
    effective_training_time_ratio,
    optimal_training_time_ratio,
)
from relparallel.training.checkpointing import expected_segment_time
from rollback_simulation import renewal_cumulants

DAY = 86400.0
mtbfs, intervals, small = st.floats(1e2, 1e6), st.floats(1e1, 1e4), st.floats(0.0, 1e3)


def simulated_shares(rng, runs, horizon, *, mtbf, interval, checkpoint, restart, down):
    """Saved work over the horizon in independent runs, failure by failure."""
    draws = int(1.3 * horizon / mtbf) + 400
    exposed = rng.exponential(mtbf, (runs, draws))  # from a restart's begin to the next failure
    ends = np.cumsum(exposed + down, axis=1)
    assert (ends[:, -1] > horizon).all()
    begins = ends - exposed - down
    seen = np.clip(np.minimum(exposed, horizon - begins) - restart, 0.0, None)
    return (np.floor(seen / (interval + checkpoint)) * interval * (begins < horizon)).sum(
        axis=1
    ) / horizon


def test_the_acceptance_call():
    ratio = rp.training.effective_training_time_ratio(
        mtbf=86400 / (2048 * 6.5e-3), interval=1800, checkpoint=30, restart=300
    )
    assert ratio.mean == pytest.approx(0.8130, abs=5e-5)


@pytest.mark.parametrize(
    ("mtbf", "interval", "checkpoint", "restart", "down"),
    [
        (9000.0, 1500.0, 120.0, 900.0, 300.0),
        (1800.0, 600.0, 60.0, 300.0, 60.0),
        (500.0, 400.0, 50.0, 200.0, 0.0),
    ],
)
def test_a_simulated_segment_takes_the_expected_time(mtbf, interval, checkpoint, restart, down):
    rng, segments = np.random.default_rng(1), 200_000
    total = np.zeros(segments)
    need, open_ = np.full(segments, interval + checkpoint), np.ones(segments, dtype=bool)
    while open_.any():
        life = rng.exponential(mtbf, open_.sum())
        done = life >= need[open_]
        total[open_] += np.where(done, need[open_], life + down)
        open_[open_] = ~done
        need[:] = restart + interval + checkpoint  # after a failure the restart comes first
    z = (total.mean() - expected_segment_time(mtbf, interval, checkpoint, restart, down)) / (
        total.std() / np.sqrt(segments)
    )
    assert abs(z) < 4


@pytest.mark.parametrize(
    ("mtbf", "interval", "checkpoint", "restart", "down"),
    [
        (1823.7, 600.0, 10.0, 300.0, 0.0),
        (3000.0, 900.0, 20.0, 600.0, 500.0),
        (800.0, 700.0, 90.0, 250.0, 0.0),
    ],
)
def test_mean_and_spread_over_a_finite_run_agree_with_simulation(
    mtbf, interval, checkpoint, restart, down
):
    parts = {
        "mtbf": mtbf,
        "interval": interval,
        "checkpoint": checkpoint,
        "restart": restart,
        "down": down,
    }
    runs, horizon = pace(800, 3000), 40 * DAY
    model = effective_training_time_ratio(**parts)
    shares = simulated_shares(np.random.default_rng(2), runs, horizon, **parts)
    bias = mtbf / horizon  # a run may end inside a segment
    assert abs(shares.mean() - model.mean) < 4 * shares.std() / np.sqrt(runs) + bias
    if not down:
        assert shares.std() == pytest.approx(model.std(horizon), rel=4 / np.sqrt(2 * runs) + 0.01)


@pytest.mark.parametrize(
    ("mtbf", "interval", "checkpoint", "restart"),
    [(1000.0, 300.0, 50.0, 800.0), (1000.0, 900.0, 20.0, 1200.0), (5000.0, 400.0, 10.0, 2.0)],
)
def test_the_variance_is_that_of_simulated_renewal_cycles(mtbf, interval, checkpoint, restart):
    rng, cycles = np.random.default_rng(6), 400_000
    length = rng.exponential(mtbf, cycles)
    saved = length // (interval + checkpoint) * interval
    failing = np.arange(cycles)
    while failing.size:  # restarts until one passes
        life = rng.exponential(mtbf, failing.size)
        length[failing] += np.minimum(life, restart)
        failing = failing[life < restart]
    model = effective_training_time_ratio(mtbf, interval, checkpoint, restart)
    rest = saved - model.mean * length
    assert rest.var() / length.mean() == pytest.approx(model.std(1.0) ** 2, rel=0.02)
    assert abs(rest.mean()) < 4 * rest.std() / np.sqrt(cycles)


@given(mtbf=mtbfs, interval=intervals, checkpoint=small, restart=small, down=small)
def test_the_mean_is_work_over_expected_time(mtbf, interval, checkpoint, restart, down):
    parts = (mtbf, interval, checkpoint, restart, down)
    mean = effective_training_time_ratio(*parts).mean
    assert mean == pytest.approx(interval / expected_segment_time(*parts), rel=1e-12, abs=1e-300)
    assert 0 <= mean <= 1


@given(
    mtbf=mtbfs,
    checkpoint=st.floats(1e-3, 1e3),
    restart=small,
    down=small,
    factor=st.floats(0.2, 5.0),
)
def test_the_best_ratio_belongs_to_the_exact_interval_and_no_other_beats_it(
    mtbf, checkpoint, restart, down, factor
):
    best = optimal_training_time_ratio(checkpoint, mtbf, restart, down)
    interval = checkpoint_interval(checkpoint, mtbf)
    at = effective_training_time_ratio(mtbf, interval, checkpoint, restart, down).mean
    assert at == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert (
        effective_training_time_ratio(mtbf, factor * interval, checkpoint, restart, down).mean
        <= best + 1e-12
    )


@given(mtbf=mtbfs, checkpoint=st.floats(1e-6, 1e2))
def test_at_the_optimum_the_lost_share_is_the_interval_over_the_mtbf(mtbf, checkpoint):
    lost = 1 - optimal_training_time_ratio(checkpoint, mtbf, restart=0.0)
    assert lost == pytest.approx(checkpoint_interval(checkpoint, mtbf) / mtbf, rel=1e-9, abs=1e-12)


@given(interval=intervals, checkpoint=small)
def test_without_failures_only_the_checkpoints_cost(interval, checkpoint):
    ratio = effective_training_time_ratio(1e12, interval, checkpoint, 100.0)
    assert ratio.mean == pytest.approx(interval / (interval + checkpoint), rel=1e-8)
    assert ratio.std(DAY) < 1e-3


@given(mtbf=mtbfs, interval=intervals, checkpoint=small, restart=small, down=small)
def test_every_cost_lowers_the_mean(mtbf, interval, checkpoint, restart, down):
    mean = effective_training_time_ratio(mtbf, interval, checkpoint, restart, down).mean
    for worse in (
        (checkpoint + 5, restart, down),
        (checkpoint, restart + 5, down),
        (checkpoint, restart, down + 5),
    ):
        assert effective_training_time_ratio(mtbf, interval, *worse).mean <= mean
    assert (
        effective_training_time_ratio(1.1 * mtbf, interval, checkpoint, restart, down).mean >= mean
    )


@given(interval=intervals, checkpoint=st.floats(0.0, 50.0), restart=small, down=small)
def test_the_first_order_form_is_below_the_exact_one_and_meets_it_for_rare_failures(
    interval, checkpoint, restart, down
):
    for mtbf, close in ((3e3, 1.0), (1e8, 1e-3)):
        exact = effective_training_time_ratio(mtbf, interval, checkpoint, restart, down).mean
        first = effective_training_time_ratio(
            mtbf, interval, checkpoint, restart, down, "kokolis"
        ).mean
        # Kokolis charges no rework for the checkpoint itself: at most W C / M above, to first
        # order.
        assert first <= exact + 0.5 * checkpoint / mtbf * 1.5
        assert exact - first < close or mtbf < 1e4


def test_the_first_order_form_has_no_spread():
    ratio = effective_training_time_ratio(1e4, 900, 20, 600, method="kokolis")
    with pytest.raises(ValueError, match="method"):
        ratio.std(DAY)


def test_the_spread_falls_with_the_root_of_the_run():
    ratio = effective_training_time_ratio(5e3, 900, 20, 600)
    assert ratio.std(np.array([DAY, 4 * DAY])) == pytest.approx(
        ratio.std(DAY) * np.array([1.0, 0.5])
    )


@pytest.mark.parametrize("change", [{"mtbf": np.array([5e3, 2e4])}, {"down": 60.0}])
def test_the_spread_is_of_one_job_without_down_time(change):
    ratio = effective_training_time_ratio(
        **{"mtbf": 5e3, "interval": 900.0, "checkpoint": 20.0, "restart": 600.0, **change}
    )
    with pytest.raises(ValueError, match="times must be numbers, and down 0"):
        ratio.std(DAY)


@pytest.mark.parametrize("name", ["mtbf", "interval", "checkpoint", "restart", "down"])
@pytest.mark.parametrize("bad", [float("nan"), -1.0, "text", None, 1e300, []])
def test_bad_times_are_named(name, bad):
    good = {"mtbf": 1e4, "interval": 900.0, "checkpoint": 20.0, "restart": 600.0, "down": 0.0}
    for function in (effective_training_time_ratio, expected_segment_time):
        with pytest.raises((ValueError, TypeError), match=name):
            function(**{**good, name: bad})


def test_the_acceptance_call_with_a_horizon():
    ratio = rp.training.effective_training_time_ratio(
        mtbf=86400 / (12_500 * 3.79e-3), interval=600, checkpoint=10, restart=300, horizon=365 * DAY
    )
    assert ratio.sd == pytest.approx(0.00203, rel=0.03)
    assert ratio.sd == ratio.std(365 * DAY)
    with pytest.raises(ValueError, match="horizon"):
        effective_training_time_ratio(1e4, 900, 20, 600).sd  # noqa: B018


def progress_of_windows(rng, runs, horizon, *, interval, checkpoint, restart):
    """Work done less work undone in successive windows of one long run; in units of the MTBF."""
    life = rng.exponential(1.0, int(1.02 * runs * horizon) + 5000)
    begins = np.concatenate([[0.0], np.cumsum(life)])
    period = interval + checkpoint
    saved = np.floor(np.clip(life - restart, 0.0, None) / period) * interval
    before = np.concatenate([[0.0], np.cumsum(saved)])
    times = 50.0 + horizon * np.arange(runs + 1)
    assert begins[-1] > times[-1]
    now = np.searchsorted(begins, times, side="right") - 1
    held = np.clip(times - begins[now] - restart, 0.0, None)
    full = np.floor(held / period)
    done = full * interval + np.minimum(held - full * period, interval)
    return np.diff(before[now] + done) / horizon


@pytest.mark.slow
@pytest.mark.parametrize(("failures", "runs"), [(30, 240_000), (100, 80_000), (1000, 12_000)])
@pytest.mark.parametrize(
    ("restart", "interval", "checkpoint"),
    [
        (0.01, 0.05, 0.002),
        (0.1, 0.1, 0.01),
        (0.05, 0.3, 0.05),
        (0.3, 0.3, 0.03),
        (0.45, 0.05, 0.002),
        (0.02, 0.9, 0.2),
        (0.0, 0.1, 0.01),
        (0.2, 0.02, 0.0002),
    ],
)
def test_percentiles_are_those_of_simulated_runs(restart, interval, checkpoint, failures, runs):
    parts = {"interval": interval, "checkpoint": checkpoint, "restart": restart}
    assert restart + interval / 2 < 0.5
    rng = np.random.default_rng(failures)
    shares = np.concatenate(
        [progress_of_windows(rng, runs // 4, failures, **parts) for _ in range(4)]
    )
    model = effective_training_time_ratio(1.0, **parts, horizon=failures)
    found = np.percentile(shares, [5, 50, 95])
    np.testing.assert_allclose(model.percentiles([5, 50, 95]), found, rtol=0, atol=1e-3)
    back = model.long_run
    skewness = back.third_rate / back.variance_rate**1.5 / failures**0.5
    error = 4 * np.sqrt(6 / runs) + 1.0 / failures  # of a sample, and of what begin and end add
    assert np.mean((shares - shares.mean()) ** 3) / shares.std() ** 3 == pytest.approx(
        skewness, abs=error
    )


@pytest.mark.parametrize(
    ("mtbf", "interval", "checkpoint", "restart", "days"),
    [
        (1823.7, 600.0, 10.0, 300.0, 3.0),
        (1380.0, 370.0, 60.0, 500.0, 2.0),
        (11131.6, 900.0, 20.0, 600.0, 54.0),
    ],
)
def test_a_run_that_begins_with_a_restart_and_counts_what_is_saved_reaches_little_less(
    mtbf, interval, checkpoint, restart, days
):
    parts = {
        "mtbf": mtbf,
        "interval": interval,
        "checkpoint": checkpoint,
        "restart": restart,
        "down": 0.0,
    }
    runs = pace(5000, 20_000)
    shares = simulated_shares(np.random.default_rng(5), runs, days * DAY, **parts)
    model = effective_training_time_ratio(**parts, horizon=days * DAY)
    less = model.percentiles([5, 50, 95]) - np.percentile(shares, [5, 50, 95])
    noise = 4 * 2.1 * model.sd / np.sqrt(runs)
    assert (less > -noise).all()
    assert (less < (restart + interval) / (days * DAY) + noise).all()


@given(restart=st.floats(0.1, 3), interval=st.floats(0.1, 3), checkpoint=st.floats(1e-3, 0.5))
def test_the_spread_is_that_of_the_renewal_cycle_in_closed_form(restart, interval, checkpoint):
    model = effective_training_time_ratio(1e4, 1e4 * interval, 1e4 * checkpoint, 1e4 * restart)
    second, third = renewal_cumulants(model.mean, interval, checkpoint, restart)
    assert model.long_run.share == pytest.approx(model.mean, rel=1e-9)
    assert model.long_run.variance_rate == pytest.approx(1e4 * second, rel=1e-6)
    assert model.long_run.third_rate == pytest.approx(
        1e8 * third, rel=1e-6, abs=1e-6 * second**1.5 * 1e8
    )
