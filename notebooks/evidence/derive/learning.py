"""What own runs are worth on published sets, and whether the stated chances of strategies hold, as tables.

Each set plays the user: its publisher is in no calibration, some of its runs are learnt, and the
others are predicted; or runs of one of its models are learnt, and its other models predicted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evidence.derive.experience import bounds, publisher
from relparallel.parallel.corrections import Lessons
from relparallel.parallel.past_runs import features
from relparallel.parallel.quantities import Split
from relparallel.parallel.run import Run

_LEARNT: Final = (0, 1, 3, 5)
_REPEATS: Final = 40
_SCORED: Final = 60  # of the others in a repeat
_TWO: Final = 2  # runs that a plan asks for


def learning_tables(runs: Sequence[Run], known: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
    """Errors after k own runs by set and of other models, and what choosing among strategies loses.

    ``known`` is the `experience_table` of the runs.
    """
    table = _rows(runs, known)
    sets = table.groupby(["publisher", "source", "accelerator", "precision", "experts"])
    rng = np.random.default_rng(0)
    learnt = [
        {**dict(zip(sets.keys, key, strict=True)), "rows": len(own), "learnt": count, **found}
        for key, own in sets
        for count in _LEARNT
        if len(own) >= count + _TWO
        for found in [_others(own, own, count, rng)]
    ]
    users = table.groupby(["publisher", "family", "software"])
    elsewhere = [
        {**dict(zip(users.keys, key, strict=True)), "seen": kind, "learnt": count, **found}
        for key, own in users
        for kind, seen in own.groupby("kind")
        for count in _LEARNT[1:]
        if len(seen) >= count and len(own) > len(seen)
        for found in [_others(seen, own[own["kind"] != kind], count, rng)]
    ]
    same = ["source", "software", "precision", "model", "batch", "accelerator", "gpus", "network"]
    groups = table.drop_duplicates([*same, "strategy"]).groupby(same)
    chosen = pd.DataFrame([_choice(own) for _, own in groups if len(own) >= _TWO])
    every = pd.concat([chosen, chosen.assign(family="all", source="all")])
    alike = every.groupby(["family", "source"])
    choices = alike.mean()
    choices.insert(0, "groups", alike.size())
    choices.insert(2, "lost_90th", alike["lost"].quantile(0.9))
    return {
        "learning": pd.DataFrame(learnt),
        "learning_elsewhere": pd.DataFrame(elsewhere),
        "choices": choices.reset_index(),
    }


def _rows(runs: Sequence[Run], known: pd.DataFrame) -> pd.DataFrame:
    """One row for each run: what tells its set and its group, its error, and the bound of that."""
    left_out = known.set_index("run")["far"]
    wide = bounds(known, known["publisher"].to_list(), left_out)[0.9]
    rows = []
    for run in runs:
        split, chip = Split.of(run.strategy, run.global_batch), run.cluster.accelerator
        rows.append(
            {
                "publisher": publisher(run),
                "family": run.family,
                "source": run.source,
                "accelerator": chip.name if chip else "",
                "precision": run.precision,
                "experts": run.model.experts > 1,
                "software": run.software,
                "model": repr(run.model),
                "kind": f"{run.model.parameters:.1e} {run.precision}",
                "batch": run.global_batch,
                "gpus": run.strategy.gpus,
                "network": run.cluster.network_bandwidth,
                "strategy": run.strategy,
                "features": features(run.model, run.precision, split)[0],
                "log_ratio": left_out[run.id],
                "bound": wide[run.id],
                "time": run.time,
            }
        )
    return pd.DataFrame(rows)


def _lessons(rows: pd.DataFrame) -> Lessons:
    """What rows teach."""
    parts: dict[str, Any] = {name: rows[name].to_numpy() for name in ("log_ratio", "bound")}
    return replace(Lessons(software="", rules="", features=_places(rows)), **parts)


def _places(rows: pd.DataFrame) -> NDArray[np.float64]:
    return np.reshape(rows["features"].to_list(), (len(rows), -1))


def _others(
    own: pd.DataFrame, others: pd.DataFrame, count: int, rng: np.random.Generator
) -> dict[str, float]:
    """Mean absolute errors of the others as is, after one factor, and learnt; inside 90 %, half width."""
    found = []
    for _ in range(_REPEATS):
        seen = own.iloc[rng.permutation(len(own))[:count]]
        rest = others.drop(seen.index, errors="ignore")
        rest = rest.iloc[rng.permutation(len(rest))[:_SCORED]]
        lessons = _lessons(seen) if count else Lessons(software="", rules="")
        there, bound, ratio = _places(rest), rest["bound"].to_numpy(), rest["log_ratio"].to_numpy()
        left = lessons.shift(there) - ratio
        wide = bound * lessons.stretch(there) * np.sqrt(np.diag(lessons.covariance(there, bound)))
        off = [-ratio, (seen["log_ratio"].mean() if count else 0.0) - ratio, left]
        sizes = [np.abs(np.expm1(one)).mean() for one in off]
        found.append((*sizes, (np.abs(left) <= wide).mean(), wide.mean()))
    names = "as_is", "one_factor", "error", "inside", "half_width"
    return dict(zip(names, np.mean(found, axis=0).tolist(), strict=True))


def _choice(own: pd.DataFrame) -> dict[str, Any]:
    """Of strategies for one model and cluster: what the pick and the first two lose, and what was said."""
    time, ratio = own["time"].to_numpy(), own["log_ratio"].to_numpy()
    score = np.exp(ratio) / time
    best, two = int(time.argmin()), np.argsort(-score)[:_TWO]
    first = int(two[0])
    shares = Lessons(software="", rules="").shares(score, _places(own), own["bound"].to_numpy())
    return {
        "family": own["family"].iloc[0],
        "source": own["source"].iloc[0],
        "lost": 1 - time[best] / time[first],
        "lost_said": 1 - shares[:, first].mean(),
        "lost_after_two": 1 - time[best] / time[two].min(),
        "after_two_said": 1 - shares[:, two].max(axis=1).mean(),
        "best": float(best == first),
        "best_said": (shares[:, first] == 1).mean(),
    }
