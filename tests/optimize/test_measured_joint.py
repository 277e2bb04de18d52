"""Joint choices among strategies of measured speed: against enumeration, and on published runs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from evidence import measured_runs
from pace import pace
from relparallel.hardware import Cluster
from relparallel.optimize import joint
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    Recovery,
    break_even_repair,
    checkpoint_time,
    effective_training_time_ratio,
    goodput,
    shortage_probability,
)
from relparallel.workload import Transformer

DAY = 86400.0
GPT = Transformer(layers=8, hidden=512, heads=8, vocabulary=1000, sequence=128)
RUNS = {run.id: run for run in measured_runs()}
APART = ("tensor", "context", "pipeline", "data")
WAITING = ("restart", "spares")


@st.composite
def instances(draw):
    """Strategies whose replicas are whole nodes, failures, costs and a repair time."""
    nodes = draw(st.sampled_from([8, 12, 24]))
    units = draw(
        st.lists(
            st.sampled_from([g for g in (1, 2, 3, 4, 6, 8) if nodes % g == 0]),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    rates = draw(st.floats(1e-9, 2e-6)), draw(st.floats(1e-9, 1e-4))
    cost = draw(st.floats(1, 200))
    return {
        "workload": GPT,
        "cluster": Cluster(nodes=nodes),
        "checkpoints": storage(cost),
        "measured": {
            Strategy(tensor=8, pipeline=g, data=nodes // g): draw(st.floats(0.8, 1.2))
            for g in units
        },
        "rates": tuple(
            ComponentClass(name=level, level=level, rate=rate)
            for level, rate in zip(("node", "job"), rates, strict=True)
        ),
        "repair": draw(st.floats(600.0, 20 * DAY)),
        "restart": draw(st.floats(0, 900)),
        "pause": draw(st.floats(0, 120)),
    }


def storage(cost):
    return Checkpointing(levels=(CheckpointLevel(name="storage", cost=cost, restart=0.0),))


def enumerated(instance):
    """Best goodput of the policies that wait: every unit of spares, intervals 0.7 % apart."""
    best, (node, job) = 0.0, (one.rate for one in instance["rates"])
    nodes, cost = instance["cluster"].nodes, instance["checkpoints"].levels[0].cost
    for strategy, throughput in instance["measured"].items():
        for held in range(0, nodes, strategy.pipeline):
            active = nodes - held
            mtbf = 1 / (active * node + job)
            intervals = np.sqrt(2 * cost * mtbf) * np.exp(np.linspace(-3.4, 3.4, 1001))
            kept = effective_training_time_ratio(
                mtbf, intervals, cost, instance["restart"]
            ).mean.max()
            short = shortage_probability(active, held, node, instance["repair"])
            best = max(best, throughput * active / nodes * (1 - short) * kept)
    return best


@settings(max_examples=pace(20, 60))
@given(instance=instances())
def test_the_optimum_of_waiting_policies_equals_enumeration(instance):
    found, counted = joint(**instance, policies=WAITING).goodput, enumerated(instance)
    assert counted <= found * (1 + 1e-12)  # the grid never beats the closed form
    assert counted >= found * (1 - 1e-4)  # and comes close to it


@settings(max_examples=15)
@given(instance=instances())
def test_no_number_of_spares_of_any_strategy_is_better_by_the_whole_goodput(instance):
    best = joint(**instance).goodput
    for strategy, throughput in instance["measured"].items():
        for held in range(0, instance["cluster"].nodes, strategy.pipeline):
            data = (instance["cluster"].nodes - held) // strategy.pipeline
            placed = Placement(strategy=replace(strategy, data=data))
            machine = replace(instance["cluster"], nodes=instance["cluster"].nodes - held)
            model = FailureModel(classes=instance["rates"], cluster=machine, placement=placed)
            costs = {name: instance[name] for name in ("repair", "restart", "pause")}
            report = goodput(
                model, 1.0, instance["checkpoints"], Recovery("elastic", **costs), spares=held
            )
            assert throughput * data / strategy.data * report.mean <= best * (1 + 1e-3)


@settings(max_examples=30)
@given(instance=instances())
def test_under_restart_alone_the_fastest_strategy_is_the_best(instance):
    assert joint(**instance, policies=("restart",)).price_of_speed == pytest.approx(0.0, abs=1e-12)


def asked(
    ids, order=APART, policies=("restart", "spares", "elastic"), rate=3.79e-3 / DAY, **changes
):
    """Joint optimum over published runs of one model, the sharding of the state changed."""
    run = RUNS[ids[0]]
    save = float(checkpoint_time(run.model.parameters, 57.5e9))
    node = ComponentClass(name="node", level="node", rate=rate)
    level = CheckpointLevel(name="storage", cost=save, restart=save)
    return lambda repair: joint(
        run.model,
        run.cluster,
        (node,),
        global_batch=run.global_batch,
        repair=repair,
        policies=policies,
        checkpoints=Checkpointing(levels=(level,)),
        measured={
            Placement(strategy=replace(RUNS[i].strategy, **changes), order=order): RUNS[
                i
            ].throughput
            for i in ids
        },
    )


def test_published_strategies_change_places_at_the_closed_break_even():
    # BLOOM tuning, h = 14336, 72 layers, 384 GPUs: 110.42 s on 12 stages against 111.71 s on 6
    # stages.
    pair = ("BLOOM-0069", "BLOOM-0052")
    best = asked(pair, policies=("elastic",), zero_stage=0)
    speedup = RUNS[pair[0]].throughput / RUNS[pair[1]].throughput
    assert speedup == pytest.approx(111.71 / 110.42)
    repair = break_even_repair(speedup, 6, 3, 3.79e-3 / DAY)
    assert repair / DAY == pytest.approx(1.025, abs=5e-3)
    assert [best(repair * f).strategy.pipeline for f in (0.99, 1.01)] == [12, 6]


def test_held_nodes_are_whole_replicas_in_the_layout_of_the_run():
    # In the usual order two replicas of 24 GPUs share six nodes; on nodes of their own each has
    # three.
    held = {
        order: {site.spares for site in asked(["BLOOM-0052"], order)(DAY).search.sites}
        for order in (APART, ("tensor", "context", "data", "pipeline"))
    }
    assert [sorted(some)[:3] for some in held.values()] == [[0, 3, 6], [0, 6, 12]]


def test_the_fastest_strategy_may_hold_back_replicas_too():
    plan = asked(("BLOOM-0069", "BLOOM-0052"), ("tensor", "context", "data", "pipeline"), WAITING)(
        7 * DAY
    )
    assert (plan.strategy.pipeline, plan.spares) == (6, 6)
    assert (plan.fastest.strategy.pipeline, plan.fastest.spares) == (12, 12)
    assert plan.throughput == pytest.approx(RUNS["BLOOM-0052"].throughput * 14 / 16)
    assert int(plan.counts["are measured"]) == 2


STRATEGY = Strategy(tensor=8, data=8)
GOOD = {"workload": GPT, "cluster": Cluster(nodes=8), "measured": {STRATEGY: 1.0}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"measured": [STRATEGY]}, "measured must be"),
        ({"measured": {"tp8": 1.0}}, "measured must be"),
        ({"measured": {STRATEGY: 0.0}}, "measured must be a number > 0"),
        ({"measured": {Strategy(tensor=8): 1.0}}, "gpus must be"),
        ({"cluster": [Cluster(nodes=8)] * 2}, "one cluster"),
        (
            {"measured": {STRATEGY: 1.0, Placement(strategy=STRATEGY, order=APART): 1.0}},
            "one rank order",
        ),
        ({"limits": {"schedule": "1f1b"}}, "limits must be left out"),
        ({"software": "megatron-2022"}, "options must be left out"),
        ({"spares": 8}, "spares"),
        (
            {"measured": {Strategy(tensor=8, pipeline=4, data=2): 1.0}, "spares": 3},
            "whole replicas",
        ),
    ],
)
def test_bad_measured_strategies_are_named(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        joint(**GOOD | changes)
