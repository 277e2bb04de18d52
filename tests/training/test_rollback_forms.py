import numpy as np
import pytest
from scipy.special import exprel

from pace import pace
from relparallel.hardware.machines import LEVELS
from relparallel.training import (
    Cause,
    Checkpointing,
    CheckpointLevel,
    checkpoint_interval,
    effective_training_time_ratio,
    rollback,
)
from rollback_simulation import renewal_cumulants, simulated


def random_job(rng, levels=None):
    """Levels, causes, interval and frequencies; times around the mean time between failures."""
    levels = int(rng.integers(1, 5)) if levels is None else levels
    late = rng.random() < 0.6

    def level(k):
        survives = (
            {}
            if k == levels - 1
            else {name: rng.choice([0.0, 1.0, rng.random()]) for name in LEVELS}
        )
        return CheckpointLevel(
            name=f"level {k}",
            cost=10 ** rng.uniform(-4, -0.5),
            restart=10 ** rng.uniform(-3, 0.3),
            survives=survives,
            delay=late * rng.choice([0.0, 10 ** rng.uniform(-3, 0.5)]),
        )

    causes = [
        Cause(
            level=str(rng.choice(LEVELS)),
            rate=10 ** rng.uniform(-2, 0),
            restart=10 ** rng.uniform(-3, 0),
            detection=10 ** rng.uniform(-3, 0),
        )
        for _ in range(rng.integers(1, 5))
    ]
    mean = 1 / sum(cause.rate for cause in causes)
    interval = mean * 10 ** rng.uniform(-1.5, 0.3)
    every = tuple(int(n) for n in rng.integers(1, 6, levels - 1))
    return Checkpointing(
        levels=tuple(level(k) for k in range(levels)), interval=interval, every=every
    ), causes


def deviations(rng, jobs, batches=300, failures=100):
    """Standard errors between simulation and formula: of the shares, and of the spread."""
    shares, spreads = [], []
    while len(spreads) < jobs:
        checkpointing, causes = random_job(rng)
        exact = rollback(checkpointing, causes)
        block = exact.interval * np.prod(exact.every) / exact.share
        if block * sum(cause.rate for cause in causes) > failures / 4:
            continue  # a batch would see too few blocks
        out = simulated(rng, checkpointing, causes, exact.interval, exact.every, batches, failures)
        time = out[:, 4]
        for column, name in enumerate(("productive", "checkpoint", "detection", "restart")):
            rest = out[:, column] - exact.buckets[name] * time
            shares.append(rest.mean() / rest.std() * np.sqrt(batches))
        rest = out[:, 0] - exact.share * time
        spreads.append(rest.var() / time.mean() / exact.variance_rate)
    return np.array(shares), np.array(spreads)


def test_random_jobs_agree_with_simulation():
    jobs = pace(200, 1000)
    shares, spreads = deviations(np.random.default_rng(1), jobs)
    assert (np.abs(shares) > 3).mean() < 0.006  # 0.0027 for normal deviations
    assert np.abs(shares).max() < 5.0
    assert shares.std() == pytest.approx(1.0, abs=2.2 / np.sqrt(2 * jobs))
    # a few per cent of the batches end inside a block
    assert spreads.mean() == pytest.approx(1.0, abs=0.02)
    assert spreads.std() == pytest.approx(np.sqrt(2 / 300), abs=0.02)


def chain_share(checkpointing, causes):
    """Share by a dense Markov chain: one state per place and level being read; no delays."""
    levels, rates = checkpointing.levels, np.array([cause.rate for cause in causes])
    total, spacing = rates.sum(), np.cumprod([1, *checkpointing.every])
    read = np.empty((len(causes), len(levels)))
    for j, cause in enumerate(causes):
        left = rates[j] / total
        for k, level in enumerate(levels):
            read[j, k] = left * level.survival(cause.level)
            left -= read[j, k]
    count = spacing[-1]
    top = [
        max(k for k in range(len(levels)) if place % spacing[k] == 0)
        for place in range(1, count + 1)
    ]
    states = [(place, -1, 0) for place in range(count)]
    states += [
        (p, k, j) for p in range(count) for k in range(len(levels)) for j in range(len(causes))
    ]
    index = {state: i for i, state in enumerate(states)}
    step, time = np.zeros((len(states),) * 2), np.zeros(len(states))
    for (place, reading, cause), i in index.items():
        if reading < 0:
            need = checkpointing.interval + levels[top[place]].cost
        else:
            need = causes[cause].detection + causes[cause].restart + levels[reading].restart
        passed = np.exp(-total * need)
        time[i] = (1 - passed) / total
        if reading >= 0:
            step[i, index[place, -1, 0]] += passed
        elif place + 1 < count:
            step[i, index[place + 1, -1, 0]] += passed
        for j in range(len(causes)):
            for k in range(len(levels)):
                level = max(k, reading)
                step[i, index[place - place % spacing[level], level, j]] += (1 - passed) * read[
                    j, k
                ]
    expected = np.linalg.solve(np.eye(len(states)) - step, time)[index[0, -1, 0]]
    return count * checkpointing.interval / expected


def test_levels_equal_a_dense_markov_chain():
    rng, seen = np.random.default_rng(2), 0
    while seen < 60:
        checkpointing, causes = random_job(rng)
        if any(level.delay for level in checkpointing.levels):
            continue
        exact = rollback(checkpointing, causes).share
        if exact > 1e-3:
            assert exact == pytest.approx(chain_share(checkpointing, causes), rel=1e-9)
            seen += 1


def test_one_level_and_one_cause_are_the_known_closed_forms():
    rng = np.random.default_rng(3)
    for _ in range(200):
        checkpointing, causes = random_job(rng, levels=1)
        cause, level = causes[0], checkpointing.levels[0]
        level = CheckpointLevel(name="one", cost=level.cost, restart=level.restart)
        found = rollback(Checkpointing(levels=(level,), interval=checkpointing.interval), [cause])
        back = cause.detection + cause.restart + level.restart
        known = effective_training_time_ratio(1 / cause.rate, found.interval, level.cost, back)
        assert found.share == pytest.approx(known.mean, rel=1e-12)
        times = np.array([found.interval, level.cost, back]) * cause.rate
        second, _ = renewal_cumulants(known.mean, *times)
        assert found.variance_rate == pytest.approx(second / cause.rate, rel=1e-8)
        assert found.std(1e6) == pytest.approx(found.variance_rate**0.5 / 1e3)
        best = rollback(Checkpointing(levels=(level,)), [cause])
        assert best.interval == pytest.approx(
            checkpoint_interval(level.cost, 1 / cause.rate), rel=1e-12
        )


def test_a_delay_multiplies_the_time_of_a_segment():
    causes = [
        Cause(level="gpu", rate=2e-4, detection=50.0),
        Cause(level="rack", rate=1e-5, restart=900.0),
    ]
    rate = 2.1e-4
    for delay in (0.0, 10.0, 500.0, 20_000.0):
        level = CheckpointLevel(name="late", cost=30.0, restart=200.0, delay=delay)
        found = rollback(Checkpointing(levels=(level,), interval=800.0), causes)
        q = (2e-4 * np.exp(-rate * 250) + 1e-5 * np.exp(-rate * 1100)) / rate
        segment = np.exp(rate * delay) * 830 * exprel(rate * 830) / q
        assert found.share == pytest.approx(800 / segment, rel=1e-12)


def test_the_chosen_frequencies_are_the_best_of_all():
    rng = np.random.default_rng(4)
    for _ in range(15):
        checkpointing, causes = random_job(rng, levels=2)
        best = rollback(Checkpointing(levels=checkpointing.levels), causes)
        if best.share < 0.05 or best.every[0] > 60:
            continue
        for every in range(1, 2 * best.every[0] + 3):
            for factor in np.geomspace(0.3, 3.0, 41):
                other = Checkpointing(
                    levels=checkpointing.levels, interval=best.interval * factor, every=(every,)
                )
                assert rollback(other, causes).share <= best.share * (1 + 1e-7)


def test_shares_of_the_time_sum_to_one():
    rng = np.random.default_rng(5)
    for _ in range(300):
        checkpointing, causes = random_job(rng)
        with np.errstate(over="ignore"):  # third moments of jobs that hardly get on may be infinite
            found = rollback(checkpointing, causes)
        assert sum(found.buckets.values()) == pytest.approx(1.0, abs=1e-9)
        assert min(found.buckets.values()) >= 0.0
        assert found.buckets["productive"] == found.share


def test_a_level_that_nothing_reads_only_costs_time():
    idle = CheckpointLevel(name="idle", cost=1.0, restart=1.0, survives=dict.fromkeys(LEVELS, 0.0))
    last = CheckpointLevel(name="last", cost=30.0, restart=200.0)
    causes = [Cause(level="node", rate=1e-4)]
    alone = rollback(Checkpointing(levels=(last,)), causes)
    both = rollback(Checkpointing(levels=(idle, last)), causes)
    assert both.every == (1,)
    assert both.share == pytest.approx(alone.share, rel=1e-9)


def test_without_failures_nothing_is_lost():
    last = CheckpointLevel(name="last", cost=30.0, restart=200.0)
    free = rollback(Checkpointing(levels=(last,)), [])
    assert (free.share, free.interval, free.variance_rate) == (1.0, np.inf, 0.0)
    asked = rollback(Checkpointing(levels=(last,), interval=270.0), [Cause(level="node", rate=0.0)])
    assert asked.share == pytest.approx(0.9)
    assert asked.buckets["checkpoint"] == pytest.approx(0.1)


def test_a_job_that_never_gets_on_is_refused():
    slow = CheckpointLevel(name="slow", cost=1e6, restart=1e6)
    with pytest.raises(ValueError, match="checkpointing"):
        rollback(Checkpointing(levels=(slow,), interval=10.0), [Cause(level="node", rate=1e-2)])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"levels": ()}, "levels"),
        (
            {"levels": (CheckpointLevel(name="a", cost=1.0, restart=1.0, survives={"gpu": 0.5}),)},
            "levels",
        ),
        ({"interval": 0.0}, "interval"),
        ({"every": (2, 2)}, "every"),
        ({"every": (0,)}, "every"),
    ],
)
def test_bad_policies_are_named(arguments, named):
    first = CheckpointLevel(name="a", cost=1.0, restart=1.0)
    with pytest.raises((ValueError, TypeError), match=named):
        Checkpointing(**{"levels": (first, first), **arguments})
