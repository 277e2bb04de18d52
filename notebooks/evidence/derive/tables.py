"""Results on data too large to ship, as tables that the project ships: ``data/derived/*.csv``.

``python -m relparallel derive`` reads the folder that ``RELPARALLEL_DATA`` names and writes every
table anew. Each row says from which input it was computed (sha256), so that a reader can tell
whether it is still true.
"""

import json
import os
import re
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from chapters import s24, s35, s42, s49
from chapters.s35.partition import latency_partition, partition_loads
from chapters.s35.partition_problems import read_partition_problem
from chapters.s42.replay import best_replay, read_spot_trace, replay_gaps, replay_sizes
from evidence.derive.calibrations import calibration_tables
from evidence.derive.learning import learning_tables
from evidence.derive.plans import PLAN_TABLES, digest
from evidence.derive.sharing import sharing_tables
from evidence.derive.steps import STEP_INPUTS, step_table
from evidence.derive.vintages import vintage_table
from evidence.training_steps import measured_runs
from relparallel import training
from relparallel._notices import doing, told
from relparallel.published import data_folder
from relparallel.reliability import evaluate
from relparallel.topology.formats import read
from relparallel.training.failure_readers import read_lanl
from relparallel.units import DAY, GBIT, HOUR, KB, MICROSECOND, MINUTE

_DIGITS: Final = 6
_LANL: Final = "data/lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"
_SPOT: Final = "data/spot-traces/aws-spot-instances"
_ZONES: Final = {
    "g4dn-xlarge-us-east-1c-2020-11-20-1930-to-2020-11-21-2200": "s",
    "g4dn-xlarge-us-east-1d-2020-11-23-1730-to-2020-11-24-1530": "s",
    "p2-xlarge-2020-11-20-to-2020-11-23": "h",
    "p2-xlarge-us-east-1e-2020-11-23-1700-to-2020-11-24-0700": "s",
}  # traces with preemptions, and the unit of their times
_ZOO: Final = "data/topology-zoo/topology-zoo.tar.xz"
_ZOO_UP: Final = 0.99
_MARGINS: Final = "data/ecn-or-delay/pm_rai40_delay0.txt"
_PLACED: Final = "data/dnn-partitioning/throughput-inputs/LayerGraphs/bert24_training.json"
_SMALL: Final = 40  # operators, up to which the least latency is proven in minutes
_GOING_ON: Final = ("elastic", "regroup", "bamboo", "oobleck")
_SYSTEMS: Final = 7  # of LANL
_SHARED: Final = "data/adaptdl-osdi21/workloads/workload-6.csv"


@told
def derive(folder: Path | None = None) -> list[Path]:
    """Compute every derived table and write it.

    Parameters
    ----------
    folder : Path, optional
        Where to write; by default ``data/derived`` of the checkout.

    Returns
    -------
    list of Path
        The files written, each in one step.

    Examples
    --------
    >>> [path.name for path in derive()]  # doctest: +SKIP
    ['calibration.csv', 'calibration_errors.csv', 'parameter_evidence.csv', ..., 'partitions.csv']
    """
    target = data_folder() / "derived" if folder is None else folder
    record, zoo = _input(_LANL), _input(_ZOO)
    placements, shared = _input(_PLACED).parents[2], _input(_SHARED).parents[1]
    traces = [_input(f"{_SPOT}-{zone}.csv") for zone in _ZONES]
    target.mkdir(parents=True, exist_ok=True)
    written = derive_calibration(target)
    replays = [_lanl_table(record).assign(input_sha256=digest(record))]
    replays += [_spot_table(path).assign(input_sha256=digest(path)) for path in traces]
    written.append(_write(pd.concat(replays), target / "failure_replays.csv"))
    bursts = _burst_table(record).assign(input_sha256=digest(record))
    written.append(_write(bursts, target / "failure_bursts.csv"))
    networks = _zoo_table(zoo).assign(input_sha256=digest(zoo))
    written.append(_write(networks, target / "topology_zoo.csv"))
    margins = sorted(_input(_MARGINS).parent.glob("*.txt"))
    written.append(_write(_margin_table(margins), target / "congestion_margins.csv"))
    graphs = sorted(placements.glob("*-inputs/*/*.json"))
    written.append(_write(_partition_table(graphs, placements), target / "partitions.csv"))
    written += [
        _write(table, target / f"{name}.csv") for name, table in sharing_tables(shared).items()
    ]
    tables = {**PLAN_TABLES, "step_spread": (step_table, STEP_INPUTS)}
    return written + [
        _write(table([_input(name) for name in names]), target / f"{title}.csv")
        for title, (table, names) in tables.items()
    ]


def derive_calibration(target: Path) -> list[Path]:
    """Write tables that need shipped data alone: calibrations, errors, what own runs add."""
    data = data_folder()
    inputs = "measured_runs.csv", "published/parallelism-cost.csv", "priors.csv", "software.csv"
    of_inputs = digest(*(data / name for name in inputs))
    runs = measured_runs()
    tables = dict(calibration_tables(runs))
    tables |= learning_tables(runs, tables["experience"])
    tables |= vintage_table(runs)
    return [
        _write(table.assign(input_sha256=of_inputs), target / f"{name}.csv")
        for name, table in tables.items()
    ]


def _lanl_table(path: Path) -> pd.DataFrame:
    """Fits and replays on the failure record LA-UR-05-7318: all systems, and the five failing most.

    Replays have checkpoints of 60 s and restarts of 600 s. Distributions are fitted to positive
    times.
    """
    every = read_lanl(path)
    system = pd.Series(every.node).str.partition("-")[0]
    rows = [("lanl", name, value) for name, value in _record(every, system.nunique()).items()]
    for number in system.value_counts().index[:5]:
        log = read_lanl(path, int(number))
        rows += [(f"lanl {number}", name, value) for name, value in _system(log).items()]
    return pd.DataFrame(rows, columns=["subject", "quantity", "value"])


def _burst_table(path: Path) -> pd.DataFrame:
    """Spares by three models and how short they were, on the seven systems of LANL failing most."""
    system = pd.Series(read_lanl(path).node).str.partition("-")[0]
    tables = []
    for number in system.value_counts().index[:_SYSTEMS]:
        log = read_lanl(path, int(number))
        chance = log.down_distribution()
        down = np.arange(chance.size)
        mean = float(chance @ down)
        table = s49.shortage_tries(log).assign(nodes=log.population, mean=mean)
        table["variance_ratio"] = float(chance @ (down - mean) ** 2) / mean
        table.insert(0, "system", f"lanl {number}")
        tables.append(table)
    return pd.concat(tables)


def _zoo_table(path: Path) -> pd.DataFrame:
    """Exact all-terminal reliability of all Topology Zoo networks, to 11 digits, cables up at 0.99.

    Of the largest part of each network, parallel cables as one.
    """
    rows = []
    with tarfile.open(path) as files, TemporaryDirectory() as folder:
        files.extractall(folder, filter="data")
        for file in Path(folder).rglob("*.graphml"):
            whole: nx.Graph[str] = nx.Graph(read(file, strict=False).to_networkx().edges())
            part = nx.Graph(whole.edges(max(nx.connected_components(whole), key=len)))
            found = evaluate(part, "nodes", _ZOO_UP, method="exact")
            digits = f"{found.reliability:.11g}", f"{found.unreliability:.11g}"
            rows.append((file.stem, len(part), part.size(), _ZOO_UP, *digits))
    columns = ["network", "nodes", "links", "link_up", "reliability", "unreliability"]
    return pd.DataFrame(sorted(rows), columns=columns)


def _margin_table(files: list[Path]) -> pd.DataFrame:
    """Published margins [degrees], bounds [s] of DCQCN and patched TIMELY against ours, by table.

    Differences are absolute for margins, relative for bounds. *valid* counts settings with a fixed
    point, *contradicted* those of them where the sign of the published margin is not the exact
    stability.
    """
    rows = []
    for path in files:
        flows, published = np.loadtxt(path).T
        name, delay = path.stem, re.search(r"delay(\d+)", path.stem)
        given: Any = {
            "flows": flows,
            "feedback_delay": float(delay[1]) * MICROSECOND if delay else 0.0,
        }
        if "timely" in name:
            model: Any = s24.patched_timely(rate=10 * GBIT, **given)
        else:
            given |= {"increase": (0.01 if "rai10" in name else 0.04) * GBIT}
            given |= {"rate": (100 if "100gbps" in name else 40) * GBIT}
            model = s24.dcqcn(**given, kmax=(1000 if "kmax1000" in name else 200) * KB)
        bound = name.startswith("convergence")
        ours = model.convergence_bound() if bound else model.phase_margin("published")
        off = np.abs(ours / published - 1 if bound else ours - published)
        valid = model.fixed_point().valid
        row = {"table": name, "rows": off.size, "largest": off.max(), "median": np.median(off)}
        if not bound:
            row |= {
                "valid": valid.sum(),
                "contradicted": (valid & (model.stable() != (published > 0))).sum(),
            }
        rows.append(row | {"input_sha256": digest(path)})
    table = pd.DataFrame(rows).astype({"valid": "Int64", "contradicted": "Int64"})
    return table[[*table.columns.drop("input_sha256"), "input_sha256"]]


def _partition_table(graphs: list[Path], folder: Path) -> pd.DataFrame:
    """Plans [s] of the placement problems of Tarnawski et al.: exact, two baselines, by experts."""
    rows = []
    for path in graphs:
        problem, name = read_partition_problem(path), str(path.relative_to(folder).with_suffix(""))
        row = {
            "graph": name,
            "operators": len(problem),
            "edges": len(problem.edges),
            "accelerators": problem.accelerators,
        }
        if name.startswith("latency"):
            row["greedy_latency"] = latency_partition(problem, method="greedy").latency
            if len(problem) <= _SMALL:
                least = latency_partition(problem)
                row |= {"latency": least.latency, "bound": least.bound, "proven": least.proven}
        else:
            best = s35.throughput_partition(problem)
            alone = s35.throughput_partition(problem, cpus=0)
            row |= {"ideals": best.ideals, "max_load": best.max_load, "bound": best.bound}
            row |= {"no_cpu": alone.max_load if alone.proven else np.nan, "proven": best.proven}
            for method in ("line", "blocks"):
                row[method] = s35.throughput_partition(problem, method=method).max_load
            row["experts"] = _experts_load(
                path, folder / "human-experts" / f"{path.stem}_expert.json"
            )
        rows.append(row | {"input_sha256": digest(path)})
    table = pd.DataFrame(rows).astype({"ideals": "Int64"})
    return table[[*table.columns.drop("input_sha256"), "input_sha256"]]


def _experts_load(path: Path, split: Path) -> float:
    """Largest load of a split by hand of a graph of layers."""
    if path.parent.name != "LayerGraphs" or not split.is_file():
        return np.nan
    problem, devices = read_partition_problem(path), json.loads(split.read_text())["fpgas"]
    where = {node: place for place, device in enumerate(devices) for node in device["nodes"]}
    ids = sorted(node["id"] for node in json.loads(path.read_text())["nodes"])
    return float(partition_loads(problem, [where[i] for i in ids], problem.accelerators).max())


def _spot_table(path: Path) -> pd.DataFrame:
    """Counts of a trace of spot instances, and what recovery policies make of it.

    The job has as many nodes as the trace at its largest, of one GPU each; replicas of one to all
    nodes. Elastic jobs pause for 30 s at a change of size, jobs that restart for 600 s.
    """
    zone = next(name for name in _ZONES if path.name.endswith(f"{name}.csv"))
    trace = read_spot_trace(path, _ZONES[zone])
    nodes = int(trace.size.max())
    counts = {
        "preemptions": trace.preemptions,
        "nodes lost": trace.nodes_lost,
        "mean size": trace.mean_size,
    }
    speeds, pause = {"restart": _speed("restart", nodes, nodes)}, {"restart": 600.0}
    for size in (size for size in range(1, nodes) if nodes % size == 0):
        for policy in _GOING_ON:
            speeds[f"{policy} {size}"], pause[f"{policy} {size}"] = (
                _speed(policy, nodes, size),
                30.0,
            )
    table = replay_sizes(trace, nodes, speeds, pause)
    counts |= {
        f"throughput of {name}": share for name, share in table[["policy", "throughput"]].to_numpy()
    }
    rows = [(f"spot {zone}", name, value) for name, value in counts.items()]
    return pd.DataFrame(rows, columns=["subject", "quantity", "value"])


def _speed(policy: str, nodes: int, size: int) -> NDArray[np.float64]:
    """Share of full throughput by nodes missing, with replicas of one size."""
    shape = training.JobShape(
        nodes=nodes,
        gpus_per_node=1,
        replicas=nodes // size,
        stages=size,
        tensor=1,
        nodes_per_replica=size,
    )
    return training.Recovery(policy, repair=HOUR).speed(shape, nodes)


def _record(log: training.FailureLog, systems: int) -> dict[str, float]:
    """Counts, causes and repairs of the whole record."""
    repairs = log.repairs
    fits = {fit.law: fit for fit in s42.fit_lifetimes(repairs[repairs > 0])}
    shares = {
        f"share {cause}": float((log.cause == cause).mean()) for cause in np.unique(log.cause)
    }
    return {
        "records": len(log.start),
        "systems": systems,
        **shares,
        "repair mean min": repairs.mean() / MINUTE,
        "repair median min": np.median(repairs) / MINUTE,
        "repair lognormal sigma": fits["lognormal"].spread,
        "repair lognormal median min": fits["lognormal"].parameters["median"] / MINUTE,
        **{f"repair distance {law}": fit.distance for law, fit in fits.items()},
    }


def _system(log: training.FailureLog) -> dict[str, float]:
    """Fits and replays of one system."""
    gaps = log.gaps()
    mean, checkpoint, restart = float(gaps.mean()), 60.0, 600.0
    young = float(training.checkpoint_interval(checkpoint, mean, "young"))
    best = best_replay(gaps, checkpoint, restart)
    fits = {fit.law: fit for fit in s42.fit_lifetimes(gaps)}
    return {
        "nodes": log.population,
        "failures": len(log.start),
        "gaps": len(gaps),
        "mean gap h": mean / HOUR,
        # of the whole window, as the record has them
        "per 1000 node-days": 1000 * DAY * len(log.start) / (log.population * log.span),
        "weibull shape": fits["weibull"].parameters["shape"],
        **{f"distance {law}": fit.distance for law, fit in fits.items()},
        "young interval s": young,
        "replay": replay_gaps(gaps, young, checkpoint, restart).productive,
        "formula": float(
            training.effective_training_time_ratio(mean, young, checkpoint, restart).mean
        ),
        "best replay": best.productive,
        "best interval s": best.interval,
    }


def _input(name: str) -> Path:
    """A file of the folder with the large data."""
    given = os.environ.get("RELPARALLEL_DATA", "")
    path = Path(given) / name
    if not given or not path.is_file():
        raise ValueError(f"RELPARALLEL_DATA must name a folder that holds {name}, got {given!r}")
    return path


def _write(table: pd.DataFrame, path: Path) -> Path:
    """Write a table in one step."""
    partial = path.with_suffix(".partial")
    table.to_csv(partial, index=False, float_format=f"%.{_DIGITS}g", lineterminator="\n")
    partial.replace(path)
    doing(f"{path.name} is written")
    return path
