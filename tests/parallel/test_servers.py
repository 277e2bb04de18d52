"""Summation by servers and over link levels: against linear programmes, rounds and every order."""

from itertools import permutations

import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog

from chapters.s32.servers import byteps_time, server_time, superstep_time
from relparallel.parallel import Links, best_blueconnect_order, blueconnect_time, collective_time


@given(st.integers(2, 64), st.data())
def test_no_split_is_faster_than_byteps(n, data):
    k = data.draw(st.integers(0, n))
    found = byteps_time(n, k, 1.0, 1.0)
    cpu = n if k else 0
    least = linprog(
        [1, 0, 0], A_ub=[[-1, cpu, 0], [-1, 0, n - 2]], b_ub=[0, -1], A_eq=[[0, k, n]], b_eq=[1]
    )
    assert found.time == pytest.approx(least.fun, rel=1e-9)
    assert k * found.server_bytes + n * found.worker_bytes == pytest.approx(1, rel=1e-12)


def test_a_chain_of_replicas_costs_bytes_and_no_time_where_servers_are_many():
    assert server_time(8, 4, 1e9, 1e9, replicas=2) == pytest.approx(9 / 4)
    assert server_time(8, 9, 1e9, 1e9, replicas=2) == 1.0
    assert server_time(8, 4, 1e9, 1e9) == pytest.approx(2)


def test_a_superstep_waits_for_the_slowest_of_each_kind():
    assert superstep_time([3.0, 1.0], [0.0, 5.0], 0.1, 0.2) == pytest.approx(3.7)


def test_one_level_is_the_ring_and_two_are_the_hierarchical_all_reduce():
    links = Links(latency=3e-6, bandwidth=150e9, network_latency=5e-6, network_bandwidth=8 * 12.5e9)
    ring = collective_time("all_reduce", "ring", 100e6, 8, 8, links)
    assert blueconnect_time(100e6, [(8, 3e-6, 150e9)]) == pytest.approx(float(ring), rel=1e-12)
    nested = collective_time("all_reduce", "hierarchical", 100e6, 32, 8, links)
    both = blueconnect_time(100e6, [(8, 3e-6, 150e9), (4, 5e-6, 12.5e9)])
    assert both == pytest.approx(float(nested), rel=1e-12)


@given(
    st.lists(
        st.tuples(st.integers(2, 9), st.floats(0, 1e-4), st.floats(1e9, 1e12)),
        min_size=1,
        max_size=4,
    )
)
def test_no_order_of_levels_or_of_their_prime_factors_is_better(levels):
    found = best_blueconnect_order(1e8, levels)
    best = blueconnect_time(1e8, found)
    assert best <= min(blueconnect_time(1e8, order) for order in permutations(levels)) * (1 + 1e-12)
    if len(found) <= 6:
        every = min(blueconnect_time(1e8, order) for order in permutations(found))
        assert best == pytest.approx(every, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: byteps_time(4, 5, 1.0, 1.0), "cpu_machines"),
        (lambda: server_time(4, 2, 1.0, 1.0, replicas=3), "replicas"),
        (lambda: blueconnect_time(1.0, []), "levels"),
        (lambda: best_blueconnect_order(1.0, [(2, 0.0, 1.0)] * 65), "levels"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()
