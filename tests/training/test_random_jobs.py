"""Closed forms against simulation on 1,000 random jobs: all policies, checkpoints and domains."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from pace import pace
from relparallel.hardware import Cluster
from relparallel.parallel import Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    Recovery,
    failure_model,
    goodput,
    simulate,
)
from relparallel.training._job import job_rows
from relparallel.training.recovery_policies import POLICIES

DAY = 86400.0
YEARS, HORIZON = 100.0, 30 * DAY


def random_classes(rng):
    """Parts of every level and effect; each but the first is there in half of the jobs."""

    def rate(low, high):
        return 10 ** rng.uniform(low, high) / DAY

    always = ComponentClass(
        name="GPU", level="gpu", rate=rate(-4, -3), detection=rng.choice([0.0, 60.0])
    )
    others = (
        ComponentClass(
            name="host", level="node", rate=rate(-3.5, -2), detection=rng.uniform(0, 600)
        ),
        ComponentClass(
            name="software", level="job", rate=rate(-1, 0.5), detection=rng.uniform(0, 300)
        ),
        ComponentClass(
            name="corruption", level="gpu", rate=rate(-5, -4), effect="corrupt", detection=900.0
        ),
        ComponentClass(
            name="slow NIC",
            level="node",
            rate=rate(-4, -2.5),
            effect="degrade",
            slowdown=rng.uniform(1.05, 2.0),
            repair=rng.uniform(600, DAY),
        ),
        ComponentClass(
            name="ToR", level="switch", rate=rate(-4, -2.5), repair=rng.uniform(600, DAY)
        ),
        ComponentClass(name="rack", level="rack", rate=rate(-4, -2.5)),
    )
    return (always, *(entry for entry in others if rng.random() < 0.5))


def random_checkpoints(rng):
    """One to three levels with survivals and delays; the interval open or not."""
    levels = int(rng.integers(1, 4))
    # a lower level is there first
    delays = np.sort(rng.uniform(1, 60, levels) * (rng.random(levels) < 0.5))
    made = []
    for k in range(levels):
        survives = (
            {}
            if k == levels - 1
            else {name: float(rng.choice([0.0, 0.5, 1.0])) for name in ("node", "switch", "rack")}
        )
        made.append(
            CheckpointLevel(
                name=f"level {k}",
                cost=4.0**k * rng.uniform(0.5, 8),
                restart=rng.uniform(10, 200) * (k + 1),
                survives=survives,
                delay=float(delays[k]),
            )
        )
    if rng.random() < 0.5:
        return Checkpointing(levels=tuple(made))
    every = tuple(int(n) for n in rng.integers(1, 8, levels - 1))
    return Checkpointing(levels=tuple(made), interval=rng.uniform(300, 3000), every=every)


def random_job(rng, policy):
    """A job on 32 to 128 nodes with all that recovery needs."""
    nodes = int(rng.choice([32, 64, 128]))
    cluster = Cluster(nodes=nodes, nodes_per_switch=2, nodes_per_rack=4)
    pipeline = int(rng.choice([1, 2, 4])) if policy != "bamboo" else 4
    strategy = Strategy(tensor=8, pipeline=pipeline, data=nodes // pipeline)
    kind = POLICIES[policy]
    recovery = Recovery(
        policy,
        repair=rng.uniform(0.05, 1.0) * DAY,
        restart=rng.uniform(0, 300),
        pause=0.0 if kind.waits else rng.uniform(0, 60),
        partial=rng.choice([0.0, 0.5, 1.0]) if policy == "reduced_tensor" else None,
    )
    spares = int(rng.integers(0, 7)) if kind.spares else 0
    return (
        failure_model(cluster, strategy, rates=random_classes(rng)),
        random_checkpoints(rng),
        recovery,
        spares,
    )


def score(rng, policy):
    """Standard errors between the two means, from the horizons of one simulation."""
    while True:
        model, plan, recovery, spares = random_job(rng, policy)
        report, table = (
            goodput(model, 5.0, plan, recovery, spares),
            job_rows(model, plan, recovery, spares),
        )
        late = max(level.delay for level in plan.levels) >= report.interval
        # what the simulation takes
        if report.mean > 0.1 and not late and table.every.prod() <= 10**5:
            break
    made = simulate(
        model, 5.0, plan, recovery, spares, years=YEARS, rng=rng, horizon=HORIZON, replications=4
    )
    return (report.mean - made.mean) / np.sqrt(made.variance_rate / (made.samples.size * HORIZON))


@pytest.fixture(scope="module")
def scores():
    """Random jobs, each simulated once, long enough for rare failures to be normal."""
    generators = {policy: np.random.default_rng(seed) for seed, policy in enumerate(POLICIES)}
    return np.array(
        [[score(rng, policy) for _ in range(pace(6, 112))] for policy, rng in generators.items()]
    )


def test_random_jobs_agree_with_simulation(scores):
    outside = np.abs(scores) > 3
    assert outside.sum() <= binom.isf(1e-3, scores.size, 2 * norm.sf(3)), np.argwhere(outside)
    # one in a hundred such maxima is larger
    assert np.abs(scores).max() < norm.isf(0.005 / scores.size)
    assert abs(scores.std() - 1) < 3 / np.sqrt(2 * scores.size)
    assert abs(scores.mean()) < 3 / np.sqrt(scores.size)


def test_no_policy_is_biased(scores):
    assert (np.abs(scores.mean(axis=1)) < 3.5 / np.sqrt(scores.shape[1])).all(), scores.mean(axis=1)
    assert (np.abs(scores.std(axis=1) - 1) < 3.7 / np.sqrt(2 * scores.shape[1])).all(), scores.std(
        axis=1
    )
