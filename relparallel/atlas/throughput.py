"""Rows of a card for all-to-all traffic: what shortest paths give, and what no routing can pass."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from relparallel.atlas.measures import exactly, hung
from relparallel.atlas.result import Row
from relparallel.metrics import EdgeLoad, HopStatistics, concurrent_flow
from relparallel.topology import Topology
from relparallel.topology._arrays import FloatArray

__all__ = ["throughput_rows"]

_PROGRAM: Final = 80_000  # start nodes times arcs up to which the linear program is solved
_CLOSE: Final = 1e-9  # relative distance at which two bounds have met
_UNIT: Final = "host links"


def throughput_rows(
    t: Topology, hops: HopStatistics, cut: Row, load: EdgeLoad | None, starts_times_arcs: int
) -> list[Row]:
    """Aggregate bottleneck throughput of shortest paths, and throughput of the best routing for each host."""
    n, width = t.num_hosts, _cables(t)
    highest, proof = _highest(t, hops, cut, width)
    if load is None:
        lowest = float(width.min())
        how = f"bracket: {proof}, no routing run above the work limit"
        aggregate = _row("aggregate bottleneck throughput", math.nan, lowest, highest, _UNIT, how)
    else:
        lowest, highest = load.throughput, max(highest, load.throughput)
        aggregate = exactly("aggregate bottleneck throughput", lowest, _UNIT, "exact run, shortest paths")
    quantity, unit = "all-to-all throughput", "host links per host"
    if load is not None and highest <= lowest * (1 + _CLOSE):
        best = exactly(quantity, lowest / n, unit, f"bracket closed: shortest paths meet {proof}")
    elif load is not None and starts_times_arcs <= _PROGRAM:
        found = concurrent_flow(t)
        lower, upper = max(min(found.lower, 1.0), lowest / n), min(found.upper, highest / n)
        best = _row(quantity, lower, lower, max(lower, upper), unit, found.method)
    else:
        value = math.nan if load is None else lowest / n
        how = f"bracket: {'one cable' if load is None else 'shortest paths'}, {proof}"
        best = _row(quantity, value, lowest / n, highest / n, unit, how)
    return [aggregate, best]


def _row(quantity: str, value: float, lower: float, upper: float, unit: str, how: str) -> Row:
    return Row(quantity=quantity, value=value, lower=lower, upper=upper, unit=unit, how=how)


def _cables(t: Topology) -> FloatArray:
    """Capacity of all cables of every pair in one direction [host links], [m]."""
    slowest = t.capacity[t.endpoint[t.edges].any(axis=1)].min()
    return np.asarray(t.multiplicity * t.capacity / slowest)


def _highest(t: Topology, hops: HopStatistics, cut: Row, width: FloatArray) -> tuple[float, str]:
    """Least upper bound of the throughput of all hosts together, and what proves it."""
    n, half = t.num_hosts, t.num_hosts // 2
    around = np.bincount(t.edges.T.ravel(), weights=np.tile(width, 2), minlength=t.num_nodes)
    widest = float((width / t.multiplicity).max())
    bounds = {
        "the cables of a host": n * float(around[t.hosts].min()),
        "the cut of a halving": n * (n - 1) * cut.upper * widest / (half * (n - half)),
    }
    if hops.exact:
        inner = ~hung(t)[t.edges].any(axis=1)
        shorter = hops.mean - 2.0 if hung(t)[t.hosts].all() else hops.mean
        over = inner if shorter < hops.mean else np.ones(len(t.edges), dtype=bool)
        if shorter > 0:
            bounds["all cables over the mean distance"] = 2.0 * float(width[over].sum()) / shorter
    proof = min(bounds, key=lambda name: bounds[name])
    return bounds[proof], proof
