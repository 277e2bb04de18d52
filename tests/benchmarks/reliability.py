"""Exact reliability against graphillion: the same graphs, answers and machine, in turn.

Both start from a graph in Python and end with the probability; ours finds its order in that time.
graphillion runs with our order ("as-is"), which is found for it beforehand, with its own
("greedy"), both on one thread, and with its defaults: its own order and as many threads as there
are cores. Seconds of the processor, all threads together, and of the clock; medians over the
rounds. Its threads wait for each other by spinning, so that the defaults want an idle machine.
Every run has a process of its own that loads only what it needs, for graphillion keeps its universe
and libraries count their threads when they are loaded. ``peak_mb`` is the most memory of that
process up to the end of one evaluation, ``private_mb`` that without the pages of files, which are
the code of libraries, and ``base_mb`` the most before it, where ours holds numba. A run that takes
more than ``LIMIT`` seconds or ``MEMORY`` bytes is reported so. The Topology Zoo is one row, the sum
over its networks, where ``RELPARALLEL_DATA`` names a folder with it. Run it by ``make bench``; it
writes ``data/benchmarks/reliability.csv``.
"""

import os

if __name__ == "__main__":
    # what a run starts with, unless told otherwise
    for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import json
import re
import resource
import runpy
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import networkx as nx
import numpy as np

from relparallel.reliability import evaluate
from relparallel.reliability.frontier.link_orders import link_order, vertex_order
from relparallel.reliability.problem import read_problem
from relparallel.topology import Topology, bcube, dcell, fat_tree, torus

OUTPUT = Path(__file__).resolve().parents[2] / "data" / "benchmarks" / "reliability.csv"
PEER = Path(__file__).with_name("reliability_peer.py")
# s of repeated calls in a round; s and bytes of one run
ROUNDS, SPAN, LIMIT, MEMORY = 3, 0.1, 60, 6 * 10**9
UP, ZOO, ZOO_UP = 0.9, "Topology Zoo", 0.99
THREADS = "OMP_NUM_THREADS"


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
    "grid 12x12": lambda: nx.grid_2d_graph(12, 12),
}
TERMINALS = {name: ("all",) if name == "grid 12x12" else ("all", "two") for name in GRAPHS}
GREEDY, DEFAULTS = "graphillion, greedy", "graphillion, defaults"
METHODS = ("relparallel", "graphillion, our order", GREEDY, DEFAULTS)
LONG = {METHODS[1]: 5, GREEDY: 10}  # s of one way from which graphillion's next is not tried


def case(name: str, terminals: str) -> tuple[nx.Graph, list[int]]:
    """The graph with nodes 0..n-1, and its terminals: all, or node 0 and one farthest from it."""
    graph = nx.convert_node_labels_to_integers(GRAPHS[name]())
    hops = nx.single_source_shortest_path_length(graph, 0)
    return graph, list(graph) if terminals == "all" else [0, max(graph, key=hops.__getitem__)]


def zoo(data: Path) -> dict[str, nx.Graph]:
    """The largest part of every network of the Topology Zoo, without loops and parallel cables."""
    graphs = {}
    with tarfile.open(data / "data/topology-zoo/topology-zoo.tar.xz") as archive:
        for member in archive:
            if member.name.endswith(".graphml"):
                text = archive.extractfile(member).read()
                graph = nx.Graph(nx.read_graphml(BytesIO(text), force_multigraph=True).edges())
                graph.remove_edges_from(list(nx.selfloop_edges(graph)))
                largest = max(nx.connected_components(graph), key=len)
                graphs[Path(member.name).stem] = nx.Graph(graph.subgraph(largest).edges)
    return graphs


def our_order(graph: nx.Graph, terminals: list[int]) -> list[list[int]]:
    """Edges in the order of our sweep for these terminals."""
    edges, wanted = (
        read_problem(graph, "all", UP, 1.0).edges,
        np.isin(np.arange(len(graph)), terminals),
    )
    return edges[link_order(vertex_order(edges, wanted, 1.0), edges)].tolist()


def memory_mb(field: str) -> float:
    """Memory of this process so far, MB; getrusage also counts the parent's before the fork."""
    return int(re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024


def once(name: str, terminals: str) -> dict[str, float]:
    """Ours: seconds of a call, median over calls for ``SPAN`` seconds; the answer; the memory."""
    if name == ZOO:
        cases = [
            (graph, list(graph), ZOO_UP)
            for graph in zoo(Path(os.environ["RELPARALLEL_DATA"])).values()
        ]
    else:
        cases = [(*case(name, terminals), UP)]
    evaluate(nx.cycle_graph(5), [0, 2], UP)  # load what is compiled
    base, times = memory_mb("VmHWM"), []
    while sum(wall for _, wall in times) < SPAN:
        start = time.process_time(), time.perf_counter()
        found = [evaluate(*question).reliability for question in cases]
        times.append((time.process_time() - start[0], time.perf_counter() - start[1]))
        if len(times) == 1:
            peak, libraries = memory_mb("VmHWM"), memory_mb("RssFile")
    seconds, wall = map(statistics.median, zip(*times, strict=True))
    measured = {"seconds": seconds, "wall": wall, "answer": statistics.fmean(found)}
    return measured | {"peak_mb": peak, "base_mb": base, "private_mb": peak - libraries}


def in_process(method: str, name: str, terminals: str) -> dict[str, float] | str:
    """One way in a process of its own; the reason if that fails."""
    command, given = [sys.executable, __file__, "--once", name, terminals], None
    environment = {
        key: value for key, value in os.environ.items() if key != THREADS or method != DEFAULTS
    }
    if method != "relparallel":
        graph, chosen = case(name, terminals)
        own = method in (GREEDY, DEFAULTS)
        edges, traversal = (
            (list(graph.edges), "greedy") if own else (our_order(graph, chosen), "as-is")
        )
        question = {
            "edges": edges,
            "terminals": chosen,
            "traversal": traversal,
            "up": UP,
            "span": SPAN,
        }
        command, given = [sys.executable, str(PEER)], json.dumps(question)
    try:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            preexec_fn=_limited,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {LIMIT} s"
    if done.returncode == 0:
        found: dict[str, float] = json.loads(done.stdout)
        return found
    last = done.stderr.strip().splitlines()[-1:] or [""]
    return (
        last[0]
        if last[0].startswith("ModuleNotFoundError")
        else f"no answer within {LIMIT} s and 6 GB"
    )


def _limited() -> None:
    """Limit this process's memory; a limit of its CPU time would make the CPU clock coarse."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def measure(name: str, terminals: str) -> list[dict[str, object]]:
    """One row for each way: medians over interleaved rounds, or why there are none."""
    methods = METHODS if name in GRAPHS else METHODS[:1]
    runs: dict[str, list[dict[str, float]]] = {method: [] for method in methods}
    skipped = dict.fromkeys(methods, "")
    for _ in range(ROUNDS):
        for method, before in zip(methods, ("", "", METHODS[1], GREEDY), strict=False):
            spent = sum(run["seconds"] for run in runs[method])
            if before and skipped[before]:
                skipped[method] = skipped[before]
            elif (
                before and statistics.median(run["seconds"] for run in runs[before]) > LONG[before]
            ):
                words = {METHODS[1]: "with our order", GREEDY: "on one thread"}[before]
                reason = f"over {LONG[before]} s {words}"
                skipped[method] = skipped[method] or ("" if runs[method] else reason)
            elif not skipped[method] and spent < LIMIT / 4:
                found = in_process(method, name, terminals)
                if isinstance(found, str):
                    skipped[method] = found
                else:
                    runs[method].append(found)
    answer = runs["relparallel"][0]["answer"]
    assert all(abs(run["answer"] - answer) < 1e-12 for each in runs.values() for run in each)
    return [
        _row(name, terminals, method, runs[method], skipped[method], runs["relparallel"])
        for method in methods
    ]


def _row(
    name: str,
    terminals: str,
    method: str,
    runs: list[dict[str, float]],
    skipped: str,
    ours: list[dict[str, float]],
) -> dict[str, object]:
    """Medians of the runs, and the ratio of the seconds to ours."""
    median = {key: statistics.median(run[key] for run in runs) for key in runs[0]} if runs else {}
    seconds = statistics.median(run["seconds"] for run in ours)
    return {
        "graph": name,
        "terminals": terminals,
        "method": method,
        "rounds": len(runs),
        "median_cpu_s": float(f"{median['seconds']:.4g}") if runs else None,
        "median_wall_s": float(f"{median['wall']:.4g}") if runs else None,
        **{
            key: round(median[key]) if runs else None
            for key in ("peak_mb", "private_mb", "base_mb")
        },
        "ratio_to_ours": float(f"{median['seconds'] / seconds:.4g}") if runs else None,
        "skipped": skipped,
        "threads": os.cpu_count() if method == DEFAULTS else 1,
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure the graphs, print the table, write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "graphs", nargs="*", help=f"some of {', '.join([*GRAPHS, ZOO])}; all by default"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="CSV file to write")
    parser.add_argument("--once", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.once:
        print(json.dumps(once(*options.once)))  # noqa: T201
        return
    known = [*GRAPHS, *([ZOO] if os.environ.get("RELPARALLEL_DATA") else [])]
    unknown = set(options.graphs) - set(known)
    if unknown:
        parser.error(f"graphs must be some of {', '.join(known)}, got {', '.join(sorted(unknown))}")
    # compile here, not within the limit of a run
    evaluate(nx.cycle_graph(4), [0, 2], UP, method="exact")
    import pandas as pd  # not in the processes whose memory is measured

    rows: list[dict[str, object]] = []
    for name in options.graphs or known:
        for terminals in TERMINALS.get(name, ("all",)):
            rows += measure(name, terminals)
            shown = pd.DataFrame(
                [row for row in rows if (row["graph"], row["terminals"]) == (name, terminals)]
            )
            print(shown.drop(columns=["rounds", "threads"]).to_string(index=False), flush=True)  # noqa: T201
    runpy.run_path(str(Path(__file__).with_name("run.py")))["write"](rows, options.output)


if __name__ == "__main__":
    main()
