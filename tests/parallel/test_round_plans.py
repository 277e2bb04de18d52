"""Every generator of rounds sums, has counted bytes and a closed form, and a loss slows it."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from chapters.s32.hierarchies import level_rounds_time
from chapters.s32.servers import byteps_time, server_time
from chapters.s33.experts import exchange_rounds, expert_tokens
from relparallel.parallel import (
    COLLECTIVES,
    Links,
    Strategy,
    blueconnect_time,
    bytes_sent,
    collective,
    collective_time,
    execute,
    plan_rounds,
    ring_all_reduce,
)
from relparallel.parallel.collective_forms import FORMS
from relparallel.parallel.servers import server_rounds
from relparallel.topology import as_topology, fat_tree, leaf_spine
from relparallel.training import failure_model

G, N, K, BANDWIDTH = 4, 16, 3, 50e9  # ranks of a node, workers, servers, bytes/s of a cable
SIZE = 16 * 9 * 7 * 5 * 11  # elements, which most shares divide
STAR, TREE = as_topology(nx.star_graph(N + N // G + K)), fat_tree(k=8)
CASES = [(kind, name) for kind, names in COLLECTIVES.items() for name in names]
SERVERS = {"flat": K, "byteps": K, "hierarchical": K + N // G, "gpu_hierarchical": K}


def ranks_of(kind, name):
    return N + (SERVERS[name] if kind == "server_sum" else 0)


def rounds_of(kind, name, elements=SIZE):
    return list(collective(kind, name, ranks_of(kind, name), elements, ranks_per_node=G, servers=K))


def on_star(rounds, ranks, **options):
    return plan_rounds(rounds, STAR, nodes=np.arange(1, ranks + 1), **options)


def expected(kind, vectors):
    """What each rank ends with: elements that are not its own business are None."""
    if kind == "broadcast":
        return np.tile(vectors[0], (N, 1))
    return np.tile(vectors[:N].sum(axis=0), (N, 1))


@pytest.mark.parametrize(
    ("kind", "name"), [c for c in CASES if c[0] in ("all_reduce", "server_sum", "broadcast")]
)
def test_executed_it_is_the_sum(kind, name):
    vectors = np.random.default_rng(1).integers(-9, 9, (ranks_of(kind, name), 48)).astype(float)
    vectors[N:] = 0
    held = execute(rounds_of(kind, name, 48), vectors)
    assert np.array_equal(held[:N], expected(kind, vectors))


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_link_of_a_host_carries_the_bytes_that_its_rank_sends(kind, name):
    ranks, rounds = ranks_of(kind, name), rounds_of(kind, name)
    counted = bytes_sent(rounds, ranks, element_bytes=2)
    for plan in (
        on_star(rounds, ranks, element_bytes=2),
        plan_rounds(rounds, TREE, element_bytes=2),
    ):
        t, loads = plan.network, plan.load().reshape(2, -1)
        upwards = [
            loads[0 if t.edges[e, 0] == node else 1, e]
            for node in plan.nodes
            for e in np.flatnonzero((t.edges == node).any(axis=1))
        ]
        assert upwards == pytest.approx(counted)


PIECES = [("all_reduce", "double_tree"), ("broadcast", "chain")]


@pytest.mark.parametrize(
    ("kind", "name"), [c for c in CASES if c[1] in FORMS.get(c[0], ()) and c not in PIECES]
)
def test_on_one_switch_it_takes_the_closed_form(kind, name):
    rounds = collective(kind, name, N, SIZE, ranks_per_node=N)
    links = Links(latency=1e-3, bandwidth=BANDWIDTH, network_latency=0, network_bandwidth=1)
    formula = collective_time(kind, name, SIZE, N, N, links)
    assert on_star(rounds, N, latency=1e-3).time() == pytest.approx(formula, rel=1e-9)


def test_in_pieces_it_takes_the_form_of_so_many():
    chain, trees = (
        on_star(collective(*case, N, SIZE, pieces=5), N, latency=1e-3).time()
        for case in reversed(PIECES)
    )
    assert chain == pytest.approx((N + 5 - 2) * (1e-3 + SIZE / 5 / BANDWIDTH), rel=1e-9)
    assert trees <= 2 * (4 + 5 - 1) * (1e-3 + SIZE / 5 / BANDWIDTH) * (1 + 1e-9)


def test_servers_take_their_closed_forms():
    flat, split = (
        on_star(rounds_of("server_sum", name), N + K, streamed=True) for name in ("flat", "byteps")
    )
    assert flat.time() == pytest.approx(server_time(N, K, SIZE, BANDWIDTH), rel=1e-12)
    # whole elements
    assert split.time() == pytest.approx(byteps_time(N, K, SIZE, BANDWIDTH).time, rel=1e-3)
    chained = on_star(server_rounds(N + K, SIZE, K, replicas=2), N + K, streamed=True)
    assert chained.time() == pytest.approx(
        server_time(N, K, SIZE, BANDWIDTH, replicas=2), rel=1e-12
    )


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_on_a_fat_tree_a_lost_cable_slows_and_a_lost_host_stops(kind, name):
    plan = plan_rounds(rounds_of(kind, name), TREE, latency=1e-6)
    far = np.isin(TREE.edges, np.flatnonzero(TREE.is_kind("core"))).any(axis=1)
    slow = plan.slowdown([TREE.num_nodes + int(far.argmax())])
    assert 1 <= slow < 2
    assert plan.slowdown([int(plan.nodes[0])]) == np.inf
    assert plan.slowdown([TREE.num_nodes]) == np.inf  # the only cable of the first host
    assert plan.time() >= on_star(
        rounds_of(kind, name), ranks_of(kind, name), latency=1e-6
    ).time() * (1 - 1e-9)


def test_what_crosses_a_full_pod_is_slower_without_a_core():
    t = leaf_spine(leaves=2, spines=4, hosts_per_leaf=4)
    swap = list(collective("all_reduce", "recursive_doubling", 8, 100, ranks_per_node=4))
    plan = plan_rounds(swap, t, element_bytes=5e8, work=1.0)
    # two rounds inside a leaf, one across, one second each
    assert plan.time() == pytest.approx(3.0)
    assert plan.slowdown(t.switches[-1:]) == pytest.approx((1 + 2 + 4 / 3) / 4)
    assert plan.slowdown(t.switches[-3:]) == pytest.approx((1 + 2 + 4) / 4)


def test_a_stand_in_takes_over_for_a_lost_server_and_carries_twice():
    rounds = list(server_rounds(8 + 4, 96, 4, replicas=2))
    stand_in = [*range(8), 9, 10, 11, 8]
    alone = on_star(rounds, 12, streamed=True)
    helped = on_star(rounds, 12, streamed=True, stand_in=stand_in)
    assert alone.slowdown([9]) == np.inf
    # its range, and one copy less to get
    assert helped.slowdown([9]) == pytest.approx((2 * 8 + 1) / (8 + 1))
    assert helped.slowdown([9, 10]) == np.inf


def test_a_plan_has_its_place_in_the_failure_model():
    t = leaf_spine(leaves=4, spines=4, hosts_per_leaf=8)
    plan = plan_rounds(
        collective("all_reduce", "hierarchical", 32, 32, ranks_per_node=8), t, element_bytes=1e8
    )
    frame = failure_model(t, Strategy(data=32), plan=plan).to_frame().set_index("class")
    assert frame.loc["spine", ["parts", "effect", "slowdown is"]].tolist() == [
        4,
        "degrade",
        "computed",
    ]
    assert frame.loc["spine", "slowdown"] == pytest.approx(plan.slowdown(t.switches[-1:]))
    assert frame.loc["spine", "slowdown"] > 1
    assert set(frame.loc["leaf", "effect"]) == {"stop"}
    assert len(frame.loc["leaf"]) == 4
    with pytest.raises(ValueError, match="plan must stand on the topology"):
        failure_model(
            leaf_spine(leaves=4, spines=4, hosts_per_leaf=8), Strategy(data=32), plan=plan
        )


@settings(max_examples=20)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.floats(0, 1e-3))
def test_rounds_on_any_levels_cost_what_the_form_says(sizes, latency):
    levels = [(p, latency * (i + 1), 1e9 / (i + 1)) for i, p in enumerate(sizes)]
    ranks = int(np.prod(sizes))
    rounds = collective("all_reduce", "blueconnect", ranks, 5040 * ranks, factors=sizes)
    assert level_rounds_time(rounds, levels) == pytest.approx(
        blueconnect_time(5040 * ranks, levels), rel=1e-9
    )
    ring = level_rounds_time(ring_all_reduce(ranks, 5040 * ranks), levels)
    assert ring == pytest.approx(
        collective_time("all_reduce", "ring", 5040 * ranks, levels=levels), rel=1e-9
    )


@given(
    st.integers(1, 5), st.integers(1, 3), st.sampled_from([None, 0.5, 1.0, 1.5]), st.integers(0, 99)
)
def test_an_unequal_exchange_delivers_every_token(ranks, each, capacity, seed):
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, 9, (ranks, ranks * each))
    sent = expert_tokens(chosen, capacity)
    assert (sent <= expert_tokens(chosen)).all()
    assume(sent.any())
    row = np.repeat(np.arange(ranks), sent.sum(axis=1))
    vectors = np.where(row == np.arange(ranks)[:, None], 1.0 + np.arange(row.size), 0.0)
    held = execute(exchange_rounds(sent), vectors)
    column = np.tile(np.arange(ranks), ranks).repeat(sent.ravel())
    for rank in range(ranks):
        assert np.array_equal(held[rank, column == rank], 1.0 + np.flatnonzero(column == rank))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"nodes": [0, 1]}, "nodes must give a node for every rank"),
        ({"stand_in": [0]}, "stand_in"),
        ({"nodes": [0, 99999]}, "nodes"),
        ({"latency": -1.0}, "latency"),
        ({"element_bytes": 0.0}, "element_bytes"),
    ],
)
def test_bad_arguments_are_named(change, named):
    with pytest.raises(ValueError, match=named):
        plan_rounds(ring_all_reduce(4, 4), TREE, **change)
