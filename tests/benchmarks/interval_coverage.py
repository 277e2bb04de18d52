"""How often the estimators' intervals hold the exact unreliability: 1,000 seeded runs of each.

Networks have exact answers from 1e-11 to 0.3; links and nodes fail. ``covered`` is the share of the
runs whose 95 % interval holds it, ``below`` and ``above`` the shares whose interval lies below and
above it; ``half_width`` is the mean of half the interval over the exact value, ``bias_share`` the
mean share of the bias bound in the upper half of the interval. "karp_luby" and "recursive" add such
a bound and hold more often than they say. Run it by ``python
tests/benchmarks/interval_coverage.py`` (ten minutes); it writes
``data/derived/estimator_coverage.csv``.
"""

import os

if __name__ == "__main__":  # libraries count their threads when they are loaded
    for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

from chapters.s13.estimators import estimate_problem
from relparallel.reliability import evaluate
from relparallel.reliability.problem import read_problem
from relparallel.topology import fat_tree

OUTPUT = Path(__file__).resolve().parents[2] / "data" / "derived" / "estimator_coverage.csv"
RUNS, CONFIDENCE = 1000, 0.95
NETWORKS = {  # graph, terminals, up-probability of links and of nodes
    "dodecahedron, q = 0.1": (nx.dodecahedral_graph(), "all", 0.9, 1.0),
    "dodecahedron, q = 0.01": (nx.dodecahedral_graph(), "all", 0.99, 1.0),
    "dodecahedron pair, q = 0.1": (nx.dodecahedral_graph(), (0, 19), 0.9, 1.0),
    "torus 4x4, q = 0.1": (nx.grid_2d_graph(4, 4, periodic=True), "all", 0.9, 1.0),
    "torus 4x4, q = 0.001": (nx.grid_2d_graph(4, 4, periodic=True), "all", 0.999, 1.0),
    "Petersen, q = 0.1": (nx.petersen_graph(), "all", 0.9, 1.0),
    "Petersen, q = 0.01": (nx.petersen_graph(), "all", 0.99, 1.0),
    "Petersen, q = 1e-4": (nx.petersen_graph(), "all", 0.9999, 1.0),
    "three of a random graph, nodes fail": (
        nx.gnm_random_graph(12, 24, seed=3),
        (0, 5, 9),
        0.95,
        0.9,
    ),
    "fat-tree k = 4 pair, nodes fail": (fat_tree(4), (0, 15), 0.99, 0.95),
}
SAMPLES = {
    "crude": {
        "dodecahedron, q = 0.1": 3000,
        "torus 4x4, q = 0.1": 20_000,
        "Petersen, q = 0.1": 2000,
    },
    "permutation": dict.fromkeys(NETWORKS, 512),
    "splitting": {
        "Petersen, q = 0.1": 256,
        "Petersen, q = 0.01": 512,
        "dodecahedron pair, q = 0.1": 128,
    },
    "zero_variance": {"Petersen, q = 0.1": 512, "Petersen, q = 1e-4": 512},
    "recursive": {"Petersen, q = 0.1": 64, "Petersen, q = 1e-4": 128, "torus 4x4, q = 0.001": 16},
    "karp_luby": dict.fromkeys(list(NETWORKS)[:8], 400),
    "auto": {"torus 4x4, q = 0.001": 400, "three of a random graph, nodes fail": 128},
}
for _name in list(NETWORKS)[-2:]:
    SAMPLES["crude"][_name] = 500
    SAMPLES["zero_variance"][_name] = 2048
    SAMPLES["recursive"][_name] = 32
SAMPLES["splitting"]["three of a random graph, nodes fail"] = 128


def measure(network: str, method: str, samples: int, runs: int = RUNS) -> dict[str, object]:
    """One row of the table."""
    problem = read_problem(*NETWORKS[network])
    truth = evaluate(*NETWORKS[network], method="exact").unreliability
    found = [
        estimate_problem(problem, method, np.random.default_rng(seed), 0.1, CONFIDENCE, samples)
        for seed in range(runs)
    ]
    half = np.array([(x.upper - x.lower) / 2 for x in found])
    below, above = (
        np.mean(side)
        for side in zip(*((x.upper < truth, truth < x.lower) for x in found), strict=True)
    )
    return {
        "network": network,
        "method": method,
        "samples": samples,
        "runs": runs,
        "exact": float(f"{truth:.6g}"),
        "covered": round(float(1 - below - above), 3),
        "below": round(float(below), 3),
        "above": round(float(above), 3),
        "half_width": float(f"{half.mean() / truth:.3g}"),
        "bias_share": round(float(np.mean([x.bias_bound / (x.upper - x.value) for x in found])), 3),
    }


def main(arguments: list[str] | None = None) -> None:
    """Run all, print the table, write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT, help="CSV file to write")
    parser.add_argument(
        "--runs", type=int, default=RUNS, help="runs of each estimator on each network"
    )
    options = parser.parse_args(arguments)
    rows = []
    for method, networks in SAMPLES.items():
        for network, samples in networks.items():
            start = time.process_time()
            rows.append(measure(network, method, samples, options.runs))
            print(*rows[-1].values(), f"{time.process_time() - start:.1f} s", sep=", ", flush=True)  # noqa: T201
    pd.DataFrame(rows).to_csv(options.output, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
