"""What designs share: equal switches with p servers each, and index arithmetic of symmetries."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np

from relparallel.topology._arrays import IntArray, joined
from relparallel.topology.description import Description
from relparallel.topology.fabric import Topology

# kind and number of the nodes at one end, and at the other
Cables = tuple[str, IntArray, str, IntArray]


def wired(
    form: Description,
    *cables: Cables,
    pod: Mapping[str, IntArray],
    rail: Mapping[str, IntArray] | None = None,
    tier: Mapping[str, IntArray] | None = None,
    hosts_forward: bool = False,
) -> Topology:
    """Topology of nodes numbered within their kind; cables of kinds it does not have fall away.

    Kinds without a pod or rail have none. Plain hosts are servers; other kinds than the first are
    switches.
    """
    counts = form.nodes
    first = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
    hosts, *others = counts

    def column(values: Mapping[str, IntArray] | None) -> IntArray:
        parts = [(values or {}).get(kind, np.full(count, -1)) for kind, count in counts.items()]
        return np.concatenate([part.ravel() for part in parts])

    return Topology.of(
        edges=joined(
            *((first[a] + u, first[b] + v) for a, u, b, v in cables if {a, b} <= counts.keys())
        ),
        node_kind=counts,
        transit=np.arange(sum(counts.values())) >= (0 if hosts_forward else counts[hosts]),
        tier=None if tier is None else column(tier),
        pod=column(pod),
        rail=column(rail),
        device_class={"host": "server"} | {kind: "switch" for kind in others if kind != "nvswitch"},
        meta=form.meta,
    )


def switched(form: Description, cables: IntArray, pod: IntArray) -> Topology:
    """Switches joined by cables, with as many servers on each; without any they are the hosts."""
    p = form.nodes.get("server", 0) // pod.size
    server = np.arange(p * pod.size)
    return wired(
        form,
        ("server", server, "switch", server // max(p, 1)),
        ("switch", cables[:, 0], "switch", cables[:, 1]),
        pod={"server": np.repeat(pod, p), "switch": pod},
        hosts_forward=p == 0,
    )


def describe_switched(
    *,
    switches: int,
    ports: tuple[int, ...],
    cables: int,
    p: int,
    diameter: int | None = None,
    bound: int | None = None,
    distance: float | None = None,
    connectivity: int | None = None,
) -> Description:
    """Closed forms from those of the graph of switches.

    ``ports`` are the numbers of cables of a switch to others that occur; ``distance`` is the sum of
    the distances of a switch to all others, in the mean; ``connectivity`` the disjoint paths of two
    switches.
    """
    hosts = max(p, 1) * switches
    own = {"server": hosts} if p else {}
    degrees = tuple(p + number for number in ports)
    extra, several = 2 if p else 0, hosts > 1
    return Description(
        nodes=own | {"switch": switches},
        degrees=dict.fromkeys(own, 1) | {"switch": degrees if len(degrees) > 1 else degrees[0]},
        links=p * switches + cables,
        diameter=None if diameter is None else (diameter + extra) * several,
        diameter_bound=None if bound is None else bound + extra,
        mean_hops=extra + max(p, 1) * distance / (hosts - 1)
        if several and distance is not None
        else None,
        host_connectivity=int(several) if p else connectivity,
    )


def blocks(*shapes: tuple[int, ...]) -> list[IntArray]:
    """Consecutive indices arranged in blocks of these shapes."""
    ends = np.cumsum([np.prod(shape, dtype=np.int64) for shape in shapes])
    parts = np.split(np.arange(ends[-1]), ends[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def flat(parts: Iterable[IntArray]) -> IntArray:
    """The permutation that moved blocks make together."""
    return np.concatenate([part.ravel() for part in parts])


def rolled(parts: Sequence[IntArray], axes: Sequence[int | None]) -> IntArray:
    """Each node goes to the next along an axis of its block, round the edge; None keeps a block."""
    return flat(
        b if axis is None else np.roll(b, -1, axis) for b, axis in zip(parts, axes, strict=True)
    )


def rolls(parts: Sequence[IntArray], moves: Iterable[Sequence[int | None]]) -> list[IntArray]:
    """One permutation for each choice of axes."""
    return [rolled(parts, axes) for axes in moves]


def nested(layout: str, **sizes: int) -> list[IntArray]:
    """One permutation per axis of a layout: the next one along it, in every block that it crosses.

    ``"leaf host, leaf, spine"`` are hosts in blocks of a leaf, then the leaves, then the spines.
    """
    tiers = [tier.split() for tier in layout.split(",")]
    parts = blocks(*(tuple(sizes[axis] for axis in tier) for tier in tiers))
    axes = dict.fromkeys(axis for tier in tiers for axis in tier)
    return rolls(
        parts, ([tier.index(axis) if axis in tier else None for tier in tiers] for axis in axes)
    )


def exchange(size: int) -> IntArray:
    """The first two of some exchanged."""
    order = np.arange(size)
    order[:2] = order[:2][::-1]
    return order


def with_own_servers(switch: IntArray, p: int) -> IntArray:
    """Servers, p to a switch and numbered before all switches, that move with them."""
    servers = switch[:, None] * p + np.arange(p)
    return np.concatenate([servers.ravel(), switch.size * p + switch])


def orders(size: int) -> list[IntArray]:
    """All moved on by one, and the first two exchanged: together they give every order."""
    return [np.roll(np.arange(size), -1), exchange(size)]


def alike(kinds: Iterable[Hashable]) -> list[tuple[int, int]]:
    """Neighbouring dimensions of one kind."""
    return [(a, a + 1) for a, (one, other) in enumerate(pairwise(kinds)) if one == other]


def tiered(form: Description, pods: Sequence[IntArray], parents: Sequence[IntArray]) -> Topology:
    """Tiers of nodes, each wired to its parents in the next; pods of all tiers but the last."""
    kinds = list(form.nodes)
    cables = [
        (low, np.arange(len(above)).reshape(-1, *[1] * (above.ndim - 1)), high, above)
        for (low, high), above in zip(pairwise(kinds), parents, strict=True)
    ]
    return wired(form, *cables, pod=dict(zip(kinds, pods, strict=False)))


def between_pods(t: Topology) -> IntArray:
    """Stripes: cables between two pods."""
    return np.asarray(t.pod[t.edges[:, 0]] != t.pod[t.edges[:, 1]], dtype=np.int64)


def within(t: Topology, group: IntArray) -> IntArray:
    """Stripes: cables between two switches of one group."""
    inside = (group[t.edges[:, 0]] == group[t.edges[:, 1]]) & (
        ~t.endpoint[t.edges].any(axis=1) | t.endpoint.all()
    )
    return np.asarray(inside, dtype=np.int64)


def tree_hops(*arity: int) -> tuple[int, float | None]:
    """Diameter and mean distance if hosts of one pod of level i, and no lower one, are 2i apart."""
    inside = [math.prod(arity[:i]) for i in range(len(arity) + 1)]
    pairs: Mapping[int, int] = {2 * i: inside[i] - inside[i - 1] for i in range(1, len(inside))}
    total = sum(hops * count for hops, count in pairs.items())
    diameter = max((hops for hops, count in pairs.items() if count), default=0)
    return diameter, total / (inside[-1] - 1) if inside[-1] > 1 else None
