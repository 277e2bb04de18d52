"""Seconds of simulations: 100,000 GPUs, 1,000 years, on counts and with identities; a fleet study.

12,500 nodes that fail 3.79e-3 times a day, a repair of a day, 60 cold spares, checkpoints of 60 s
at the optimal interval, restarts of 600 s; with identities lives are Weibull's of shape 0.7, from
an old fleet. The fleet study is 30 replications of AIReSim's defaults; its own time for one is
quoted from the facts. One thread, seconds of the processor, medians over rounds in which each runs
once. Run it by ``make bench``; it writes ``data/benchmarks/simulation.csv``.
"""

import os

if __name__ == "__main__":  # libraries count their threads when they are loaded
    for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import runpy
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from chapters.s41.fleet import Fleet
from relparallel import training
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.published import facts
from relparallel.units import DAY

OUTPUT = Path(__file__).resolve().parents[2] / "data" / "benchmarks" / "simulation.csv"
WRITE = runpy.run_path(str(Path(__file__).with_name("run.py")))["write"]
YEARS, ROUNDS = 1000.0, 3
STORAGE = training.CheckpointLevel(name="storage", cost=60.0, restart=600.0)


def large_job(source: training.NodeLives | None = None) -> training.FailureModel:
    """12,500 nodes of 8 GPUs whose failures stop the job."""
    node = training.ComponentClass(name="node", level="node", rate=3.79e-3 / DAY)
    placement = Placement(strategy=Strategy(tensor=8, pipeline=4, data=3125))
    return training.FailureModel(
        classes=(node,), cluster=Cluster(nodes=12500), placement=placement, source=source
    )


def simulated(years: float, source: training.NodeLives | None = None) -> float:
    """Productive share of the large job."""
    checkpointing = training.Checkpointing(levels=(STORAGE,))
    recovery, rng = training.Recovery("spares", repair=DAY), np.random.default_rng(1)
    model = large_job(source)
    return training.simulate(model, 5.0, checkpointing, recovery, 60, years=years, rng=rng).mean


def studied(replications: int) -> float:
    """Mean failures of AIReSim's default study."""
    study = Fleet().simulate(replications=replications, rng=np.random.default_rng(1))
    return study.mean_failures.value


def tasks(years: float = YEARS, replications: int = 30) -> dict[str, Callable[[], float]]:
    """What is timed, by name; each returns the number that says it did the work."""
    law = training.Lifetime.weibull(mean=1.0, shape=0.7)
    return {
        "counts": partial(simulated, years),
        "identities, Weibull": partial(simulated, years, training.NodeLives(lifetimes=law)),
        "fleet study": partial(studied, replications),
    }


def measure(calls: dict[str, Callable[[], float]], rounds: int = ROUNDS) -> list[dict[str, object]]:
    """One row for each task, and AIReSim's own time for its study."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    values = {name: call() for name, call in calls.items()}  # compiles, and is not counted
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call()
            spent[name].append(time.process_time() - start)
    rows = [
        row(
            name,
            "relparallel",
            version("relparallel"),
            values[name],
            statistics.median(spent[name]),
        )
        for name in calls
    ]
    fastest = float(facts("training-reliability")["SPD-001"].value_text.split("-")[0])
    return [*rows, row("fleet study", "AIReSim", "", None, 30 * fastest) | {"fact": "SPD-001"}]


def row(
    task: str, tool: str, release: str, value: float | None, seconds: float
) -> dict[str, object]:
    """A line of the table."""
    return {
        "task": task,
        "tool": tool,
        "version": release,
        "value": None if value is None else round(value, 5),
        "median_cpu_s": float(f"{seconds:.3g}"),
        "fact": "",
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT, help="CSV file to write")
    options = parser.parse_args(arguments)
    rows = measure(tasks())
    print(pd.DataFrame(rows).to_string(index=False))  # noqa: T201
    WRITE(rows, options.output)


if __name__ == "__main__":
    main()
