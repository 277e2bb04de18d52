import numpy as np
import pytest
from scipy import stats

from chapters.s42.lifetime_fits import fit_lifetimes
from pace import pace

SCIPY = {"exponential": stats.expon, "weibull": stats.weibull_min, "lognormal": stats.lognorm}


def fitted(times, censored=None, **given):
    return {fit.law: fit for fit in fit_lifetimes(times, censored, **given)}


def draw(law, size, rng):
    return {
        "exponential": lambda: 500 * rng.standard_exponential(size),
        "weibull": lambda: 500 * rng.weibull(0.7, size),
        "lognormal": lambda: 500 * rng.lognormal(0.0, 1.4, size),
    }[law]()


TRUTH = {
    "exponential": {"mean": 500.0},
    "weibull": {"shape": 0.7, "scale": 500.0},
    "lognormal": {"sigma": 1.4, "median": 500.0},
}


@pytest.mark.parametrize("law", SCIPY)
@pytest.mark.parametrize("censored", [0, 40])
def test_the_likelihood_is_the_largest_that_scipy_finds(law, censored):
    rng = np.random.default_rng(5)
    times, running = draw(law, 300, rng), draw(law, censored, rng) / 2
    for name, fit in fitted(times, running if censored else None).items():
        data = stats.CensoredData(uncensored=times, right=running)
        other = SCIPY[name].fit(data, floc=0)
        theirs = SCIPY[name].logpdf(times, *other).sum() + SCIPY[name].logsf(running, *other).sum()
        assert fit.log_likelihood >= theirs - 1e-9
        assert fit.log_likelihood == pytest.approx(theirs, abs=1e-3)
        assert fit.mean == pytest.approx(SCIPY[name].mean(*other), rel=1e-2)
        assert fit.aic == pytest.approx(2 * len(fit.parameters) - 2 * fit.log_likelihood)


def test_the_gradient_vanishes_at_the_maximum():
    times = draw("weibull", 200, np.random.default_rng(1))
    shape, scale = fitted(times)["weibull"].parameters.values()
    profile = (
        np.sum(times**shape * np.log(times)) / np.sum(times**shape)
        - np.log(times).mean()
        - 1 / shape
    )
    assert profile == pytest.approx(0, abs=1e-7)
    assert scale == pytest.approx(np.mean(times**shape) ** (1 / shape), rel=1e-8)


def test_the_distance_is_that_of_scipy_without_censoring():
    times = draw("lognormal", 150, np.random.default_rng(2))
    for fit in fitted(times).values():
        assert fit.distance == pytest.approx(stats.kstest(times, fit.cdf).statistic, abs=1e-12)


def test_the_distance_to_the_kaplan_meier_curve():
    times, running = np.array([1.0, 3.0, 3.0, 7.0]), np.array([2.0, 5.0])
    fit = fitted(times, running)["exponential"]
    curve = stats.ecdf(stats.CensoredData(uncensored=times, right=running)).cdf
    law = fit.cdf(curve.quantiles)
    before = np.concatenate([[0.0], curve.probabilities[:-1]])
    assert fit.distance == pytest.approx(
        max(abs(curve.probabilities - law).max(), abs(before - law).max())
    )


@pytest.mark.parametrize("law", SCIPY)
@pytest.mark.parametrize("censored", [False, True])
def test_intervals_cover_the_truth_as_often_as_they_say(law, censored):
    rng, runs, hits = np.random.default_rng(11), pace(120, 400), dict.fromkeys(TRUTH[law], 0)
    for _ in range(runs):
        lives = draw(law, 120, rng)
        limit = 700.0 if censored else np.inf
        running = np.full(int((lives > limit).sum()), 700.0)
        (fit,) = fit_lifetimes(
            lives[lives <= limit], running if len(running) else None, laws=(law,)
        )
        for name, (low, high) in fit.interval(0.95).items():
            hits[name] += low <= TRUTH[law][name] <= high
    spread = 3 * np.sqrt(0.95 * 0.05 / runs)
    assert all(abs(hit / runs - 0.95) < spread + 0.01 for hit in hits.values()), hits


def test_p_values_are_uniform_under_the_law_and_small_under_another():
    rng = np.random.default_rng(7)
    own = [
        fit_lifetimes(draw("exponential", 60, rng), laws=("exponential",), samples=99, rng=rng)[
            0
        ].p_value
        for _ in range(100)
    ]
    assert stats.kstest(own, "uniform").pvalue > 1e-3
    (other,) = fit_lifetimes(
        draw("lognormal", 200, rng), laws=("exponential",), samples=199, rng=rng
    )
    assert other.p_value == 1 / 200


def test_the_true_law_wins_and_samples_follow_it():
    rng = np.random.default_rng(9)
    for law in ("weibull", "lognormal"):
        best = fit_lifetimes(draw(law, 1500, rng))[0]
        assert best.law == law
        lives = best.lifetime.sample(rng, 20000)
        assert stats.kstest(lives, best.cdf).pvalue > 1e-4
        assert best.lifetime.survival(lives[:50]) == pytest.approx(
            1 - best.cdf(lives[:50]), abs=1e-12
        )


def test_time_since_the_last_failure_counts():
    times = [100.0, 300.0]
    assert fitted(times)["exponential"].parameters == {"mean": 200.0}
    assert fitted(times, 400.0)["exponential"].parameters == {"mean": 400.0}
    assert fitted(times, 0.0)["exponential"].censored == 0


def test_impossible_lives_are_refused():
    with pytest.raises(ValueError, match="times must be a number >= 1e-09"):
        fit_lifetimes([1.0, 0.0])
    with pytest.raises(ValueError, match="times must hold two different lives"):
        fit_lifetimes([2.0, 2.0])
    with pytest.raises(TypeError, match="rng"):
        fit_lifetimes([1.0, 2.0], samples=5)
