"""Rows of a card for all-to-all traffic: what shortest paths give, and what no routing can pass."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from relparallel.atlas.measures import cables, exactly, hung, known
from relparallel.atlas.result import Row
from relparallel.atlas.routings import Routing
from relparallel.metrics import HopStatistics, concurrent_flow
from relparallel.topology import Topology
from relparallel.topology._arrays import FloatArray

_CLOSE: Final = 1e-9  # relative distance at which two bounds have met
_UNIT: Final = "host links"


def throughput_rows(
    t: Topology, hops: HopStatistics, cut: float, routed: Routing | None, solve: bool
) -> list[Row]:
    """Aggregate bottleneck throughput of a routing, and throughput of the best one for each host."""
    n, width = t.num_hosts, cables(t)
    own = float(_around(t, width).min())
    highest, proof = _highest(t, hops, cut, width)
    lowest, by = (float(width.min()), "one cable") if routed is None else (routed.throughput, routed.how)
    highest = max(highest, lowest)
    if routed is not None and routed.exact:
        aggregate = exactly("aggregate bottleneck throughput", lowest, _UNIT, by)
        by = "shortest paths"
    else:
        how = f"bracket: {by}, {proof}"
        aggregate = _row("aggregate bottleneck throughput", math.nan, lowest, highest, _UNIT, how)
    quantity, unit = "all-to-all throughput", "host links per host"
    if highest <= lowest * (1 + _CLOSE):
        best = exactly(quantity, lowest / n, unit, f"bracket closed: {by} meet {proof}")
    elif solve:
        found = concurrent_flow(t)
        lower, upper = max(min(found.lower, own), lowest / n), min(found.upper, highest / n)
        upper = max(lower, upper)
        best = _row(quantity, lower, lower, upper, unit, known(found.exact, lower, upper, found.method))
    else:
        value = math.nan if routed is None else lowest / n
        best = _row(quantity, value, lowest / n, highest / n, unit, f"bracket: {by}, {proof}")
    return [aggregate, best]


def _row(quantity: str, value: float, lower: float, upper: float, unit: str, how: str) -> Row:
    return Row(quantity=quantity, value=value, lower=lower, upper=upper, unit=unit, how=how)


def _around(t: Topology, width: FloatArray) -> FloatArray:
    """Capacity of all cables of every host in one direction [host links], [N]."""
    ends, both = t.edges.T.ravel(), np.tile(width, 2)
    return np.asarray(np.bincount(ends, weights=both, minlength=t.num_nodes)[t.hosts], dtype=np.float64)


def _highest(t: Topology, hops: HopStatistics, cut: float, width: FloatArray) -> tuple[float, str]:
    """Least upper bound of the throughput of all hosts together, and what proves it."""
    n, half = t.num_hosts, t.num_hosts // 2
    widest = float((width / t.multiplicity).max())
    bounds = {
        "the cables of a host": n * float(_around(t, width).min()),
        "the cut of a halving": n * (n - 1) * cut * widest / (half * (n - half)),
    }
    if hops.exact:
        inner = ~hung(t)[t.edges].any(axis=1)
        shorter = hops.mean - 2.0 if hung(t)[t.hosts].all() else hops.mean
        over = inner if shorter < hops.mean else np.ones(len(t.edges), dtype=bool)
        if shorter > 0:
            bounds["all cables over the mean distance"] = 2.0 * float(width[over].sum()) / shorter
    proof = min(bounds, key=lambda name: bounds[name])
    return bounds[proof], proof
