from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from chapters.s41.fleet import Fleet
from pace import pace
from relparallel.units import DAY


@cache
def study():
    """The default study."""
    return Fleet().simulate(replications=pace(300, 1000), rng=np.random.default_rng(1))


def test_the_default_study_has_the_failures_of_the_closed_form():
    # Bad servers of the spare pool come on top of the formula, those that are pre-empted.
    fleet, preempted = Fleet(), study().buckets["preemption"].to_numpy() / Fleet().preemption
    more = fleet.bad_share * fleet.bad_factor / (1 + fleet.bad_factor) / fleet.repair_works
    rest = study().failures - more * preempted
    assert abs(rest.mean() - fleet.expected_failures) < 3 * rest.std() / rest.size**0.5
    assert study().mean_failures.value == pytest.approx(11170, rel=5e-3)


def test_time_is_closed():
    spent = study().buckets
    assert (spent["work"] == 256 * DAY).all()
    np.testing.assert_allclose(spent["recovery"], study().failures * 1200.0, rtol=1e-12)
    assert (spent["selection"] % 180 == 0).all()
    assert study().mean_total_time.value == pytest.approx(spent.sum(axis=1).mean(), rel=1e-12)


def test_intervals_cover_the_mean():
    rng, truth = np.random.default_rng(2), study().mean_total_time.value
    covered = [
        (found := Fleet().simulate(replications=5, rng=rng).mean_total_time).lower
        <= truth
        <= found.upper
        for _ in range(pace(40, 100))
    ]
    assert np.mean(covered) >= 0.95 - 3 * 0.218 / len(covered) ** 0.5


def brute_force(fleet, rng):
    """The same job with servers as objects: failures, and seconds in all."""
    total = fleet.working_pool + fleet.spare_pool
    bad = rng.permutation(np.arange(total) < int(total * fleet.bad_share)).tolist()
    idle, spares = list(range(fleet.working_pool)), list(range(fleet.working_pool, total))
    mending, clock, work, failures = [], 0.0, 0.0, 0  # mending: (end, server, by hand)
    job, ready = [], []

    def wait(until):
        nonlocal mending
        while mending and min(mending)[0] <= until:
            entry = min(mending)
            mending.remove(entry)
            end, server, hand = entry
            if not hand and rng.random() < fleet.to_manual:
                mending.append((end + rng.exponential(fleet.manual_repair), server, True))
                continue
            if rng.random() >= (fleet.manual_fails if hand else fleet.automatic_fails):
                bad[server] = False
            (ready if len(ready) < fleet.standbys else idle).append(server)

    while True:
        up = rng.permutation(idle + job + ready).tolist()
        if len(up) < fleet.servers:
            job, ready, idle = [], [], up
            while len(idle) + len(ready) < fleet.servers + fleet.standbys:
                if spares:
                    clock += fleet.preemption
                    wait(clock)
                    idle.append(spares.pop(rng.integers(len(spares))))
                else:
                    clock = min(mending)[0]
                    wait(clock)
            up = rng.permutation(idle + ready).tolist()
        job, rest = up[: fleet.servers], up[fleet.servers :]
        ready, idle = rest[: fleet.standbys], rest[fleet.standbys :]
        clock += fleet.selection
        wait(clock)
        while True:
            rates = (
                np.array([1 + fleet.bad_factor * bad[server] for server in job])
                * fleet.failure_rate
            )
            step = rng.exponential(1 / rates.sum())
            # A standby or a repair in between changes no rate of the job.
            if work + step >= fleet.work:
                return failures, clock + fleet.work - work
            work, clock, failures = work + step, clock + step, failures + 1
            wait(clock)
            failed = job.pop(rng.choice(len(job), p=rates / rates.sum()))
            mending.append((clock + rng.exponential(fleet.automatic_repair), failed, False))
            clock += fleet.recovery
            wait(clock)
            if not ready:
                break
            job.append(ready.pop(0))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"spare_pool": 0, "manual_repair": 9 * DAY},
        {"standbys": 1, "working_pool": 21, "bad_share": 0.5},
    ],
)
def test_counts_agree_with_servers_as_objects(changes):
    small = Fleet(
        servers=20,
        work=40 * DAY,
        standbys=2,
        working_pool=24,
        spare_pool=4,
        failure_rate=0.05 / DAY,
        bad_share=0.3,
        bad_factor=4.0,
    )
    fleet, rng = replace(small, **changes), np.random.default_rng(3)
    truth = np.array([brute_force(fleet, rng) for _ in range(pace(150, 400))])
    study = fleet.simulate(replications=4000, rng=rng)
    for ours, theirs in ((study.failures, truth[:, 0]), (study.total_time, truth[:, 1])):
        error = (ours.var() / ours.size + theirs.var() / theirs.size) ** 0.5
        assert abs(ours.mean() - theirs.mean()) < 3 * error


def test_undiagnosed_servers_stay_bad():
    fleet = Fleet(work=64 * DAY, diagnosed=0.5, misdiagnosed=0.2)
    study = fleet.simulate(replications=20, rng=np.random.default_rng(4))
    plain = Fleet(work=64 * DAY).simulate(replications=20, rng=np.random.default_rng(4))
    assert study.failures.mean() > plain.failures.mean()


def test_an_executor_does_not_change_the_result():
    here = Fleet(work=DAY).simulate(replications=6, rng=np.random.default_rng(5))
    with ThreadPoolExecutor(2) as pool:
        there = Fleet(work=DAY).simulate(
            replications=6, rng=np.random.default_rng(5), executor=pool
        )
    np.testing.assert_array_equal(here.failures, there.failures)
    np.testing.assert_array_equal(here.total_time, there.total_time)


def test_a_pool_that_is_too_small_is_refused():
    with pytest.raises(
        ValueError, match=r"working_pool must be an integer in .4112, 10000000., got 4100"
    ):
        Fleet(working_pool=4100)
