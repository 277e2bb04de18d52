"""Sharing a cluster: published replays job by job, policies against brute force, failing nodes."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s38.shared_jobs import (
    StatisticalGoodput,
    modelled_application,
    read_application,
    read_shared_jobs,
    statistical_goodput_fit,
)
from chapters.s38.sharing import share_cluster
from chapters.s38.sharing_policies import POLICIES, SharedJob, _regret, pollux, tiresias
from public_data import DATA, needs_data
from relparallel.units import DAY, HOUR

TRUE = StatisticalGoodput(
    compute=0.1,
    compute_per_sample=0.01,
    nodes=0.05,
    nodes_per_replica=0.005,
    local=0.02,
    local_per_replica=0.002,
    overlap=2,
    noise=1280,
    batch=128,
)
APPS = {
    "short": modelled_application(TRUE, epochs=5, steps=100, limits=(8, 64, 2048)),
    "long": modelled_application(TRUE, epochs=50, steps=200, limits=(8, 64, 2048)),
}
ARTEFACT = DATA / "adaptdl-osdi21"


def workload(count: int = 20, seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "name": [f"job {i}" for i in range(count)],
            "time": np.sort(draw.uniform(0, 3600, count)).round(),
            "application": draw.choice(list(APPS), count),
            "num_replicas": draw.choice([1, 2, 4, 8], count),
            "batch_size": draw.choice([128, 256, 1024], count),
        }
    )


@needs_data
@pytest.mark.parametrize("policy", [pytest.param("tiresias", marks=pytest.mark.slow), "optimus"])
def test_every_job_of_the_published_workload_ends_at_the_published_second(policy):
    how = {"bert": 2, "cifar10": 100, "deepspeech2": 80, "imagenet": 90, "ncf": 10, "yolov3": 50}
    apps = {
        name: read_application(
            ARTEFACT / "traces" / name,
            epochs=epochs,
            largest=8 if name == "yolov3" else None,
            most=1 if name == "ncf" else 64,
        )
        for name, epochs in how.items()
    }
    run = share_cluster(read_shared_jobs(ARTEFACT / "workloads" / "workload-6.csv"), apps, policy)
    summary = json.loads(
        (ARTEFACT / "results-jobload" / f"{policy}-1.0" / "summary.json").read_text()
    )
    assert run.jobs["time"].to_dict() == pytest.approx(summary["jcts"]["workload-6"], abs=1e-6)
    assert run.mean_time == summary["avgs"]["workload-6"]


@pytest.mark.parametrize(
    "policy", [*POLICIES, lambda jobs, gpus: {jobs[0]: min(gpus, jobs[0].gpus)}]
)
def test_no_gpu_is_given_twice_and_every_job_ends(policy, monkeypatch):
    jobs, seen = workload(), []

    def watched(job, allocation, restart):
        move(job, allocation, restart)
        seen.append(job)
        held = np.zeros(4)
        for other in {id(entry): entry for entry in seen}.values():
            for node, gpus in other.allocation.items() if other.completion is None else []:
                held[node] += gpus
        assert held.max() <= 4

    move = SharedJob.move
    monkeypatch.setattr(SharedJob, "move", watched)
    run = share_cluster(jobs, APPS, policy, nodes=4)
    assert len(run.jobs) == len(jobs)
    assert (run.jobs["completion"] > run.jobs["arrival"]).all()


def test_a_single_job_takes_what_the_formula_says():
    jobs = pd.DataFrame(
        {"name": ["a"], "time": [0], "application": "short", "num_replicas": 8, "batch_size": 512}
    )
    run = share_cluster(jobs, APPS, "tiresias", nodes=2, restart=25.0)
    samples = 5 * 100 * 128 / float(TRUE.efficiency(512)) / float(TRUE.throughput(2, 8, 64))
    # epochs end in whole seconds
    assert run.jobs["time"]["a"] == pytest.approx(60 + 25 + samples, abs=5)


def test_tiresias_serves_first_who_had_least_and_demotes_after_sixteen_gpu_hours():
    first, second, third = (
        SharedJob(name=name, application=APPS["long"], arrival=i, gpus=4, batch=512, age=100.0 - i)
        for i, name in enumerate("abc")
    )
    first.service = 16 * HOUR - 1
    assert list(tiresias([first, second, third], 8).values()) == [4, 4, 0]
    first.service = 16 * HOUR
    shares = tiresias([first, second, third], 8)
    assert {job.name: gpus for job, gpus in shares.items()} == {"b": 4, "c": 4, "a": 0}


@settings(deadline=None)
@given(
    held=st.lists(st.integers(0, 4), min_size=2, max_size=3),
    gpus=st.integers(2, 7),
    ages=st.lists(st.integers(30, 4000), min_size=3, max_size=3),
)
def test_the_programme_of_pollux_finds_the_best_shares(held, gpus, ages):
    jobs = [
        SharedJob(
            name=str(i),
            application=APPS["long"],
            arrival=0,
            gpus=4,
            batch=None,
            most=max(n, 1),
            allocation={0: n} if n else {},
            samples=32,
            starts=1,
            age=age,
        )
        for i, (n, age) in enumerate(zip(held, ages, strict=False))
    ]
    fair = -(-gpus // len(jobs))
    costs = [_regret(job, gpus, fair) for job in jobs]
    every = [s for s in product(range(gpus + 1), repeat=len(jobs)) if sum(s) <= gpus]
    least = min(sum(c[n] for c, n in zip(costs, shares, strict=True)) for shares in every)
    found = pollux(jobs, gpus)
    assert sum(found.values()) <= gpus
    assert sum(c[found[job]] for c, job in zip(costs, jobs, strict=True)) == pytest.approx(
        least, rel=1e-12
    )


def test_pollux_counts_goodput_over_that_of_an_equal_share_and_restarts():
    app = APPS["long"]
    job = SharedJob(
        name="a",
        application=app,
        arrival=0,
        gpus=4,
        batch=None,
        most=4,
        allocation={0: 2},
        samples=64,
        starts=3,
        age=570.0,
    )
    speed = app.believed(job.noise)[0] / app.believed(job.noise)[0][3] / 4
    cost = _regret(job, 16, fair=4)
    assert cost[2] == pytest.approx(1 / (speed[1] + 1e-3), rel=1e-12)  # stays where it is
    assert cost[8] == pytest.approx(1 / (speed[7] * (570 - 2 * 30) / (570 + 30) + 1e-3), rel=1e-12)
    assert cost[0] == pytest.approx(1e3)
    assert np.isinf(cost[9:]).all()  # twice what it ever had, no more


def test_failures_are_the_same_for_every_policy_and_cost_time():
    jobs = workload()
    for policy in POLICIES:
        sound = share_cluster(jobs, APPS, policy, nodes=4)
        hit, again = (
            share_cluster(
                jobs, APPS, policy, nodes=4, node_rate=1 / HOUR, rng=np.random.default_rng(1)
            )
            for _ in range(2)
        )
        assert hit.jobs.equals(again.jobs)
        assert hit.jobs["failures"].sum() > 0
        assert hit.mean_time > sound.mean_time
    rare = share_cluster(
        jobs, APPS, "tiresias", nodes=4, node_rate=1e-12, rng=np.random.default_rng(1)
    )
    assert rare.jobs.equals(share_cluster(jobs, APPS, "tiresias", nodes=4).jobs)


@pytest.mark.parametrize("seed", range(3))
def test_frequent_checkpoints_and_going_on_with_the_rest_lose_less(seed):
    jobs = workload(seed=seed)
    options = {"nodes": 4, "node_rate": 2 / HOUR, "repair": 600.0}

    def mean(policy, checkpoint):
        rng = np.random.default_rng(seed)
        return share_cluster(
            jobs, APPS, policy, **options, checkpoint=checkpoint, rng=rng
        ).mean_time

    assert mean("tiresias", 60.0) < mean("tiresias", 3600.0)
    rigid = POLICIES["elastic"].share
    assert mean("elastic", 3600.0) < mean(rigid, 3600.0)  # the same shares, from checkpoints


def test_progress_is_lost_back_to_the_checkpoint_and_no_further():
    job = SharedJob(name="a", application=APPS["long"], arrival=0, gpus=4, batch=512)
    job.move({0: 4}, restart=0.0)
    job.advance(0.0, 300.0, checkpoint=200.0)
    assert job.saved == job.progress > 0
    job.advance(300.0, 100.0, checkpoint=200.0)
    assert job.progress > job.saved
    job.fail(np.array([True]), survives=False)
    assert (job.progress, job.allocation, job.failures) == (job.saved, {}, 1)
    assert APPS["long"].progress[job.epoch] <= job.progress < APPS["long"].progress[job.epoch + 1]


@given(batch=st.integers(128, 4096), noise=st.floats(0, 1e6))
def test_efficiency_falls_from_one_with_the_batch_and_rises_with_the_noise(batch, noise):
    job = StatisticalGoodput(**{n: getattr(TRUE, n) for n in TRUE.__slots__} | {"noise": noise})
    assert float(job.efficiency(128)) == pytest.approx(1, rel=1e-12)
    assert 128 / batch <= float(job.efficiency(batch)) * (1 + 1e-12)
    assert float(job.efficiency(batch)) <= 1 + 1e-12
    assert float(job.efficiency(batch)) * (noise + batch) == pytest.approx(noise + 128, rel=1e-12)


@given(samples=st.integers(1, 512), replicas=st.integers(2, 64), overlap=st.floats(1, 10))
def test_a_step_lies_between_full_overlap_and_none(samples, replicas, overlap):
    job = StatisticalGoodput(**{n: getattr(TRUE, n) for n in TRUE.__slots__} | {"overlap": overlap})
    gradients, summed = 0.1 + 0.01 * samples, 0.05 + 0.005 * (replicas - 2)
    step = float(job.step_time(2, replicas, samples))
    assert max(gradients, summed) * (1 - 1e-12) <= step <= (gradients + summed) * (1 + 1e-12)
    assert float(job.step_time(2, replicas, samples, 3)) == pytest.approx(
        step + 3 * gradients, rel=1e-12
    )


def test_a_fit_finds_the_parameters_that_made_the_times():
    rows = [
        (n, k, m)
        for n, k in ((1, 1), (1, 2), (1, 4), (2, 4), (4, 16), (8, 32))
        for m in (4, 16, 64)
    ]
    times = pd.DataFrame(rows, columns=["num_nodes", "num_replicas", "local_bsz"])
    times["step_time"] = TRUE.step_time(*times.to_numpy().T)
    times["sync_time"] = times["step_time"] - 0.1 - 0.01 * times["local_bsz"]
    found = statistical_goodput_fit(times, noise=1280, batch=128)
    for name in TRUE.__slots__:
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=1e-3), name
    with pytest.raises(
        ValueError, match="times must hold steps on one GPU, on one node and on several nodes"
    ):
        statistical_goodput_fit(times[times["num_nodes"] == 1], noise=1280, batch=128)


TIMES = "local_bsz,step_time,sync_time"
GRADIENTS = "progress,iteration,grad_sqr,grad_var"


def artefact(folder: Path, **changes: str) -> Path:
    """A small application in the format of the artefact."""
    rows = [(p, m) for p in ("1", "2", "4", "11", "44") for m in (8, 64)]
    times = [(p, m, 0.1 + 0.01 * m, 0.02 * (p != "1")) for p, m in rows]
    files = {
        "placements": f"placement,{TIMES}\n"
        + "".join(f"{p},{m},{s + w},{w}\n" for p, m, s, w in times),
        "scalability": f"num_nodes,num_replicas,{TIMES}\n16,64,8,0.3,0.1\n16,64,64,0.9,0.1\n",
        "validation-64": f"{GRADIENTS}\n10,10,1,2\n20,20,1,2\n",
    } | changes
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_an_application_is_read_and_interpolated(tmp_path):
    app = read_application(artefact(tmp_path), epochs=2)
    assert (app.epochs, app.smallest, app.largest) == (2, 8, 64)
    assert app.step_times((4,), 36) == pytest.approx((0.1 + 0.36 + 0.02, 0.02))
    assert app.step_times((4, 4), 8) == app.step_times((4, 4), 8)
    assert app.noise(64, 1) == 128
    with pytest.raises(ValueError, match="epochs must be at most 2, the epochs measured in"):
        read_application(tmp_path, epochs=3)


def test_times_that_are_negative_or_missing_are_refused(tmp_path):
    negative = r"step_time of .*placements\.csv must be a number >= 0"
    for bad, said in (("nan", "Unable to parse"), ("-1", negative)):
        with pytest.raises(ValueError, match=said):
            read_application(
                artefact(tmp_path, placements=f"placement,{TIMES}\n1,8,{bad},0\n"), epochs=2
            )


def test_greedy_policies_are_refused():
    with pytest.raises(ValueError, match="policy must not give away more GPUs than there are"):
        share_cluster(workload(), APPS, lambda jobs, gpus: dict.fromkeys(jobs, gpus + 1), nodes=2)
    assert share_cluster(
        workload(2), APPS, interval=1.0, node_rate=1 / DAY, rng=np.random.default_rng(0)
    ).jobs.size
