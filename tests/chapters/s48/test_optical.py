import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s48.optical import rewired, usable_fraction
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
    redundant_fabric,
    simulate,
)
from relparallel.units import HOUR


def drawn(n, up, cubes, hosts, samples, rng):
    return (rng.random((samples, cubes, hosts)) < up).all(axis=2)


@pytest.mark.parametrize(("n", "up"), [(16, 0.99), (32, 0.99), (8, 0.97), (5, 0.995)])
def test_both_wirings_are_those_of_drawn_hosts(n, up):
    alive = drawn(n, up, 64, 16, 4000, np.random.default_rng(3))
    switched = alive.sum(axis=1) // n * n / 64
    blocks = alive[:, : 64 // n * n].reshape(4000, -1, n).all(axis=2).sum(axis=1) * n / 64
    for values, wired in ((switched, True), (blocks, False)):
        error = 3.5 * values.std() / np.sqrt(4000) + 3 / 4000  # and an event never seen
        assert abs(values.mean() - usable_fraction(n, up, switched=wired)) <= error


@given(cubes=st.integers(1, 10), n=st.integers(1, 10), up=st.floats(0, 1), hosts=st.integers(1, 3))
def test_all_states_of_a_small_pod(cubes, n, up, hosts):
    n = min(n, cubes)
    p = up**hosts
    states = (np.arange(2**cubes)[:, None] >> np.arange(cubes) & 1).astype(bool)
    chance = np.where(states, p, 1 - p).prod(axis=1)
    free = states.sum(axis=1) // n
    fixed = states[:, : cubes // n * n].reshape(len(states), -1, n).all(axis=2).sum(axis=1)
    for found, wired in ((free, True), (fixed, False)):
        shape = {"cubes": cubes, "hosts_per_cube": hosts, "switched": wired}
        assert usable_fraction(n, up, **shape) == pytest.approx(
            chance @ found * n / cubes, abs=1e-12
        )


def test_slices_larger_than_the_pod_are_refused():
    with pytest.raises(ValueError, match="cubes_per_slice"):
        usable_fraction(65, 0.99)


def cables(rate, repair, parts=1000):
    """Cables that slow a job, and nothing else."""
    entry = ComponentClass(
        name="cable",
        level="switch",
        rate=rate,
        effect="degrade",
        slowdown=1.5,
        parts=parts,
        repair=repair,
    )
    place = Placement(strategy=Strategy(tensor=8, data=2))
    return FailureModel(classes=(entry,), cluster=Cluster(nodes=2), placement=place)


@pytest.mark.parametrize("spares", [0, 1, 3, 20])
@pytest.mark.parametrize("sigma", [0.0, 1.4])
def test_harm_without_delay_is_that_of_drawn_repairs(spares, sigma):
    """Losses one by one: the spare goes to who waits longest, whatever the law of the repairs."""
    rng, mean, count = np.random.default_rng(7), 2.0, 60_000
    begin = np.cumsum(rng.exponential(1.0, count))
    end = begin + mean * rng.lognormal(-(sigma**2) / 2, sigma, count)
    times = np.concatenate([begin, end])
    down = np.cumsum(np.repeat([1, -1], count)[np.argsort(times)])[:-1]
    without = np.maximum(down - spares, 0) * np.diff(np.sort(times))
    batches = without[: len(without) // 40 * 40].reshape(40, -1).sum(axis=1) * 40 / count
    (entry,) = rewired(cables(1e-3, mean), 0.0, spares=spares).classes
    error = batches.std(ddof=1) / np.sqrt(40)
    assert abs(without.sum() / count - entry.repair) <= 3 * error + 1e-9


@given(time=st.floats(0, 100), spares=st.integers(0, 30), load=st.floats(1e-3, 20))
def test_rewiring_never_takes_longer_than_the_repair(time, spares, load):
    (entry,) = rewired(cables(load / 1e3 / 60.0, 60.0), time, spares=spares).classes
    assert 0 <= entry.repair <= 60.0
    if spares == 0:
        assert entry.repair == pytest.approx(60.0)
    more = rewired(cables(load / 1e3 / 60.0, 60.0), time, spares=spares + 1).classes[0]
    assert more.repair <= entry.repair * (1 + 1e-9)


def test_goodput_of_a_rewired_fabric_is_what_is_simulated_and_more_than_fixed():
    fabric = redundant_fabric(16, servers_per_leaf=4, relay=False)
    rates = {"cable": 2e-9, "leaf": 3e-8, "spine": 3e-8, "nic": 1e-9}
    model = failure_model(
        fabric, Strategy(tensor=8, data=16), network_rates=rates, repair=12 * HOUR
    )
    moved = rewired(model, 300.0)
    assert [entry.rate for entry in moved.classes] == [entry.rate for entry in model.classes]
    times = {entry.name: entry.repair for entry in moved.classes}
    assert (times["nic"], times["CPU"]) == (12 * HOUR, None)
    assert 300 <= times["leaf"] < HOUR
    plan = Checkpointing(levels=(CheckpointLevel(name="storage", cost=30.0, restart=200.0),))
    way = Recovery("elastic", repair=24 * HOUR, restart=100.0, pause=20.0)
    closed = goodput(moved, 5.0, plan, way)
    assert closed.mean > goodput(model, 5.0, plan, way).mean
    drawn = simulate(moved, 5.0, plan, way, years=80.0, rng=np.random.default_rng(3))
    low, high = drawn.brackets["productive"]
    error = (high - low) / 2 / 2.093  # Student, 19 degrees
    assert abs(drawn.buckets["productive"] - closed.buckets["productive"]) <= 3 * error


def test_parts_without_a_repair_time_are_refused():
    with pytest.raises(ValueError, match="model must have a repair time"):
        rewired(cables(1e-3, None), 60.0)
