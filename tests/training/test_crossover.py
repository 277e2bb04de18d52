import math

import pytest
from hypothesis import given, strategies as st

from chapters.s43.elastic import elastic_throughput
from chapters.s44.break_even import break_even_rates, break_even_regroup
from relparallel.training import (
    Job,
    JobShape,
    Recovery,
    break_even_repair,
    crossovers,
    relative_goodput,
)

DAY = 86400.0


def job(group, **changes):
    fields = {
        "node_rate": 3.79e-3 / DAY,
        "checkpoint": 20.0,
        "restart": 300.0,
        "pause": 30.0,
        **changes,
    }
    return Job(nodes=2048, nodes_per_replica=group, **fields)


@given(speedup=st.floats(1.0001, 1.3), groups=st.sampled_from([(8, 4), (32, 16), (64, 4), (16, 8)]))
def test_the_closed_break_even_is_the_root_of_the_difference(speedup, groups):
    large, small = groups
    closed = break_even_repair(speedup, large, small, 3.79e-3 / DAY)
    found = crossovers(
        job(large), "elastic", job(small), "elastic", speedup, closed / 10, closed * 10
    )
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
    [
        ("speedup", 0.9),
        ("nodes_per_replica", 4),
        ("other_nodes_per_replica", 0),
        ("node_rate", 0.0),
    ],
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
    other = Job(
        nodes=64, nodes_per_replica=8, node_rate=1e-8, checkpoint=1.0, restart=1.0, pause=1.0
    )
    with pytest.raises(ValueError, match="other"):
        crossovers(job(8), "elastic", other, "elastic")


def shape(group, nodes=2048):
    return JobShape(
        nodes=nodes, replicas=nodes // group, stages=group, tensor=8, nodes_per_replica=group
    )


@given(speedup=st.floats(1.001, 1.3), groups=st.sampled_from([(8, 4), (32, 16), (64, 4), (16, 8)]))
def test_the_rate_at_which_elastic_strategies_break_even_is_the_closed_one(speedup, groups):
    large, small = groups
    policy, rate = (
        Recovery("elastic", DAY),
        break_even_repair(speedup, large, small, 1 / DAY) / DAY / DAY,
    )
    found = break_even_rates(
        shape(large), policy, shape(small), policy, speedup, rate / 10, rate * 10
    )
    assert found == pytest.approx((rate,), rel=1e-6)


@pytest.mark.parametrize(
    ("speedup", "groups"), [(1.008, (32, 16)), (1.01, (32, 16)), (1.01, (16, 8)), (1.02, (64, 32))]
)
def test_the_last_break_even_of_regrouped_strategies_is_the_closed_one(speedup, groups):
    policy, rate = Recovery("regroup", 3 * DAY), 3.79e-3 / DAY
    closed = break_even_regroup(speedup, 2048, *groups, rate) / (3 * DAY) * rate
    found = break_even_rates(
        shape(groups[0]), policy, shape(groups[1]), policy, speedup, 1e-9, 1e-4
    )
    assert found[-1] == pytest.approx(closed, rel=2e-3)


def test_regrouping_takes_most_of_the_blast_radius_away():
    rate, repair = 3.79e-3 / DAY, DAY
    lost = {p: 1 - Recovery(p, repair).throughput(shape(32), rate) for p in ("elastic", "regroup")}
    assert lost["regroup"] < lost["elastic"] / 5


@pytest.mark.parametrize("group", [16, 32, 64])
def test_elastic_against_plenty_of_spares_crosses_at_the_closed_break_even(group):
    # 192 spares are never short within a few days of repair, so their goodput does not depend on
    # it.
    rate, rival = (
        job(group).node_rate,
        relative_goodput(job(group), "spares", DAY, spares=192).share,
    )
    closed = ((rival * (1 + 2048 * rate * 30.0)) ** (-1 / group) - 1) / rate
    assert elastic_throughput(2048, group, rate, closed, 30.0) == pytest.approx(rival, rel=1e-12)
    ahead, behind = (
        relative_goodput(job(group), "elastic", closed * f).share for f in (0.999, 1.001)
    )
    assert ahead > relative_goodput(job(group), "spares", closed, spares=192).share > behind


def test_jobs_on_other_nodes_have_no_break_even():
    policy = Recovery("elastic", DAY)
    with pytest.raises(
        ValueError, match="other_shape must have the nodes of shape = 2048, got 1024"
    ):
        break_even_rates(shape(16), policy, shape(16, 1024), policy)
    with pytest.raises(ValueError, match="nodes must be a multiple"):
        break_even_regroup(1.1, 2050, 16, 8, 1e-8)
