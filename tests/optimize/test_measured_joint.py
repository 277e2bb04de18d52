import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.optimize import joint_optimum, published_candidate
from relparallel.optimize.measured_joint import Candidate
from relparallel.published import facts
from relparallel.training import (
    Job,
    break_even_repair,
    effective_training_time_ratio,
    elastic_throughput,
    shortage_probability,
)

DAY = 86400.0
COSTS = {"write_bandwidth": 57.5e9, "restart": 300.0, "pause": 30.0, "node_rate": 3.79e-3 / DAY}
APART = ("tensor", "context", "pipeline", "data")


@st.composite
def instances(draw):
    nodes = draw(st.sampled_from([8, 12, 24, 48]))
    divisors = [g for g in range(1, nodes + 1) if nodes % g == 0]
    rates = {"node_rate": draw(st.floats(1e-9, 2e-6)), "job_rate": draw(st.floats(1e-9, 1e-4))}
    costs = {"restart": draw(st.floats(0, 900)), "pause": draw(st.floats(0, 120))}
    return [
        Candidate(
            name=str(number),
            throughput=draw(st.floats(0.8, 1.2)),
            job=Job(
                nodes=nodes, nodes_per_replica=draw(st.sampled_from(divisors)),
                checkpoint=draw(st.floats(1, 200)), droppable=draw(st.booleans()), **rates, **costs,
            ),
        )
        for number in range(draw(st.integers(1, 4)))
    ], draw(st.floats(60.0, 20 * DAY))  # fmt: skip


def brute_force(candidates, repair):
    """Best goodput over all strategies, policies, whole units of spares and a fine grid of intervals."""
    best = 0.0
    for candidate in candidates:
        job = candidate.job
        # Intervals from 1/30 to 30 times Young's, 0.7 % apart.
        grid = np.exp(np.linspace(-3.4, 3.4, 1001))
        for held in range(0, job.nodes, job.nodes_per_replica):
            active = job.nodes - held
            mtbf = 1 / (active * job.node_rate + job.job_rate)
            ratio = effective_training_time_ratio(
                mtbf, np.sqrt(2 * job.checkpoint * mtbf) * grid, job.checkpoint, job.restart
            ).mean.max()
            short = shortage_probability(active, held, job.node_rate, repair)
            best = max(best, candidate.throughput * active / job.nodes * (1 - short) * ratio)
        if job.droppable:
            mtbf = 1 / job.job_rate
            ratio = effective_training_time_ratio(
                mtbf, np.sqrt(2 * job.checkpoint * mtbf) * grid, job.checkpoint, job.restart
            ).mean.max()
            kept = elastic_throughput(job.nodes, job.nodes_per_replica, job.node_rate, repair, job.pause)
            best = max(best, candidate.throughput * kept * ratio)
    return best


@settings(max_examples=150)
@given(instance=instances())
def test_the_optimum_equals_brute_force(instance):
    candidates, repair = instance
    found, counted = joint_optimum(candidates, repair).best.goodput, brute_force(candidates, repair)
    assert counted <= found * (1 + 1e-12)  # the grid never beats the closed form
    assert counted >= found * (1 - 1e-4)  # and comes close to it


@given(instance=instances())
def test_plans_are_sorted_and_their_bounds_prove_them(instance):
    candidates, repair = instance
    optimum = joint_optimum(candidates, repair)
    goods = [plan.goodput for plan in optimum.plans]
    assert goods == sorted(goods, reverse=True)
    assert all(plan.found.ceiling <= plan.share for plan in optimum.plans)
    assert all(plan.policy != "elastic" or plan.candidate.job.droppable for plan in optimum.plans)
    assert 0 <= optimum.price_of_speed < 1


@given(instance=instances())
def test_under_restart_alone_the_fastest_strategy_is_the_best(instance):
    candidates, repair = instance
    cost = candidates[0].job.checkpoint
    same = [
        dataclasses.replace(c, job=dataclasses.replace(c.job, checkpoint=cost)) for c in candidates
    ]  # one model: one checkpoint
    optimum = joint_optimum(same, repair, policies=("restart",))
    assert optimum.price_of_speed == pytest.approx(0.0, abs=1e-12)


def candidates_of(ids, **options):
    rows = facts("parallelism-cost")
    return [published_candidate(rows[i], vocabulary=250880, **COSTS, **options) for i in ids]


def test_published_strategies_change_places_at_the_closed_break_even():
    # BLOOM tuning, h = 14336, 72 layers, 384 GPUs: 110.42 s on 12 stages against 111.71 s on 6 stages.
    pair = candidates_of(("BLOOM-0069", "BLOOM-0052"), zero_stage=0, order=APART)
    fast, small = pair
    assert (fast.job.nodes_per_replica, small.job.nodes_per_replica) == (6, 3)
    speedup = fast.throughput / small.throughput
    assert speedup == pytest.approx(111.71 / 110.42)
    repair = break_even_repair(speedup, 6, 3, COSTS["node_rate"])
    assert repair / DAY == pytest.approx(1.025, abs=5e-3)
    names = [joint_optimum(pair, repair * f, ("elastic",)).best.candidate.name for f in (0.99, 1.01)]
    assert names == [fast.name, small.name]


def test_a_published_row_with_sharded_state_is_not_offered_elastic_recovery():
    optimum = joint_optimum(candidates_of(("BLOOM-0069",)), DAY)
    assert {plan.policy for plan in optimum.plans} == {"restart", "spares"}
    with pytest.raises(ValueError, match=r"policies .* ZeRO stage 1"):
        joint_optimum(candidates_of(("BLOOM-0069",)), DAY, policies=("elastic",))


@pytest.mark.parametrize("number", range(1, 11))
def test_throughput_and_units_of_the_published_table(number):
    row = facts("parallelism-cost")[f"PTDP-{number:04d}"]
    candidate = published_candidate(row, **COSTS)
    inputs = row.inputs
    tokens = inputs["gbs"] * inputs["s"]
    derived = facts("parallelism-cost")[f"PTDP-T-{number:04d}"].value
    assert tokens / candidate.throughput == pytest.approx(derived, rel=0.5 / row.value)
    assert candidate.job.nodes * 8 == inputs["gpus"]
    assert candidate.job.nodes_per_replica == max(inputs["tp"] * inputs["pp"] // 8, 1)


def test_the_frame_has_a_row_for_each_plan():
    optimum = joint_optimum(candidates_of(("BLOOM-0069", "BLOOM-0052"), zero_stage=0), DAY)
    frame = optimum.to_frame()
    assert len(frame) == len(optimum.plans) == 6
    assert frame["goodput"].iloc[0] == optimum.best.goodput


CANDIDATE = Candidate(
    name="a", throughput=1.0,
    job=Job(nodes=8, nodes_per_replica=2, node_rate=1e-8, checkpoint=1.0, restart=1.0, pause=1.0),
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"candidates": []}, "candidates"),
        ({"candidates": "abc"}, "candidates"),
        ({"candidates": [3]}, "candidates"),
        ({"candidates": None}, "candidates"),
        ({"repair": -1.0}, "repair"),
        ({"repair": [1.0, 2.0]}, "repair"),
        ({"policies": ()}, "policies"),
        ({"policies": "restart"}, "policies"),
        ({"policies": ("hope",)}, "policies"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises((ValueError, TypeError), match=named):
        joint_optimum(**{"candidates": [CANDIDATE], "repair": DAY, **arguments})


def test_candidates_share_one_budget():
    other = dataclasses.replace(CANDIDATE, job=dataclasses.replace(CANDIDATE.job, nodes=16))
    with pytest.raises(ValueError, match="candidates"):
        joint_optimum([CANDIDATE, other], DAY)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("fact", 3), ("node_rate", -1.0), ("job_rate", None), ("write_bandwidth", 0.0), ("restart", -1.0),
        ("pause", "x"), ("vocabulary", 0), ("shard", 7), ("zero_stage", 4), ("order", "data"),
    ],
)  # fmt: skip
def test_bad_published_candidates_are_named(name, bad):
    good = {"fact": facts("parallelism-cost")["PTDP-0010"], **COSTS}
    with pytest.raises((ValueError, TypeError), match=name):
        published_candidate(**{**good, name: bad})


def test_a_row_without_degrees_is_refused():
    with pytest.raises(ValueError, match="fact"):
        published_candidate(facts("training-reliability")["L3-001"], **COSTS)


@pytest.mark.parametrize(
    ("name", "bad"), [("name", 3), ("throughput", 0.0), ("throughput", [1.0]), ("job", None)]
)
def test_a_candidate_checks_its_fields(name, bad):
    with pytest.raises((ValueError, TypeError), match=name):
        Candidate(**{"name": "a", "throughput": 1.0, "job": CANDIDATE.job, name: bad})
