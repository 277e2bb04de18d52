"""The cheapest fabric of a catalogue that gives its hosts an availability, and why the others are not it.

========  ============================================================  =====================
letter    meaning                                                       argument
========  ============================================================  =====================
N         hosts that are needed                                         ``hosts``
u0        largest admitted unavailability of a pair of hosts            ``unavailability``
u         unavailability of a pair: the two hosts are up, switches,
          cables and other hosts fail
========  ============================================================  =====================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from relparallel._checks import require_instance, require_int, require_real
from relparallel.reliability import evaluate
from relparallel.topology import Topology, UnitPrices, bill_of_materials, equipped, unit_prices

__all__ = ["FabricChoice", "cheapest_fabric"]

NEAR: Final = 2  # hops from a host within which the lower bound lets parts fail
MOST_STATES: Final = 2**17
FORMULATION: Final = """minimise    cost(f)                      over the {designs} fabrics f of the catalogue
subject to  hosts(f) >= {hosts},  u(f) <= {unavailability:g}
where       u(f) is exact, or between what fails near the two hosts and what fails on their shortest paths"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FabricChoice:
    """Every fabric with its price and its bracket, and the cheapest that is good enough for certain.

    Parameters
    ----------
    table : pandas.DataFrame
        A row per fabric by cost: hosts, cost [USD], cost per host, lower, upper (bracket of u).
    hosts : int
        Hosts that are needed.
    unavailability : float
        Largest admitted u.

    Raises
    ------
    TypeError, ValueError
        If a field has the wrong type or is out of range.

    Examples
    --------
    >>> import relparallel as rp
    >>> choice = cheapest_fabric({"one spine": rp.topology.leaf_spine(4, 1, 4)}, 16, 0.01)
    >>> choice.name, choice.at(1e-9).name
    ('one spine', None)
    """

    table: pd.DataFrame
    hosts: int
    unavailability: float

    def __post_init__(self) -> None:
        columns = {"hosts", "cost", "lower", "upper"}
        if not columns <= set(require_instance(pd.DataFrame, table=self.table)):
            raise ValueError(f"table must have the columns {sorted(columns)}, got {list(self.table)}")
        require_int(hosts=self.hosts, at_least=2)
        _inside(self.unavailability)

    @property
    def verdicts(self) -> pd.Series[str]:
        """What is said of every fabric, in the order of cost."""
        t = self.table
        large, good = t["hosts"] >= self.hosts, t["upper"] <= self.unavailability
        open_question = large & ~good & (t["lower"] <= self.unavailability)
        words = np.select(
            [~large, good, open_question],
            ["too few hosts", "good enough, dearer", "not decided"],
            "fails too often",
        )
        said = pd.Series(words, index=t.index, name="verdict", dtype=object)
        if (large & good).any():
            said[(large & good).idxmax()] = "chosen"
        return said

    @property
    def name(self) -> str | None:
        """The cheapest fabric that is good enough; None where none is."""
        said = self.verdicts
        return str(said.index[said == "chosen"][0]) if (said == "chosen").any() else None

    @property
    def proven(self) -> bool:
        """Whether every cheaper fabric is certain to be too small or too bad."""
        said = self.verdicts.tolist()
        before = said[: said.index("chosen")] if "chosen" in said else said
        return "not decided" not in before

    @property
    def formulation(self) -> str:
        """The programme that was solved by enumeration."""
        return FORMULATION.format(
            designs=len(self.table), hosts=self.hosts, unavailability=self.unavailability
        )

    def at(self, unavailability: float) -> FabricChoice:
        """Choose again for another requirement, without computing anything again.

        Parameters
        ----------
        unavailability : float
            Largest admitted u, in (0, 1).

        Returns
        -------
        FabricChoice
            With the same table.
        """
        return FabricChoice(table=self.table, hosts=self.hosts, unavailability=unavailability)

    def to_frame(self) -> pd.DataFrame:
        """Return the table with the verdicts.

        Returns
        -------
        pandas.DataFrame
            By cost.
        """
        return self.table.assign(verdict=self.verdicts)


def cheapest_fabric(
    catalogue: Mapping[str, Topology],
    hosts: int,
    unavailability: float,
    *,
    prices: UnitPrices | None = None,
    mtbf: Mapping[str, float] | None = None,
    mttr: float | Mapping[str, float] | None = None,
) -> FabricChoice:
    """Buy the cheapest network in which two hosts can reach each other often enough.

    Parameters
    ----------
    catalogue : Mapping of str to Topology
        Fabrics by name.
    hosts : int
        Hosts N needed, at least 2.
    unavailability : float
        Largest admitted probability that the first host and the one farthest from it cannot communicate
        while both are up, in (0, 1).
    prices : UnitPrices, optional
        The list ``ndr2024`` by default.
    mtbf, mttr : optional
        As `relparallel.topology.equipped`.

    Returns
    -------
    FabricChoice
        The choice, the runners-up and the verdict on each.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as stated.

    Notes
    -----
    Enumeration. u is exact where the frontier is narrow; elsewhere two exact programmes on smaller networks
    enclose it, because failures only hurt: parts off the shortest paths removed give an upper bound, parts
    more than two hops from both hosts made perfect a lower bound. The second order, where the bounds differ,
    seldom decides a choice; where it does, the verdict is "not decided" and `proven` is False.

    Examples
    --------
    >>> import relparallel as rp
    >>> catalogue = {f"{s} spines": rp.topology.leaf_spine(4, s, 4) for s in (1, 2)}
    >>> choice = cheapest_fabric(catalogue, hosts=16, unavailability=2e-5)
    >>> choice.name, choice.proven
    ('2 spines', True)
    """
    if not require_instance(Mapping, catalogue=catalogue):
        raise ValueError("catalogue must hold at least one fabric, got none")
    require_int(hosts=hosts, at_least=2)
    _inside(unavailability)
    billed = unit_prices("ndr2024") if prices is None else require_instance(UnitPrices, prices=prices)
    rows = {}
    for name, fabric in catalogue.items():
        require_instance(str, catalogue=name)
        require_instance(Topology, catalogue=fabric)
        if fabric.num_hosts < 2:
            raise ValueError(f"catalogue must hold fabrics with two hosts or more, got {fabric!r}")
        ready = equipped(fabric, prices=billed, mtbf=mtbf, mttr=mttr)
        cost = bill_of_materials(fabric, prices=billed).cost
        lower, upper = _bracket(ready)
        rows[name] = (fabric.num_hosts, cost, cost / fabric.num_hosts, lower, upper)
    columns = ["hosts", "cost", "cost per host", "lower", "upper"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("fabric")
    table = table.sort_values("cost", kind="stable")
    return FabricChoice(table=table, hosts=hosts, unavailability=unavailability)


def _inside(unavailability: float) -> float:
    """One probability strictly between 0 and 1."""
    value = require_real(unavailability=unavailability, above=0, below=1)
    if np.ndim(value):
        raise TypeError(f"unavailability must be one number, got {unavailability!r}")
    return float(value)


def _bracket(t: Topology) -> tuple[float, float]:
    """Unavailability of the first host and the one farthest from it: exact, or enclosed."""
    hops = _hops(t, int(t.hosts[0]))
    source, target = int(t.hosts[0]), int(t.hosts[np.argmax(hops[t.hosts])])
    node = 1 - np.asarray(t.node_attributes["availability"], dtype=np.float64)
    node[[source, target]] = 0.0
    link = (1 - np.asarray(t.edge_attributes["availability"], dtype=np.float64)) ** t.multiplicity
    back = _hops(t, target)
    every = _failure(t, node, link, np.minimum(hops, back), source, target, t.num_nodes)
    if every is not None:
        return every, every
    on_path = hops + back <= hops[target]
    u, v = t.edges.T
    shortest = on_path[u] & on_path[v] & (np.abs(hops[u] - hops[v]) == 1)
    down = np.where(shortest, link, 1.0)
    upper = _failure(t, node, down, np.minimum(hops, back), source, target, t.num_nodes)
    lower = _failure(t, node, link, np.minimum(hops, back), source, target, NEAR)
    return (0.0 if lower is None else lower), (1.0 if upper is None else upper)


def _hops(t: Topology, source: int) -> NDArray[np.float64]:
    """Links from a host to every node over nodes that forward."""
    ends = np.concatenate([t.edges, t.edges[:, ::-1]])
    ends = ends[t.transit[ends[:, 0]] | (ends[:, 0] == source)]
    network = csr_array((np.ones(len(ends)), tuple(ends.T)), shape=(t.num_nodes, t.num_nodes))
    return np.asarray(dijkstra(network, indices=source, unweighted=True))


def _failure(
    t: Topology, node: NDArray[np.float64], link: NDArray[np.float64], near: NDArray[np.float64],
    source: int, target: int, reach: int,
) -> float | None:  # fmt: skip
    """Exact unavailability when all beyond ``reach`` hops is one perfect node; None where it is too wide."""
    keep = t.transit.copy()
    keep[[source, target]] = True
    name = np.where(near <= reach, np.arange(t.num_nodes), -1)
    down: dict[tuple[int, int], float] = {}
    for (u, v), chance in zip(t.edges.tolist(), link.tolist(), strict=True):
        ends = sorted((int(name[u]), int(name[v])))
        if keep[u] and keep[v] and ends[0] != ends[1] and chance < 1:
            pair = (ends[0], ends[1])
            down[pair] = down.get(pair, 1.0) * chance
    graph = nx.Graph(list(down))
    if source not in graph or target not in graph:
        return 1.0
    nodes = {v: float(node[v]) if v >= 0 else 0.0 for v in graph}
    try:
        found = evaluate(
            graph, (source, target), link_down=down, node_down=nodes, method="exact", max_states=MOST_STATES
        )
    except ValueError:  # too wide
        return None
    return found.unreliability
