"""What killed processes taught the model: by hand on few failures, and one route against another."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    Recovery,
    goodput,
    simulate,
)
from relparallel.training._job import job_rows
from relparallel.training.down_nodes import NodeChain
from relparallel.training.factors import late_share, outside_pauses
from relparallel.training.failure_sources import NodeLives, Replay
from relparallel.units import YEAR

LENGTH = 1000.0  # of a replay [s]
IN_A_ROW = ("tensor", "context", "pipeline", "data")
FREE = Checkpointing(levels=(CheckpointLevel(name="s", cost=0.0, restart=0.0),), interval=1e9)
SAVED = Checkpointing(levels=(CheckpointLevel(name="s", cost=2.0, restart=5.0),), interval=48.0)


def job(replicas, size, rate=0.0, order=IN_A_ROW, more=()):
    """Replicas of so many nodes; nodes in a row belong together."""
    placement = Placement(strategy=Strategy(pipeline=size, data=replicas), order=order)
    node = ComponentClass(name="node", level="node", rate=rate)
    cluster = Cluster(nodes=replicas * size, gpus_per_node=1, nodes_per_rack=2)
    return FailureModel(classes=(node, *more), cluster=cluster, placement=placement)


def replayed(model, plan, recovery, *failures, spares=0):
    """Seconds by bucket where nodes fail at a time and are back at another."""
    nodes = model.cluster.nodes + spares
    records = pd.DataFrame(failures, columns=["node", "start", "end"])
    found = simulate(
        replace(model, source=Replay(records=records, nodes=nodes, span=LENGTH, shuffled=False)),
        1.0,
        plan,
        recovery,
        spares,
        years=2.5 * LENGTH / YEAR,
        rng=np.random.default_rng(1),
        horizon=LENGTH,
        replications=2,
    )
    return {name: share * LENGTH for name, share in found.buckets.items()}


def near(simulated, expected, extra=0.0):
    low, high = simulated.brackets["productive"]
    assert abs(simulated.mean - expected) < 1.5 * (high - low) + extra


WAITS = Recovery("elastic", 1.0, pause=1.0, timeout=20.0, meeting=0.5)


@pytest.mark.parametrize(
    ("times", "stands"),
    [
        ((100.0, 100.2), 0.2 + 21.0),  # while the others meet
        ((100.0, 100.7), 0.7 + 1.0),  # afterwards: the pause begins anew
        ((100.0, 101.2), 1.0 + 1.0),  # after the pause
        ((100.0, 100.2, 105.0), 5.0 + 21.0),  # in the time-out, which begins anew
        ((100.0, 100.7, 100.9), 0.9 + 21.0),
    ],
)
def test_a_second_failure_while_processes_meet_costs_a_time_out(times, stands):
    failures = [(node, at, 900.0) for node, at in enumerate(times)]
    found = replayed(job(8, 1), FREE, WAITS, *failures)
    assert found["detection"] + found["restart"] == pytest.approx(stands)


def test_the_whole_pause_counts_where_no_time_of_meeting_is_said():
    late = Recovery("elastic", 1.0, pause=1.0, timeout=20.0)
    found = replayed(job(8, 1), FREE, late, (0, 100.0, 900.0), (1, 100.7, 900.0))
    assert found["detection"] + found["restart"] == pytest.approx(0.7 + 21.0)
    with pytest.raises(ValueError, match="meeting must be"):
        Recovery("elastic", 1.0, pause=1.0, timeout=20.0, meeting=2.0)


@pytest.mark.parametrize(("timeout", "meeting"), [(0.0, 30.0), (600.0, 30.0), (600.0, None)])
def test_time_outs_of_four_routes_agree(timeout, meeting):
    recovery = Recovery("elastic", 3600.0, pause=60.0, timeout=timeout, meeting=meeting)
    model = job(32, 2, rate=1 / 2e5)
    closed = goodput(model, 1.0, FREE, recovery)
    chain = goodput(model, 1.0, FREE, recovery, method="markov")
    assert chain.mean == pytest.approx(closed.mean, abs=2e-4)
    for level in ("count", "identity"):
        rng = np.random.default_rng(3)
        made = simulate(model, 1.0, FREE, recovery, years=20, rng=rng, level=level)
        near(made, closed.mean, 2e-4)
        low, high = made.brackets["detection"]
        assert (
            abs(made.buckets["detection"] - closed.buckets["detection"]) < 1.5 * (high - low) + 1e-9
        )


def test_time_outs_spread_runs():
    """Few long standstills beside many short ones: squares of lengths add, at the rate of each."""
    given = {"repair": 60.0, "pause": 60.0}
    model = job(32, 2, rate=1 / 2e5)
    short, long = (
        goodput(model, 1.0, FREE, Recovery("elastic", timeout=timeout, **given))
        for timeout in (0.0, 600.0)
    )
    rate = 64 / 2e5
    assert long.variance_rate - short.variance_rate == pytest.approx(
        rate * rate * 60 * (660**2 - 60**2), rel=0.15
    )


def test_the_price_of_a_time_out_is_rate_by_window_by_length():
    """To first order; exactly by failures on a line, each of which knows the one before."""
    rate, detection, pause, meeting, timeout = 1e-3, 3.0, 30.0, 7.0, 100.0
    late = late_share(np.array([rate]), np.array([detection]), pause, meeting, timeout)
    assert late * timeout == pytest.approx(rate * meeting * timeout, rel=0.15)
    gaps = np.random.default_rng(1).exponential(1 / rate, 400_000)
    long, stood = False, 0.0
    lates = 0
    for gap in gaps:
        length = detection + pause + timeout * long
        stood += min(gap, length)
        long = gap < length if long else detection < gap < detection + meeting
        lates += long
    assert lates / gaps.size == pytest.approx(late, rel=0.05)
    outside = [
        outside_pauses(np.array([rate]), np.array([detection + pause + more]))
        for more in (0.0, timeout)
    ]
    expected = (1 - late) * outside[0] + late * outside[1]
    assert 1 - stood / gaps.sum() == pytest.approx(expected, abs=2e-4)


def test_a_failure_of_a_broken_replica_pauses_nobody():
    recovery = Recovery("elastic", 1.0, pause=10.0)
    first, same, other = (0, 100.0, 900.0), (1, 300.0, 500.0), (2, 300.0, 500.0)
    assert replayed(job(4, 2), FREE, recovery, first, same)["restart"] == pytest.approx(10.0)
    assert replayed(job(4, 2), FREE, recovery, first, other)["restart"] == pytest.approx(20.0)


def test_a_replay_knows_the_replica_of_a_node():
    recovery = Recovery("elastic", 1.0)
    pair = (0, 100.0, 300.0), (1, 100.0, 300.0)
    assert replayed(job(4, 2), FREE, recovery, *pair)["degraded"] == pytest.approx(200 / 4)
    strided = job(4, 2, order=("tensor", "context", "data", "pipeline"))
    assert replayed(strided, FREE, recovery, *pair)["degraded"] == pytest.approx(200 * 2 / 4)
    apart = (0, 100.0, 300.0), (4, 100.0, 300.0)
    assert replayed(strided, FREE, recovery, *apart)["degraded"] == pytest.approx(200 / 4)
    kept = Recovery("elastic", 1.0, batch="keep", micro_batches=2)  # 8 micro-batches for 3
    assert replayed(job(4, 2), FREE, kept, *pair)["degraded"] == pytest.approx(200 / 3)


def test_a_spare_takes_the_place_of_a_node():
    """Node 0 is down from 100 on, a spare has its place; the next one leaves a hole, filled at 400."""
    recovery = Recovery("elastic", 1.0, pause=10.0)
    failures = (0, 100.0, 400.0), (2, 200.0, 900.0), (3, 450.0, 460.0), (4, 500.0, 800.0)
    found = replayed(job(4, 2), FREE, recovery, *failures, spares=1)
    assert found["restart"] == pytest.approx(4 * 10.0)
    assert found["degraded"] == pytest.approx((200 + 10 + 300 - 3 * 10) / 4)


def test_all_replicas_down_at_once_go_back_to_the_checkpoint():
    recovery = Recovery("elastic", 1.0, restart=7.0)
    failures = (0, 90.0, 400.0), (2, 170.0, 300.0)  # the second of two replicas
    found = replayed(job(2, 2), SAVED, recovery, *failures)
    # Checkpoints end at 50 s and, at half the speed from 90 s on, at 50 + 40 + 16 + 2 = 108 s.
    assert found["lost"] == pytest.approx((170 - 108) / 2)
    assert found["waiting"] == pytest.approx(300 - 170)
    assert found["restart"] == pytest.approx(7 + 5)
    one = replayed(job(2, 2), SAVED, recovery, failures[0])
    assert one["lost"] == one["waiting"] == 0.0


FEW = [
    ("elastic", 3, 2, 0.0),
    ("elastic", 4, 1, 0.0),
    ("elastic", 3, 2, 30.0),
    ("regroup", 3, 2, 0.0),
]


@pytest.mark.parametrize(("policy", "replicas", "size", "pause"), FEW)
def test_few_replicas_of_four_routes_agree(policy, replicas, size, pause):
    """Products of means are right to 0.2 points where every third moment has no replica."""
    rate, repair = 1 / 40000.0, 20000.0
    recovery = Recovery(policy, repair, restart=100.0, pause=pause)
    plan = Checkpointing(levels=(CheckpointLevel(name="s", cost=20.0, restart=300.0),))
    model = job(replicas, size, rate=rate)
    closed = goodput(model, 1.0, plan, recovery)
    chain = goodput(model, 1.0, plan, recovery, method="markov")
    assert chain.mean == pytest.approx(closed.mean, abs=2e-3)
    up = 1 / (1 + rate * repair)
    if policy == "elastic":
        whole = up**size
        last = replicas * size * rate * whole * (1 - whole) ** (replicas - 1)
    else:  # fewer nodes than one replica has: two of six
        last = 5 * rate * 2 * 3 * up**2 * (1 - up) ** 4
    assert job_rows(model, plan, recovery).losing().sum() == pytest.approx(last)
    assert closed.state_loss_rate == pytest.approx(last)
    for level in ("count", "identity"):
        rng = np.random.default_rng(4)
        made = simulate(model, 1.0, plan, recovery, years=20, rng=rng, level=level)
        near(made, closed.mean, 2e-3)
        if policy == "elastic":
            assert made.state_loss_rate == pytest.approx(last, rel=0.05)
    without = (
        closed.mean / closed.buckets["productive"] * up ** (size if policy == "elastic" else 1)
    )
    assert closed.mean < without - 0.005


def test_racks_take_the_replicas_of_their_nodes():
    """Two neighbours stand in two replicas, so that a rack of them takes two of four."""
    rack = ComponentClass(name="rack", level="rack", rate=1e-6, repair=50000.0)
    plan = Checkpointing(levels=(CheckpointLevel(name="s", cost=0.0, restart=0.0),), interval=1e3)
    recovery = Recovery("elastic", 1.0)
    strided = ("tensor", "context", "data", "pipeline")
    down = 1e-6 * 50000.0
    for order, racks in ((IN_A_ROW, 1), (strided, 2)):  # that hold nodes of one replica
        model = job(4, 2, order=order, more=(rack,))
        rng = np.random.default_rng(5)
        made = simulate(model, 1.0, plan, recovery, years=60, rng=rng, level="identity")
        near(made, 1 / (1 + down) ** racks, 3e-3)


def test_short_runs_begin_with_everything_up():
    rate, repair = 1 / 120.0, 40.0
    model, recovery = job(12, 1, rate=rate), Recovery("elastic", repair)
    chain = NodeChain(nodes=12, rates={1: 12 * rate}, repair=repair, speed=np.linspace(1, 0, 13))
    times = np.linspace(0.0, 240.0, 49)
    expected = trapezoid(chain.transient(times), times) / 240.0
    options = {"horizon": 240.0, "replications": 2000}
    new = replace(model, source=NodeLives(ages="new"))
    rng = np.random.default_rng(6)
    years = 2000.5 * 240.0 / YEAR
    made = simulate(new, 1.0, FREE, recovery, years=years, rng=rng, **options)
    near(made, expected, 1e-3)
    assert made.mean > goodput(model, 1.0, FREE, recovery).mean + 0.02
