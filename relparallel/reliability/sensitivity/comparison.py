"""Two networks, or one before and after a change, side by side."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relparallel._checks import Result, require_instance
from relparallel.reliability.result import Reliability
from relparallel.reliability.sensitivity.importance import Importance, ranked

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Comparison(Result):
    """Two results, and the importance of the parts of both."""

    before: Reliability
    after: Reliability
    parts: tuple[Importance, Importance]

    @property
    def ratio(self) -> float:
        """Unreliability after over before; 1 where both are 0."""
        return _over(self.after.unreliability, self.before.unreliability)

    @property
    def bracket(self) -> tuple[float, float]:
        """Where the ratio lies for certain; equal to it where both results are exact."""
        return _over(self.after.lower, self.before.upper), _over(
            self.after.upper, self.before.lower
        )

    def _said(self) -> str:
        first, last = self.before.unreliability, self.after.unreliability
        low, high = self.bracket
        around = "" if low == high else f" ({low:.4g} to {high:.4g})"
        return f"U {first:.6g} before, {last:.6g} after: {self.ratio:.4g} times{around}"

    def to_frame(self) -> pd.DataFrame:
        """One row per part, the one whose criticality has changed most first; NaN where it is not."""
        import pandas as pd

        columns = {}
        for when, one in zip(("before", "after"), self.parts, strict=True):
            keys = [_key(*named) for named in zip(one.names, one.kinds, strict=True)]
            for measure in ("birnbaum", "criticality"):
                columns[f"{measure} {when}"] = dict(zip(keys, getattr(one, measure), strict=True))
        names = dict[Any, Any]()
        for one in self.parts:
            for part in zip(one.names, one.kinds, strict=True):
                names[_key(*part)] = part
        table = pd.DataFrame(list(names.values()), columns=["part", "kind"])
        for name, values in columns.items():
            table[name] = [values.get(key, np.nan) for key in names]
        filled = table.fillna(dict.fromkeys(columns, 0.0))
        table["change"] = filled["criticality after"] - filled["criticality before"]
        return table.iloc[ranked(table["change"].abs().to_numpy())].reset_index(drop=True)


def compare(before: Reliability, after: Reliability) -> Comparison:
    """Say how much rarer failure has become, and for which parts it matters more or less.

    Parameters
    ----------
    before, after : Reliability
        What `evaluate` says of two networks, or of one under other chances, terminals or groups.

    Returns
    -------
    Comparison
        ``ratio`` of the unreliabilities and its ``bracket``; ``to_frame()`` has a row per part of
        either, found by its labels: Birnbaum's measure and criticality (`Importance`), and the change
        of criticality.

    Examples
    --------
    >>> import networkx as nx
    >>> from relparallel.reliability import evaluate
    >>> ring, chord = nx.cycle_graph(6), nx.cycle_graph(6)
    >>> chord.add_edge(0, 3)
    >>> compare(evaluate(ring, link_up=0.99), evaluate(chord, link_up=0.99))
    Comparison(U 0.00146045 before, 0.000604557 after: 0.414 times)
    """
    require_instance(Reliability, before=before, after=after)
    return Comparison(before=before, after=after, parts=(before.importance(), after.importance()))


def _key(name: Any, kind: str) -> tuple[str, Hashable]:
    """What a part is known by in both networks, whichever end of a link comes first."""
    return kind, frozenset(name) if kind == "link" else name


def _over(above: float, below: float) -> float:
    return above / below if below else (np.inf if above else 1.0)
