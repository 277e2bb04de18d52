"""Which node keeps a copy of which checkpoint: never one that falls with its owner."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import Result, require_instance, require_int
from relparallel._notices import told
from relparallel.topology.routing import maximum_flow

MOST_NODES = 10**5
# nodes with the same domains are one class; the network has their square of arcs
MOST_CLASSES = 2048


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class HallViolator:
    """Why no placement exists: owners that need more copies than the others have room for.

    A node j takes at most min(b, number of owners in A that may use it). That the sum over j is
    below m |A| refutes every placement; it is Hall's condition for b-matchings, and the minimum cut
    of the network.
    """

    owners: NDArray[np.int64]  # the set A
    needed: int  # copies, m |A|
    room: int  # copies that all nodes together can take from them

    def __str__(self) -> str:
        first = ", ".join(map(str, self.owners[:6].tolist())) + (
            ", ..." if self.owners.size > 6 else ""
        )
        return (
            f"{self.owners.size} nodes ({first}) need {self.needed} copies outside their domains, "
            f"where there is room for {self.room}"
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ReplicaPlacement(Result):
    """Holders of the copies, or the proof that there are none."""

    domains: Mapping[str, NDArray[np.int64]]  # by kind, number of the domain of every node, [N]
    holders: NDArray[np.int64] | None = None  # nodes that keep the copies of each node, [N, m]
    violator: HallViolator | None = None

    @property
    def feasible(self) -> bool:
        """Whether a placement exists."""
        return self.holders is not None

    def survives(self, kind: str) -> float:
        """Share of the domains of a kind whose failure leaves a copy of every shard."""
        if self.holders is None:
            raise ValueError(
                f"kind can be asked of a placement only, got {kind!r}: {self.violator}"
            )
        known = {"node": np.arange(len(self.holders)), **self.domains}
        if kind not in known:
            raise ValueError(f"kind must be one of {sorted(known)}, got {kind!r}")
        label = known[kind]
        lost = (label[self.holders] == label[:, None]).all(axis=1)
        return 1 - float(np.unique(label[lost]).size / np.unique(label).size)

    def to_frame(self) -> pd.DataFrame:
        """Return a row per node: its domains and the nodes that keep its copies."""
        table = pd.DataFrame(dict(self.domains)).rename_axis("node")
        if self.holders is None:
            return table
        return table.assign(**{f"copy {k + 1}": column for k, column in enumerate(self.holders.T)})


@told
def place_replicas(
    domains: Mapping[str, Any], copies: int = 1, room: int | None = None
) -> ReplicaPlacement:
    """Give the copies of every node's checkpoint to nodes that share no domain with it.

    Parameters
    ----------
    domains : Mapping of str to int array [N]
        By kind (rack, power, switch), the number of the domain in which each node is.
    copies : int
        Copies m of each shard on other nodes.
    room : int, optional
        Copies b that a node can keep; m where omitted, so that all keep equally many.

    Returns
    -------
    ReplicaPlacement
        Holders, or Hall's violator if no placement exists.

    Notes
    -----
    A bipartite b-matching. Nodes with the same domains are one class, so a maximum flow from
    classes to classes decides it: class a sends at most ``|a| |b|`` copies to class b, and only if
    all their domains differ. Given a flow x_ab, the fractional matching ``x_ab / (|a| |b|)`` is
    feasible for the nodes, and vertices of that polytope are integral; dealing the copies in turn, by owners
    and then by holders, finds one. O(N m + flow).

    References
    ----------
    Hall 1935; Ford and Fulkerson 1956; b-matching: Schrijver, "Combinatorial Optimization", 2003,
    chapter 21.

    Examples
    --------
    >>> racks = np.arange(16) // 4
    >>> found = place_replicas({"rack": racks}, copies=2)
    >>> bool((racks[found.holders] != racks[:, None]).all()), int(np.bincount(found.holders.ravel()).max())
    (True, 2)
    """
    labels = _labels(domains)
    nodes = len(next(iter(labels.values())))
    require_int(copies=copies, at_least=1, at_most=nodes)
    room = copies if room is None else require_int(room=room, at_least=1, at_most=10**6)
    kinds, member, sizes = np.unique(
        np.column_stack(list(labels.values())), axis=0, return_inverse=True, return_counts=True
    )
    if len(sizes) > MOST_CLASSES:
        raise ValueError(
            f"domains must have at most {MOST_CLASSES} different combinations, got {len(sizes)}"
        )
    apart = (kinds[:, None] != kinds[None]).all(axis=2)
    flow, reached = _flow(apart, sizes, copies, room)
    if flow.sum() < copies * nodes:
        owners = np.flatnonzero(reached[member.ravel()])  # before the cut
        free = int((sizes * np.minimum(room, sizes[reached] @ apart[reached])).sum())
        violator = HallViolator(owners=owners, needed=copies * owners.size, room=free)
        return ReplicaPlacement(domains=labels, violator=violator)
    return ReplicaPlacement(domains=labels, holders=_dealt(flow, member.ravel(), copies))


def _labels(domains: Any) -> dict[str, NDArray[np.int64]]:
    """Numbers of the domains, checked."""
    if not require_instance(Mapping, domains=domains):
        raise ValueError("domains must have at least one kind, got none")
    labels = {}
    for kind, values in domains.items():
        require_instance(str, domains=kind)
        column = np.asarray(values)
        if column.ndim != 1 or column.dtype.kind not in "iu" or not 2 <= column.size <= MOST_NODES:
            raise TypeError(
                f"domains must give a number for each of 2 or more nodes, got {values!r:.80}"
            )
        if column.min() < 0:
            raise ValueError(f"domains must be numbers >= 0, got {kind}: {column.min()}")
        labels[kind] = column.astype(np.int64)
    if len({column.size for column in labels.values()}) > 1:
        lengths = {kind: column.size for kind, column in labels.items()}
        raise ValueError(f"domains must give a number for each node, got {lengths}")
    return labels


def _flow(
    apart: NDArray[np.bool_], sizes: NDArray[np.int64], copies: int, room: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Largest number of copies from class to class, and the owners before the minimum cut."""
    count = len(sizes)
    start, stop = np.nonzero(apart)
    tail = np.r_[np.zeros(count), 1 + start, 1 + count + np.arange(count)]
    head = np.r_[1 + np.arange(count), 1 + count + stop, np.full(count, 2 * count + 1)]
    most = np.r_[copies * sizes, sizes[start] * sizes[stop], room * sizes]
    most = np.minimum(most, copies * sizes.sum())  # no arc carries more than all copies
    found = maximum_flow(tail, head, most, 2 * count + 2, 0, 2 * count + 1)
    copied = found.sent[1 : count + 1, count + 1 : -1].toarray().astype(np.int64)
    return copied, found.near_side(0)[1 : count + 1]


def _dealt(flow: NDArray[np.int64], member: NDArray[np.int64], copies: int) -> NDArray[np.int64]:
    """Copies of the classes dealt to owners in turn, then to holders in turn."""
    nodes = [np.flatnonzero(member == kind) for kind in range(len(flow))]
    owner, goes = [], []
    for mine, sent in zip(nodes, flow, strict=True):
        goes.append(np.repeat(np.arange(len(flow)), sent))
        owner.append(mine[np.arange(goes[-1].size) % mine.size])
    owners, kinds = np.concatenate(owner), np.concatenate(goes)
    order = np.lexsort((owners, kinds))
    owners, kinds = owners[order], kinds[order]
    turn = np.arange(kinds.size) - np.searchsorted(kinds, kinds)
    holder = np.array(
        [nodes[k][t % nodes[k].size] for k, t in zip(kinds, turn, strict=True)], dtype=np.int64
    )
    return holder[np.argsort(owners, kind="stable")].reshape(-1, copies)
