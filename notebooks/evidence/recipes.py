"""Recipes that somebody published and ran, held against what a plan says of the same job."""

from dataclasses import asdict
from typing import Any, Final

import pandas as pd

from evidence.training_steps import measured_runs, row_as_run
from relparallel.parallel import notation, step_time
from relparallel.parallel.run import Run
from relparallel.planning import plan
from relparallel.published import shipped_rows

_TOKENS: Final = "1e9 tokens a day"


def recipe_runs() -> dict[str, Run]:
    """Runs of ``data/recipes.csv`` by name; what a source leaves out is as the row there says."""
    known = {run.id: run for run in measured_runs()}
    rows = {row["id"]: row for row in shipped_rows("measured_runs.csv")}
    found = {}
    for recipe in shipped_rows("recipes.csv"):
        name, run = recipe.pop("recipe"), recipe.pop("run")
        taken = {key: value for key, value in recipe.items() if value and key != "source"}
        found[name] = row_as_run({**rows[run], **taken}) if taken else known[run]
    return found


def recipes() -> pd.DataFrame:
    """Every recipe beside the first row of a plan for the same job.

    Both keep the GPUs, the batch, the number format and the software of the recipe, and hold back
    no spares.

    Returns
    -------
    DataFrame
        Whether it fits, the predicted step with its 90 % interval, the measured one and whether it
        lies ``inside`` [s]; and the tokens a day that the recipe loses [%].

    Examples
    --------
    >>> len(recipe_runs())
    13
    """
    return pd.DataFrame({name: _held(run) for name, run in recipe_runs().items()}).T


def _held(run: Run) -> dict[str, Any]:
    """One recipe beside the first row of a plan."""
    options: dict[str, Any] = {"software": run.software, "precision": run.precision}
    step = step_time(run.model, run.strategy, run.cluster, run.global_batch, **options)
    low, high = step.interval(0.9)
    asked: dict[str, Any] = {"global_batch": run.global_batch, "spares": 0, **options}
    first = plan(run.model, run.cluster, strategies=1, **asked).to_frame().iloc[0]
    fields = asdict(run.strategy) | {"shard": run.strategy.shard_group}
    own = plan(run.model, run.cluster, strategies=1, limits=fields, **asked) if step.fits else None
    return {
        "GPUs": run.strategy.gpus,
        "recipe": notation(run.strategy),
        "fits": step.fits,
        "predicted [s]": step.total,
        "from": low,
        "to": high,
        "measured [s]": run.time,
        "inside": low <= run.time <= high,
        "first row": first["strategy"],
        "loses [%]": 100 * (1 - own.to_frame()[_TOKENS].iloc[0] / first[_TOKENS]) if own else None,
    }
