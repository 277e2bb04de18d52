"""Pauses of jobs that go on: stated accuracy against independent nodes' law and simulation."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import binom

from relparallel.hardware import Cluster
from relparallel.parallel import Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    JobShape,
    Recovery,
    failure_model,
    goodput,
    simulate,
)
from relparallel.training.recovery import speed_of
from relparallel.units import DAY, HOUR

FREE = Checkpointing(levels=(CheckpointLevel(name="free", cost=0.0, restart=0.0),), interval=1e6)
JOBS = [
    (Recovery("regroup", 3 * DAY, pause=600.0), 2048, 154 * DAY),
    (Recovery("regroup", 7 * DAY, pause=600.0), 2048, 154 * DAY),
    (Recovery("regroup", 21.5 * HOUR, pause=452.0), 512, 22 * DAY),
    (Recovery("elastic", DAY, pause=900.0, batch="keep", micro_batches=8), 256, 20 * DAY),
    (Recovery("elastic", DAY, pause=3600.0), 256, 20 * DAY),
    (Recovery("elastic", 6 * HOUR, pause=3600.0), 256, 60 * DAY),
]


def job(nodes, lifetime):
    node = ComponentClass(name="node", level="node", rate=1 / lifetime)
    return failure_model(
        Cluster(nodes=nodes), Strategy(tensor=8, pipeline=4, data=nodes // 4), rates=(node,)
    )


def kept(model, recovery, nodes, lifetime):
    """Mean speed outside pauses: a node did not fail for a pause's length d, or is not back yet."""
    rate, back, d = 1 / lifetime, 1 / recovery.repair, recovery.pause
    up, clean, away = back / (rate + back), np.exp(-rate * d), np.exp(-back * d)
    returned = (1 - up) * back * (clean - away) / (back - rate)
    still = (1 - up) * away
    outside = up * clean + returned + still
    chance = binom.pmf(np.arange(nodes + 1), nodes, still / outside)
    shape = JobShape.of(model.placement, model.cluster)
    return outside**nodes * float(chance @ recovery.speed(shape, nodes))


def kept_by_units(model, recovery, nodes, lifetime):
    """As `kept` where units leave: one that is whole did not fail for d, others pause nobody.

    A unit by the nodes that it lacks, without the move that begins a pause, for a time d.
    """
    shape, rate = JobShape.of(model.placement, model.cluster), 1 / lifetime
    size, lacks = shape.nodes_per_replica, np.arange(shape.nodes_per_replica + 1)
    moves = np.diag((size - lacks[:-1]) * rate, 1) + np.diag(lacks[1:] / recovery.repair, -1)
    moves -= np.diag(moves.sum(axis=1))
    moves[0, 1] = 0.0
    away = rate * recovery.repair / (1 + rate * recovery.repair)
    after = binom.pmf(lacks, size, away) @ expm(moves * recovery.pause)
    chance = binom.pmf(np.arange(shape.units + 1), shape.units, after[0] / after.sum())
    alive = np.arange(shape.units + 1)
    speed = speed_of(alive, shape.units, recovery.batch, recovery.micro_batches)
    return after.sum() ** shape.units * float(chance @ speed)


LAWS = {"regroup": (kept, 2e-7), "elastic": (kept_by_units, 5e-4)}


@pytest.mark.parametrize(("recovery", "nodes", "lifetime"), JOBS)
def test_pauses_are_within_the_stated_accuracy(recovery, nodes, lifetime):
    model, (law, near) = job(nodes, lifetime), LAWS[recovery.policy]
    expected = law(model, recovery, nodes, lifetime)
    assert goodput(model, 5.0, FREE, recovery).mean == pytest.approx(expected, abs=1e-5)
    assert goodput(model, 5.0, FREE, recovery, method="markov").mean == pytest.approx(
        expected, abs=near
    )


@pytest.mark.parametrize("level", ["count", "identity"])
@pytest.mark.parametrize(("recovery", "nodes", "lifetime"), JOBS[2:4])
def test_the_law_of_independent_nodes_is_what_is_simulated(recovery, nodes, lifetime, level):
    model = job(nodes, lifetime)
    rng = np.random.default_rng(5)
    run = simulate(model, 5.0, FREE, recovery, years=60, rng=rng, level=level)
    low, high = run.brackets["productive"]
    expected = LAWS[recovery.policy][0](model, recovery, nodes, lifetime)
    assert abs(run.mean - expected) < (high - low)
    assert goodput(model, 5.0, FREE, recovery).mean == pytest.approx(
        run.mean, abs=5e-4 + (high - low)
    )
