"""Local dual updates: what a round gains, and what the gap bounds."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from chapters.s40 import cocoa
from pace import pace

few = settings(max_examples=pace(15, 50), deadline=None)
seeds = st.integers(0, 500)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@given(
    seed=seeds,
    workers=st.integers(1, 5),
    steps=st.integers(1, 20),
    combine=st.sampled_from(["add", "average"]),
)
@few
def test_a_round_of_cocoa_never_loses_and_the_gap_bounds_the_rest(seed, workers, steps, combine):
    x, y = normal(20, 4, seed=seed), normal(20, seed=seed + 1)
    rng = np.random.default_rng(seed)
    run = cocoa(x, y, workers, steps, rounds=8, rng=rng, combine=combine)
    assert np.all(np.diff(run.dual) >= -1e-12)
    best = np.linalg.solve(x.T @ x / 20 + 0.1 * np.eye(4), x.T @ y / 20)
    least = np.mean((x @ best - y) ** 2) / 2 + 0.05 * (best @ best)
    assert np.all(run.dual <= least + 1e-12)
    assert np.all(run.primal >= least - 1e-12)


def test_adding_changes_that_do_not_count_each_other_diverges_and_local_work_saves_rounds():
    x = normal(40, 3) + 3.0  # samples that resemble each other
    y = x.sum(axis=1)
    gaps = {}
    for combine in ("add", "average", "naive"):
        run = cocoa(x, y, 8, 20, rounds=60, rng=np.random.default_rng(1), combine=combine)
        gaps[combine] = run.primal[-1] - run.dual[-1]
    assert max(gaps["add"], gaps["average"]) < 1e-3
    assert not gaps["naive"] < 1e3
    few_steps, many = (
        cocoa(x, y, 4, steps, rounds=30, rng=np.random.default_rng(1)) for steps in (2, 50)
    )
    assert many.primal[-1] - many.dual[-1] < 0.1 * (few_steps.primal[-1] - few_steps.dual[-1])
