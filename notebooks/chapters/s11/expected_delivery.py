"""Expected delivery of a network whose parts fail: most probable states first, with proved bounds.

Between "connected" and "not connected" lies the share of the capacity that is left. The states that
were not looked at could change an expectation by at most their probability times the range of the
measure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from relparallel._checks import require_number
from relparallel.metrics import survival
from relparallel.reliability.problem import LinkChance, NodeChance, read_problem
from relparallel.reliability.repair.likely_states import likely_states, orbits_of_sets
from relparallel.topology import Topology, as_topology
from relparallel.topology._arrays import parts
from relparallel.topology.routing import maximum_flow, node_index
from relparallel.topology.symmetry import symmetries_that_keep

if TYPE_CHECKING:
    import networkx as nx
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Measure = Callable[[Topology, BoolArray], float]
_UNITS: Final = 60  # bits of all capacities together


class Performability(NamedTuple):
    """Expected value and distribution of what a network delivers, between proved bounds.

    ``delivered`` [values] falls, with the ``probability`` of each; ``remainder`` bounds that of all
    states that were not looked at; no state delivers less than ``worst`` or more than ``best``.
    ``states`` were measured, one of each set of symmetric ones, and stand for ``sets``.
    """

    delivered: FloatArray
    probability: FloatArray
    remainder: float
    worst: float
    best: float
    states: int
    sets: int

    @property
    def loss(self) -> tuple[float, float]:
        """Bounds on the expected shortfall from the best, sums of positive terms."""
        seen = float(self.probability @ (self.best - self.delivered))
        return seen, seen + self.remainder * (self.best - self.worst)

    @property
    def lower(self) -> float:
        """Least expected value that the states not looked at allow."""
        return max(self.best - self.loss[1], self.worst)

    @property
    def upper(self) -> float:
        """Largest expected value that they allow."""
        return self.best - self.loss[0]

    @property
    def value(self) -> float:
        """Middle of the bounds."""
        return (self.lower + self.upper) / 2

    def at_least(self, threshold: float) -> tuple[float, float]:
        """Bounds on the probability that at least so much is delivered."""
        seen = float(self.probability[self.delivered >= threshold].sum())
        open_ended = self.remainder if self.worst < threshold <= self.best else 0.0
        if threshold <= self.worst:
            return 1.0, 1.0
        return min(seen, 1.0), min(seen + open_ended, 1.0)


def performability(
    graph: Topology | nx.Graph[Any],
    measure: str | Measure = "connected_pairs",
    link_up: LinkChance = 1.0,
    node_up: NodeChance = 1.0,
    *,
    link_down: LinkChance | None = None,
    node_down: NodeChance | None = None,
    sources: Sequence[Hashable] | None = None,
    targets: Sequence[Hashable] | None = None,
    worst: float = 0.0,
    best: float | None = None,
    symmetric: bool = False,
    gap: float = 1e-6,
    most_states: int = 10_000,
    most_sets: int = 1_000_000,
) -> Performability:
    """Mean and distribution of what a network delivers when nodes and links fail independently.

    ``measure``: "connected_pairs", share of the ordered pairs of hosts that a path joins;
    "max_flow", the most that flows from the ``sources`` to the ``targets`` [the smallest capacity
    of a cable]; or a function of the topology and of bool [n + m], which nodes, then which rows of
    ``edges``, are up; the parallel cables of a pair are one part, which fails when all of them do.
    Chances are as in `evaluate`. No state delivers less than ``worst`` or more than ``best``, by
    default the intact network: right unless a failure can help. ``symmetric``: whether a function
    measures the same in states that a symmetry of the network carries into each other; the named
    measures know it of themselves. The probability ``gap`` may stay unseen; it also ends after
    ``most_states`` measured states, and ``most_sets`` that they stand for.

    E = sum_s P(s) v(s) over the states seen, and v between worst and best in the others. States
    come in order of probability; those that a proved symmetry which keeps all probabilities (and
    the set of sources, and of targets) carries into each other are measured once. O(N log N) for N
    states, and the measures. Flows are found in whole units: exact for decimal capacities with a
    common unit above 2^-60 of their sum, else to 2^-30 of the smallest capacity for each cable of a
    cut.

    Meyer, "On evaluating the performability of degradable computing systems", IEEE Trans. Comput.
    29, 1980; Li, Silvester, IEEE Trans. Commun. 32, 1984.

    >>> import networkx as nx
    >>> found = performability(nx.cycle_graph(4), "max_flow", link_up=0.9, sources=[0], targets=[2], gap=0)
    >>> round(found.value, 12), found.states, found.sets  # two routes of 0.81
    (1.62, 16, 16)
    """
    t = as_topology(graph, name="graph")
    named = isinstance(measure, str) and measure in ("connected_pairs", "max_flow")
    if not named and not callable(measure):
        raise ValueError(
            f"measure must be connected_pairs, max_flow or a function, got {measure!r}"
        )
    marks = _marks(t, measure, sources, targets)
    taken = flow_measure(t, marks) if measure == "max_flow" else measure
    value: Measure = taken if callable(taken) else pairs_measure(t)
    up, down = _chances(graph, t, link_up, node_up, link_down, node_down)
    same = np.arange(up.size)[None]
    if symmetric or not callable(measure):
        n, both = t.num_nodes, np.column_stack([up, down])
        kept = symmetries_that_keep(t, np.column_stack([marks, both[:n]]), both[n:])
        same = np.unique(np.concatenate([same, kept]), axis=0)
    base = down > up
    both = np.where(base, [down, up], [up, down]).T
    sets, _, chances, rest = likely_states(both, gap, most_sets if len(same) > 1 else most_states)
    label = orbits_of_sets(sets, same)
    _, first, orbit = np.unique(label, return_index=True, return_inverse=True)
    mass = np.bincount(orbit, chances)
    chosen = np.argsort(-mass, kind="stable")[:most_states]
    rest = min(rest + float(np.delete(mass, chosen).sum()), 1.0)
    intact = np.ones(up.size, dtype=np.bool_)
    most = require_number(measure=value(t, intact)) if best is None else float(best)
    found = np.array([_measured(value, t, base, sets[first[i]], worst, most) for i in chosen])
    levels, level = np.unique(-found, return_inverse=True)
    return Performability(
        delivered=-levels,
        probability=np.minimum(np.bincount(level, mass[chosen]), 1.0),
        remainder=rest,
        worst=float(worst),
        best=most,
        states=len(chosen),
        sets=int(np.bincount(orbit)[chosen].sum()),
    )


def _measured(
    value: Measure, t: Topology, base: BoolArray, changed: IntArray, worst: float, best: float
) -> float:
    """The measure in one state, checked."""
    alive = ~base
    flipped = changed[changed >= 0]
    alive[flipped] = ~alive[flipped]
    found: float = require_number(measure=value(t, alive))
    slack = 1e-12 * max(abs(worst), abs(best))
    if not worst - slack <= found <= best + slack:
        raise ValueError(
            f"measure must stay between worst {worst:g} and best {best:g}, got {found!r}"
        )
    return min(max(found, worst), best)


def _chances(
    graph: Topology | nx.Graph[Any],
    t: Topology,
    link_up: LinkChance,
    node_up: NodeChance,
    link_down: LinkChance | None,
    node_down: NodeChance | None,
) -> tuple[FloatArray, FloatArray]:
    """Probabilities of being up and down of the nodes, then of the rows of ``edges``."""
    problem = read_problem(graph, "nodes", link_up, node_up, link_down, node_down)
    link = np.tile([0.0, 1.0], (len(t.edges), 1))  # links that are never up are not in the problem
    key = t.edges[:, 0] * t.num_nodes + t.edges[:, 1]
    rows = np.searchsorted(key, problem.edges[:, 0] * t.num_nodes + problem.edges[:, 1])
    link[rows] = problem.link
    both = np.concatenate([problem.node, link])
    return both[:, 0], both[:, 1]


def _marks(
    t: Topology,
    measure: str | Measure,
    sources: Sequence[Hashable] | None,
    targets: Sequence[Hashable] | None,
) -> IntArray:
    """1 for sources and 2 for targets; 0 elsewhere."""
    marks = np.zeros(t.num_nodes, dtype=np.int64)
    for mark, (name, labels) in enumerate((("sources", sources), ("targets", targets)), start=1):
        if measure != "max_flow":
            if labels is not None:
                raise ValueError(
                    f"{name} must be left out unless measure is max_flow, got {labels!r}"
                )
            continue
        if labels is None:
            raise TypeError(f"{name} must be one or more nodes with measure 'max_flow', got None")
        nodes = [node_index(t, name, label) for label in labels]
        if not nodes or len(set(nodes)) < len(nodes) or marks[nodes].any():
            raise ValueError(f"{name} must be one or more nodes, each named once, got {labels!r}")
        marks[nodes] = mark
    return marks


def pairs_measure(t: Topology) -> Measure:
    """Share of ordered pairs of hosts that a path joins, from connected parts if these decide."""
    neighbours = np.bincount(t.edges.ravel(), minlength=t.num_nodes)
    if t.num_hosts < 2 or (~t.transit & (neighbours > 1)).any():
        return lambda topology, alive: survival(topology, alive).pairs
    n = t.num_nodes

    def joined(topology: Topology, alive: BoolArray) -> float:
        kept = alive[n:] & alive[topology.edges].all(axis=1)
        hosts = np.bincount(parts(topology.edges[kept], n)[topology.endpoint & alive[:n]])
        return float(hosts @ (hosts - 1) / (topology.num_hosts * (topology.num_hosts - 1)))

    return joined


def flow_measure(t: Topology, marks: IntArray) -> Measure:
    """Largest flow between marked nodes as a function of the state, in smallest capacities."""
    n = t.num_nodes
    units, smallest = _whole_units(t)
    forwards = t.transit | (marks > 0)
    ends = np.array([n, n + 1])
    touching = np.bincount(t.edges.ravel(), np.repeat(units, 2).astype(np.float64), n)
    outer = 1 + np.ceil(touching * (1 + 1e-12)).astype(np.int64)  # never the narrowest

    def flow(topology: Topology, alive: BoolArray) -> float:
        node = alive[:n] & forwards
        keep = alive[n:] & node[topology.edges].all(axis=1)
        u, v = topology.edges[keep].T
        start, goal = (np.flatnonzero(node & (marks == mark)) for mark in (1, 2))
        tail = np.concatenate([u, v, np.full(start.size, ends[0]), goal])
        head = np.concatenate([v, u, start, np.full(goal.size, ends[1])])
        amount = np.concatenate([np.tile(units[keep], 2), outer[start], outer[goal]])
        return _largest_flow(tail, head, amount, n + 2) / smallest

    return flow


def _whole_units(t: Topology) -> tuple[IntArray, int]:
    """Capacities of the rows of ``edges`` and the least of a cable in one unit, as whole numbers.

    Decimal numbers have one, which is exact; where it is too fine, the unit is 2^-30 of the
    smallest or less.
    """
    kinds, kind = np.unique(t.capacity, return_inverse=True)
    exact = [Fraction(repr(float(c))) for c in kinds]
    common = int(np.lcm.reduce(np.array([c.denominator for c in exact], dtype=object), initial=1))
    whole = [int(c * common) for c in exact] or [1]
    whole = [c // int(np.gcd.reduce(np.array(whole, dtype=object))) for c in whole]
    total = sum(c * int(m) for c, m in zip(whole, np.bincount(kind, t.multiplicity), strict=False))
    if total >= 2**_UNITS:
        fine = 2 ** (_UNITS - 1 - (total // whole[0]).bit_length())
        if fine < 2**30:
            known = "within 2^29 of each other or with a common unit"
            raise ValueError(f"graph must have capacities {known}, got {kinds[:4]}")
        whole = [round(Fraction(fine * c, whole[0])) for c in whole]
    return np.array(whole, dtype=np.int64)[kind] * t.multiplicity, whole[0]


def _largest_flow(tail: IntArray, head: IntArray, units: IntArray, nodes: int) -> int:
    """Largest flow to the last node from the one before: in coarse units, the rest in finer ones.

    A cut has less than one coarse unit left of each of its arcs, so that numbers of finer ones stay
    small.
    """
    left = csr_array((units, (tail, head)), shape=(nodes, nodes))
    shift, found = max(int(units.sum()).bit_length() - 29, 0), 0
    step = 29 - (2 * tail.size).bit_length()
    while True:
        arcs = left.tocoo()
        coarse = np.minimum(arcs.data >> shift, 2**29)  # no more is left to flow
        flow = maximum_flow(arcs.row, arcs.col, coarse, nodes, nodes - 2, nodes - 1)
        found += flow.value << shift
        if not shift:
            return found
        left = csr_array(left - flow.sent.astype(np.int64) * 2**shift)
        shift = max(shift - step, 0)
