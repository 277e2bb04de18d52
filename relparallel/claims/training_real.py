"""Real records of failures: rows of ``training-reliability`` on logs, traces and published runs.

Results on data that are too large to ship come from ``data/derived/failure_replays.csv``.
"""

import re
from functools import cache

import pandas as pd

from relparallel import training, units
from relparallel.claims._rows import derived
from relparallel.claims.registry import reproduces
from relparallel.published import Fact, data_folder


@reproduces("LANL-001")
def lanl_size() -> tuple[int, int]:
    """Records and systems."""
    return int(_derived("lanl", "records")), int(_derived("lanl", "systems"))


@reproduces("LANL-002")
def lanl_causes() -> tuple[float, ...]:
    """Shares of the six causes."""
    causes = ("hardware", "software", "undetermined", "network", "facilities", "human")
    return tuple(_derived("lanl", f"share {cause}") for cause in causes)


@reproduces("LANL-003")
def lanl_repair() -> tuple[float, float]:
    """Mean and median time to repair [min]."""
    return _derived("lanl", "repair mean min"), _derived("lanl", "repair median min")


@reproduces("LANL-004")
def lanl_repair_fit() -> tuple[float, float]:
    """Lognormal distribution of repairs: sigma and median [min]."""
    return _derived("lanl", "repair lognormal sigma"), _derived("lanl", "repair lognormal median min")


@reproduces("LANL-005", "LANL-006")
def lanl_shape(fact: Fact) -> float:
    """Weibull shape of times between failures."""
    return _derived(_system(fact.system), "weibull shape")


@reproduces("LANL-008")
def lanl_rates(fact: Fact) -> tuple[float, ...]:
    """Failures per 1000 node-days of three systems."""
    systems = fact.system.removeprefix("LANL systems ").split(" / ")
    return tuple(_derived(f"lanl {number}", "per 1000 node-days") for number in systems)


@reproduces("LANL-009")
def lanl_replay(fact: Fact) -> float:
    """Effective time of a replayed job at Young's interval."""
    return _derived(_system(fact.system), "replay")


@reproduces("SPOT-*")
def spot_counts(fact: Fact) -> tuple[int, int, float]:
    """Preemptions, nodes lost and mean size of the cluster, to the digits of the row."""
    kind, zone, day = fact.system.removeprefix("AWS spot trace ").split()
    subject = f"spot {kind}-xlarge-{zone}-{day}"
    counts = (_derived(subject, name) for name in ("preemptions", "nodes lost", "mean size"))
    preemptions, lost, size = counts
    return int(preemptions), int(lost), size


@reproduces("OPTM-007")
def opt_restarts_per_hour(fact: Fact) -> float:
    """Restarts per instance-hour, from counts."""
    manual, automatic, instances, days, hours = (int(n) for n in re.findall(r"\d+", fact.inputs_text))
    return (manual + automatic) / (instances * days * hours)


@reproduces("BLM-004")
def bloom_interval(iterations: int, iteration: float) -> float:
    """Hours between checkpoints."""
    return iterations * iteration / units.HOUR


@reproduces("BLM-006")
def bloom_slow_node(before: float, after: float) -> float:
    """Longer iterations through one slow node."""
    return after / before - 1


@reproduces("GLM-004")
def glm_intervals(before: int, after: int, step: float) -> tuple[float, ...]:
    """Hours between checkpoints, before and after the first failure."""
    return before * step / units.HOUR, after * step / units.HOUR


@reproduces("GLM-002")
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
