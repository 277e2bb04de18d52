"""NCCL's own prediction of an all-reduce: a table of latencies and bandwidths that picks what it runs.

The constants are those of release 2.30.7, rows ``nccl_*`` of the published facts. The tuner is a selector and
no measurement: with the numbers of issue 1154 it is 15 % below what NCCL then did. CPUs are Intel's; NVLS,
CollNet, and what channels of a tree cannot carry by LL128 are left out.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from relparallel._checks import require_choice, require_int
from relparallel.parallel._arguments import require_number
from relparallel.published import facts
from relparallel.units import GB, MICROSECOND

if TYPE_CHECKING:
    import pandas as pd

ALGORITHMS: Final = ("ring", "tree")
PROTOCOLS: Final = ("ll", "ll128", "simple")
ARCHITECTURES: Final = ("volta", "ampere", "hopper", "blackwell")
_OVERHEAD: Final = 1.0  # us that an Intel CPU takes to post a message, three times for the protocol "simple"
_TREE_SHARE: Final = {  # of a tree's bandwidth, for 64, 128, ... bytes; 1 beyond
    "ll": "1 1 1 1 .9 .8 .7 .7 .7 .7 .6 .5 .4 .4 .5 .6 .7 .8 .9 1 1 1 1",
    "ll128": "1 1 1 1 1 .9 .8 .8 .8 .7 .6 .6 .6 .6 .6 .6 .8 .9 .9 .9 .9 1 1",
    "simple": ".9 .9 .9 .9 .9 .9 .9 .8 .7 .6 .6 .5 .5 .5 .5 .6 .7 .8 .7 .7 .8 .9 .9",
}


def nccl_latency(algorithm: str, protocol: str, ranks: int, nodes: int = 1, link: str = "nvlink") -> float:
    """Latency of an all-reduce as NCCL's tuner has it.

    Parameters
    ----------
    algorithm, protocol : {"ring", "tree"}, {"ll", "ll128", "simple"}
        What is run; "ll" sends a flag with every 4 bytes, "ll128" with every 120.
    ranks, nodes : int
        n, and N nodes with equally many each.
    link : {"nvlink", "pci"}
        Between the GPUs of a node.

    Returns
    -------
    float
        Seconds. Ring: base + 2 (n - N) max(inside, overhead) + 2 (N - 1) net, without overhead on one node;
        tree: base + 2 ((n/N - 1) inside + floor(log2 N) net).

    References
    ----------
    NVIDIA, NCCL 2.30.7, ``src/graph/tuning.cc`` (rows ``nccl_baselat_*``, ``nccl_hwlat_*``).

    Examples
    --------
    >>> round(1e6 * nccl_latency("ring", "simple", ranks=16, nodes=2), 3)
    131.6
    """
    n, many = _shape(algorithm, protocol, ranks, nodes)
    require_choice(("nvlink", "pci"), link=link)
    inside, net = (_latency(f"hwlat_{where}_{algorithm}", protocol) for where in (link, "net"))
    if algorithm == "tree":
        hops = 2 * ((n // many - 1) * inside + (many.bit_length() - 1) * net)
    else:
        if many > 1:
            inside = max(inside, _OVERHEAD * (3 if protocol == "simple" else 1))
        if many == n > 1:  # one GPU a node sends and receives by the same card
            net = _latency("hwlat_net_tree", protocol)
        hops = 2 * (n - many) * inside + 2 * (many - 1) * net
    return (_latency(f"baselat_{algorithm}", protocol) + hops) * MICROSECOND


def nccl_bandwidth(
    algorithm: str, protocol: str, ranks: int, nodes: int, channels: int, channel_bandwidth: float,
    architecture: str,
) -> float:  # fmt: skip
    """Bytes reduced per second as NCCL's tuner has them.

    Parameters
    ----------
    algorithm, protocol, ranks, nodes : str, str, int, int
        As `nccl_latency` takes them.
    channels : int
        Rings or trees in parallel.
    channel_bandwidth : float
        Of each [bytes/s]: inside a node for up to two nodes, else between them.
    architecture : {"volta", "ampere", "hopper", "blackwell"}
        Of the GPUs.

    Returns
    -------
    float
        Bytes/s of the vector. Ring: n/(2 (n - 1)) of the bus, for LL of min(limit, bus/2), for LL128 of
        min(0.92 bus, channels limit); tree: half of min(0.92 bus, channels limit), for LL the 3.8th part of
        it, for LL128 7/9 of it on one node and 120/128 on several.

    References
    ----------
    NVIDIA, NCCL 2.30.7, ``src/graph/tuning.cc`` (rows ``nccl_llmaxbw``, ``nccl_ring_ll128_perch``,
    ``nccl_tree_perch``).

    Examples
    --------
    >>> nccl_bandwidth("tree", "simple", 8, 1, channels=12, channel_bandwidth=20e9, architecture="ampere")
    110400000000.0
    """
    n, many = _shape(algorithm, protocol, ranks, nodes)
    kind = ARCHITECTURES.index(require_choice(ARCHITECTURES, architecture=architecture))
    require_int(channels=channels, at_least=1)
    bus = channels * require_number(channel_bandwidth=channel_bandwidth, above=0) / GB
    column = min(many, 3) - 1  # 1, 2, more
    if algorithm == "tree":
        most = channels * _table("tree_perch").reshape(4, 3)[kind, column]
        share = {"ll": 1 / 3.8, "ll128": 7 / 9 if many == 1 else 120 / 128, "simple": 1.0}[protocol]
        return float(min(0.92 * bus, most) * share / 2 * GB)
    if protocol == "ll":
        bus = min(_table("llmaxbw").reshape(4, 3)[kind if many == 1 else 0, column], bus / 2)
    elif protocol == "ll128":
        bus = min(0.92 * bus, channels * _table("ring_ll128_perch")[kind])
    return float(bus * n / (2 * (n - 1)) * GB)


def nccl_times(
    size: float, ranks: int, nodes: int, channels: int, channel_bandwidth: float, architecture: str,
    link: str = "nvlink",
) -> pd.Series:  # fmt: skip
    """Times of an all-reduce as NCCL's tuner has them, the one that it would run first.

    Parameters
    ----------
    size : float
        Bytes of the vector, at least 1.
    ranks, nodes, channels, channel_bandwidth, architecture, link
        As `nccl_latency` and `nccl_bandwidth` take them; at least two ranks.

    Returns
    -------
    pandas.Series
        Seconds by algorithm and protocol, ascending: latency + size/bandwidth, the bandwidth of a tree times
        a measured share by size, the latency of "ring", "simple" between nodes times 1.9 before Ampere and
        1.4 since, from 64 bytes for each channel and rank on.

    References
    ----------
    NVIDIA, NCCL 2.30.7, ``src/graph/tuning.cc`` (row ``nccl_plateau``).

    Examples
    --------
    >>> nccl_times(1e9, 8, 1, channels=12, channel_bandwidth=20e9, architecture="ampere").index[0]
    ('ring', 'simple')
    """
    import pandas as pd

    require_number(size=size, at_least=1)
    seconds = {}
    for algorithm in ALGORITHMS:
        for protocol in PROTOCOLS:
            delay = nccl_latency(algorithm, protocol, ranks, nodes, link)
            rate = nccl_bandwidth(
                algorithm, protocol, ranks, nodes, channels, channel_bandwidth, architecture
            )
            if algorithm == "tree":
                shares = _TREE_SHARE[protocol].split()
                step = max(int(size) >> 6, 1).bit_length() - 1
                rate *= float(shares[step]) if step < len(shares) else 1.0
            elif protocol == "simple" and nodes > 1 and size / (channels * ranks) >= 64:
                delay *= 1.9 if architecture == "volta" else 1.4
            seconds[algorithm, protocol] = delay + size / rate
    return pd.Series(seconds, name="seconds").sort_values()


def _shape(algorithm: str, protocol: str, ranks: int, nodes: int) -> tuple[int, int]:
    """Check what is run where; return ranks and nodes."""
    require_choice(ALGORITHMS, algorithm=algorithm)
    require_choice(PROTOCOLS, protocol=protocol)
    n, many = require_int(ranks=ranks, at_least=2), require_int(nodes=nodes, at_least=1)
    if n % many:
        raise ValueError(f"nodes must divide ranks = {ranks}, got {nodes}")
    return n, many


def _latency(name: str, protocol: str) -> float:
    return float(_table(name)[PROTOCOLS.index(protocol)])


@cache
def _table(name: str) -> Any:
    """Numbers of a row of the published facts."""
    return np.array(facts("comm-systems")[f"nccl_{name}"].values, dtype=np.float64)
