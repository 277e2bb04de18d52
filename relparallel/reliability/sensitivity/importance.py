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
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import (
    require_choice,
    require_flag,
    require_instance,
    require_int,
    require_probability,
)
from relparallel.reliability.auto import exact_within
from relparallel.reliability.lumped.alike_nodes import twins
from relparallel.reliability.lumped.alike_slopes import twin_slopes
from relparallel.reliability.problem import FIELDS, Problem
from relparallel.reliability.programme.compiled import compiled, solved
from relparallel.reliability.programme.frontier import NotExactError, fitting, require_fit
from relparallel.reliability.result import unchecked
from relparallel.reliability.sensitivity.adjoint import swept_slopes
from relparallel.reliability.sensitivity.class_slopes import slopes_by_class
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

FloatArray = NDArray[np.float64]
ByClass = Callable[[Problem], tuple[float, FloatArray] | None]
Measure = Literal["birnbaum", "criticality", "risk_achievement", "risk_reduction", "structural"]
_MEASURES = ("birnbaum", "criticality", "risk_achievement", "risk_reduction", "structural")
_NARROW = 6  # live vertices up to which the sweep takes milliseconds
_FEW = 64  # links up to which finding out how many takes no more than a millisecond
_SHORT = 10  # live vertices up to which it takes less than a second
_SECONDS = 5.0  # that the programme may take, and the sweep some of them, where a form took milliseconds
_TIE = 1e-12  # relative difference that is rounding
_NOISE = 1e-9  # of U, below which U - q B has too few digits
_ROUNDS = 4  # of looking one link further
_CLOSE = 0.999  # criticality from which U - q B loses digits


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Importance:
    """Importance of parts; arrays have one entry per part, links first.

    Attributes
    ----------
    problem : Problem
        Chances of all links and nodes.
    labels : sequence of hashable
        Names of the nodes.
    part : int64[P]
        Rows of the parts: link 0..m-1 of the problem, then its nodes.
    unreliability : float
        U.
    birnbaum : float64[P]
        U(part down) - U(part up), with digits of its own where it is small beside U; 0 where it has none.
    reductions : bool
        Whether what is computed anew simplifies the network first.
    max_states : int
        Largest layer of the exact programme.
    again : callable, optional
        Unreliability and slopes of the same network with other chances, or None, where a closed form answers.
    """

    problem: Problem
    labels: tuple[Hashable, ...]
    part: NDArray[np.int64]
    unreliability: float
    birnbaum: FloatArray
    reductions: bool = True
    max_states: int = 2**24
    again: ByClass | None = None

    def __post_init__(self) -> None:
        rows = sum(map(len, (require_instance(Problem, problem=self.problem).link, self.problem.node)))
        if len(require_instance(tuple, labels=self.labels)) != len(self.problem.node):
            raise ValueError(f"labels must be one for each node of problem, got {self.labels!r}")
        part = require_instance(np.ndarray, part=self.part)
        if part.ndim != 1 or part.dtype.kind != "i" or not ((part >= 0) & (part < rows)).all():
            raise ValueError(f"part must hold rows from 0 to {rows - 1}, got {part!r}")
        require_instance(float, unreliability=require_probability(unreliability=self.unreliability))
        if require_instance(np.ndarray, birnbaum=self.birnbaum).shape != part.shape:
            raise ValueError(f"birnbaum must be one for each part, got {self.birnbaum!r}")
        if part.size:
            require_probability(birnbaum=self.birnbaum)
        require_flag(reductions=self.reductions)
        require_int(max_states=self.max_states, at_least=1)
        if self.again is not None and not callable(self.again):
            raise TypeError(f"again must be callable or None, got {self.again!r}")

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
        evaluated anew. NaN where that takes a programme which is too large, and no digit is left.
        """
        rest = np.maximum(self.unreliability - self.down * self.birnbaum, 0.0)
        known: dict[tuple[float, float, int], float] = {}  # alike parts leave the same rest
        close = np.flatnonzero(self.criticality > _CLOSE).tolist()
        seats = _seats(self.problem)[self.part] if len(close) > 1 else np.zeros(len(rest), np.uint64)
        for i in close:
            alike = float(self.down[i]), float(self.birnbaum[i]), int(seats[i])
            if alike not in known:
                known[alike] = self._with_perfect(int(self.part[i]), float(rest[i]))
            rest[i] = known[alike]
        return _ratio(np.full_like(rest, self.unreliability), rest)

    def _with_perfect(self, row: int, difference: float) -> float:
        """Unreliability with a perfect part, or the difference that is it where that has digits."""
        link, node, m = self.problem.link.copy(), self.problem.node.copy(), len(self.problem.link)
        (link if row < m else node)[row if row < m else row - m] = 1.0, 0.0
        changed = replace(self.problem, link=link, node=node)
        try:
            found = self.again(changed) if self.again else None
            return found[0] if found else _unreliability(changed, self.reductions, self.max_states)
        except NotExactError:
            return difference if difference > _NOISE * self.unreliability else math.nan

    @property
    def structural(self) -> FloatArray:
        """Share of the states of the other parts that can fail in which this one decides (Banzhaf)."""
        link, node = (np.where(part[:, 1:] > 0, 0.5, part) for part in (self.problem.link, self.problem.node))
        wanted = np.zeros(len(link) + len(node), dtype=bool)
        wanted[self.part] = True
        halves = replace(self.problem, link=link, node=node)
        known = self.again(halves) if self.again else None
        if known is None and self.reductions:
            known = twin_slopes(halves)
        _, slopes = known or swept_slopes(halves, wanted, self.reductions, self.max_states)
        return slopes[self.part]

    def to_frame(self, by: Measure = "criticality") -> pd.DataFrame:
        """One row per part, the most important one first.

        Parameters
        ----------
        by : str, optional
            Column to sort by. Parts that differ in it by rounding alone stand in their own order: links
            first, then nodes.

        Returns
        -------
        pandas.DataFrame
            Part, kind, up- and down-probability, and the measures of this module; the structural one only
            where the exact programme fits the network.
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


def importance(
    problem: Problem,
    graph: Topology | nx.Graph[Any],
    reductions: bool = True,
    max_states: int = 2**24,
    *,
    perfect: bool = False,
    alike: bool = False,
    again: ByClass | None = None,
) -> Importance:
    """Importance of every part that can fail, class by class, or by one sweep forth and one back."""

    def by_class() -> tuple[float, FloatArray] | None:
        return None if perfect else slopes_by_class(as_topology(graph), problem)

    wanted = np.concatenate([problem.link[:, 1], problem.node[:, 1]]) > 0
    wanted |= perfect
    known = again(problem) if again and not perfect else None
    if known is None and reductions:
        known = twin_slopes(problem)
    many = len(problem.edges) > _FEW  # where an order alone takes longer than the classes
    if known is None and alike and (many or compiled(problem, reductions).width > _NARROW):
        known = by_class()
    if known is None:
        try:
            if again and compiled(problem, reductions).width > _SHORT:
                exact_within(problem, reductions, max_states, _SECONDS)
            known = swept_slopes(problem, wanted, reductions, max_states)
        except NotExactError as why:
            known = by_class()
            if known is None:
                raise NotExactError(f"{why} for the importance of every part") from why
    part = np.flatnonzero(wanted)
    failed, slopes = min(known[0], 1.0), np.minimum(known[1][part], 1.0)  # rounding may have lifted them
    values = problem, _labels(graph), part, failed, slopes, reductions, max_states, again
    return unchecked(Importance, *values)


def _unreliability(problem: Problem, reductions: bool, max_states: int) -> float:
    """That of the network, exact."""
    found = twins(problem) if reductions else None
    if found is not None:
        return found.unreliability
    most = fitting(max_states)
    outcome = solved(problem, reductions, most)
    require_fit(outcome.width, outcome.peak, most)
    return outcome.unreliability


def _seats(problem: Problem) -> NDArray[np.uint64]:
    """Numbers of the parts that differ where their surroundings do, up to a few links away: links, nodes."""
    words = (np.ascontiguousarray(x).view(np.uint64) for x in (problem.link, problem.node))
    chances = [_stirred(x[:, 0]) + _stirred(x[:, 1] + np.uint64(1)) for x in words]
    links, nodes = chances[0], chances[1] + _stirred(problem.transit.astype(np.uint64))
    nodes[problem.terminals] += np.uint64(1)
    for _ in range(_ROUNDS):
        links = _stirred(chances[0] + _stirred(nodes)[problem.edges].sum(axis=1))
        around = np.zeros(len(nodes), np.uint64)
        for ends in problem.edges.T:
            np.add.at(around, ends, links)
        nodes = _stirred(nodes + around)
    return np.concatenate([links, nodes])


def _stirred(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look drawn at random, equal where the given ones are."""
    x = (x ^ (x >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)


def ranked(values: FloatArray) -> NDArray[np.int64]:
    """Positions of the values, largest first; those equal to 12 digits, one to the next, in their order."""
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    rank = np.cumsum(np.append(False, falling[1:] < falling[:-1] * (1 - _TIE)))
    return order[np.lexsort((order, rank[: len(order)]))]


def _labels(graph: Topology | nx.Graph[Any]) -> tuple[Hashable, ...]:
    """Labels of the nodes in the order of the problem, which is the graph's where no node has a role."""
    if not isinstance(graph, Topology):
        if graph.is_directed():
            return tuple(graph)
        records = dict(graph.nodes(data=True)).values()
        if not any(records) or all(map(FIELDS.isdisjoint, records)):
            return tuple(graph)
    return tuple(as_topology(graph).labels)


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Quotient; 1 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((above == 0) & (below == 0), 1.0, above / below)
