"""The frontier DP: reductions, an order, and a sweep whose states are partitions of the frontier."""
