"""Which part of a network matters most: importance measures of every link and node at once.

=================  ==========================================================================================
Birnbaum           B = U(part down) - U(part up): the chance that this part decides
criticality        q B / U: the chance that a failed system would work again with this part repaired
risk achievement   U(part down) / U: how many times likelier failure becomes without the part (RAW)
risk reduction     U / U(part up): how many times rarer failure becomes with a perfect part (RRW)
structural         Birnbaum's measure when every part that can fail is up half of the time
=================  ==========================================================================================

Fussell and Vesely's measure is used in two forms. Risk analysts compute (U - U(part up)) / U, which
is the criticality: `Importance.fussell_vesely` is that. The original asks how probable it is, given
failure, that all of some minimal cut with the part in it has failed. It is never smaller than the
criticality, equals it to first order in small chances, and does not follow from Birnbaum's measure.

References
----------
Birnbaum, "On the importance of different components in a multicomponent system", Multivariate
Analysis II, 1969. Kuo and Zhu, "Importance Measures in Reliability, Risk, and Optimization", Wiley
2012. van der Borst and Schoonakker, "An overview of PSA importance measures", Reliability
Engineering and System Safety 72, 2001.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import Result, require_choice
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.problem import Problem

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]
# U, and U(down) - U(up) of links, then nodes
Gradient = Callable[[Problem], tuple[float, FloatArray]]
Measure = Literal["birnbaum", "criticality", "risk_achievement", "risk_reduction", "structural"]
_MEASURES = ("birnbaum", "criticality", "risk_achievement", "risk_reduction", "structural")
_TIE = 1e-12  # relative difference that is rounding
_NOISE = 1e-9  # of U, below which U - q B has too few digits
_CLOSE = 0.999  # criticality from which U - q B loses digits


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Importance(Result):
    """Importance of parts; arrays have one entry per part, links first.

    ``part`` are their rows: links 0..m-1 of the problem, then its nodes, which ``labels`` name.
    ``birnbaum`` is U(part down) - U(part up), with digits of its own where it is small beside U,
    and 0 where it has none; ``gradient`` gives U and Birnbaum's measure of all parts with other
    probabilities.
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
        """Chance that the part is down and decides, given system failure; 0 if it never fails."""
        return (
            self.down * self.birnbaum / self.unreliability
            if self.unreliability > 0
            else 0 * self.birnbaum
        )

    @property
    def fussell_vesely(self) -> FloatArray:
        """Share (U - U(part up)) / U of unreliability that a perfect part removes: criticality."""
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
        """Share of the states of other parts that can fail in which this one decides (Banzhaf)."""
        link, node = (
            np.where(part[:, 1:] > 0, 0.5, part) for part in (self.problem.link, self.problem.node)
        )
        return self.gradient(replace(self.problem, link=link, node=node))[1][self.part]

    def _said(self) -> str:
        return f"{len(self.part)} parts of a network with unreliability {self.unreliability:.6g}"

    def to_frame(self, by: Measure = "criticality") -> pd.DataFrame:
        """One row per part, the most important one first.

        Parameters
        ----------
        by : str, optional
            Column to sort by. Parts that differ in it by rounding alone stand in their own order:
            links first, then nodes.
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

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the parts that decide most often."""
        from relparallel.plotting import bars

        table = self.to_frame().set_index("part")["criticality"]
        return bars(table, "chance that the part decides, given a failure", ax)


def ranked(values: FloatArray) -> NDArray[np.int64]:
    """Positions of values, largest first; equal to 12 digits, one to the next, in their order."""
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    rank = np.cumsum(np.append(False, falling[1:] < falling[:-1] * (1 - _TIE)))
    return order[np.lexsort((order, rank[: len(order)]))]


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Quotient; 1 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((above == 0) & (below == 0), 1.0, above / below)
