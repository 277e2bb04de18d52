"""How often a repairable network fails, how long it stays down, and which part to improve first.

Parts fail and are repaired on their own, for ever: part i is down for the share q = MTTR / (MTBF +
MTTR) of the time and fails w = 1 / (MTBF + MTTR) times a second, whatever the distributions of its
lives and repairs. A failure of part i fails the system if the part decides at that moment, of which
Birnbaum's measure B is the chance. So the system fails sum of w B times a second, and the
derivatives of its unavailability are

    dU / dMTTR = B A w,    dU / dMTBF = - B q w,    A = 1 - q.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import Result, require_real
from relparallel._notices import told
from relparallel.reliability.evaluation import evaluate
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.problem import Terminals, links_of, nodes_of, read_values
from relparallel.reliability.sensitivity.importance import Importance
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
FloatArray = NDArray[np.float64]
Times = ArrayLike | Mapping[Any, float] | str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RepairableNetwork(Result):
    """Steady state of a network whose parts fail and are repaired; arrays have one entry per part.

    ``names`` are the pair of labels of a link (all its parallel cables) and the label of a node;
    ``birnbaum`` is the chance that a part decides, ``shares`` the failures of the system per second
    that are failures of this part, ``by_mtbf`` and ``by_mttr`` the derivatives of the
    unavailability by its times [1/s].
    """

    availability: float
    unavailability: float
    frequency: float
    names: list[Hashable]
    mtbf: FloatArray
    mttr: FloatArray
    birnbaum: FloatArray
    shares: FloatArray
    by_mtbf: FloatArray
    by_mttr: FloatArray

    @property
    def up_time(self) -> float:
        """Mean time from the end of an outage of the system to the next one [s]: its MTBF."""
        return _mean(self.availability, self.frequency)

    @property
    def down_time(self) -> float:
        """Mean length of an outage of the system [s]: its MTTR."""
        return _mean(self.unavailability, self.frequency)

    def _said(self) -> str:
        if not self.frequency:
            return "never connected" if self.unavailability else "never fails"
        often = f"an outage every {self.up_time + self.down_time:.4g} s for {self.down_time:.4g} s"
        return f"{often}, unavailability {self.unavailability:.6g}"

    def to_frame(self) -> pd.DataFrame:
        """One row per part, the one whose repairs are worth most to speed up first."""
        import pandas as pd

        share = self.shares / self.frequency if self.frequency > 0 else self.shares
        table = {
            "part": self.names,
            "mtbf": self.mtbf,
            "mttr": self.mttr,
            "birnbaum": self.birnbaum,
            "share_of_failures": share,
            "by_mtbf_hour": 3600 * self.by_mtbf,
            "by_mttr_hour": 3600 * self.by_mttr,
        }
        order = np.argsort(-self.by_mttr, kind="stable")
        return pd.DataFrame(table).iloc[order].reset_index(drop=True)


@told
def failure_frequency(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    link_mtbf: Times = np.inf,
    link_mttr: Times | None = None,
    node_mtbf: Times = np.inf,
    node_mttr: Times | None = None,
) -> RepairableNetwork:
    """How often the terminals lose each other, for how long, and how much every part adds to that.

    Parameters
    ----------
    graph : Topology or networkx.Graph or networkx.MultiGraph
        The network, as in `evaluate`.
    terminals : {"all", "switches", "nodes"} or collection of labels
        Nodes that must be connected.
    link_mtbf, node_mtbf : float, array, mapping or str
        Mean time from the end of a repair to the next failure of a cable or a node [s], above 0: one
        for all, one per link (rows of ``Topology.edges``, or the order of ``graph.edges``) or node,
        by pair of labels or label (infinite if not named), or the name of an attribute. One of the
        two has to be given.
    link_mttr, node_mttr : as link_mtbf and node_mtbf, optional
        Mean time to repair [s], at least 0, of everything that fails.

    Returns
    -------
    RepairableNetwork
        ``frequency`` [1/s], ``up_time`` and ``down_time`` [s] of the system, its unavailability,
        and ``to_frame()`` with the share of each part and what faster repairs of it are worth.

    Notes
    -----
    w = sum_i B_i / (MTBF_i + MTTR_i), B_i being Birnbaum's measure at q_i = MTTR_i / (MTBF_i +
    MTTR_i), exact where `evaluate` is; mean outage U / w. Parts fail and are repaired on their own,
    with lives and repairs of any law. Of k parallel cables each does so: together they have q^k for q
    and k w q^(k-1) for w, and derivatives are for all of them at once.

    References
    ----------
    Barlow and Proschan, "Statistical Theory of Reliability and Life Testing", 1975, chapter 7.

    Examples
    --------
    >>> import networkx as nx
    >>> ring = failure_frequency(nx.cycle_graph(4), link_mtbf=3.6e6, link_mttr=3600.0)
    >>> print(f"every {ring.up_time / 3.6e6:.1f} thousand hours for {ring.down_time / 3600:.2f} hours")
    every 83.7 thousand hours for 0.50 hours
    """
    topology = as_topology(graph)
    life, repair = _times(topology, graph, (link_mtbf, node_mtbf), (link_mttr, node_mttr))
    if all(isinstance(given, float) and given == np.inf for given in (link_mtbf, node_mtbf)):
        raise ValueError("link_mtbf or node_mtbf must say how often parts fail, got neither")
    m, often, down = len(topology.edges), 1.0 / (life + repair), repair / (life + repair)
    chances: dict[str, Any] = {"link_down": down[:m] if m else 0.0, "node_down": down[m:]}
    try:
        found = evaluate(topology, terminals, **chances, method="exact")
    except NotExactError:  # a wide fabric may have a form, and classes of alike parts
        found = evaluate(topology, terminals, **chances)
    parts = found.importance(perfect=bool(((often > 0) & (down == 0)).any()))
    row = _rows(topology, parts)
    kept = often[row] > 0
    row, birnbaum = row[kept], parts.birnbaum[kept]
    cables = np.concatenate([topology.multiplicity, np.ones(topology.num_nodes, dtype=np.int64)])[
        row
    ]
    # of a link's cables, all but the one that fails are down
    others = cables * down[row] ** (cables - 1)
    shares = birnbaum * often[row] * others
    return RepairableNetwork(
        availability=found.reliability,
        unavailability=found.unreliability,
        frequency=float(shares.sum()),
        names=[name for name, fails in zip(parts.names, kept.tolist(), strict=True) if fails],
        mtbf=life[row],
        mttr=repair[row],
        birnbaum=birnbaum,
        shares=shares,
        by_mtbf=-shares * down[row],
        by_mttr=shares * life[row] * often[row],
    )


def _mean(share: float, frequency: float) -> float:
    """Mean time in a state [s] that has a share of the time: for ever where it is never left."""
    return share / frequency if frequency > 0 else np.inf if share > 0 else 0.0


def _times(
    topology: Topology,
    graph: Topology | nx.Graph[Any],
    mtbf: tuple[Times, Times],
    mttr: tuple[Times | None, Times | None],
) -> tuple[FloatArray, FloatArray]:
    """Times to failure and to repair of all links, then all nodes."""
    kinds = links_of(topology, graph), nodes_of(topology)
    life, repair = list[FloatArray](), list[FloatArray]()
    for parts, lives, repairs in zip(kinds, mtbf, mttr, strict=True):
        life.append(read_values(parts, f"{parts.name}_mtbf", lives, np.inf, _life))
        given: Times = {} if repairs is None else repairs
        repair.append(read_values(parts, f"{parts.name}_mttr", given, np.nan, _repair))
        bare = np.flatnonzero(np.isfinite(life[-1]) & np.isnan(repair[-1]))
        if bare.size:
            ends = topology.edges[bare[0]].tolist() if parts.name == "link" else bare[:1].tolist()
            part = ", ".join(repr(topology.labels[v]) for v in ends)
            raise ValueError(
                f"{parts.name}_mttr must give every {parts.name} with a finite {parts.name}_mtbf "
                "its time to "
                f"repair [s], at least 0, got {None if repairs is None else f'no time for {part}'}"
            )
    return np.concatenate(life), np.nan_to_num(np.concatenate(repair))


def _life(argument: str, given: Any) -> Any:
    return require_real(above=0.0, infinite=True, **{argument: given})  # type: ignore[arg-type]


def _repair(argument: str, given: Any) -> Any:
    return require_real(at_least=0.0, **{argument: given})


def _rows(topology: Topology, parts: Importance) -> NDArray[np.int64]:
    """Rows of the parts: links of the topology, then its nodes."""
    m, place = (
        len(topology.edges),
        {pair: i for i, pair in enumerate(map(tuple, topology.edges.tolist()))},
    )
    links = [place[u, v] for u, v in parts.problem.edges.tolist()]
    return np.array([*links, *range(m, m + topology.num_nodes)], dtype=np.int64)[parts.part]
