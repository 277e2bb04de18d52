"""Count instead of weigh: the success mass in whole numbers, by additions and multiplications only.

Every independent part has two weights, for up and for down, that need not add up to one: powers of
a variable give counts by the number of working parts. A part that is up multiplies the mass by the
variable of its class. A polynomial is one integer: coefficient j in the j-th group of bytes
(Kronecker substitution), the variables of further classes so far apart that they do not overlap.
The tape of reductions is played without its division: a terminal between two others leaves a link
whose weights omit the case that both its links are down, in which the system fails anyway.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import comb, prod
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import (
    Result,
    require_choice,
    require_instance,
    require_int,
    require_probability,
)
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.frontier.decomposition import Compiled, compiled
from relparallel.reliability.frontier.generic_sweep import MAX_SLOTS, moves, sweep
from relparallel.reliability.frontier.reductions import BOTH, SERIES
from relparallel.reliability.problem import Problem, Terminals, read_problem, require_relays
from relparallel.reliability.result import Reliability, exactly
from relparallel.topology import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

Classes = Literal["links", "nodes", "both", "kinds"] | Mapping[Any, Hashable]
_LARGEST: Final = 2**22  # bytes of one mass


Weights = tuple[int, int]  #: of a part that is up, and down

_STATES: Final = 2**20  # largest layer of the sweep in plain Python
_ROOM: Final = 2**31  # bytes for the masses of two layers
_STATE: Final = 300  # bytes of a state without its mass


def weigh(
    problem: Problem, given: Sequence[Weights], max_states: int, reductions: bool = True
) -> int:
    """Total weight of the states of all parts in which the terminals are up and connected."""
    structure = compiled(problem, reductions)
    if not structure.connected:
        return 0
    if structure.width > MAX_SLOTS:
        raise NotExactError(
            f"graph must need at most {MAX_SLOTS} live vertices where whole numbers are counted, "
            "got "
            f"{structure.width}; `evaluate` with floats falls back to certified bounds"
        )
    slots = _play(structure.tape, given, structure.slots - len(structure.widths))
    total: int = prod(up + down for up, down in _unused(structure, slots))
    required = structure.required[structure.required < len(slots)]
    total *= prod(slots[i][0] for i in required.tolist())
    for i, j in zip(structure.starts[:-1].tolist(), structure.starts[1:].tolist(), strict=True):
        rows = moves(structure.steps[i:j], structure.parts[i:j], slots)
        total *= sweep(bytes(structure.width), rows, max_states).up
    return total


def _play(tape: NDArray[np.int64], given: Sequence[Weights], slots: int) -> list[Weights]:
    """Weights of links, nodes, and what the tape makes of them."""
    weights = [*given, *[(1, 0)] * (slots - len(given))]
    for code, made, a, b, c in tape.tolist():
        (up_a, down_a), (up_b, down_b) = weights[a], weights[b]
        if code == BOTH:  # made - 1 is required: the same two in parallel
            weights[made] = up_a * up_b, up_a * down_b + down_a * up_b
            weights[made - 1] = 1, 0
            continue
        up_c, down_c = weights[c] if c >= 0 else (1, 0)
        all_ways = (up_a + down_a) * (up_b + down_b) * (up_c + down_c)
        up = up_a * up_b * up_c if code == SERIES else all_ways - down_a * down_b
        weights[made] = up, all_ways - up
    return weights


def _unused(structure: Compiled, slots: Sequence[Weights]) -> list[Weights]:
    """Parts that do not matter: they can be up or down."""
    free = np.ones(structure.slots + 1, dtype=bool)
    for used in (structure.tape[:, 2:], structure.parts, structure.required):
        free[used] = False  # -1, a part that never fails, is the spare one at the end
    return [slots[i] for i in np.flatnonzero(free[: len(slots)]).tolist()]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SurvivalSignature(Result):
    """Numbers of sets of working parts that connect the terminals, by working parts of every class.

    ``counts`` are exact integers, object array [M_1 + 1, ..., M_c + 1]: entry (l_1, ..., l_c)
    counts the sets with l_i of the M_i parts of class i.
    """

    classes: tuple[Hashable, ...]
    counts: NDArray[Any]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Parts of every class."""
        return tuple(length - 1 for length in self.counts.shape)

    @property
    def sets(self) -> NDArray[Any]:
        """Sets of working parts, object array as ``counts``: products of binomial coefficients."""
        axes = [
            np.array([comb(size, j) for j in range(size + 1)], dtype=object) for size in self.sizes
        ]
        return np.asarray(reduce(np.multiply.outer, axes), dtype=object)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The survival signature proper, float64 as ``counts``: what share of the sets connects."""
        return np.asarray(self.counts / self.sets, dtype=np.float64)

    def reliability(self, up: Any) -> Reliability:
        """Reliability where all parts of a class share one up-probability, one for all or by class.

        R = sum over l of counts[l] * prod_i p_i^{l_i} (1 - p_i)^{M_i - l_i}: sums of positive terms
        only, which are rounded once where p is a `fractions.Fraction`.

        Examples
        --------
        >>> import networkx as nx
        >>> ring = survival_signature(nx.cycle_graph(4))
        >>> print(f"{ring.reliability(0.99).unreliability:.6e}")
        5.920300e-04
        """
        chosen = up if isinstance(up, Mapping) else dict.fromkeys(self.classes, up)
        if set(chosen) != set(self.classes):
            raise ValueError(
                f"up must name the classes {self.classes!r}, got {sorted(map(str, chosen))}"
            )
        works, fails = self.counts, self.sets - self.counts
        for name, size in zip(self.classes, self.sizes, strict=True):
            p = chosen[name]
            if np.ndim(p):
                raise TypeError(
                    f"up must be one probability for each class, got {p!r} for {name!r}"
                )
            require_probability(up=float(p) if isinstance(p, Fraction) else p)
            weights = np.array(
                [p**j * (1 - p) ** (size - j) for j in range(size + 1)], dtype=object
            )
            # uses up an axis
            works, fails = np.tensordot(weights, works, 1), np.tensordot(weights, fails, 1)
        return exactly(works, fails, "exact")


def survival_signature(
    graph: Topology | nx.Graph[Any],
    classes: Classes = "links",
    terminals: Terminals = "all",
    *,
    max_states: int = 2**20,
) -> SurvivalSignature:
    """Count the sets of working parts that connect the terminals, by class of part.

    Parameters
    ----------
    graph, terminals : as in `evaluate`
        Terminals must be up and connected.
    classes : {"links", "nodes", "both", "kinds"} or Mapping of part to class
        All cables, all nodes, these two; or nodes by kind and cables by the kinds of their ends. A
        mapping names nodes by label and links by pair of labels; the parts that it leaves out never
        fail.
    max_states : int, optional
        Largest layer of the sweep.

    Returns
    -------
    SurvivalSignature
        Exact counts, classes in order of first appearance (nodes first).

    Notes
    -----
    Time: one frontier sweep whose additions and products are of integers with prod(M_i + 1) groups
    of 1 + sum(M_i) bits, after reductions that keep integers.

    References
    ----------
    Coolen and Coolen-Maturi, "Generalizing the signature to systems with multiple types of
    components", Advances in Intelligent and Soft Computing 170, 2012. Reed, Loefstedt and
    Coolen-Maturi, "An efficient algorithm for computing exact system and survival signatures of
    K-terminal network reliability", Reliability Engineering and System Safety 185, 2019.

    Examples
    --------
    >>> import networkx as nx
    >>> fabric = nx.complete_bipartite_graph(2, 2)  # two leaves, 0 and 1, below two spines, 2 and 3
    >>> survival_signature(fabric, {2: "spine", 3: "spine"}, terminals=(0, 1)).counts.tolist()
    [0, 2, 1]
    """
    require_int(max_states=max_states, at_least=1, at_most=2**28)
    topology, problem = as_topology(graph), read_problem(graph, terminals, 0.5, 0.5)
    require_relays(problem)
    codes = topology.edges @ [topology.num_nodes, 1], problem.edges @ [topology.num_nodes, 1]
    rows = np.flatnonzero(np.isin(*codes))
    names, node, link = _classes(topology, classes)
    cables = topology.multiplicity
    sizes = [int(np.count_nonzero(node == i) + cables[link == i].sum()) for i in range(len(names))]
    lengths = [size + 1 for size in sizes]
    width = -(-(sum(sizes) + 1) // 8)  # bytes of a coefficient: there are 2^sum sets
    if prod(lengths) * width > _LARGEST:
        raise NotExactError(
            f"classes must leave a table of at most {_LARGEST} bytes, got {prod(lengths)} integers "
            "of "
            f"{width}; merge classes, or leave out parts that never fail"
        )
    strides = [8 * width * prod(lengths[:i]) for i in range(len(names))]
    weights = [
        _bundle(strides[i], c) if i >= 0 else (1, 0)
        for i, c in zip(link, cables.tolist(), strict=True)
    ]
    given = [weights[row] for row in rows.tolist()]
    given += [(1 << strides[i], 1) if i >= 0 else (1, 0) for i in node]
    room = _ROOM // (2 * prod(lengths) * width + _STATE)
    try:
        total = weigh(problem, given, min(max_states, room))
    except NotExactError as why:
        limit = (
            "max_states"
            if max_states < room
            else "the memory that whole numbers of this length take"
        )
        raise NotExactError(f"{why}, for {limit}; `evaluate` takes wider networks") from why
    idle = np.setdiff1d(np.arange(len(link)), rows)
    total *= prod(sum(weights[row]) for row in idle.tolist())
    return SurvivalSignature(classes=tuple(names), counts=_unpacked(total, lengths, width))


def polynomial(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    parts: Literal["links", "nodes"] = "links",
    *,
    max_states: int = 2**20,
) -> tuple[int, ...]:
    """Count the sets of j working links (or nodes) that connect the terminals, for every j.

    Parameters
    ----------
    graph, terminals, max_states : as in `survival_signature`
        The network has m links (parallel cables counted singly) and n nodes.
    parts : {"links", "nodes"}
        What fails; the others never do. Where both fail, see `survival_signature` with classes
        "both".

    Returns
    -------
    tuple of int
        N_0..N_m, or N_0..N_n.

    Notes
    -----
    R(p) = sum_j N_j p^j (1 - p)^(m - j). The survival signature of one class: see
    `survival_signature`.

    References
    ----------
    Colbourn, "The Combinatorics of Network Reliability", Oxford University Press, 1987.

    Examples
    --------
    >>> import networkx as nx
    >>> polynomial(nx.complete_graph(6))
    (0, 0, 0, 0, 0, 1296, 3660, 5700, 6165, 4945, 2997, 1365, 455, 105, 15, 1)
    """
    require_choice(("links", "nodes"), parts=parts)
    return tuple(survival_signature(graph, parts, terminals, max_states=max_states).counts.tolist())


def _bundle(stride: int, cables: int) -> Weights:
    """Parallel cables: down when all of them are."""
    return (1 + (1 << stride)) ** cables - 1, 1


def _unpacked(total: int, lengths: Sequence[int], width: int) -> NDArray[Any]:
    """The coefficients of a packed polynomial; the first class varies fastest."""
    data = total.to_bytes(prod(lengths) * width, "little")
    numbers = [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]
    return np.array(numbers, dtype=object).reshape(lengths, order="F")


def _classes(
    topology: Topology, classes: Classes
) -> tuple[list[Hashable], NDArray[Any], NDArray[Any]]:
    """Names of the classes, and the index of every node and every link, -1 where it never fails."""
    if not isinstance(classes, str):
        return _named(topology, require_instance(Mapping, classes=classes))
    require_choice(("links", "nodes", "both", "kinds"), classes=classes)
    nodes, links = np.zeros(topology.num_nodes, np.int64), np.zeros(len(topology.edges), np.int64)
    if classes == "links":
        return ["links"], nodes - 1, links
    if classes == "nodes":
        return ["nodes"], nodes, links - 1
    if classes == "both":
        return ["nodes", "links"], nodes, links + 1
    kind = [topology.kinds[i] for i in topology.node_kind]
    pairs = ["-".join(sorted((kind[u], kind[v]))) for u, v in topology.edges.tolist()]
    names: list[Hashable] = list(dict.fromkeys([*kind, *pairs]))
    return (
        names,
        np.array([names.index(i) for i in kind]),
        np.array([names.index(i) for i in pairs], np.int64),
    )


def _named(
    topology: Topology, classes: Mapping[Any, Hashable]
) -> tuple[list[Hashable], NDArray[Any], NDArray[Any]]:
    """The same for a mapping of parts."""
    nodes, links = np.full(topology.num_nodes, -1), np.full(len(topology.edges), -1)
    row = {pair: i for i, pair in enumerate(map(tuple, topology.edges.tolist()))}
    label = {name: v for v, name in enumerate(topology.labels)}
    for name in classes.values():
        require_instance(Hashable, classes=name)
    names = list(dict.fromkeys(classes.values()))
    if not names:
        raise ValueError(f"classes must name at least one part, got {classes!r}")
    for part, name in classes.items():
        if part in label:
            nodes[label[part]] = names.index(name)
            continue
        ends = part if isinstance(part, tuple) and len(part) == 2 else ()
        pair = tuple(sorted(label.get(end, -1) for end in ends))
        if pair not in row:
            raise ValueError(f"classes must name nodes or links of {topology!r}, got {part!r}")
        links[row[pair]] = names.index(name)
    return names, nodes, links
