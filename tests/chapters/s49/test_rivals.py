"""Objectives of others against draws and a simulated job, and their choices on a record."""

from dataclasses import replace

import numpy as np
import pytest

from chapters import s49
from chapters.s49.bursts import IN_A_ROW, failing
from relparallel.hardware import Cluster, cluster
from relparallel.optimize import joint
from relparallel.parallel import Placement, Strategy
from relparallel.training import Recovery, goodput
from relparallel.units import DAY
from relparallel.workload import transformer
from small_logs import PLAN, in_threes


def job(policy: str, spares: int = 0, size: int = 2, nodes: int = 12) -> s49.Candidate:
    strategy = Strategy(tensor=8, pipeline=size, data=nodes // size, zero_stage=1)
    placed = Placement(strategy=strategy, order=IN_A_ROW)
    return s49.Candidate(placed, policy, Cluster(nodes=nodes), spares, 1e5)


@pytest.mark.parametrize("policy", s49.POLICIES)
def test_liveput_is_what_draws_of_missing_nodes_leave(policy):
    """As the authors sample preempted instances: at random, idle ones take the places first."""
    one, rng = job(policy, spares=2), np.random.default_rng(3)
    down, left = np.array([0.2, 0.2, 0.2, 0.2, 0.1, 0.1]), []
    for k in rng.choice(down.size, p=down, size=20_000):
        missing = rng.choice(12, max(int(k) - 2, 0), replace=False)
        whole = {"elastic": 6 - len(set(missing // 2)), "regroup": (12 - len(missing)) // 2}
        left.append(whole.get(policy, 6 * (len(missing) == 0)) / 6)
    assert s49.liveput(one, down, 0.0, 300.0) / 1e5 == pytest.approx(np.mean(left), abs=0.01)


def test_liveput_pays_for_migrations_and_not_for_lost_work():
    up = np.array([1.0])
    assert s49.liveput(job("regroup"), up, 1e-6, 300.0) == pytest.approx(1e5 * (1 - 12e-6 * 300))


def test_the_model_of_mofa_is_a_job_whose_nodes_are_replaced_at_once():
    one, rate = job("restart", nodes=400), 4e-3 / DAY
    quick = Recovery("restart", 1.0)
    kept = goodput(failing(one.placement, one.cluster, rate, None), 1.0, PLAN, quick, 0).mean
    assert s49.mofa(one, rate, PLAN) / 1e5 == pytest.approx(kept, abs=2e-3)


def test_candidates_are_on_the_nodes_that_are_owned_and_fit():
    owned = replace(cluster("a100-80gb-selene", gpus=96), nodes=12)
    splits = (Strategy(tensor=8, pipeline=2, zero_stage=1),)
    asked = list(s49.candidates(transformer("gpt3-6.7b"), owned, splits, range(6)))
    assert {one.cluster.nodes + one.spares for one in asked} == {12}
    assert {one.spares for one in asked} == {0, 2, 4, 6}
    copies = {(one.shape.replicas, one.placement.strategy.state_copies) for one in asked}
    assert copies == {(6, 1), (6, 2), (5, 1), (5, 5), (4, 1), (4, 2), (3, 1), (3, 3)}


def test_mofa_holds_no_spares_and_loses_where_nodes_stay_away():
    owned = replace(cluster("a100-80gb-selene", gpus=480), nodes=60)
    splits = (Strategy(tensor=8, pipeline=2, zero_stage=1),)
    asked = list(s49.candidates(transformer("gpt3-6.7b"), owned, splits, (0, 6)))
    how = {"plan": PLAN, "pause": 30.0, "rng": np.random.default_rng(0), "replications": 2}
    found = s49.verdicts(asked, in_threes(), 6, s49.POLICIES, **how).loc["whole"]
    assert found.loc["best of the replay", "loses"] == 0
    assert (found["loses"] >= 0).all()
    assert found.loc["MoFa", "spares"] == 0
    assert found.loc["MoFa", "loses"] > found.loc["MoFa, 6 spares or more", "loses"] + 0.1
    assert found.loc["joint", "loses"] <= found["loses"].drop("best of the replay").min() + 0.01


@pytest.mark.slow
def test_the_splits_are_the_fastest_of_their_size_in_the_whole_grid():
    limits = {"schedule": ("1f1b", "interleaved_1f1b"), "tensor": (1, 2, 4, 8)}
    nodes, model = cluster("h100-80gb-dgx", gpus=3200), transformer("llama3-405b")
    plan = joint(model, nodes, global_batch=1600, limits=limits, spares=0)
    grid = plan.search.sites[0].fastest
    sizes = np.array([grid.grid[row].model_parallel // 8 for row in range(grid.time.size)])
    for split in s49.SPLITS:
        alike = np.flatnonzero(sizes == split.model_parallel // 8)
        best = grid.grid[int(alike[np.argmin(grid.time[alike])])]
        assert replace(best, data=1, shard=None) == split
