"""Speeds with nodes missing against the sum over every set of failed nodes."""

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    JobShape,
    Recovery,
    drop_rule,
    goodput,
    recovery_policies,
)
from relparallel.training.failures import Domain


@dataclass
class Layout:
    """Nodes of a small job, written down node by node."""

    units: int
    size: int
    replicas_per_unit: int = 1
    stages: int = 1

    @property
    def shape(self) -> JobShape:
        nodes = self.units * self.size
        replicas = self.units * self.replicas_per_unit
        gpus = 840 * nodes  # divisible by everything small
        return JobShape(
            nodes=nodes,
            gpus_per_node=gpus // nodes,
            replicas=replicas,
            stages=self.stages,
            tensor=1,
            nodes_per_replica=self.size,
        )


def mean_over_all_sets(nodes, down, speed):
    """Mean of a state's speed over all sets of k failed nodes, k = 0 … down, in fractions."""
    means = []
    for failed in range(down + 1):
        sets = [frozenset(chosen) for chosen in combinations(range(nodes), failed)]
        means.append(float(sum((Fraction(speed(s)) for s in sets), Fraction(0)) / len(sets)))
    return means


def units_alive(layout, failed):
    units = [range(u * layout.size, (u + 1) * layout.size) for u in range(layout.units)]
    return sum(not failed & set(unit) for unit in units)


def kept(layout, alive, batch, micro_batches):
    """Speed of one state from the micro-batches that the busiest replica does."""
    if batch == "shrink" or not alive:
        return Fraction(alive, layout.units)
    replicas, left = layout.units * layout.replicas_per_unit, alive * layout.replicas_per_unit
    return Fraction(micro_batches, math.ceil(Fraction(replicas * micro_batches, left)))


LAYOUTS = [
    Layout(6, 1),
    Layout(4, 3),
    Layout(3, 4),
    Layout(1, 5),
    Layout(7, 2),
    Layout(3, 2, 2),
    Layout(12, 1, 3),
]
BATCHES = [("shrink", None), ("keep", 1), ("keep", 4), ("keep", 7)]


@pytest.mark.parametrize(("batch", "micro_batches"), BATCHES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_elastic_is_the_mean_over_all_sets(layout, batch, micro_batches):
    nodes = layout.shape.nodes
    expected = mean_over_all_sets(
        nodes, nodes, lambda s: kept(layout, units_alive(layout, s), batch, micro_batches)
    )
    found = Recovery("elastic", 3600.0, batch=batch, micro_batches=micro_batches).speed(
        layout.shape, nodes
    )
    assert found == pytest.approx(expected, abs=1e-12, rel=1e-12)


@pytest.mark.parametrize(("batch", "micro_batches"), BATCHES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_regroup_needs_whole_replicas_only(layout, batch, micro_batches):
    nodes = layout.shape.nodes
    expected = mean_over_all_sets(
        nodes, nodes, lambda s: kept(layout, (nodes - len(s)) // layout.size, batch, micro_batches)
    )
    found = Recovery("regroup", 3600.0, batch=batch, micro_batches=micro_batches).speed(
        layout.shape, nodes
    )
    assert found == pytest.approx(expected, abs=1e-12, rel=1e-12)


@pytest.mark.parametrize("policy", ["restart", "spares", "hot_spares"])
def test_a_job_that_waits_stands_still_while_short_of_nodes(policy):
    assert Recovery(policy, 3600.0).speed(Layout(4, 3).shape, 12).tolist() == [1.0] + [0.0] * 12


def test_the_mean_over_independent_nodes_is_the_elastic_throughput():
    # Two routes to E[speed]: binomial mixture of the conditional speeds, and a^g.
    from scipy.stats import binom

    from chapters.s43.elastic import elastic_throughput

    shape = JobShape(nodes=64, replicas=16, stages=4, tensor=8, nodes_per_replica=4)
    weights = binom.pmf(np.arange(65), 64, 1 - 1 / 1.02)
    for options in ({}, {"batch": "keep", "micro_batches": 6}):
        speed = Recovery("elastic", 1.0, **options).speed(shape, 64)
        assert weights @ speed == pytest.approx(
            elastic_throughput(64, 4, 0.02, 1.0, 0.0, **options), rel=1e-12
        )


def test_the_table_of_the_module_has_a_row_for_every_policy():
    rows = re.findall(r"^(\w+)  +\S", recovery_policies.__doc__, re.M)
    missing = recovery_policies.POLICIES.keys() - rows
    assert not missing, (
        "add to the table at the top of relparallel/training/recovery_policies.py: "
        + ", ".join(sorted(missing))
    )


def domain(level="node", effect="stop", replicas=1, nodes=1, state_lost=False):
    part = ComponentClass(name="part", level=level, rate=1e-8, effect=effect)
    return Domain(
        component=part, parts=4, nodes=nodes, replicas=replicas, ranks=8, state_lost=state_lost
    )


def test_what_goes_back():
    shape = JobShape(nodes=8, replicas=4, stages=2, tensor=8, nodes_per_replica=2)
    elastic, restart = Recovery("elastic", 60.0), Recovery("restart", 60.0)
    assert restart.goes_back(domain())
    assert not elastic.goes_back(domain(), shape)
    assert not restart.goes_back(domain(effect="degrade"))
    assert elastic.goes_back(domain(effect="corrupt"))
    assert elastic.goes_back(domain(level="job", nodes=0))
    assert elastic.goes_back(domain(state_lost=True))
    assert elastic.goes_back(domain(replicas=4), shape)
    assert not elastic.goes_back(domain(replicas=4))
    regroup = Recovery("regroup", 60.0)
    assert not regroup.goes_back(domain(replicas=4, nodes=4), shape)
    assert regroup.goes_back(domain(replicas=4, nodes=7), shape)


def test_a_neighbour_holds_the_state_of_one_node_but_not_of_two():
    alone = JobShape(nodes=4, replicas=1, stages=4, tensor=8, nodes_per_replica=4)
    bamboo = Recovery("bamboo", 60.0)
    assert not bamboo.goes_back(domain(state_lost=True), alone)
    assert bamboo.goes_back(domain(state_lost=True, nodes=2), alone)
    single = JobShape(nodes=4, replicas=1, stages=1, tensor=32, nodes_per_replica=4)
    assert bamboo.goes_back(domain(state_lost=True), single)


def test_the_degree_of_sharding_decides_who_goes_back():
    part = ComponentClass(name="node", level="node", rate=1e-8)
    for shard, back in ((8, True), (4, False)):
        strategy = Strategy(tensor=8, data=8, zero_stage=3, shard=shard)
        model = FailureModel(
            classes=(part,), cluster=Cluster(nodes=8), placement=Placement(strategy=strategy)
        )
        assert {Recovery("elastic", 60.0).goes_back(d) for d in model.domains} == {back}
        assert drop_rule(strategy).allowed is not back


@pytest.mark.parametrize(
    ("strategy", "order", "expected"),
    [
        (Strategy(tensor=8, pipeline=4, data=4), None, (4, 1, 4)),
        (Strategy(tensor=4, pipeline=4, data=8), None, (8, 2, 4)),
        (
            Strategy(tensor=4, pipeline=4, data=8),
            ("tensor", "context", "pipeline", "data"),
            (8, 1, 2),
        ),
        (Strategy(tensor=16, pipeline=2, data=4), None, (4, 1, 4)),
        (Strategy(tensor=1, pipeline=1, data=128), None, (128, 8, 1)),
    ],
)
def test_the_shape_of_a_placement(strategy, order, expected):
    placement = (
        Placement(strategy=strategy) if order is None else Placement(strategy=strategy, order=order)
    )
    shape = JobShape.of(placement, Cluster(nodes=16))
    assert (shape.replicas, shape.replicas_per_unit, shape.nodes_per_replica) == expected
    held = placement.replica_nodes(8)
    assert (held.sum(axis=1) == shape.nodes_per_replica).all()
    assert (held.sum(axis=0) == shape.replicas_per_unit).all()


def test_replicas_that_share_some_nodes_are_refused():
    placement = Placement(strategy=Strategy(tensor=4, data=4))
    assert JobShape.of(placement, Cluster(nodes=4, gpus_per_node=4)).units == 4
    crooked = Placement(strategy=Strategy(tensor=2, context=3, data=4))
    with pytest.raises(
        ValueError, match=r"placement must let replicas share all of their nodes or none"
    ):
        JobShape.of(crooked, Cluster(nodes=3))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"nodes_per_replica": 3}, "nodes_per_replica"),
        ({"replicas": 6}, "replicas"),
        ({"stages": 3}, "stages"),
        ({"tensor": 3}, "tensor"),
        ({"nodes": 0}, "nodes"),
    ],
)
def test_shapes_that_do_not_divide_are_refused(changed, named):
    good = {"nodes": 8, "replicas": 4, "stages": 2, "tensor": 8, "nodes_per_replica": 2}
    with pytest.raises(ValueError, match=rf"\b{named}\b must"):
        JobShape(**good | changed)


def test_more_failures_than_nodes_are_refused():
    with pytest.raises(ValueError, match="down must be an integer in"):
        Recovery("elastic", 60.0).speed(Layout(4, 3).shape, 13)


def share_drawn(mean, stall, away, replicas, failures, rng, *, idle):
    """Share of a job with replicas as units of failure, failure by failure."""
    now = done = stalled_until = 0.0
    back = np.zeros(replicas)  # when each replica is up again
    gaps, hit = rng.exponential(mean, failures), rng.integers(replicas, size=failures)
    lengths = rng.exponential(away, failures)
    for gap, replica, length in zip(gaps, hit, lengths, strict=True):
        begin, end = max(now, stalled_until), now + gap
        if end > begin:
            done += np.maximum(end - np.maximum(back, begin), 0.0).sum() / replicas
        now = end
        if back[replica] <= now:
            back[replica], stalled_until = now + length, now + stall
        elif not idle:  # a replica that is away stalls the others as well
            stalled_until = now + stall
    return done / now


@pytest.mark.parametrize("away", [0.0, 900.0, 7200.0])
def test_only_the_replica_that_was_hit_is_away(away):
    mean, stall, replicas = 730.0, 180.0, 64
    node = ComponentClass(name="node", level="node", rate=1 / (mean * replicas))
    placement = Placement(strategy=Strategy(tensor=8, data=replicas))
    model = FailureModel(classes=(node,), cluster=Cluster(nodes=replicas), placement=placement)
    none = Checkpointing(levels=(CheckpointLevel(name="none", cost=0.0, restart=0.0),))
    report = goodput(model, 1.0, none, Recovery.ft_hsdp(away=away, stall=stall))
    drawn = {
        idle: [
            share_drawn(mean, stall, away, replicas, 4000, np.random.default_rng(s), idle=idle)
            for s in range(20)
        ]
        for idle in (False, True)
    }
    error = np.std(drawn[True]) / math.sqrt(20)
    assert report.mean == pytest.approx(np.mean(drawn[True]), abs=4 * error)
    # the model has no failures of absent replicas
    assert report.mean > np.mean(drawn[False]) - 4 * error
