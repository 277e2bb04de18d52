from .cuts import edge_connectivity as edge_connectivity
from .distances import hop_statistics as hop_statistics
from .estimate import Estimate as Estimate
from .halves import bisection as bisection
from .link_load import ecmp_load as ecmp_load
from .resilience import survival as survival
from .throughput import concurrent_flow as concurrent_flow
