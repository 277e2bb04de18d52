import dataclasses
import heapq
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s43.elastic import elastic_throughput
from relparallel.hardware import Cluster, llama3_interruptions
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    Job,
    Recovery,
    effective_training_time_ratio,
    failure_model,
    goodput,
    relative_goodput,
    shortage_probability,
    simulate,
)
from relparallel.training.failure_sources import NodeLives, SharedEvents
from relparallel.training.goodput_forms import steady_state

DAY, HOUR = 86400.0, 3600.0
COSTS = {"checkpoint": 20.0, "restart": 300.0, "pause": 30.0}
JOB = Job(nodes=256, nodes_per_replica=16, node_rate=3e-3 / DAY, job_rate=0.5 / DAY, **COSTS)
jobs = st.builds(
    Job,
    nodes=st.just(48),
    nodes_per_replica=st.sampled_from([1, 2, 6, 12, 48]),
    node_rate=st.floats(0.0, 0.1 / DAY),
    job_rate=st.floats(0.0, 5.0 / DAY),
    checkpoint=st.floats(0.0, 300.0),
    restart=st.floats(0.0, 1800.0),
    pause=st.floats(0.0, 300.0),
)
repairs = st.floats(0.0, 30 * DAY)


@given(
    rate=st.floats(1e-12, 1e-6),
    checkpoint=st.floats(0.1, 300.0),
    restart=st.floats(0.0, 1800.0),
    repair=repairs,
)
def test_restart_is_the_exact_model_with_the_repair_as_down_time(rate, checkpoint, restart, repair):
    job = Job(
        nodes=48,
        nodes_per_replica=6,
        node_rate=rate,
        checkpoint=checkpoint,
        restart=restart,
        pause=0.0,
    )
    found = relative_goodput(job, "restart", repair)
    mtbf = 1 / (job.nodes * job.node_rate)
    exact = effective_training_time_ratio(mtbf, found.interval, job.checkpoint, job.restart, repair)
    assert found.share == pytest.approx(exact.mean, rel=1e-9)


@given(job=jobs, repair=repairs)
def test_restart_is_the_policy_of_no_spares_and_spares_are_never_worse(job, repair):
    restart = relative_goodput(job, "restart", repair).share
    assert relative_goodput(job, "spares", repair, spares=0).share == restart
    assert relative_goodput(job, "spares", repair).share >= restart


@given(job=jobs, repair=repairs)
def test_the_best_number_of_spares_beats_every_other(job, repair):
    best = relative_goodput(job, "spares", repair)
    every = {
        held: relative_goodput(job, "spares", repair, spares=held).share
        for held in range(0, job.nodes, job.nodes_per_replica)
    }
    assert best.share == max(every.values())
    assert every[best.spares] == best.share
    assert best.ceiling <= best.share


@given(job=jobs, repair=repairs)
def test_the_share_is_the_product_of_its_factors(job, repair):
    for policy in ("restart", "spares", "elastic"):
        found = relative_goodput(job, policy, repair)
        factors = (
            found.active
            * found.availability
            * found.recovery
            * found.rollback
            * found.degraded_nodes
        )
        assert found.share == pytest.approx(factors, rel=1e-12)
        assert 0 <= found.share <= 1


@given(job=jobs, repair=st.floats(60.0, 10 * DAY), factor=st.floats(1.0, 10.0))
def test_goodput_falls_with_the_repair_time(job, repair, factor):
    for policy in ("restart", "spares", "elastic"):
        slower = relative_goodput(job, policy, factor * repair).share
        assert slower <= relative_goodput(job, policy, repair).share * (1 + 1e-12)


def test_a_cluster_that_never_fails_loses_nothing():
    job = Job(nodes=64, nodes_per_replica=4, node_rate=0.0, **COSTS)
    for policy in ("restart", "spares", "elastic"):
        found = relative_goodput(job, policy, DAY)
        assert (found.share, found.spares, found.interval) == (1.0, 0, float("inf"))


def simulated(job, spares, repair, sigma, rng, batches=120, failures=400):
    """Goodput of the spares policy, failure by failure, with lognormal repairs."""
    found = relative_goodput(job, "spares", repair, spares=spares)
    active = job.nodes - spares
    rate, saved_at = active * job.node_rate + job.job_rate, found.interval + job.checkpoint
    clock, mending, shares = 0.0, [], []
    for _ in range(batches):
        begin, work = clock, 0.0
        for _ in range(failures):
            life = rng.exponential(1 / rate)
            work += max(life - job.restart, 0.0) // saved_at * found.interval
            clock += life
            while mending and mending[0] <= clock:
                heapq.heappop(mending)
            if rng.random() < active * job.node_rate / rate:
                heapq.heappush(mending, clock + repair * rng.lognormal(-(sigma**2) / 2, sigma))
                if len(mending) > spares:
                    clock = heapq.heappop(mending)
        shares.append(work / (clock - begin) * active / job.nodes)
    return np.array(shares), found.share


@pytest.mark.parametrize(
    ("spares", "repair", "sigma"),
    [(0, 1800.0, 0.0), (16, 10 * DAY, 0.0), (16, 20 * DAY, 1.0), (32, DAY, 1.4)],
)
def test_the_spares_policy_agrees_with_simulation_whatever_the_repair_law(spares, repair, sigma):
    shares, expected = simulated(JOB, spares, repair, sigma, np.random.default_rng(5))
    z = (shares[5:].mean() - expected) / (shares[5:].std(ddof=1) / np.sqrt(len(shares) - 5))
    assert abs(z) < 4


def test_spares_wait_as_often_as_erlang_says():
    found = relative_goodput(JOB, "spares", 10 * DAY, spares=16)
    assert 1 - found.availability == pytest.approx(
        shortage_probability(240, 16, 3e-3 / DAY, 10 * DAY)
    )
    assert found.active == 240 / 256


def test_elastic_is_the_throughput_alone_where_nothing_stops_the_whole_job():
    job = Job(nodes=2048, nodes_per_replica=16, node_rate=3.79e-3 / DAY, **COSTS)
    found = relative_goodput(job, "elastic", DAY)
    assert found.share == elastic_throughput(2048, 16, 3.79e-3 / DAY, DAY, 30.0)
    assert found.rollback == 1.0


def test_failures_of_the_job_cost_the_elastic_job_a_restart_from_its_checkpoint():
    found = relative_goodput(JOB, "elastic", DAY)
    whole = effective_training_time_ratio(2 * DAY, found.interval, 20.0, 300.0).mean
    assert found.rollback == pytest.approx(whole, rel=1e-9)


def test_goodput_is_vectorised_over_repair_times():
    times = np.geomspace(600, 7 * DAY, 7).reshape(7, 1)
    for policy in ("restart", "spares", "elastic"):
        together = relative_goodput(JOB, policy, times)
        apart = [relative_goodput(JOB, policy, float(r)).share for r in times.ravel()]
        assert np.shape(together.share) == (7, 1)
        assert np.ravel(together.share) == pytest.approx(apart, rel=1e-14)
        assert len(together.to_frame()) == 7


@pytest.mark.parametrize(("policy", "spares"), [("restart", 0), ("spares", 16), ("elastic", 0)])
def test_many_repair_times_at_once_are_the_goodput_of_each(policy, spares):
    """Without pauses the closed form over repair times is the job's report, factor by factor."""
    job, active = dataclasses.replace(JOB, pause=0.0), JOB.nodes - spares
    strategy = Strategy(
        tensor=8, pipeline=job.nodes_per_replica, data=active // job.nodes_per_replica
    )
    rates = {"node": job.node_rate, "job": job.job_rate}
    model = FailureModel(
        classes=tuple(
            ComponentClass(name=level, level=level, rate=rate) for level, rate in rates.items()
        ),
        cluster=Cluster(nodes=active),
        placement=Placement(strategy=strategy),
    )
    storage = Checkpointing(levels=(CheckpointLevel(name="s", cost=job.checkpoint, restart=0.0),))
    for repair in (HOUR, DAY, 10 * DAY):
        recovery = Recovery(policy, repair=repair, restart=job.restart, pause=0.0)
        found = steady_state(model, storage, recovery, spares)
        many = relative_goodput(
            job, policy, np.array([repair]), **({"spares": spares} if spares else {})
        )
        for factor in ("availability", "recovery", "rollback", "degraded_nodes"):
            assert np.ravel(getattr(many, factor))[0] == pytest.approx(
                getattr(found, factor), rel=1e-9
            )


@pytest.fixture(scope="module")
def failures():
    return FailureModel.from_rates(llama3_interruptions(), Cluster(nodes=48))


def test_the_placement_of_a_strategy_decides_how_many_nodes_stop_together(failures):
    strategy = Strategy(tensor=4, pipeline=12, data=8)
    usual = Job.of(Placement(strategy=strategy), failures, **COSTS)
    order = ("tensor", "context", "pipeline", "data")
    apart = Job.of(Placement(strategy=strategy, order=order), failures, **COSTS)
    assert (usual.nodes_per_replica, apart.nodes_per_replica) == (12, 6)
    assert (
        relative_goodput(apart, "elastic", DAY).share
        > relative_goodput(usual, "elastic", DAY).share
    )


def test_a_job_whose_shards_exist_once_is_refused_elastic_recovery_with_the_reason(failures):
    sharded = Strategy(tensor=8, pipeline=2, data=24, zero_stage=1)
    job = Job.of(Placement(strategy=sharded), failures, **COSTS)
    assert not job.droppable
    assert job.nodes_per_replica == 2  # spares still come in whole replicas
    with pytest.raises(ValueError, match=r"policy .* ZeRO stage 1 over all 24 replicas"):
        relative_goodput(job, "elastic", DAY)
    assert relative_goodput(job, "spares", DAY).share > 0


def test_without_resharding_the_shard_group_is_the_unit(failures):
    sharded = Strategy(tensor=8, data=48, zero_stage=3, shard=6)
    units = [
        Job.of(Placement(strategy=sharded), failures, reshard=flag, **COSTS).nodes_per_replica
        for flag in (True, False)
    ]
    assert units == [1, 6]


def test_failures_with_a_source_are_refused_by_name(failures):
    for source, takes in (
        (SharedEvents(sizes=(0.5, 0.5)), "SharedEvents: `goodput` takes it"),
        (NodeLives(), "NodeLives: `simulate` takes it"),
    ):
        with pytest.raises(ValueError, match=f"failures must be independent here.*{takes}"):
            Job.of(
                Placement(strategy=Strategy(data=384)), replace(failures, source=source), **COSTS
            )


def test_a_job_waits_as_long_as_its_spares_run_out_where_all_events_are_large():
    """Of five or six nodes: some numbers of nodes down never occur."""
    events, spares = SharedEvents(sizes=(0, 0, 0, 0, 0.1, 0.9)), 2
    node = ComponentClass(name="node", level="node", rate=0.01 / DAY)
    model = failure_model(Cluster(nodes=32), Strategy(data=256), rates=(node,), source=events)
    storage = Checkpointing(levels=(CheckpointLevel(name="storage", cost=20.0, restart=60.0),))
    report = goodput(model, 1.0, storage, Recovery("spares", repair=DAY), spares=spares)
    waits = shortage_probability(32, spares, node.rate, DAY, source=events)
    assert report.buckets["waiting"] == pytest.approx(waits, rel=1e-9)
    events_a_day = 32 * 0.01 / events.mean_size
    assert waits == pytest.approx(events_a_day / (1 + events_a_day), rel=1e-9)  # each stops the job


def test_replicas_that_share_nodes_with_others_are_refused():
    failures = FailureModel(
        classes=(ComponentClass(name="node", level="node", rate=1e-8),), cluster=Cluster(nodes=6)
    )
    with pytest.raises(ValueError, match="placement"):
        Job.of(Placement(strategy=Strategy(tensor=3, data=16)), failures, **COSTS)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("nodes", 250),
        ("nodes", 0),
        ("nodes_per_replica", 1.0),
        ("node_rate", -1.0),
        ("node_rate", [1e-9]),
        ("job_rate", float("nan")),
        ("checkpoint", "long"),
        ("restart", None),
        ("pause", 1e300),
        ("batch", "grow"),
        ("micro_batches", 8),
        ("regroup", 1),
        ("droppable", None),
        ("reason", 3),
    ],
)
def test_a_job_checks_its_fields(field, bad):
    good = {"nodes": 256, "nodes_per_replica": 16, "node_rate": 1e-8, **COSTS}
    with pytest.raises((ValueError, TypeError), match=field):
        Job(**{**good, field: bad})


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"job": 3}, "job"),
        ({"policy": "hope"}, "policy"),
        ({"repair": -1.0}, "repair"),
        ({"spares": 8}, "spares"),
        ({"spares": 256}, "spares"),
        ({"policy": "restart", "spares": 16}, "spares"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises((ValueError, TypeError), match=named):
        relative_goodput(**{"job": JOB, "policy": "spares", "repair": DAY, **arguments})


@pytest.mark.parametrize("hours", [8, 24, 24 * 30])
def test_the_variance_over_a_time_is_that_of_simulated_runs_of_it(hours):
    """Nodes are missing and a part is slow for a day at a time, so that hours of it are alike."""
    cluster, strategy = Cluster(nodes=64), Strategy(tensor=8, pipeline=2, data=32)
    parts = (
        ComponentClass(name="node", level="node", rate=1e-2 / DAY, detection=0.0),
        ComponentClass(name="slow", level="job", effect="degrade", rate=0.3 / DAY, slowdown=1.2),
    )
    model = failure_model(cluster, strategy, rates=parts)
    storage = Checkpointing(levels=(CheckpointLevel(name="storage", cost=20.0, restart=300.0),))
    recovery = Recovery("elastic", repair=DAY, pause=30.0)
    state = steady_state(model, storage, recovery, 0)
    made = simulate(
        model,
        5.0,
        storage,
        recovery,
        years=100,
        rng=np.random.default_rng(8),
        horizon=hours * HOUR,
    )
    found = state.variance_over(hours * HOUR) / (hours * HOUR)
    assert found == pytest.approx(made.samples.var(), rel=0.1)
    assert state.variance_over(np.inf) == state.variance_rate
