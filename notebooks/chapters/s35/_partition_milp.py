"""Chains of ideals as mixed-integer programmes: ``y[v, s] = 1`` where group v is on a level 0..s.

Rows are Kronecker products of what concerns groups and what concerns levels.
"""

from itertools import combinations
from time import monotonic
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse import block_array, csr_array, diags_array, eye_array, kron

from chapters.s35._ideals import FloatArray, Groups, IntArray, Stages
from chapters.s35.partition_problems import PartitionProblem
from relparallel.optimize._milp import OutOfTimeError, least, picking

# rows of all variables, by kind, and what they must not exceed
Block = tuple[list[Any], FloatArray]


def chain_of_ideals(
    groups: Groups, k: int, c: int, room: float, start: tuple[float, Stages] | None, seconds: float
) -> tuple[tuple[float, Stages] | None, float]:
    """Least largest load, its stages, and a bound of all: a programme for each place of CPUs."""
    best, bounds, end = start, [], monotonic() + seconds
    if k + c == 1:
        return start, start[0] if start else np.inf
    for places in combinations(range(k + c), c):
        below = (
            best[0]
            if best
            else float((groups.accelerator + groups.cpu).sum() + 2 * groups.costs.sum())
        )
        try:
            found, bound = _throughput(groups, k + c, places, room, below, end - monotonic())
        except OutOfTimeError as late:
            bounds.append(max(late.bound * below, 0.0))
            continue
        if found is not None:
            best = found
            bounds.append(bound)
    return best, min([*bounds, best[0] if best else 0.0])


def _throughput(
    groups: Groups, stages: int, places: tuple[int, ...], room: float, below: float, seconds: float
) -> tuple[tuple[float, Stages] | None, float]:
    """Best chain with CPUs at these places, if not above ``below``, the programme's time unit."""
    n, levels, m = groups.size, stages - 1, len(groups.costs)
    step = eye_array(stages, levels) - eye_array(stages, levels, k=-1)  # y[s] - y[s-1]
    cpu = np.isin(np.arange(stages), places)
    circles = [np.array(sorted(ends)) for ends in groups.outputs]
    owner = np.repeat(np.arange(m), [len(circle) for circle in circles])
    here = np.concatenate([np.empty(0, np.int64), *circles])
    beyond = np.concatenate([np.empty(0, np.int64), *(np.roll(circle, 1) for circle in circles)])
    loads = np.where(cpu[:, None], groups.cpu, groups.accelerator) / below
    paid = kron(groups.costs[None] / below, diags_array((~cpu).astype(float)))
    # Each output pays on a stage that holds one of its ends and not the next of the circle of all.
    parted = kron(picking(here, n) - picking(beyond, n), step)
    blocks: list[Block] = [
        *_chain(groups, levels),
        ([_on_levels(loads, step), paid, -np.ones((stages, 1))], -_at_end(loads)),
        (
            [parted, -kron(picking(owner, m), eye_array(stages)), None],
            np.zeros(owner.size * stages),
        ),
    ]
    held = np.where(
        cpu[:, None], 0.0, np.where(groups.banned > 0, 2.0, groups.memory / max(room, 1.0))
    )
    blocks.append(([_on_levels(held, step), None, None], min(room, 1.0) - _at_end(held)))
    x, bound = _solve(blocks, [n * levels, m * stages, 1], seconds)
    if x is None:
        return None, np.inf
    stage = levels - x[: n * levels].reshape(n, levels).sum(axis=1).astype(int)
    device = np.where(cpu, np.cumsum(cpu) - 1 + stages - len(places), np.cumsum(~cpu) - 1)
    plan = [(int(device[s]), np.flatnonzero(stage == s).tolist()) for s in range(stages)]
    return (float(x[-1]) * below, [part for part in plan if part[1]]), bound * below


def least_latency(
    problem: PartitionProblem, groups: Groups, k: int, room: float, below: float, seconds: float
) -> tuple[IntArray | None, float]:
    """Devices of the operators that end a sample first, k for CPUs, and a bound.

    CPUs on the even levels of 2 k + 1, an accelerator on each odd one; ``below`` bounds the time.
    """
    n, size, levels = groups.size, len(problem), 2 * k
    step = kron(eye_array(k), np.array([[-1.0, 1.0]]))  # on accelerator i: y[2i+1] - y[2i]
    member, (maker, user) = picking(groups.member, n), problem.edges.T
    made, used, one = picking(maker, size), picking(user, size), eye_array(k)
    on, any_on = kron(member, step), kron(member, step.sum(axis=0)[None])
    enters = kron((used - made) @ member, step)
    cpu, cost = problem.cpu_time / below, kron(problem.transfer_time[None] / below, one)
    load, every = kron(groups.accelerator[None] / below, step), np.ones((size, 1))
    held = np.where(groups.banned > 0, 2.0, groups.memory / max(room, 1.0))
    begins, spread, ends = (
        kron(every, one),
        kron(eye_array(size), np.ones((k, 1))),
        np.ones(size * k),
    )
    soonest = np.minimum(cpu, np.where(problem.supported, problem.accelerator_time / below, np.inf))
    for v in nx.topological_sort(nx.DiGraph(problem.edges.tolist())):
        soonest[v] += max(soonest[maker[user == v]], default=0.0)
    # Variables: y, done of operators, begin of accelerators, entering and leaving outputs, the last
    # end.
    blocks: list[Block] = [
        *_chain(groups, levels),
        ([-diags_array(cpu) @ any_on, -eye_array(size), None, None, None, None], -cpu),
        (
            [-diags_array(cpu[user]) @ used @ any_on, made - used, None, None, None, None],
            -cpu[user],
        ),
        ([None, eye_array(size), None, None, None, -every], np.zeros(size)),
        ([None, -eye_array(size), None, None, None, None], -soonest),
        ([kron(held[None], step), None, None, None, None, None], np.full(k, min(room, 1.0))),
        ([enters, None, None, -kron(made, one), None, None], np.zeros(len(maker) * k)),
        ([-enters, None, None, None, -kron(made, one), None], np.zeros(len(maker) * k)),
        ([None, spread, -begins, eye_array(size * k), None, None], ends),
        ([load, None, one, cost, cost, -np.ones((k, 1))], np.zeros(k)),
        (
            [on + kron(every, load), -spread, begins, kron(every, cost), kron(every, cost), None],
            ends,
        ),
    ]
    x, bound = _solve(blocks, [n * levels, size, k, size * k, size * k, 1], seconds)
    if x is None:
        return None, below
    level = levels - x[: n * levels].reshape(n, levels).sum(axis=1).astype(int)
    return np.where(level % 2 == 1, level // 2, k)[groups.member], bound * below


def _chain(groups: Groups, levels: int) -> list[Block]:
    """Y rises from level to level, and falls along edges."""
    maker, user = np.array(list(groups.order.edges), dtype=np.int64).reshape(-1, 2).T
    rise = eye_array(levels - 1, levels) - eye_array(levels - 1, levels, k=1)
    fall = picking(user, groups.size) - picking(maker, groups.size)
    return [
        ([kron(matrix, rows)], np.zeros(matrix.shape[0] * rows.shape[0]))
        for matrix, rows in ((eye_array(groups.size), rise), (fall, eye_array(levels)))
    ]


def _on_levels(table: FloatArray, step: Any) -> Any:
    """What each stage has of the amounts [stages, groups], of y."""
    return csr_array((table[:, :, None] * step.toarray()[:, None, :]).reshape(len(table), -1))


def _at_end(table: FloatArray) -> FloatArray:
    """The constants of these rows: all groups are on the last stage or before."""
    return np.append(np.zeros(len(table) - 1), table[-1].sum())


def _solve(
    blocks: list[Block], sizes: list[int], seconds: float
) -> tuple[FloatArray | None, float]:
    """Least value of the last variable, those of the first kind whole."""
    total = sum(sizes)
    # tells the widths of kinds that few rows touch
    anchor = [csr_array((1, size)) for size in sizes]
    rows = block_array([anchor, *([*row, *[None] * (len(sizes) - len(row))] for row, _ in blocks)])
    upper = np.concatenate([[0.0], *(limit for _, limit in blocks)])
    whole = np.arange(total) < sizes[0]
    return least(np.eye(total)[-1], rows, -np.inf, upper, whole=whole, seconds=max(seconds, 1e-3))
