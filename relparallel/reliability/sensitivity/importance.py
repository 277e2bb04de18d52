"""Which part of a network matters most: importance measures of every link and node at once.

=================  ==========================================================================================
Birnbaum           B = U(part down) - U(part up): the chance that this part decides
criticality        q B / U: the chance that a failed system would work again with this part repaired
risk achievement   U(part down) / U: how many times likelier failure becomes without the part (RAW)
risk reduction     U / U(part up): how many times rarer failure becomes with a perfect part (RRW)
structural         Birnbaum's measure when every part that can fail is up half of the time
=================  ==========================================================================================

Fussell and Vesely's measure is used in two forms. Risk analysts compute (U - U(part up)) / U, which is the
criticality: `Importance.fussell_vesely` is that. The original asks how probable it is, given failure, that
all of some minimal cut with the part in it has failed. It is never smaller than the criticality, equals it
to first order in small chances, and does not follow from Birnbaum's measure.

References
----------
Birnbaum, "On the importance of different components in a multicomponent system", Multivariate Analysis II,
1969.
Kuo and Zhu, "Importance Measures in Reliability, Risk, and Optimization", Wiley 2012.
van der Borst and Schoonakker, "An overview of PSA importance measures", Reliability Engineering and System
Safety 72, 2001.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_choice
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.frontier.decomposition import compiled
from relparallel.reliability.problem import FIELDS, Problem
from relparallel.reliability.sensitivity.class_importance import class_importance
from relparallel.reliability.sensitivity.reverse_pass import gradient as swept
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

FloatArray = NDArray[np.float64]
Gradient = Callable[[Problem], tuple[float, FloatArray]]  # U, and U(down) - U(up) of links, then nodes
Measure = Literal["birnbaum", "criticality", "risk_achievement", "risk_reduction", "structural"]
_MEASURES = ("birnbaum", "criticality", "risk_achievement", "risk_reduction", "structural")
_TIE = 1e-12  # relative difference that is rounding
_NOISE = 1e-9  # of U, below which U - q B has too few digits
_CLOSE = 0.999  # criticality from which U - q B loses digits
_NARROW: Final = 7  # live vertices up to which the sweep takes milliseconds
_FEW: Final = 512  # links up to which finding out how many takes less than a second
_MOST: Final = 12  # groups whose states are gone through


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Importance:
    """Importance of parts; arrays have one entry per part, links first.

    ``part`` are their rows: links 0..m-1 of the problem, then its nodes, which ``labels`` name. ``birnbaum``
    is U(part down) - U(part up), with digits of its own where it is small beside U, and 0 where it has none;
    ``gradient`` gives U and Birnbaum's measure of all parts with other probabilities.
    """

    problem: Problem
    labels: tuple[Hashable, ...]
    part: NDArray[np.int64]
    unreliability: float
    birnbaum: FloatArray
    gradient: Gradient

    @property
    def names(self) -> list[Any]:
        """Pair of labels of a link, label of a node."""
        m, edges = len(self.problem.link), self.problem.edges.tolist()
        return [
            tuple(self.labels[v] for v in edges[i]) if i < m else self.labels[i - m]
            for i in self.part.tolist()
        ]

    @property
    def kinds(self) -> list[str]:
        """Whether a part is a "link" or a "node"."""
        return ["link" if i < len(self.problem.link) else "node" for i in self.part.tolist()]

    @property
    def up(self) -> FloatArray:
        """Up-probability of the parts."""
        return np.concatenate([self.problem.link[:, 0], self.problem.node[:, 0]])[self.part]

    @property
    def down(self) -> FloatArray:
        """Down-probability of the parts."""
        return np.concatenate([self.problem.link[:, 1], self.problem.node[:, 1]])[self.part]

    @property
    def criticality(self) -> FloatArray:
        """Chance that the part is down and decides, given that the system has failed; 0 if it never fails."""
        return self.down * self.birnbaum / self.unreliability if self.unreliability > 0 else 0 * self.birnbaum

    @property
    def fussell_vesely(self) -> FloatArray:
        """Share (U - U(part up)) / U of the unreliability that a perfect part removes: the criticality."""
        return self.criticality

    @property
    def risk_achievement(self) -> FloatArray:
        """How many times likelier failure is with the part down (RAW); infinite if U = 0."""
        without = self.unreliability + self.up * self.birnbaum
        return _ratio(without, np.full_like(without, self.unreliability))

    @property
    def risk_reduction(self) -> FloatArray:
        """How many times rarer failure is with a perfect part (RRW); infinite if no other fails.

        U - q B keeps its digits unless the part is in nearly every failure: then the network is
        evaluated anew. NaN where that takes a frontier DP which is too large, and no digit is left.
        """
        rest = np.maximum(self.unreliability - self.down * self.birnbaum, 0.0)
        for i in np.flatnonzero(self.criticality > _CLOSE).tolist():
            try:
                rest[i] = self.gradient(self._with_perfect(int(self.part[i])))[0]
            except NotExactError:
                rest[i] = rest[i] if rest[i] > _NOISE * self.unreliability else math.nan
        return _ratio(np.full_like(rest, self.unreliability), rest)

    def _with_perfect(self, row: int) -> Problem:
        """The network with a part that never fails."""
        link, node, m = self.problem.link.copy(), self.problem.node.copy(), len(self.problem.link)
        (link if row < m else node)[row if row < m else row - m] = 1.0, 0.0
        return replace(self.problem, link=link, node=node)

    @property
    def structural(self) -> FloatArray:
        """Share of the states of the other parts that can fail in which this one decides (Banzhaf)."""
        link, node = (np.where(part[:, 1:] > 0, 0.5, part) for part in (self.problem.link, self.problem.node))
        return self.gradient(replace(self.problem, link=link, node=node))[1][self.part]

    def to_frame(self, by: Measure = "criticality") -> pd.DataFrame:
        """One row per part, the most important one first.

        Parameters
        ----------
        by : str, optional
            Column to sort by. Parts that differ in it by rounding alone stand in their own order: links
            first, then nodes.
        """
        import pandas as pd

        require_choice(_MEASURES, by=by)
        table = {"part": self.names, "kind": self.kinds, "up": self.up, "down": self.down}
        measures = {name: getattr(self, name) for name in _MEASURES if name != "structural"}
        try:
            measures["structural"] = self.structural
        except NotExactError:  # a fabric known by its classes
            if by == "structural":
                raise
        return pd.DataFrame(table | measures).iloc[ranked(measures[by])].reset_index(drop=True)

    def _repr_html_(self) -> str:
        """The table of `to_frame`, to six digits."""
        return str(self.to_frame().to_html(index=False, float_format="{:.6g}".format))


def ranked(values: FloatArray) -> NDArray[np.int64]:
    """Positions of the values, largest first; those equal to 12 digits, one to the next, in their order."""
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    rank = np.cumsum(np.append(False, falling[1:] < falling[:-1] * (1 - _TIE)))
    return order[np.lexsort((order, rank[: len(order)]))]


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Quotient; 1 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((above == 0) & (below == 0), 1.0, above / below)


def importance(
    problem: Problem,
    graph: Topology | nx.Graph[Any],
    reductions: bool = True,
    max_states: int = 2**24,
    *,
    perfect: bool = False,
) -> Importance:
    """Importance of every part that can fail, or with ``perfect`` of all parts."""
    if perfect and problem.groups:
        raise NotExactError("perfect must be False for importance with groups, got True")
    wanted = np.concatenate([problem.link[:, 1], problem.node[:, 1]]) > 0
    wanted |= perfect

    def gradient(about: Problem) -> tuple[float, FloatArray]:
        if problem.groups:
            return _with_groups(about, reductions, max_states)
        structure = compiled(about, reductions) if len(about.edges) <= _FEW else None
        reason = ""
        if structure is None or structure.width > _NARROW:
            try:
                return class_importance(as_topology(graph), about, perfect)
            except NotExactError as why:
                reason = f"; {why}"
        structure = structure or compiled(about, reductions)
        try:
            return swept(structure, about.link, about.node, wanted, max_states)
        except NotExactError as why:
            raise NotExactError(f"{why} for the importance of every part{reason}") from why

    failed, slopes = gradient(problem)
    part = np.flatnonzero(wanted)
    return Importance(
        problem=problem,
        labels=_labels(graph),
        part=part,
        unreliability=min(failed, 1.0),  # rounding may have lifted them
        birnbaum=np.minimum(slopes[part], 1.0),
        gradient=gradient,
    )


def _with_groups(problem: Problem, reductions: bool, max_states: int) -> tuple[float, FloatArray]:
    """The same where parts also fail in groups of shared risk, over all states of the groups.

    A part does not matter where one of its groups is down; states in which the same parts are down are asked
    for once.
    """
    from relparallel.reliability.extensions.srlg import absorbed

    always, rest, shared = absorbed(problem, problem.groups)
    if len(shared) > _MOST:
        raise NotExactError(f"groups must be at most {_MOST} for importance, got {len(shared)}")
    structure = compiled(problem, reductions)  # of all states alike
    may = np.concatenate([rest.link[:, 0], rest.node[:, 0]]) > 0

    def gradient(about: Problem) -> tuple[float, FloatArray]:
        up, down = np.concatenate([about.link, about.node]).T
        wanted = (down > 0) & ~(may & (up == 0))  # these are down with a group
        return swept(structure, about.link, about.node, wanted, max_states)

    m, failed, total = len(problem.link), 0.0, np.zeros(len(problem.link) + len(problem.node))
    known: dict[tuple[frozenset[int], frozenset[int]], tuple[float, FloatArray]] = {}
    for state in product((False, True), repeat=len(shared)):
        mass = math.prod(group.chance[fails] for group, fails in zip(shared, state, strict=True))
        gone = [group for group, fails in zip(shared, state, strict=True) if fails]
        links = frozenset[int]().union(*(group.links for group in gone))
        nodes = frozenset[int]().union(*(group.nodes for group in gone))
        if (links, nodes) not in known:
            known[links, nodes] = _without(rest, sorted(links), sorted(nodes), gradient)
        failed += mass * known[links, nodes][0]
        total += mass * known[links, nodes][1]
    for group in problem.groups:
        alone = len(group.nodes) + len(group.links) == 1
        if alone and not group.nodes & set(problem.terminals.tolist()):  # taken into the part's probability
            total[[*group.links, *(m + v for v in group.nodes)]] *= group.chance[0]
    return float(always[1] + always[0] * failed), float(always[0]) * total


def _without(
    problem: Problem, links: list[int], nodes: list[int], gradient: Gradient
) -> tuple[float, FloatArray]:
    """What the network comes to without some parts."""
    link, node = problem.link.copy(), problem.node.copy()
    link[links] = node[nodes] = 0.0, 1.0
    down, slopes = gradient(replace(problem, link=link, node=node))
    slopes = slopes.copy()
    slopes[links] = slopes[len(link) + np.array(nodes, dtype=np.int64)] = 0.0
    return down, slopes


def _labels(graph: Topology | nx.Graph[Any]) -> tuple[Hashable, ...]:
    """Labels of the nodes in the order of the problem, which is the graph's where no node has a role."""
    if not isinstance(graph, Topology):
        records = dict(graph.nodes(data=True)).values()
        if not any(records) or all(map(FIELDS.isdisjoint, records)):
            return tuple(graph)
    return tuple(as_topology(graph).labels)
