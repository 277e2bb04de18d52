"""Resilience curves: what stays joined while more and more parts of one sort fail.

At random or targeted, single parts or all that shares a rack or a power domain. Shares are of the hosts, or
pairs of hosts, of the intact network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from relparallel._checks import (
    Result,
    require_choice,
    require_flag,
    require_int,
    require_probability,
    require_rng,
)
from relparallel.metrics._network import require_hosts
from relparallel.metrics.link_load import load_of
from relparallel.metrics.resilience import survival
from relparallel.topology import Topology, racks
from relparallel.topology._arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.axes import Axes
    from scipy.sparse import csr_array

Failing = Literal[
    "links", "nodes", "switches", "hosts", "degree", "tier", "link_load", "switch_load", "racks", "pods",
    "shared_risk",
]  # fmt: skip

_FAILING: Final = get_args(Failing)
_BUSY: Final = ("link_load", "switch_load")
_LINKS: Final = ("links", "link_load")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ResilienceCurve(Result):
    """Survival against the share of the parts that fail, in every sample."""

    failing: str  #: what fails, as given to `resilience_curve`
    parts: int  #: how many of them there are
    failed: IntArray  #: [points] how many of them fail
    pairs: FloatArray  #: [samples, points] of `Survival`
    accessible: FloatArray  #: [samples, points] of `Survival`

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the means with their standard errors."""
        from relparallel.plotting import figure

        ax, table = figure(width="single")[1] if ax is None else ax, self.to_frame()
        for name in ("pairs", "accessible"):
            ax.errorbar(table.index, table[name], yerr=table[f"{name} error"], label=name)
        ax.set(xlabel=table.index.name, ylabel="share that is left")
        ax.legend()
        return ax

    def to_frame(self) -> pd.DataFrame:
        """Mean over the samples and its standard error, by the share that fails."""
        import pandas as pd

        columns: dict[str, Any] = {"failed": self.failed}
        for name, shares in {"pairs": self.pairs, "accessible": self.accessible}.items():
            columns[name] = shares.mean(axis=0)
            columns[f"{name} error"] = shares.std(axis=0, ddof=1) / len(shares) ** 0.5
        share = pd.Index(self.failed / self.parts, name=f"share of {self.failing}")
        return pd.DataFrame(columns, index=share)


def resilience_curve(
    topology: Topology | nx.Graph[Any],
    failing: Failing,
    shares: Sequence[float],
    *,
    samples: int,
    rng: np.random.Generator,
    recalculated: bool = False,
) -> ResilienceCurve:
    """Survival while more and more parts fail.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        With at least two hosts.
    failing : str
        What fails. At random: single cables (``"links"``), nodes of a sort (``"nodes"``, ``"switches"``,
        ``"hosts"``), ``"racks"`` as `relparallel.topology.racks` finds them, ``"pods"``, or the groups of
        ``"shared_risk"`` such as power domains. Targeted: switches (nodes, where there is none) of the most
        cables first (``"degree"``), of the highest tier (``"tier"``) or of the most traffic
        (``"switch_load"``), and the busiest cables first (``"link_load"``).
    shares : sequence of float
        Shares of the parts that fail.
    samples : int
        Random orders of the parts, at least 2; in each, the parts that fail at a smaller share fail at a
        larger one. Targeted failures are random among equals.
    rng : numpy.random.Generator
        Source of the random numbers.
    recalculated : bool, optional
        Whether the load is computed again after every failure; only where parts fail by load. By default the
        order is that of the intact network.

    Returns
    -------
    ResilienceCurve
        Every sample; ``to_frame()`` has the means.

    Notes
    -----
    Load is that of `ecmp_load`: betweenness, with one unit for every ordered pair of hosts over all shortest
    paths, per capacity for a cable, in and out for a node. Each sample and share takes O(n + m); recalculated
    loads take one `ecmp_load` for every part that fails in a sample.

    References
    ----------
    Holme, Kim, Yoon, Han, "Attack vulnerability of complex networks", Phys. Rev. E 65, 2002: attacks by
    initial and by recalculated degree and betweenness.

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
    if require_flag(recalculated=recalculated) and failing not in _BUSY:
        raise ValueError(
            f"recalculated must be False where parts do not fail by load, got True for {failing}"
        )
    members, rank = _parts(t, failing)
    size, generator = rank.size, require_rng(rng=rng)
    failed = np.rint(given * size).astype(np.int64)
    needed = np.concatenate(
        [np.ones(t.num_nodes), t.multiplicity if failing in _LINKS else np.ones(len(t.edges))]
    )
    found = np.empty((2, samples, failed.size))
    for sample in range(samples):
        tie = generator.random(size)
        if recalculated:
            links = failing == "link_load"
            owner = members.tocsc().indices.astype(np.int64) - (t.num_nodes if links else 0)
            place = np.argsort(_busiest_first(t, owner, links, int(failed.max()), tie))
        else:
            place = np.argsort(np.lexsort((tie, rank)))
        for point, count in enumerate(failed):
            left = survival(t, np.asarray(members @ (place < count) < needed))
            found[:, sample, point] = left.pairs, left.accessible
    return ResilienceCurve(failing=failing, parts=size, failed=failed, pairs=found[0], accessible=found[1])


def _parts(t: Topology, failing: Failing) -> tuple[csr_array[Any, Any], FloatArray]:
    """What each part takes along, as columns of a matrix [n + m, parts], and which parts fail first."""
    from scipy.sparse import csr_array

    rule: Callable[[Topology], list[IntArray]] = {
        "links": _cables, "link_load": _cables, "shared_risk": _groups,
        "racks": lambda t: _alike(racks(t)), "pods": lambda t: _alike(t.pod),
    }.get(failing, partial(_nodes, failing=failing))  # fmt: skip
    groups = rule(t)
    if not groups:
        raise ValueError(f"failing must name parts that the network has, got {failing!r} for {t!r}")
    rows, sizes = np.concatenate(groups), [group.size for group in groups]
    columns = np.repeat(np.arange(len(groups)), sizes)
    shape = (t.num_nodes + len(t.edges), len(groups))
    members = csr_array((np.ones(rows.size), (rows, columns)), shape=shape)
    return members, _first(t, failing, rows) if rows.size == len(groups) else np.zeros(len(groups))


def _first(t: Topology, failing: Failing, rows: IntArray) -> FloatArray:
    """What ranks single parts, the smallest first: random parts are all equal."""
    if failing == "link_load":
        return -_load_of_links(t, t.multiplicity)[rows - t.num_nodes]
    if failing == "switch_load":
        return -_load_of_nodes(t, np.ones(t.num_nodes, dtype=bool))[rows]
    rank = {"degree": -t.degrees, "tier": -t.tier}.get(failing)
    return np.zeros(rows.size) if rank is None else rank[rows].astype(np.float64)


def _cables(t: Topology) -> list[IntArray]:
    return list((t.num_nodes + np.repeat(np.arange(len(t.edges)), t.multiplicity))[:, None])


def _nodes(t: Topology, failing: Failing) -> list[IntArray]:
    """Single nodes: of a sort, or those that an attack chooses from."""
    sort = {"nodes": np.arange(t.num_nodes), "hosts": t.hosts, "switches": t.switches}
    return list(sort.get(failing, t.switches if t.num_switches else t.hosts)[:, None])


def _alike(group: IntArray) -> list[IntArray]:
    """Nodes of every group from 0."""
    order = np.argsort(group, kind="stable")
    order = order[group[order] >= 0]
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if order.size else []


def _groups(t: Topology) -> list[IntArray]:
    edges = [np.array(group.edges, dtype=np.int64) + t.num_nodes for group in t.shared_risk]
    nodes = [np.array(group.nodes, dtype=np.int64) for group in t.shared_risk]
    return [np.concatenate(both) for both in zip(nodes, edges, strict=True)]


def _load_of_links(t: Topology, cables: IntArray) -> FloatArray:
    """Load of a cable of every pair in its busier direction, over the largest; all hosts live."""
    whole = bool((cables == t.multiplicity).all())
    found = load_of(t, t.endpoint.astype(np.float64), cables, "paths", symmetric=whole)
    return _relative(found.load.max(axis=1))


def _load_of_nodes(t: Topology, alive: BoolArray) -> FloatArray:
    """Traffic that enters or leaves every node, over the largest, when these nodes live."""
    weight = (t.endpoint & alive).astype(np.float64)
    cables = t.multiplicity * alive[t.edges].all(axis=1)
    found = load_of(t, weight, cables, "paths", symmetric=bool(alive.all()))
    both = np.repeat(found.flow.sum(axis=1), 2)
    traffic = np.bincount(t.edges.ravel(), weights=both, minlength=t.num_nodes)
    return _relative(traffic.astype(np.float64))


def _busiest_first(t: Topology, owner: IntArray, links: bool, steps: int, tie: FloatArray) -> IntArray:
    """Order of the parts, pairs of cables or nodes by ``owner``, the busiest one left first."""
    left, cables = np.ones(owner.size, dtype=bool), t.multiplicity.copy()
    alive, order = np.ones(t.num_nodes, dtype=bool), []
    for _ in range(steps):
        load = (_load_of_links(t, cables) if links else _load_of_nodes(t, alive))[owner]
        part = int(np.lexsort((tie, -load, ~left))[0])
        left[part] = False
        order.append(part)
        if links:
            cables[owner[part]] -= 1
        else:
            alive[owner[part]] = False
    rest = np.flatnonzero(left)
    return np.concatenate([np.array(order, dtype=np.int64), rest[np.argsort(tie[rest])]])


def _relative(load: FloatArray) -> FloatArray:
    """Nine digits, so that equal loads are equal however they were summed."""
    return np.asarray(np.round(load / max(load.max(initial=0.0), 1e-300), 9))
