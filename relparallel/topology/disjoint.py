"""Disjoint routes between two nodes, one by one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Literal

import networkx as nx
import scipy

from relparallel._checks import require_choice
from relparallel.topology.fabric import Topology
from relparallel.topology.routing import ends_of, flow_of_paths

Share = Literal["ends", "nodes"]


def disjoint_path_set(
    topology: Topology | nx.Graph[Any], source: Hashable, target: Hashable, *, share: Share = "ends"
) -> list[list[Hashable]]:
    """As many disjoint paths from source to target as there are, the shortest first.

    Two paths ``share`` nothing but source and target ("ends"), or nodes but no cable ("nodes"; then
    each of several parallel cables carries a path of its own). Paths of an integral maximum flow
    (Dinic); their number is the largest possible, their total length need not be the smallest.

    >>> disjoint_path_set(nx.cycle_graph(5), 0, 2)
    [[0, 1, 2], [0, 4, 3, 2]]
    """
    t, s, d = ends_of(topology, source, target)
    sent = flow_of_paths(t, s, d, require_choice(("ends", "nodes"), share=share)).sent
    paths = sorted(_walks(sent, s, d, t.num_nodes), key=len)
    return [[t.labels[v] for v in path] for path in paths]


def _walks(flow: scipy.sparse.csr_array[Any, Any], s: int, d: int, n: int) -> Iterator[list[int]]:
    """Nodes of the paths of a flow, every unit its own, without the loops that a flow may hold."""
    used = flow.data > 0
    tail, head = (ends[used].tolist() for ends in flow.tocoo().coords)
    onward: dict[int, list[int]] = {}
    for u, v, units in zip(tail, head, flow.data[used].tolist(), strict=True):
        onward.setdefault(u, []).extend([v] * units)
    while onward.get(s):
        path, place = [s % n], {s % n: 0}
        v = onward[s].pop()
        while True:
            if v % n in place:
                for dropped in path[place[v % n] + 1 :]:
                    del place[dropped]
                del path[place[v % n] + 1 :]
            else:
                place[v % n] = len(path)
                path.append(v % n)
            if v % n == d:
                break
            v = onward[v].pop()
        yield path
