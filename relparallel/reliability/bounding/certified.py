"""Certified bounds of the unreliability, for networks too wide for the frontier DP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import Result, require_choice, require_int, require_number
from relparallel._notices import told
from relparallel.reliability.bounding.anytime import FIRST, anytime_bracket
from relparallel.reliability.bounding.cut_bounds import (
    disjoint_cuts,
    near_minimum_cuts,
    rest_bound,
    union_bracket,
)
from relparallel.reliability.bounding.cut_families import MAX_STEPS, CutFamily
from relparallel.reliability.bounding.cut_search import FEW
from relparallel.reliability.bounding.upper_bounds import edge_packing_bound, subgraph_bound
from relparallel.reliability.frontier.compiled_sweep import sweep
from relparallel.reliability.frontier.decomposition import Block, Bracket, combine, into_blocks
from relparallel.reliability.frontier.states import MAX_LIVE
from relparallel.reliability.probability import series
from relparallel.reliability.problem import LinkChance, NodeChance, Problem, Terminals, read_problem
from relparallel.topology import Topology

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

_MOST_PAIRED: Final = 64  # terminals whose pairs are asked for one by one
_PAIR_ROUNDING: Final = 1e-12  # relative; more than that of the frontier DP


Method = Literal["auto", "anytime", "bonferroni", "subgraph", "disjoint"]
_METHODS: Final = get_args(Method)
_SWEEP: Final = 16  # links that a search looks at in the time of a state of the frontier DP
_WIDE: Final = 32  # live vertices from which a few states of "anytime" say little
_CACHED: Final = 2**16  # links that the caches hold; to look at one of more takes longer
_ROUNDING: Final = 1e-10  # relative; more than that of the frontier DP of a narrow block


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds(Result):
    """A bracket that holds the unreliability for certain: the best of every method tried."""

    lower: float
    upper: float
    method: str
    tried: dict[str, Bracket]

    @property
    def gap(self) -> float:
        """Width of the bracket relative to its lower end; infinite where that is zero."""
        if self.lower == 0.0:
            return 0.0 if self.upper == 0.0 else float("inf")
        return (self.upper - self.lower) / self.lower

    def to_frame(self) -> pd.DataFrame:
        """One row per method that was tried, the tightest first."""
        import pandas as pd

        rows = sorted(self.tried.items(), key=lambda item: item[1][1] - item[1][0])
        return pd.DataFrame(
            [(name, low, high) for name, (low, high) in rows], columns=["method", "lower", "upper"]
        )


@told
def bounds(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    link_up: LinkChance = 1.0,
    node_up: NodeChance = 1.0,
    method: Method = "auto",
    *,
    link_down: LinkChance | None = None,
    node_down: NodeChance | None = None,
    rtol: float | None = None,
    max_states: int = 2**13,
    max_steps: int = MAX_STEPS,
) -> Bounds:
    """Certified lower and upper bound of the probability that some terminals cannot communicate.

    Parameters
    ----------
    graph, terminals, link_up, node_up, link_down, node_down : as in `evaluate`
        The network, what must be connected, and the chances.
    method : {"auto", "anytime", "bonferroni", "subgraph", "disjoint"}
        "bonferroni": likely cuts and a bound on all others; "anytime": the frontier DP with its
        likeliest states; "disjoint": cuts, and packed trees, that share nothing; "subgraph": an
        upper bound from a narrow part of the network. "auto" adds one method after the other until
        the bracket is tight.
    rtol : float, optional
        Relative width of the bracket to aim at, 1e-3 where omitted; not with
        "subgraph" and "disjoint".
    max_states : int, optional
        States that "anytime" keeps per layer, at about 8 w bytes each, w the live vertices.
    max_steps : int, optional
        Links that the searches for cuts look at, and twice the words of states of "anytime": 2**29
        take up to ten seconds.

    Returns
    -------
    Bounds
        The bracket, and those of all methods that were tried.

    Notes
    -----
    Degree, series and cut-node rules come first; the bounds of the independent blocks are combined.
    Sums of floats are widened by more than they can have been rounded.

    References
    ----------
    Ball, Colbourn and Provan, "Network reliability", Handbooks in Operations Research 7, 1995.

    Examples
    --------
    >>> from relparallel.topology import torus
    >>> found = bounds(torus((8, 8, 8)), link_down=1e-3)
    >>> f"{found.lower:.4e} {found.upper:.4e}"
    '5.1200e-16 5.1202e-16'
    """
    require_choice(_METHODS, method=method)
    if rtol is not None and method in ("subgraph", "disjoint"):
        raise ValueError(f"rtol must be left out with the method {method!r}, got {rtol!r}")
    rtol = 1e-3 if rtol is None else require_number(rtol=rtol, above=0, below=1)
    require_int(max_states=max_states, at_least=1, at_most=2**24)
    require_int(max_steps=max_steps, at_least=1, at_most=10**9)
    problem = read_problem(graph, terminals, link_up, node_up, link_down, node_down)
    return bound_problem(problem, method, rtol, max_states, max_steps)


def bound_problem(
    problem: Problem, method: Method, rtol: float, max_states: int, max_steps: int
) -> Bounds:
    """Bound a problem that has been read."""
    tried = _by_blocks(problem, method, rtol, max_states, max_steps)
    lower = max(low for low, _ in tried.values())
    upper = max(lower, min(high for _, high in tried.values()))
    return Bounds(lower=lower, upper=upper, method=method, tried=tried)


def _by_blocks(
    problem: Problem, method: Method, rtol: float, max_states: int, max_steps: int
) -> dict[str, Bracket]:
    """Brackets of the whole by methods for independent blocks, each with a share of the work."""
    apart, blocks = into_blocks(problem, ordered=method in ("auto", "anytime"))
    narrow: list[Bracket] = []
    if method == "auto" and len(blocks) > 1:
        narrow, blocks = _without_narrow(blocks, max_steps // _SWEEP)
    if not blocks:
        return {"exact": combine(apart, narrow)}
    found: dict[str, Bracket] = {}
    families: dict[int, CutFamily] = {}
    best: list[Bracket] = [(0.0, 1.0)] * len(blocks)
    for name, whole in _rounds(problem) if method == "auto" else [(method, True)]:
        wide = _not_tight(best, rtol * combine(apart, narrow + best)[0])
        if name in ("bonferroni", "disjoint"):
            families |= _likely_cuts(
                blocks, [i for i in wide if i not in families], rtol, max_steps
            )
        links = sum(len(blocks[i].problem.link) for i in wide)
        for i in wide:
            share = len(blocks[i].problem.link) / links
            if name == "anytime" and not whole and blocks[i].sweep.width > _WIDE:
                continue
            if name == "anytime":
                states = max_states if whole else min(FIRST, max_states)
                work = max(int(max_steps * share) // 2, 1)
                new = anytime_bracket(blocks[i].sweep, rtol, states, work, best[i][0])
            elif name == "subgraph":
                new = 0.0, subgraph_bound(blocks[i].problem, int(max_steps * share) // _SWEEP)
            elif name == "bonferroni":
                new = union_bracket(blocks[i].problem, families[i])
                new = new[0], min(new[1] + rest_bound(blocks[i].problem, families[i]), 1.0)
            else:
                new = disjoint_cuts(families[i]), edge_packing_bound(blocks[i].problem)
            low = max(best[i][0], new[0])
            best[i] = low, max(low, min(best[i][1], new[1]))
        found[name] = combine(apart, narrow + best)
        lower, upper = found[name]
        if upper - lower <= rtol * lower:
            break
    return found


def _rounds(problem: Problem) -> list[tuple[Method, bool]]:
    """Methods in the order in which "auto" tries them, and whether they may do all their work."""
    rounds: list[tuple[Method, bool]] = [
        ("bonferroni", True),
        ("disjoint", True),
        ("anytime", True),
    ]
    few = len(problem.terminals) <= FEW
    return [("subgraph", True), ("anytime", False), *rounds] if few else rounds


def _not_tight(brackets: list[Bracket], gap: float) -> list[int]:
    """Which blocks leave more open than their part of a gap; if none, the one that leaves most."""
    widths = [high - low for low, high in brackets]
    wide = [i for i, width in enumerate(widths) if width > gap / len(widths)]
    return wide or [int(np.argmax(widths))]


def _without_narrow(blocks: list[Block], max_visits: int) -> tuple[list[Bracket], list[Block]]:
    """Brackets of the blocks that the frontier DP can do with little work, and the other blocks."""
    done, left = [], []
    for block in sorted(blocks, key=lambda block: block.sweep.width):
        rows = block.sweep
        if rows.width <= MAX_LIVE and max_visits > 0:
            _, failure, _, visited = sweep(rows.steps, rows.chances, max_visits, max_visits)
            max_visits -= visited
            if max_visits >= 0:
                done.append((failure * (1 - _ROUNDING), min(failure * (1 + _ROUNDING), 1.0)))
                continue
        left.append(block)
    return done, left


def _likely_cuts(
    blocks: list[Block], which: list[int], rtol: float, max_steps: int
) -> dict[int, CutFamily]:
    """Cuts of some blocks; what one leaves of its share goes to those after it."""
    families: dict[int, CutFamily] = {}
    left = sum(len(blocks[i].problem.link) for i in which)
    for i in sorted(which, key=lambda i: len(blocks[i].problem.link)):
        size = len(blocks[i].problem.link)
        slower = 1 + size // _CACHED
        steps = max(max_steps * size // left // slower, 1)
        families[i] = near_minimum_cuts(blocks[i].problem, rtol / 4, steps, 0.1)
        max_steps, left = max(max_steps - families[i].steps * slower, 0), left - size
    return families


def bound_by_pairs(problem: Problem, ask: Callable[[Problem], Bracket]) -> Bracket:
    """Bracket the unreliability of a network whose terminals do not forward.

    Let E_i be that all links of terminal i are down, and U_ij the unreliability of a pair. Then U
    is at most P(some E_i) + sum over pairs of (U_ij - P(E_i or E_j)), and at least each U_ij,
    P(some E_i), and what it would be if terminals forwarded. The two are close where links at the
    terminals fail most.
    """
    terminals, node = problem.terminals.tolist(), problem.node.copy()
    works, fails = series(*map(tuple, node[terminals].tolist()))
    node[terminals] = 1.0, 0.0
    inside = replace(problem, node=node)
    alone = np.array([_alone(problem, v) for v in terminals])
    some = -float(np.expm1(np.log1p(-alone).sum())) if alone.max() < 1 else 1.0
    transit = problem.transit.copy()
    transit[terminals] = True
    lower, upper = max(some, ask(replace(inside, transit=transit))[0]), some
    if len(terminals) > _MOST_PAIRED:
        return fails + works * lower * (1 - _PAIR_ROUNDING), 1.0
    for i, j in combinations(range(len(terminals)), 2):
        least, most = ask(_pair(inside, problem.terminals[[i, j]]))
        lower = max(lower, least)
        either = alone[i] + alone[j] - alone[i] * alone[j]
        upper += max(most - either, 0.0) + _PAIR_ROUNDING * most
    return fails + works * lower * (1 - _PAIR_ROUNDING), min(
        fails + works * upper * (1 + _PAIR_ROUNDING), 1.0
    )


def _pair(problem: Problem, terminals: NDArray[np.int64]) -> Problem:
    """The question of two terminals, without links to the others, which do not forward."""
    useful = problem.transit.copy()
    useful[terminals] = True
    kept = useful[problem.edges].all(axis=1)
    return replace(problem, edges=problem.edges[kept], link=problem.link[kept], terminals=terminals)


def _alone(problem: Problem, terminal: int) -> float:
    """Chance that all links of a terminal are down; 0 if it shares one with another terminal."""
    ends: NDArray[np.bool_] = problem.edges == terminal
    rows = ends.any(axis=1)
    if np.isin(problem.edges[rows][~ends[rows]], problem.terminals).any():
        return 0.0
    return float(np.prod(problem.link[rows, 1]))
