"""Theorems about collectives: their least bytes and rounds, what nodes change, and what overlap is worth."""

from relparallel import parallel
from relparallel.book import s32
from relparallel.claims.registry import reproduces


@reproduces("byteps_n*")
def byteps(n: int, k: int) -> tuple[float, float, float]:
    """Shares of a server and of a worker, and the time."""
    found = s32.byteps_time(n, k, 1.0, 1.0)
    return found.server_bytes, found.worker_bytes, found.time


@reproduces("blueconnect_*")
def blueconnect(
    size: float, outer: int, outer_latency: float, outer_bandwidth: float, inner: int = 1,
    inner_latency: float = 0.0, inner_bandwidth: float = 1.0,
) -> float:  # fmt: skip
    """Inside a node first, then between nodes."""
    levels = [(inner, inner_latency, inner_bandwidth), (outer, outer_latency, outer_bandwidth)]
    return parallel.blueconnect_time(size, levels)
