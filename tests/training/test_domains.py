from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s43.replicas_hit import expected_replicas_hit
from relparallel.hardware import Cluster
from relparallel.hardware.machines import LEVELS
from relparallel.parallel import Placement, Strategy
from relparallel.training import ComponentClass, blast_radius, drop_rule

ORDERS = (
    ("tensor", "context", "data", "pipeline"),
    ("tensor", "context", "pipeline", "data"),
    ("data", "tensor", "context", "pipeline"),
)


def part(level, effect="stop"):
    return ComponentClass(name=level, level=level, rate=1e-9, effect=effect)


def counted(placement, cluster, level, reshard):
    """Blast radius by sets: fail every part in turn and look what every rank needs."""
    strategy, width = placement.strategy, cluster.gpus_per_part(level)
    shards = strategy.shard_group if strategy.zero_stage else 1
    replica_of = {int(g): d for d, row in enumerate(placement.replicas) for g in row}
    worst = (0, 0, 0)
    for first in range(0, cluster.gpus, width):
        dead = set(range(first, first + width))
        for group in placement.data_groups.tolist():  # same position in all replicas
            for shard in range(shards):
                if all(gpu in dead for gpu in group[shard::shards]):
                    return cluster.gpus, strategy.data, cluster.nodes
        gone = {replica_of[gpu] for gpu in dead}
        if strategy.zero_stage and not reshard:
            gone = {
                d for d in range(strategy.data) if any(d // shards == e // shards for e in gone)
            }
        ranks = {gpu for gpu, d in replica_of.items() if d in gone}
        nodes = {gpu // cluster.gpus_per_node for gpu in ranks}
        worst = np.maximum(worst, (len(ranks), len(gone), len(nodes)))
    return tuple(worst)


strategies = st.builds(
    lambda t, p, c, groups, shard, stage: Strategy(
        tensor=t, pipeline=p, context=c, data=groups * shard, shard=shard, zero_stage=stage
    ),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1, 2]),
    st.integers(1, 4),
    st.sampled_from([1, 2, 4]),
    st.integers(0, 3),
)


@given(
    strategy=strategies,
    order=st.sampled_from(ORDERS),
    level=st.sampled_from(LEVELS),
    reshard=st.booleans(),
    data=st.data(),
)
def test_the_blast_radius_equals_a_count_over_every_part(strategy, order, level, reshard, data):
    per_node = data.draw(st.sampled_from([n for n in range(1, 9) if strategy.gpus % n == 0]))
    nodes = strategy.gpus // per_node
    cluster = Cluster(
        nodes=nodes, gpus_per_node=per_node, nodes_per_switch=2 if nodes % 2 == 0 else 1
    )
    placement = Placement(strategy=strategy, order=order)
    hit = blast_radius(part(level), placement, cluster, reshard)
    allowed = drop_rule(strategy, reshard).allowed and level != "job"
    expected = (
        counted(placement, cluster, level, reshard)
        if allowed
        else (cluster.gpus, strategy.data, nodes)
    )
    assert (hit.ranks, hit.replicas, hit.nodes) == expected
    assert hit.whole_job == (hit.ranks == cluster.gpus)
    assert hit.share == hit.replicas / strategy.data


def test_corruption_reaches_every_replica():
    placement = Placement(strategy=Strategy(tensor=8, pipeline=2, data=4))
    assert blast_radius(part("gpu", "corrupt"), placement, Cluster(nodes=8)).whole_job


def test_the_rank_order_decides_how_many_replicas_share_a_node():
    # BLOOM's degrees: tensor 4 on nodes of 8 puts two replicas on every node in the usual order.
    strategy, cluster = Strategy(tensor=4, pipeline=12, data=8), Cluster(nodes=48)
    usual, apart = (Placement(strategy=strategy, order=order) for order in ORDERS[:2])
    assert [blast_radius(part("node"), p, cluster).nodes for p in (usual, apart)] == [12, 6]
    assert [blast_radius(part("node"), p, cluster).replicas for p in (usual, apart)] == [2, 1]


def test_a_node_may_hold_every_copy_of_one_shard_and_spare_a_replica():
    # Ranks 0 1 2 | 3 of each stage: shard 0 lives on ranks 0 and 2, both on node 0, which misses
    # replica 3.
    strategy = Strategy(data=4, pipeline=3, zero_stage=1, shard=2)
    hit = blast_radius(
        part("node"), Placement(strategy=strategy), Cluster(nodes=4, gpus_per_node=3)
    )
    assert hit.whole_job
    assert "all copies" in hit.reason


def test_two_copies_behind_one_node_are_one_copy():
    strategy = Strategy(data=8, zero_stage=3, shard=4)
    assert drop_rule(strategy).allowed
    assert blast_radius(part("node"), Placement(strategy=strategy), Cluster(nodes=1)).whole_job
    assert not blast_radius(part("gpu"), Placement(strategy=strategy), Cluster(nodes=1)).whole_job


@given(
    data=st.integers(1, 6), shard=st.integers(1, 6), stage=st.integers(0, 3), lost=st.integers(0, 5)
)
def test_a_replica_may_be_dropped_exactly_if_every_shard_survives_elsewhere(
    data, shard, stage, lost
):
    if data % shard or lost >= data:
        return
    holds = [{rank % shard} if stage else set(range(shard)) for rank in range(data)]
    left = set().union(*(held for rank, held in enumerate(holds) if rank != lost))
    rule = drop_rule(Strategy(data=data, shard=shard, zero_stage=stage))
    assert rule.allowed == (left == set(range(shard)))
    assert str(data) in rule.reason or str(rule.copies - 1) in rule.reason


def test_without_resharding_the_shard_group_leaves_together():
    strategy = Strategy(tensor=8, data=16, zero_stage=2, shard=4)
    assert drop_rule(strategy, reshard=False).replicas == 4
    hit = blast_radius(part("gpu"), Placement(strategy=strategy), Cluster(nodes=16), reshard=False)
    assert (hit.replicas, hit.nodes) == (4, 4)


@pytest.mark.parametrize(("replicas", "nodes"), [(3, 2), (4, 3), (2, 5), (6, 2), (5, 1), (1, 4)])
def test_expected_replicas_hit_equals_the_mean_over_all_subsets(replicas, nodes):
    total = replicas * nodes
    for failures in range(total + 1):
        hits = [len({n // nodes for n in down}) for down in combinations(range(total), failures)]
        assert expected_replicas_hit(replicas, nodes, failures) == pytest.approx(
            np.mean(hits), rel=1e-12
        )


@given(replicas=st.integers(1, 500), nodes=st.integers(1, 100), failures=st.integers(1, 200))
def test_few_failures_hit_as_many_replicas_and_never_more(replicas, nodes, failures):
    if failures > replicas * nodes:
        return
    hit = expected_replicas_hit(replicas, nodes, failures)
    assert failures / nodes * (1 - 1e-12) <= hit <= min(failures, replicas) * (1 + 1e-12)
    assert expected_replicas_hit(replicas, nodes, 1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"component": "gpu"}, "component"),
        ({"placement": Strategy()}, "placement"),
        ({"cluster": 8}, "cluster"),
        ({"cluster": Cluster(nodes=3)}, "gpus"),
        ({"reshard": 1}, "reshard"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    good = {
        "component": part("gpu"),
        "placement": Placement(strategy=Strategy(data=16)),
        "cluster": Cluster(nodes=2),
    }
    with pytest.raises((ValueError, TypeError), match=named):
        blast_radius(**{**good, **arguments})


@pytest.mark.parametrize("failures", [9, -1])
def test_failures_are_of_the_nodes(failures):
    with pytest.raises(ValueError, match="failures must be of the 8 nodes"):
        expected_replicas_hit(replicas=4, nodes_per_replica=2, failures=failures)


def test_only_a_strategy_has_a_drop_rule():
    with pytest.raises(TypeError, match="strategy"):
        drop_rule("ddp")


def test_a_rack_of_72_gpus_is_a_domain():
    """18 trays of 4 GPUs share NVLink: a tray stops its rack's replica, as does the whole rack."""
    racks = Cluster(nodes=18 * 8, gpus_per_node=4, nodes_per_rack=18)
    inside = Placement(
        strategy=Strategy(tensor=8, pipeline=9, data=8),
        order=("tensor", "context", "pipeline", "data"),
    )
    across = Placement(strategy=Strategy(tensor=8, pipeline=9, data=8))
    tray = ComponentClass(name="tray", level="node", rate=1e-8)
    rack = ComponentClass(name="NVLink switches", level="rack", rate=1e-9)
    assert [blast_radius(part, inside, racks).replicas for part in (tray, rack)] == [1, 1]
    assert [blast_radius(part, inside, racks).nodes for part in (tray, rack)] == [18, 18]
    # data second
    assert [blast_radius(part, across, racks).replicas for part in (tray, rack)] == [1, 8]
    assert racks.parts("rack") == 8
    assert racks.gpus_per_part("rack") == 72
