from .curves import ResilienceCurve as ResilienceCurve, resilience_curve as resilience_curve
from .cuts import (
    disjoint_path_set as disjoint_path_set,
    edge_connectivity as edge_connectivity,
    vertex_connectivity as vertex_connectivity,
)
from .degraded import (
    DegradedThroughput as DegradedThroughput,
    throughput_under_failures as throughput_under_failures,
)
from .estimate import Estimate as Estimate, binomial_estimate as binomial_estimate
from .halves import bisection as bisection
from .hops import HopStatistics as HopStatistics, hop_statistics as hop_statistics
from .load import EdgeLoad as EdgeLoad, ecmp_load as ecmp_load
from .resilience import Survival as Survival, hosts_connected as hosts_connected, survival as survival
from .throughput import (
    aggregate_bottleneck_throughput as aggregate_bottleneck_throughput,
    concurrent_flow as concurrent_flow,
)
