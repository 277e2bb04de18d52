from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters import s41
from chapters.s41.copies import checkpoint_recovery_probability, time_to_pair_loss
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import in_memory, parity
from relparallel.training.redundancy import PLACEMENTS, domain_loss_probability, replica_holders


def counted(nodes, replicas, placement):
    """For every k, the share of k-subsets that leave a holder of each shard, subset by subset."""
    masks = [
        sum(1 << int(node) for node in row) for row in replica_holders(nodes, replicas, placement)
    ]
    down = np.arange(1 << nodes)
    kept = np.ones(1 << nodes, dtype=bool)
    for mask in set(masks):
        kept &= (down & mask) != mask
    sizes = np.bitwise_count(down)
    return np.bincount(sizes, weights=kept) / np.bincount(sizes)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("nodes", range(1, 15))
def test_every_subset_of_failed_nodes(nodes, placement):
    for replicas in range(1, nodes + 1):
        if placement == "group" and nodes % replicas:
            continue
        failures = np.arange(nodes + 1)
        exact = checkpoint_recovery_probability(nodes, replicas, failures, placement)
        np.testing.assert_allclose(exact, counted(nodes, replicas, placement), rtol=0, atol=1e-12)


def test_the_acceptance_call():
    probability = s41.checkpoint_recovery_probability(
        nodes=12, replicas=2, failures=6, placement="group"
    )
    assert probability == pytest.approx(0.069264, abs=5e-7)
    assert probability == float(Fraction(2**6, comb(12, 6)))  # one node of each pair


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("replicas", [2, 4])
def test_sixteen_thousand_nodes_agree_with_random_failures(placement, replicas):
    nodes, failures = 16_384 + (placement == "mixed"), {2: 120, 4: 1500}[replicas]
    rng, runs = np.random.default_rng(3), 2000
    holders = replica_holders(nodes, replicas, placement)
    exact = checkpoint_recovery_probability(nodes, replicas, failures, placement)
    kept = 0
    for _ in range(runs):
        down = np.zeros(nodes, dtype=bool)
        down[rng.choice(nodes, failures, replace=False)] = True
        kept += not down[holders].all(axis=1).any()
    assert abs(kept / runs - exact) < 4 * np.sqrt(exact * (1 - exact) / runs)
    assert 0.02 < exact < 0.98


@given(groups=st.integers(1, 200), replicas=st.integers(1, 6), more=st.integers(0, 1200))
def test_one_term_of_the_sum_is_enough_below_two_groups(groups, replicas, more):
    nodes = groups * replicas
    failures = min(more, nodes)
    one_term = 1 - groups * comb(nodes - replicas, max(failures - replicas, 0)) / comb(
        nodes, failures
    ) * (failures >= replicas)
    exact = checkpoint_recovery_probability(nodes, replicas, failures)
    assert exact >= one_term - 1e-12
    if failures < 2 * replicas:
        assert exact == pytest.approx(one_term, abs=1e-12)


def test_groups_beat_a_ring_and_mixed_lies_between():
    failures = np.arange(25)
    group, ring = (checkpoint_recovery_probability(24, 3, failures, p) for p in ("group", "ring"))
    assert (group >= ring).all()
    assert (group > ring).any()
    mixed, ring = (checkpoint_recovery_probability(25, 3, failures, p) for p in ("mixed", "ring"))
    assert (mixed >= ring).all()
    assert (mixed > ring).any()
    np.testing.assert_array_equal(checkpoint_recovery_probability(24, 3, failures, "mixed"), group)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(
    ("nodes", "replicas", "stride"), [(12, 3, 1), (12, 3, 4), (64, 2, 32), (24, 4, 3)]
)
def test_every_shard_has_different_holders_and_every_node_as_many(
    nodes, replicas, stride, placement
):
    holders = replica_holders(nodes, replicas, placement, stride)
    assert holders.shape == (nodes, replicas)
    assert (holders[:, 0] == np.arange(nodes)).all()
    assert (np.diff(np.sort(holders, axis=1), axis=1) > 0).all()
    assert (np.bincount(holders.ravel()) == replicas).all()


def test_domains_are_enumerated():
    rng = np.random.default_rng(4)
    for _ in range(200):
        size, racks, copies = rng.integers(1, 5), rng.integers(1, 6), int(rng.integers(1, 5))
        nodes = int(size * racks)
        copies = min(copies, nodes)
        holders = np.array([rng.choice(nodes, copies, replace=False) for _ in range(nodes)])
        holders[0, 0] = nodes - 1 if nodes - 1 not in holders[0] else holders[0, 0]
        if holders.max() != nodes - 1:
            continue
        needed = int(rng.integers(1, copies + 1))
        fatal = sum((holders // size != rack).sum(axis=1).min() < needed for rack in range(racks))
        assert domain_loss_probability(holders, int(size), needed) == pytest.approx(fatal / racks)


def test_pairs_are_lost_as_often_as_in_a_simulation():
    nodes, rate, window, runs = 64, 0.02, 0.5, 3000
    rng, times = np.random.default_rng(5), np.zeros(3000)
    for run in range(runs):
        last = np.full(nodes, -np.inf)
        while True:
            times[run] += rng.exponential(1 / (nodes * rate))
            node = int(rng.integers(nodes))
            if times[run] - last[node ^ 1] < window:
                break
            last[node] = times[run]
    mean = time_to_pair_loss(nodes, rate / 3600, window * 3600) / 3600
    assert abs(times.mean() - mean) < 4 * mean / np.sqrt(runs)


@pytest.mark.parametrize("racks", [4, 8])
def test_parity_tolerates_as_many_nodes_of_a_group_as_it_has_parities(racks):
    cluster = Cluster(nodes=64, nodes_per_rack=64 // racks, nodes_per_switch=2)
    for parities in (1, 2, 3):
        for stride in (1, 8):
            level = parity(1e12, 1e12, cluster, group=8, parities=parities, stride=stride)
            groups = np.arange(64).reshape(-1, 8) if stride == 1 else np.arange(64).reshape(8, 8).T
            for name, size in (("node", 1), ("switch", 2), ("rack", 64 // racks)):
                worst = [
                    max((g // size == d).sum() for g in groups) <= parities
                    for d in range(64 // size)
                ]
                assert level.survival(name) == pytest.approx(np.mean(worst))
            assert level.cost == pytest.approx(8 / (8 - parities))


def test_copies_in_memory_survive_what_leaves_one_of_them():
    racks = Cluster(nodes=64, nodes_per_rack=8)
    assert in_memory(1e12, 1e12, racks, replicas=1).survival("node") == 0
    assert in_memory(1e12, 1e12, racks, replicas=2).survival("node") == 1
    assert in_memory(1e12, 1e12, racks, replicas=3, placement="ring").cost == 2.0
    ring = replica_holders(64, 2, "ring")
    assert [node for node, row in enumerate(ring) if 5 in row] == [4, 5]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"replicas": 5}, "replicas"),
        ({"replicas": 13}, "replicas"),
        ({"nodes": 0}, "nodes"),
        ({"placement": "random"}, "placement"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises((ValueError, TypeError), match=named):
        checkpoint_recovery_probability(**{"nodes": 12, "replicas": 2, "failures": 3, **arguments})


@pytest.mark.parametrize(
    ("order", "survives"),
    [
        (("tensor", "context", "data", "pipeline"), 0.0),
        (("tensor", "context", "pipeline", "data"), 1.0),
    ],
)
def test_snapshots_in_sharding_groups_survive_a_rack_that_holds_one_node_of_each(order, survives):
    """Data groups in a row lie in one rack; dealt last, each of their nodes lies in another."""
    cluster = Cluster(nodes=64, nodes_per_rack=8)
    job = Placement(strategy=Strategy(tensor=8, pipeline=8, data=8), order=order)
    level = parity(1e12, 1e12, cluster, group=job)
    assert level.survival("rack") == survives
    assert level.survival("node") == 1.0
    assert level.cost == pytest.approx(8 / 7)
    same = parity(1e12, 1e12, cluster, group=8, stride=8 if survives else 1)
    assert (level.cost, level.survival("rack")) == (same.cost, same.survival("rack"))


def test_replicas_that_share_a_node_are_no_sharding_group():
    with pytest.raises(ValueError, match="group must have replicas on at least two nodes"):
        parity(1e12, 1e12, Cluster(nodes=2), group=Placement(strategy=Strategy(tensor=4, data=4)))
