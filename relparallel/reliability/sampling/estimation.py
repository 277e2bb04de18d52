"""Estimates of unreliability by sampling, each with an interval that holds as often as it says."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np

from relparallel._checks import (
    require_choice,
    require_int,
    require_number,
    require_real,
    require_rng,
)
from relparallel._notices import told
from relparallel.reliability.bounding.certified import bound_problem
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.problem import LinkChance, NodeChance, Problem, Terminals, read_problem
from relparallel.reliability.sampling.karp_luby import karp_luby
from relparallel.reliability.sampling.moments import (
    Estimator,
    Moments,
    UnreliabilityEstimate,
    mean_interval,
    share_interval,
)
from relparallel.reliability.sampling.samplers import PILOT_SHARE, Sampler, make_sampler
from relparallel.sweep import chunk_sizes, map_chunks, require_executor, spawn_streams
from relparallel.topology import Topology

if TYPE_CHECKING:
    import networkx as nx
ESTIMATORS: Final = get_args(Estimator)
MOST_SAMPLES: Final = 10**9
_LEAST_PILOT: Final = 2**4
_FEW_STEPS: Final = 2**25  # of a search for cuts, a fifth of a second
_SAFETY: Final = 1.2  # the pilot may underestimate the variance


@told
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
    rtol: float | None = None,
    confidence: float = 0.95,
    samples: int | None = None,
    max_work: float = 2e10,
    executor: Executor | None = None,
) -> UnreliabilityEstimate:
    """Estimate the probability that not all terminals are up and can communicate.

    Parameters
    ----------
    graph, terminals, link_up, node_up, link_down, node_down : as in `evaluate`
        The network, what must be connected, and the chances.
    method : {"auto", "crude", "permutation", "karp_luby"}
        "auto" takes "karp_luby" where a short search for cuts leaves so little out that ``rtol`` is
        reached; else "permutation" or "crude", with the least relative variance times work in a
        short trial.
    rng : numpy.random.Generator
        Source of all randomness.
    rtol : float, optional
        Half-width of the interval over the value to aim for, inside (0, 1); 1e-2 where omitted.
    confidence : float, optional
        How often the interval holds the unreliability, inside (0, 1).
    samples : int, optional
        Samples to draw, instead of as many as a pilot run finds necessary for ``rtol``. "crude"
        then refuses what it is not expected to see fail once within ``max_work``.
    max_work : float, optional
        Limit of the elementary steps, of 2 to 10 ns each; a tenth of it has to be enough for the
        pilot run.
    executor : concurrent.futures.Executor, optional
        Where to sample; the answer does not depend on it.

    Returns
    -------
    UnreliabilityEstimate
        With the interval, the method and the work.

    Notes
    -----
    All estimators are unbiased. A pilot run, whose samples are thrown away, fixes the number of
    samples (two stages, after Stein). The interval is Student's after Hall's correction for
    skewness; for "crude" Wilson's, and that of Clopper and Pearson below ten failures. Where
    samples are nearly equal it reaches at least 3 / samples of the value to either side, for values
    too rare to be drawn: the excess is ``bias_bound``.

    References
    ----------
    Hall, "On the removal of skewness by transformation", Journal of the Royal Statistical Society B
    54, 1992. Stein, Annals of Mathematical Statistics 16, 1945. Wilson, Journal of the American
    Statistical Association 22, 1927.

    Examples
    --------
    >>> import networkx as nx
    >>> rng = np.random.default_rng(1)
    >>> found = estimate(nx.complete_graph(5), (0, 1), 0.999, method="permutation", rng=rng)
    >>> print(f"{found.value:.1e} {found.method} {found.relative_error < 0.01}")
    2.0e-12 permutation True
    """
    require_choice(ESTIMATORS, method=method)
    require_rng(rng=rng)
    if rtol is not None and samples is not None:
        raise ValueError(f"rtol must be left out with samples, got {rtol!r}")
    rtol = 1e-2 if rtol is None else require_number(rtol=rtol, above=0, below=1)
    require_real(confidence=confidence, above=0, below=1)
    if samples is not None:
        require_int(samples=samples, at_least=2, at_most=MOST_SAMPLES)
    require_real(max_work=max_work, at_least=1)
    require_executor(executor)
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
    by_cuts = partial(
        karp_luby,
        problem,
        rng=rng,
        rtol=rtol,
        confidence=confidence,
        samples=samples,
        max_work=max_work,
    )
    if method == "karp_luby":
        return by_cuts()
    if method == "auto":
        with suppress(NotExactError):  # a short search for cuts may leave little out
            found = by_cuts(max_steps=_FEW_STEPS)
            if found.relative_error <= rtol:
                return found
        sampler = choose(problem, rng, max_work)
    else:
        if method == "crude" and samples is None:
            _require_failures(problem, max_work)
        sampler = make_sampler(problem, method, rng, max_work)
    return estimate_by(sampler, rng, rtol, confidence, samples, max_work, executor)


def estimate_by(
    sampler: Sampler,
    rng: np.random.Generator,
    rtol: float,
    confidence: float,
    samples: int | None,
    max_work: float,
    executor: Executor | None,
) -> UnreliabilityEstimate:
    """The estimate that a sampler gives; arguments as for `estimate`."""
    if sampler.certain:
        value = sampler.failed
        return UnreliabilityEstimate(
            value=value, lower=value, upper=value, method=sampler.method, confidence=confidence
        )
    spent = sampler.spent
    if samples is None:
        most = max(_affordable(sampler, rng, max_work), _LEAST_PILOT)
        pilot = draw(sampler, min(sampler.pilot, most), rng, executor)
        samples, spent = _needed(sampler, pilot, rtol, confidence, max_work), spent + pilot.work
    drawn = draw(sampler, samples, rng, executor)
    if sampler.method == "crude":
        mean, lower, upper, bias = share_interval(drawn, confidence)
    else:
        mean, lower, upper, bias = mean_interval(drawn, confidence)
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


def _require_failures(problem: Problem, max_work: float) -> None:
    """Refuse to draw states none of which is likely to fail."""
    most = min(max_work / (len(problem.link) + len(problem.node)), MOST_SAMPLES)
    with suppress(NotExactError):
        upper = bound_problem(problem, "bonferroni", 0.5, 2, _FEW_STEPS).upper
        if upper * most < 1:
            raise ValueError(
                f"samples must be given for method='crude' where U is at most {upper:.1e}: the "
                f"{most:.0e} states that max_work allows show no failure, got None; "
                "method='karp_luby' and `bounds` need none"
            )


def draw(
    sampler: Sampler, samples: int, rng: np.random.Generator, executor: Executor | None
) -> Moments:
    """Draw independent samples in chunks, each with a stream of its own."""
    sizes = chunk_sizes(samples, sampler.chunk)
    chunks = zip(sizes, spawn_streams(rng, len(sizes)), strict=True)
    total = Moments(0, 0.0, 0.0, 0.0, 0)
    for size, part in zip(
        sizes, map_chunks(partial(_chunk, sampler), chunks, executor), strict=True
    ):
        total = total.joined(Moments(size, *part))
    return total


def _chunk(
    sampler: Sampler, chunk: tuple[int, np.random.Generator]
) -> tuple[float, float, float, int]:
    """Samples of one chunk: mean, squared and cubed deviations, work."""
    mean, square, cube, work = sampler.kernel(*sampler.arguments, *chunk)
    return float(mean), float(square), float(cube), int(work)


def _needed(
    sampler: Sampler, pilot: Moments, rtol: float, confidence: float, max_work: float
) -> int:
    """Samples for the second stage: enough for the tolerance, as many as the work allows."""
    most = min(max_work * pilot.samples / max(pilot.work, 1), MOST_SAMPLES)
    value = sampler.failed + sampler.alive * pilot.mean
    if value == 0.0:
        return max(int(most), 2)
    share = sampler.alive * math.sqrt(pilot.variance) / (rtol * value)
    level = -math.log2(1 - confidence) / 2.2  # close to the normal quantile, 1.96 at 0.95
    wanted = max(
        (level * share) ** 2, 3.2 * sampler.alive * pilot.mean / (rtol * value), sampler.least
    )
    return max(int(min(_SAFETY * wanted, most)), 2)


def _affordable(sampler: Sampler, rng: np.random.Generator, max_work: float) -> int:
    """Samples of a pilot run that take a tenth of the work, by what two of them take."""
    first = draw(sampler, 2, rng, None)
    return int(max_work * PILOT_SHARE * first.samples / max(first.work, 1))


def choose(problem: Problem, rng: np.random.Generator, max_work: float) -> Sampler:
    """The estimator with the least product of relative variance and work in a short trial."""
    best, least = None, math.inf
    for method in ("permutation", "crude"):
        try:
            sampler = make_sampler(problem, method, rng, max_work)
        except ValueError:
            continue
        if sampler.certain:
            return sampler
        if method != "crude" and _affordable(sampler, rng, max_work) < sampler.pilot:
            continue
        trial = draw(sampler, sampler.pilot, rng, None)
        value = sampler.failed + sampler.alive * trial.mean
        if trial.mean == 0.0:
            continue
        spread = max(sampler.alive**2 * trial.variance / value**2, 1 / trial.samples)
        if spread * trial.work / trial.samples < least:
            best, least = sampler, spread * trial.work / trial.samples
    return best or make_sampler(problem, "crude", rng, max_work)
