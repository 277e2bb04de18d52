"""Crude Monte Carlo: sample states of the network, count those in which the terminals are cut off.

Sixty-four samples share a machine word: bit b of a link's word says whether the link is up in sample b.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_int, require_real, require_rng
from relparallel.metrics import binomial_estimate
from relparallel.metrics._reachability import all_joined
from relparallel.reliability.bounding.cuts import rows_of
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability
from relparallel.sweep import chunk_sizes, map_chunks, spawn_streams

_CHUNK = 2**15  # samples per chunk and random stream: a constant, so that answers do not depend on workers

Words = NDArray[np.uint64]
Chunk = tuple[int, np.random.Generator]


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingPlan:
    """How much to sample, with which random numbers, and where."""

    samples: int
    confidence: float
    rng: np.random.Generator | None
    executor: Executor | None

    def __post_init__(self) -> None:
        require_int(samples=self.samples, at_least=1, at_most=10**12)
        require_real(confidence=self.confidence, above=0, below=1)
        require_instance((np.random.Generator, type(None)), rng=self.rng)
        require_instance((Executor, type(None)), executor=self.executor)


def estimate(problem: Problem, plan: SamplingPlan) -> Reliability:
    """Estimate the unreliability, with an interval that holds it at least as often as stated."""
    sizes = chunk_sizes(plan.samples, _CHUNK)
    chunks = zip(sizes, spawn_streams(require_rng(rng=plan.rng), len(sizes)), strict=True)
    failures = sum(map_chunks(partial(count_failures, problem), chunks, plan.executor))
    share = binomial_estimate(failures, plan.samples, plan.confidence)
    return Reliability(
        reliability=(plan.samples - failures) / plan.samples,
        unreliability=share.value,
        lower=share.lower,
        upper=share.upper,
        method="monte_carlo",
        routing="any",
        samples=plan.samples,
    )


def count_failures(problem: Problem, chunk: Chunk) -> int:
    """Sample one chunk and count the samples in which some terminals cannot communicate."""
    size, rng = chunk
    links = sample(problem.link[:, 0], size, rng)
    nodes = sample(problem.node[:, 0], size, rng)
    works = np.bitwise_and.reduce(nodes[problem.terminals], axis=0)
    if problem.terminals.size > 1:
        order = np.arange(len(problem.node))
        rows = rows_of(order.size, problem.edges)
        ends = problem.terminals, np.array(_sources(problem))
        works = all_joined(*rows, order, problem.transit, *ends, nodes, links)
    return size - int(np.bitwise_count(works).sum())


def _sources(problem: Problem) -> list[int]:
    """Terminals to start from so that reaching all others means that every pair communicates.

    One that forwards, or whose only link leads to everything it can reach, speaks for all. Else two
    terminals that forward nothing may each reach a third through different parts of the network.
    """
    terminals = problem.terminals.tolist()
    links = np.bincount(problem.edges.ravel(), minlength=len(problem.node))
    speakers = [v for v in terminals if problem.transit[v] or links[v] <= 1]
    return (speakers or terminals)[:1] if speakers or len(terminals) <= 2 else terminals[:-1]


def sample(up: NDArray[np.float64], size: int, rng: np.random.Generator) -> Words:
    """One row of packed samples per part; parts that are certain take no random numbers."""
    words = np.empty((len(up), -(-size // 64)), dtype=np.uint64)
    for row, chance in zip(words, up, strict=True):
        row[:] = pack(rng.random(size) < chance if 0 < chance < 1 else np.full(size, chance == 1))
    return words


def pack(samples: NDArray[np.bool_]) -> Words:
    """Sixty-four samples per word, the last word filled with zeros."""
    padded = np.zeros(-(-samples.size // 64) * 64, dtype=bool)
    padded[: samples.size] = samples
    return np.packbits(padded).view(np.uint64)
