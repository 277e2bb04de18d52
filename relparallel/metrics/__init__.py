"""What a network is worth when everything works: distances and cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relparallel._lazy import offered

if TYPE_CHECKING:
    from relparallel.metrics.curves import ResilienceCurve, resilience_curve
    from relparallel.metrics.cuts import disjoint_path_set, edge_connectivity, vertex_connectivity
    from relparallel.metrics.degraded import DegradedThroughput, throughput_under_failures
    from relparallel.metrics.estimate import Estimate, binomial_estimate
    from relparallel.metrics.growth import Expansion, expansion
    from relparallel.metrics.halves import bisection
    from relparallel.metrics.hops import HopStatistics, hop_statistics
    from relparallel.metrics.load import EdgeLoad, ecmp_load
    from relparallel.metrics.resilience import Survival, hosts_connected, survival
    from relparallel.metrics.throughput import aggregate_bottleneck_throughput, concurrent_flow
    from relparallel.metrics.tiers import oversubscription

__all__ = [
    "DegradedThroughput",
    "EdgeLoad",
    "Estimate",
    "Expansion",
    "HopStatistics",
    "ResilienceCurve",
    "Survival",
    "aggregate_bottleneck_throughput",
    "binomial_estimate",
    "bisection",
    "concurrent_flow",
    "disjoint_path_set",
    "ecmp_load",
    "edge_connectivity",
    "expansion",
    "hop_statistics",
    "hosts_connected",
    "oversubscription",
    "resilience_curve",
    "survival",
    "throughput_under_failures",
    "vertex_connectivity",
]

__getattr__, __dir__ = offered(
    __name__,
    {
        "curves": ("ResilienceCurve", "resilience_curve"),
        "cuts": ("disjoint_path_set", "edge_connectivity", "vertex_connectivity"),
        "degraded": ("DegradedThroughput", "throughput_under_failures"),
        "estimate": ("Estimate", "binomial_estimate"),
        "growth": ("Expansion", "expansion"),
        "halves": ("bisection",),
        "hops": ("HopStatistics", "hop_statistics"),
        "load": ("EdgeLoad", "ecmp_load"),
        "resilience": ("Survival", "hosts_connected", "survival"),
        "throughput": ("aggregate_bottleneck_throughput", "concurrent_flow"),
        "tiers": ("oversubscription",),
    },
)
