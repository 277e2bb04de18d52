"""Goodput under failures: records of real failures, three jobs each, eight recoveries, four methods.

``docs/benchmark.md`` says what cells, columns and scores are. `make bench` runs it: it writes
``data/benchmarks/goodput_under_failures.csv``, the same with the traces as JSON, and
``goodput_scores.csv``. Cells of traces that are not here keep their stored values. ``--score FILE``
scores another tool's column, a CSV with columns ``cell`` and ``goodput``, and writes nothing.
"""

import argparse
import math
import runpy
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace as Cell
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from relparallel import training
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.published import data_folder
from relparallel.training.failure_sources import SharedEvents
from relparallel.units import HOUR, YEAR

OUTPUT = data_folder() / "benchmarks" / "goodput_under_failures.csv"
RECORDS = runpy.run_path(str(Path(__file__).with_name("failure_traces.py")))
TRACES = RECORDS["TRACES"]
JOBS = {  # share of the watched nodes, checkpoint cost, restart, detection [s]
    "quarter": (0.25, 20.0, 120.0, 30.0),
    "half": (0.5, 60.0, 300.0, 30.0),
    "most": (0.75, 120.0, 600.0, 60.0),
}
PAUSE = 60.0  # s
PACE = {"rehearsal": 0.005, "rehearsal-slow": 0.005}  # of all these times: its failures are quick
RECOVERIES = {  # policy, whether replicas are large, spares in units of a 32nd of the job
    "restart": ("restart", False, 0),
    "cold spares": ("spares", False, 1),
    "hot spares": ("hot_spares", False, 1),
    "elastic": ("elastic", False, 0),
    "elastic, large replicas": ("elastic", True, 0),
    "regroup": ("regroup", True, 0),
    "bamboo": ("bamboo", True, 0),
    "recycle": ("recycle", True, 0),
}
MORE = {f"cold spares x{n}": ("spares", False, n) for n in (2, 4)}  # to find the best number
WAITING = ("restart", "spares", "hot_spares")
APART = 0.005  # two replays that differ by less are a tie
FAILURES, REPEATED = 4000, 400  # that a simulation has at least, and its replications
SCORES = ("pairs %", "jobs in order %", "regret", "spares off %", "spares regret")


@cache
def log_of(trace: str) -> training.FailureLog:
    """Failures of nodes alone: what stops the job as a whole is in no cell."""
    table, span = RECORDS["outages"](trace).query("domain != 'job'"), float(TRACES.span[trace])
    table = table[table["start"] < span].assign(end=table["end"].clip(upper=span))
    return training.FailureLog(
        node=table["node"].to_numpy(dtype=np.str_),
        **{name: table[name].to_numpy(dtype=np.float64) for name in ("start", "end")},
        cause=np.full(len(table), "node"),
        population=int(TRACES.nodes[trace]),
        overlaps="merge",
        finish=span,
        begin=0.0,
    )


def cells(trace: str) -> Iterator[Cell]:
    """Every job and recovery: times in seconds, a rate for each second that a node is up."""
    log, pace = log_of(trace), PACE.get(trace, 1.0)
    down = log.repairs.sum() / (log.population * log.span)
    rate, repair = log.rate, log.repairs.mean()
    small, large = (1, 2) if log.population < 20 else (2, 8)
    for job, (share, *times) in JOBS.items():
        nodes = max(round(share * log.population / large), 2) * large
        cost, restart, detection = (pace * time for time in times)
        for recovery, (policy, grouped, units) in (RECOVERIES | MORE).items():
            spares = units * math.ceil(nodes / 32)
            named = {"cell": f"{trace}/{job}/{recovery}", "trace": trace, "job": job}
            used = {"nodes": nodes, "nodes_per_replica": large if grouped else small}
            young = float(f"{math.sqrt(2 * cost / (nodes * rate)):.3g}")
            paid = {"checkpoint": cost, "interval": young, "restart": restart}
            kept = {"policy": policy, "spares": spares, "pause": pace * PAUSE}
            node = {
                name: float(f"{x:.6g}") for name, x in (("node_rate", rate), ("repair", repair))
            }
            shares = {"up": round(1 - down, 6), "held": round(nodes / (nodes + spares), 6)}
            named |= {"recovery": recovery, **used, **paid, "detection": detection}
            yield Cell(**named, **kept, **node, **shares)


def shared_events(cell: Cell) -> SharedEvents:
    """The law of the record as the job meets it: of an event of b nodes, those that are its own."""
    log = log_of(cell.trace)
    return log.shared_events(window=min(HOUR, log.span / len(log.gaps()) / 10), nodes=cell.nodes)


def arguments(cell: Cell, source: Any = None) -> tuple[Any, ...]:
    """Arguments of `goodput` and `simulate`."""
    gpus, size, wait = int(TRACES.gpus_per_node[cell.trace]), cell.nodes_per_replica, cell.detection
    strategy = Strategy(tensor=gpus, pipeline=size, data=cell.nodes // size)
    part = training.ComponentClass(name="node", level="node", rate=cell.node_rate, detection=wait)
    model = training.FailureModel(
        classes=(part,),
        cluster=Cluster(nodes=cell.nodes, gpus_per_node=gpus),
        placement=Placement(strategy=strategy, order=("tensor", "context", "pipeline", "data")),
        source=source,
    )
    level = training.CheckpointLevel(name="storage", cost=cell.checkpoint, restart=cell.restart)
    written = training.Checkpointing(levels=(level,), interval=cell.interval)
    recovery = training.Recovery(cell.policy, cell.repair, pause=cell.pause)
    return model, 1.0, written, recovery, cell.spares


def simulated(cell: Cell, source: Any) -> tuple[float, float]:
    """Goodput and half of its 95 % interval; horizons as long as the record."""
    span = log_of(cell.trace).span
    rounds = math.ceil(FAILURES / (cell.nodes * cell.node_rate * span * REPEATED))
    given = {"years": (rounds * REPEATED + 0.5) * span / YEAR, "horizon": span}
    rng = np.random.default_rng(1)
    report = training.simulate(*arguments(cell, source), **given, replications=REPEATED, rng=rng)
    low, high = report.brackets["productive"]
    return report.mean * cell.held, (high - low) / 2 * cell.held


def young_daly(cell: Cell) -> float:
    """First order: checkpoints and rework of Young and Daly, times independent availability."""
    rate, written = cell.nodes * cell.node_rate, cell.checkpoint / cell.interval
    if cell.policy in WAITING:
        back = rate * (cell.interval / 2 + cell.restart + cell.detection)
        there = stats.binom.cdf(cell.spares, cell.nodes + cell.spares, 1 - cell.up)
        return max(1 - written - back, 0.0) * there * cell.held
    return max(1 - written - rate * cell.pause, 0.0) * cell.up**cell.nodes_per_replica


def mlsysim(cell: Cell) -> float:
    """Its runtime goodput, times all nodes up where none is spare; it has no other recovery."""
    if cell.policy not in WAITING:
        return math.nan
    unit, physics = import_module("mlsysim.core.units").Q_, import_module("mlsysim.physics")
    profile = import_module("mlsysim.systems.reliability").RecoveryProfile(
        detection_time_s=cell.detection,
        restart_time_s=cell.restart - cell.checkpoint,  # it adds the load
        **dict.fromkeys(("heartbeat_timeout_s", "reschedule_time_s", "warmup_time_s"), 0.0),
        checkpoint_write_bw_gbs=1.0,
    )
    told = (
        import_module("mlsysim.engine.solvers.goodput")
        .RuntimeGoodputModel()
        .solve(
            mtbf=physics.calc_mtbf_cluster(unit(1 / cell.node_rate, "second"), cell.nodes),
            checkpoint_bytes=unit(cell.checkpoint, "GB"),
            recovery=profile,
            input_wait=0.0,
            window=unit(1e12, "second"),
            lost_work=unit(0.0, "second"),
            preemption_rate=unit(0.0, "1/second"),
        )
    )
    there = 1.0 if cell.spares else physics.calc_all_up_availability(cell.up, cell.nodes)
    return max(told.runtime_goodput, 0.0) * there * cell.held


TOOLS = {"young_daly": young_daly, "mlsysim": mlsysim}
COLUMNS = ("independent", "shared", "simulated", *TOOLS)


def row(cell: Cell, tools: Iterable[str] = ("young_daly",)) -> dict[str, Any]:
    """A line of the table."""
    events, found = shared_events(cell), {}
    found["independent"] = training.goodput(*arguments(cell)).mean * cell.held
    found["shared"] = training.goodput(*arguments(cell, events)).mean * cell.held
    found["simulated"], found["simulated_half"] = simulated(cell, events)
    found["replay"], found["replay_half"] = simulated(cell, log_of(cell.trace).replay())
    found |= {name: TOOLS[name](cell) for name in tools}
    numbers = {name: float(f"{value:.5f}") for name, value in found.items()}
    return vars(cell) | numbers


def score(table: pd.DataFrame, column: pd.Series) -> dict[str, float]:
    """Scores of goodputs by cell; cells that are left out do not count."""
    known = table.assign(said=table["cell"].map(column)).dropna(subset="said")
    found: dict[str, list[float]] = {name: [] for name in SCORES}
    for _, job in known.groupby(["trace", "job"]):
        main, cold = job[job["recovery"].isin([*RECOVERIES])], job[job["policy"].isin(WAITING[:2])]
        pairs = combinations(main[["said", "replay"]].to_numpy(), 2)
        held = [np.prod(a - b) > 0 for a, b in pairs if abs(a[1] - b[1]) > APART]
        found["pairs %"] += held
        found["jobs in order %"] += [all(held)] if held else []
        for rows, lost in ((main, "regret"), (cold, "spares regret")):
            if len(rows) > 1:
                chosen, best = (rows.loc[rows[name].idxmax()] for name in ("said", "replay"))
                found[lost].append(best["replay"] - chosen["replay"])
        if len(cold) > 1:
            found["spares off %"].append(abs(chosen["spares"] - best["spares"]) / best["nodes"])
    error = (known["said"] - known["replay"]).abs()
    means = {name: np.mean(part) if part else np.nan for name, part in found.items()}
    hundred = {"error": error.mean(), "largest": error.max(), **means}
    return {"cells": len(known), **{name: round(100 * at, 2) for name, at in hundred.items()}}


def scores(table: pd.DataFrame) -> pd.DataFrame:
    """Scores of every column on all cells, and its error on each trace."""
    errors = table[[*COLUMNS]].sub(table["replay"], axis=0).abs().mul(100)
    by = errors.groupby(table["trace"], sort=False).mean().round(2).T.add_prefix("error ")
    every = {name: score(table, table.set_index("cell")[name]) for name in COLUMNS}
    return pd.DataFrame.from_dict(every, orient="index").join(by).rename_axis("column")


def main(given: list[str] | None = None) -> None:
    """Compute the table and write it, or score a column."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT, help="CSV file to write")
    parser.add_argument("--score", type=Path, help="CSV of another tool: cell,goodput")
    options = parser.parse_args(given)
    stored = pd.read_csv(OUTPUT)
    if options.score:
        column = pd.read_csv(options.score).set_index("cell")["goodput"]
        if unknown := sorted({*column.index} - {*stored["cell"]}):
            parser.error(f"cell must be one of {OUTPUT.name}, got {unknown[0]!r}")
        print(pd.Series(score(stored, column)).to_string())  # noqa: T201
        return
    tools = [name for name in TOOLS if name != "mlsysim" or find_spec(name)]
    left = [trace for trace in TRACES.index if not RECORDS["here"](trace)]
    print("kept as stored:", *left, *(TOOLS.keys() - {*tools}))  # noqa: T201
    kept = stored.set_index("cell")[[name for name in TOOLS if name not in tools]]
    parts = dict([*stored.groupby("trace")])
    for trace in TRACES.index.difference(left):
        new = pd.DataFrame([row(cell, tools) for cell in cells(trace)])
        parts[trace] = new.join(kept, on="cell")
    table = pd.concat([parts[trace] for trace in TRACES.index], ignore_index=True)
    found = scores(table)
    print(found.T.to_string())  # noqa: T201
    table.to_csv(options.output, index=False, lineterminator="\n")
    found.to_csv(options.output.with_name("goodput_scores.csv"), lineterminator="\n")
    both = (part.to_json(orient="records") for part in (TRACES.reset_index(), table))
    text = '{{"traces": {},\n"cells": {}}}\n'.format(*both)
    options.output.with_suffix(".json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
