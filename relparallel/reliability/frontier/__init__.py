"""The frontier DP: reductions, an order, and a sweep whose states partition the frontier."""
