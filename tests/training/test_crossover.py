import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relparallel.training import Job, break_even_repair, crossovers, relative_goodput

DAY = 86400.0


def job(group, **changes):
    fields = {"node_rate": 3.79e-3 / DAY, "checkpoint": 20.0, "restart": 300.0, "pause": 30.0, **changes}
    return Job(nodes=2048, nodes_per_replica=group, **fields)


@given(speedup=st.floats(1.0001, 1.3), groups=st.sampled_from([(8, 4), (32, 16), (64, 4), (16, 8)]))
def test_the_closed_break_even_is_the_root_of_the_difference(speedup, groups):
    large, small = groups
    closed = break_even_repair(speedup, large, small, 3.79e-3 / DAY)
    found = crossovers(job(large), "elastic", job(small), "elastic", speedup, closed / 10, closed * 10)
    assert found == pytest.approx((closed,), rel=1e-7)


@given(speedup=st.floats(1.0, 1.05), large=st.integers(2, 64))
def test_the_first_order_rule_holds_for_small_advantages(speedup, large):
    closed = break_even_repair(speedup, large, 1, 1.0)
    first = math.log(speedup) / (large - 1)
    assert first <= closed <= first * (1 + first)


@pytest.mark.parametrize("group", [8, 16, 32, 64])
def test_at_a_crossover_both_policies_are_equally_good_and_the_order_changes(group):
    (repair,) = crossovers(job(group), "elastic", job(group), "spares")
    elastic, spares = (
        [relative_goodput(job(group), policy, repair * f).share for f in (0.9, 1.0, 1.1)]
        for policy in ("elastic", "spares")
    )
    assert elastic[1] == pytest.approx(spares[1], rel=1e-9)
    assert elastic[0] > spares[0]
    assert elastic[2] < spares[2]


def test_larger_replicas_meet_the_spares_earlier():
    times = [crossovers(job(g), "elastic", job(g), "spares")[0] for g in (8, 16, 32, 64)]
    assert times == sorted(times, reverse=True)


def test_curves_that_coincide_do_not_cross():
    assert crossovers(job(16), "restart", job(64), "restart") == ()


@pytest.mark.parametrize(
    ("name", "bad"),
    [("speedup", 0.9), ("nodes_per_replica", 4), ("other_nodes_per_replica", 0), ("node_rate", 0.0)],
)
def test_bad_break_evens_are_named(name, bad):
    good = {"speedup": 1.1, "nodes_per_replica": 8, "other_nodes_per_replica": 4, "node_rate": 1e-8}
    with pytest.raises((ValueError, TypeError), match=name):
        break_even_repair(**{**good, name: bad})


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("job", 1),
        ("other", None),
        ("policy", "x"),
        ("other_policy", "x"),
        ("speedup", 0.0),
        ("shortest", 0.0),
        ("longest", 1.0),
    ],
)
def test_bad_crossovers_are_named(name, bad):
    good = {"job": job(8), "policy": "elastic", "other": job(8), "other_policy": "spares"}
    with pytest.raises((ValueError, TypeError), match=name):
        crossovers(**{**good, name: bad})


def test_jobs_on_different_budgets_are_refused():
    other = Job(nodes=64, nodes_per_replica=8, node_rate=1e-8, checkpoint=1.0, restart=1.0, pause=1.0)
    with pytest.raises(ValueError, match="other"):
        crossovers(job(8), "elastic", other, "elastic")
