"""Aggregate bottleneck throughput of all hosts over shortest paths, with and without failures.

The unit is a host link: the slowest cable of a host. *Aggregate bottleneck throughput* (ABT) is the
number of flows times what the slowest gets, when every host sends to every other over all shortest
paths. Under failures a share of one sort of parts fails at random, the same number in every
scenario, drawn without replacement; parallel cables fail singly. Letters of the papers: ``N``
hosts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from scipy.stats import t as student

from relparallel._checks import require_int, require_probability
from relparallel.metrics._network import require_hosts
from relparallel.metrics.estimate import Estimate, exactly
from relparallel.metrics.link_load import Split, ecmp_load, load_of
from relparallel.topology import Topology
from relparallel.topology._arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import networkx as nx
_CONFIDENCE: Final = 0.95


def aggregate_bottleneck_throughput(
    topology: Topology | nx.Graph[Any], alive: BoolArray | None = None, *, split: Split = "paths"
) -> Estimate:
    """Aggregate bottleneck throughput of all-to-all traffic over all shortest paths, in host links.

    Joined pairs / largest load, N(N-1)/max load in an intact network; n(N-1)/(n-1) in BCube.
    ``alive`` says which nodes, then which rows of ``edges``, work, [n + m]; ``split``: evenly over
    all shortest "paths", or at every node over the cables of all next "hops", see `ecmp_load`.
    Counts the ordered pairs of living hosts that a path joins; the method says how many it does
    not. Of a graph every node is a host. Guo et al., "BCube: a high performance, server-centric
    network architecture for modular data centers", SIGCOMM 2009, section 4.2, theorem 4.

    >>> from relparallel.topology import bcube
    >>> float(aggregate_bottleneck_throughput(bcube(n=4, k=2)))
    84.0
    """
    found = ecmp_load(topology, alive, split=split)
    apart = f", {found.unreachable} pairs unreachable" if found.unreachable else ""
    return exactly(found.throughput, f"shortest paths, split evenly over {split}{apart}")


class DegradedThroughput(NamedTuple):
    """Scenarios of one share of failures."""

    throughput: FloatArray  #: [samples] of the pairs that a path joins [host links]
    unreachable: FloatArray  #: [samples] share of the pairs of living hosts that no path joins
    hosts: int  #: that live, the same in every scenario

    @property
    def estimate(self) -> Estimate:
        """Mean throughput with its 95 % confidence interval over the scenarios (Student)."""
        n, mean = self.throughput.size, float(self.throughput.mean())
        width = float(
            student.ppf((1 + _CONFIDENCE) / 2, n - 1) * self.throughput.std(ddof=1) / n**0.5
        )
        method, low = f"mean of {n} scenarios, 95 % confidence", max(0.0, mean - width)
        return Estimate(value=mean, lower=low, upper=mean + width, method=method, exact=False)


def throughput_under_failures(
    topology: Topology | nx.Graph[Any],
    samples: int,
    rng: np.random.Generator,
    *,
    links: float = 0.0,
    switches: float = 0.0,
    servers: float = 0.0,
    split: Split = "paths",
) -> DegradedThroughput:
    """Aggregate bottleneck throughput with shares of the parts failed, over random scenarios.

    Shares of the cables (``links``), of the nodes that are no hosts and of the hosts fail, rounded
    to whole parts; pairs with a failed host are not counted. Each scenario is exact: one search to
    every class of twin hosts. Guo et al., "BCube", SIGCOMM 2009, section 7; Wu et al., "MDCube",
    CoNEXT 2009, section 6.

    >>> from relparallel.topology import bcube
    >>> found = throughput_under_failures(bcube(n=4, k=1), 20, np.random.default_rng(1), links=0.1)
    >>> found.estimate.upper < 20.0  # of the intact network
    True
    """
    t = require_hosts(topology)
    require_int(samples=samples, at_least=2)
    require_probability(links=links, switches=switches, servers=servers)
    shares = links, switches, servers
    rows = [_scenario(t, rng, shares, split) for _ in range(samples)]
    throughput, unreachable = np.array(rows).T
    hosts = t.num_hosts - round(shares[2] * t.num_hosts)
    return DegradedThroughput(throughput, unreachable, hosts)


def _scenario(
    t: Topology, rng: np.random.Generator, shares: tuple[float, float, float], split: Split
) -> tuple[float, float]:
    """Throughput and share of unreachable pairs with random parts failed."""
    links, switches, servers = shares
    up = np.ones(t.num_nodes, dtype=bool)
    up[_drawn(rng, t.switches, switches)] = False
    up[_drawn(rng, t.hosts, servers)] = False
    owner = np.repeat(np.arange(len(t.edges)), t.multiplicity)
    lost = np.bincount(owner[_drawn(rng, np.arange(owner.size), links)], minlength=len(t.edges))
    cables = (t.multiplicity - lost) * up[t.edges].all(axis=1)
    found = load_of(t, (t.endpoint & up).astype(np.float64), cables, split)
    asked = found.pairs + found.unreachable
    return found.throughput, found.unreachable / asked if asked else 0.0


def _drawn(rng: np.random.Generator, parts: IntArray, share: float) -> IntArray:
    """That share of the parts, in whole parts."""
    return rng.choice(parts, size=round(share * parts.size), replace=False)
