"""Exact reliability against graphillion: the same graphs, answers and machine, in turn.

Both start from a graph in Python and end with the probability, orders and all. graphillion runs with its own
order ("greedy") and with ours ("as-is"); the ratio is that of the better of the two. One thread each, and
seconds of the processor; medians over the rounds. Peak memory is that of a process that does one evaluation.
A run that takes more than ``LIMIT`` seconds or ``MEMORY`` bytes is reported so. Every run has a process of
its own, for graphillion keeps its universe and libraries count their threads when they are loaded. Run it by
``make bench``; it writes ``data/benchmarks/reliability.csv``.
"""

import os

if __name__ == "__main__":
    for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import json
import resource
import runpy
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import networkx as nx
import pandas as pd

from relparallel.reliability import evaluate
from relparallel.reliability.ordering import link_order, vertex_order
from relparallel.reliability.problem import read_problem
from relparallel.topology import Topology, bcube, dcell, fat_tree, torus

OUTPUT = Path(__file__).resolve().parents[2] / "data" / "benchmarks" / "reliability.csv"
ROUNDS, SPAN, LIMIT, MEMORY = 3, 0.1, 60, 6 * 10**9  # s of repeated calls in a round; s and bytes of one run
UP = 0.9


def plain(topology: Topology, nodes: str = "nodes") -> nx.Graph:
    """The cables between all nodes, or between the switches, without attributes."""
    kept = set(range(topology.num_nodes) if nodes == "nodes" else topology.switches.tolist())
    return nx.Graph([(u, v) for u, v in topology.edges.tolist() if {u, v} <= kept])


GRAPHS: dict[str, Callable[[], nx.Graph]] = {
    "grid 8x8": lambda: nx.grid_2d_graph(8, 8),
    "grid 10x10": lambda: nx.grid_2d_graph(10, 10),
    "K8": lambda: nx.complete_graph(8),
    "K10": lambda: nx.complete_graph(10),
    "K11": lambda: nx.complete_graph(11),
    "dodecahedron": nx.dodecahedral_graph,
    "Q4": lambda: nx.hypercube_graph(4),
    "fat-tree 4": lambda: plain(fat_tree(4), "switches"),
    "fat-tree 6": lambda: plain(fat_tree(6), "switches"),
    "leaf-spine 16x8": lambda: nx.complete_bipartite_graph(16, 8),
    "leaf-spine 24x8": lambda: nx.complete_bipartite_graph(24, 8),
    "bcube(4,1)": lambda: plain(bcube(4, 1)),
    "dcell(4,1)": lambda: plain(dcell(4, 1)),
    "torus 5x5": lambda: plain(torus((5, 5))),
    "torus 6x6": lambda: plain(torus((6, 6))),
}
TERMINALS = ("all", "two")
METHODS = ("relparallel", "graphillion, our order", "graphillion, greedy")


def case(name: str, terminals: str) -> tuple[nx.Graph, list[int]]:
    """The graph with nodes 0..n-1, and its terminals: all, or node 0 and one farthest from it."""
    graph = nx.convert_node_labels_to_integers(GRAPHS[name]())
    hops = nx.single_source_shortest_path_length(graph, 0)
    return graph, list(graph) if terminals == "all" else [0, max(graph, key=hops.__getitem__)]


def run_ours(graph: nx.Graph, terminals: list[int]) -> float:
    return evaluate(graph, terminals, UP).reliability


def run_peer(graph: nx.Graph, terminals: list[int], traversal: str) -> float:
    sets = import_module("graphillion").GraphSet
    sets.set_universe(list(graph.edges), traversal=traversal)
    return float(sets.reliability(dict.fromkeys(graph.edges, UP), terminals))


def our_order(graph: nx.Graph) -> nx.Graph:
    """The graph with its edges in the order of our sweep."""
    edges = read_problem(graph, "all", UP, 1.0).edges
    order = link_order(vertex_order(len(graph), edges), edges)
    return nx.Graph(edges[order].tolist())


def once(method: str, name: str, terminals: str) -> dict[str, float]:
    """Seconds of one call, the median over calls for ``SPAN`` seconds; the answer; and the peak memory."""
    graph, chosen = case(name, terminals)
    if method == "relparallel":
        run_ours(nx.cycle_graph(4), [0, 2])  # load what is compiled
    elif method == "graphillion, our order":
        graph = our_order(graph)
    times: list[float] = []
    while sum(times) < SPAN:
        start = time.process_time()
        if method == "relparallel":
            found = run_ours(graph, chosen)
        else:
            found = run_peer(graph, chosen, "greedy" if method.endswith("greedy") else "as-is")
        times.append(time.process_time() - start)
        if len(times) == 1:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": statistics.median(times), "answer": found, "peak_mb": peak}


def in_process(method: str, name: str, terminals: str) -> dict[str, float] | str:
    """`once` in a process of its own; the reason if that fails."""
    command = [sys.executable, __file__, "--once", method, name, terminals]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20 * LIMIT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 1)),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no answer within {LIMIT} s"
    if done.returncode == 0:
        found: dict[str, float] = json.loads(done.stdout)
        return found
    last = done.stderr.strip().splitlines()[-1:] or [""]
    return last[0] if last[0].startswith("ModuleNotFoundError") else f"no answer within {LIMIT} s and 6 GB"


def measure(name: str, terminals: str) -> list[dict[str, object]]:
    """One row for each way: medians over interleaved rounds, or why there are none."""
    runs: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
    skipped = dict.fromkeys(METHODS, "")
    for _ in range(ROUNDS):
        for method in METHODS:
            if not skipped[method] and sum(run["seconds"] for run in runs[method]) < LIMIT / 4:
                found = in_process(method, name, terminals)
                if isinstance(found, str):
                    skipped[method] = found
                else:
                    runs[method].append(found)
    answer = runs["relparallel"][0]["answer"]
    assert all(abs(run["answer"] - answer) < 1e-12 for each in runs.values() for run in each)
    median = {
        method: {key: statistics.median(run[key] for run in each) for key in ("seconds", "peak_mb")}
        for method, each in runs.items()
        if each
    }
    ours = median["relparallel"]
    return [
        {
            "graph": name, "terminals": terminals, "method": method, "rounds": len(runs[method]),
            "median_cpu_s": float(f"{median[method]['seconds']:.4g}") if method in median else None,
            "peak_mb": round(median[method]["peak_mb"]) if method in median else None,
            "ratio_to_ours": float(f"{median[method]['seconds'] / ours['seconds']:.4g}")
            if method in median else None,
            "skipped": skipped[method],
        }
        for method in METHODS
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Measure the graphs, print the table, write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", help=f"some of {', '.join(GRAPHS)}; all by default")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="CSV file to write")
    parser.add_argument("--once", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.once:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        print(json.dumps(once(*options.once)))  # noqa: T201
        return
    unknown = set(options.graphs) - set(GRAPHS)
    if unknown:
        parser.error(f"graphs must be some of {', '.join(GRAPHS)}, got {', '.join(sorted(unknown))}")
    rows: list[dict[str, object]] = []
    for name in options.graphs or GRAPHS:
        for terminals in TERMINALS:
            rows += measure(name, terminals)
            shown = ["graph", "terminals", "method", "median_cpu_s", "peak_mb", "ratio_to_ours", "skipped"]
            print(pd.DataFrame(rows[-len(METHODS) :])[shown].to_string(index=False), flush=True)  # noqa: T201
    runpy.run_path(str(Path(__file__).with_name("run.py")))["write"](rows, options.output)


if __name__ == "__main__":
    main()
