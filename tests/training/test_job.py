"""A job compiled to arrays."""

import numpy as np
import pytest

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Cause,
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    Recovery,
    failure_model,
    goodput,
    rollback,
    simulate,
)
from relparallel.training._job import job_rows

LEVELS = (
    CheckpointLevel(name="memory", cost=1.0, restart=30.0, survives={"rack": 0.25, "job": 0.5}),
    CheckpointLevel(name="storage", cost=60.0, restart=300.0),
)
CLASSES = (
    ComponentClass(name="gpu", level="gpu", rate=1e-9, detection=20.0),
    ComponentClass(name="rack", level="rack", rate=1e-9, repair=7200.0),
    ComponentClass(name="adapter", level="gpu", rate=2e-9, effect="degrade", slowdown=1.5),
    ComponentClass(name="never", level="node", rate=0.0),
    ComponentClass(name="software", level="job", rate=1e-6),
)
HALL = Cluster(nodes=64, nodes_per_rack=4)


SPLIT = Strategy(tensor=8, pipeline=4, data=16)
APART = Placement(strategy=SPLIT, order=("tensor", "context", "pipeline", "data"))


def job(policy, placement=None, **options):
    model = failure_model(HALL, SPLIT, placement, rates=CLASSES)
    recovery = Recovery(policy, repair=86400.0, restart=120.0, pause=15.0, **options)
    return model, Checkpointing(levels=LEVELS), recovery


def test_every_domain_that_can_fail_has_a_row():
    found = job_rows(*job("elastic"), spares=3)
    assert found.rate.tolist() == pytest.approx([512e-9, 16e-9, 1024e-9, 1e-6])
    assert found.nodes.tolist() == [1, 4, 0, 0]
    assert found.back.tolist() == [False, False, False, True]
    assert found.survive.tolist() == [[1, 1], [0.25, 1], [1, 1], [0.5, 1]]
    assert found.detection.tolist() == [20, 0, 0, 0]
    assert found.repair.tolist() == [86400, 7200, 86400, 86400]
    assert found.slowdown.tolist() == [1, 1, 1.5, 1]
    assert (found.spares, found.total, found.pause, found.restart_fixed, found.hot) == (
        3,
        64,
        15,
        120,
        False,
    )


def test_a_rack_inside_one_replica_is_one_loss_to_a_job_that_drops_replicas():
    assert job_rows(*job("elastic", APART)).nodes.tolist() == [1, 1, 0, 0]
    assert job_rows(*job("regroup", APART)).nodes.tolist() == [1, 4, 0, 0]
    assert job_rows(*job("spares", APART)).nodes.tolist() == [1, 4, 0, 0]


def test_fewer_tensor_ranks_where_whole_nodes_fail_are_replicas_that_drop_out():
    halves = [job("elastic", APART), job("reduced_tensor", APART, partial=0.0)]
    assert job_rows(*halves[1]).nodes.tolist() == [1, 1, 0, 0]
    assert job_rows(*job("reduced_tensor", APART, partial=0.5)).nodes.tolist() == [1, 4, 0, 0]
    model, checkpointing, recovery = halves[1]
    made = simulate(
        model,
        5.0,
        checkpointing,
        recovery,
        years=200,
        level="identity",
        rng=np.random.default_rng(8),
    )
    for one in halves:
        report = goodput(one[0], 5.0, *one[1:])
        assert abs(report.mean - made.mean) < 3 * np.sqrt(made.variance_rate / (200 * 365 * 86400))


def test_levels_of_checkpoints_are_columns():
    found = job_rows(*job("spares"))
    assert found.back.tolist() == [True, True, False, True]
    assert (found.cost.tolist(), found.restart.tolist()) == ([1, 60], [30, 300])
    assert found.every[-1] == 1
    assert found.every.size == 2
    assert 0 < found.interval < np.inf


def test_speeds_reach_beyond_the_usual_number_of_missing_nodes():
    model, checkpointing, recovery = job("elastic")
    found = job_rows(model, checkpointing, recovery)
    assert found.speed[:3].tolist() == pytest.approx([1, 15 / 16, 15 / 16 * 59 / 63])
    load = (found.rate * found.nodes * found.repair).sum()
    assert found.speed.size > load + 10 * np.sqrt(load)


def test_nothing_that_sends_the_job_back_needs_no_interval():
    model = failure_model(HALL, Strategy(tensor=8, data=64), rates=CLASSES[:1])
    found = job_rows(model, Checkpointing(levels=LEVELS), Recovery("elastic", repair=3600.0))
    assert found.interval == np.inf
    assert not found.back.any()


def test_a_model_without_a_placement_has_no_rows():
    model, checkpointing, recovery = job("spares")
    bare = type(model)(classes=model.classes, cluster=model.cluster)
    with pytest.raises(ValueError, match="model must have a placement"):
        job_rows(bare, checkpointing, recovery)


def test_going_back_is_that_of_the_causes_by_hand():
    """Failures of one level are one cause: GPUs and racks, and the software of the job."""
    model, checkpointing, recovery = job("spares")
    kinds = (("gpu", 512e-9, 20.0), ("rack", 16e-9, 0.0), ("job", 1e-6, 0.0))
    causes = [
        Cause(level=level, rate=rate, detection=seen, restart=120.0) for level, rate, seen in kinds
    ]
    by_hand, found = rollback(checkpointing, causes), job_rows(model, checkpointing, recovery)
    slow = found.slow_parts()
    assert found.every.tolist() == [*by_hand.every, 1]
    assert found.interval == pytest.approx(by_hand.interval * slow, rel=1e-9)
    assert found.rollback(slow).buckets == pytest.approx(by_hand.buckets, rel=1e-9)
