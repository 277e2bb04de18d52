"""Unreliability from 1e-20 to 1e-6 of an 8x8x8 torus and a 16-ary fat-tree whose links fail.

Karp and Luby's estimator and certified bounds, each asked for a relative error of 1e-2 with the
bias bound in it; generalised splitting, which is refused where its work would be too much.
``relative_error`` is how far the farther end of the interval or bracket lies from the value,
``bias_bound`` what cuts left out may add, both over the value; seconds of the processor, after one
small call that compiles. Run it by ``make bench``; it writes ``data/benchmarks/rare_events.csv``.
"""

import os

if __name__ == "__main__":  # libraries count their threads when they are loaded
    for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import runpy
import time
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

from chapters.s13.estimators import estimate_problem
from relparallel.reliability import bounds
from relparallel.reliability.problem import read_problem
from relparallel.topology import Topology, fat_tree, torus

OUTPUT = Path(__file__).resolve().parents[2] / "data" / "benchmarks" / "rare_events.csv"
WRITE = runpy.run_path(str(Path(__file__).with_name("run.py")))["write"]
RTOL = 1e-2
METHODS = ("karp_luby", "bounds", "splitting")


def cases() -> Iterator[tuple[str, Topology, object, float]]:
    """Name, network, terminals, link-down probability: U is about 1e-20, 1e-13 and 1e-6."""
    large, fabric = torus((8, 8, 8)), fat_tree(16)
    for down in (1.64e-4, 2.4e-3, 0.0354):
        yield "torus 8x8x8, all", large, "nodes", down
    for down in (4.2e-4, 6.1e-3, 0.0891):
        yield "torus 8x8x8, opposite pair", large, (0, 292), down
    for down in (1e-23, 1e-16, 9.7e-10):
        yield "fat-tree k = 16, hosts", fabric, "all", down
    for down in (1.73e-3, 0.013, 0.097):
        yield "fat-tree k = 16, switches", fabric, "switches", down
    pair = tuple(np.flatnonzero(fabric.is_kind("edge"))[[0, -1]].tolist())
    for down in (2.9e-3, 0.0218, 0.163):
        yield "fat-tree k = 16, pair of edge switches", fabric, pair, down


def measure(
    name: str, network: Topology, terminals: object, down: float, method: str
) -> dict[str, object]:
    """One row of the table."""
    start, refused, bias = time.process_time(), "", 0.0
    value = low = high = float("nan")
    try:
        if method == "bounds":
            found = bounds(network, terminals, link_down=down, rtol=RTOL)
            value, low, high = (found.lower + found.upper) / 2, found.lower, found.upper
        else:
            rng = np.random.default_rng(1)
            problem = read_problem(network, terminals, 1.0, 1.0, down)
            guess = estimate_problem(problem, method, rng, RTOL, max_work=2e10)
            value, low, high, bias = guess.value, guess.lower, guess.upper, guess.bias_bound
    except ValueError as why:
        refused = str(why)
    return {
        "network": name,
        "method": method,
        "link_down": down,
        "value": float(f"{value:.6g}"),
        "relative_error": float(f"{max(high - value, value - low) / value:.2g}"),
        "bias_bound": float(f"{bias / value:.2g}"),
        "cpu_s": float(f"{time.process_time() - start:.2g}"),
        "refused": refused,
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT, help="CSV file to write")
    options = parser.parse_args(arguments)
    for method in METHODS:
        measure("", Topology.from_networkx(nx.petersen_graph()), "all", 0.1, method)
    rows = [measure(*case, method) for case in cases() for method in METHODS]
    print(pd.DataFrame(rows).to_string(index=False))  # noqa: T201
    WRITE(rows, options.output)


if __name__ == "__main__":
    main()
