"""The range of a day's tokens, against days that are simulated and steps and GPUs that are drawn."""

import math

import numpy as np
import pandas as pd
import pytest

import relparallel as rp
from relparallel.planning import days
from relparallel.planning.days import day_of_state
from relparallel.published import data_folder
from relparallel.units import DAY

SPREAD = pd.read_csv(data_folder() / "derived" / "step_spread.csv").set_index("id").loc["all"]


def planned(policy, gpus, batch=2048, **options):
    asked = {"gpus": gpus, "global_batch": batch, "strategies": 1, "policies": [policy], **options}
    return rp.plan("llama3-405b", "h100-80gb-dgx", **asked)


def simulated(found, rng, years=8):
    """Tokens of days over those of a day of steps as predicted, drawn by a route of its own."""
    best = found.best
    search, choice = best.search, best.choice
    site, recovery = search.sites[choice.site], search.recoveries[choice.policy]
    spares = site.spares if recovery.takes_spares else 0
    kept = rp.training.simulate(
        search.model(choice.site, choice.row),
        best.step.total,
        search.checkpoints[choice.checkpoint],
        recovery,
        spares,
        years=years,
        rng=rng,
        horizon=DAY,
    ).samples
    gpus, steps = site.job.gpus, int(DAY / best.step.total)
    slowest = SPREAD["gpu_sd"] * np.array(
        [rng.standard_normal(gpus).max() for _ in range(kept.size)]
    )
    noise = (
        SPREAD["step_sd"]
        * rng.standard_normal((kept.size, 50)).mean(axis=1)
        * math.sqrt(50 / steps)
    )
    return kept * (1 - (slowest - slowest.mean()) + noise)


@pytest.mark.parametrize(
    ("policy", "gpus"), [("elastic", 512), ("elastic", 2048), ("spares", 2048), ("restart", 512)]
)
def test_nine_simulated_days_of_ten_lie_in_the_range(policy, gpus):
    found = planned(policy, gpus, batch=1024)
    drawn, day = simulated(found, np.random.default_rng(4)), found.day
    inside = np.mean((drawn >= day.low - 1e-9) & (drawn <= day.high))
    assert 0.86 < inside < 0.97
    assert np.mean(drawn > day.high) == pytest.approx(0.05, abs=0.015)
    everything = np.hypot(day.failures, np.hypot(day.steps, day.slow_gpus)) * found.best.share
    assert everything == pytest.approx(drawn.std(), rel=0.1)
    assert np.median(drawn) == pytest.approx(day.median, abs=0.03)


def test_a_day_without_failures_is_one_of_normal_draws(monkeypatch):
    """The slowest of the GPUs is drawn once a day, noise at every step."""
    state = planned("elastic", 512).best.choice.state
    monkeypatch.setattr(type(state), "variance_over", lambda *_: 0.0)
    day, rng = day_of_state(state, 64, 3600.0), np.random.default_rng(1)
    slow = SPREAD["gpu_sd"] * rng.standard_normal((20000, 64)).max(axis=1)
    noise = SPREAD["step_sd"] * rng.standard_normal((20000, 24)).mean(axis=1)
    drawn = state.share * (1 - slow + slow.mean() - noise)
    low, high = np.quantile(drawn, [0.05, 0.95])
    assert (day.low, day.high) == pytest.approx((low, high), abs=7e-4)
    assert day.growth == day.failures == 0
    assert day.median == state.share


def test_only_gpus_beyond_those_of_the_series_make_steps_slower():
    state = planned("elastic", 512).best.choice.state
    measured, more = (day_of_state(state, gpus, 5.0) for gpus in (int(SPREAD["gpus"]), 300_000))
    rng = np.random.default_rng(0)
    drawn = [
        np.mean([rng.standard_normal(gpus).max() for _ in range(80)])
        for gpus in (int(SPREAD["gpus"]), 300_000)
    ]
    assert measured.growth == 0
    assert more.growth == pytest.approx(SPREAD["gpu_sd"] * (drawn[1] - drawn[0]), rel=0.15)
    assert more.median == pytest.approx(measured.median / (1 + more.growth))
    assert "more GPUs than were ever measured" in more.said()
    assert "more GPUs" not in measured.said()


@pytest.mark.parametrize(("mean", "variance"), [(0.5, 0.02), (0.99, 3e-4), (0.3, 0.2), (1.0, 0.0)])
def test_what_failures_leave_has_their_mean_and_variance(mean, variance):
    low, median, high = days._left_by_failures(mean, variance)
    assert 0 <= low <= median <= high <= 1
    if variance > 0:
        both = mean * (1 - mean) / variance - 1
        drawn = np.random.default_rng(2).beta(mean * both, (1 - mean) * both, 40000)
        assert drawn.var() == pytest.approx(variance, rel=0.03)
        assert (low, median, high) == pytest.approx(np.quantile(drawn, [0.05, 0.5, 0.95]), abs=0.02)


def test_a_job_that_may_stand_all_day_may_make_nothing():
    day = planned("restart", 16384).day
    assert day.low == 0
    assert day.high < 0.6


def test_the_plan_says_what_makes_days_differ():
    found = planned("elastic", 512)
    row, whole = found.to_frame().iloc[0], found.best.throughput * DAY / 1e9
    assert row["day from"] < row["median day"] < row["day to"]
    assert row[["day from", "day to"]].tolist() == pytest.approx(
        [found.day.low * whole, found.day.high * whole]
    )
    assert f"{found.day.failures:.2%} through failures" in " ".join(found.to_text(10**4).split())
    assert f"{row['median day']:.4g} ({row['day from']:.4g} to" in found.to_text(10**4)
    # one error of all days is no reason for them to differ
    assert row["day to"] - row["day from"] < row["tokens to"] - row["tokens from"]
