"""Rows of a card: pieces, cost, distances, bisection, disjoint paths, all-to-all traffic."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final, NamedTuple

import numpy as np

from relparallel.atlas.rows import Row, between, exactly
from relparallel.metrics import (
    Estimate,
    concurrent_flow,
    ecmp_load,
    edge_connectivity,
    hop_statistics,
)
from relparallel.metrics._network import link_capacity
from relparallel.metrics.distances import HopStatistics
from relparallel.topology import Topology, bill_of_materials, orbits
from relparallel.topology._arrays import BoolArray, FloatArray
from relparallel.topology.description import Description

_SOURCES: Final = 4096  # of a sampled hop count
_COUNTED: Final = "exact run, counted"
_FORM: Final = "closed form"
_CLOSE: Final = 1e-9  # relative distance at which two bounds have met
_UNIT: Final = "host links"
_SLACK: Final = 1e-6  # relative error of a linear program, far below the step of one cable


def known(exact: bool, lower: float, upper: float, method: str) -> str:
    """How a bracket is known: whether one run gave both ends, or bounds that may have met."""
    return (
        f"{'exact run,' if exact else 'bracket closed:' if lower == upper else 'bracket:'} {method}"
    )


def cables(t: Topology) -> FloatArray:
    """Capacity of all cables of every pair in one direction [host links], [m]."""
    return np.asarray(t.multiplicity * t.capacity / link_capacity(t))


def hung(t: Topology) -> BoolArray:
    """Hosts with a single neighbour, a switch, that forward nothing, [n]."""
    single = t.endpoint & ~t.transit & (np.diff(t.indptr) == 1)
    found = np.flatnonzero(single)
    single[found] = ~t.endpoint[t.indices[t.indptr[found]]]
    return np.asarray(single)


def size(t: Topology) -> tuple[int, int, bool]:
    """Start nodes of an exact run, arcs it looks at from each, whether proved orbits spare any."""
    leaf = np.flatnonzero(hung(t))
    racks = np.unique(t.indices[t.indptr[leaf]]).size
    starts, arcs = t.num_hosts - leaf.size + racks, t.indices.size - 2 * (leaf.size - racks)
    symmetric = np.unique(orbits(t)[t.hosts]).size
    return min(starts, symmetric), arcs, symmetric < starts


def count_rows(t: Topology) -> list[Row]:
    """Pieces, cost and power."""
    bill = bill_of_materials(t)
    kinds = {kind: int((t.is_kind(kind) & ~t.endpoint).sum()) for kind in t.kinds}
    counts = {
        "hosts": t.num_hosts,
        **{f"switches: {kind}": count for kind, count in kinds.items() if count},
        "links": t.num_links,
    }
    prices = f"{_COUNTED}, prices of {bill.prices.name}"
    return [
        *(exactly(name, count, "", _COUNTED) for name, count in counts.items()),
        exactly("cost", bill.cost, "USD", prices),
        exactly("power", bill.power, "W", prices),
    ]


def measured_hops(t: Topology, whole: bool, rng: np.random.Generator) -> HopStatistics:
    """Distances of all hosts, or, where hosts forward for each other, from a sample of them.

    A source that forwards and reaches all joins all, and twice its farthest host is a bound of the
    diameter.
    """
    if whole or t.num_hosts <= _SOURCES or not t.transit[t.hosts].all():
        return hop_statistics(t, symmetry=True)
    return hop_statistics(t, sources=_SOURCES, rng=rng)


def hop_rows(
    t: Topology, hops: HopStatistics, form: Description | None, symmetric: bool
) -> list[Row]:
    """Mean and largest distance."""
    if hops.exact:
        how = "exact run, proved orbits" if symmetric else "exact run"
        return [
            exactly("mean hops", hops.mean, "links", how),
            exactly("diameter", hops.diameter, "links", how),
        ]
    error = 3 * hops.standard_error
    sampled = f"{_SOURCES} sources"
    how = f"sampled, {sampled}, three standard errors"
    mean = Row("mean hops", hops.mean, hops.mean - error, hops.mean + error, "links", how)
    through = 2 * hops.diameter  # by way of a source
    highest = (
        through
        if form is None or form.diameter_bound is None
        else min(form.diameter_bound, through)
    )
    meeting = f"{_FORM} meets" if highest == hops.diameter else "bracket:"
    how = f"{meeting} the farthest of {sampled}"
    return [mean, between("diameter", hops.diameter, highest, "links", how)]


def cut_row(t: Topology, found: Estimate, routed: Routing | None, each: float) -> Row:
    """Cables between two halves of the hosts; a routing, or what each host reaches, may prove more.

    All that one half sends to the other crosses the cut: ``each`` [host links] spread over all
    other hosts.
    """
    n, half = t.num_hosts, t.num_hosts // 2
    across, widest = half * (n - half), float((cables(t) / t.multiplicity).max())
    counted = 0 if routed is None else math.ceil(across / routed.busiest - _SLACK)
    reached = math.ceil(across * each / ((n - 1) * widest) * (1 - _SLACK) - _SLACK)
    proved = max(counted, reached)
    lower = found.lower if found.exact else min(max(found.lower, proved), found.upper)
    how = (
        found.method
        if found.method == _FORM
        else known(found.exact, lower, found.upper, found.method)
    )
    return Row("bisection", float(found.value), float(lower), float(found.upper), "links", how)


def path_rows(t: Topology, form: Description | None, pair: tuple[Hashable, Hashable]) -> list[Row]:
    """Fewest cable-disjoint paths of any two hosts, and those of one pair."""
    own = float(edge_connectivity(t, *pair))
    fewest = int(min(t.degrees[t.hosts].min(), own))
    quantity = "disjoint host paths, any pair"
    if form is not None and form.host_connectivity is not None:
        row = exactly(quantity, form.host_connectivity, "", _FORM)
    elif fewest == 1:
        row = exactly(quantity, 1, "", "exact run: all joined, some by one cable")
    else:
        how = "bracket: all joined, cables of a host, one pair"
        row = between(quantity, 1, fewest, "", how)
    return [row, exactly("disjoint host paths, first to last", own, "", "exact run, maximum flow")]


class Routing(NamedTuple):
    """Throughput of all hosts [host links], units over the busiest cable, and how it is known."""

    throughput: float
    busiest: float
    how: str


def shortest_paths(t: Topology, symmetric: bool) -> Routing:
    """All shortest paths, split evenly."""
    load = ecmp_load(t)
    busiest = float((load.flow / t.multiplicity[:, None]).max())
    how = "exact run, proved orbits, shortest paths" if symmetric else "exact run, shortest paths"
    return Routing(load.throughput, busiest, how)


def throughput_rows(
    t: Topology, hops: HopStatistics, cut: float, routed: Routing | None, solve: bool
) -> list[Row]:
    """Aggregate bottleneck throughput of a routing, and that of the best one for each host."""
    n, width = t.num_hosts, cables(t)
    own = float(_around(t, width).min())
    highest, proof = _highest(t, hops, cut, width)
    lowest, by = (
        (float(width.min()), "one cable") if routed is None else (routed.throughput, routed.how)
    )
    highest = max(highest, lowest)
    quantity = "aggregate bottleneck throughput"
    if routed is None:
        aggregate = between(quantity, lowest, highest, _UNIT, f"bracket: {by}, {proof}")
    else:
        aggregate = exactly(quantity, lowest, _UNIT, by)
        by = "shortest paths"
    quantity, unit = "all-to-all throughput", "host links per host"
    if highest <= lowest * (1 + _CLOSE):
        return [
            aggregate,
            exactly(quantity, lowest / n, unit, f"bracket closed: {by} meet {proof}"),
        ]
    if not solve:
        value = math.nan if routed is None else lowest / n
        return [
            aggregate,
            Row(quantity, value, lowest / n, highest / n, unit, f"bracket: {by}, {proof}"),
        ]
    found = concurrent_flow(t)
    lower = max(min(found.lower, own), lowest / n)
    upper = max(lower, min(found.upper, highest / n))
    return [
        aggregate,
        Row(quantity, lower, lower, upper, unit, known(found.exact, lower, upper, found.method)),
    ]


def _around(t: Topology, width: FloatArray) -> FloatArray:
    """Capacity of all cables of every host in one direction [host links], [N]."""
    ends, both = t.edges.T.ravel(), np.tile(width, 2)
    return np.asarray(
        np.bincount(ends, weights=both, minlength=t.num_nodes)[t.hosts], dtype=np.float64
    )


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
