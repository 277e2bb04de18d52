"""What is left of a network while its parts are removed, at random or the busiest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from chapters.s23.racks import racks
from relparallel._checks import Result, require_choice, require_int, require_probability
from relparallel.metrics._network import require_hosts
from relparallel.metrics.link_load import load_of
from relparallel.metrics.resilience import survival
from relparallel.published import facts
from relparallel.topology import Topology
from relparallel.topology._arrays import BoolArray, FloatArray, IntArray
from relparallel.units import MINUTE

Failing = Literal[
    "links",
    "nodes",
    "switches",
    "hosts",
    "degree",
    "tier",
    "link_load",
    "switch_load",
    "racks",
    "pods",
    "shared_risk",
]
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
    """Survival while more and more parts of a network fail.

    ``failing`` at random: single cables ("links"), nodes of a sort ("nodes", "switches", "hosts"),
    "racks" as `racks` finds them, "pods", or the groups of "shared_risk" such as power domains.
    Targeted: switches (nodes, where there is none) of the most cables first ("degree"), of the
    highest tier ("tier") or of the most traffic ("switch_load"), and the busiest cables first
    ("link_load"). ``shares`` of the parts fail in ``samples`` random orders; in each, the parts
    that fail at a smaller share fail at a larger one. Targeted failures are random among equals.
    With ``recalculated`` the load is computed again after every failure; else the order is that of
    the intact network.

    Load is that of `ecmp_load`: betweenness, with one unit for every ordered pair of hosts over all
    shortest paths, per capacity for a cable, in and out for a node. Each sample and share takes O(n
    + m); recalculated loads take one `ecmp_load` for every part that fails in a sample. Holme, Kim,
    Yoon, Han, "Attack vulnerability of complex networks", Phys. Rev. E 65, 2002: attacks by initial
    and by recalculated degree and betweenness.

    >>> from relparallel.topology import bcube
    >>> rng = np.random.default_rng(0)
    >>> curve = resilience_curve(bcube(n=4, k=1), "switches", [0.0, 0.5, 1.0], samples=8, rng=rng)
    >>> curve.to_frame()["accessible"].iloc[[0, 2]].tolist()
    [1.0, 0.0625]
    """
    t = require_hosts(topology)
    require_choice(get_args(Failing), failing=failing)
    require_int(samples=samples, at_least=2)
    given = np.atleast_1d(require_probability(shares=shares)).ravel()
    if recalculated and failing not in _BUSY:
        raise ValueError(
            f"recalculated must be False where parts do not fail by load, got {failing}"
        )
    groups = _parts(t, failing)
    if not groups:
        raise ValueError(f"failing must name parts that the network has, got {failing!r} for {t!r}")
    size = len(groups)
    member, owner = (
        np.concatenate(groups),
        np.repeat(np.arange(size), [group.size for group in groups]),
    )
    rank = _rank(t, failing, member) if member.size == size else np.zeros(size)
    failed = np.rint(given * size).astype(np.int64)
    needed = np.ones(t.num_nodes + len(t.edges))
    if failing in _LINKS:
        needed[t.num_nodes :] = t.multiplicity
    found = np.empty((2, samples, failed.size))
    for sample in range(samples):
        tie = rng.random(size)
        if recalculated:
            links = failing == "link_load"
            part = member - (t.num_nodes if links else 0)
            place = np.argsort(_busiest_first(t, part, links, int(failed.max()), tie))
        else:
            place = np.argsort(np.lexsort((tie, rank)))
        for point, count in enumerate(failed):
            lost = np.bincount(member[place[owner] < count], minlength=needed.size)
            left = survival(t, lost < needed)
            found[:, sample, point] = left.pairs, left.accessible
    return ResilienceCurve(
        failing=failing, parts=size, failed=failed, pairs=found[0], accessible=found[1]
    )


def _parts(t: Topology, failing: Failing) -> list[IntArray]:
    """What each part takes along: nodes, and joined pairs behind them."""
    n = t.num_nodes
    if failing in _LINKS:
        return list((n + np.repeat(np.arange(len(t.edges)), t.multiplicity))[:, None])
    if failing == "shared_risk":
        return [
            np.array([*g.nodes, *(n + e for e in g.edges)], dtype=np.int64) for g in t.shared_risk
        ]
    if failing in ("racks", "pods"):
        group = racks(t) if failing == "racks" else t.pod
        order = np.argsort(group, kind="stable")
        order = order[group[order] >= 0]
        return np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if order.size else []
    sort = {"nodes": np.arange(n), "hosts": t.hosts, "switches": t.switches}
    return list(sort.get(failing, t.switches if t.num_switches else t.hosts)[:, None])


def _rank(t: Topology, failing: Failing, member: IntArray) -> FloatArray:
    """What ranks single parts, the smallest first: random parts are all equal."""
    if failing == "link_load":
        return -_load_of_links(t, t.multiplicity)[member - t.num_nodes]
    if failing == "switch_load":
        return -_load_of_nodes(t, np.ones(t.num_nodes, dtype=bool))[member]
    rank = {"degree": -t.degrees, "tier": -t.tier}.get(failing)
    return np.zeros(member.size) if rank is None else rank[member].astype(np.float64)


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


def _busiest_first(
    t: Topology, owner: IntArray, links: bool, steps: int, tie: FloatArray
) -> IntArray:
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


def field_losses(topology: Topology | nx.Graph[Any]) -> pd.DataFrame:
    """Failures of switches to expect, as observed in the field, and what they cut off, by kind.

    Columns ``switches``, ``failures per year``, ``hosts cut off`` by one on average, and
    ``host-hours per year, low`` and ``high``, with repairs of 10 and of 100 minutes. A switch that
    touches hosts fails as a top-of-rack switch does, any other as an aggregation switch: within a
    year with probability p, so at the rate -ln(1 - p). Gill et al., SIGCOMM 2011 (rates); Govindan
    et al., SIGCOMM 2016 (four failures in five last 10 to 100 minutes): rows ``NR-lit-gill-*`` and
    ``NR-lit-govindan-*``, taken from pages that quote the papers.

    >>> from relparallel.topology import leaf_spine
    >>> field_losses(leaf_spine(leaves=4, spines=2, hosts_per_leaf=8))["hosts cut off"].to_dict()
    {'leaf': 8.0, 'spine': 0.0}
    """
    t = require_hosts(topology)
    rows = facts("network-reliability")
    tor, other = (
        -np.log1p(-float(rows[f"NR-lit-gill-{kind}"].value_text)) for kind in ("tor", "agg")
    )
    short, long = (
        float(x) * MINUTE / 3600 for x in rows["NR-lit-govindan-duration"].value_text.split(";")
    )
    at_hosts = np.zeros(t.num_nodes, dtype=np.bool_)
    at_hosts[t.edges[t.endpoint[t.edges].any(axis=1)]] = True
    found = []
    for switch in t.switches.tolist():
        alive = np.ones(t.num_nodes + len(t.edges), dtype=np.bool_)
        alive[switch] = False
        lost = t.num_hosts * (1 - survival(t, alive).accessible)
        found.append([t.kinds[t.node_kind[switch]], 1, tor if at_hosts[switch] else other, lost])
    frame = pd.DataFrame(found, columns=["kind", "switches", "failures per year", "hosts cut off"])
    hours = frame["failures per year"] * frame["hosts cut off"]
    frame["host-hours per year, low"], frame["host-hours per year, high"] = (
        short * hours,
        long * hours,
    )
    by_kind = frame.groupby("kind", sort=False)
    return by_kind.sum().assign(**{"hosts cut off": by_kind["hosts cut off"].mean()})
