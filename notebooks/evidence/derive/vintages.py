"""What the next container of a framework was worth: jobs that were measured again with newer software."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel.parallel.run import Run
from relparallel.published import facts

_ENDS: Final = (0.05, 0.95)


def vintage_table(runs: Sequence[Run]) -> Mapping[str, pd.DataFrame]:
    """Speed of the same job with the next container of Megatron-Bridge over that with the one before.

    Containers of one month count as one, with their mean time. By kind of model: how many jobs and
    pairs, months between the two, the geometric mean of the gains, and the interval in which nine
    of ten pairs lie.
    """
    published, times = facts("parallelism-cost"), dict[Any, dict[int, list[float]]]()
    for run in (run for run in runs if run.id.startswith("BRIDGE")):
        said = published[run.id].inputs
        blocks = str(said["precision"]).endswith("MX") or str(said["precision"]).startswith("MX")
        job = run.source, run.model, run.strategy, run.global_batch, run.precision, blocks
        times.setdefault(job, {}).setdefault(_month(said["container"]), []).append(run.time)
    pairs = [
        (_kind(job[1].experts), job, new - old, np.log(np.mean(when[old]) / np.mean(when[new])))
        for job, when in times.items()
        for old, new in pairwise(sorted(when))
    ]
    found = pd.DataFrame(pairs, columns=["kind", "job", "months", "gain"])
    grouped = found.groupby("kind")
    low, high = (grouped["gain"].quantile(end) for end in _ENDS)
    mean = grouped["gain"].mean()
    table = pd.DataFrame(
        {
            "jobs": grouped["job"].nunique(),
            "pairs": grouped.size(),
            "months": grouped["months"].mean(),
            "gain": np.expm1(mean),
            "low": np.expm1(low),
            "high": np.expm1(high),
        }
    )
    return {"vintages": table.reset_index()}


def _kind(experts: int) -> str:
    return "MoE" if experts > 1 else "dense"


def _month(container: object) -> int:
    """Months since 2000 of a container that is named by year and month."""
    year, month = str(container).split()[0].split(".")[:2]
    return 12 * int(year) + int(month)
