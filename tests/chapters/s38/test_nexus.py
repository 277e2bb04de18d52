"""Batched inference on few GPUs: against all partitions, and executed request by request."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s38.nexus import _served, _Session, nexus


def partitions(items):
    """All divisions into sets."""
    if not items:
        yield []
        return
    first, *rest = items
    for division in partitions(rest):
        yield [[first], *division]
        for place in range(len(division)):
            yield [*division[:place], [first, *division[place]], *division[place + 1 :]]


def sessions(seed, count):
    draw = np.random.default_rng(seed)
    latencies = {
        i: (draw.uniform(2, 10) + draw.uniform(0.5, 3) * np.arange(1, 33)) / 1e3
        for i in range(count)
    }
    objectives = {i: float(draw.uniform(0.05, 0.3)) for i in range(count)}
    return latencies, objectives, {i: float(draw.uniform(1, 100)) for i in range(count)}


def answered(load):
    """Worst latency of every session if requests come evenly and the GPU serves batches in turn."""
    late = {}
    batches = {s.name: s.batches(load.duty) for s in load.sessions}
    waiting = {s.name: list(np.arange(400) / s.rate) for s in load.sessions}
    for cycle in range(1, 60):
        # each session has its own phase: its batch begins when its cycle ends
        for s in load.sessions:
            begin = cycle * load.duty
            ready = [t for t in waiting[s.name] if t < begin - 1e-12][: batches[s.name]]
            waiting[s.name] = waiting[s.name][len(ready) :]
            took = s.latency[batches[s.name] - 1]
            late[s.name] = max([late.get(s.name, 0.0), *(begin + took - t for t in ready)])
    return late


def test_a_smaller_batch_is_taken_where_it_serves_more():
    """Batches of 4 need twice as long as two of 2: 100 requests/s need 10 ms each at best."""
    latencies = {"s": [0.018, 0.02, 0.05, 0.08]}
    plan = nexus(latencies, {"s": 0.2}, {"s": 250.0})
    assert plan.gpus == plan.optimum == 3
    assert plan.bound == pytest.approx(2.5)
    assert set(plan.to_frame()["batch"]) == {2}
    rest = plan.loads[-1]
    assert rest.busy == pytest.approx(0.5)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 5))
def test_the_fewest_gpus_are_those_of_the_best_partition(seed, count):
    latencies, objectives, rates = sessions(seed, count)
    plan = nexus(latencies, objectives, rates)
    alone = [load for load in plan.loads if load.busy > 1 - 1e-9]
    left = {
        i: rates[i] - sum(s.rate for load in alone for s in load.sessions if s.name == i)
        for i in rates
    }
    rests = [
        _Session(i, latencies[i][latencies[i] < objectives[i]], objectives[i], rate)
        for i, rate in left.items()
        if rate > 1e-9
    ]
    least = min(len(d) for d in partitions(rests) if all(_served(part) for part in d))
    assert plan.optimum == len(alone) + least
    assert plan.bound <= plan.optimum + 1e-9
    assert plan.optimum <= plan.gpus


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 6))
def test_every_request_is_answered_in_time_and_every_rate_is_served(seed, count):
    latencies, objectives, rates = sessions(seed, count)
    plan = nexus(latencies, objectives, rates)
    served = dict.fromkeys(rates, 0.0)
    for load in plan.loads:
        assert load.busy <= 1 + 1e-9
        for name, late in answered(load).items():
            assert late <= objectives[name] * (1 + 1e-9)
        for s in load.sessions:
            assert s.batches(load.duty) / load.duty >= s.rate * (1 - 1e-6)
            served[s.name] += s.rate
    assert served == pytest.approx(rates)


def test_a_set_is_served_where_some_duty_cycle_serves_it():
    rng = np.random.default_rng(0)
    for seed in range(60):
        latencies, objectives, rates = sessions(seed, 2)
        pair = [_Session(i, latencies[i], objectives[i], 3 * rates[i]) for i in (0, 1)]
        found = False
        for duty in rng.uniform(0.001, 0.3, 4000):
            batch = [s.batches(duty) for s in pair]
            if max(batch) <= 32:
                spent = [s.latency[b - 1] for s, b in zip(pair, batch, strict=True)]
                found |= sum(spent) <= duty and all(
                    duty + t <= s.objective for s, t in zip(pair, spent, strict=True)
                )
        assert _served(pair) >= found
        if not found:
            assert not _served([s._replace(objective=0.97 * s.objective) for s in pair])


def test_merged_sessions_keep_the_shorter_cycle_and_whole_gpus_run_the_largest_batch():
    latency = {"A": np.interp(range(1, 17), [4, 8, 16], [0.05, 0.075, 0.1])}
    plan = nexus(latency, {"A": 0.2}, {"A": 2 * 160 + 64})
    table = plan.to_frame()
    assert table["batch"].tolist() == [16, 16, 8]
    assert table["worst"].tolist() == pytest.approx([0.2, 0.2, 0.2])
    tight = nexus(latency, {"A": 0.16}, {"A": 300.0}).to_frame()
    assert tight["batch"][0] == 9  # 2 x 78.1 ms; ten would take 2 x 81.25


def test_an_objective_below_two_batches_is_refused():
    with pytest.raises(
        ValueError, match=r"objectives must be at least twice the latency of one request, 0\.1 s"
    ):
        nexus({"a": [0.05, 0.06]}, {"a": 0.09}, {"a": 1.0})
