from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters import s43
from chapters.s42.unequal_nodes import unequal_throughput
from chapters.s43.elastic import elastic_throughput

DAY = 86400.0
LLAMA = {
    "nodes": 2048,
    "nodes_per_replica": 16,
    "node_rate": 3.79e-3 / DAY,
    "repair": DAY,
    "pause": 30.0,
}


def test_the_acceptance_calls():
    common = {"nodes": 2048, "nodes_per_replica": 16, "node_rate": 3.79e-3 / 86400, "repair": 86400}
    common["pause"] = 30
    shrink = s43.elastic_throughput(**common, batch="shrink")
    keep = s43.elastic_throughput(**common, batch="keep", micro_batches=8)
    assert (round(shrink, 5), round(keep, 5)) == (0.93874, 0.88581)


def enumerated(nodes, group, node_up, batch, micro_batches, regroup):
    """Mean throughput over all 2^nodes states."""
    replicas, mean = nodes // group, 0.0
    for state in product((0, 1), repeat=nodes):
        alive = (
            sum(state) // group
            if regroup
            else sum(all(state[i : i + group]) for i in range(0, nodes, group))
        )
        if batch == "shrink":
            speed = alive / replicas
        else:
            speed = micro_batches / -(-replicas * micro_batches // alive) if alive else 0.0
        mean += speed * node_up ** sum(state) * (1 - node_up) ** (nodes - sum(state))
    return mean


@pytest.mark.parametrize("regroup", [False, True])
@pytest.mark.parametrize(
    ("batch", "micro_batches"), [("shrink", None), ("keep", 1), ("keep", 3), ("keep", 8)]
)
@pytest.mark.parametrize(("nodes", "group"), [(6, 1), (6, 2), (9, 3), (8, 4), (5, 5)])
def test_elastic_throughput_equals_the_sum_over_all_states(
    nodes, group, batch, micro_batches, regroup
):
    share = elastic_throughput(
        nodes,
        group,
        0.3,
        1.0,
        pause=0.25,
        batch=batch,
        micro_batches=micro_batches,
        regroup=regroup,
    )
    expected = enumerated(nodes, group, 1 / 1.3, batch, micro_batches, regroup)
    assert share == pytest.approx(expected / (1 + nodes * 0.3 * 0.25), rel=1e-10)


def test_elastic_throughput_agrees_with_simulated_nodes():
    # Nodes alternate between exponential lives and repairs; the job is watched over a long time.
    rng, nodes, group, life, mend, horizon = np.random.default_rng(4), 24, 4, 30.0, 2.0, 4000.0
    watch = np.arange(0.0, horizon, 7.0)
    up = np.zeros((len(watch), nodes), dtype=bool)
    for node in range(nodes):
        lives, repairs = rng.exponential(life, 400), rng.exponential(mend, 400)
        begins = np.concatenate([[0.0], np.cumsum(lives + repairs)[:-1]])
        index = np.searchsorted(begins, watch, side="right") - 1
        up[:, node] = watch < begins[index] + lives[index]
    alive = up.reshape(len(watch), -1, group).all(axis=2).mean(axis=1)[20:]
    batches = alive[: len(alive) // 20 * 20].reshape(20, -1).mean(axis=1)
    z = (batches.mean() - elastic_throughput(nodes, group, 1 / life, mend, 0.0)) / (
        batches.std(ddof=1) / np.sqrt(20)
    )
    assert abs(z) < 4


def test_nothing_is_lost_where_nothing_fails_or_repair_and_pause_take_no_time():
    assert elastic_throughput(**{**LLAMA, "node_rate": 0.0}) == 1.0
    assert elastic_throughput(**{**LLAMA, "repair": 0.0, "pause": 0.0}) == 1.0
    assert elastic_throughput(
        **{**LLAMA, "repair": 0.0, "pause": 0.0}, batch="keep", micro_batches=5
    ) == pytest.approx(1)


@given(
    group=st.sampled_from([1, 2, 4, 8, 16, 32]),
    repair=st.floats(60.0, 30 * DAY),
    pause=st.floats(0.0, 600.0),
    micro_batches=st.integers(1, 64),
)
def test_bigger_replicas_slower_repair_and_kept_batches_cost_throughput(
    group, repair, pause, micro_batches
):
    job = {"nodes": 64, "node_rate": 3.79e-3 / DAY, "repair": repair, "pause": pause}
    shrink = elastic_throughput(nodes_per_replica=group, **job)
    assert elastic_throughput(nodes_per_replica=2 * group, **job) <= shrink
    assert elastic_throughput(nodes_per_replica=group, **{**job, "repair": 2 * repair}) <= shrink
    assert (
        elastic_throughput(
            nodes_per_replica=group, batch="keep", micro_batches=micro_batches, **job
        )
        <= shrink + 1e-12
    )
    assert elastic_throughput(nodes_per_replica=group, regroup=True, **job) >= shrink - 1e-12


def test_fine_micro_batches_make_both_readings_equal():
    kept = elastic_throughput(**LLAMA, batch="keep", micro_batches=10**6)
    assert kept == pytest.approx(elastic_throughput(**LLAMA), abs=1e-5)


def test_throughput_broadcasts_over_repair_times():
    repairs = np.array([600.0, DAY])
    for options in ({}, {"batch": "keep", "micro_batches": 8}, {"regroup": True}):
        together = elastic_throughput(**{**LLAMA, "repair": repairs}, **options)
        apart = [elastic_throughput(**{**LLAMA, "repair": r}, **options) for r in repairs]
        assert together == pytest.approx(apart)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"nodes": 2050}, "nodes"),
        ({"batch": "grow"}, "batch"),
        ({"batch": "keep"}, "micro_batches"),
        ({"batch": "keep", "micro_batches": 0}, "micro_batches"),
        ({"micro_batches": 8}, "micro_batches"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises((ValueError, TypeError), match=named):
        elastic_throughput(**{**LLAMA, **arguments})


def test_equal_rates_are_the_usual_throughput():
    for nodes, size in ((32, 1), (32, 8), (48, 16)):
        equal = unequal_throughput(np.full(nodes, 3e-7), size, 86400, 30)
        assert equal == pytest.approx(elastic_throughput(nodes, size, 3e-7, 86400, 30), rel=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_no_order_of_unequal_nodes_keeps_more_than_the_sorted_one(seed):
    rates = np.random.default_rng(seed).gamma(0.3, 1e-6, 6)
    kept = [unequal_throughput(order, 2, 86400, 30) for order in permutations(rates)]
    assert unequal_throughput(rates, 2, 86400, 30, sort=True) == pytest.approx(max(kept), rel=1e-13)
    assert min(kept) < max(kept)


def test_unequal_nodes_one_by_one():
    """The mean over independent nodes that are up a share of the time, drawn."""
    rng = np.random.default_rng(1)
    rates = rng.gamma(0.5, 4e-6, 12)
    up = rng.random((200_000, 12)) < 1 / (1 + rates * 86400)
    drawn = up.reshape(-1, 4, 3).all(axis=2).mean(axis=1)
    expected = unequal_throughput(rates, 3, 86400, 0)
    assert drawn.mean() == pytest.approx(expected, abs=4 * drawn.std() / np.sqrt(drawn.size))
