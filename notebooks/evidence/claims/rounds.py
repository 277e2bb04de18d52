"""Published rounds of messages: NCCL's tuner, servers, levels, circuits."""

import math
from operator import attrgetter
from typing import Final

import numpy as np

from chapters import s22, s32
from evidence.claims.registry import Rows
from relparallel import parallel, topology, units
from relparallel.published import Fact

_BUS = {
    "all_reduce": "ring",
    "reduce_scatter": "ring",
    "all_gather": "ring",
    "all_to_all": "direct",
    "broadcast": "chain",
}


def blueconnect(
    size: float,
    outer: int,
    outer_latency: float,
    outer_bandwidth: float,
    inner: int = 1,
    inner_latency: float = 0.0,
    inner_bandwidth: float = 1.0,
) -> float:
    """Inside a node first, then between nodes."""
    levels = [(inner, inner_latency, inner_bandwidth), (outer, outer_latency, outer_bandwidth)]
    return parallel.blueconnect_time(size, levels)


def nccl_tuner(
    algorithm: str,
    protocol: str,
    ranks: int,
    nodes: int,
    fact: Fact,
    channels: int = 1,
    channel_bandwidth: float = 1.0,
    architecture: str = "ampere",
) -> float:
    """Latency in microseconds, or bandwidth in GB/s, by the tuner's formulas on its constants."""
    found = s32.nccl_times(1e9, ranks, nodes, channels, channel_bandwidth, architecture)
    column, unit = ("latency", units.MICROSECOND) if fact.unit == "us" else ("bandwidth", units.GB)
    return float(found[column].to_dict()[algorithm, protocol] / unit)


def bus_factor(kinds: str, n: int) -> float:
    """Bytes that the busiest rank sends over the rounds, over those of the vector."""
    sent = {
        float(
            parallel.bytes_sent(parallel.collective(kind, _BUS[kind], n, 8 * n), n, 1).max()
            / (8 * n)
        )
        for kind in kinds.split()
    }
    return sent.pop() if len(sent) == 1 else math.nan


def alpa_clocks(meshes: int, batches: int) -> float:
    """Simulated with one-clock passes, by both schedules, and one clock to apply the gradients."""
    spans = {
        parallel.simulate_schedule(name, meshes, batches, forward=1.0, backward=1.0).makespan
        for name in ("gpipe", "1f1b")
    }
    return spans.pop() + 1 if len(spans) == 1 else math.nan


def circuits(demand: str, directed: bool) -> float:
    """Demand carried by one epoch of circuits: Helios by an assignment, c-Through by a matching."""
    matrix = np.array([row.split() for row in demand.split("/")], dtype=float)
    t = (
        topology.helios(len(matrix), 16, 0.5, 0.5)
        if directed
        else topology.c_through(1, len(matrix), 1)
    )
    return float(s22.schedule_circuits(t, matrix, 1.0, 0.0, directed=directed).carried.sum())


ROWS: Final[Rows] = {
    # Shares of a server and of a worker, and the time.
    "byteps_n*": lambda n, k: attrgetter("server_bytes", "worker_bytes", "time")(
        s32.byteps_time(n, k, 1.0, 1.0)
    ),
    "blueconnect_*": blueconnect,
    "nccl_*_lat nccl_*_bw | predicted* | NCCL": nccl_tuner,
    "ncclt_busbw_*": bus_factor,
    "alpa_sched_clock": alpa_clocks,
    "ocs_match_*": circuits,
}
