"""What designs share: equal switches with p servers each, and the index arithmetic of symmetries."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from relparallel.topology._arrays import IntArray, joined
from relparallel.topology.description import Description
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import Design


def switched(*, cables: IntArray, p: int, pod: IntArray, meta: Design) -> Topology:
    """Topology of switches joined by cables, with p servers on each; with 0 the switches are the hosts."""
    count = pod.size
    servers = p * count
    own = joined((np.arange(servers), servers + np.arange(servers) // max(p, 1)))
    node = np.arange(servers + count)
    return Topology.of(
        edges=np.concatenate([own, servers + cables]),
        node_kind=({"server": servers} if p else {}) | {"switch": count},
        transit=node >= servers,
        pod=np.concatenate([np.repeat(pod, p), pod]),
        meta=meta,
    )


def describe_switched(
    *,
    design: str,
    parameters: Mapping[str, Any],
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

    ``ports`` are the numbers of cables of a switch to others that occur; ``distance`` is the sum of the
    distances of a switch to all others, in the mean; ``connectivity`` the disjoint paths of two switches.
    """
    hosts = max(p, 1) * switches
    own = {"server": hosts} if p else {}
    degrees = tuple(p + number for number in ports)
    extra, several = 2 if p else 0, hosts > 1
    return Description(
        design=design,
        parameters=parameters,
        nodes=own | {"switch": switches},
        degrees=dict.fromkeys(own, 1) | {"switch": degrees if len(degrees) > 1 else degrees[0]},
        links=p * switches + cables,
        diameter=None if diameter is None else (diameter + extra) * several,
        diameter_bound=None if bound is None else bound + extra,
        mean_hops=extra + max(p, 1) * distance / (hosts - 1) if several and distance is not None else None,
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
    """Every node goes to the next one along an axis of its block, round the edge; None leaves a block."""
    return flat(b if axis is None else np.roll(b, -1, axis) for b, axis in zip(parts, axes, strict=True))


def rolls(parts: Sequence[IntArray], moves: Iterable[Sequence[int | None]]) -> list[IntArray]:
    """One permutation for each choice of axes."""
    return [rolled(parts, axes) for axes in moves]


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
