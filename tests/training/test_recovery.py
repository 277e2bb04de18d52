from fractions import Fraction
from itertools import product
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import relparallel as rp
from relparallel.training import elastic_throughput, erlang_b, shortage_probability, spares_needed

DAY = 86400.0
LLAMA = {"nodes": 2048, "nodes_per_replica": 16, "node_rate": 3.79e-3 / DAY, "repair": DAY, "pause": 30.0}


def test_the_acceptance_calls():
    common = {"nodes": 2048, "nodes_per_replica": 16, "node_rate": 3.79e-3 / 86400, "repair": 86400}
    common["pause"] = 30
    shrink = rp.training.elastic_throughput(**common, batch="shrink")
    keep = rp.training.elastic_throughput(**common, batch="keep", micro_batches=8)
    assert (round(shrink, 5), round(keep, 5)) == (0.93874, 0.88581)


@given(servers=st.integers(0, 30), load=st.fractions(Fraction(1, 50), Fraction(40)))
def test_erlang_b_is_the_quotient_of_its_sum(servers, load):
    terms = [load**j / factorial(j) for j in range(servers + 1)]
    assert erlang_b(servers, float(load)) == pytest.approx(float(terms[-1] / sum(terms)), rel=1e-12)


def test_erlang_b_takes_loads_as_arrays_and_survives_extremes():
    busy = erlang_b(5, np.array([0.0, 1e-9, 1e30]))
    assert busy[0] == 0.0
    assert busy[1] == pytest.approx(1e-45 / 120, rel=1e-6)
    assert busy[2] == 1.0


def stationary_shortage(nodes, spares, failing, mending):
    """Share of time short of nodes in the birth-death chain of nodes under repair, by linear algebra."""
    states = spares + 2
    rates = np.zeros((states, states))
    for down in range(states):
        if down < states - 1:
            rates[down, down + 1] = nodes * failing
        if down:
            rates[down, down - 1] = down * mending
    np.fill_diagonal(rates, -rates.sum(axis=1))
    return np.linalg.lstsq(np.vstack([rates.T, np.ones(states)]), np.eye(states + 1)[-1], rcond=None)[0][-1]


@pytest.mark.parametrize(("nodes", "spares"), [(1, 0), (10, 2), (50, 5), (200, 0)])
def test_cold_spares_are_a_birth_death_chain(nodes, spares):
    expected = stationary_shortage(nodes, spares, failing=0.01, mending=0.3)
    assert shortage_probability(nodes, spares, 0.01, 1 / 0.3) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("sigma", [0.0, 1.4])
def test_cold_spares_feel_the_mean_repair_only(sigma):
    # LANL repairs are lognormal with sigma 1.4; a loss system of the same mean is as often short.
    rng, nodes, spares, failing, mean = np.random.default_rng(3), 40, 4, 0.01, 8.0
    clock, busy_until, waited, batches = 0.0, [], [], []
    for _ in range(200):
        start, waited = clock, 0.0
        for _ in range(300):
            clock += rng.exponential(1 / (nodes * failing))
            busy_until = [t for t in busy_until if t > clock]
            busy_until.append(clock + mean * rng.lognormal(-(sigma**2) / 2, sigma))
            if len(busy_until) > spares:
                waited += min(busy_until) - clock
                clock = min(busy_until)
        batches.append(waited / (clock - start))
    z = (np.mean(batches) - shortage_probability(nodes, spares, failing, mean)) / (
        np.std(batches) / np.sqrt(200)
    )
    assert abs(z) < 4


@pytest.mark.parametrize(("nodes", "spares"), [(3, 1), (4, 2), (2, 0), (1, 5)])
def test_hot_spares_are_a_binomial_tail(nodes, spares):
    down = 0.2 / 1.2
    total = sum(
        down ** sum(state) * (1 - down) ** (len(state) - sum(state))
        for state in product((0, 1), repeat=nodes + spares)
        if sum(state) > spares
    )
    assert shortage_probability(nodes, spares, 0.1, 2.0, kind="hot") == pytest.approx(total, rel=1e-12)


@given(
    nodes=st.integers(1, 5000), down=st.floats(0.0, 0.05), allowed=st.floats(1e-9, 0.9),
    kind=st.sampled_from(["cold", "hot"]),
)  # fmt: skip
def test_spares_needed_is_the_smallest_number_that_suffices(nodes, down, allowed, kind):
    spares = spares_needed(nodes, down, 1.0, allowed, kind)
    assert shortage_probability(nodes, spares, down, 1.0, kind) <= allowed * (1 + 1e-9)
    if spares:
        assert shortage_probability(nodes, spares - 1, down, 1.0, kind) > allowed * (1 - 1e-9)


def test_the_share_of_spares_falls_with_the_cluster():
    share = [spares_needed(n, 3.79e-3, 1.0, 1e-3) / n for n in (128, 512, 2048, 8192, 32768)]
    assert share == sorted(share, reverse=True)


def enumerated(nodes, group, node_up, batch, micro_batches, regroup):
    """Mean throughput over all 2^nodes states."""
    replicas, mean = nodes // group, 0.0
    for state in product((0, 1), repeat=nodes):
        alive = (
            sum(state) // group if regroup else sum(all(state[i : i + group]) for i in range(0, nodes, group))
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
def test_elastic_throughput_equals_the_sum_over_all_states(nodes, group, batch, micro_batches, regroup):
    share = elastic_throughput(
        nodes, group, 0.3, 1.0, pause=0.25, batch=batch, micro_batches=micro_batches, regroup=regroup
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
    group=st.sampled_from([1, 2, 4, 8, 16, 32]), repair=st.floats(60.0, 30 * DAY),
    pause=st.floats(0.0, 600.0), micro_batches=st.integers(1, 64),
)  # fmt: skip
def test_bigger_replicas_slower_repair_and_kept_batches_cost_throughput(group, repair, pause, micro_batches):
    job = {"nodes": 64, "node_rate": 3.79e-3 / DAY, "repair": repair, "pause": pause}
    shrink = elastic_throughput(nodes_per_replica=group, **job)
    assert elastic_throughput(nodes_per_replica=2 * group, **job) <= shrink
    assert elastic_throughput(nodes_per_replica=group, **{**job, "repair": 2 * repair}) <= shrink
    assert (
        elastic_throughput(nodes_per_replica=group, batch="keep", micro_batches=micro_batches, **job)
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
        ({"nodes": 0}, "nodes"),
        ({"nodes_per_replica": 0}, "nodes_per_replica"),
        ({"node_rate": -1.0}, "node_rate"),
        ({"repair": float("nan")}, "repair"),
        ({"pause": 1e300}, "pause"),
        ({"batch": "grow"}, "batch"),
        ({"batch": "keep"}, "micro_batches"),
        ({"batch": "keep", "micro_batches": 0}, "micro_batches"),
        ({"micro_batches": 8}, "micro_batches"),
        ({"regroup": "yes"}, "regroup"),
        ({"repair": [1.0, 2.0], "pause": [1.0, 2.0, 3.0]}, "repair, pause"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises((ValueError, TypeError), match=named):
        elastic_throughput(**{**LLAMA, **arguments})


@pytest.mark.parametrize(
    ("name", "bad"),
    [("nodes", 0), ("node_rate", -1.0), ("repair", 1e300), ("probability", 0.0), ("kind", "warm")],
)
def test_bad_spares_are_named(name, bad):
    good = {"nodes": 8, "node_rate": 1e-3, "repair": 1.0, "probability": 0.1}
    with pytest.raises((ValueError, TypeError), match=name):
        spares_needed(**{**good, name: bad})


def test_a_load_beyond_every_cluster_is_refused():
    with pytest.raises(ValueError, match="repair"):
        spares_needed(nodes=10**6, node_rate=1.0, repair=1e3, probability=0.1)
