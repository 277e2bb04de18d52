"""Intervals of a plan by a log hold what happens next, as often as they say; rates as known do not."""

import json
import re

import numpy as np
import pytest

import relparallel as rp
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.planning.few_failures import FewFailures, mixed_interval
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureLog,
    FailureModel,
    Recovery,
    simulate,
    spares_needed,
)
from relparallel.training.goodput_forms import steady_state
from relparallel.units import DAY, HOUR, MINUTE, YEAR

NODES, SPAN, HORIZON = 64, 30 * DAY, 30 * DAY
STORAGE = (CheckpointLevel(name="storage", cost=20.0, restart=60.0),)
EVERY = Checkpointing(levels=STORAGE, interval=5400.0)
SPLIT = Strategy(tensor=8, pipeline=2, data=32)


def model(rate, repair):
    node = ComponentClass(name="x", level="node", rate=rate, repair=repair)
    return FailureModel(
        classes=(node,), cluster=Cluster(nodes=NODES), placement=Placement(strategy=SPLIT)
    )


def log(rng, many, repair):
    """So many failures in the mean, over a window; without a repair no end is known."""
    start = np.sort(rng.uniform(0, SPAN, rng.poisson(many)))
    end = start + (rng.exponential(repair, start.size) if repair else np.nan)
    return FailureLog(
        node=[f"n{k}" for k in range(start.size)],
        start=start.tolist(),
        end=np.where(end > SPAN, np.nan, end).tolist(),
        cause=["x"] * start.size,
        population=max(NODES, start.size),
        begin=0.0,
        finish=SPAN,
        still=(end > SPAN) if start.size else None,
    )


def coverage(policy, spares, repair, given, logs):
    """Shares of the next thirty days that lie in the intervals of a plan, and in those of rivals.

    The rivals take the rate for known: a normal law, and the same mixture of a single draw.
    """
    rng = np.random.default_rng(7)
    recovery = Recovery(policy, repair=repair, restart=300.0, pause=30.0)
    ours, normal, known, found = [], [], [], {}
    for many in (3, 5, 8, 15, 30):
        truth = simulate(model(many / (NODES * SPAN), repair), 1.0, EVERY, recovery, spares,
                         years=1.001 * 200 * HORIZON / YEAR, rng=rng, replications=50)  # fmt: skip
        for share in rng.choice(truth.samples, logs // 5):
            one = log(rng, many, 0 if given else repair)
            few = FewFailures(log=one, given=given)
            seen = few.repair.value if few.repair else repair
            key = (few.rate, few.repair)
            if key not in found:
                state = steady_state(model(few.rate.value, seen), EVERY, recovery, spares)
                sd = 1.645 * (state.variance_rate / HORIZON) ** 0.5
                alone = mixed_interval([state], HORIZON)
                around = few.share(state, HORIZON)
                found[key] = (around, (state.share - sd, state.share + sd), alone)
            for inside, (low, high) in zip((ours, normal, known), found[key], strict=True):
                inside.append(low <= share <= high)
    return np.mean(ours), np.mean(normal), np.mean(known)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "spares", "repair"),
    [("spares", 2, DAY), ("spares", 0, DAY), ("elastic", 0, 4 * DAY)],
)
def test_intervals_of_a_thousand_logs_hold_the_next_thirty_days(policy, spares, repair):
    ours, normal, known = coverage(policy, spares, repair, given=True, logs=1000)
    assert 0.85 <= ours <= 0.95
    assert normal < ours - 0.02
    assert known < min(0.88, ours - 0.04)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "repair"), [("spares", DAY), ("elastic", 4 * DAY)])
def test_intervals_hold_where_repairs_are_estimated_too(policy, repair):
    ours, normal, known = coverage(policy, 0, repair, given=False, logs=300)
    assert 0.85 <= ours <= 0.95
    assert normal < 0.85
    assert known < 0.82


def of_plan(one, **options):
    """A plan by a log, its first row and what it says, in one line."""
    asked = {"gpus": 512, "global_batch": 512, "policies": ("spares",), "spares": 0, **options}
    found = rp.plan("gpt3-6.7b", "a100-80gb-selene", rates=one, strategies=1,
                    only_measured=True, **{"measured": {SPLIT: 1e6}} | asked)  # fmt: skip
    return found, found.to_frame().iloc[0], " ".join(found.to_text(10**4).split())


def by_hand(start, took, **more):
    names = [f"n{k}" for k in range(len(start))]
    given = {"population": NODES, "begin": 0.0, "finish": 90 * DAY, "cause": ["gpu"] * len(start)}
    return FailureLog(
        node=names,
        start=[day * DAY for day in start],
        end=[day * DAY + one * HOUR for day, one in zip(start, took, strict=True)],
        **given | more,
    )


def test_more_failures_leave_less_doubt():
    """The same rate and repair from a longer window: everything that is in doubt narrows."""
    wide = []
    for times in (1, 3, 12):
        start = np.linspace(1, 90 * times - 1, 4 * times).tolist()
        one = by_hand(start, [10.0, 30.0] * 2 * times, finish=90 * times * DAY)
        _, row, said = of_plan(one)
        few, many = map(int, re.search(r"failures \((\d+) to (\d+)\)", said).groups())
        goodput = row["goodput to"] - row["goodput from"]
        wide.append((goodput, row["checkpoint to"] / row["checkpoint from"], many - few))
        assert row["goodput from"] < row["relative goodput"] < row["goodput to"]
        assert row["checkpoint from"] < row["checkpoint every [min]"] < row["checkpoint to"]
        assert few <= spares_needed(NODES, one.rate, 20 * HOUR, 1e-3, "hot") <= many
    assert (np.diff(np.array(wide), axis=0) <= 0).all()
    assert wide[0][0] > 1.3 * wide[2][0]


def test_a_plan_says_what_a_log_is():
    found, _, said = of_plan(by_hand([20, 21], [4, 8], resumed=[20 * DAY + 300, 21 * DAY + 600]))
    assert "the log: 2 failures of 64 nodes in 90 days, 0.347 per 1000" in said
    assert "node-days (0.062 to 1.1, 90 %)" in said
    assert "repair of a node 6 h (2.53 h to 33.8 h) by 2 repairs of the log" in said
    assert "the job was back 7.5 min after a failure (2 known, at most 10 min)" in said
    assert "the plan takes 5 min for a restart" in said
    assert re.search(r"cause\s+failures\s+fails\s+mean repair \[h\].*gpu\s+2\s+gpu\s+6", said)
    assert "mean repair [h]" in found._repr_html_()
    guessed = of_plan(by_hand([20, 21], [4, 8], begin=None, finish=None))[2]
    assert "the observation window is a guess" in guessed


def test_a_requeue_is_no_repair_and_what_is_given_is_used():
    """The job is back after five minutes; its node is not, and a week makes a difference."""
    unknown = {"resumed": [20 * DAY + 300, 60 * DAY + 300]}
    one = by_hand([20, 60], [np.nan] * 2, **unknown)
    _, assumed, said = of_plan(one)
    assert "repair of a node 24 h: assumed by recovery policy spares, the log does not say" in said
    _, week, told = of_plan(one, repair=7 * DAY)
    assert "repair of a node 7 days: as given (repair=)" in told
    assert week["relative goodput"] < assumed["relative goodput"] - 0.01
    seen = by_hand([20, 60], [4, 8])
    _, row, told = of_plan(seen, repair=7 * DAY)
    assert "as given (repair=); the log has 6 h" in told
    assert row["relative goodput"] == pytest.approx(week["relative goodput"], rel=1e-3)
    assert row["relative goodput"] < of_plan(seen)[1]["relative goodput"] - 0.01
    down = by_hand([20, 60], [np.nan] * 2, still=np.array([False, True]), cause=["gpu", "power"])
    assert "it is longer than 30 days for one of 1 that were still down" in of_plan(down)[2]
    some = by_hand([20, 60], [4, np.nan], cause=["gpu", "nic"])
    assert "1 nodes still down at its end counted by Kaplan and Meier; nic" in of_plan(some)[2]


@pytest.mark.parametrize("many", [0, 1])
def test_none_or_one_failure_is_an_answer(many, tmp_path):
    one = by_hand([20.0][:many], [4.0][:many])
    for rank in ("independent", "events"):
        found, row, said = of_plan(one, rank=rank)
        assert f"the log: {many} failures of 64 nodes in 90 days" in said
        assert 0 < row["goodput from"] < row["relative goodput"] < row["goodput to"] <= 1
        assert np.isfinite(row["checkpoint to"])
    assert "mean of what may be, half a failure" in said or many
    found.save(tmp_path / "plan.json")
    assert any(
        "the log:" in note for note in json.loads((tmp_path / "plan.json").read_text())["notes"]
    )
    by_mean = by_hand([20.0], [4.0]) if many else by_hand([], [])
    again = FailureModel(classes=by_mean.classes(), cluster=Cluster(nodes=NODES))
    assert again.node_rate == pytest.approx(one.rate_interval().value)


def test_checkpoints_are_written_though_no_failure_was_seen_to_lose_state():
    """Half a failure over the window stands for those that it did not see; Young's root by hand."""
    one = by_hand([20, 60], [4, 8])
    copies = Strategy(tensor=8, data=64)
    options = {"policies": ("elastic",), "checkpoints": Checkpointing(levels=STORAGE)}
    _, row, said = of_plan(one, **options, measured={copies: 1e6})
    between = 2 * one.exposure / NODES
    assert row["checkpoint every [min]"] * MINUTE == pytest.approx(
        (2 * 20 * between) ** 0.5, rel=0.01
    )
    assert row["checkpoint from"] < row["checkpoint every [min]"] < row["checkpoint to"]
    assert (
        "no failure of the log loses the state of a job that recovers by elastic: gpu (gpu)" in said
    )
    assert "half a one over the time watched: once in" in said
    kept = row["relative goodput"]
    own = Checkpointing(levels=STORAGE, unseen=DAY)
    _, row, _ = of_plan(one, **options | {"checkpoints": own}, measured={copies: 1e6})
    assert row["checkpoint every [min]"] == pytest.approx(DAY / MINUTE)
    assert row["relative goodput"] > kept  # it costs what it costs
    loses = by_hand([20, 60], [4, 8], levels={"gpu": "job"})
    _, row, said = of_plan(loses, **options, measured={copies: 1e6})
    assert row["checkpoint every [min]"] * MINUTE < (2 * 20 * between / 4) ** 0.5
    assert "no failure of the log loses" not in said


def test_a_mixture_by_brute_force():
    """Quantiles of draws of every state, with those in which nothing fails."""
    recovery = Recovery("spares", repair=DAY, restart=300.0)
    states = [steady_state(model(n / (NODES * SPAN), DAY), EVERY, recovery, 0) for n in (1, 4, 12)]
    low, high = mixed_interval(states, HORIZON)
    rng, drawn = np.random.default_rng(1), []
    for n in (1, 4, 12):
        drawn.append(simulate(model(n / (NODES * SPAN), DAY), 1.0, EVERY, recovery, 0, rng=rng,
                              years=1.001 * 2000 * HORIZON / YEAR, replications=20).samples)  # fmt: skip
    assert low == pytest.approx(np.quantile(np.concatenate(drawn), 0.05), abs=0.015)
    assert high == pytest.approx(np.concatenate(drawn).max(), abs=1e-4)
