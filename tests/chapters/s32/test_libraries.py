"""What libraries choose: MPI by closed forms, NCCL by its tables; and PLink's racks."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s32.fastest import fastest_algorithm
from chapters.s32.hierarchies import (
    discover_groups,
    flip_size,
    level_rounds_time,
    ready_rounds_time,
)
from chapters.s32.nccl import nccl_times
from relparallel.parallel import (
    Links,
    blueconnect_time,
    collective,
    execute,
    plan_rounds,
    ring_all_reduce,
    rounds_time,
)
from relparallel.topology import leaf_spine

EXACT = ("ring", "tree", "halving_doubling", "hierarchical", "recursive_doubling")


@given(
    st.sampled_from([4, 16, 32]),
    st.sampled_from([1, 2, 4]),
    st.integers(8, 28),
    st.sampled_from([0.0, 5e-6]),
)
def test_no_priced_rounds_beat_the_choice(ranks, g, exponent, latency):
    links = Links(latency=latency, bandwidth=2e11, network_latency=1e-5, network_bandwidth=5e10)
    chosen = fastest_algorithm("all_reduce", 2**exponent, ranks, g, links)
    price = {
        n: rounds_time(
            collective("all_reduce", n, ranks, 2**exponent, g), g, links, element_bytes=1
        )
        for n in EXACT
    }
    if chosen in EXACT:
        assert price[chosen] <= min(price.values()) * (1 + 1e-9)


def test_short_messages_swap_whole_vectors_and_long_ones_go_round():
    links = Links(latency=5e-6, bandwidth=1e9, network_latency=0, network_bandwidth=1)
    chosen = [
        fastest_algorithm("all_reduce", size, 48, 48, links) for size in np.geomspace(1e2, 1e9, 30)
    ]
    assert chosen[0] == "recursive_doubling"
    assert chosen[-1] == "ring"
    assert len(set(chosen)) >= 3


def test_the_tuner_takes_trees_for_short_vectors_and_rings_for_long_ones():
    choice = [
        nccl_times(size, 64, 8, 16, 12e9, "ampere").index[0] for size in np.geomspace(64, 4e9, 40)
    ]
    assert choice[0][0] == "tree"
    assert choice[-1] == ("ring", "simple")
    assert {protocol for _, protocol in choice} >= {"ll", "ll128", "simple"}


def test_a_ring_between_nodes_has_a_plateau_and_one_gpu_a_node_the_latency_of_trees():
    short, long = (
        nccl_times(size, 16, 2, 4, 12e9, "hopper").loc[("ring", "simple")] for size in (1e3, 1e9)
    )
    assert short["time"] == pytest.approx(short["latency"] + 1e3 / short["bandwidth"])
    assert long["time"] == pytest.approx(1.4 * long["latency"] + 1e9 / long["bandwidth"])
    single = nccl_times(1e3, 4, 4, 4, 12e9, "hopper").loc[("ring", "ll"), "latency"]
    assert single == pytest.approx(6.6e-6 + 6 * 5.0e-6)


def test_low_latency_trees_carry_a_share_of_the_link_and_no_more_than_the_protocol():
    alone = nccl_times(1e6, 8, 1, 12, 20e9, "ampere")["bandwidth"]
    assert alone["tree", "simple"] / alone["tree", "ll"] == pytest.approx(3.8)
    assert alone["tree", "ll128"] / alone["tree", "simple"] == pytest.approx(7 / 9)
    between = nccl_times(1e6, 16, 2, 16, 20e9, "hopper")["bandwidth"]
    assert between["tree", "ll"] == pytest.approx(39e9 / 2)  # the cap; a share would be 38.7e9
    assert between["tree", "ll128"] / between["tree", "simple"] == pytest.approx(120 / 128)


def test_sums_inside_racks_first_spare_the_core():
    """They send (n/g - 1)/(n - 1) of what a ring across all racks sends upwards."""
    t = leaf_spine(leaves=4, spines=2, hosts_per_leaf=8)
    dealt = t.hosts.reshape(4, 8).T.ravel()
    hops = (dealt[:, None] // 8 != dealt // 8) * 2.0 + 2
    order = np.argsort(discover_groups(hops), kind="stable")
    up = (t.edges[:, 0] >= 32).nonzero()[0]
    nested, ring = (
        plan_rounds(collective("all_reduce", name, 32, 320, 8), t, nodes=nodes).load()[up].sum()
        for name, nodes in (("hierarchical", dealt[order]), ("ring", dealt))
    )
    assert nested / ring == pytest.approx(3 / 31)


def test_servers_that_add_differences_of_weights_hold_what_training_in_turn_gives():
    """Whatever the optimiser: three workers keep their own momentum; they pull and push in turn."""
    held, alone = np.zeros((4, 1)), 0.0
    speed, momentum = np.zeros(3), np.zeros(3)
    push, pull = collective("server_sum", "flat", 2, 1)
    for worker, target in [(0, 1.0), (2, -2.0), (1, 5.0), (0, 1.0), (2, -2.0)]:
        pair = execute([pull], held[[worker, 3]])
        speed[worker] = 0.9 * speed[worker] + pair[0, 0] - target
        pair[0] = -0.1 * speed[worker]
        held[[worker, 3]] = execute([push], pair)
        momentum[worker] = 0.9 * momentum[worker] + alone - target
        alone -= 0.1 * momentum[worker]
    assert held[3, 0] == pytest.approx(alone)


@given(st.integers(2, 8), st.integers(2, 8), st.integers(0, 1000), st.booleans())
def test_probes_recover_planted_racks_through_noise(racks, each, seed, told):
    rng = np.random.default_rng(seed)
    rack = rng.permutation(np.repeat(np.arange(racks), each))
    probes = np.where(rack[:, None] == rack, 10.0, 30.0) + rng.uniform(
        -4, 4, (rack.size, rack.size)
    )
    found = discover_groups(probes, racks if told else None)
    assert ((found[:, None] == found) == (rack[:, None] == rack)).all()
    assert found[0] == 0


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: nccl_times(1e6, 9, 2, 1, 1e9, "volta"), "nodes"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_a_piece_of_a_ring_pays_each_hop_at_its_own_level():
    """Two turns less two hops: 2 N hops over the network, the others inside nodes."""
    for nodes in (4, 24):
        levels = [(8, 3.4e-6, 450e9), (nodes, 14e-6, 50e9)]
        around = list(ring_all_reduce(8 * nodes, 8 * nodes))
        latencies = ready_rounds_time(around, levels, element_bytes=0)
        inside = 2 * (8 * nodes - 1) - 2 * nodes
        assert latencies == pytest.approx(inside * 3.4e-6 + 2 * nodes * 14e-6)
        assert level_rounds_time(around, levels, element_bytes=0) == pytest.approx(
            2 * (8 * nodes - 1) * 14e-6
        )


@given(st.sampled_from(["ring", "blueconnect", "tree", "recursive_doubling"]), st.integers(0, 24))
def test_rounds_that_do_not_wait_are_never_slower_than_rounds_in_step(name, exponent):
    levels = [(4, 1e-6, 2e11), (4, 1e-5, 5e10)]
    rounds = list(collective("all_reduce", name, 16, 2**exponent))
    ready, in_step = (
        price(rounds, levels, element_bytes=1) for price in (ready_rounds_time, level_rounds_time)
    )
    assert 0 < ready <= in_step * (1 + 1e-9)


def test_rounds_that_are_alike_gain_nothing_from_not_waiting():
    levels = [(8, 3.4e-6, 450e9), (24, 14e-6, 50e9)]
    rounds = collective("all_reduce", "blueconnect", 192, 192, factors=[8, 24])
    assert ready_rounds_time(rounds, levels, element_bytes=1e6) == pytest.approx(
        blueconnect_time(192e6, levels)
    )


def test_a_flip_is_between_sizes_or_is_none():
    sizes = np.geomspace(1, 1e4, 5)
    assert flip_size(sizes, sizes / 50) == pytest.approx(50)
    assert np.isnan(flip_size(sizes, sizes / 0.5))
    assert np.isnan(flip_size(sizes, 0.5 * np.ones(5)))
