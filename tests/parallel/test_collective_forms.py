"""Closed forms of collectives on two levels against the price of their rounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from relparallel.parallel import Links, collective, collective_time, ring_all_reduce, rounds_time
from relparallel.parallel.algorithms import (
    chain_broadcast,
    double_tree_all_reduce,
    halving_doubling_all_reduce,
    hierarchical_all_gather,
    hierarchical_all_reduce,
    recursive_doubling_all_reduce,
    tree_all_reduce,
)
from relparallel.parallel.collective_forms import FORMS, crossover_size
from relparallel.parallel.collectives import ring_all_gather, ring_reduce_scatter
from relparallel.parallel.layer_times import gather, in_node
from relparallel.parallel.quantities import Rates

EXACT = {
    ("all_reduce", "ring"): lambda n, elements, g: ring_all_reduce(n, elements),
    ("all_reduce", "tree"): tree_all_reduce,
    ("all_reduce", "halving_doubling"): halving_doubling_all_reduce,
    ("all_reduce", "hierarchical"): hierarchical_all_reduce,
    ("all_reduce", "recursive_doubling"): recursive_doubling_all_reduce,
    ("reduce_scatter", "ring"): lambda n, elements, g: ring_reduce_scatter(n, elements),
    ("all_gather", "ring"): lambda n, elements, g: ring_all_gather(n, elements),
    ("all_gather", "hierarchical"): hierarchical_all_gather,
}


def sides(links: Links, size: float, inside: float, out: float) -> float:
    """A round in which a rank sends so many parts inside its node, and a node so many out of it."""
    near = links.latency + inside * size / links.bandwidth if inside else 0.0
    return max(near, links.network_latency + out * size / links.network_bandwidth if out else 0.0)


def direct(n: int, g: int, size: float, links: Links) -> float:
    """In the round to the rank d places on, min(d, n - d, g) chunks leave every node."""
    away = [min(d, n - d) for d in range(1, n)]
    return sum(sides(links, size / n, d < g, min(d, g) * (n > g)) for d in away)


def circle(n: int, g: int, size: float, links: Links) -> float:
    """One chunk less in every round, to the next rank."""
    return sum(sides(links, size / n, k * (g > 1), k * (n > g)) for k in range(1, n))


def bruck(n: int, g: int, size: float, links: Links) -> float:
    """In round j, min(2^j, n - 2^j) chunks to the rank 2^j places back."""
    sent = [(2**j, min(2**j, n - 2**j)) for j in range((n - 1).bit_length())]
    return sum(
        sides(links, size / n, k * (min(d, n - d) < g), k * min(d, n - d, g) * (n > g))
        for d, k in sent
    )


def nested(n: int, g: int, size: float, links: Links) -> float:
    """Messages of n/g chunks inside, then g ranks with g chunks each between nodes."""
    inside = (g - 1) * (links.latency + size / g / links.bandwidth)
    return inside + (n // g - 1) * (
        links.network_latency + g * g * size / n / links.network_bandwidth
    )


def tree(n: int, g: int, size: float, links: Links) -> float:
    near = math.ceil(math.log2(g)) * (links.latency + size / links.bandwidth)
    return near + math.ceil(math.log2(n // g)) * (
        links.network_latency + size / links.network_bandwidth
    )


PRICED = {
    ("all_to_all", "direct"): direct,
    ("all_to_all", "ring"): circle,
    ("all_to_all", "hierarchical"): nested,
    ("all_gather", "bruck"): bruck,
    ("broadcast", "tree"): tree,
}
latencies = st.sampled_from([0.0, 1e-6, 3e-6, 1e-3])
bandwidths = st.floats(1e6, 1e11)
levels = st.builds(
    Links,
    latency=latencies,
    bandwidth=bandwidths,
    network_latency=latencies,
    network_bandwidth=bandwidths,
    launch=st.sampled_from([0.0, 1e-5]),
)
SELENE = Links(latency=2e-6, bandwidth=230e9, network_latency=8e-6, network_bandwidth=180e9)


def one_level(latency: float, bandwidth: float) -> Links:
    return Links(latency=latency, bandwidth=bandwidth, network_latency=1.0, network_bandwidth=1.0)


@pytest.mark.parametrize("case", EXACT, ids=" ".join)
@settings(max_examples=25)
@given(nodes=st.integers(1, 7), g=st.integers(1, 7), chunk=st.integers(1, 50), links=levels)
def test_the_closed_form_is_the_price_of_the_rounds(case, nodes, g, chunk, links):
    whole = math.lcm(
        nodes * g, g * 2 ** (g.bit_length() - 1) * 2 ** (nodes.bit_length() - 1) * nodes
    )
    rounds = EXACT[case](nodes * g, whole * chunk, g)
    priced = rounds_time(rounds, g, links, element_bytes=1)
    assert collective_time(*case, whole * chunk, nodes * g, g, links) == pytest.approx(
        priced, rel=1e-9
    )


@settings(max_examples=25)
@given(
    ranks=st.integers(3, 20), size=st.integers(1, 2000), latency=st.sampled_from([1e-6, 1e-3, 1.0])
)
def test_a_double_tree_costs_at_most_its_closed_form(ranks, size, latency):
    links = one_level(latency, 1e6)
    depth = math.ceil(math.log2(ranks))
    best = max(1, round(math.sqrt((depth - 1) * size / 1e6 / latency)))
    assume(best < 200)
    rounds = double_tree_all_reduce(ranks, 2 * best * size, best)
    priced = rounds_time(rounds, ranks, links, element_bytes=1 / (2 * best))
    formula = collective_time("all_reduce", "double_tree", size, ranks, ranks, links)
    assert 0.6 * formula <= priced <= 1.3 * formula  # the best whole number of pieces lies nearby
    assert priced <= 2 * (depth + best - 1) * (latency + size / best / 1e6) * (1 + 1e-9)


@pytest.mark.parametrize("case", PRICED, ids=" ".join)
@settings(max_examples=25)
@given(nodes=st.integers(1, 7), g=st.integers(1, 7), chunk=st.integers(1, 50), links=levels)
def test_rounds_without_a_closed_form_cost_what_their_messages_say(case, nodes, g, chunk, links):
    n = nodes * g
    rounds = collective(*case, n, n * chunk, ranks_per_node=g)
    expected = PRICED[case](n, g, n * chunk, links) + links.launch * (n > 1)
    assert rounds_time(rounds, g, links, element_bytes=1) == pytest.approx(expected, rel=1e-9)


@given(
    ranks=st.integers(2, 12), pieces=st.integers(1, 40), latency=st.sampled_from([1e-5, 1e-3, 1.0])
)
def test_a_chain_passes_piece_after_piece(ranks, pieces, latency):
    rounds = chain_broadcast(ranks, 10 * pieces, pieces)
    priced = rounds_time(rounds, ranks, one_level(latency, 1e6), element_bytes=1)
    assert priced == pytest.approx((ranks + pieces - 2) * (latency + 10 / 1e6), rel=1e-9)


@pytest.mark.parametrize("kind", FORMS)
def test_arrays_give_what_numbers_give(kind):
    size, ranks = np.array([[1e3], [1e6], [1e9]]), np.array([8, 16, 64, 24])
    for algorithm in FORMS[kind]:
        many = collective_time(kind, algorithm, size, ranks, 8, SELENE)
        single = [
            [collective_time(kind, algorithm, s, n, 8, SELENE) for n in ranks] for s in size[:, 0]
        ]
        assert many == pytest.approx(np.array(single), rel=1e-12)


def test_bandwidths_may_be_arrays_too():
    links = Links(latency=0, bandwidth=[1e9, 2e9], network_latency=0, network_bandwidth=1e9)
    assert collective_time("all_reduce", "ring", 4e9, 4, 4, links).tolist() == [6.0, 3.0]


@pytest.mark.parametrize("kind", FORMS)
def test_one_rank_needs_no_time(kind):
    times = [collective_time(kind, name, 1e9, 1, 1, SELENE) for name in FORMS[kind]]
    assert times == [0.0] * len(times)


def test_an_algorithm_without_closed_form_says_how_to_price_it():
    with pytest.raises(ValueError, match=r"algorithm must have a closed form.*rounds_time"):
        collective_time("all_gather", "bruck", 1e6, 8, 8, SELENE)


@given(
    level=st.integers(1, 8), latency=st.sampled_from([1e-6, 5e-6]), bandwidth=st.floats(1e9, 1e11)
)
def test_tree_and_ring_cross_where_their_lines_do(level, latency, bandwidth):
    n, links = 2**level, one_level(latency, bandwidth)
    found = crossover_size("all_reduce", "tree", "ring", n, n, links)
    rounds, bytes_ = 2 * (n - 1) - 2 * level, 2 * level - 2 * (n - 1) / n
    assert found == pytest.approx(
        rounds * latency * bandwidth / bytes_ if rounds else 0.0, rel=1e-6
    )


def test_there_may_be_no_crossing():
    links = one_level(1e-6, 1e9)
    assert crossover_size("all_reduce", "halving_doubling", "ring", 8, 8, links) == np.inf
    assert crossover_size("all_reduce", "ring", "halving_doubling", 8, 8, links) == 0.0


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    ("stride", "ranks"), [(1, 2), (1, 8), (1, 16), (2, 4), (4, 8), (8, 16), (8, 4)]
)
def test_a_step_prices_rings_alike(stride, ranks, inside):
    """Its latencies are a launch and a part per rank: given those, times agree; and with none."""
    values = {
        "node": 8,
        "node_link": 300e9,
        "network": 200e9,
        "link_share": 0.75,
        "network_share": 0.9,
    }
    values |= {"round": 24e-6 * inside, "hop": 40e-6 * inside}
    machine = Rates(**dict.fromkeys(Rates._fields, 0.0) | values)
    together = in_node(machine, float(stride), float(ranks))
    found = gather(1e8, float(ranks), together, False, machine)
    one_node, nodes = ranks <= together, np.ceil(ranks / together)
    rounds = min(nodes - 1, np.ceil(np.log2(nodes)))
    links = Links(
        latency=machine.round / 8 if one_node else 0.0,
        bandwidth=300e9 * 0.75,
        network_latency=0.0,
        network_bandwidth=200e9 * 0.9 * together / 8,
        launch=machine.round * (5 / 8 if one_node else 1 / 2)
        + (0 if one_node else rounds * machine.hop),
    )
    ways = ("ring",) if one_node else ("ring", "hierarchical")
    ours = [
        collective_time("reduce_scatter", way, 1e8, ranks, int(together), links) for way in ways
    ]
    assert min(ours) == pytest.approx(found, rel=1e-12)
    assert collective_time("all_gather", "ring", 1e8, ranks, int(together), links) == ours[0]


def test_unequal_nodes_and_unknown_names_are_refused():
    with pytest.raises(ValueError, match="ranks_per_node must divide ranks = 6, got 4"):
        collective_time("all_reduce", "ring", 1.0, 6, 4, SELENE)
    with pytest.raises(
        ValueError, match="algorithm must be one of 'ring', 'hierarchical', got 'none'"
    ):
        collective_time("all_gather", "none", 1.0, 4, 4, SELENE)
    arrays = Links(latency=[0, 0], bandwidth=1, network_latency=0, network_bandwidth=1)
    with pytest.raises(ValueError, match="links must hold one number each"):
        rounds_time(ring_all_reduce(2, 2), 2, arrays)
