"""Every estimator of a small unreliability on one question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import networkx as nx
import numpy as np
import pandas as pd
from scipy.special import ndtri

from chapters.s13.cut_estimators import (
    FlowGraph,
    flow_graph,
    likely_cuts,
    sample_recursive,
    sample_zero_variance,
    workspace,
)
from chapters.s13.splitting import pilot_levels, sample_splitting
from relparallel.reliability.bounding.cut_families import TINY
from relparallel.reliability.problem import LinkChance, Problem, Terminals, read_problem
from relparallel.reliability.sampling import estimation
from relparallel.reliability.sampling.moments import Estimator, UnreliabilityEstimate
from relparallel.reliability.sampling.samplers import (
    PILOT_SHARE,
    Prepare,
    make_sampler,
    require_work,
)
from relparallel.reliability.sampling.sampling_network import Network
from relparallel.topology import Topology

SAMPLED: Final = ("recursive", "zero_variance", "permutation", "splitting", "crude")
_CONFIDENCE: Final = 0.95
_STATES: Final = 512  # of the pilot run of splitting
_FEW: Final = 64  # samples of a pilot run of those that look for cuts
_LEVELS: Final = 30  # of splitting, for a rough prediction of its work


def estimate_problem(
    problem: Problem,
    method: str,
    rng: np.random.Generator,
    rtol: float = 1e-2,
    confidence: float = _CONFIDENCE,
    samples: int | None = None,
    max_work: float = 2e9,
) -> UnreliabilityEstimate:
    """The estimate of the library, or one of the three that it does not offer."""
    if method not in _PREPARE:
        offered = cast(Estimator, method)
        return estimation.estimate_problem(
            problem, offered, rng, rtol, confidence, samples, max_work
        )
    sampler = make_sampler(problem, method, rng, max_work, _PREPARE[method])
    return estimation.estimate_by(sampler, rng, rtol, confidence, samples, max_work, None)


def estimator_table(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    link_up: LinkChance = 1.0,
    *,
    rng: np.random.Generator,
    methods: Sequence[str] = SAMPLED,
    samples: int = 1000,
) -> pd.DataFrame:
    """Accuracy against work of several estimators on one network, one row per method.

    Columns are those of `UnreliabilityEstimate.to_frame`, ``work_per_sample``, and its product with
    the relative variance of one sample ``work_variance``: the less the better. The network and the
    interval are as in `estimate`.

    >>> import networkx as nx
    >>> table = estimator_table(nx.petersen_graph(), "all", 0.99, rng=np.random.default_rng(1))
    >>> bool(table.set_index("method").work_variance["recursive"] < 1e3)
    True
    """
    problem, rows = read_problem(graph, terminals, link_up, 1.0), []
    for method in methods:
        found = estimate_problem(problem, method, rng, samples=samples, max_work=2e10)
        row = found.to_frame()
        row["work_per_sample"] = found.work / max(found.samples, 1)
        quantile = float(ndtri((1 + _CONFIDENCE) / 2))
        spread = (found.relative_error - found.bias_bound / max(found.value, TINY)) / quantile
        row["work_variance"] = spread**2 * found.work
        rows.append(row)
    return pd.concat(rows, ignore_index=True)


def _splitting(network: Network, rng: np.random.Generator, max_work: float) -> dict[str, Any]:
    # a sweep may relabel for every part
    one = _LEVELS * float(len(network.down)) * len(network.around)
    states = int(min(max(PILOT_SHARE * max_work / 20 / one, 64), _STATES))
    require_work("splitting", 64 * one, max_work)
    levels = pilot_levels(network, network.rate, states, rng)
    spent = int(states * len(levels) * len(network.down))
    sizes = {"chunk": 2**11, "pilot": 2**11, "spent": spent}
    return {"kernel": sample_splitting, "arguments": (network, levels), **sizes}


def _recursive(network: Network, _: np.random.Generator, max_work: float) -> dict[str, Any]:
    flow = flow_graph(network)
    size, spent = _first_cut(flow)
    work = _FEW * float(spent) * (size + 1) * int(network.terminal.sum())
    require_work("recursive", work, max_work)
    sizes = {"chunk": 2**6, "pilot": _FEW, "spent": spent}
    return {"kernel": sample_recursive, "arguments": (network, flow), **sizes}


def _zero_variance(network: Network, _: np.random.Generator, max_work: float) -> dict[str, Any]:
    flow = flow_graph(network)
    spent = _first_cut(flow)[1]
    require_work("zero_variance", _FEW * float(spent) * len(network.down), max_work)
    sizes = {"chunk": 2**6, "pilot": _FEW, "spent": spent, "least": 2**11}
    return {"kernel": sample_zero_variance, "arguments": (network, flow), **sizes}


def _first_cut(flow: FlowGraph) -> tuple[int, int]:
    """Parts in the most likely cut, and the work of finding it."""
    _, size, work = likely_cuts(flow, flow.weight, workspace(flow))
    return int(size), int(work)


_PREPARE: Final[dict[str, Prepare]] = {
    "splitting": _splitting,
    "recursive": _recursive,
    "zero_variance": _zero_variance,
}
