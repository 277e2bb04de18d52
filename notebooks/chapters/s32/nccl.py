"""NCCL's own prediction of an all-reduce: a table of latencies and bandwidths that picks what runs.

The constants are those of release 2.30.7, rows ``nccl_*`` of the published facts. The tuner is a
selector and no measurement: on one cluster its users reported on, it is 15 % below what NCCL then
did. CPUs are Intel's; NVLS, CollNet, and what channels of a tree cannot carry by LL128 are left
out.
"""

from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel.published import facts
from relparallel.units import GB, MICROSECOND

PROTOCOLS: Final = ("ll", "ll128", "simple")
ARCHITECTURES: Final = ("volta", "ampere", "hopper", "blackwell")
# us that an Intel CPU takes to post a message, three times for the protocol "simple"
_OVERHEAD: Final = 1.0
_TREE_SHARE: Final = {  # of a tree's bandwidth, for 64, 128, ... bytes; 1 beyond
    "ll": "1 1 1 1 .9 .8 .7 .7 .7 .7 .6 .5 .4 .4 .5 .6 .7 .8 .9 1 1 1 1",
    "ll128": "1 1 1 1 1 .9 .8 .8 .8 .7 .6 .6 .6 .6 .6 .6 .8 .9 .9 .9 .9 1 1",
    "simple": ".9 .9 .9 .9 .9 .9 .9 .8 .7 .6 .6 .5 .5 .5 .5 .6 .7 .8 .7 .7 .8 .9 .9",
}


def nccl_times(
    size: float,
    ranks: int,
    nodes: int,
    channels: int,
    channel_bandwidth: float,
    architecture: str,
) -> pd.DataFrame:
    """Latency, bandwidth and time of all-reduces as NCCL's tuner has them, what it would run first.

    ``size`` bytes, n ``ranks`` on N ``nodes`` with equally many each, ``channels`` rings or trees
    in parallel, each of ``channel_bandwidth`` [bytes/s] inside a node for up to two nodes, else
    between them; GPUs of a node are joined by NVLink. Columns ``latency`` [s], ``bandwidth``
    [bytes/s of the vector] and ``time`` [s], latency and size/bandwidth; rows by algorithm and
    protocol ("ll" sends a flag with every 4 bytes, "ll128" with every 120), ascending in time.

    Latency of a ring: base + 2 (n - N) max(inside, overhead) + 2 (N - 1) net, without overhead on
    one node; of a tree: base + 2 ((n/N - 1) inside + floor(log2 N) net). Bandwidth of a ring: n/(2
    (n - 1)) of the bus, for LL of min(limit, bus/2), for LL128 of min(0.92 bus, channels limit); of
    a tree: half of min(0.92 bus, channels limit), for LL the 3.8th part, for LL128 7/9 on one node
    and 120/128 on several. In ``time`` a tree has a measured share of it by size; "ring", "simple"
    between nodes has 1.9 times the latency before Ampere and 1.4 since, from 64 bytes for each
    channel and rank on. NVIDIA, NCCL 2.30.7, ``src/graph/tuning.cc``; the shares of trees from
    release 2.20.

    >>> found = nccl_times(1e9, 16, 2, channels=12, channel_bandwidth=20e9, architecture="ampere")
    >>> found.index[0], round(float(1e6 * found.loc[("ring", "simple"), "latency"]), 3)
    (('ring', 'simple'), 131.6)
    """
    n, many, kind = ranks, nodes, ARCHITECTURES.index(architecture)
    if n % many:
        raise ValueError(f"nodes must divide ranks = {ranks}, got {nodes}")
    bus = channels * channel_bandwidth / GB
    rows = {}
    for protocol in PROTOCOLS:
        ring, tree = (
            (_latency(a, protocol, n, many), _bandwidth(a, protocol, n, many, channels, bus, kind))
            for a in ("ring", "tree")
        )
        plateau = protocol == "simple" and many > 1 and size / (channels * n) >= 64
        rows["ring", protocol] = (*ring, (1.4 if kind else 1.9) if plateau else 1.0, 1.0)
        shares, step = _TREE_SHARE[protocol].split(), max(int(size) >> 6, 1).bit_length() - 1
        rows["tree", protocol] = (*tree, 1.0, float(shares[step]) if step < len(shares) else 1.0)
    found = pd.DataFrame(rows, index=["latency", "bandwidth", "plateau", "share"]).T
    found["time"] = found["latency"] * found["plateau"] + size / (
        found["bandwidth"] * found["share"]
    )
    return found[["latency", "bandwidth", "time"]].sort_values("time")


def _latency(algorithm: str, protocol: str, n: int, nodes: int) -> float:
    """Seconds of base, hops inside nodes and hops between them."""
    names = f"baselat_{algorithm}", f"hwlat_nvlink_{algorithm}", f"hwlat_net_{algorithm}"
    base, inside, net = (float(_table(name)[PROTOCOLS.index(protocol)]) for name in names)
    if algorithm == "tree":
        return (
            base + 2 * ((n // nodes - 1) * inside + (nodes.bit_length() - 1) * net)
        ) * MICROSECOND
    if nodes > 1:
        inside = max(inside, _OVERHEAD * (3 if protocol == "simple" else 1))
    if nodes == n:  # one GPU a node sends and receives by the same card
        net = float(_table("hwlat_net_tree")[PROTOCOLS.index(protocol)])
    return (base + 2 * (n - nodes) * inside + 2 * (nodes - 1) * net) * MICROSECOND


def _bandwidth(
    algorithm: str, protocol: str, n: int, nodes: int, channels: int, bus: float, kind: int
) -> float:
    """Bytes/s of the vector; ``bus`` in GB/s."""
    size = min(nodes, 3) - 1
    limit = (
        _table("llmaxbw").reshape(4, 3)[kind if nodes == 1 else 0, size]
        if protocol == "ll"
        else np.inf
    )
    if algorithm == "tree":
        share = {"ll": 1 / 3.8, "ll128": 7 / 9 if nodes == 1 else 120 / 128, "simple": 1.0}[
            protocol
        ]
        bus = min(0.92 * bus, channels * _table("tree_perch").reshape(4, 3)[kind, size])
        return float(min(bus * share, limit) / 2 * GB)
    if protocol == "ll128":
        bus = min(0.92 * bus, channels * _table("ring_ll128_perch")[kind])
    return float(min(bus / 2 if protocol == "ll" else bus, limit) * n / (2 * (n - 1)) * GB)


def _table(name: str) -> Any:
    """Numbers of a row of the published facts."""
    return np.array(facts("comm-systems")[f"nccl_{name}"].values, dtype=np.float64)
