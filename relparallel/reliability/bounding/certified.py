"""Certified bounds of the unreliability, for networks too wide for the exact programme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from relparallel._checks import (
    require_choice,
    require_instance,
    require_int,
    require_probability,
    require_real,
)
from relparallel.reliability.bounding.anytime import anytime_bracket
from relparallel.reliability.bounding.complexes import MAX_CYCLES, Counts, ball_provan, count, kruskal_katona
from relparallel.reliability.bounding.connections import disjoint_connections
from relparallel.reliability.bounding.cut_bounds import (
    disjoint_cuts,
    near_minimum_cuts,
    rest_bound,
    union_bracket,
)
from relparallel.reliability.bounding.cuts import MAX_STEPS
from relparallel.reliability.problem import LinkChance, NodeChance, Problem, Terminals, read_problem
from relparallel.reliability.programme.blocks import Bracket, combine, into_blocks
from relparallel.topology import Topology

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = ["Bounds", "bound_problem", "bounds"]

Method = Literal["auto", "anytime", "ball_provan", "bonferroni", "disjoint", "kruskal_katona"]
_METHODS: Final = ("auto", "anytime", "ball_provan", "bonferroni", "disjoint", "kruskal_katona")


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """A bracket that holds the unreliability for certain, and those of each method that was tried.

    Parameters
    ----------
    lower, upper : float
        lower <= U <= upper.
    method : str
        What was asked for.
    tried : dict of str to (float, float)
        Lower and upper bound of every method that ran; the best of each are ``lower`` and ``upper``.

    Raises
    ------
    TypeError, ValueError
        If a bound is no probability or lower exceeds upper.

    Examples
    --------
    >>> Bounds(lower=0.1, upper=0.11, method="disjoint", tried={"disjoint": (0.1, 0.11)}).gap
    0.0999...
    """

    lower: float
    upper: float
    method: str
    tried: dict[str, Bracket]

    def __post_init__(self) -> None:
        require_choice(_METHODS, method=self.method)
        require_instance(dict, tried=self.tried)
        for name, bracket in self.tried.items():
            require_choice(("exact", *_METHODS), tried=name)
            require_probability(tried=bracket)
        for name in ("lower", "upper"):
            object.__setattr__(self, name, require_probability(**{name: getattr(self, name)}))
        if self.lower > self.upper:
            raise ValueError(f"lower must be at most upper {self.upper!r}, got {self.lower!r}")

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

    def _repr_html_(self) -> str:
        """The table of `to_frame`, probabilities to six digits."""
        return str(self.to_frame().to_html(index=False, float_format="{:.6g}".format))


def bounds(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    link_up: LinkChance = 1.0,
    node_up: NodeChance = 1.0,
    method: Method = "auto",
    *,
    link_down: LinkChance | None = None,
    node_down: NodeChance | None = None,
    rtol: float = 1e-3,
    max_states: int = 2**13,
    max_steps: int = MAX_STEPS,
) -> Bounds:
    """Certified lower and upper bound of the probability that some terminals cannot communicate.

    Parameters
    ----------
    graph : Topology or networkx.Graph or networkx.MultiGraph
        The network. Every node of a networkx graph is a host and forwards.
    terminals : {"all", "switches", "nodes"} or collection of labels
        Nodes that must be connected.
    link_up, node_up : float, array, mapping or str
        Probability that a cable or a node is up, as for `evaluate`.
    method : {"auto", "anytime", "ball_provan", "bonferroni", "disjoint", "kruskal_katona"}
        "bonferroni": likely cuts and a bound on all others; "anytime": the frontier programme with its
        likeliest states; "disjoint": cuts and connections that share nothing; "kruskal_katona" and
        "ball_provan": from counts, for equal links and all nodes as terminals. "auto" starts with the cuts
        and adds the other methods that apply until the bracket is tight.
    link_down, node_down : as link_up and node_up, optional
        Failure probabilities instead, for parts so good that 1 - up has lost digits.
    rtol : float, optional
        Relative width of the bracket to aim at.
    max_states : int, optional
        States that the anytime programme keeps per layer, at about 8 w bytes each, w the live vertices.
    max_steps : int, optional
        Links that one search for cuts looks at; 2**29 take a second or two.

    Returns
    -------
    Bounds
        The bracket, and those of all methods that were tried.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as stated, if "kruskal_katona" or "ball_provan" does not apply, or if one of
        three or more terminals does not forward and has several links.

    Notes
    -----
    Degree, series and cut-node rules come first; the bounds of the independent blocks are combined. What is
    proved, and how, is said in the modules ``cuts``, ``cut_bounds``, ``anytime``, ``connections`` and
    ``complexes``. Floating-point sums are widened by more than they can have been rounded.

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
    require_real(rtol=rtol, above=0, below=1)
    require_int(max_states=max_states, at_least=1, at_most=2**24)
    require_int(max_steps=max_steps, at_least=1, at_most=10**9)
    problem = read_problem(graph, terminals, link_up, node_up, link_down, node_down)
    return bound_problem(problem, method, rtol, max_states, max_steps)


def bound_problem(problem: Problem, method: Method, rtol: float, max_states: int, max_steps: int) -> Bounds:
    """Bound a problem that has been read."""
    if method in ("ball_provan", "kruskal_katona"):
        reason = _no_counts(problem)
        if reason:
            raise ValueError(f"{reason} for method={method!r}")
        tried: dict[str, Bracket] = {method: _by_counts(problem, count(problem), method)}
    else:
        tried = _by_blocks(problem, method, rtol, max_states, max_steps)
    lower, upper = _best(tried)
    if method == "auto" and upper - lower > rtol * lower and not _no_counts(problem):
        counts = count(problem)
        tried |= {name: _by_counts(problem, counts, name) for name in ("ball_provan", "kruskal_katona")}
        lower, upper = _best(tried)
    return Bounds(lower=lower, upper=upper, method=method, tried=tried)


def _best(tried: dict[str, Bracket]) -> Bracket:
    """Largest lower and smallest upper bound."""
    lower = max(low for low, _ in tried.values())
    return lower, max(lower, min(high for _, high in tried.values()))


def _by_blocks(
    problem: Problem, method: Method, rtol: float, max_states: int, max_steps: int
) -> dict[str, Bracket]:
    """Brackets of the whole by the methods that work on independent blocks."""
    apart, blocks = into_blocks(problem)
    found = {"exact": combine(apart, ())} if not blocks else {}
    if blocks and method != "anytime":
        found |= _by_cuts([block.problem for block in blocks], apart, method, rtol, max_steps)
    lower, upper = _best(found) if found else (0.0, 1.0)
    if blocks and (method == "anytime" or (method == "auto" and upper - lower > rtol * lower)):
        apart, blocks = into_blocks(problem, ordered=True)
        states = [anytime_bracket(block.programme, rtol, max_states).bracket for block in blocks]
        found["anytime"] = combine(apart, states)
    return found


def _by_cuts(
    blocks: list[Problem], apart: tuple[float, float], method: Method, rtol: float, max_steps: int
) -> dict[str, Bracket]:
    """Brackets of the whole by likely cuts, and by cuts and connections that share nothing."""
    families = [near_minimum_cuts(block, rtol / 4, max_steps, share=0.1) for block in blocks]
    found = {}
    if method != "disjoint":
        unions = []
        for block, family in zip(blocks, families, strict=True):
            low, high = union_bracket(block, family)
            unions.append((low, min(high + rest_bound(block, family), 1.0)))
        found["bonferroni"] = combine(apart, unions)
    if method != "bonferroni":
        pairs = [(disjoint_cuts(f), disjoint_connections(b)) for b, f in zip(blocks, families, strict=True)]
        found["disjoint"] = combine(apart, pairs)
    return found


def _no_counts(problem: Problem) -> str:
    """Why the bounds from counts do not apply; empty where they do."""
    import networkx as nx

    n, m = len(problem.node), len(problem.edges)
    if len(problem.terminals) < n:
        return f"terminals must be all {n} nodes"
    if m < n - 1 or not nx.is_connected(nx.Graph([(int(u), int(v)) for u, v in problem.edges])):
        return "graph must be connected"
    if np.unique(problem.link[:, 1]).size != 1:
        return "link_up must be the same for all links"
    return f"graph must have at most {MAX_CYCLES} independent cycles" if m - n + 1 > MAX_CYCLES else ""


def _by_counts(problem: Problem, counts: Counts, name: str) -> Bracket:
    """Bracket of the whole: all nodes have to be up, and then the links connect them."""
    rules: dict[str, Callable[[Counts, float], Bracket]] = {
        "ball_provan": ball_provan,
        "kruskal_katona": kruskal_katona,
    }
    failed = -float(np.expm1(np.log1p(-np.minimum(problem.node[:, 1], 1 - 2.0**-53)).sum()))
    return combine((1.0 - failed, failed), [rules[name](counts, float(problem.link[0, 1]))])
