"""Certified bounds for directed networks that are too wide for the programme.

From below, what cannot get away from a terminal: with everything farther off made perfect, the network around
a terminal is small, and the chance that the terminal cannot reach beyond it, or be reached, is part of the
unreliability. Neighbourhoods that have no part in common fail independently. From above, what lies around
likely ways between the terminals, all else left out. The programme itself, which leaves out all but
the likeliest states, brackets from both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from relparallel.reliability.bounding.corridors import part_of
from relparallel.reliability.chances import series
from relparallel.reliability.directed.arc_programme import solve_arcs
from relparallel.reliability.directed.arcs import Arcs
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.result import Reliability, bracketed

_ROUNDING: Final = 1e-10  # relative; more than that of the programme
_LEAST: Final = 1e-12  # length of a perfect arc, which a sparse matrix must not take for none
_FEWEST: Final = 100  # states worth trying

Mask = NDArray[np.bool_]


def bound_arcs(problem: Arcs, visits: int) -> Reliability:
    """Bracket the unreliability with about so many states."""
    certain = replace(problem, node=problem.node.copy())
    certain.node[problem.terminals] = 1.0, 0.0
    swept = solve_arcs(certain, visits=visits // 4, share=True)
    around = _around(certain, visits // 4)
    lower, upper = max(swept.lower, around), min(swept.upper, _inside(certain, visits // 2))
    works, fails = series(*map(tuple, problem.node[problem.terminals].tolist()))
    lower, upper = ((fails + works * u) for u in (lower * (1 - _ROUNDING), upper * (1 + _ROUNDING)))
    upper = min(upper, 1.0)
    gap = (upper - lower) / upper if upper else 0.0
    reason = f"a bracket with a relative width of {gap:.1e} from neighbourhoods, corridors and likely states"
    return bracketed(min(lower, upper), upper, "any", reason, width=swept.width)


def _around(problem: Arcs, visits: int) -> float:
    """Chance that some terminal is cut off from all that is farther away, from disjoint neighbourhoods."""
    ways = [(problem.source, False), *((v, True) for v in problem.targets)]
    if problem.mutual:
        ways += [(problem.source, True), *((v, False) for v in problem.targets)]
    best, apart = 0.0, [0.0]
    used_arcs, used_nodes = np.zeros(len(problem.edges), np.bool_), np.zeros(len(problem.node), np.bool_)
    for terminal, turned in ways:
        found, arcs, nodes = _cut_off(problem, terminal, turned, visits // len(ways))
        nodes[terminal] = False
        best = max(best, found)
        if not (arcs & used_arcs).any() and not (nodes & used_nodes).any():
            apart.append(found)
            used_arcs, used_nodes = used_arcs | arcs, used_nodes | nodes
    if best == 1.0:
        return best
    return max(best, -float(np.expm1(np.sum(np.log1p(-np.array(apart))))))


def _cut_off(problem: Arcs, terminal: int, turned: bool, visits: int) -> tuple[float, Mask, Mask]:
    """Chance that a terminal reaches nothing beyond its neighbourhood, or is not reached; its arcs and nodes.

    Neighbourhoods grow ring by ring, and end half-way to the next terminal.
    """
    edges = problem.edges[:, ::-1] if turned else problem.edges
    n = len(problem.node)
    far = _hops(edges, n, [terminal], directed=True)
    others = [v for v in problem.terminals.tolist() if v != terminal]
    ends = max(int(min(far[others].min(), n)) - 1, 0) // 2
    best, inside = 0.0, far < 0
    for radius in range(ends + 1):
        if visits < _FEWEST:
            break
        ball = far <= radius
        try:
            found = solve_arcs(_contracted(problem, edges, ball, terminal), visits, visits)
        except NotExactError:
            break
        best, inside = found.unreliability, ball
        visits -= max(found.states, 1)
    return best, inside[edges[:, 0]], inside


def _contracted(problem: Arcs, edges: NDArray[np.int64], ball: Mask, terminal: int) -> Arcs:
    """The network of a ball around a terminal, with all beyond it as one perfect node to reach."""
    number, beyond = np.cumsum(ball) - 1, int(ball.sum())
    kept = ball[edges[:, 0]] & (edges[:, 1] != terminal)
    ends = np.where(ball[edges[kept]], number[edges[kept]], beyond)
    source = int(number[terminal])
    return Arcs(
        edges=ends,
        link=problem.link[kept],
        node=np.vstack([problem.node[ball], [[1.0, 0.0]]]),
        terminals=np.array([source, beyond]),
        transit=np.ones(beyond + 1, np.bool_),
        source=source,
        mutual=False,
    )


def _inside(problem: Arcs, visits: int) -> float:
    """Unreliability of a part of the network around likely ways between the terminals."""
    best, far = 1.0, _hops(problem.edges, len(problem.node), _likely(problem), directed=False)
    for inside in _growing(far):
        if not inside[problem.terminals].all() or visits < _FEWEST:
            break
        try:
            source = int(inside[: problem.source].sum())
            found = solve_arcs(replace(part_of(problem, inside), source=source), visits, visits)
        except NotExactError:
            break
        best = min(best, found.unreliability)
        visits -= max(found.states, 1)
    return best


def _growing(far: NDArray[np.float64]) -> Iterator[Mask]:
    """Nodes within 0, 1, 2, ... hops, until there are no more."""
    reached = far[np.isfinite(far)]
    for radius in range(int(reached.max(initial=-1)) + 1):
        yield far <= radius


def _likely(problem: Arcs) -> list[int]:
    """Nodes on the likeliest way from the source to each target, and back where connection is mutual."""
    n, chance = len(problem.node), problem.link[:, 0] * problem.node[problem.edges[:, 1], 0]
    length = _LEAST - np.log(np.maximum(chance, 1e-300))
    found = {problem.source}
    for turned in (False, True)[: 1 + problem.mutual]:
        tails, heads = problem.edges.T[::-1] if turned else problem.edges.T
        matrix: Any = csr_array((length, (tails, heads)), shape=(n, n))
        before = dijkstra(matrix, indices=np.array([problem.source]), return_predecessors=True)[1][0]
        for v in problem.targets:
            while v >= 0 and v not in found:
                found.add(v)
                v = int(before[v])
    return sorted(found)


def _hops(edges: NDArray[np.int64], n: int, start: list[int], *, directed: bool) -> NDArray[np.float64]:
    """Least number of arcs from some nodes to each; infinite where there is no way."""
    matrix: Any = csr_array((np.ones(len(edges)), edges.T), shape=(n, n))
    found = dijkstra(matrix, directed=directed, indices=np.array(start), unweighted=True, min_only=True)
    return np.asarray(found, dtype=np.float64)
