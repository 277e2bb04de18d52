"""The estimators as samplers: a kernel, what it is called with, and what was computed exactly beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Estimator
from relparallel.reliability.sampling.cut_estimators import sample_recursive, sample_zero_variance
from relparallel.reliability.sampling.cut_flow import FlowGraph, flow_graph, likely_cuts, workspace
from relparallel.reliability.sampling.monte_carlo import count_failures
from relparallel.reliability.sampling.permutation import sample_turnip
from relparallel.reliability.sampling.sampling_network import Network, sampling_network
from relparallel.reliability.sampling.splitting import pilot_levels, sample_splitting

_STATES: Final = 512  # of the pilot run of splitting
_FEW: Final = 64  # samples of a pilot run of those that look for cuts
_LEAST: Final = {"permutation": 2**9, "splitting": 2**9, "recursive": 2**9, "zero_variance": 2**11}
PILOT_SHARE: Final = 0.1  # of the work: more would leave too little for the answer
_LEVELS: Final = 30  # of splitting, for a rough prediction of its work


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampler:
    """How to draw samples whose mean is U', where the unreliability is failed + alive * U'."""

    method: Estimator
    kernel: Callable[..., Any]
    arguments: tuple[Any, ...]
    alive: float = 1.0
    failed: float = 0.0
    chunk: int = 2**15
    pilot: int = 2**12
    least: int = 2**9
    certain: bool = False
    spent: int = 0


def make_sampler(problem: Problem, method: Estimator, rng: np.random.Generator, max_work: float) -> Sampler:
    """Prepare an estimator."""
    if method == "crude":
        return Sampler(method=method, kernel=_crude, arguments=(problem,))
    alive, failed, network = sampling_network(problem)
    if network is None:
        return Sampler(method=method, kernel=_crude, arguments=(), failed=failed, certain=True)
    kernel, extra, chunk, pilot, spent = _PREPARE[method](network, rng, max_work)
    return Sampler(
        method=method, kernel=kernel, arguments=(network, *extra), alive=alive, failed=failed,
        chunk=chunk, pilot=pilot, spent=spent, least=_LEAST[method],
    )  # fmt: skip


def _crude(problem: Problem, samples: int, rng: np.random.Generator) -> tuple[float, float, float, int]:
    """States of the network: the share that fails."""
    share = count_failures(problem, (samples, rng)) / samples
    square = samples * share * (1 - share)
    return share, square, square * (1 - 2 * share), samples * (len(problem.link) + len(problem.node))


_Prepared = tuple[Callable[..., Any], tuple[Any, ...], int, int, int]  # kernel, extra, chunk, pilot, work


def _permutation(network: Network, _: np.random.Generator, max_work: float) -> _Prepared:
    _require_work("permutation", 2**10 * float(network.rate.sum()), max_work)
    return sample_turnip, (), 2**12, 2**10, 0


def _splitting(network: Network, rng: np.random.Generator, max_work: float) -> _Prepared:
    one = _LEVELS * float(len(network.down)) * len(network.around)  # a sweep may relabel for every part
    states = int(min(max(PILOT_SHARE * max_work / 20 / one, 64), _STATES))
    _require_work("splitting", 64 * one, max_work)
    levels = pilot_levels(network, rng, states)
    return sample_splitting, (levels,), 2**11, 2**11, int(states * len(levels) * len(network.down))


def _recursive(network: Network, _: np.random.Generator, max_work: float) -> _Prepared:
    flow = flow_graph(network)
    size, work = _first_cut(flow)
    _require_work("recursive", _FEW * float(work) * (size + 1) * int(network.terminal.sum()), max_work)
    return sample_recursive, (flow,), 2**6, _FEW, work


def _zero_variance(network: Network, _: np.random.Generator, max_work: float) -> _Prepared:
    flow = flow_graph(network)
    work = _first_cut(flow)[1]
    _require_work("zero_variance", _FEW * float(work) * len(network.down), max_work)
    return sample_zero_variance, (flow,), 2**6, _FEW, work


def _first_cut(flow: FlowGraph) -> tuple[int, int]:
    """Parts in the most likely cut, and the work of finding it."""
    _, size, work = likely_cuts(flow, flow.weight, workspace(flow))
    return int(size), int(work)


def _require_work(method: str, work: float, max_work: float) -> None:
    """Refuse what would never end."""
    least = work / PILOT_SHARE
    if least > max_work:
        raise ValueError(
            f"max_work must be {least:.1e} or more for method={method!r} on this network, got {max_work:.1e}"
        )


_PREPARE: Final = {
    "permutation": _permutation,
    "splitting": _splitting,
    "recursive": _recursive,
    "zero_variance": _zero_variance,
}
