from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from chapters.s43.elastic import elastic_throughput
from pace import pace
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    Lifetime,
    Recovery,
    shortage_probability,
    simulate,
)
from relparallel.training._job import job_rows
from relparallel.training.failure_sources import NodeLives, Replay
from relparallel.training.report import BUCKETS
from relparallel.training.spares import loss_probability
from relparallel.units import DAY, HOUR

NODES, RATE = 64, 0.02 / DAY
STORAGE = CheckpointLevel(name="storage", cost=30.0, restart=200.0)
MEMORY = CheckpointLevel(
    name="memory", cost=3.0, restart=40.0, survives={"node": 0.8, "rack": 0.0}, delay=25.0
)
ONE = Checkpointing(levels=(STORAGE,))
LATE = CheckpointLevel(name="storage", cost=30.0, restart=200.0, delay=150.0)
TWO = Checkpointing(levels=(MEMORY, STORAGE))
SLOWLY = Checkpointing(levels=(MEMORY, LATE))


def recorded(records, span=30 * DAY):
    return Replay(records=records, nodes=NODES, span=span, shuffled=False)


def job(*more, rate=RATE, pipeline=8, source=None):
    """Nodes that fail alone, and whatever else."""
    classes = (ComponentClass(name="node", level="node", rate=rate), *more)
    strategy = Strategy(tensor=8, pipeline=pipeline, data=NODES // pipeline)
    cluster = Cluster(nodes=NODES, nodes_per_rack=4)
    placement = Placement(strategy=strategy)
    return FailureModel(classes=classes, cluster=cluster, placement=placement, source=source)


SOFTWARE = ComponentClass(name="software", level="job", rate=1e-6, detection=300.0)
RACK = ComponentClass(name="rack", level="rack", rate=2e-8, repair=3 * HOUR)
SLOW = ComponentClass(
    name="link", level="node", rate=1e-8, effect="degrade", slowdown=1.5, repair=6 * HOUR
)


def run(model, checkpointing, recovery, spares=0, seed=1, years=40.0, **options):
    return simulate(
        model,
        5.0,
        checkpointing,
        recovery,
        spares,
        years=years,
        rng=np.random.default_rng(seed),
        **options,
    )


def within(report, bucket, expected, errors=4.0):
    """Whether a bucket lies within so many standard errors of the expected; there are dozens."""
    low, high = report.brackets[bucket]
    # Student, 19 degrees
    return abs(report.buckets[bucket] - expected) <= errors * (high - low) / 2 / 2.093


LEVELS = ("count", "identity")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "checkpointing", [ONE, TWO, SLOWLY], ids=["one level", "two levels", "delays"]
)
def test_going_back_and_cold_spares_have_the_exact_buckets(level, checkpointing):
    model, recovery = job(SOFTWARE), Recovery("spares", repair=DAY, restart=100.0)
    report = run(model, checkpointing, recovery, spares=2, seed=2, level=level, years=1000)
    exact = job_rows(model, checkpointing, recovery).rollback().buckets
    short = loss_probability(3, NODES * RATE * DAY)
    # While the job waits nothing happens to it: the rest of the time has the buckets of going back
    # alone. Software strikes only while it runs, so the node failures of the running time are
    # Erlang's.
    assert within(report, "waiting", short)
    for name, share in exact.items():
        assert within(report, name, share * (1 - short)), name


@pytest.mark.parametrize("level", LEVELS)
def test_a_checkpoint_of_the_last_level_each_time_serves_all_levels(level):
    # With identities spares that stand in spread the job over more racks, which then hit it more
    # often.
    racks = (RACK,) if level == "count" else ()
    model, recovery = job(SOFTWARE, *racks), Recovery("spares", repair=HOUR, restart=100.0)
    every_time = Checkpointing(levels=(MEMORY, LATE), interval=1000.0, every=(1,))
    report = run(model, every_time, recovery, spares=30, seed=4, level=level, years=300)
    assert within(report, "lost", job_rows(model, every_time, recovery).rollback().buckets["lost"])


@pytest.mark.parametrize("level", LEVELS)
def test_hot_spares_fail_while_they_stand_by(level):
    report = run(job(), ONE, Recovery("hot_spares", repair=DAY), spares=3, level=level)
    assert within(report, "waiting", shortage_probability(NODES, 3, RATE, DAY, kind="hot"))


@pytest.mark.parametrize("level", LEVELS)
def test_elastic_jobs_keep_what_the_formula_says(level):
    pause = 20.0
    report = run(
        job(), ONE, Recovery("elastic", repair=6 * HOUR, pause=pause), level=level, years=100
    )
    up = 1 / (1 + RATE * 6 * HOUR)
    # Nodes under repair cannot fail, so the pauses are fewer than N lam by their share.
    share = up**8 / (1 + NODES * RATE * up * pause)
    assert within(report, "productive", share)
    closed = elastic_throughput(NODES, 8, RATE, 6 * HOUR, pause)
    assert report.mean == pytest.approx(closed, abs=1e-3)


@pytest.mark.parametrize("level", LEVELS)
def test_degraded_parts_slow_the_job_by_the_slowest(level):
    quiet = job(SLOW, rate=0.0)
    report = run(quiet, ONE, Recovery("spares", repair=DAY), level=level)
    slow = 1 - np.exp(-NODES * 1e-8 * 6 * HOUR)  # an infinite-server queue is not empty
    assert within(report, "degraded", slow * (1 - 1 / 1.5))
    assert report.buckets["productive"] + report.buckets["degraded"] == pytest.approx(1.0, abs=1e-9)


def test_racks_take_their_nodes_together():
    model = job(RACK, rate=0.0)
    report = [
        run(model, TWO, Recovery("spares", repair=DAY), spares=4, level=level) for level in LEVELS
    ]
    assert within(report[0], "waiting", loss_probability(2, 16 * 2e-8 * 3 * HOUR))
    # With identities neighbours fail, and a rack may hold spares: a little apart from the counts.
    assert report[1].buckets["waiting"] == pytest.approx(report[0].buckets["waiting"], abs=2e-4)
    assert report[0].state_loss_rate == pytest.approx(16 * 2e-8, rel=0.2)


@pytest.mark.parametrize("shape", [0.7, 2.0])
def test_old_fleets_fail_at_the_mean_rate_whatever_the_law(shape):
    law = Lifetime.weibull(1.0, shape)
    report = run(
        job(source=NodeLives(lifetimes=law)), ONE, Recovery("spares", repair=HOUR), spares=8
    )
    assert report.importance.loc["node", "rate"] == pytest.approx(NODES * RATE, rel=0.02)


def test_a_new_fleet_of_infant_mortality_is_worse_at_first():
    law, recovery = Lifetime.weibull(1.0, 0.6), Recovery("spares", repair=HOUR)
    options = {"years": 10, "horizon": 10 * DAY, "replications": 300}

    def fleet(ages):
        lives = NodeLives(lifetimes=law, ages=ages)
        return run(job(source=lives), ONE, recovery, spares=8, **options)

    new, old = fleet("new"), fleet("stationary")
    assert new.brackets["productive"][1] < old.brackets["productive"][0]
    aged = fleet(np.full(NODES + 8, 1000 * DAY))
    assert aged.mean > old.mean


def test_only_the_mean_repair_counts_for_cold_spares():
    law = Lifetime.lognormal(1.0, 1.4)
    report = run(
        job(source=NodeLives(repairs=law)),
        ONE,
        Recovery("spares", repair=DAY),
        spares=2,
        years=100,
    )
    assert within(report, "waiting", loss_probability(3, NODES * RATE * DAY))


def test_few_crews_are_a_queue():
    report = run(job(), ONE, Recovery("spares", repair=DAY / 2), spares=3, crews=1)
    load = NODES * RATE * DAY / 2
    weights = load ** np.arange(5)  # M/M/1 with room for four
    assert within(report, "waiting", weights[-1] / weights.sum())


def test_planned_stops_take_their_share():
    report = run(
        job(), ONE, Recovery("spares", repair=HOUR), spares=5, planned=0.02, horizon=28 * DAY
    )
    assert report.buckets["planned"] == pytest.approx(0.02, abs=1e-9)


@pytest.mark.parametrize("level", LEVELS)
def test_every_horizon_is_closed(level):
    report = run(
        job(SOFTWARE, RACK, SLOW), TWO, Recovery("spares", repair=DAY), 3, level=level, planned=0.01
    )
    assert sum(report.buckets.values()) == pytest.approx(1.0, abs=1e-9)
    assert list(report.buckets) == list(BUCKETS)
    assert report.mtti["link"] == np.inf


def test_recorded_failures_are_replayed_to_the_second():
    records = pd.DataFrame({"node": [3, 9, 3], "start": [HOUR, 30 * HOUR, 90 * HOUR]})
    records["end"] = records["start"] + [1800.0, 600.0, 1800.0]
    report = run(
        job(rate=0.0, source=recorded(records, span=5 * DAY)),
        Checkpointing(levels=(STORAGE,), interval=970.0),
        Recovery("restart", repair=DAY),
        horizon=5 * DAY,
        replications=2,
        years=10 / 365,
    )
    assert report.buckets["waiting"] * 5 * DAY == pytest.approx(4200.0, abs=1e-6)
    assert report.buckets["restart"] * 5 * DAY == pytest.approx(3 * 200.0, abs=1e-6)
    # Segments of 1000 s: 600 s of the first hour are done in vain, and so on.
    clock, lost = 0.0, 0.0
    for start, end in zip(records["start"], records["end"], strict=True):
        lost += (start - clock) % 1000.0
        clock = end + 200.0
    assert report.buckets["lost"] * 5 * DAY == pytest.approx(lost, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"end": [1.0, 60.0]}, "an end not before the start, got row 'a'"),
        ({"start": [5.0, -1.0]}, "starts >= 0, got row 'b'"),
        ({"node": [0, 99]}, "nodes in 0 … 63, got row 'b'"),
        ({"start": [5.0, 6.0]}, "do not overlap, got row 'b'"),
        ({"start": [5.0, np.nan]}, "numbers, got row 'b'"),
    ],
)
def test_bad_records_are_refused_by_row(change, told):
    good = {"node": [1, 1], "start": [5.0, 20.0], "end": [9.0, 60.0]}
    records = pd.DataFrame(good | change, index=["a", "b"])
    with pytest.raises(ValueError, match=told):
        run(job(source=recorded(records)), ONE, Recovery("restart", repair=DAY))


def test_workers_do_not_change_the_digits():
    model, recovery = job(SOFTWARE, RACK), Recovery("spares", repair=DAY)
    for level in LEVELS:
        here = run(model, TWO, recovery, 2, level=level)
        with ThreadPoolExecutor(3) as pool:
            there = run(model, TWO, recovery, 2, level=level, executor=pool)
        assert here.buckets == there.buckets
        np.testing.assert_array_equal(here.samples, there.samples)


@pytest.mark.parametrize("level", LEVELS)
def test_intervals_cover_the_truth(level):
    model, recovery = job(), Recovery("spares", repair=DAY, restart=100.0)
    truth = (1 - loss_probability(4, NODES * RATE * DAY)) * job_rows(
        model, ONE, recovery
    ).rollback().share
    options = {"level": level, "years": 5, "replications": 10}
    covered = [
        (found := run(model, ONE, recovery, 3, seed, **options).brackets["productive"])[0]
        <= truth
        <= found[1]
        for seed in range(pace(100, 300))
    ]
    assert np.mean(covered) >= 0.93


def test_spread_and_percentiles_are_those_of_the_formula():
    model, recovery = job(), Recovery("spares", repair=HOUR, restart=100.0)
    report = run(model, ONE, recovery, spares=9, years=400)
    exact = job_rows(model, ONE, recovery).rollback()
    assert report.sd == pytest.approx(exact.std(report.horizon), rel=0.05)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"level": "count", "source": NodeLives()}, "level must be 'identity' with a source of No"),
        ({"level": "identity", "crews": 2, "source": NodeLives()}, "crews must be left out"),
        ({"source": recorded(pd.DataFrame(columns=["node", "start", "end"])), "spares": 1}, "64"),
        ({"level": "identity", "crews": 2}, "crews must be left out"),
        ({"years": 0.1}, r"years must be >= 1\.6\d+ for 20 horizons, got 0\.1"),
        ({"source": NodeLives(ages=np.ones(3))}, "ages must be one number or 64 of them"),
    ],
)
def test_what_cannot_be_done_is_refused(options, told):
    source = options.get("source")
    given = {name: value for name, value in options.items() if name != "source"}
    with pytest.raises(ValueError, match=told):
        run(job(source=source), ONE, Recovery("spares", repair=DAY), **given)


def test_slow_checkpoints_and_endless_patterns_are_refused():
    late = Checkpointing(
        levels=(CheckpointLevel(name="s", cost=1.0, restart=1.0, delay=500.0),), interval=100.0
    )
    with pytest.raises(ValueError, match="checkpointing must have delays <= "):
        run(job(), late, Recovery("restart", repair=DAY))
    endless = Checkpointing(levels=(MEMORY, STORAGE), interval=1e-3, every=(2 * 10**6,))
    with pytest.raises(ValueError, match="checkpointing must repeat its levels after <= 1000000"):
        run(job(), endless, Recovery("restart", repair=DAY))
