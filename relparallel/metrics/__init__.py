"""What a network is worth when everything works: distances and cuts."""

from relparallel.metrics.cuts import edge_connectivity
from relparallel.metrics.estimate import Estimate
from relparallel.metrics.hops import HopStatistics, hop_statistics

__all__ = ["Estimate", "HopStatistics", "edge_connectivity", "hop_statistics"]
