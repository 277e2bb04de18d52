"""Rows of a card for what parts that fail on their own cut off: a pair of hosts, some host, a share."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from relparallel.atlas.measures import hung
from relparallel.atlas.rows import Row, exactly
from relparallel.metrics import disjoint_path_set
from relparallel.reliability import (
    accessible_servers,
    bounds,
    fat_tree_pair,
    leaf_spine_leaves_connected,
    leaf_spine_pair,
)
from relparallel.reliability.closed_forms.survivability import has_pair_classes
from relparallel.topology import Topology
from relparallel.topology._arrays import FloatArray
from relparallel.topology.description import Description

_QUANTITY, _EVERY = "host-pair unavailability", "all-host unavailability"
_CERTIFIED, _STATES, _STEPS = 20_000, 2**10, 2**26  # cables, and the work that bounds take: below a second
_SERVERS, _QUICK = 20, 128  # sizes up to which an answer takes less than a second


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
    """Unavailability of a pair, of all hosts, and share out of reach, in closed form where there is one."""
    ends = [t.index_of(label) for label in pair]
    found = None if form is None else _pair_form(form, downs)
    lower, upper = _bracket(t, ends, downs)
    certified = found is None and lower < upper and len(t.edges) <= _CERTIFIED
    if certified:
        lower, upper = _closer(t, ends, downs, lower, upper)
    if found is not None:
        rows = [exactly(_QUANTITY, found, "probability", "closed form, any path")]
    elif lower == upper:
        rows = [exactly(_QUANTITY, upper, "probability", "bracket closed: cuts and paths agree")]
    else:
        how = "bracket: likely cuts" if certified else "bracket: cuts around both ends"
        how += ", disjoint paths"
        rows = [Row(_QUANTITY, upper, lower, upper, "probability", how)]
    return rows if form is None else [*rows, *_fabric_rows(form, downs)]


def _pair_form(form: Description, downs: Downs) -> float | None:
    """Unavailability of the first and the last host over any path; None where no closed form is quick."""
    given, switch, cable = form.parameters, 1.0 - downs.switch, 1.0 - downs.cable
    if form.design != "leaf_spine" or given["leaves"] < 2 or max(given["leaves"], given["spines"]) > _QUICK:
        return None
    inner = leaf_spine_pair(given["leaves"], given["spines"], switch, cable, switch).unreliability
    return _any([downs.cable, downs.cable, inner])


def _fabric_rows(form: Description, downs: Downs) -> list[Row]:
    """What closed forms say of the fabric as a whole."""
    given, switch, cable = form.parameters, 1.0 - downs.switch, 1.0 - downs.cable
    rows = []
    if form.design == "fat_tree" and given["k"] <= 256:
        inner = fat_tree_pair(given["k"], switch, switch, switch, cable, cable).unreliability
        value = _any([downs.cable, downs.cable, inner])
        rows.append(exactly(f"{_QUANTITY}, up-down paths", value, "probability", "closed form"))
        rows.append(_all_of_fat_tree(given["k"], downs))
    if form.design == "leaf_spine" and max(given["leaves"], given["spines"]) <= _QUICK:
        leaves, spines, hosts = given["leaves"], given["spines"], given["hosts_per_leaf"]
        ups = (switch, cable, switch, cable)
        every = leaf_spine_leaves_connected(leaves, spines, *ups, hosts_per_leaf=hosts).unreliability
        rows.append(exactly(_EVERY, every, "probability", "closed form, hosts work"))
    if has_pair_classes(form, _SERVERS):
        ratio = accessible_servers(form, 1.0 - downs.server, switch, cable)
        known = {"closed_form": "closed form", "exact": "exact run"}.get(ratio.method, "bracket: bounds")
        how = f"{known} over classes of pairs, hosts fail too"
        value, share = ratio.unreliability, "mean share of hosts out of reach"
        rows.append(Row(share, value, ratio.lower, ratio.upper, "probability", how))
    return rows


def _all_of_fat_tree(k: int, downs: Downs) -> Row:
    """All hosts: their cables and edge switches, then at most the sum over all pairs of edge switches."""
    h, switch, cable = k // 2, 1.0 - downs.switch, 1.0 - downs.cable
    alone = [*[downs.cable] * (2 * h**3), *[downs.switch] * (2 * h**2)]
    near, far = (
        fat_tree_pair(k, switch, switch, 1.0, cable, cable, turn=turn).unreliability
        for turn in ("aggregation", "core")
    )
    pairs = min(near * k * math.comb(h, 2) + far * h**2 * math.comb(k, 2), 1.0)
    lower, upper = _any(alone), _any([*alone, pairs])
    how = "bracket: what hosts hang on, sum over pairs of edge switches; hosts work"
    return Row(_EVERY, upper, lower, upper, "probability", how)


def _closer(
    t: Topology, ends: Sequence[int], downs: Downs, lower: float, upper: float
) -> tuple[float, float]:
    """The same with certified bounds, which know all likely cuts."""
    node = downs.nodes(t)
    node[list(ends)] = 0.0
    labels = [t.labels[v] for v in ends]
    found = bounds(t, labels, link_down=downs.cable, node_down=node, max_states=_STATES, max_steps=_STEPS)
    return max(lower, found.lower), min(upper, found.upper)


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
