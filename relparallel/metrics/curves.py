"""Resilience curves: what stays joined while more and more parts of one sort fail.

At random or targeted, single parts or all that shares a rack or a power domain. Shares are of the hosts, or
pairs of hosts, of the intact network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import networkx as nx
import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from relparallel._checks import (
    require_choice,
    require_instance,
    require_int,
    require_probability,
    require_rng,
)
from relparallel.metrics._network import require_hosts
from relparallel.metrics.resilience import survival
from relparallel.topology import Topology
from relparallel.topology._arrays import FloatArray, IntArray

__all__ = ["ResilienceCurve", "resilience_curve"]

Failing = Literal["links", "nodes", "switches", "hosts", "degree", "tier", "racks", "shared_risk"]

_FAILING: Final = ("links", "nodes", "switches", "hosts", "degree", "tier", "racks", "shared_risk")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ResilienceCurve:
    """Survival against the share of the parts that fail, the mean over samples.

    Parameters
    ----------
    failing : str
        What fails, as given to `resilience_curve`.
    parts : int
        How many of them there are.
    failed : int array [points]
        How many of them fail.
    pairs, accessible : float array [samples, points]
        `Survival` of every sample.

    Examples
    --------
    >>> from relparallel.topology import fat_tree
    >>> curve = resilience_curve(fat_tree(4), "tier", [0.0, 0.2], samples=2, rng=np.random.default_rng(0))
    >>> curve.to_frame()["pairs"].tolist()  # the fifth of the switches that is the core: pods fall apart
    [1.0, 0.2]
    """

    failing: str
    parts: int
    failed: IntArray
    pairs: FloatArray
    accessible: FloatArray

    def __post_init__(self) -> None:
        require_choice(_FAILING, failing=self.failing)
        require_int(parts=self.parts, at_least=1)
        for count in require_instance(np.ndarray, failed=self.failed).ravel():
            require_int(failed=count, at_least=0, at_most=self.parts)
        for name in ("pairs", "accessible"):
            shares = np.asarray(require_probability(**{name: getattr(self, name)}))
            if shares.ndim != 2 or shares.shape[1] != self.failed.size:
                raise ValueError(f"{name} must be of shape [samples, {self.failed.size}], got {shares.shape}")

    def to_frame(self) -> pd.DataFrame:
        """Mean over the samples and its standard error.

        Returns
        -------
        pandas.DataFrame
            Indexed by the share that fails; columns failed, pairs, pairs error, accessible, accessible error.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> curve = resilience_curve(nx.cycle_graph(6), "links", [0.0, 1.0], samples=4, rng=rng)
        >>> curve.to_frame()["accessible"].round(3).tolist()
        [1.0, 0.167]
        """
        columns: dict[str, Any] = {"failed": self.failed}
        for name, shares in {"pairs": self.pairs, "accessible": self.accessible}.items():
            columns[name] = shares.mean(axis=0)
            columns[f"{name} error"] = shares.std(axis=0, ddof=1) / len(shares) ** 0.5
        share = pd.Index(self.failed / self.parts, name=f"share of {self.failing}")
        return pd.DataFrame(columns, index=share)

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(float_format="{:.4f}".format)


def resilience_curve(
    topology: Topology | nx.Graph[Any],
    failing: Failing,
    shares: Sequence[float],
    *,
    samples: int,
    rng: np.random.Generator,
) -> ResilienceCurve:
    """Survival while more and more parts fail.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        With at least two hosts.
    failing : {"links", "nodes", "switches", "hosts", "degree", "tier", "racks", "shared_risk"}
        What fails. At random: single cables, nodes of a sort, racks (a switch with the hosts whose first
        switch it is; pods where there is no switch) or the groups of ``shared_risk`` such as power domains.
        Targeted: switches (nodes, where there is none) of the most cables first, or of the highest tier.
    shares : sequence of float
        Shares of the parts that fail.
    samples : int
        Random orders of the parts, at least 2; in each, the parts that fail at a smaller share fail at a
        larger one. Targeted failures are random among equals.
    rng : numpy.random.Generator
        Source of the random numbers.

    Returns
    -------
    ResilienceCurve
        Every sample; ``to_frame()`` has the means.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as stated, or the network has no part of that kind.

    Examples
    --------
    >>> from relparallel.topology import bcube
    >>> rng = np.random.default_rng(0)
    >>> curve = resilience_curve(bcube(n=4, k=1), "switches", [0.0, 0.5, 1.0], samples=8, rng=rng)
    >>> curve.to_frame()["accessible"].iloc[[0, 2]].tolist()
    [1.0, 0.0625]
    """
    t = require_hosts(topology)
    require_choice(_FAILING, failing=failing)
    require_int(samples=samples, at_least=2)
    given = np.atleast_1d(require_probability(shares=shares)).ravel()
    members, rank = _parts(t, failing)
    size, generator = rank.size, require_rng(rng=rng)
    failed = np.rint(given * size).astype(np.int64)
    needed = np.concatenate(
        [np.ones(t.num_nodes), t.multiplicity if failing == "links" else np.ones(len(t.edges))]
    )
    found = np.empty((2, samples, failed.size))
    for sample in range(samples):
        place = np.argsort(np.lexsort((generator.random(size), rank)))
        for point, count in enumerate(failed):
            left = survival(t, np.asarray(members @ (place < count) < needed))
            found[:, sample, point] = left.pairs, left.accessible
    return ResilienceCurve(failing=failing, parts=size, failed=failed, pairs=found[0], accessible=found[1])


def _parts(t: Topology, failing: Failing) -> tuple[csr_array[Any, Any], FloatArray]:
    """What each part takes along, as columns of a matrix [n + m, parts], and which parts fail first."""
    rule: Callable[[Topology], list[IntArray]] = {
        "links": _cables, "racks": _racks, "shared_risk": _groups,
    }.get(failing, partial(_nodes, failing=failing))  # fmt: skip
    groups = rule(t)
    if not groups:
        raise ValueError(f"failing must name parts that the network has, got {failing!r} for {t!r}")
    rows, sizes = np.concatenate(groups), [group.size for group in groups]
    columns = np.repeat(np.arange(len(groups)), sizes)
    shape = (t.num_nodes + len(t.edges), len(groups))
    members = csr_array((np.ones(rows.size), (rows, columns)), shape=shape)
    first = {"degree": -t.degrees, "tier": -t.tier}.get(failing)
    rank = np.zeros(len(groups)) if first is None else first[rows].astype(np.float64)
    return members, rank


def _cables(t: Topology) -> list[IntArray]:
    return list((t.num_nodes + np.repeat(np.arange(len(t.edges)), t.multiplicity))[:, None])


def _nodes(t: Topology, failing: Failing) -> list[IntArray]:
    """Single nodes: of a sort, or those that an attack chooses from."""
    sort = {"nodes": np.arange(t.num_nodes), "hosts": t.hosts, "switches": t.switches}
    return list(sort.get(failing, t.switches if t.num_switches else t.hosts)[:, None])


def _racks(t: Topology) -> list[IntArray]:
    """Every switch that is the first neighbour of some hosts, with these hosts; pods without switches."""
    tail = np.repeat(np.arange(t.num_nodes), np.diff(t.indptr))
    cable = t.endpoint[tail] & ~t.endpoint[t.indices]
    host, first = np.unique(tail[cable], return_index=True)
    switch = t.indices[cable][first]
    if not host.size:
        return [np.flatnonzero(t.pod == pod) for pod in np.unique(t.pod[t.pod >= 0])]
    return [np.append(host[switch == s], s) for s in np.unique(switch)]


def _groups(t: Topology) -> list[IntArray]:
    edges = [np.array(group.edges, dtype=np.int64) + t.num_nodes for group in t.shared_risk]
    nodes = [np.array(group.nodes, dtype=np.int64) for group in t.shared_risk]
    return [np.concatenate(both) for both in zip(nodes, edges, strict=True)]
