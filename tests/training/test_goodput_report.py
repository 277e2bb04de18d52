"""Goodput in closed form against simulation, older closed forms, brute-force laws and differences."""

import time
from dataclasses import replace
from math import exp, factorial

import numpy as np
import pytest
from scipy.stats import binom

from relparallel import training
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    BUCKETS,
    RECOVERY_POLICIES,
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    Recovery,
    failure_model,
    goodput,
)
from relparallel.training._missing import able_to_fail, missing_law

DAY = 86400.0
STORAGE = Checkpointing(levels=(CheckpointLevel(name="storage", cost=20.0, restart=240.0),))
MEMORY = CheckpointLevel(name="memory", cost=1.0, restart=30.0, survives={"rack": 0.0, "switch": 0.9})
LEVELS = Checkpointing(levels=(MEMORY, CheckpointLevel(name="storage", cost=60.0, restart=600.0)))
ALONE = (
    ComponentClass(name="GPU", level="gpu", rate=3e-4 / DAY, detection=30.0),
    ComponentClass(name="host", level="node", rate=1e-3 / DAY),
    ComponentClass(name="software", level="job", rate=0.5 / DAY),
    ComponentClass(name="corruption", level="gpu", rate=1e-5 / DAY, effect="corrupt", detection=600.0),
    ComponentClass(
        name="slow NIC", level="node", rate=3e-4 / DAY, effect="degrade", slowdown=1.2, repair=3600.0
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
    waits = policy in ("restart", "spares", "hot_spares")
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


def test_several_sizes_of_failures_against_simulation_within_what_the_notes_say():
    for policy, allowed in (("elastic", 3e-4), ("regroup", 3e-4), ("hot_spares", 2e-3), ("spares", 6e-3)):
        spares = 4 if "spares" in policy else 0
        report = goodput(model(EVERY), 5.0, STORAGE, way(policy), spares)
        made = training.simulate(
            model(EVERY), 5.0, STORAGE, way(policy), spares, years=300, rng=np.random.default_rng(3)
        )
        error = np.sqrt(made.variance_rate / (300 * 365 * DAY))
        assert abs(report.mean - made.mean) < 3.5 * error + allowed, policy


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
    expected = training.elastic_throughput(512, 16, 3.79e-3 / DAY, DAY, 30.0)
    lost = 512 * 3.79e-3 / DAY * 30.0
    assert report.mean == pytest.approx(expected, abs=lost**2)
    assert report.interval == np.inf
    assert report.buckets["checkpoint"] == report.buckets["lost"] == 0


@pytest.mark.parametrize("policy", RECOVERY_POLICIES)
@pytest.mark.parametrize("method", ["closed", "markov"])
def test_time_accounting_is_closed(policy, method):
    micro = {"micro_batches": 8, "batch": "keep"} if policy in ("elastic", "regroup") else {}
    for planned in (0.0, 0.03):
        report = goodput(model(EVERY), 5.0, LEVELS, way(policy, **micro), 3, planned=planned, method=method)
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
        goodput(model(), 5.0, STORAGE, way("spares"), 3, method="markov", crews=c).mean for c in (1, 2, 99)
    ]
    assert (
        crews[0] < crews[1] < crews[2] == pytest.approx(goodput(model(), 5.0, STORAGE, way("spares"), 3).mean)
    )


@pytest.mark.parametrize("policy", ["spares", "hot_spares", "elastic", "regroup"])
def test_elasticities_are_the_slopes_of_the_whole(policy):
    spares = 4 if "spares" in policy else 0
    base = goodput(model(EVERY), 5.0, LEVELS, way(policy), spares)
    every = training.rollback(LEVELS, training._rows.causes_of(model(EVERY), way(policy))).every
    fixed = replace(LEVELS, interval=base.interval, every=every)
    for place, entry in enumerate(EVERY):
        ends = []
        for step in (1e-3, -1e-3):
            moved = replace(entry, rate=entry.rate * exp(step))
            changed = model((*EVERY[:place], moved, *EVERY[place + 1 :]))
            ends.append(goodput(changed, 5.0, fixed, way(policy), spares).mean)
        slope = np.log(ends[0] / ends[1]) / 2e-3
        assert base.importance.loc[entry.name, "elasticity"] == pytest.approx(slope, rel=2e-3, abs=2e-8)
    assert base.importance["share"].sum() == pytest.approx(1)
    lost = base.importance["birnbaum"] * base.importance["rate"]
    assert lost.to_numpy() == pytest.approx(-base.mean * base.importance["elasticity"].to_numpy())


def test_law_of_missing_nodes_where_all_parts_can_always_fail():
    down = np.arange(60)
    law = missing_law({1: 2.0, 4: 0.7}, np.ones(60))
    poisson = {n: [exp(-x) * x**k / factorial(k) for k in range(60)] for n, x in ((1, 2.0), (4, 0.7))}
    brute = np.zeros(60)
    for single in range(60):
        for four in range((59 - single) // 4 + 1):
            brute[single + 4 * four] += poisson[1][single] * poisson[4][four]
    np.testing.assert_allclose(law, brute / brute.sum(), rtol=1e-12)
    hot = able_to_fail(down, 50, 9, True, False)
    np.testing.assert_allclose(missing_law({1: 50 * 0.04}, hot), binom(59, 0.04 / 1.04).pmf(down), rtol=1e-11)


def test_a_rack_counts_with_everything_in_it():
    rack = (ComponentClass(name="rack", level="rack", rate=1e-3 / DAY),)
    inside = model(rack).domains[0]
    assert (inside.nodes, inside.replicas) == (4, 4)
    order = ("tensor", "context", "pipeline", "data")
    packed = FailureModel(classes=rack, cluster=HALL, placement=Placement(strategy=SHAPE, order=order))
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


def test_a_hundred_thousand_gpus_with_every_domain_take_fifty_milliseconds():
    hall = Cluster(nodes=16384, nodes_per_switch=4, nodes_per_rack=8)
    large = failure_model(
        hall, Strategy(tensor=8, pipeline=16, data=1024, zero_stage=1, shard=64), rates=EVERY
    )
    for policy in RECOVERY_POLICIES:
        spent = []
        for _ in range(6):
            start = time.process_time()
            goodput(large, 5.0, STORAGE, way(policy), 64)
            spent.append(time.process_time() - start)
        assert min(spent) < 0.05, policy


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
    given = {"model": model(), "step_time": 5.0, "checkpointing": STORAGE, "recovery": way("spares")}
    with pytest.raises(ValueError, match=name):
        goodput(**given | changed)
