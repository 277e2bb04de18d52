import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s41.verified_patterns import best_verified_pattern
from relparallel.training.checkpointing import verified_pattern_time

times = st.floats(1.0, 1e3)


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_a_simulated_pattern_takes_the_expected_time(parts):
    mtbf, work, verification, checkpoint, restart = 4000.0, 3600.0, 60.0, 90.0, 200.0
    rng, runs = np.random.default_rng(1), 100_000
    total, open_ = np.full(runs, checkpoint), np.arange(runs)
    while open_.size:
        life = rng.exponential(mtbf, open_.size)  # seconds of work until the error
        seen = np.minimum(life // (work / parts) + 1, parts)  # parts worked on until it is seen
        total[open_] += seen * (work / parts + verification) + (life < work) * restart
        open_ = open_[life < work]
    expected = verified_pattern_time(mtbf, work, verification, checkpoint, restart, parts)
    assert abs(total.mean() - expected) < 4 * total.std() / np.sqrt(runs)


@given(
    mtbf=st.floats(1e3, 1e6),
    work=st.floats(10.0, 1e4),
    verification=times,
    checkpoint=times,
    restart=times,
)
def test_one_verification_is_the_published_form(mtbf, work, verification, checkpoint, restart):
    grown = np.exp(work / mtbf)
    published = grown * (work + verification) + (grown - 1) * restart + checkpoint
    assert verified_pattern_time(mtbf, work, verification, checkpoint, restart) == pytest.approx(
        published
    )


@given(mtbf=st.floats(1e4, 1e6), verification=times, checkpoint=times, restart=times)
def test_no_other_pattern_is_better(mtbf, verification, checkpoint, restart):
    best = best_verified_pattern(mtbf, verification, checkpoint, restart)
    works = best.interval * np.geomspace(0.2, 5.0, 101)
    for parts in range(1, 3 * best.verifications + 4):
        shares = works / verified_pattern_time(
            mtbf, works, verification, checkpoint, restart, parts
        )
        assert shares.max() <= best.share * (1 + 1e-9)


def test_rare_errors_follow_the_first_order():
    best = best_verified_pattern(1e9, verification=10.0, checkpoint=90.0, restart=60.0)
    assert best.verifications == 3
    assert best.interval == pytest.approx(np.sqrt(120 * 1e9 * 6 / 4), rel=2e-3)
    one = best_verified_pattern(1e9, verification=60.0, checkpoint=60.0, restart=60.0)
    assert one.interval == pytest.approx(np.sqrt(120 * 1e9), rel=1e-3)  # no factor 2 under the root


def test_long_intervals_take_for_ever():
    assert verified_pattern_time(1.0, 1e6, 1.0, 1.0, 1.0) == np.inf
