"""Estimates of the unreliability by sampling, each with an interval that holds as often as it says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

import networkx as nx
import numpy as np
from scipy.special import ndtri

from relparallel._checks import require_choice, require_instance, require_int, require_real, require_rng
from relparallel.reliability.karp_luby import karp_luby
from relparallel.reliability.moments import (
    Estimator,
    Moments,
    UnreliabilityEstimate,
    mean_interval,
    share_interval,
)
from relparallel.reliability.problem import LinkChance, NodeChance, Problem, Terminals, read_problem
from relparallel.reliability.samplers import Sampler, make_sampler
from relparallel.sweep import chunk_sizes, map_chunks, spawn_streams
from relparallel.topology import Topology

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ESTIMATORS", "estimate", "estimate_problem", "estimator_table"]

ESTIMATORS: Final = get_args(Estimator)
_SAMPLED: Final = ("recursive", "zero_variance", "permutation", "splitting", "crude")
_LEAST: Final = 512  # samples in the answer, so that their mean is nearly normal
_MOST: Final = 10**9
_SAFETY: Final = 1.2  # the pilot may underestimate the variance


def estimate(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    link_up: LinkChance = 1.0,
    node_up: NodeChance = 1.0,
    method: Estimator = "auto",
    *,
    rng: np.random.Generator,
    link_down: LinkChance | None = None,
    node_down: NodeChance | None = None,
    rtol: float = 1e-2,
    confidence: float = 0.95,
    samples: int | None = None,
    max_work: float = 2e9,
    executor: Executor | None = None,
) -> UnreliabilityEstimate:
    """Estimate the probability that not all terminals are up and can communicate.

    Parameters
    ----------
    graph, terminals, link_up, node_up, link_down, node_down
        As for `relparallel.reliability.evaluate`.
    method : {"auto", "crude", "permutation", "splitting", "recursive", "zero_variance", "karp_luby"}
        "auto" tries the others on a few samples and goes on with the one whose relative variance times work
        is least.
    rng : numpy.random.Generator
        Source of all randomness.
    rtol : float, optional
        Half-width of the interval over the value to aim for, inside (0, 1).
    confidence : float, optional
        How often the interval holds the unreliability, inside (0, 1).
    samples : int, optional
        Samples to draw; by default as many as a pilot run finds necessary for ``rtol``.
    max_work : float, optional
        Limit of the elementary steps, of 2 to 10 ns each; the interval is as wide as it then is.
    executor : concurrent.futures.Executor, optional
        Where to sample; the answer does not depend on it.

    Returns
    -------
    UnreliabilityEstimate
        With the interval, the method and the work.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as stated; if a pilot run would take more than ``max_work``; if three or more
        terminals include one that does not forward and has several links and the method is not "crude".

    Notes
    -----
    All estimators are unbiased; the modules named after them say why. The number of samples is fixed by a
    pilot run whose samples are thrown away (two stages, after Stein), so that looking at the data does not
    spoil the interval. It is Student's for the mean of independent samples; for "crude" Wilson's, and that of
    Clopper and Pearson below ten failures. Where samples are nearly equal, values too rare to be drawn may
    matter more than the spread: the interval then reaches 3 / samples of the value to either side (with 95 %
    confidence such values have together a smaller chance than that), and the excess is ``bias_bound``.
    Terminals that fail, and links that all depend on, are taken apart exactly beforehand.

    References
    ----------
    Stein, "A two-sample test for a linear hypothesis whose power is independent of the variance", Annals of
    Mathematical Statistics 16, 1945. Wilson, Journal of the American Statistical Association 22, 1927.

    Examples
    --------
    >>> found = estimate(nx.complete_graph(5), (0, 1), 0.999, method="recursive",
    rng=np.random.default_rng(1))
    >>> print(f"{found.value:.2e} {found.method} {found.relative_error < 0.01}")
    2.00e-12 recursive True
    """
    require_choice(ESTIMATORS, method=method)
    require_rng(rng=rng)
    require_real(rtol=rtol, above=0, below=1)
    require_real(confidence=confidence, above=0, below=1)
    if samples is not None:
        require_int(samples=samples, at_least=2, at_most=_MOST)
    require_real(max_work=max_work, at_least=1)
    require_instance((Executor, type(None)), executor=executor)
    problem = read_problem(graph, terminals, link_up, node_up, link_down, node_down)
    return estimate_problem(problem, method, rng, rtol, confidence, samples, max_work, executor)


def estimate_problem(
    problem: Problem,
    method: Estimator,
    rng: np.random.Generator,
    rtol: float = 1e-2,
    confidence: float = 0.95,
    samples: int | None = None,
    max_work: float = 2e9,
    executor: Executor | None = None,
) -> UnreliabilityEstimate:
    """Estimate the unreliability of a problem that has been read; arguments as for `estimate`."""
    if method == "karp_luby":
        return _by_cuts(problem, rng, rtol, confidence, samples)
    sampler = (
        choose(problem, rng, max_work) if method == "auto" else make_sampler(problem, method, rng, max_work)
    )
    if sampler.certain:
        value = sampler.failed
        return UnreliabilityEstimate(
            value=value, lower=value, upper=value, method=sampler.method, confidence=confidence
        )
    spent = sampler.spent
    if samples is None:
        pilot = draw(sampler, sampler.pilot, rng, executor)
        samples, spent = _needed(sampler, pilot, rtol, confidence, max_work), spent + pilot.work
    drawn = draw(sampler, samples, rng, executor)
    bracket = share_interval if sampler.method == "crude" else mean_interval
    mean, lower, upper, bias = bracket(drawn, confidence)
    failed, alive = sampler.failed, sampler.alive
    return UnreliabilityEstimate(
        value=min(failed + alive * mean, 1.0),
        lower=min(failed + alive * lower, 1.0),
        upper=min(failed + alive * upper, 1.0),
        bias_bound=alive * bias,
        method=sampler.method,
        samples=samples,
        work=float(spent + drawn.work),
        confidence=confidence,
    )


def draw(sampler: Sampler, samples: int, rng: np.random.Generator, executor: Executor | None) -> Moments:
    """Draw independent samples in chunks, each with a stream of its own."""
    sizes = chunk_sizes(samples, sampler.chunk)
    chunks = zip(sizes, spawn_streams(rng, len(sizes)), strict=True)
    total = Moments(0, 0.0, 0.0, 0)
    for size, part in zip(sizes, map_chunks(partial(_chunk, sampler), chunks, executor), strict=True):
        total = total.joined(Moments(size, *part))
    return total


def _chunk(sampler: Sampler, chunk: tuple[int, np.random.Generator]) -> tuple[float, float, int]:
    """Samples of one chunk: mean, squared deviations, work."""
    mean, square, work = sampler.kernel(*sampler.arguments, *chunk)
    return float(mean), float(square), int(work)


def _needed(sampler: Sampler, pilot: Moments, rtol: float, confidence: float, max_work: float) -> int:
    """Samples for the second stage: enough for the tolerance, as many as the work allows."""
    most = min(max_work * pilot.count / max(pilot.work, 1), _MOST)
    value = sampler.failed + sampler.alive * pilot.mean
    if value == 0.0:
        return max(int(most), 2)
    share = sampler.alive * math.sqrt(pilot.variance) / (rtol * value)
    level = -math.log2(1 - confidence) / 2.2  # close to the normal quantile, 1.96 at 0.95
    wanted = max((level * share) ** 2, 3.2 * sampler.alive * pilot.mean / (rtol * value), _LEAST)
    return max(int(min(_SAFETY * wanted, most)), 2)


def choose(problem: Problem, rng: np.random.Generator, max_work: float) -> Sampler:
    """The estimator with the least product of relative variance and work in a short trial."""
    best, least = None, math.inf
    for method in _SAMPLED:
        try:
            sampler = make_sampler(problem, method, rng, max_work / 10)
        except ValueError:
            continue
        if sampler.certain:
            return sampler
        trial = draw(sampler, sampler.pilot, rng, None)
        value = sampler.failed + sampler.alive * trial.mean
        if trial.mean == 0.0:
            continue
        spread = max(sampler.alive**2 * trial.variance / value**2, 1 / trial.count)
        if spread * trial.work / trial.count < least:
            best, least = sampler, spread * trial.work / trial.count
    return best or make_sampler(problem, "crude", rng, max_work)


def estimator_table(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    link_up: LinkChance = 1.0,
    node_up: NodeChance = 1.0,
    methods: Sequence[Estimator] = ("crude", "permutation", "splitting", "zero_variance", "recursive"),
    *,
    rng: np.random.Generator,
    samples: int = 1000,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Accuracy against work of several estimators on one network.

    Parameters
    ----------
    graph, terminals, link_up, node_up
        As for `relparallel.reliability.evaluate`.
    methods : sequence of str, optional
        Estimators other than "auto".
    rng : numpy.random.Generator
        Source of all randomness.
    samples : int, optional
        Samples per estimator.
    confidence : float, optional
        Inside (0, 1).

    Returns
    -------
    pandas.DataFrame
        One row per method: those of `UnreliabilityEstimate.to_frame`, the elementary steps per sample
        ``work_per_sample``, and their product with the relative variance of one sample ``work_variance``, the
        steps that a relative standard error of 1 would take: less is better, at any number of samples.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as stated.

    Examples
    --------
    >>> table = estimator_table(nx.petersen_graph(), "all", 0.99, rng=np.random.default_rng(1))
    >>> bool(table.set_index("method").work_variance["recursive"] < 1e3)
    True
    """
    import pandas as pd

    rows = []
    for method in methods:
        require_choice(ESTIMATORS[1:], method=method)
        found = estimate(
            graph, terminals, link_up, node_up, method, rng=rng, samples=samples, confidence=confidence
        )
        row = found.to_frame()
        row["work_per_sample"] = found.work / max(found.samples, 1)
        spread = found.relative_error / float(ndtri((1 + confidence) / 2))
        row["work_variance"] = spread**2 * found.work
        rows.append(row)
    return pd.concat(rows, ignore_index=True)


def _by_cuts(
    problem: Problem, rng: np.random.Generator, rtol: float, confidence: float, samples: int | None
) -> UnreliabilityEstimate:
    """Karp and Luby's estimate, whose interval holds its own bound on what cuts left out may add."""
    found = karp_luby(problem, rng=rng, rtol=rtol, confidence=confidence, samples=samples)
    return UnreliabilityEstimate(
        value=found.value,
        lower=found.lower,
        upper=found.upper,
        bias_bound=found.bias_bound,
        method="karp_luby",
        samples=found.samples,
        work=float(found.samples * len(problem.link)),
        confidence=confidence,
    )
