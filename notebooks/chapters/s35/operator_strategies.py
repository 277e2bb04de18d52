"""One strategy for each operator of a model: exactly by integer programming, and by other searches.

Strategies of an operator have costs, and so has every pair of strategies of two operators that
share a tensor: what it takes to bring the tensor from where it is made to where it is used.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from relparallel.optimize._milp import least

FloatArray = NDArray[np.float64]
_SECONDS = 600.0  # of an integer programme


@dataclass(frozen=True, kw_only=True)
class OperatorProblem:
    """Costs of the strategies of every operator and of pairs of them, and the bytes that they take.

    ``nodes[v]`` has the cost of each strategy of operator v, ``memory[v]`` its bytes where ``room``
    [bytes] is finite, and ``edges[u, v]`` with u < v the cost of each pair of their strategies.
    """

    nodes: tuple[FloatArray, ...]
    edges: Mapping[tuple[int, int], FloatArray]
    memory: tuple[FloatArray, ...] = ()
    room: float = np.inf

    def __post_init__(self) -> None:
        for (u, v), matrix in self.edges.items():
            if u >= v or matrix.shape != (self.nodes[u].size, self.nodes[v].size):
                raise ValueError(
                    f"edges must join a node with a later one and fit both, got {(u, v)}"
                )

    def cost(self, choice: Sequence[int]) -> float:
        """Cost of one strategy for each operator."""
        own = sum(float(costs[s]) for costs, s in zip(self.nodes, choice, strict=True))
        return own + sum(float(pair[choice[u], choice[v]]) for (u, v), pair in self.edges.items())

    def tied(self, labels: Sequence[Hashable]) -> OperatorProblem:
        """Problem in which operators of one label share their strategy: TAP's shared subgraphs."""
        number = {label: place for place, label in enumerate(dict.fromkeys(labels))}
        where = [number[label] for label in labels]
        held = [[v for v, place in enumerate(where) if place == one] for one in range(len(number))]
        nodes = [np.sum([self.nodes[v] for v in group], axis=0) for group in held]
        edges: dict[tuple[int, int], FloatArray] = {}
        for (u, v), matrix in self.edges.items():
            a, b = where[u], where[v]
            if a == b:
                nodes[a] = nodes[a] + np.diag(matrix)
            else:
                key, added = ((a, b), matrix) if a < b else ((b, a), matrix.T)
                edges[key] = edges.get(key, 0.0) + added
        sizes = [np.sum([self.memory[v] for v in group], axis=0) for group in held if self.memory]
        return OperatorProblem(nodes=tuple(nodes), edges=edges, memory=tuple(sizes), room=self.room)


def operator_plan(problem: OperatorProblem) -> tuple[tuple[int, ...], float]:
    """The strategy of each operator of least total cost that fits, and that cost.

    Zheng et al., "Alpa", OSDI 2022, equation 1.

    ``x[v, s] = 1`` for the strategy of v; a variable for each pair of an edge, whose rows and
    columns sum to those: the tight linear form of Alpa's products. On a chain it is a shortest
    path.

    >>> apart = np.array([[0.0, 9.0], [9.0, 0.0]])
    >>> two = OperatorProblem(nodes=(np.array([0.0, 2.0]), np.array([3.0, 0.0])), edges={(0, 1): apart})
    >>> operator_plan(two)
    ((1, 1), 2.0)
    """
    first = np.cumsum([0, *(costs.size for costs in problem.nodes)])
    begin = first[-1] + np.cumsum([0, *(pair.size for pair in problem.edges.values())])
    cost = np.concatenate([*problem.nodes, *(pair.ravel() for pair in problem.edges.values())])
    places: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = [
        (np.arange(a, b), np.ones(b - a)) for a, b in pairwise(first.tolist())
    ]
    bound = [1.0] * len(places)
    for (ends, pair), start in zip(problem.edges.items(), begin[:-1], strict=True):
        number = start + np.arange(pair.size).reshape(pair.shape)
        for end, rows in zip(ends, (number, number.T), strict=True):
            for s, row in enumerate(rows):
                places.append((np.append(row, first[end] + s), np.append(np.ones(row.size), -1.0)))
                bound.append(0.0)
    lower = bound.copy()
    if np.isfinite(problem.room):
        places.append(
            (np.arange(first[-1]), np.concatenate(problem.memory) / max(problem.room, 1.0))
        )
        lower, bound = [*lower, -np.inf], [*bound, problem.room / max(problem.room, 1.0)]
    row = np.repeat(np.arange(len(places)), [columns.size for columns, _ in places])
    columns, values = (np.concatenate(part) for part in zip(*places, strict=True))
    rows = coo_array((values, (row, columns)), shape=(len(places), cost.size))
    whole = np.arange(cost.size) < first[-1]
    found, _ = least(cost, rows, lower, bound, whole=whole, finer=1e3, seconds=_SECONDS)
    if found is None:
        raise ValueError(
            f"room must hold some strategy of every operator, got {problem.room} bytes"
        )
    choice = tuple(int(found[a:b].argmax()) for a, b in pairwise(first.tolist()))
    return choice, problem.cost(choice)


def anneal_plan(
    problem: OperatorProblem, rng: np.random.Generator, *, steps: int = 20_000
) -> tuple[tuple[int, ...], float]:
    """The best strategies that a Markov chain visits, and their cost; it does not look at memory.

    Each of ``steps`` proposes another strategy for one operator, and takes one that costs d more
    with probability ``exp(-20 d / c)``, c being the cost of the first choice: Jia, Zaharia and
    Aiken, "Beyond Data and Model Parallelism for Deep Neural Networks" (FlexFlow), MLSys 2019,
    section 6.

    >>> apart = np.array([[0.0, 9.0], [9.0, 0.0]])
    >>> two = OperatorProblem(nodes=(np.array([0.0, 2.0]), np.array([3.0, 0.0])), edges={(0, 1): apart})
    >>> anneal_plan(two, np.random.default_rng(1), steps=100)
    ((1, 1), 2.0)
    """
    near: list[list[tuple[int, FloatArray]]] = [[] for _ in problem.nodes]
    for (u, v), pair in problem.edges.items():
        near[u].append((v, pair))
        near[v].append((u, pair.T))
    choice = [int(costs.argmin()) for costs in problem.nodes]
    now = best = problem.cost(choice)
    kept, scale = tuple(choice), 20.0 / (now or 1.0)
    chosen, chance = rng.integers(len(choice), size=steps).tolist(), rng.random((steps, 2))
    for v, (which, luck) in zip(chosen, chance.tolist(), strict=True):
        other = int(which * problem.nodes[v].size)
        more = float(problem.nodes[v][other] - problem.nodes[v][choice[v]])
        for u, pair in near[v]:
            more += float(pair[other, choice[u]] - pair[choice[v], choice[u]])
        if more <= 0 or luck < np.exp(-scale * more):
            choice[v], now = other, now + more
            if now < best * (1 - 1e-12):
                best, kept = now, tuple(choice)
    return kept, problem.cost(kept)
