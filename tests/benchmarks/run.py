"""All-pairs hop statistics against other graph libraries: same graphs, answers, machine, in turn.

Every library computes the histogram of hops between all ordered pairs of different nodes from its
own graph object, which is built beforehand and not timed. One thread each, and seconds of the
processor, so that other work on the machine does not count. In every round each library runs once;
the table holds medians over the rounds and the ratio of each to ours. All answers must agree. A
library that would need a matrix of more than ``MEMORY`` bytes, or more than ``LIMIT`` seconds by
its time on a few sources, is skipped with that reason; one that has used ``BUDGET`` seconds sits
out the other rounds. Run it by ``make bench``; it writes ``data/benchmarks/hops.csv``.
"""

import os

if __name__ == "__main__":  # libraries count their threads when they are loaded
    for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON", "NUMEXPR"):
        os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import datetime
import platform
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

from relparallel.metrics import hop_statistics
from relparallel.topology import Topology, bcube, fat_tree, torus

OUTPUT = Path(__file__).resolve().parents[2] / "data" / "benchmarks" / "hops.csv"
# s of one run, bytes, rounds at most, s of one library
LIMIT, MEMORY, ROUNDS, BUDGET = 60.0, 2.0e9, 7, 3.0
SPAN = 0.05  # s of the calls of one round, so that short ones are not measured on cold caches
SAMPLE = 16  # sources from which the time of a slow library is foretold
Histogram = dict[int, int]


def jellyfish_graph() -> Topology:
    """Random regular graph of 1,000 switches with 12 cables each."""
    return Topology.from_networkx(nx.random_regular_graph(12, 1000, seed=1))


GRAPHS: dict[str, Callable[[], Topology]] = {
    "bcube(8,2)": lambda: bcube(8, 2),
    "jellyfish(1000,12)": jellyfish_graph,
    "fat_tree(24)": lambda: fat_tree(24),
    "torus(16,16,16)": lambda: torus((16, 16, 16)),
    "fat_tree(32)": lambda: fat_tree(32),
}


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A library: its graph object of a topology, and hops from some of its nodes (default: all)."""

    name: str
    build: Callable[[Topology], object]
    run: Callable[..., Histogram]
    matrix_bytes: int = 0  # of one entry of an n x n matrix that it holds


def counted(distances: np.ndarray) -> Histogram:
    """Histogram of a matrix of distances, self pairs left out."""
    values, counts = np.unique(distances, return_counts=True)
    return {int(d): int(c) for d, c in zip(values, counts, strict=True) if 0 < d < np.inf}


def plain_networkx(t: Topology) -> nx.Graph:
    graph = nx.empty_graph(t.num_nodes)
    graph.add_edges_from(t.edges.tolist())
    return graph


def run_networkx(graph: nx.Graph, sources: int | None = None) -> Histogram:
    found: Counter[int] = Counter()
    for source in range(len(graph) if sources is None else sources):
        found.update(nx.single_source_shortest_path_length(graph, source).values())
    del found[0]
    return dict(found)


def build_igraph(t: Topology) -> object:
    return import_module("igraph").Graph(t.num_nodes, t.edges.tolist())


def run_igraph(graph) -> Histogram:
    """Unordered pairs, hence twice."""
    return {
        int(left): 2 * int(count)
        for left, _, count in graph.path_length_hist(directed=False).bins()
    }


def build_networkit(t: Topology) -> object:
    kit = import_module("networkit")
    kit.setNumberOfThreads(1)
    graph = kit.Graph(t.num_nodes)
    for u, v in t.edges.tolist():
        graph.addEdge(u, v)
    return graph


def run_networkit(graph) -> Histogram:
    """Pairs within each distance, hence differences; its first number is that of distance 1."""
    within = (
        import_module("networkit")
        .distance.NeighborhoodFunction(graph)
        .run()
        .getNeighborhoodFunction()
    )
    fresh = np.diff([0, *within])
    return {distance: int(count) for distance, count in enumerate(fresh, start=1)}


def build_rustworkx(t: Topology) -> object:
    graph = import_module("rustworkx").PyGraph()
    graph.add_nodes_from(range(t.num_nodes))
    graph.add_edges_from_no_data([(u, v) for u, v in t.edges.tolist()])
    return graph


def run_rustworkx(graph) -> Histogram:
    rx = import_module("rustworkx")
    return counted(rx.distance_matrix(graph, parallel_threshold=10**9))


def build_scipy(t: Topology) -> object:
    sparse = import_module("scipy.sparse")
    ones = np.ones(len(t.edges))
    return sparse.csr_array((ones, (t.edges[:, 0], t.edges[:, 1])), shape=(t.num_nodes,) * 2)


def run_scipy(graph) -> Histogram:
    csgraph = import_module("scipy.sparse.csgraph")
    return counted(csgraph.shortest_path(graph, method="D", directed=False, unweighted=True))


OURS = Peer(
    name="relparallel",
    build=lambda t: t,
    run=lambda t: dict(hop_statistics(t, endpoints="nodes").histogram),
)
PEERS = (
    OURS,
    Peer(name="igraph", build=build_igraph, run=run_igraph),
    Peer(name="networkit", build=build_networkit, run=run_networkit),
    Peer(name="rustworkx", build=build_rustworkx, run=run_rustworkx, matrix_bytes=8),
    Peer(name="scipy", build=build_scipy, run=run_scipy, matrix_bytes=8),
    Peer(name="networkx", build=plain_networkx, run=run_networkx),
)


def forwarding(t: Topology) -> Topology:
    """The same cables, every node passing traffic on, as the other libraries assume."""
    return Topology.from_networkx(plain_networkx(t))


def reason_to_skip(peer: Peer, t: Topology, graph: object) -> str:
    """Why the library is not run on this graph; empty where it is."""
    need = peer.matrix_bytes * t.num_nodes**2
    if need > MEMORY:
        return f"needs a matrix of {need / 1e9:.1f} GB"
    if peer.name != "networkx" or t.num_nodes <= SAMPLE:
        return ""
    start = time.process_time()
    peer.run(graph, SAMPLE)
    foretold = (time.process_time() - start) * t.num_nodes / SAMPLE
    return f"would take about {foretold:.0f} s" if foretold > LIMIT else ""


def timed(peer: Peer, graph: object) -> tuple[float, Histogram]:
    """Seconds of one call, the mean of as many as take ``SPAN`` seconds, and the answer."""
    calls, start = 0, time.process_time()
    while True:
        found = peer.run(graph)
        calls += 1
        if (spent := time.process_time() - start) >= SPAN:
            return spent / calls, found


def measure(name: str, t: Topology) -> list[dict[str, object]]:
    """One row per library: median seconds over interleaved rounds and ratio to ours, or why not."""
    t = forwarding(t)
    graphs = {peer.name: peer.build(t) for peer in PEERS}
    skipped = {peer.name: reason_to_skip(peer, t, graphs[peer.name]) for peer in PEERS}
    expected = OURS.run(graphs[OURS.name])  # compiled before it is timed
    assert sum(expected.values()) == t.num_nodes * (t.num_nodes - 1)
    times: dict[str, list[float]] = {peer.name: [] for peer in PEERS}
    for _ in range(ROUNDS):
        for peer in PEERS:
            if skipped[peer.name] or sum(times[peer.name]) > BUDGET:
                continue
            seconds, found = timed(peer, graphs[peer.name])
            times[peer.name].append(seconds)
            assert found == expected, (
                f"{peer.name} disagrees on {name}: {found} instead of {expected}"
            )
    ours = statistics.median(times[OURS.name])
    return [
        {
            "graph": name,
            "nodes": t.num_nodes,
            "pairs_joined": len(t.edges),
            "library": peer.name,
            "version": version(peer.name),
            "rounds": len(times[peer.name]),
            "median_cpu_s": float(f"{statistics.median(times[peer.name]):.4g}")
            if times[peer.name]
            else None,
            "ratio_to_ours": float(f"{statistics.median(times[peer.name]) / ours:.4g}")
            if times[peer.name]
            else None,
            "skipped": skipped[peer.name],
        }
        for peer in PEERS
    ]


def processor(threads: int = 1) -> str:
    """Processor name, how many of its cores this process may use, and how many threads it used."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(
            line.partition(":")[2].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    used = "one thread" if threads == 1 else f"{threads} threads"
    return f"{name}, {len(os.sched_getaffinity(0))} cores, {used} used"


def write(rows: list[dict[str, object]], path: Path) -> None:
    """Write beside the file and move into place; rows may tell how many ``threads`` they took."""
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    frame = pd.DataFrame(rows).assign(date=day, python=platform.python_version())
    frame["machine"] = [processor(row.get("threads", 1)) for row in rows]
    frame = frame.drop(columns="threads", errors="ignore")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        frame.to_csv(part, index=False, lineterminator="\n")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def main(arguments: list[str] | None = None) -> None:
    """Measure the graphs, print the table, write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", help=f"some of {', '.join(GRAPHS)}; all by default")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="CSV file to write")
    options = parser.parse_args(arguments)
    unknown = set(options.graphs) - set(GRAPHS)
    if unknown:
        parser.error(
            f"graphs must be some of {', '.join(GRAPHS)}, got {', '.join(sorted(unknown))}"
        )
    rows: list[dict[str, object]] = []
    for name in options.graphs or GRAPHS:
        rows += measure(name, GRAPHS[name]())
        columns = ["graph", "library", "rounds", "median_cpu_s", "ratio_to_ours", "skipped"]
        print(pd.DataFrame(rows[-len(PEERS) :])[columns].to_string(index=False), flush=True)  # noqa: T201
    write(rows, options.output)


if __name__ == "__main__":
    main()
