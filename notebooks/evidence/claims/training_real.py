"""Real records of failures: rows of ``training-reliability`` on logs, traces and published runs.

Results on data that are too large to ship come from ``data/derived/failure_replays.csv``.
"""

import re
from functools import cache
from typing import Final

import pandas as pd

from evidence.claims._rows import derived
from evidence.claims.registry import Rows
from relparallel import training, units
from relparallel.published import Fact, data_folder


def spot_counts(fact: Fact) -> tuple[int, int, float]:
    """Preemptions, nodes lost and mean size of the cluster, to the digits of the row."""
    kind, zone, day = fact.system.removeprefix("AWS spot trace ").split()
    subject = f"spot {kind}-xlarge-{zone}-{day}"
    counts = (_derived(subject, name) for name in ("preemptions", "nodes lost", "mean size"))
    preemptions, lost, size = counts
    return int(preemptions), int(lost), size


def opt_restarts_per_hour(fact: Fact) -> float:
    """Restarts per instance-hour, from counts."""
    manual, automatic, instances, days, hours = (
        int(n) for n in re.findall(r"\d+", fact.inputs_text)
    )
    return (manual + automatic) / (instances * days * hours)


def glm_node_failures() -> int:
    """Node failures in the dated log."""
    path = data_folder() / "training_runs" / "glm-130b.csv"
    log = training.read_failure_log(path, population=96, clock="iso")
    return len(log.select("node").start)


def _system(name: str) -> str:
    """Subject of a system in the derived table."""
    return f"lanl {name.removeprefix('LANL system ').split()[0]}"


@cache
def _table() -> pd.Series:
    """Derived values by subject and quantity."""
    table = derived("failure_replays")
    return table.set_index(["subject", "quantity"])["value"]


def _derived(subject: str, quantity: str) -> float:
    """One derived value; the subject may be the beginning of its name."""
    names = _table().index.get_level_values(0)
    full = subject if subject in names else next(name for name in names if name.startswith(subject))
    return float(_table()[full, quantity])


_CAUSES: Final = ("hardware", "software", "undetermined", "network", "facilities", "human")


ROWS: Final[Rows] = {
    "LANL-001": lambda: tuple(int(_derived("lanl", each)) for each in ("records", "systems")),
    "LANL-002": lambda: tuple(_derived("lanl", f"share {cause}") for cause in _CAUSES),
    "LANL-003": lambda: (
        _derived("lanl", "repair mean min"),
        _derived("lanl", "repair median min"),
    ),
    "LANL-004": lambda: (
        _derived("lanl", "repair lognormal sigma"),
        _derived("lanl", "repair lognormal median min"),
    ),
    "LANL-005 LANL-006": lambda fact: _derived(_system(fact.system), "weibull shape"),
    "LANL-008": lambda fact: tuple(
        _derived(f"lanl {number}", "per 1000 node-days")
        for number in fact.system.removeprefix("LANL systems ").split(" / ")
    ),
    "LANL-009": lambda fact: _derived(_system(fact.system), "replay"),
    "BLM-004": lambda iterations, iteration: iterations * iteration / units.HOUR,
    "BLM-006": lambda before, after: after / before - 1,  # longer iterations through one slow node
    "GLM-004": lambda before, after, step: (before * step / units.HOUR, after * step / units.HOUR),
    "SPOT-*": spot_counts,
    "OPTM-007": opt_restarts_per_hour,
    "GLM-002": glm_node_failures,
}
