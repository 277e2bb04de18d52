"""Rows of a card for what independent failures cut off: a pair of hosts, some host, a share."""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from relparallel.atlas.rows import Row, exactly
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
_STATES, _STEPS = 2**10, 2**24  # the work that bounds take: below a second
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


def availability_rows(
    t: Topology, form: Description | None, pair: tuple[Hashable, Hashable], downs: Downs
) -> list[Row]:
    """Unavailability of a pair, of all hosts, and share out of reach; in closed form if known."""
    value = None if form is None else _pair_form(form, downs)
    if value is not None:
        rows = [exactly(_QUANTITY, value, "probability", "closed form, any path")]
    else:
        node = downs.nodes(t)
        node[[t.index_of(label) for label in pair]] = 0.0
        found = bounds(
            t, pair, link_down=downs.cable, node_down=node, max_states=_STATES, max_steps=_STEPS
        )
        how = "bracket: likely cuts, disjoint paths"
        rows = [Row(_QUANTITY, found.upper, found.lower, found.upper, "probability", how)]
    return rows if form is None else [*rows, *_fabric_rows(form, downs)]


def _pair_form(form: Description, downs: Downs) -> float | None:
    """Unavailability of the first and last host over any path; None if no closed form is quick."""
    given, switch, cable = form.parameters, 1.0 - downs.switch, 1.0 - downs.cable
    single = form.design == "leaf_spine" and "cables" not in given
    if not single or given["leaves"] < 2 or max(given["leaves"], given["spines"]) > _QUICK:
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
    single = form.design == "leaf_spine" and "cables" not in given
    if single and max(given["leaves"], given["spines"]) <= _QUICK:
        leaves, spines, hosts = given["leaves"], given["spines"], given["hosts_per_leaf"]
        ups = (switch, cable, switch, cable)
        every = leaf_spine_leaves_connected(
            leaves, spines, *ups, hosts_per_leaf=hosts
        ).unreliability
        rows.append(exactly(_EVERY, every, "probability", "closed form, hosts work"))
    if has_pair_classes(form, _SERVERS):
        ratio = accessible_servers(form, 1.0 - downs.server, switch, cable)
        known = {"closed_form": "closed form", "exact": "exact run"}.get(
            ratio.method, "bracket: bounds"
        )
        how = f"{known} over classes of pairs, hosts fail too"
        value, share = ratio.unreliability, "mean share of hosts out of reach"
        rows.append(Row(share, value, ratio.lower, ratio.upper, "probability", how))
    return rows


def _all_of_fat_tree(k: int, downs: Downs) -> Row:
    """All hosts: their cables and edge switches, then at most the sum over all pairs of these."""
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


def _any(down: Iterable[float]) -> float:
    """Probability that at least one of several independent parts is down, with no digits lost."""
    parts = np.asarray(list(down), dtype=np.float64)
    return 1.0 if (parts >= 1.0).any() else float(-np.expm1(np.log1p(-parts).sum()))
