"""Orders of messages: brute force over all orders, fluid simulation and bound, credit, losses."""

import os
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s35.profiles import read_profile
from chapters.s37.fusion import fuse_gradients, merge_gradients
from relparallel.parallel import fluid_bound, order, tune_partition
from relparallel.parallel.ordering import POLICIES
from valid_ordering import chain, graph_of

FREE = (0.0, 1.0)
DATA = Path(os.environ.get("RELPARALLEL_DATA", "")) / "data" / "pipedream-profiles"
needs_data = pytest.mark.skipif(
    "RELPARALLEL_DATA" not in os.environ, reason="RELPARALLEL_DATA is not set"
)
whole = st.integers(1, 9)
layers = st.lists(st.tuples(whole, whole, whole), min_size=1, max_size=7)


@st.composite
def graphs(draw, backward=True):
    forward, back, sizes = np.array(draw(layers), dtype=float).T
    pairs = [(i, j) for j in range(len(sizes)) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=9)) if pairs else []
    return graph_of(forward, back * backward, sizes, np.array(edges, dtype=int).reshape(-1, 2))


def as_chain(rows):
    return chain(*np.array(rows, dtype=float).T)


def fluid_time(graph) -> float:
    """Second by second: the link serves the earliest layer that is ready, the GPU its next pass."""
    n, left = len(graph), graph.parameter_bytes.copy()
    ready = np.cumsum(graph.backward[::-1])[::-1]
    now, end = 0.0, np.full(n, np.inf)
    while left.any():
        able = np.flatnonzero((left > 0) & (ready <= now))
        if able.size:
            left[able[0]] -= 1
            end[able[0]] = now + 1 if left[able[0]] == 0 else np.inf
        now += 1
    done = ready[0]
    for arrived, work in zip(end, graph.forward, strict=True):
        done = max(done, arrived) + work
    return float(done)


def best_order(graph) -> float:
    """Least time over all orders of the tensors."""
    return min(
        order(graph, list(p), network=FREE).makespan for p in permutations(range(len(graph)))
    )


@given(rows=layers)
@settings(deadline=None)
def test_in_a_chain_unit_slices_by_priority_reach_the_fluid_optimum(rows):
    graph = as_chain(rows)
    sliced = order(graph, "p3", network=FREE, partition=1.0).makespan
    assert sliced == fluid_time(graph) == fluid_bound(graph, network=FREE)


@given(
    graph=graphs(),
    policy=st.sampled_from(list(POLICIES)),
    latency=st.integers(0, 2),
    hops=st.integers(1, 3),
    credit=st.integers(1, 4),
    cut=st.sampled_from([1.0, 2.0, 3.0]),
)
@settings(deadline=None, max_examples=60)
def test_no_order_beats_the_fluid_bound_or_breaks_a_rule(graph, policy, latency, hops, cut, credit):
    network = [(float(latency), 1.0)] * hops
    run = order(graph, policy, network=network, partition=cut, credit=credit)
    assert run.makespan >= fluid_bound(graph, network=network) - 1e-9
    by = {
        kind: {row.item: (row.start, row.finish) for row in rows.itertuples()}
        for kind, rows in run.to_frame().groupby("kind")
    }
    for maker, user in graph.edges.tolist():
        assert by["backward"][user][1] <= by["backward"][maker][0]
        assert by["forward"][maker][1] <= by["forward"][user][0]
    sent = run.kind == "transfer"
    assert run.duration[sent].sum() == pytest.approx(hops * graph.parameter_bytes.sum())
    for hop in range(1, hops + 1):
        mine = np.flatnonzero(sent & (run.resource == hop))
        mine = mine[np.argsort(run.start[mine])]
        assert (run.finish[mine][:-1] <= run.start[mine][1:] + 1e-9).all()
        arrived = run.finish[mine] + latency
        under_way = [(run.start[mine] <= t) & (t < arrived) for t in run.start[mine]]
        assert max(map(np.sum, under_way), default=0) <= credit
    if policy != "ddp":
        for item, start, finish in zip(
            run.item[sent], run.start[sent], run.finish[sent], strict=True
        ):
            assert by["backward"][item][1] <= start
            assert finish + latency <= by["forward"][item][0] + 1e-9


@given(rows=st.lists(st.tuples(whole, whole), min_size=1, max_size=6), in_line=st.booleans())
@settings(deadline=None, max_examples=25)
def test_tac_is_the_best_of_all_orders_in_chains_and_side_by_side(rows, in_line):
    forward, sizes = np.array(rows, dtype=float).T
    graph = chain(forward, 0 * forward, sizes)
    graph = graph if in_line else replace(graph, edges=np.zeros((0, 2), dtype=int))
    assert order(graph, "tac", network=FREE).makespan == best_order(graph)


def test_tac_is_a_heuristic_on_other_graphs_and_seldom_far_off():
    rng, excess = np.random.default_rng(5), {"tac": [], "tic": [], "fifo": []}
    for _ in range(40):
        n = int(rng.integers(4, 6))
        edges = [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.4]
        graph = graph_of(
            *rng.integers(1, 9, (2, n)) * [[1.0], [0.0]], rng.integers(1.0, 9.0, n), edges
        )
        least = best_order(graph)
        for policy, found in excess.items():
            found.append(order(graph, policy, network=FREE).makespan / least - 1)
    assert min(map(min, excess.values())) >= -1e-12
    assert np.mean(np.array(excess["tac"]) < 1e-12) >= 0.8
    assert np.mean(excess["tac"]) < 0.02 < np.mean(excess["tic"]) < np.mean(excess["fifo"])


@pytest.mark.parametrize(
    ("forward", "sizes", "expected"),
    [
        ([9, 1, 1, 1], [1, 1, 1, 1], [0, 1, 2, 3]),  # pending loads 2, 2, 3, 4 in a chain of four
    ],
)
def test_tic_counts_tensors_alone(forward, sizes, expected):
    graph = chain(np.array(forward, float), np.zeros(4), np.array(sizes, float))
    run = order(graph, "tic", network=FREE)
    sent = run.kind == "transfer"
    assert run.item[sent][np.argsort(run.start[sent])].tolist() == expected
    assert (
        order(replace(graph, parameter_bytes=[8.0, 1, 1, 1]), "tic", network=FREE).makespan
        == 8 + 12
    )


def test_buckets_close_when_they_are_full():
    mib = 2.0**20
    graph = chain(np.zeros(5), np.ones(5), np.array([1, 30, 10, 10, 10]) * mib)
    run = order(graph, "ddp", network=(0.0, mib))
    sent = run.kind == "transfer"
    assert run.duration[sent].tolist() == [30.0, 30.0, 1.0]  # 10 + 10 + 10, 30, 1


@given(rows=layers, latency=st.integers(0, 3))
@settings(deadline=None, max_examples=40)
def test_the_smallest_bucket_is_no_bucket_and_the_largest_holds_everything(rows, latency):
    graph, network = as_chain(rows), (float(latency), 1.0)
    for bucket, method in ((0.0, "none"), (1e9, "all")):
        merged = merge_gradients(graph, latency=latency, bandwidth=1.0, method=method)
        run = order(graph, network=network, bucket=bucket)
        # The forward pass waits for buckets; the recursion ends with the last message.
        back = order(replace(graph, forward=0 * graph.forward), network=network, bucket=bucket)
        assert back.makespan == pytest.approx(max(merged.finish, graph.backward.sum()))
        assert run.makespan >= back.makespan
    named = order(graph, "ddp", network=network).makespan
    assert order(graph, "fifo", network=network, bucket=25 * 2.0**20).makespan == named


@given(rows=layers, latency=st.integers(0, 3), cycle=st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_merged_messages_end_when_the_recursion_says(rows, latency, cycle):
    graph = as_chain([(0, b, s) for _, b, s in rows])
    for merged in (
        merge_gradients(graph, latency=latency, bandwidth=1.0),
        fuse_gradients(graph, latency=latency, bandwidth=1.0, buffer=12.0, cycle=cycle),
    ):
        run = order(graph, network=(float(latency), 1.0), groups=merged)
        assert run.makespan == pytest.approx(max(merged.finish, graph.backward.sum()))


def test_credit_hides_latency_and_costs_overtaking():
    busy = chain(np.array([1.0, 1.0]), np.array([1.0, 1.0]), np.array([4.0, 40.0]))
    times = [
        order(busy, "forward", network=(2.0, 1.0), partition=4.0, credit=c).makespan
        for c in (1, 2, 16)
    ]
    assert times[1] < times[0]
    assert (
        order(busy, "forward", network=FREE, partition=4.0, credit=1).makespan
        < order(busy, "forward", network=FREE, partition=4.0, credit=16).makespan
    )


def test_the_tuned_partition_is_the_best_of_those_tried():
    graph = chain(np.array([3.0, 1.0, 1.0]), np.array([1.0, 2.0, 1.0]), np.array([2.0, 8.0, 64.0]))
    size, credit = tune_partition(graph, network=(0.1, 4.0))
    tuned = order(graph, "bytescheduler", network=(0.1, 4.0)).makespan
    assert (
        tuned == order(graph, "forward", network=(0.1, 4.0), partition=size, credit=credit).makespan
    )
    others = [
        order(graph, "forward", network=(0.1, 4.0), partition=64 / 2**k, credit=c).makespan
        for k in range(8)
        for c in (1, 2, 4, 8)
    ]
    assert tuned <= min(others)


def test_losses_delay_as_often_as_they_should_and_credit_lets_others_pass():
    graph = chain(np.ones(4), np.ones(4), np.full(4, 100.0))
    lost = {"network": FREE, "partition": 1.0, "loss": 0.02, "timeout": 5.0}
    times = {
        c: np.mean(
            [
                order(graph, credit=c, rng=np.random.default_rng(k), **lost).makespan
                for k in range(40)
            ]
        )
        for c in (1, 64)
    }
    calm = order(graph, network=FREE, partition=1.0).makespan
    assert times[1] - calm == pytest.approx(400 * 0.02 * 5, rel=0.15)  # every loss stops the link
    assert times[64] - calm < 0.3 * (times[1] - calm)
    with pytest.raises(TypeError, match="loss, timeout and rng must be given together"):
        order(graph, network=FREE, loss=0.1)


@needs_data
@pytest.mark.parametrize("name", ["vgg16", "gnmt", "resnet101"])
def test_on_measured_models_tuned_priorities_reach_the_bound(name):
    graph = read_profile(DATA / name / "graph.txt")
    for bandwidth in (0.6e9, 1.6e9, 6e9):
        network = (5e-5, bandwidth)
        times = {policy: order(graph, policy, network=network).makespan for policy in POLICIES}
        bound = fluid_bound(graph, network=network)
        assert min(times.values()) >= bound * (1 - 1e-12)
        assert times["bytescheduler"] <= 1.002 * bound
        assert times["bytescheduler"] <= times["forward"] <= times["fifo"] * 1.001


def test_what_does_not_fit_is_refused():
    graph = chain(np.ones(2), np.ones(2), np.array([1.0, 1e9]))
    with pytest.raises(ValueError, match="partition must give at most"):
        order(graph, network=FREE, partition=1.0)
    with pytest.raises(ValueError, match="graph must hold seconds"):
        order(replace(graph, unit="FLOP"), network=FREE)
    with pytest.raises(ValueError, match="groups must merge 2 tensors"):
        order(graph, network=FREE, groups=merge_gradients([[1.0, 2.0]], latency=0.0, bandwidth=1.0))
    with pytest.raises(ValueError, match="network must be"):
        order(graph, network=(0.1, 0.0))
