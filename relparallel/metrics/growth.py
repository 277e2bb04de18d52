"""What it takes to grow a network: cables that stay, are pulled, and are laid."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from relparallel._checks import require_int
from relparallel.topology import Topology, as_topology
from relparallel.topology._arrays import IntArray, integers

if TYPE_CHECKING:
    import networkx as nx
    from scipy.sparse import csr_array

_LARGEST: Final = 2_000**2  # entries of an assignment problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Expansion:
    """Growth from one network to a larger one.

    Parameters
    ----------
    hosts, switches : int
        Nodes added.
    kept, pulled, laid : int
        Cables that stay, are taken out, and are new.
    outgrown : int, optional
        Nodes of the smaller network with more cables in the larger: without free ports they are replaced.

    Examples
    --------
    >>> Expansion(hosts=4, switches=0, kept=28, pulled=4, laid=12).rewired_per_node
    1.0
    """

    hosts: int
    switches: int
    kept: int
    pulled: int
    laid: int
    outgrown: int = 0

    def __post_init__(self) -> None:
        for name in ("hosts", "switches", "kept", "pulled", "laid", "outgrown"):
            require_int(**{name: getattr(self, name)}, at_least=0)

    @property
    def rewired_per_node(self) -> float:
        """Cables pulled for every node added; infinite where none is added but cables move."""
        added = self.hosts + self.switches
        return self.pulled / added if added else float("inf") if self.pulled else 0.0


def expansion(
    before: Topology | nx.Graph[Any],
    after: Topology | nx.Graph[Any],
    *,
    placement: IntArray | None = None,
) -> Expansion:
    """Cables to move when a network becomes a larger one.

    Parameters
    ----------
    before, after : Topology or networkx.Graph
        The networks; the second has at least the nodes of the first.
    placement : int array [n], optional
        The node of ``after`` that each node of ``before`` becomes, by index. By default the j-th node of a
        kind and tier becomes the j-th of the same kind and tier, or of the same kind, tier and pod; then
        nodes of one kind and tier at a time trade places for as long as that keeps more cables. The best is
        taken.

    Returns
    -------
    Expansion
        Exact for the placement; another placement may pull fewer cables.

    Notes
    -----
    Parallel cables count singly. O((n + m) log n), and one assignment problem for each kind and round; kinds
    of more than 2,000 by 2,000 nodes keep their places.

    References
    ----------
    Singla, Hong, Popa, Godfrey, "Jellyfish: networking data centers randomly", NSDI 2012, section 4.2: growth
    in cables per added rack; see `relparallel.topology.grow`.

    Examples
    --------
    >>> from relparallel.topology import dcell, fat_tree, torus
    >>> expansion(dcell(n=3, k=1), dcell(n=3, k=2)).pulled, expansion(torus((4, 4)), torus((5, 4))).pulled
    (0, 4)
    >>> steps = expansion(fat_tree(4), fat_tree(6))  # no cable moves, but every switch needs more ports
    >>> steps.pulled, steps.outgrown
    (0, 20)
    """
    small, large = as_topology(before, name="before"), as_topology(after, name="after")
    if placement is None:
        images = [_settled(small, large, image) for image in _places(small, large)]
    else:
        images = [_given(small, large, placement)]
    kept, image = max(((_kept(small, large, image), image) for image in images), key=lambda found: found[0])
    return Expansion(
        hosts=large.num_hosts - small.num_hosts,
        switches=large.num_switches - small.num_switches,
        kept=kept,
        pulled=small.num_links - kept,
        laid=large.num_links - kept,
        outgrown=int((large.degrees[image] > small.degrees).sum()),
    )


def _kept(small: Topology, large: Topology, image: IntArray) -> int:
    """Cables that both networks have where the nodes are placed so."""
    n, ends = large.num_nodes, np.sort(image[small.edges], axis=1)
    old = dict(zip((ends[:, 0] * n + ends[:, 1]).tolist(), small.multiplicity.tolist(), strict=True))
    key = (large.edges[:, 0] * n + large.edges[:, 1]).tolist()
    return sum(min(old.get(k, 0), c) for k, c in zip(key, large.multiplicity.tolist(), strict=True))


def _settled(small: Topology, large: Topology, image: IntArray) -> IntArray:
    """Placement after trades within kinds and tiers, none of which loses a cable."""
    kinds = _classes(small), _classes(large)
    kept, before = _kept(small, large, image), -1
    while kept > before:
        before = kept
        for name in dict.fromkeys(kinds[0]):
            rows, columns = (np.flatnonzero([kind == name for kind in known]) for known in kinds)
            if rows.size * columns.size <= _LARGEST:
                traded = _traded(small, large, image, rows, columns)
                found = _kept(small, large, traded)
                kept, image = (found, traded) if found > kept else (kept, image)
    return image


def _traded(small: Topology, large: Topology, image: IntArray, rows: IntArray, columns: IntArray) -> IntArray:
    """Best places for these nodes while all others stay: one assignment problem."""
    from scipy.optimize import linear_sum_assignment

    others = np.setdiff1d(np.arange(small.num_nodes), rows)
    now, then = _joined(small)[rows][:, others], _joined(large)[columns][:, image[others]]
    row, column = linear_sum_assignment((now @ then.T).toarray(), maximize=True)
    traded = image.copy()
    traded[rows[row]] = columns[column]
    return traded


def _joined(t: Topology) -> csr_array[Any, Any]:
    """Which nodes are joined."""
    from scipy.sparse import csr_array

    ends, ones = t.edges.T, np.ones(len(t.edges), dtype=np.int64)
    half = csr_array((ones, (ends[0], ends[1])), shape=(t.num_nodes,) * 2)
    return csr_array(half + half.T)


def _classes(t: Topology) -> list[tuple[str, int]]:
    """Kind and tier of every node."""
    return list(zip([t.kinds[kind] for kind in t.node_kind], t.tier.tolist(), strict=True))


def _places(small: Topology, large: Topology) -> list[IntArray]:
    """Nodes of the larger network for those of the smaller: by kind, tier and turn, then within pods."""
    found, missing = [], []
    for pods in (False, True):
        where = {turn: v for v, turn in enumerate(_turns(large, pods))}
        turns = _turns(small, pods)
        if all(turn in where for turn in turns):
            found.append(np.array([where[turn] for turn in turns], dtype=np.int64))
        else:
            missing.append(next(turn for turn in turns if turn not in where))
    if not found:
        raise ValueError(f"after must have a place for every node of before, got none for {missing[0]}")
    return found


def _turns(t: Topology, pods: bool) -> list[tuple[str, int, int, int]]:
    """Kind, tier and pod of every node, and how many of them come before it."""
    seen: Counter[tuple[str, int, int]] = Counter()
    found, pod = [], t.pod if pods else np.zeros_like(t.pod)
    for group in zip([t.kinds[kind] for kind in t.node_kind], t.tier.tolist(), pod.tolist(), strict=True):
        found.append((*group, seen[group]))
        seen[group] += 1
    return found


def _given(small: Topology, large: Topology, placement: IntArray) -> IntArray:
    """Return the placement if it gives every node a place of its own."""
    image = integers(
        "placement", placement, small.num_nodes, at_most=large.num_nodes - 1, per="before's nodes"
    )
    if np.unique(image).size < image.size:
        raise ValueError(f"placement must give every node a place of its own, got {image.tolist()[:20]}")
    return image
