"""Both kernels on 1,000 small random jobs against closed forms, and the benchmark's large jobs."""

import numpy as np
import pytest

from pace import pace
from relparallel.hardware import Cluster
from relparallel.parallel import Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    Recovery,
    effective_training_time_ratio,
    failure_model,
    simulate,
)
from relparallel.training._identity_kernel import new_nodes, run_identities
from relparallel.training._job import JobRows
from relparallel.training._job_kernel import Course, run_counts
from relparallel.training.lifetimes import Lifetime
from relparallel.training.spares import loss_probability

NOTHING = (np.empty(0), np.empty(0), np.empty(0, np.int64))


def tables(nodes, spares, rate, repair, interval, cost, restart, speed=None, pause=0.0, hot=False):
    """A job with one kind of failure and one checkpoint level; it waits unless it has speeds."""
    return JobRows(
        rate=np.array([nodes * rate]),
        nodes=np.array([1]),
        stops=np.ones(1, np.bool_),
        back=np.array([speed is None]),
        survive=np.ones((1, 1)),
        detection=np.zeros(1),
        repair=np.array([repair]),
        slowdown=np.ones(1),
        cost=np.array([cost]),
        restart=np.array([restart]),
        delay=np.zeros(1),
        every=np.ones(1, np.int64),
        interval=interval,
        speed=np.eye(1, nodes + 1)[0] if speed is None else speed,
        total=nodes,
        spares=spares,
        hot=hot,
        waits=speed is None,
        pause=pause,
        restart_fixed=0.0,
        timeout=0.0,
        meeting=pause,
        hit=np.ones(1),
        none=np.zeros(1),
        units=np.empty(0),
        shared=np.zeros(1, np.int64),
        phases=np.ones((1, 2)),
        lasting=1.0,
        apart=False,
    )


def shares(job, window, windows, rng, law=None):
    """Shares of the time by window and bucket."""
    course = Course.of(job, np.zeros(1, np.int64), np.inf, 0.0, window, windows, np.ones(1))
    if law is None:
        run_counts(rng, job, course, np.inf)
    else:
        total, mend = job.total + job.spares, Lifetime.exponential(1.0)
        nodes = new_nodes(
            total, job, law.draws, mend.draws, law.remaining(rng, total), NOTHING, NOTHING[2]
        )
        run_identities(rng, job, course, nodes)
    found = course.found
    assert np.abs(found.sum(axis=1) / window - 1).max() < 1e-9
    return found[1:] / window  # the first window fills the repair shop


def scores(values, expected):
    """Distance of each mean from its value, in standard errors of its windows."""
    error = values.std(axis=1, ddof=1) / values.shape[1] ** 0.5
    return (values.mean(axis=1) - expected) / error


def check(score):
    """A thousand of Student's variables with 39 degrees: none is worth a look on its own."""
    assert (np.abs(score) < 3).mean() > 0.985
    assert abs(score.mean()) < 3.5 / score.size**0.5
    assert 0.9 < score.std() < 1.15


def waiting_jobs(rng, identities):
    found, exact = [], []
    for _ in range(pace(250, 1000)):
        nodes, spares, mtbf = (
            int(rng.integers(2, 40)),
            int(rng.integers(0, 4)),
            10 ** rng.uniform(3, 5),
        )
        repair, interval = mtbf * rng.uniform(0.2, 2.0), mtbf * rng.uniform(0.05, 0.5)
        cost, restart = mtbf * rng.uniform(0.001, 0.05), mtbf * rng.uniform(0.0, 0.3)
        job = tables(nodes, spares, 1 / (mtbf * nodes), repair, interval, cost, restart)
        law = Lifetime.exponential(mtbf * nodes) if identities else None
        found.append(shares(job, 150 * mtbf, 41, rng, law)[:, :6:5])
        ratio = effective_training_time_ratio(mtbf, interval, cost, restart).mean
        short = loss_probability(spares + 1, repair / mtbf)
        exact.append(((1 - short) * ratio, short))
    return np.array(found), np.array(exact)


@pytest.mark.parametrize("identities", [False, True], ids=["counts", "identities"])
def test_random_jobs_that_wait_for_repairs(identities):
    found, exact = waiting_jobs(np.random.default_rng(11), identities)
    for bucket in range(2):
        check(scores(found[:, :, bucket], exact[:, bucket]))


@pytest.mark.parametrize("identities", [False, True], ids=["counts", "identities"])
def test_random_elastic_jobs(identities):
    rng, found, exact = np.random.default_rng(12), [], []
    for _ in range(pace(250, 1000)):
        replicas, mtbf = int(rng.integers(2, 40)), 10 ** rng.uniform(3, 5)
        repair = mtbf * rng.uniform(0.05, 2.0)
        speed = np.linspace(1, 0, replicas + 1)
        speed[-1] = 1e-12  # waiting nodes do not fail; a crawling job keeps all of them independent
        job = tables(replicas, 0, 1 / (mtbf * replicas), repair, 1e30, 0.0, 0.0, speed)
        law = Lifetime.exponential(mtbf * replicas) if identities else None
        values = shares(job, 150 * mtbf, 41, rng, law)
        found.append(values[:, 0])
        exact.append(1 / (1 + repair / mtbf / replicas))
    check(scores(np.array(found), np.array(exact)))


@pytest.mark.parametrize("law", [None, 1.0, 0.7], ids=["counts", "exponential", "weibull"])
def test_a_hundred_thousand_gpus(law):
    nodes, rate, day = 12500, 3.79e-3 / 86400, 86400.0
    job = tables(nodes, 60, rate, day, 468.0, 60.0, 600.0)
    lives = None if law is None else Lifetime.weibull(1 / rate, law)
    values = shares(job, 30 * day, 400, np.random.default_rng(13), lives)[:, 0]
    exact = (1 - loss_probability(61, nodes * rate * day)) * effective_training_time_ratio(
        1 / (nodes * rate), 468.0, 60.0, 600.0
    ).mean
    # Superposed lives of any law are close to Poisson; what is left of the shape is in the spare
    # pool.
    assert values.mean() == pytest.approx(
        exact, abs=4 * values.std() / 20 + (0.0015 if law == 0.7 else 0)
    )


def test_lives_of_a_job_that_waits_are_held_once():
    """Pairs that fail and return while the clock of the running nodes stands leave one entry each."""
    pair = ComponentClass(name="switch", level="switch", rate=4e-8, repair=86400.0)
    node = ComponentClass(name="node", level="node", rate=1e-12)
    hall, split = Cluster(nodes=16, nodes_per_switch=2), Strategy(tensor=8, data=16)
    model = failure_model(hall, split, rates=(pair, node))
    storage = Checkpointing(
        levels=(CheckpointLevel(name="s", cost=1.0, restart=1.0),), interval=1e5
    )
    made = simulate(
        model,
        5.0,
        storage,
        Recovery("restart", repair=86400.0),
        years=4000,
        level="identity",
        replications=2,
        rng=np.random.default_rng(1),
    )
    down = 8 * 4e-8 * 86400.0
    assert made.buckets["waiting"] == pytest.approx(down / (1 + down), rel=0.05)
