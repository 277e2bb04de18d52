"""Spare trays of a rack: closed forms against the chain of all racks; what they change in a job."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

import relparallel as rp
from chapters.s44 import consequences
from relparallel.hardware import Cluster, cluster
from relparallel.parallel import Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    Recovery,
    failure_model,
    goodput,
    simulate,
    spares_needed,
)
from relparallel.training.goodput_forms import steady_state
from relparallel.units import DAY, HOUR

STORAGE = Checkpointing(levels=(CheckpointLevel(name="storage", cost=20.0, restart=300.0),))
RACKS, DATA = 3, Strategy(tensor=8, data=3)
TRAYS = Cluster(nodes=RACKS, gpus_per_node=8, gpus_per_tray=2)


def job(spare, load, repair=DAY, nodes=TRAYS, split=DATA):
    """A job whose trays are under repair at such a load in each rack: half as failed GPUs."""
    rate = load / repair / 2
    parts = (
        ComponentClass(name="tray", level="tray", rate=rate / 4),
        ComponentClass(name="GPU", level="gpu", rate=rate / 8),
    )
    return failure_model(replace(nodes, spare_trays=spare), split, rates=parts)


def chain(spare, load, waits):
    """Probabilities of racks by trays under repair in each, the last state being a missing rack."""
    states = list(product(range(spare + 2), repeat=RACKS))
    place = {state: number for number, state in enumerate(states)}
    moves = np.zeros((len(states), len(states)))
    for state in states:
        stands = waits and max(state) > spare
        for rack, down in enumerate(state):
            if down <= spare and not stands:
                after = (*state[:rack], down + 1, *state[rack + 1 :])
                moves[place[state], place[after]] += load
            if down:
                after = (*state[:rack], down - 1, *state[rack + 1 :])
                moves[place[state], place[after]] += down
    np.fill_diagonal(moves, -moves.sum(axis=1))
    found = np.linalg.lstsq(
        np.vstack([moves.T, np.ones(len(states))]), np.eye(len(states) + 1)[-1]
    )[0]
    missing = np.array([sum(down > spare for down in state) for state in states])
    return np.bincount(missing, found, RACKS + 1)


@pytest.mark.parametrize("load", [0.05, 0.4, 1.5])
@pytest.mark.parametrize("spare", [0, 1, 2, 3])
def test_racks_that_go_on_are_those_of_the_chain(spare, load):
    """Exact: racks are independent where the others work on."""
    expected = chain(spare, load, waits=False)
    model, way = job(spare, load), Recovery("elastic", repair=DAY)
    speed = float(expected @ (1 - np.arange(RACKS + 1) / RACKS))
    found = steady_state(model, STORAGE, way, 0)
    assert found.availability * found.degraded_nodes == pytest.approx(speed, rel=1e-9)


@pytest.mark.parametrize("load", [0.05, 0.4])
@pytest.mark.parametrize("spare", [0, 1, 2])
def test_a_job_that_waits_for_racks_waits_as_long_as_in_the_chain(spare, load):
    """Exact without spare trays; with them repairs while it waits help later, which is left out."""
    expected = 1 - chain(spare, load, waits=True)[0]
    found = (
        1 - steady_state(job(spare, load), STORAGE, Recovery("restart", repair=DAY), 0).availability
    )
    assert found == pytest.approx(expected, rel=1e-9 if spare == 0 else 0.3 * load)
    assert found >= expected * (1 - 1e-9)


@pytest.mark.parametrize("spare", [0, 1, 2])
def test_a_rack_alone_is_the_birth_and_death_chain(spare):
    """Stationary chain of one rack: how often it is lost, and for how long."""
    load, up = 0.7, np.arange(spare + 1)
    moves = np.diag(np.full(spare + 1, load), 1) + np.diag(np.arange(1.0, spare + 2), -1)
    moves -= np.diag(moves.sum(axis=1))
    found = np.linalg.lstsq(np.vstack([moves.T, np.ones(spare + 2)]), np.eye(spare + 3)[-1])[0]
    lost_rate = load * found[spare] / found[up].sum()
    model = job(spare, load, repair=1.0).with_spare_trays(1.0)
    assert model.node_rate == pytest.approx(lost_rate)
    back = {entry.repair for entry in model.classes if not entry.spared}
    assert [time or 1.0 for time in back] == pytest.approx([found[-1] / (load * found[spare])])
    assert 1 / model.mtbf == pytest.approx(RACKS * load)  # each of them interrupts the job


WAYS = [
    Recovery("restart", repair=DAY),
    Recovery("spares", repair=DAY),
    Recovery("elastic", DAY, pause=60.0),
    Recovery("regroup", DAY, pause=60.0),
    Recovery("bamboo", DAY, pause=60.0),
]
NVL72 = cluster("gb200-186gb-nvl72", gpus=512)
SPLIT = Strategy(tensor=8, data=64)


def racks(spare, **fields):
    return failure_model(replace(NVL72, spare_trays=spare, **fields), SPLIT)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.policy)
def test_every_spare_tray_makes_a_job_faster_and_none_leaves_it_as_it_was(way):
    spares = int(way.policy == "spares")
    model = racks(0)
    assert model.with_spare_trays(DAY) is model
    found = [goodput(racks(spare), 5.0, STORAGE, way, spares).mean for spare in range(5)]
    assert found[0] == goodput(failure_model(NVL72, SPLIT), 5.0, STORAGE, way, spares).mean
    assert all(after > before for before, after in pairwise(found[:4]))
    # As many as never run out: what trays and GPUs do is what a part does that needs no repair.
    never = replace(
        model,
        classes=tuple(
            replace(entry, repair=0.0) if entry.level in ("gpu", "tray") else entry
            for entry in model.classes
        ),
    )
    many = goodput(racks(40), 5.0, STORAGE, way, spares)
    assert many.mean == pytest.approx(goodput(never, 5.0, STORAGE, way, spares).mean, rel=1e-5)
    assert racks(400).with_spare_trays(DAY).node_rate == pytest.approx(
        sum(entry.rate for entry in model.classes if entry.level == "switch"), rel=1e-12
    )


@pytest.mark.parametrize("way", WAYS[:3], ids=lambda way: way.policy)
def test_goodput_with_spare_trays_is_what_is_simulated(way):
    spares = int(way.policy == "spares")
    model = job(1, 0.4, 6 * HOUR, replace(TRAYS, nodes=8), Strategy(tensor=8, data=8))
    way = replace(way, repair=6 * HOUR)
    closed = goodput(model, 5.0, STORAGE, way, spares)
    chained = goodput(model, 5.0, STORAGE, way, spares, method="markov")
    assert chained.mean == pytest.approx(closed.mean, abs=5e-4)
    for level in ("count", "identity"):
        rng = np.random.default_rng(3)
        drawn = simulate(model, 5.0, STORAGE, way, spares, years=200.0, rng=rng, level=level)
        low, high = drawn.brackets["productive"]
        assert abs(drawn.mean - closed.mean) <= 3 * (high - low) / 2 / 2.093 + 5e-4
        assert drawn.gpus == closed.gpus == (8 + spares) * 10
    bare = goodput(
        replace(model, cluster=replace(model.cluster, spare_trays=0)), 5.0, STORAGE, way, spares
    )
    assert closed.mean > bare.mean + 0.01


@pytest.mark.parametrize("way", WAYS[:3], ids=lambda way: way.policy)
def test_importance_follows_the_trays_that_run_out(way):
    """Against finite differences of the rate of a class, with the plan held fixed."""
    model = job(2, 0.5, DAY, replace(TRAYS, nodes=8), Strategy(tensor=8, data=8))
    model = replace(
        model, classes=(*model.classes, ComponentClass(name="hall", level="job", rate=1e-6))
    )
    report = goodput(model, 5.0, STORAGE, way)
    plan = replace(STORAGE, interval=report.interval)
    for place, entry in enumerate(model.classes):
        ends = []
        for step in (1e-4, -1e-4):
            classes = list(model.classes)
            classes[place] = replace(entry, rate=entry.rate * np.exp(step))
            ends.append(goodput(replace(model, classes=tuple(classes)), 5.0, plan, way).mean)
        slope = np.log(ends[0] / ends[1]) / 2e-4
        assert report.importance.loc[entry.name, "elasticity"] == pytest.approx(
            slope, rel=1e-3, abs=1e-7
        )


def test_consequences_tell_the_failures_of_trays_apart():
    model = job(2, 0.5)
    table = consequences(model, STORAGE, Recovery("elastic", DAY, pause=15.0))
    assert table.loc["tray", "nodes missing"].tolist() == [0, 1]
    share = 0.5**2 / 2 / (1 + 0.5 + 0.5**2 / 2)
    assert (
        table.loc["tray", "per day"] / table.loc["tray", "per day"].sum()
    ).tolist() == pytest.approx([1 - share, share])
    assert table.loc["tray", "speed after"].tolist() == pytest.approx([1, 2 / 3])


def test_fewer_spare_racks_are_needed_where_racks_have_spare_trays():
    bare, kept = racks(0), racks(2).with_spare_trays(7 * DAY)
    (back,) = {entry.repair for entry in kept.classes if entry.level == "tray" and not entry.spared}
    assert back == pytest.approx(7 * DAY / 3)
    needed = [
        spares_needed(8, model.node_rate, repair, shortage=1e-2)
        for model, repair in ((bare, 7 * DAY), (kept, 7 * DAY))
    ]
    assert needed[0] > needed[1]


def test_what_stops_the_whole_rack_takes_no_spare_tray():
    parts = tuple(
        ComponentClass(name=at, level=at, rate=1e-7) for at in ("node", "nvlink", "rack", "job")
    )
    model = failure_model(replace(NVL72, spare_trays=2), SPLIT, rates=parts)
    assert model.with_spare_trays(DAY) is model
    with pytest.raises(ValueError, match="failures must be told apart by with_spare_trays"):
        rp.training.Job.of(
            rp.parallel.Placement(strategy=SPLIT), model, checkpoint=60.0, restart=60.0, pause=1.0
        )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"spare_trays": -1}, "spare_trays must be"),
        ({"spare_trays": 1.5}, "spare_trays must be"),
        (
            {"spare_trays": 2, "gpus_per_tray": None},
            "spare_trays must be 0 unless gpus_per_tray is below",
        ),
        (
            {"spare_trays": 2, "gpus_per_tray": 64},
            "spare_trays must be 0 unless gpus_per_tray is below",
        ),
    ],
)
def test_spare_trays_need_trays(fields, said):
    with pytest.raises((ValueError, TypeError), match=said):
        replace(NVL72, **fields)


def test_a_plan_counts_spare_trays_and_says_so():
    options = {
        "global_batch": 512,
        "limits": {"tensor": 8, "pipeline": 1},
        "spares": 0,
        "price": 2.0,
    }
    few, kept = (
        rp.plan("gpt3-6.7b", replace(NVL72, spare_trays=spare), **options) for spare in (0, 2)
    )
    assert any(
        "gb200-186gb-nvl72 has 2 spare trays besides the 16 of the job" in note
        for note in kept.notes
    )
    assert not any("spare trays" in note for note in few.notes)
    assert kept.best.share > few.best.share
    search = kept.best.search  # no bound hides a better choice
    every = product(range(len(search.sites[0].fastest.time)), search.recoveries, search.checkpoints)
    found = [choice.score for asked in every if (choice := search.choice(0, *asked))]
    assert search.ranked(1)[0].score == pytest.approx(max(found), rel=1e-12)
    price = [plan.to_frame().iloc[0] for plan in (few, kept)]
    paid = [row["cost of 1e9 tokens"] * row["1e9 tokens a day"] for row in price]
    assert paid[1] / paid[0] == pytest.approx(72 / 64)
