"""Closed-form goodput against simulation, older closed forms, brute-force laws and differences."""

import time
from dataclasses import replace
from math import exp, factorial

import numpy as np
import pytest
from scipy.stats import binom

from chapters import s43
from relparallel import training
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    Recovery,
    failure_model,
    goodput,
)
from relparallel.training._job import job_rows
from relparallel.training.down_nodes import able_to_fail, cold_distribution, down_distribution
from relparallel.training.recovery_policies import POLICIES
from relparallel.training.report import BUCKETS

DAY = 86400.0
STORAGE = Checkpointing(levels=(CheckpointLevel(name="storage", cost=20.0, restart=240.0),))
MEMORY = CheckpointLevel(
    name="memory", cost=1.0, restart=30.0, survives={"rack": 0.0, "switch": 0.9}
)
LEVELS = Checkpointing(levels=(MEMORY, CheckpointLevel(name="storage", cost=60.0, restart=600.0)))
ALONE = (
    ComponentClass(name="GPU", level="gpu", rate=3e-4 / DAY, detection=30.0),
    ComponentClass(name="host", level="node", rate=1e-3 / DAY),
    ComponentClass(name="software", level="job", rate=0.5 / DAY),
    ComponentClass(
        name="corruption", level="gpu", rate=1e-5 / DAY, effect="corrupt", detection=600.0
    ),
    ComponentClass(
        name="slow NIC",
        level="node",
        rate=3e-4 / DAY,
        effect="degrade",
        slowdown=1.2,
        repair=3600.0,
    ),
)
EVERY = (
    *ALONE,
    ComponentClass(name="ToR", level="switch", rate=2e-4 / DAY, repair=7200.0),
    ComponentClass(name="rack", level="rack", rate=3e-4 / DAY),
)
HALL = Cluster(nodes=512, nodes_per_switch=2, nodes_per_rack=4)
SHAPE = Strategy(tensor=8, pipeline=16, data=32)


def way(policy, **changed):
    waits = POLICIES[policy].waits
    return Recovery(policy, repair=DAY, restart=60.0, pause=0.0 if waits else 30.0, **changed)


def model(classes=ALONE):
    return failure_model(HALL, SHAPE, rates=classes)


@pytest.mark.parametrize("checkpointing", [STORAGE, LEVELS], ids=["one level", "two levels"])
@pytest.mark.parametrize("policy", ["spares", "hot_spares", "elastic", "regroup"])
def test_failures_of_single_nodes_against_simulation(policy, checkpointing):
    spares = 4 if "spares" in policy else 0
    report = goodput(model(), 5.0, checkpointing, way(policy), spares)
    made = training.simulate(
        model(), 5.0, checkpointing, way(policy), spares, years=300, rng=np.random.default_rng(7)
    )
    error = np.sqrt(made.variance_rate / (300 * 365 * DAY))
    assert abs(report.mean - made.mean) < 3.5 * error + 2e-5
    for name in BUCKETS:
        assert report.buckets[name] == pytest.approx(made.buckets[name], abs=4 * error + 1e-4), name
    assert report.sd == pytest.approx(np.sqrt(made.variance_rate / report.horizon), rel=0.12)


@pytest.mark.parametrize("policy", ["spares", "hot_spares", "regroup"])
def test_percentiles_without_simulation(policy):
    spares = 14 if "spares" in policy else 0
    report = goodput(model(), 5.0, STORAGE, way(policy), spares)
    rate = report.importance["rate"][report.importance["interrupts"]].sum()
    assert rate * (300 + report.interval / 2) < 0.5 or report.interval == np.inf
    made = training.simulate(
        model(), 5.0, STORAGE, way(policy), spares, years=600, rng=np.random.default_rng(5)
    )
    np.testing.assert_allclose(report.percentiles(), made.percentiles(), atol=1e-3)


@pytest.mark.parametrize("levels", [1, 2])
def test_percentiles_of_thirty_failures_without_simulation(levels):
    software = ComponentClass(name="software", level="job", rate=10 / DAY)
    rack = ComponentClass(name="rack", level="rack", rate=1e-2 / DAY, repair=1.0)
    near = CheckpointLevel(name="near", cost=100.0, restart=700.0, survives={"rack": 0.0})
    far = CheckpointLevel(name="far", cost=300.0, restart=1500.0)
    plan = Checkpointing(levels=(near, far)[-levels:], interval=2600.0, every=(2,) * (levels - 1))
    parts = (model((software, rack)), 5.0, plan, Recovery("spares", repair=1.0), 40)
    report = goodput(*parts, horizon=2.7 * DAY)
    rate = report.importance["rate"].sum()
    assert rate * report.horizon == pytest.approx(30, rel=0.1)
    assert rate * (plan.levels[0].restart + 1300) < 0.5
    made = training.simulate(*parts, years=900, rng=np.random.default_rng(6), horizon=2.7 * DAY)
    np.testing.assert_allclose(report.percentiles(), made.percentiles(), atol=1e-3)


@pytest.mark.parametrize(
    ("policy", "spares"),
    [
        ("spares", 0),
        ("spares", 2),
        ("spares", 4),
        ("spares", 8),
        ("hot_spares", 4),
        ("elastic", 0),
        ("regroup", 0),
    ],
)
def test_several_sizes_of_failures_against_simulation(policy, spares):
    report = goodput(model(EVERY), 5.0, STORAGE, way(policy), spares)
    made = training.simulate(
        model(EVERY), 5.0, STORAGE, way(policy), spares, years=300, rng=np.random.default_rng(3)
    )
    assert abs(report.mean - made.mean) < 3 * np.sqrt(made.variance_rate / (300 * 365 * DAY))


@pytest.mark.parametrize("level", ["count", "identity"])
@pytest.mark.parametrize(("policy", "spares"), [("restart", 0), ("hot_spares", 1)])
def test_long_waits_with_every_class_against_simulation(policy, spares, level):
    # What can fail while the job waits decides how long it waits, and how many parts are slow
    # afterwards.
    classes = tuple(
        replace(part, rate=5 * part.rate, repair=DAY if part.effect == "degrade" else part.repair)
        for part in EVERY
        if part.name not in (("ToR", "rack") if policy == "restart" else ())
    )
    cluster = Cluster(nodes=64, nodes_per_switch=2, nodes_per_rack=4)
    built = failure_model(cluster, Strategy(tensor=8, pipeline=4, data=16), rates=classes)
    report = goodput(built, 5.0, STORAGE, way(policy), spares)
    made = training.simulate(
        built,
        5.0,
        STORAGE,
        way(policy),
        spares,
        years=200,
        rng=np.random.default_rng(4),
        level=level,
    )
    error = np.sqrt(made.variance_rate / (200 * 365 * DAY))
    assert report.buckets["waiting"] > 0.25
    for name in ("productive", "waiting", "degraded"):
        assert abs(report.buckets[name] - made.buckets[name]) < 3.5 * error, name


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((600.0, 2.0, 0.01), (600.0, 1.05, 0.01)),
        ((600.0, 2.0, 0.01), (7 * DAY, 1.05, 0.01)),
        ((600.0, 2.0, 0.05), (7 * DAY, 1.05, 0.05)),
        ((7 * DAY, 1.5, 0.02), (600.0, 1.1, 0.02)),
        ((3600.0, 1.5, 0.02), (0.001, 1.1, 1e-9)),
    ],
)
def test_slow_parts_of_different_repairs_spread_the_share_each_by_its_own(first, second):
    """Two independent M/M/inf queues of slow parts: autocovariance of their speeds, integrated."""
    parts, variance = [], 0.0
    for name, (repair, slowdown, load) in (("A", first), ("B", second)):
        rate = load / repair / 512
        parts.append(
            ComponentClass(
                name=name,
                level="gpu",
                rate=rate,
                effect="degrade",
                slowdown=slowdown,
                repair=repair,
            )
        )
        none, drop = exp(-load), 1 - 1 / slowdown
        s = np.geomspace(1e-9, 60, 4000)  # time in repairs; P(none at 0 and s) = e^(-u (2 - e^-s))
        joint = np.exp(-load * (2 - np.exp(-s))) - none**2
        variance += 2 * drop**2 * repair * np.trapezoid(joint, s) / (1 - (1 - none) * drop) ** 2
    plan = Checkpointing(
        levels=(CheckpointLevel(name="free", cost=0.0, restart=0.0),), interval=DAY
    )
    job = failure_model(Cluster(nodes=64), Strategy(tensor=8, data=64), rates=tuple(parts))
    found = goodput(job, 5.0, plan, Recovery("spares", repair=DAY), 8, horizon=30 * DAY)
    assert found.sd / found.mean == pytest.approx(np.sqrt(variance / (30 * DAY)), rel=0.05)


def test_a_slow_job_that_never_goes_back_writes_fewer_checkpoints():
    slow = ComponentClass(
        name="NIC", level="node", rate=1e-3 / DAY, effect="degrade", slowdown=2.0, repair=DAY
    )
    plan = Checkpointing(levels=STORAGE.levels, interval=180.0)
    report = goodput(model((slow,)), 5.0, plan, way("elastic"))
    fast = exp(-1e-3 * 512)
    kept = fast + (1 - fast) / 2
    assert report.mean == pytest.approx(180 / (180 / kept + 20), rel=1e-12)
    rng = np.random.default_rng(1)
    made = training.simulate(model((slow,)), 5.0, plan, way("elastic"), years=20, rng=rng)
    assert abs(made.mean - report.mean) < 3.5 * np.sqrt(made.variance_rate / (20 * 365 * DAY))
    assert report.importance.loc["NIC", "elasticity"] == pytest.approx(
        -(1 - 20 / (180 / kept + 20)) * 1e-3 * 512 * fast / 2 / kept, rel=1e-6
    )


def test_a_higher_level_that_is_durable_sooner_makes_the_closed_form_too_small_by_little():
    late = replace(MEMORY, delay=100.0, survives={})
    storage = CheckpointLevel(name="storage", cost=5.0, restart=30.0)
    plan = Checkpointing(levels=(late, storage), interval=600.0, every=(2,))
    report = goodput(model(), 5.0, plan, way("spares"), 30)
    made = training.simulate(
        model(), 5.0, plan, way("spares"), 30, years=200, rng=np.random.default_rng(2)
    )
    rate = report.importance["rate"][report.importance["interrupts"]].sum()
    found = (made.mean - report.mean) / (rate * 100.0 / 2)
    assert found == pytest.approx(1.0, abs=0.2)


def test_cold_spares_with_parts_of_two_sizes_by_hand():
    # No spare, a single node and a pair: three states that wait, and the pair's repair leads back
    # at once.
    law = cold_distribution({1: 0.2, 2: 0.3}, {1: 1.0, 2: 3.0}, 0)
    np.testing.assert_allclose(law, np.array([1.0, 0.2, 0.3]) / 1.5, rtol=1e-12)
    # One spare: a pair on top of a single node waits, and either may be back first.
    flow = {  # (singles, pairs)
        ((0, 0), (1, 0)): 0.2,
        ((0, 0), (0, 1)): 0.1,
        ((1, 0), (2, 0)): 0.2,
        ((1, 0), (1, 1)): 0.1,
        ((1, 0), (0, 0)): 1.0,
        ((2, 0), (1, 0)): 2.0,
        ((0, 1), (0, 0)): 1 / 3,
        ((1, 1), (0, 1)): 1.0,
        ((1, 1), (1, 0)): 1 / 3,
    }
    states = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]
    balance = np.zeros((5, 5))
    for (start, end), rate in flow.items():
        balance[states.index(end), states.index(start)] += rate
        balance[states.index(start), states.index(start)] -= rate
    known = np.linalg.lstsq(np.vstack([balance, np.ones(5)]), np.eye(6)[-1], rcond=None)[0]
    by_down = np.bincount([a + 2 * b for a, b in states], known)
    np.testing.assert_allclose(
        cold_distribution({1: 0.2, 2: 0.3}, {1: 1.0, 2: 3.0}, 1), by_down, rtol=1e-10
    )
    assert (
        np.abs(down_distribution({1: 0.2, 2: 0.3}, np.array([1.0, 1, 0, 0])) - by_down).max() > 1e-3
    )
    for spares in (0, 3, 9):  # parts of one size: Erlang's loss law
        able = able_to_fail(np.arange(spares + 2), 64, spares, False, True)
        np.testing.assert_allclose(
            cold_distribution({1: 2.5}, {1: 7.0}, spares),
            down_distribution({1: 2.5}, able),
            rtol=1e-11,
        )
    assert cold_distribution({1: 2.5, 4: 1.0}, {1: 7.0, 4: 1.0}, 500) is None


@pytest.mark.parametrize("spares", [0, 2, 6])
def test_cold_spares_are_the_product_of_three_closed_forms(spares):
    classes = (ComponentClass(name="node", level="node", rate=3.79e-3 / DAY),)
    report = goodput(model(classes), 5.0, STORAGE, way("spares"), spares)
    rate = 512 * 3.79e-3 / DAY
    effective = training.optimal_training_time_ratio(20.0, 1 / rate, 300.0)
    short = training.shortage_probability(512, spares, 3.79e-3 / DAY, DAY)
    assert report.mean == pytest.approx(effective * (1 - short), rel=1e-10)
    assert report.interval == pytest.approx(training.checkpoint_interval(20.0, 1 / rate), rel=1e-6)


def test_elastic_job_without_failures_of_the_whole_is_its_closed_form():
    classes = (ComponentClass(name="node", level="node", rate=3.79e-3 / DAY),)
    report = goodput(model(classes), 5.0, STORAGE, way("elastic"))
    left = DAY * exp(-30.0 / DAY)  # fewer nodes are missing outside the pauses
    expected = s43.elastic_throughput(512, 16, 3.79e-3 / DAY, left, 30.0)
    lost = 512 * 3.79e-3 / DAY * 30.0
    whole = (1 + 3.79e-3) ** -16  # broken replicas begin no pause, as `elastic_throughput` has it
    assert report.mean == pytest.approx(expected * (1 + lost) / (1 + lost * whole), abs=4 * lost**2)
    assert report.interval == np.inf
    assert report.buckets["checkpoint"] == report.buckets["lost"] == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("method", ["closed", "markov"])
def test_time_accounting_is_closed(policy, method):
    micro = {"micro_batches": 8, "batch": "keep"} if policy in ("elastic", "regroup") else {}
    spares = 3 if POLICIES[policy].spares else 0
    for planned in (0.0, 0.03):
        report = goodput(
            model(EVERY), 5.0, LEVELS, way(policy, **micro), spares, planned=planned, method=method
        )
        assert abs(sum(report.buckets.values()) - 1) < 1e-12
        assert min(report.buckets.values()) >= 0
        assert report.buckets["planned"] == planned


def test_chain_and_closed_form_agree_up_to_pauses():
    for policy in ("spares", "hot_spares", "elastic", "regroup"):
        means = [
            goodput(model(), 5.0, STORAGE, way(policy), 3, method=method).mean
            for method in ("closed", "markov")
        ]
        assert means[0] == pytest.approx(means[1], abs=1e-12 if "spares" in policy else 5e-5)
    crews = [
        goodput(model(), 5.0, STORAGE, way("spares"), 3, method="markov", crews=c).mean
        for c in (1, 2, 99)
    ]
    assert (
        crews[0]
        < crews[1]
        < crews[2]
        == pytest.approx(goodput(model(), 5.0, STORAGE, way("spares"), 3).mean)
    )


@pytest.mark.parametrize("policy", ["spares", "hot_spares", "elastic", "regroup"])
def test_elasticities_are_the_slopes_of_the_whole(policy):
    spares = 4 if "spares" in policy else 0
    base = goodput(model(EVERY), 5.0, LEVELS, way(policy), spares)
    every = job_rows(model(EVERY), LEVELS, way(policy)).rollback().every
    fixed = replace(LEVELS, interval=base.interval, every=every)
    for place, entry in enumerate(EVERY):
        ends = []
        for step in (1e-3, -1e-3):
            moved = replace(entry, rate=entry.rate * exp(step))
            changed = model((*EVERY[:place], moved, *EVERY[place + 1 :]))
            ends.append(goodput(changed, 5.0, fixed, way(policy), spares).mean)
        slope = np.log(ends[0] / ends[1]) / 2e-3
        assert base.importance.loc[entry.name, "elasticity"] == pytest.approx(
            slope, rel=2e-3, abs=2e-8
        )
    assert base.importance["share"].sum() == pytest.approx(1)
    lost = base.importance["birnbaum"] * base.importance["rate"]
    assert lost.to_numpy() == pytest.approx(-base.mean * base.importance["elasticity"].to_numpy())


def test_law_of_missing_nodes_where_all_parts_can_always_fail():
    down = np.arange(60)
    law = down_distribution({1: 2.0, 4: 0.7}, np.ones(60))
    poisson = {
        n: [exp(-x) * x**k / factorial(k) for k in range(60)] for n, x in ((1, 2.0), (4, 0.7))
    }
    brute = np.zeros(60)
    for single in range(60):
        for four in range((59 - single) // 4 + 1):
            brute[single + 4 * four] += poisson[1][single] * poisson[4][four]
    np.testing.assert_allclose(law, brute / brute.sum(), rtol=1e-12)
    hot = able_to_fail(down, 50, 9, True, False)
    np.testing.assert_allclose(
        down_distribution({1: 50 * 0.04}, hot), binom(59, 0.04 / 1.04).pmf(down), rtol=1e-11
    )


def test_a_rack_counts_with_everything_in_it():
    rack = (ComponentClass(name="rack", level="rack", rate=1e-3 / DAY),)
    inside = model(rack).domains[0]
    assert (inside.nodes, inside.replicas) == (4, 4)
    order = ("tensor", "context", "pipeline", "data")
    packed = FailureModel(
        classes=rack, cluster=HALL, placement=Placement(strategy=SHAPE, order=order)
    )
    assert packed.domains[0].replicas == 1
    far = goodput(model(rack), 5.0, STORAGE, way("regroup")).mean
    assert far < 1
    lone = ComponentClass(name="node", level="node", rate=1e-3 / DAY)
    alone = goodput(model((lone,)), 5.0, LEVELS, way("spares"), 8)
    together = goodput(model(rack), 5.0, LEVELS, way("spares"), 8)
    assert alone.state_loss_rate == 0
    assert together.buckets["restart"] / together.importance["rate"].sum() > (
        alone.buckets["restart"] / alone.importance["rate"].sum()
    )


def test_state_loss_is_what_takes_all_copies_and_the_memory():
    sharded = Strategy(tensor=8, pipeline=16, data=32, zero_stage=1, shard=32)
    rates = (ComponentClass(name="rack", level="rack", rate=1e-3 / DAY),)
    lost = goodput(failure_model(HALL, sharded, rates=rates), 5.0, LEVELS, way("elastic"))
    assert lost.state_loss_rate == pytest.approx(128 * 1e-3 / DAY)
    kept = goodput(failure_model(HALL, SHAPE, rates=rates), 5.0, LEVELS, way("elastic"))
    assert kept.state_loss_rate == 0


def test_nothing_fails():
    quiet = (ComponentClass(name="node", level="node", rate=0.0),)
    report = goodput(model(quiet), 5.0, STORAGE, way("spares"), 2)
    assert (report.mean, report.sd, report.interval) == (1.0, 0.0, np.inf)
    assert report.mtti.tolist() == [np.inf]
    assert report.importance.empty
    assert "100.00 %" in report.explain()


@pytest.mark.slow
@pytest.mark.parametrize("checkpointing", [STORAGE, LEVELS], ids=["one level", "two levels"])
def test_a_hundred_thousand_gpus_with_every_domain_cost_forty_thousand_small_sums(checkpointing):
    """About fifty milliseconds; counted in sums of arrays, in turn, as machines differ by hour."""
    hall = Cluster(nodes=16384, nodes_per_switch=4, nodes_per_rack=8)
    large = failure_model(
        hall, Strategy(tensor=8, pipeline=16, data=1024, zero_stage=1, shard=64), rates=EVERY
    )
    few = np.arange(64.0)
    for policy in POLICIES:
        ratios = []
        for _ in range(6):
            times = [time.process_time()]
            for _ in range(10_000):
                np.exp(few).sum()
            times.append(time.process_time())
            goodput(large, 5.0, checkpointing, way(policy), 64 if POLICIES[policy].spares else 0)
            times.append(time.process_time())
            ratios.append((times[2] - times[1]) / (times[1] - times[0]))
        assert min(ratios) < 4, policy


@pytest.mark.parametrize("pause", [300.0, 900.0, 3600.0])
def test_long_pauses_of_an_elastic_job_against_simulation(pause):
    """A pause follows a failure, so the job computes while fewer nodes than average are missing."""
    small = failure_model(
        Cluster(nodes=128),
        Strategy(tensor=8, pipeline=16, data=8),
        rates=(ComponentClass(name="node", level="node", rate=0.0379 / DAY),),
    )
    storage = CheckpointLevel(name="storage", cost=30.0, restart=300.0)
    job = (
        small,
        5.0,
        Checkpointing(levels=(storage,), interval=1200.0),
        Recovery("elastic", DAY / 4, pause=pause),
    )
    for level, near in (("identity", 5e-4), ("count", 1.5e-3)):  # counts forget who broke last
        made = training.simulate(*job, years=300, rng=np.random.default_rng(5), level=level)
        error = np.sqrt(made.variance_rate / (300 * 365 * DAY))
        assert abs(goodput(*job).mean - made.mean) < near + 3 * error


def test_a_job_that_waits_for_repairs_takes_no_spares():
    for question in (goodput, training.simulate):
        options = (
            {"years": 1.0, "rng": np.random.default_rng(1)} if question is training.simulate else {}
        )
        with pytest.raises(ValueError, match=r"spares must be 0 with recovery 'restart'.*got 12"):
            question(model(), 5.0, STORAGE, way("restart"), 12, **options)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"planned": 1.0}, "planned"),
        ({"crews": 2}, "crews"),
        ({"method": "guess"}, "method"),
        ({"step_time": 0.0}, "step_time"),
        ({"spares": -1}, "spares"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(changed, name):
    given = {
        "model": model(),
        "step_time": 5.0,
        "checkpointing": STORAGE,
        "recovery": way("spares"),
    }
    with pytest.raises(ValueError, match=name):
        goodput(**given | changed)
