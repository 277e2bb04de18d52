"""Is a sample a sample? A small GPT is trained on the batches that failures leave of a job.

Eight replicas of eight nodes train it in the model's time, in which a step of the full batch takes
one unit. Lives and repairs are drawn once per seed, and every policy meets the same. Samples come in
an order drawn once per seed as well: policies only cut it into other batches. What a failure costs
beside the missing nodes (pauses, lost steps) is left out; what is recorded is read without PyTorch.
"""

import platform
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel._checks import require_int
from relparallel.rehearsal.gpt import Plan, train
from relparallel.training.recovery import speed_of, statistical_efficiency

POLICIES: Final = ("none", "elastic", "keep", "regroup")  # none: nothing fails
TRAINED: Final = ("none", "elastic", "regroup")  # a kept batch makes the batches of none, later
_COLUMNS: Final = [*("seed", "policy", "step", "samples", "time", "loss", "squared", "variance")]


def learn(folder: Path, seeds: int) -> Iterator[str]:
    """Train under every policy and seed, record the losses, tell how it goes.

    A run that was stopped goes on where it was, from a state in the folder for temporary files.
    """
    require_int(seeds=seeds, at_least=1)
    states, losses, runs = Path(tempfile.gettempdir()) / "relparallel-learning", [], []
    for path in (folder, states):
        path.mkdir(parents=True, exist_ok=True)
    plan = Plan()
    for seed, policy in [(seed, policy) for seed in range(1, seeds + 1) for policy in TRAINED]:
        shares = steps(plan, policy, seed)["share"].to_numpy()
        state = states / f"{policy}-{seed}"
        found = train(plan, shares, seed, state)
        ended = datetime.fromtimestamp(state.stat().st_mtime, UTC).isoformat(timespec="minutes")
        for name in (policy, "keep") if policy == "none" else (policy,):
            time = steps(plan, name, seed)["time"].to_numpy()[found["step"] - 1]
            own = found.assign(seed=seed, policy=name, time=time)[_COLUMNS]
            losses.append(own)
            made = {"date": ended, "python": platform.python_version()}
            runs.append(made | own.iloc[-1, :-2].to_dict())
        for name, rows in (("losses", pd.concat(losses)), ("runs", pd.DataFrame(runs))):
            rows.to_csv(folder / f"{name}.csv", index=False, float_format="%.5g")
        yield f"{policy}, seed {seed}: loss {found['loss'].iloc[-1]:.4f}"
    for path in states.iterdir():
        path.unlink()


def nodes_up(plan: Plan, seed: int) -> Iterator[tuple[float, Any]]:
    """From when on which nodes are up, change by change, in the steady state from the start."""
    rng = np.random.default_rng([seed, plan.nodes])
    up = rng.random(plan.nodes) < 1 / (1 + plan.load)
    life = plan.repair / plan.load
    change = rng.exponential(np.where(up, life, plan.repair))
    yield 0.0, up.copy()
    while True:
        node = change.argmin()
        now, up[node] = change[node], not up[node]
        yield float(now), up.copy()
        change[node] += rng.exponential(life if up[node] else plan.repair)


def steps(plan: Plan, policy: str, seed: int) -> pd.DataFrame:
    """Every step of a job until all samples are used: when it ends, and its share of the full batch.

    A step is made by the replicas that are up when it begins.
    """
    calm = replace(plan, load=1e-12) if policy == "none" else plan
    changes, now, done, rows = nodes_up(calm, seed), 0.0, 0, []
    _, up = next(changes)
    until, following = next(changes)
    while done < plan.full * plan.batches:
        while until <= now:
            up = following
            until, following = next(changes)
        whole = up.reshape(plan.replicas, -1).all(axis=1).sum()
        alive = int(up.sum() // plan.nodes_per_replica if policy == "regroup" else whole)
        if alive == 0:
            now = until
            continue
        share, length = alive / plan.replicas, 1.0
        if policy == "keep":
            speed = speed_of(np.array(alive), plan.replicas, "keep", plan.micro_batches)
            share, length = 1.0, 1 / float(speed)
        now += length
        done += round(plan.full * share)
        rows.append((now, share, done))
    return pd.DataFrame(rows, columns=["time", "share", "samples"])


def noise(losses: pd.DataFrame) -> pd.Series:
    """Gradient noise scale [full batches] by samples, from runs in which nothing fails.

    The variance of one sample's gradient over the squared gradient, each a mean over the seeds and
    the steps since the row before: McCandlish et al., 2018, B_simple.
    """
    calm = losses[losses["policy"] == "none"].groupby("samples")[["squared", "variance"]].mean()
    return calm["variance"] / calm["squared"] / Plan().full


def compared(losses: pd.DataFrame, between: tuple[float, float], scale: pd.Series) -> pd.DataFrame:
    """Time from one loss to another over that of the same seed without failures.

    The logarithm of the time as a square function of the loss is fitted to the rows of a run after
    the learning rate has risen; ``reached`` is the time of the second loss from the start. Three
    models begin with the policy at the first loss and say how much a step on a share of the batch
    is worth: its samples, its samples times their `statistical_efficiency` at a noise scale, or as
    much as any other step.
    """
    plan, found = Plan(), []
    for seed, own in losses[losses["samples"] > plan.warm * plan.full].groupby("seed"):
        at = {policy: _times(run, between) for policy, run in own.groupby("policy")}
        calm = float(np.diff(at["none"])[0])  # in steps of the full batch
        for policy in [name for name in POLICIES[1:] if name in at]:
            made, (first, last) = steps(plan, policy, int(str(seed))), at[policy]
            share, time = made["share"].to_numpy(), made["time"].to_numpy()
            own_scale = np.interp(made["samples"], scale.index, scale)
            row = {
                "seed": seed,
                "policy": policy,
                "reached": last,
                "measured": (last - first) / calm,
            }
            for model, worth in {
                "samples": share,
                "noise": share * statistical_efficiency(share, own_scale),
                "steps": np.ones_like(share),
            }.items():
                done = worth.cumsum()
                target = np.interp(first, time, done, left=0.0) + calm
                row[model] = (np.interp(target, done, time, right=np.nan) - first) / calm
            found.append(row)
    return pd.DataFrame(found)


def _times(run: pd.DataFrame, losses: tuple[float, float]) -> Any:
    """When a run has these losses; an infinite one at its start."""
    fit = np.polynomial.Polynomial.fit(run["loss"], np.log(run["time"]), 2)
    return np.array([np.exp(fit(loss)) if loss < np.inf else 0.0 for loss in losses])
