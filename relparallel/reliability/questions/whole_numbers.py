"""Count instead of weigh: the mass of success in whole numbers, by additions and multiplications only.

Every independent part has two weights, for up and for down, that need not add up to one: numerators over a
common denominator give exact fractions (`fractions`), powers of a variable packed into an integer give counts
by the number of working parts (`signature`). The tape of reductions is played without its one division: a
terminal between two terminals leaves a link whose two weights omit the case that both its links are down,
in which the system fails anyway, so that nothing has to be required before.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.problem import Problem, Terminals, read_problem
from relparallel.reliability.programme.compiled import Compiled, compiled
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.programme.plain_sweep import MAX_SLOTS, factors_of, weigh_states
from relparallel.reliability.programme.tape import BOTH, SERIES
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

Weights = tuple[int, int]  #: of a part that is up, and down


def structure_of(
    graph: Topology | nx.Graph[Any], terminals: Terminals
) -> tuple[Topology, Problem, NDArray[np.int64]]:
    """Read the network without its chances."""
    topology = as_topology(graph)
    problem = read_problem(graph, terminals, 0.5, 0.5)
    n = topology.num_nodes
    code = topology.edges @ np.array([n, 1]), problem.edges @ np.array([n, 1])
    return topology, problem, np.flatnonzero(np.isin(*code))


def weigh(problem: Problem, given: Sequence[Weights], max_states: int, reductions: bool = True) -> int:
    """Total weight of the states of all parts in which the terminals are up and connected."""
    structure = compiled(problem, reductions)
    if not structure.connected:
        return 0
    if structure.width > MAX_SLOTS:
        raise NotExactError(
            f"graph must need at most {MAX_SLOTS} live vertices where whole numbers are counted, got "
            f"{structure.width}; `evaluate` with floats falls back to certified bounds"
        )
    slots = _play(structure.tape, given, structure.slots - len(structure.widths))
    total: int = prod(up + down for up, down in _unused(structure, slots))
    required = structure.required[structure.required < len(slots)]
    total *= prod(slots[i][0] for i in required.tolist())
    for i, j in zip(structure.starts[:-1].tolist(), structure.starts[1:].tolist(), strict=True):
        factors = factors_of(structure.parts[i:j], slots)
        total *= weigh_states(structure.steps[i:j], factors, structure.width, max_states)[0]
    return total


def _play(tape: NDArray[np.int64], given: Sequence[Weights], slots: int) -> list[Weights]:
    """Weights of links, nodes, and what the tape makes of them."""
    weights = [*given, *[(1, 0)] * (slots - len(given))]
    for code, made, a, b, c in tape.tolist():
        (up_a, down_a), (up_b, down_b) = weights[a], weights[b]
        if code == BOTH:  # made - 1 is required: the same two in parallel
            weights[made] = up_a * up_b, up_a * down_b + down_a * up_b
            weights[made - 1] = 1, 0
            continue
        up_c, down_c = weights[c] if c >= 0 else (1, 0)
        all_ways = (up_a + down_a) * (up_b + down_b) * (up_c + down_c)
        up = up_a * up_b * up_c if code == SERIES else all_ways - down_a * down_b
        weights[made] = up, all_ways - up
    return weights


def _unused(structure: Compiled, slots: Sequence[Weights]) -> list[Weights]:
    """Parts that do not matter: they can be up or down."""
    free = np.ones(structure.slots + 1, dtype=bool)
    for used in (structure.tape[:, 2:], structure.parts, structure.required):
        free[used] = False  # -1, a part that never fails, is the spare one at the end
    return [slots[i] for i in np.flatnonzero(free[: len(slots)]).tolist()]
