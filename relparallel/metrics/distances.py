"""How far hosts are apart: the distribution of hops over all ordered pairs of different hosts.

*Hops* are links, or, as the papers of server-centric networks count, servers: there a switch and
its two cables make one hop, and a direct cable between two servers makes one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numba
import numpy as np

from relparallel._checks import Result, require_choice, require_flag, require_int, require_rng
from relparallel._notices import told
from relparallel.metrics._bfs import count_levels
from relparallel.topology import Topology, as_topology, orbits
from relparallel.topology._arrays import BoolArray, IntArray
from relparallel.topology.compiled import first_twins

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

Hops = Literal["links", "servers"]
Endpoints = Literal["hosts", "switches", "nodes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class HopStatistics(Result):
    """Distances over ordered pairs of different endpoints; a pair without a path counts apart."""

    histogram: Mapping[int, int]  #: ordered pairs at each distance
    unreachable: int  #: ordered pairs that no path joins; mean, std and diameter are of the others
    hops: Hops  #: what a hop is
    exact: bool  #: False where the sources are a sample; then ``diameter`` is a lower bound
    standard_error: float  #: of the mean; 0 where it is exact

    @property
    def pairs(self) -> int:
        """Ordered pairs that a path joins."""
        return sum(self.histogram.values())

    @property
    def mean(self) -> float:
        """Mean distance."""
        return float(self._moment(1))

    @property
    def std(self) -> float:
        """Standard deviation of the distance over pairs."""
        return math.sqrt(self._moment(2) - self._moment(1) ** 2)

    @property
    def diameter(self) -> int:
        """Largest distance."""
        return max(self.histogram)

    def _moment(self, power: int) -> Fraction:
        return Fraction(sum(d**power * count for d, count in self.histogram.items()), self.pairs)

    def to_frame(self) -> pd.DataFrame:
        """Ordered pairs at each distance, and their share of the pairs that a path joins."""
        import pandas as pd

        pairs = pd.Series(dict(self.histogram)).rename_axis("hops")
        return pd.DataFrame({"pairs": pairs, "share": pairs / self.pairs})

    def _said(self) -> str:
        error = "" if self.exact else f" ± {self.standard_error:.2g} (sampled)"
        apart = f", {self.unreachable} pairs unreachable" if self.unreachable else ""
        return f"mean {self.mean:.6g}{error} {self.hops}, diameter {self.diameter}{apart}"


@told
def hop_statistics(
    topology: Topology | nx.Graph[Any],
    hops: Hops = "links",
    *,
    endpoints: Endpoints = "hosts",
    sources: int | None = None,
    rng: np.random.Generator | None = None,
    symmetry: bool = False,
) -> HopStatistics:
    """Distances between all ordered pairs of different endpoints.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        Of a graph every node is a host. A node without ``transit`` is passed through by no path.
    hops : {"links", "servers"}, optional
        What a hop is. "servers" counts a switch with its two cables as one hop; no cable may then
        join two switches.
    endpoints : {"hosts", "switches", "nodes"}, optional
        Between which nodes.
    sources : int, optional
        Number of start nodes drawn without replacement, at least 2, for networks too large to
        measure from all; distances are then exact from those to all.
    rng : numpy.random.Generator, optional
        Required with ``sources``.
    symmetry : bool, optional
        Search from one endpoint of every orbit of the proved symmetries (`topology.orbits`);
        without any, as usual. The answer is the same.

    Returns
    -------
    HopStatistics
        Mean, standard deviation, diameter and histogram. Self pairs are not counted.

    Notes
    -----
    Bit-parallel breadth-first search, O(n m / 512) words. Endpoints with the same neighbours stand
    for each other (they are never neighbours of each other), which leaves 1,152 of the 27,648 hosts
    of a fat-tree of 48-port switches; this is exact. The standard error of a sample compares groups
    of sources (ratio estimate, finite population).

    References
    ----------
    Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2015.

    Examples
    --------
    >>> from relparallel.topology import fat_tree
    >>> found = hop_statistics(fat_tree(k=8))
    >>> round(found.mean, 6), found.diameter, found.histogram
    (5.716535, 6, {2: 384, 4: 1536, 6: 14336})
    """
    t = as_topology(topology, name="topology")
    require_choice(("links", "servers"), hops=hops)
    require_choice(("hosts", "switches", "nodes"), endpoints=endpoints)
    every = np.ones(t.num_nodes, dtype=bool)
    chosen = {"hosts": t.endpoint, "switches": ~t.endpoint, "nodes": every}[endpoints]
    total = int(np.count_nonzero(chosen))
    if total < 2:
        raise ValueError(f"topology must have at least two {endpoints}, got {total} in {t!r}")
    relays = _relays(t, hops, endpoints)
    if require_flag(symmetry=symmetry) and sources is not None:
        raise ValueError(f"symmetry must be False where sources are sampled, got {symmetry}")
    if symmetry:
        return _by_orbits(t, chosen, relays, hops)
    if sources is None:
        return _exact(t, chosen, relays, hops)
    require_int(sources=sources, at_least=2, at_most=total)
    starts = require_rng(rng=rng).choice(np.flatnonzero(chosen), size=sources, replace=False)
    return _sampled(t, chosen, relays, hops, starts)


def _relays(t: Topology, hops: Hops, endpoints: Endpoints) -> IntArray:
    """Nodes that add no hop of their own: none, or the switches of a server-centric network."""
    if hops == "links":
        return np.empty(0, dtype=np.int64)
    if endpoints != "hosts":
        raise ValueError(f"endpoints must be 'hosts' where hops are servers, got {endpoints!r}")
    if not t.endpoint[t.edges].any(axis=1).all():
        raise ValueError(
            f"hops must be 'links' where a cable joins two switches ({t!r}), got {hops!r}"
        )
    return t.switches


def _exact(t: Topology, chosen: BoolArray, relays: IntArray, hops: Hops) -> HopStatistics:
    """Search from one endpoint of every class of twins, which are not neighbours of each other."""
    first = first_twins(t.indptr, t.indices[:, None], t.transit, chosen)
    keep = first == np.arange(t.num_nodes)
    weight = np.bincount(first[chosen], minlength=t.num_nodes)
    starts = np.flatnonzero(weight[keep])
    inner = (np.cumsum(keep) - 1)[relays]
    arcs = (t.indptr, t.indices) if keep.all() else _subgraph(t.indptr, t.indices, keep)
    found = _histogram(arcs, t.transit[keep], inner, weight[keep], starts, weight[keep][starts])
    return _statistics(found + _pairs_of_twins(t, weight, relays), _ordered_pairs(chosen), hops)


def _pairs_of_twins(t: Topology, weight: IntArray, relays: IntArray) -> Counter[int]:
    """Ordered pairs inside the classes by distance: through a common neighbour that forwards."""
    is_relay = np.zeros(t.num_nodes, dtype=bool)
    is_relay[relays] = True
    near, far = _met(t.indptr, t.indices, t.transit, is_relay, weight)
    return Counter({1: int(near), 2: int(far)})


@numba.njit(cache=True)
def _met(indptr, indices, transit, is_relay, weight):  # type: ignore[no-untyped-def]
    """Ordered pairs of twins that a relay, or only another node that forwards, joins."""
    near = far = 0
    for v in np.flatnonzero(weight > 1):
        nearest = 3
        for arc in range(indptr[v], indptr[v + 1]):
            if transit[indices[arc]]:
                nearest = min(nearest, 1 if is_relay[indices[arc]] else 2)
        near += (nearest == 1) * weight[v] * (weight[v] - 1)
        far += (nearest == 2) * weight[v] * (weight[v] - 1)
    return near, far


@numba.njit(cache=True)
def _subgraph(indptr, indices, keep):  # type: ignore[no-untyped-def]
    """Neighbour lists of the kept nodes, renumbered."""
    position = np.cumsum(keep) - 1
    starts = np.zeros(position[-1] + 2, dtype=np.int64)
    heads, arcs = np.empty_like(indices), 0
    for v in np.flatnonzero(keep):
        for arc in range(indptr[v], indptr[v + 1]):
            if keep[indices[arc]]:
                heads[arcs] = position[indices[arc]]
                arcs += 1
        starts[position[v] + 1] = arcs
    return starts, heads[:arcs]


def _by_orbits(t: Topology, chosen: BoolArray, relays: IntArray, hops: Hops) -> HopStatistics:
    """Search from one endpoint of every orbit; if most stand alone, from every class of twins."""
    _, first, sizes = np.unique(orbits(t), return_index=True, return_counts=True)
    first, sizes = first[chosen[first]], sizes[chosen[first]]
    if 2 * first.size > int(chosen.sum()) and not t.transit[chosen].all():
        return _exact(t, chosen, relays, hops)
    weight = chosen.astype(np.int64)
    found = _histogram((t.indptr, t.indices), t.transit, relays, weight, first, sizes)
    return _statistics(found, _ordered_pairs(chosen), hops)


def _histogram(
    arcs: tuple[IntArray, IntArray],
    transit: BoolArray,
    relays: IntArray,
    weight: IntArray,
    starts: IntArray,
    sizes: IntArray,
) -> Counter[int]:
    """Ordered pairs at each distance, every start counted as many times as its size."""
    found: Counter[int] = Counter()
    for size in np.flatnonzero(np.bincount(sizes)).tolist():
        levels = count_levels(*arcs, transit, relays, weight, starts[sizes == size])
        found.update({d: size * count for d, count in enumerate(levels.sum(axis=1).tolist())})
    return found


def _ordered_pairs(chosen: BoolArray) -> int:
    total = int(np.count_nonzero(chosen))
    return total * (total - 1)


def _sampled(
    t: Topology, chosen: BoolArray, relays: IntArray, hops: Hops, starts: IntArray
) -> HopStatistics:
    """Search from the given starts to all endpoints."""
    counts = count_levels(t.indptr, t.indices, t.transit, relays, chosen.astype(np.int64), starts)
    histogram = dict(enumerate(counts.sum(axis=1).tolist()))
    total = int(chosen.sum())
    error = _standard_error(counts) * (1 - starts.size / total) ** 0.5
    return _statistics(
        histogram, starts.size * (total - 1), hops, exact=starts.size == total, error=error
    )


def _statistics(
    histogram: Mapping[int, int], pairs: int, hops: Hops, *, exact: bool = True, error: float = 0.0
) -> HopStatistics:
    found = {distance: count for distance, count in sorted(histogram.items()) if count}
    if not found:
        raise ValueError("topology must join at least two endpoints by a path, got none joined")
    apart = pairs - sum(found.values())
    return HopStatistics(
        histogram=found, unreachable=apart, hops=hops, exact=exact, standard_error=error
    )


def _standard_error(counts: IntArray) -> float:
    """Of the mean over groups of sources, one group per column: ratio estimate."""
    reached = counts.sum(axis=0).astype(np.float64)
    travelled = (np.arange(len(counts)) @ counts).astype(np.float64)
    used = reached > 0
    groups = int(np.count_nonzero(used))
    if groups < 2:
        return 0.0
    mean = travelled.sum() / reached.sum()
    spread = np.sum((travelled - mean * reached)[used] ** 2) * groups / (groups - 1)
    return float(np.sqrt(spread) / reached.sum())
