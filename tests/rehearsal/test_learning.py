"""Whether a sample is a sample: batches, models of their worth, what is recorded, and a run that goes on."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from relparallel.published import data_folder
from relparallel.rehearsal.learning import POLICIES, Plan, compared, noise, steps
from relparallel.training import statistical_efficiency

RECORDED = data_folder() / "rehearsals" / "learning"
CELL = ["seed", "policy"]


@pytest.mark.parametrize("policy", POLICIES[1:])
def test_a_job_makes_as_many_samples_as_the_closed_form_says(policy):
    """Within three standard errors of blocks that are ten repairs long."""
    plan, block = Plan(batches=6000), 200.0
    made = steps(plan, policy, seed=1)
    ends = np.arange(0, made["time"].iloc[-1], block)
    done = np.interp(ends, made["time"], made["samples"] / plan.full, left=0.0)
    speeds = np.diff(done) / block
    error = speeds.std(ddof=1) / speeds.size**0.5
    assert error < 0.01
    assert abs(speeds.mean() - plan.mean_speed(policy)) < 3 * error


def test_policies_meet_the_same_failures_and_regrouping_never_has_fewer_replicas():
    plan = Plan()
    elastic, regroup = (steps(plan, policy, 1)["share"] for policy in ("elastic", "regroup"))
    assert (regroup >= elastic[: len(regroup)]).all()
    assert regroup.mean() > elastic.mean() + 0.1
    assert set(steps(plan, "keep", 1)["share"]) == set(steps(plan, "none", 1)["share"]) == {1.0}


@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_a_loss_that_follows_the_noise_is_foretold_with_it_and_not_by_samples(scale):
    plan, rows = Plan(), []
    for policy in POLICIES:
        made = steps(plan, policy, 1)
        worth = (made["share"] * statistical_efficiency(made["share"].to_numpy(), scale)).cumsum()
        made["loss"] = 3 - np.log(worth)
        rows.append(made.assign(seed=1, policy=policy))
    losses = pd.concat(rows).assign(squared=2.0, variance=2.0 * scale * plan.full)
    assert noise(losses).to_numpy() == pytest.approx(scale)
    between = 3 - np.log(0.5 * plan.batches), 3 - np.log(0.9 * plan.batches)
    found = compared(losses, between, noise(losses)).set_index("policy")
    assert found["noise"].to_numpy() == pytest.approx(found["measured"].to_numpy(), rel=0.03)
    shrunk = found.loc[["elastic", "regroup"]]
    assert (shrunk["steps"] < shrunk["noise"]).all()
    assert (shrunk["noise"] < shrunk["samples"]).all()
    assert found.loc["keep", "samples"] == pytest.approx(found.loc["keep", "noise"])


def test_recorded_losses_are_those_of_the_batches_that_the_failures_leave():
    losses, runs = (pd.read_csv(RECORDED / f"{name}.csv") for name in ("losses", "runs"))
    assert losses.notna().all(axis=None)
    assert runs["date"].notna().all()
    assert set(losses["policy"]) == set(POLICIES)
    for (seed, policy), own in losses.groupby(CELL):
        made = steps(Plan(), policy, seed).iloc[own["step"] - 1]
        assert own["time"].to_numpy() == pytest.approx(made["time"].to_numpy(), abs=0.06)
        assert own["samples"].tolist() == made["samples"].tolist()
        assert own["samples"].iloc[-1] >= Plan().full * Plan().batches
        assert own["loss"].iloc[-1] < 0.6 * own["loss"].iloc[0]
    calm, kept = (losses.query("policy == @name")["loss"].tolist() for name in ("none", "keep"))
    assert calm == kept


def test_recorded_elastic_jobs_learned_more_from_a_sample_and_beat_the_kept_batch():
    """Under every seed; counting samples foretells too long a time, the measured noise too short."""
    losses = pd.read_csv(RECORDED / "losses.csv")
    found = compared(losses, (2.4, 2.1), noise(losses)).set_index(["policy", "seed"])
    elastic, kept = found.loc["elastic"], found.loc["keep"]
    assert (elastic["reached"] < kept.loc[elastic.index, "reached"]).all()
    assert (elastic["measured"] < elastic["samples"]).all()
    assert elastic["noise"].mean() < elastic["measured"].mean()
    assert kept["measured"].to_numpy() == pytest.approx(kept["samples"].to_numpy(), rel=0.02)
    last = losses.groupby(["policy", "seed"])["loss"].last()
    assert (last["elastic"] < last["none"][elastic.index]).all()


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_a_run_that_was_stopped_goes_on_to_the_same_digits(tmp_path):
    from relparallel.rehearsal.gpt import train

    plan = Plan(batches=6, width=16, layers=1, length=8, rows=1, warm=2)
    shares = steps(plan, "elastic", 3)["share"].to_numpy()
    whole = train(plan, shares, 3, tmp_path / "whole")
    train(plan, shares[:4], 3, tmp_path / "pieces")
    assert train(plan, shares, 3, tmp_path / "pieces").equals(whole)
    assert whole["loss"].iloc[-1] < whole["loss"].iloc[0]
    assert whole["samples"].is_monotonic_increasing
