"""Where failures come from: shared events against chains, sums and simulation; records again."""

import os
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureLog,
    FailureModel,
    NodeLives,
    Recovery,
    Replay,
    SharedEvents,
    goodput,
    shortage_probability,
    simulate,
    spares_needed,
)
from relparallel.training._random_failures import set_inside
from relparallel.training.down_nodes import NodeChain, mixed_distribution
from relparallel.units import DAY, HOUR, YEAR

SIZES = (0.7, 0.1, 0.0, 0.2)
PLAN = Checkpointing(
    levels=(CheckpointLevel(name="storage", cost=30.0, restart=200.0),), interval=3000.0
)
NODES, RATE = 64, 0.02 / DAY


IN_A_ROW = ("tensor", "context", "pipeline", "data")  # nodes in a row are a replica


def job(source=None, *, size=1, shard=None, nodes=NODES, rate=RATE):
    data = nodes // size
    zero = {} if shard is None else {"zero_stage": 1, "shard": shard}
    strategy = Strategy(tensor=8, pipeline=size, data=data, **zero)
    return FailureModel(
        classes=(ComponentClass(name="node", level="node", rate=rate),),
        cluster=Cluster(nodes=nodes),
        placement=Placement(strategy=strategy, order=IN_A_ROW),
        source=source,
    )


def several(p, q):
    """Both distributions on the same numbers of nodes."""
    longer = max(len(p), len(q))
    return np.pad(p, (0, longer - len(p))), np.pad(q, (0, longer - len(q)))


@pytest.mark.parametrize("together", [True, False])
def test_nodes_down_are_those_of_the_batch_queue(together):
    """A chain of batches at infinitely many servers; independent nodes of the same mean differ."""
    events, load = SharedEvents(sizes=SIZES, together=together), 2.0
    able = np.ones(120)
    found = mixed_distribution(
        events.rates(load), dict.fromkeys(events.rates(load), 1.0), able, 0, apart=not together
    )
    if together:  # a sum over independent Poisson numbers of events of each size
        expected = np.zeros(120)
        expected[0] = 1.0
        for size, rate in events.rates(load).items():
            count = np.exp(-rate + np.arange(30) * np.log(rate) - np.cumsum(np.log(np.r_[1, 1:30])))
            spread = np.zeros(120)
            spread[: 30 * size : size] = count[: len(range(0, min(30 * size, 120), size))]
            expected = np.convolve(expected, spread)[:120]
    else:
        chain = NodeChain(
            nodes=10**5, rates=events.rates(load), repair=1.0, speed=np.ones(1), hot=True
        )
        expected = chain.stationary().sum(axis=1)
    one, other = several(found, expected)
    assert np.abs(one - other)[:100].max() < 2e-5 if not together else 1e-12
    poisson = mixed_distribution({1: load}, {1: 1.0}, able, 0)
    assert np.abs(one[:100] - several(poisson, one)[0][:100]).max() > 0.02


def test_drift_is_the_gamma_mixture():
    """Its generating function (1 - L(z)/a)^-a by a Fourier transform; phases are a quadrature of it."""
    events, load, shape = SharedEvents(sizes=SIZES), 6.0, 2.3
    drifting = replace(events, phases=SharedEvents.drifting(shape))
    parts = np.zeros(1024)
    for size, part in events.loads(load).items():
        parts[size] = part
    exact = np.fft.ifft((1 - (np.fft.fft(parts) - parts.sum()) / shape) ** -shape).real
    rates = drifting.rates(load)
    found = mixed_distribution(
        rates, dict.fromkeys(rates, 1.0), np.ones(400), 0, phases=drifting.phases
    )
    for most in (8, 16, 24):
        assert found[most:].sum() == pytest.approx(exact[most:].sum(), rel=0.02)
    steady = mixed_distribution(rates, dict.fromkeys(rates, 1.0), np.ones(400), 0)
    assert steady[24:].sum() < 0.5 * exact[24:].sum()


def test_events_of_one_node_change_nothing():
    alone = SharedEvents(sizes=(1.0,))
    for policy, spares in (("spares", 3), ("hot_spares", 3), ("elastic", 0), ("restart", 0)):
        way = Recovery(policy, repair=DAY)
        plain, found = (goodput(job(it, size=2), 1.0, PLAN, way, spares) for it in (None, alone))
        assert found.mean == pytest.approx(plain.mean, rel=1e-12)
        assert found.variance_rate == pytest.approx(plain.variance_rate, rel=1e-9)


@pytest.mark.parametrize(
    ("nodes", "size", "down"), [(8, 2, 3), (9, 2, 4), (8, 4, 5), (12, 3, 6), (8, 2, 8)]
)
def test_chance_that_an_event_takes_all_copies(nodes, size, down):
    sets = [{*range(at, at + size)} for at in range(0, nodes - size + 1, size)]
    hit = [any(one <= {*taken} for one in sets) for taken in combinations(range(nodes), down)]
    assert set_inside(nodes, size, down) == pytest.approx(np.mean(hit), abs=1e-12)


def test_copies_on_two_nodes_are_lost_by_pairs():
    """Two copies of each shard: an event of two nodes loses the state in 1 of 63 cases."""
    pairs = SharedEvents(sizes=(0.0, 1.0))
    model = job(pairs, shard=32)
    lost = sum(domain.rate for domain in model.domains if domain.state_lost)
    assert lost == pytest.approx(NODES * RATE / 2 / 63, rel=1e-9)
    assert not any(domain.state_lost for domain in job(None, shard=32).domains)
    way = Recovery("elastic", repair=HOUR, pause=30.0)
    assert goodput(model, 1.0, PLAN, way).state_loss_rate == pytest.approx(lost, rel=1e-6)


def test_interruptions_are_events():
    assert job(SharedEvents(sizes=SIZES)).mtbf == pytest.approx(
        SharedEvents(sizes=SIZES).mean_size * job().mtbf
    )


def test_neighbours_hit_fewer_replicas():
    """Four nodes in a row are one replica; anywhere they are four."""
    way, four = Recovery("elastic", repair=DAY), (0.0, 0.0, 0.0, 1.0)
    row, apart = (
        goodput(job(SharedEvents(sizes=four, neighbours=it), size=4), 1.0, PLAN, way).mean
        for it in (True, False)
    )
    assert row > apart + 0.02


@pytest.mark.parametrize("level", ["count", "identity"])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("policy", "spares", "size"), [("spares", 3, 1), ("hot_spares", 4, 1), ("elastic", 0, 2)]
)
def test_formula_and_simulation_agree(policy, spares, size, together, level):
    model = job(SharedEvents(sizes=SIZES, together=together), size=size)
    way = Recovery(policy, repair=DAY, pause=20.0 if policy == "elastic" else 0.0)
    made = simulate(
        model,
        1.0,
        PLAN,
        way,
        spares,
        years=60,
        rng=np.random.default_rng(1),
        level=level,
    )
    found, plain = (goodput(it, 1.0, PLAN, way, spares).mean for it in (model, job(size=size)))
    low, high = made.brackets["productive"]
    assert abs(made.mean - found) < (high - low) + 0.002
    if policy != "elastic":
        assert plain > high  # independent failures promise more


def test_phases_are_simulated():
    sizes = (0.9, 0.1)
    drift = SharedEvents(sizes=sizes, phases=((0.8, 0.5), (0.2, 3.0)), lasting=5 * DAY)
    way, rng = Recovery("hot_spares", repair=4 * HOUR), np.random.default_rng(2)
    found = goodput(job(drift), 1.0, PLAN, way, 2)
    for level in ("count", "identity"):
        made = simulate(job(drift), 1.0, PLAN, way, 2, years=200, rng=rng, level=level)
        waited = made.brackets["waiting"]
        assert waited[0] - 0.002 < found.buckets["waiting"] < waited[1] + 0.002
    even = goodput(job(SharedEvents(sizes=sizes)), 1.0, PLAN, way, 2)
    assert even.buckets["waiting"] < waited[0] - 0.002
    assert found.sd > 1.2 * even.sd
    assert made.sd == pytest.approx(found.sd, rel=0.25)


@pytest.mark.parametrize("kind", ["cold", "hot"])
@pytest.mark.parametrize("together", [True, False])
def test_shortage_is_what_the_job_waits(kind, together):
    events = SharedEvents(sizes=SIZES, together=together, phases=((0.5, 0.5), (0.5, 1.5)))
    way = Recovery("spares" if kind == "cold" else "hot_spares", repair=DAY)
    found = goodput(job(events), 1.0, PLAN, way, 5).buckets["waiting"]
    short = shortage_probability(NODES, 5, RATE, DAY, kind, source=events)
    assert short == pytest.approx(found, rel=1e-9)
    assert short > 1.5 * shortage_probability(NODES, 5, RATE, DAY, kind)
    enough = spares_needed(NODES, RATE, DAY, 1e-3, kind, source=events)
    assert enough > spares_needed(NODES, RATE, DAY, 1e-3, kind)
    shares = [
        shortage_probability(NODES, held, RATE, DAY, kind, source=events)
        for held in (enough - 1, enough)
    ]
    assert shares[0] > 1e-3 >= shares[1]


def made_log(events, *, nodes=400, years=3.0, rate=1 / (300 * DAY), repair=8 * HOUR, seed=1):
    """A log of shared events, each of which begins within a minute; one rate a month."""
    rng = np.random.default_rng(seed)
    share, factor = np.array(events.phases).T
    start, node = [], []
    for month in range(int(years * YEAR / events.lasting)):
        often = nodes * rate / events.mean_size * events.lasting * rng.choice(factor, p=share)
        for _ in range(rng.poisson(often)):
            at = (month + rng.random()) * events.lasting
            taken = rng.choice(nodes, 1 + rng.choice(len(events.sizes), p=events.sizes), False)
            start += (at + 60 * rng.random(taken.size)).tolist()
            node += taken.tolist()
    start, end = np.array(start), np.array(start) + repair * rng.standard_exponential(len(start))
    return FailureLog(
        node=[f"n{one}" for one in node],
        start=start,
        end=end,
        cause=["node"] * len(node),
        population=nodes,
        begin=0.0,
        finish=max(years * YEAR, start.max()),
        overlaps="merge",
    )


def test_a_log_gives_its_events_back():
    events = SharedEvents(sizes=SIZES, phases=SharedEvents.drifting(2.0))
    found = made_log(events, years=6).shared_events(window=60.0)
    assert len(found.sizes) == 4
    assert found.sizes[3] == pytest.approx(0.2, abs=0.03)
    variance = sum(share * factor**2 for share, factor in found.phases) - 1
    assert variance == pytest.approx(0.5, abs=0.25)


def test_independent_failures_have_neither_events_nor_drift():
    drifted = 0
    for seed in range(24):
        log = made_log(SharedEvents(sizes=(1.0,)), nodes=80, years=2, seed=seed)
        found = log.shared_events(window=60.0)
        assert found.sizes[0] > 0.97
        drifted += len(found.phases) > 1
    assert drifted <= 2  # 1 % of them: more by a chance of 1e-3


def test_a_record_is_replayed_without_further_arguments():
    """One node of 16 is down for 10 of 30 days, and the job waits."""
    table = pd.DataFrame({"node": [3], "start": [10 * DAY], "end": [20 * DAY]})
    replay = Replay(records=table, nodes=16, span=30 * DAY)
    model = replace(job(replay, nodes=16), source=replay)
    way = Recovery("restart", repair=DAY)
    made = simulate(
        model, 1.0, Checkpointing(levels=PLAN.levels, interval=1e5), way, years=4,
        rng=np.random.default_rng(1), replications=40,
    )  # fmt: skip
    assert made.buckets["waiting"] == pytest.approx(1 / 3, abs=1e-3)


def test_a_fleet_is_drawn_from_a_larger_one():
    """Half of the nodes see half of the failures; one more than were watched is refused."""
    rng = np.random.default_rng(3)
    log = made_log(SharedEvents(sizes=SIZES), nodes=64, years=1.0, rate=RATE / 4)
    model, way = job(log.replay(), nodes=32), Recovery("elastic", repair=DAY)
    made = simulate(model, 1.0, PLAN, way, years=40, rng=rng, horizon=YEAR / 2)
    assert made.importance.loc["record", "rate"] == pytest.approx(32 * log.rate, rel=0.1)
    with pytest.raises(ValueError, match="source must have observed 128 nodes"):
        simulate(job(log.replay(), nodes=128), 1.0, PLAN, way, years=40, rng=rng)
    with pytest.raises(ValueError, match="source must be shuffled, or of 32 nodes, got 64"):
        simulate(job(log.replay(shuffled=False), nodes=32), 1.0, PLAN, way, years=40, rng=rng)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: SharedEvents(sizes=(0.5, 0.4)), "sizes must be shares of events"),
        (lambda: SharedEvents(sizes=(1.0,), phases=((0.5, 1.0),)), "phases must have shares of 1"),
        (lambda: SharedEvents(sizes=(1.0,), phases=((1.0, 2.0),)), "phases must have mean of 1"),
        (
            lambda: job(SharedEvents(sizes=(0.0,) * 64 + (1.0,))),
            "source must have events of at most",
        ),
        (lambda: goodput(job(NodeLives()), 1.0, PLAN, Recovery("elastic", DAY)), "NodeLives"),
        (
            lambda: shortage_probability(2, 0, 1e-9, 1.0, source=SharedEvents(sizes=SIZES)),
            "2 nodes",
        ),
        (
            lambda: shortage_probability(
                64, 0, 1e-9, 1.0, crews=1, source=SharedEvents(sizes=SIZES)
            ),
            "crews must be left out with a source",
        ),
        (
            lambda: goodput(
                job(SharedEvents(sizes=(1.0,), phases=((0.5, 0.5), (0.5, 1.5)))),
                1.0,
                PLAN,
                Recovery("elastic", DAY),
                method="markov",
            ),
            "method must be 'closed'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(made, told):
    with pytest.raises(ValueError, match=told):
        made()


@pytest.mark.skipif(
    "RELPARALLEL_DATA" not in os.environ, reason="RELPARALLEL_DATA names no folder with a trace"
)
def test_a_public_trace_turns_the_order_of_recoveries():
    """InfiniteHBD-Trace: independent failures prefer spares, the record elastic replicas."""
    path = Path(os.environ["RELPARALLEL_DATA"]) / "data/failures/infinitehbd/outages.csv"
    table = pd.read_csv(path).query("end_days > start_days")
    start, end = table["start_days"].to_numpy() * DAY, table["end_days"].to_numpy() * DAY
    log = FailureLog(
        node=table["node"].tolist(),
        start=start,
        end=end,
        cause=["node"] * len(table),
        population=400,
        begin=0.0,
        finish=max(start.max(), 349 * DAY),
        overlaps="merge",
    )
    repair, law = float(log.repairs.mean()), log.shared_events()
    assert spares_needed(382, log.rate, repair, 1e-3, "hot") <= 20
    assert spares_needed(382, log.rate, repair, 1e-3, "hot", source=law) >= 33

    def kept(source, policy, nodes, spares, size):
        model, way = job(source, nodes=nodes, size=size, rate=log.rate), Recovery(policy, repair)
        if not isinstance(source, Replay):
            return goodput(model, 1.0, PLAN, way, spares).mean * nodes / (nodes + spares)
        made = simulate(
            model, 1.0, PLAN, way, spares, years=10 * 349.5 / 365, rng=np.random.default_rng(1),
            horizon=log.span, replications=10,
        )  # fmt: skip
        return made.mean * nodes / (nodes + spares)

    def both(source):
        return kept(source, "hot_spares", 382, 18, 1), kept(source, "elastic", 400, 0, 4)

    alone, shared, replayed = both(None), both(law), both(log.replay())
    assert alone[0] > alone[1]
    assert shared[0] < shared[1]
    assert replayed[0] < replayed[1]
    assert shared[1] == pytest.approx(replayed[1], abs=0.005)
    assert abs(shared[0] - replayed[0]) < 0.5 * abs(alone[0] - replayed[0])


def test_a_smaller_job_meets_a_part_of_an_event():
    """Of events of four nodes, half of the nodes meet two in the mean, as drawn by hand."""
    log = made_log(SharedEvents(sizes=(0.0, 0.0, 0.0, 1.0)), nodes=20, years=2.0)
    found = log.shared_events(window=60.0, nodes=10)
    drawn = [np.intersect1d(four, range(10)).size for four in combinations(range(20), 4)]
    expected = np.bincount(drawn)[1:] / np.count_nonzero(drawn)
    assert found.sizes[:4] == pytest.approx(expected, abs=0.03)
    assert log.shared_events(window=60.0, nodes=20) == log.shared_events(window=60.0)
