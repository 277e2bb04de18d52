import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from chapters.s48.stragglers import (
    noise_slowdown,
    pipeline_slowdown,
    slow_ranks,
)
from relparallel.parallel import Strategy


def test_noise_of_a_step_function_is_exact():
    found = noise_slowdown(Strategy(data=1000), 0.1, 1, law=stats.bernoulli(0.1))
    assert found.exact
    assert float(found) == pytest.approx(1.3, rel=1e-14)
    with pytest.raises(ValueError, match="law must have at most"):
        noise_slowdown(Strategy(data=8), 0.1, 1, law=stats.zipf(3.1))


def test_published_slowdowns_of_one_per_cent_noise():
    for ranks, percent in ((2048, 3.4), (12500, 3.9)):
        found = noise_slowdown(Strategy(data=ranks), 0.01, micro_batches=1)
        assert 100 * (float(found) - 1) == pytest.approx(percent, abs=0.05)
        assert found.exact


def flow_shop(times):
    """Makespan of micro-batches (axis 0) on stages (axis 1), trailing axes apart."""
    done = np.zeros((times.shape[1], *times.shape[2:]))
    for batch in times:
        for stage in range(times.shape[1]):
            before = done[stage - 1] if stage else 0.0
            done[stage] = np.maximum(done[stage], before) + batch[stage]
    return done[-1]


@given(p=st.integers(1, 6), m=st.integers(1, 9), factor=st.floats(1, 3), data=st.data())
def test_slow_stages_are_those_of_a_flow_shop(p, m, factor, data):
    slow = data.draw(st.lists(st.booleans(), min_size=p, max_size=p))
    times = np.tile(np.where(slow, factor, 1.0), (m, 1))
    expected = flow_shop(times) / (m + p - 1)
    assert pipeline_slowdown(sum(slow), p, m, factor) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize(("t", "p", "d"), [(1, 1, 6), (2, 2, 2), (1, 3, 3), (4, 1, 2), (2, 3, 2)])
def test_slow_ranks_over_all_sets_of_ranks(t, p, d):
    q, s, m, n = 0.2, 1.4, 5, t * p * d
    chances, values = [], []
    for slow in product((False, True), repeat=n):
        ranks = np.reshape(slow, (d, p, t)).any(axis=2)
        times = np.tile(np.where(ranks, s, 1.0).T, (m, 1, 1))
        chances.append(q ** sum(slow) * (1 - q) ** (n - sum(slow)))
        values.append(flow_shop(times).max() / (m + p - 1))
    chances, values = np.array(chances), np.array(values)
    found = slow_ranks(Strategy(tensor=t, pipeline=p, data=d), q, s, m)
    # ranks of a context-parallel group wait for each other as those of a tensor-parallel one do
    if t > 1:
        assert slow_ranks(Strategy(context=t, pipeline=p, data=d), q, s, m) == found
    assert found.mean == pytest.approx(chances @ values, abs=1e-12)
    assert found.std**2 == pytest.approx(chances @ (values - found.mean) ** 2, abs=1e-12)
    assert found.hit == pytest.approx(1 - (1 - q) ** n, abs=1e-12)


def test_persistent_and_redrawn_slow_ranks_have_the_same_mean():
    """Only the spread between jobs tells them apart."""
    rng = np.random.default_rng(2)
    found = slow_ranks(Strategy(data=64), 0.02, 1.5, micro_batches=1)
    steps = 1 + 0.5 * (rng.random((4000, 64)) < 0.02).any(axis=1)
    assert abs(steps.mean() - found.mean) < 3.5 * found.std / math.sqrt(4000)
    assert found.std == pytest.approx(0.5 * math.sqrt(found.hit * (1 - found.hit)))


@pytest.mark.parametrize("split", [(1, 1, 16, 1), (4, 1, 8, 12), (1, 4, 4, 6), (2, 4, 4, 8)])
def test_noise_is_inside_its_bracket(split):
    """Sections drawn singly: tensor ranks wait in each, stages for micro-batches, replicas last."""
    t, p, d, k = split
    m, v, samples = 6, 0.05, 300
    rng = np.random.default_rng(11)
    sections = 1 + v * rng.standard_normal((m, p, samples, d, k, t)).max(axis=-1)
    steps = flow_shop(sections.sum(axis=-1)).max(axis=1) / ((m + p - 1) * k)
    error = 3.5 * steps.std() / math.sqrt(samples)
    found = noise_slowdown(Strategy(tensor=t, pipeline=p, data=d), v, m, sections=k)
    slack = error + (0 if found.exact else 2e-4)  # the normal law of a sum of few maxima
    assert found.lower - slack <= steps.mean() <= found.upper + slack


def test_laws_without_a_mean_are_refused():
    with pytest.raises(ValueError, match="law"):
        noise_slowdown(Strategy(data=4), 0.1, 1, law=stats.cauchy())
    with pytest.raises(ValueError, match="slow_stages"):
        pipeline_slowdown(5, 4, 8, 1.1)
