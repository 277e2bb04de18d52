"""Rows of a card for a pair of hosts: how often parts that fail on their own cut them off."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from relparallel.atlas.measures import exactly, hung
from relparallel.atlas.result import Row
from relparallel.metrics import disjoint_path_set
from relparallel.reliability import fat_tree_edge_pair_connected
from relparallel.topology import Description, Topology
from relparallel.topology._arrays import FloatArray

__all__ = ["Downs", "availability_rows"]

_QUANTITY = "host-pair unavailability"


@dataclass(frozen=True, kw_only=True, slots=True)
class Downs:
    """Probability that one cable, a switch, or a host on the way is down."""

    cable: float
    switch: float
    server: float

    def nodes(self, t: Topology) -> FloatArray:
        """Probability of every node, [n]."""
        return np.where(t.endpoint, self.server, self.switch)

    def between(self, t: Topology, v: int, w: int) -> float:
        """Probability that all parallel cables of two joined nodes are down."""
        low, high = min(v, w), max(v, w)
        first, last = np.searchsorted(t.edges[:, 0], [low, low + 1])
        row = first + np.searchsorted(t.edges[first:last, 1], high)
        return float(self.cable ** int(t.multiplicity[row]))


def availability_rows(
    t: Topology, form: Description | None, pair: tuple[Hashable, Hashable], downs: Downs
) -> list[Row]:
    """Bracket of the unavailability of a pair, and the closed form where its design has one."""
    ends = [t.index_of(label) for label in pair]
    lower, upper = _bracket(t, ends, downs)
    if lower == upper:
        rows = [exactly(_QUANTITY, upper, "probability", "bracket closed: cuts and paths agree")]
    else:
        how = "bracket: cuts around both ends, disjoint paths"
        rows = [Row(quantity=_QUANTITY, value=upper, lower=lower, upper=upper, unit="probability", how=how)]
    if form is not None and form.design == "fat_tree" and form.parameters["k"] <= 256:
        k, switch, cable = form.parameters["k"], 1.0 - downs.switch, 1.0 - downs.cable
        inner = fat_tree_edge_pair_connected(k, switch, switch, switch, cable, cable).unreliability
        value = _any([downs.cable, downs.cable, inner])
        rows.append(exactly(f"{_QUANTITY}, up-down paths", value, "probability", "closed form"))
    return rows


def _bracket(t: Topology, ends: Sequence[int], downs: Downs) -> tuple[float, float]:
    """Unavailability from below and from above."""
    node, leaf = downs.nodes(t), hung(t)
    inner = [int(t.indices[t.indptr[v]]) if leaf[v] else v for v in ends]
    series = [downs.between(t, v, w) for v, w in zip(ends, inner, strict=True) if v != w]
    series += [float(node[w]) for w in set(inner) - set(ends)]
    if inner[0] == inner[1]:
        return _any(series), _any(series)
    lower, upper = _cuts(t, inner, downs, node), _paths(t, inner, downs, node)
    low, high = _any([*series, lower]), _any([*series, upper])
    return min(low, high), high


def _cuts(t: Topology, ends: Sequence[int], downs: Downs, node: FloatArray) -> float:
    """Probability that everything around one end is down: both cuts where they share nothing, else one."""
    around = []
    for v, other in (ends, ends[::-1]):
        near = t.indices[t.indptr[v] : t.indptr[v + 1]]
        arms = near[t.transit[near] | (near == other)].tolist()
        down = [_any([downs.between(t, v, w), 0.0 if w == other else node[w]]) for w in arms]
        around.append((set(arms), float(np.prod(down))))
    (first, one), (second, two) = around
    apart = not first & second and ends[1] not in first
    return _any([one, two]) if apart else max(one, two)


def _paths(t: Topology, ends: Sequence[int], downs: Downs, node: FloatArray) -> float:
    """Probability that every one of a largest set of paths without a common part is broken."""
    broken = 1.0
    for labels in disjoint_path_set(t, *(t.labels[v] for v in ends)):
        path = [t.index_of(label) for label in labels]
        cables = [downs.between(t, v, w) for v, w in pairwise(path)]
        broken *= _any([*cables, *node[path[1:-1]]])
    return broken


def _any(down: Iterable[float]) -> float:
    """Probability that at least one of several independent parts is down, without loss of digits."""
    parts = np.asarray(list(down), dtype=np.float64)
    return 1.0 if (parts >= 1.0).any() else float(-np.expm1(np.log1p(-parts).sum()))
