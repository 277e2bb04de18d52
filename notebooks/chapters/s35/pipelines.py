"""Pipelines of a measured model: layers of each stage, and on how many devices it is replicated.

Planners differ in what a stage costs and in what is minimised: the slowest stage where
micro-batches of several steps follow each other without a flush (PipeDream), or the time of a step
with its filling and its sums of gradients (DAPPLE, Alpa, Stanza). All of them are `best_chains`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chapters.chain import Chains, Cost, best_chains
from chapters.s35.pipeline_plan import PipelinePlan, Stage
from relparallel._checks import require_int, require_real
from relparallel.workload import LayerGraph

FloatArray = NDArray[np.float64]
StageCost = Callable[[Any, int, int, int], tuple[Any, Any]]
"""Of items start (or each of several) to stop - 1 on k devices, the last numbered ``used`` from 1:
the seconds that bound the rate of micro-batches, and what a step with a flush pays besides."""

Levels = Sequence[tuple[int, ArrayLike]]

DAPPLE_ACROSS, DAPPLE_INSIDE, DAPPLE_SUM = 1e9, 25e9, 3e9
"""Bytes per second of DAPPLE's planner: between machines, in one, and of a sum across them."""


def pipedream(graph: LayerGraph, levels: Levels, *, straight: bool = False) -> PipelinePlan:
    """Stages whose slowest one is as fast as can be, without a flush.

    Narayanan et al., "PipeDream", SOSP 2019, 3.1.

    ``levels`` are devices and bytes per second between them, from the innermost level to the
    outermost: ``[(4, 16e9), (4, 1.25e9)]`` are four servers of four GPUs, and a stage then names
    servers and has what each of them does ``inside``. Of one level the bandwidth may be one for
    each pair of neighbours in the line of devices: Zhan and Zhang, "Pipe-Torch", CBD 2019.
    ``straight``: no stage is replicated.

    A stage on k devices takes ``(T + 4 (k - 1) W/(k B))/k``, T being its work and W its parameters
    (the paper takes the larger of the two terms, the authors' program the sum), and at least ``2
    A/(k B)`` for the activations A at either of its ends. A level above has the whole level below
    in place of a device, which shares its sums of gradients. Layers that the first one does not
    reach stand with their first user, as in the program.

    >>> graph = LayerGraph(
    ...     names=("a", "b", "c"), kinds=("conv", "conv", "dense"), forward=[2.0, 2.0, 0.5],
    ...     backward=[4.0, 4.0, 0.5], parameter_bytes=[1, 1, 90], activation_bytes=[3, 3, 0],
    ...     edges=[(0, 1), (1, 2)], unit="s",
    ... )
    >>> plan = pipedream(graph, levels=[(4, 10.0)])
    >>> [(stage.start, stage.stop, stage.devices) for stage in plan.stages], round(plan.time, 3)
    ([(0, 2, 3), (2, 3, 1)], 4.178)
    >>> round(plan.slowdown([0]), 2), plan.slowdown([3])
    (1.48, inf)
    """
    chain = _chain(graph)
    work, weights, edge = _sums(chain)
    seconds, shared = work[None, :] - work[:, None], 1
    solved: list[Chains] = []
    for devices, bandwidth in levels:
        neighbours = np.broadcast_to(require_real(levels=bandwidth, above=0), max(devices - 1, 1))
        cost = _pipedream_cost(seconds, weights, edge, neighbours, shared, straight)
        every = len(solved) < len(levels) - 1
        solved.append(best_chains(len(chain), _slowest(cost), devices=devices, every_start=every))
        seconds, shared = (
            np.vstack((solved[-1].values[devices], np.full_like(work, np.inf))),
            devices,
        )
    return _plan(chain, _nested(solved, 0, len(chain)), cost)


def dapple(graph: LayerGraph, machines: int, gpus: int, micro_batches: int) -> PipelinePlan:
    """Stages and devices with which a step and its flush end as soon as can be.

    Fan et al., "DAPPLE", PPoPP 2021, 4.

    ``step = sum (F + B + transfer + sum of gradients) + (M - 1) max (F + B, transfer)``, the layers
    of ``graph`` in seconds of one micro-batch, which is split over the devices of a stage. Of
    machines the planner (``data_parallel.rs``, ``device.rs``) fills one after the other (fresh and
    append first) or takes one device of each (scatter first): both lines of devices are solved, and
    the better plan is kept.

    >>> graph = LayerGraph(
    ...     names=tuple("abcd"), kinds=("dense",) * 4, forward=[1.0] * 4, backward=[2.0] * 4,
    ...     parameter_bytes=[4e9] * 4, activation_bytes=[1e6] * 4, edges=[(0, 1), (1, 2), (2, 3)], unit="s",
    ... )
    >>> [stage.devices for stage in dapple(graph, machines=2, gpus=2, micro_batches=8).stages]
    [2, 2]
    """
    require_int(micro_batches=micro_batches, at_least=1)
    chain = _chain(graph)
    plans = []
    for line in (np.arange(machines * gpus) // gpus, np.arange(machines * gpus) % machines):
        cost = _dapple_cost(chain, line)
        stages = _least_step(len(chain), cost, line.size, micro_batches)
        plans.append(_plan(chain, stages, cost, micro_batches))
    return min(plans, key=lambda plan: plan.time)


def alpa(graph: LayerGraph, seconds: ArrayLike, micro_batches: int) -> PipelinePlan:
    """Stages on all devices that minimise ``sum t + (B - 1) max t``.

    Zheng et al., "Alpa", OSDI 2022, equation 2.

    ``seconds[k, i, j]`` are those of links i to j - 1 of the chain on k devices for one
    micro-batch, shape [devices + 1, n + 1, n + 1], infinite where k is no shape of a mesh or the
    stage does not fit; `operator_plan` finds them. Chains of least sum are found with a smaller and
    smaller bound on the slowest stage until none can be better: exact.

    >>> graph = LayerGraph(
    ...     names=("a", "b"), kinds=("dense",) * 2, forward=[1.0, 1.0], backward=[2.0, 2.0],
    ...     parameter_bytes=[1, 1], activation_bytes=[1, 1], edges=[(0, 1)], unit="s",
    ... )
    >>> work = np.array([0.0, 3.0, 6.0])
    >>> seconds = (work[None, None, :] - work[:, None]) / np.array([np.nan, 1.0, 1.9])[:, None, None]
    >>> plan = alpa(graph, np.nan_to_num(seconds, nan=np.inf), micro_batches=4)
    >>> [stage.devices for stage in plan.stages], round(plan.time, 2)
    ([2], 12.63)
    """
    chain = _chain(graph)
    n, given = len(chain), np.asarray(seconds, dtype=float)
    if given.shape[1:] != (n + 1, n + 1):
        raise ValueError(
            f"seconds must have shape [devices + 1, {n + 1}, {n + 1}], got {given.shape}"
        )
    require_int(micro_batches=micro_batches, at_least=1)

    def cost(start: Any, stop: int, k: int, used: int) -> tuple[Any, Any]:
        return given[k, start, stop], 0.0

    return _plan(chain, _least_step(n, cost, len(given) - 1, micro_batches), cost, micro_batches)


def stanza(graph: LayerGraph, workers: int, bandwidth: float) -> PipelinePlan:
    """Some workers hold the first layers and the others all the rest.

    Wu et al., "Stanza", 2018, arXiv:1812.10624.

    ``n T/m + 2 (m - 1)/m W/B`` for the first layers on m of n workers and for the others on n - m,
    and ``2 n A/(B min(m, n - m))`` for the activations between them and their gradients, with the
    layers in seconds of the mini-batch of one worker and the bandwidth B of one [bytes/s]. The
    gradients of fully connected layers never leave the few workers that have them. One stage is
    plain data parallelism.

    >>> graph = LayerGraph(
    ...     names=("conv", "dense"), kinds=("conv", "dense"), forward=[1.0, 0.1], backward=[2.0, 0.2],
    ...     parameter_bytes=[1, 99], activation_bytes=[1, 1], edges=[(0, 1)], unit="s",
    ... )
    >>> plan = stanza(graph, workers=8, bandwidth=10.0)
    >>> [stage.devices for stage in plan.stages], round(plan.time, 2)
    ([7, 1], 7.6)
    """
    chain = _chain(graph)
    require_real(bandwidth=bandwidth, above=0)
    work, weights, edge = _sums(chain)

    def cost(start: Any, stop: int, k: int, used: int) -> tuple[Any, Any]:
        seconds = workers * (work[stop] - work[start]) / k
        summing = 2 * (k - 1) / k * (weights[stop] - weights[start]) / bandwidth
        if used == k:
            return seconds, summing
        if used < workers or stop < len(chain):
            return seconds + np.inf, summing
        return seconds, summing + 2 * workers * edge[start] / (bandwidth * min(k, used - k))

    return _plan(chain, _least_step(len(chain), cost, workers, 1), cost, 1)


def dapple_sum(size: Any, devices: int, across: bool) -> Any:
    """Seconds of a sum of gradients in DAPPLE's planner: a ring over Ethernet, or over NVLinks."""
    bandwidth = DAPPLE_SUM if across else DAPPLE_INSIDE * max(devices // 2, 1)
    return 2 * (devices - 1) / devices * size / bandwidth


def _dapple_cost(chain: LayerGraph, machine: NDArray[np.int64]) -> StageCost:
    """Costs of stages on a line of devices, each on a machine."""
    work, weights, edge = _sums(chain)

    def cost(start: Any, stop: int, k: int, used: int) -> tuple[Any, Any]:
        seconds, held = (work[stop] - work[start]) / k, machine[used - k : used]
        summing = dapple_sum(weights[stop] - weights[start], k, across=len(set(held)) > 1)
        if used == k:
            return seconds, summing
        near = set(machine[: used - k]) == set(held)
        moving = 2 * edge[start] / (DAPPLE_INSIDE if near else DAPPLE_ACROSS)
        return np.maximum(seconds, moving), summing + np.minimum(seconds, moving)

    return cost


def _pipedream_cost(
    seconds: FloatArray,
    weights: FloatArray,
    edge: FloatArray,
    bandwidth: FloatArray,
    shared: int,
    straight: bool,
) -> StageCost:
    """Costs of stages; ``seconds[i, j]`` is what one device, or one level below, takes."""
    total = len(edge) - 1

    def cost(start: Any, stop: int, k: int, used: int) -> tuple[Any, Any]:
        if straight and k > 1:
            return seconds[start, stop] + np.inf, 0.0
        first = used == k
        slowest = bandwidth[used - k : used - 1].min(initial=np.inf)
        summing = 4 * (k - 1) * (weights[stop] - weights[start]) / (k * slowest)
        stage = (seconds[start, stop] + summing / (shared if first else 1)) / k
        if first:
            return stage, 0.0
        stage = np.maximum(stage, 2 * edge[start] / (k * bandwidth[used - k - 1]))
        leaving = (
            2 * edge[stop] / (k * bandwidth[min(used, bandwidth.size) - 1]) if stop < total else 0.0
        )
        return np.maximum(stage, leaving), 0.0

    return cost


def _slowest(cost: StageCost) -> Cost:
    """Costs of chains whose value is that of the slowest stage."""

    def slowest(stop: int, used: int, k: int) -> tuple[ArrayLike, ArrayLike]:
        return 0.0, cost(slice(stop), stop, k, used)[0]

    return slowest


def _least_step(items: int, cost: StageCost, devices: int, micro_batches: int) -> tuple[Stage, ...]:
    """Stages of least ``sum (t + once) + (M - 1) max t``."""
    limit, best, found = np.inf, np.inf, None
    fastest = best_chains(items, _slowest(cost), devices=devices).value

    def bounded(stop: int, used: int, k: int) -> tuple[Any, Any]:
        seconds, once = cost(slice(stop), stop, k, used)
        return np.where(seconds < limit, seconds + once, np.inf), -np.inf

    while True:
        chains = best_chains(items, bounded, devices=devices)
        if not chains.value + (micro_batches - 1) * fastest < best:
            break
        groups = chains.groups()
        ends = np.cumsum([k for *_, k in groups])
        limit = max(
            float(cost(i, j, k, u)[0]) for (i, j, k), u in zip(groups, ends.tolist(), strict=True)
        )
        if chains.value + (micro_batches - 1) * limit < best:
            best, found = chains.value + (micro_batches - 1) * limit, groups
    if found is None:
        raise ValueError(
            f"devices must be as many as some pipeline of {items} links uses, got {devices}"
        )
    return tuple(Stage(*group) for group in found)


def _plan(
    chain: LayerGraph, stages: tuple[Stage, ...], cost: StageCost, micro_batches: int | None = None
) -> PipelinePlan:
    """The plan with what each stage takes on fewer devices."""
    seconds, once, used = [], [], 0
    for stage in stages:
        used += stage.devices
        priced = [
            cost(stage.start, stage.stop, k, k if used == stage.devices else used)
            for k in range(1, stage.devices + 1)
        ]
        seconds.append(np.array([np.inf, *(row[0] for row in priced)]))
        once.append(np.array([0.0, *(row[1] for row in priced)]))
    return PipelinePlan(chain, stages, tuple(seconds), tuple(once), micro_batches)


def _nested(solved: Sequence[Chains], start: int, stop: int) -> tuple[Stage, ...]:
    """Stages of the outermost level with those inside each."""
    if not solved:
        return ()
    *below, top = solved
    return tuple(Stage(i, j, k, _nested(below, i, j)) for i, j, k in top.groups_to(stop, start))


def _chain(graph: LayerGraph) -> LayerGraph:
    """Levels that the first layer reaches; other layers stand with their first user."""
    if graph.unit != "s":
        raise ValueError(f"graph must hold seconds, got {graph!r}")
    reached = graph.ancestors[:, graph.order[0]]
    users: list[list[int]] = [[] for _ in graph.names]
    for maker, user in graph.edges.tolist():
        users[maker].append(user)
    place = graph.levels.copy()
    for layer in graph.order[::-1].tolist():
        if users[layer] and not reached[layer] and layer != graph.order[0]:
            place[layer] = min(place[user] for user in users[layer])
    return graph.to_chain(np.unique(place, return_inverse=True)[1])


def _sums(chain: LayerGraph) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Work and bytes of parameters up to each cut, and bytes that cross it, [n + 1]."""
    work, weights = (
        np.concatenate(([0.0], np.cumsum(amount)))
        for amount in (chain.forward + chain.backward, chain.parameter_bytes)
    )
    return work, weights, np.concatenate(([0.0], chain.activation_bytes))
