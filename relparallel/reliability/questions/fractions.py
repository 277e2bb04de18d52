"""Exact fractions: reliability and unreliability that add up to one without rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import prod
from numbers import Rational
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import series
from relparallel.reliability.problem import Problem, Terminals, link_values, node_values, require_relays
from relparallel.reliability.programme.compiled import compiled
from relparallel.reliability.questions.fraction_kind import each_number
from relparallel.reliability.questions.groups import Groups, absorbed, read_groups, swept
from relparallel.reliability.questions.whole_numbers import structure_of, weigh
from relparallel.reliability.result import Reliability, exactly
from relparallel.topology import Topology

if TYPE_CHECKING:
    import networkx as nx

_STATES: Final = 2**20  # largest layer of the programme in plain Python
_ROOM: Final = 2**31  # bytes for the masses of two layers
_STATE: Final = 300  # bytes of a state without its mass


def in_fractions(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals,
    link_up: Any = 1,
    node_up: Any = 1,
    *,
    link_down: Any = None,
    node_down: Any = None,
    groups: Groups | None = None,
    reductions: bool = True,
    max_states: int = 2**20,
) -> Reliability:
    """Evaluate in whole numbers over the common denominator of all parts."""
    topology, problem, rows = structure_of(graph, terminals)
    require_relays(problem)
    link = _down("link", link_up, link_down, partial(link_values, topology, graph))[rows].tolist()
    node = _down("node", node_up, node_down, partial(node_values, topology)).tolist()
    cables = topology.multiplicity[rows].tolist()
    down = [*(q**count for q, count in zip(link, cables, strict=True)), *node]
    mass = prod(q.denominator for q in down).bit_length() // 8 + 1
    max_states = min(max_states, _STATES, max(_ROOM // (2 * mass + _STATE), 1))
    if groups is not None:
        return _with_groups(graph, problem, np.array([(1 - q, q) for q in down]), groups, max_states)
    given = [(q.denominator - q.numerator, q.numerator) for q in down]
    works = Fraction(weigh(problem, given, max_states, reductions), prod(q.denominator for q in down))
    return exactly(works, 1 - works, "exact")


def _with_groups(
    graph: Topology | nx.Graph[Any], problem: Problem, chances: NDArray[Any], groups: Groups, max_states: int
) -> Reliability:
    """Sweep in fractions with the groups in the state."""
    m = len(problem.edges)
    shared = [
        replace(group, chance=(1 - Fraction(group.chance[1]), Fraction(group.chance[1])))
        for group in read_groups(graph, problem, groups)
    ]
    always, problem, shared = absorbed(replace(problem, link=chances[:m], node=chances[m:]), shared)
    given = [*map(tuple, problem.link.tolist()), *map(tuple, problem.node.tolist())]
    up, down = series(always, swept(compiled(problem, reductions=False), given, shared, max_states))
    return exactly(Fraction(up), Fraction(down), "exact")


def _down(part: str, up: Any, down: Any, read: Callable[[str, Any, float], NDArray[Any]]) -> NDArray[Any]:
    """Down-probability of every part, from the one of the two that the caller gave."""
    if down is None:
        return 1 - _fractions(f"{part}_up", up, partial(read, f"{part}_up"), 1.0)
    if each_number(up) != [1]:
        raise ValueError(f"{part}_up must be left at 1.0 where {part}_down is given, got {up!r}")
    return _fractions(f"{part}_down", down, partial(read, f"{part}_down"), 0.0)


def _fractions(
    argument: str, given: Any, read: Callable[[Any, float], NDArray[Any]], rest: float
) -> NDArray[Any]:
    """Fraction of every part; who gets which is asked with places in a list instead of values."""
    if isinstance(given, str):
        return np.array([Fraction(value) for value in read(given, rest).tolist()], dtype=object)
    values = each_number(given)
    read(_like(given, [float(x) if isinstance(x, Rational) else x for x in values]), rest)  # refuses
    listed = [Fraction(0), *map(Fraction, values), Fraction(1)]
    if min(listed) < 0 or max(listed) > 1:
        raise ValueError(f"{argument} must be a probability in [0, 1], got {given!r}")
    last = len(listed) - 1
    places = read(_like(given, [i / last for i in range(1, last)]), rest)
    return np.array([listed[round(place * last)] for place in places.tolist()], dtype=object)


def _like(given: Any, values: list[Any]) -> Any:
    """Other numbers in the place of those that an argument holds."""
    if isinstance(given, Mapping):
        return dict(zip(given, values, strict=True))
    return values if isinstance(given, list | tuple | np.ndarray) and np.ndim(given) == 1 else values[0]
