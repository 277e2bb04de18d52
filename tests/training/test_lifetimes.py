import numpy as np
import pytest

from relparallel.training.lifetimes import Lifetime, fleet_failures

RNG = np.random.default_rng(5)
LAWS = {
    "exponential": Lifetime.exponential(10.0),
    "infant": Lifetime.weibull(10.0, 0.7),
    "old": Lifetime.weibull(10.0, 3.0),
    "lognormal": Lifetime.lognormal(10.0, 0.8),
    "observed": Lifetime.empirical(RNG.weibull(0.8, 300) * 10),
}
MANY = 100_000


def close(values, expected, errors=4.0):
    return abs(values.mean() - expected) < errors * values.std() / len(values) ** 0.5


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_new_lives_have_the_mean_and_the_survival(law):
    lives = law.sample(np.random.default_rng(1), MANY)
    assert close(lives, law.mean)
    for time in (2.0, 10.0, 14.0):
        assert close((lives > time).astype(float), law.survival(time))
    assert law.survival(0.0) == 1.0


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_what_is_left_in_a_stationary_fleet_has_the_equilibrium_density(law):
    rng = np.random.default_rng(2)
    left = law.remaining(rng, MANY)
    points = np.linspace(0, 200 * law.mean, 4_000_001)
    density = law.survival(points) / law.mean
    share = np.cumsum((density[1:] + density[:-1]) / 2) * (points[1] - points[0])
    for time in (1.0, 8.0, 12.0):
        assert close((left <= time).astype(float), share[np.searchsorted(points, time) - 1])


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_given_ages_condition_the_life(law):
    left = law.remaining(np.random.default_rng(3), MANY, np.full(MANY, 6.0))
    for time in (1.0, 8.0):
        assert close((left > time).astype(float), law.survival(6.0 + time) / law.survival(6.0))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_stationary_fleet_fails_at_its_mean_rate(law):
    failures = fleet_failures(law, 50, 7.0, np.random.default_rng(4), replications=400)
    assert close(failures, 50 * 7.0 / law.mean)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_first_of_many(law):
    lives = law.sample(np.random.default_rng(5), 20 * 20_000).reshape(-1, 20).min(axis=1)
    assert close(lives, law.first_of(20))
    assert law.first_of(1) == pytest.approx(law.mean, rel=1e-6)


@pytest.mark.parametrize("shape", [0.3, 0.7, 1.0, 5.0])
@pytest.mark.parametrize("parts", [1, 256, 100_000])
def test_the_first_of_many_is_weibull_again(shape, parts):
    law = Lifetime.weibull(3.0, shape)
    assert law.first_of(parts) == pytest.approx(3.0 * parts ** (-1 / shape), rel=1e-9)


@pytest.mark.parametrize(("shape", "wrong"), [(0.7, 1654.4), (1.5, 23.9)])
def test_lives_drawn_again_at_every_failure_are_a_mistake(shape, wrong):
    # 256 servers, mean life 100 days, 60 days: 153.6 failures, whatever the shape of the
    # distribution.
    law, rng = Lifetime.weibull(100.0, shape), np.random.default_rng(6)
    assert close(fleet_failures(law, 256, 60.0, rng), 153.6)
    firsts = law.sample(rng, 256 * 20_000).reshape(-1, 256).min(axis=1)
    assert 60 / firsts.mean() == pytest.approx(wrong, rel=0.03)


def test_scaling_keeps_the_shape():
    for law in LAWS.values():
        other = law.scaled(30.0)
        assert other.survival(30 / law.mean * 7.3) == pytest.approx(law.survival(7.3), abs=1e-12)
        assert other.mean == 30.0


def test_bad_laws_are_refused():
    with pytest.raises(ValueError, match=r"mean must be .*got 0"):
        Lifetime.exponential(0.0)
    with pytest.raises(ValueError, match=r"lives must be .*got \[1.0, -1.0\]|lives must be"):
        Lifetime.empirical([1.0, -1.0])
    with pytest.raises(ValueError, match="lives must hold at least one"):
        Lifetime.empirical([])
    with pytest.raises(ValueError, match="mean must be that of lives"):
        Lifetime(kind=2, mean=3.0, lives=np.array([1.0]))
    with pytest.raises(ValueError, match="ages must be below the longest observed life"):
        LAWS["observed"].remaining(RNG, 1, [1e6])
    with pytest.raises(ValueError, match=r"ages must be one number or 3 of them, got shape \(2,\)"):
        LAWS["old"].remaining(RNG, 3, [1.0, 2.0])


def test_a_shape_that_leaves_no_scale_is_refused():
    assert Lifetime.weibull(1.0, 0.01).scale > 0
    with pytest.raises(
        ValueError, match=r"shape must leave a scale above 0 at mean = 1, got 0\.005"
    ):
        Lifetime.weibull(1.0, 0.005)
