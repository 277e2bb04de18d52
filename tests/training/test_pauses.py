"""Pauses of jobs that go on: stated accuracy against independent nodes' law and simulation."""

import numpy as np
import pytest
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


@pytest.mark.parametrize(("recovery", "nodes", "lifetime"), JOBS)
def test_pauses_are_within_the_stated_accuracy(recovery, nodes, lifetime):
    model = job(nodes, lifetime)
    expected = kept(model, recovery, nodes, lifetime)
    assert goodput(model, 5.0, FREE, recovery).mean == pytest.approx(expected, abs=5e-4)
    assert goodput(model, 5.0, FREE, recovery, method="markov").mean == pytest.approx(
        expected, abs=2e-7
    )


@pytest.mark.parametrize(("recovery", "nodes", "lifetime"), JOBS[2:4])
def test_the_law_of_independent_nodes_is_what_is_simulated(recovery, nodes, lifetime):
    model = job(nodes, lifetime)
    run = simulate(model, 5.0, FREE, recovery, years=60, rng=np.random.default_rng(5))
    low, high = run.brackets["productive"]
    expected = kept(model, recovery, nodes, lifetime)
    assert abs(run.mean - expected) < (high - low)
    assert goodput(model, 5.0, FREE, recovery).mean == pytest.approx(
        run.mean, abs=5e-4 + (high - low)
    )
