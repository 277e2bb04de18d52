"""Layouts of networks whose servers forward: tables of a BCube, containers, circles within circles."""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from relparallel.drawing.shapes import Points, circle, spread, turned
from relparallel.topology import Topology
from relparallel.topology.designs.server_centric import dcell_servers, ficonn_servers


def bcube(t: Topology) -> Points:
    """BCube_0 and BCube_1 as a table of servers; higher levels as rows of switches above the servers."""
    n, k = (int(t.meta.parameters[name]) for name in ("n", "k"))
    servers = np.arange(n ** (k + 1))
    if k > 1:
        across = servers + 0.8 * (servers // n)
        rows = [np.column_stack([across, np.zeros(servers.size)])]
        per_level = n**k
        for level in range(k + 1):
            x = spread(-0.5, across[-1] + 0.5, per_level)
            rows.append(np.column_stack([x, np.full(per_level, (level + 1) * across[-1] / (2 * k + 1))]))
        return np.concatenate(rows)
    column, row = servers % n, -(servers // n)
    ends = np.arange(n**k)
    heads = [np.column_stack([np.full(ends.size, -1.3), -ends])]
    heads += [np.column_stack([ends, np.full(ends.size, 1.3)])] * k
    return np.concatenate([np.column_stack([column, row]), *heads]).astype(np.float64)


def mdcube(t: Topology) -> Points:
    """Containers on a grid: the last dimension to the right, all others downwards."""
    container, dims = bcube(t), t.meta.parameters["dims"]
    pitch = 1.25 * np.ptp(container, axis=0) + 1
    parts = np.split(container, [t.num_hosts // math.prod(dims)])
    row, column = np.divmod(np.arange(math.prod(dims)), dims[-1])
    corner = np.column_stack([column * pitch[0], -row * pitch[1]])[:, None]
    return np.concatenate([(corner + part).reshape(-1, 2) for part in parts])


def copies(t: Topology) -> Points:
    """Copies of a DCell or FiConn on circles within circles, each switch in the middle of its servers."""
    n = int(t.meta.parameters["n"])
    points, radius = circle(n, 1.0), 1.0
    for size, larger in pairwise(sizes(t)):
        parts = larger // size
        ring = radius * 1.5 / math.sin(math.pi / parts)
        points = np.concatenate([turned(points, i / parts) + p for i, p in enumerate(circle(parts, ring))])
        radius += ring
    return np.concatenate([points, points.reshape(-1, n, 2).mean(axis=1)])


def sizes(t: Topology) -> list[int]:
    """Servers of a copy of every level of a DCell or FiConn."""
    n, k = (int(t.meta.parameters[name]) for name in ("n", "k"))
    return list((dcell_servers if t.meta.name == "dcell" else ficonn_servers)(n, k))


def cells(t: Topology) -> NDArray[np.int64]:
    """Cell of the lowest level in which a node of a DCell or FiConn stands."""
    node = np.arange(t.num_nodes)
    return np.where(t.endpoint, node // int(t.meta.parameters["n"]), node - t.num_hosts)


def levels(t: Topology) -> NDArray[np.int64]:
    """Level of every cable: of its switch in a BCube, of the copies that it joins in a DCell or FiConn."""
    if t.meta.name == "bcube":
        return np.asarray(t.tier[t.edges].max(axis=1) - 1)
    ends = np.where(t.endpoint[t.edges], t.edges, t.edges[:, :1])  # a switch belongs to its servers
    apart = [ends[:, 0] // size != ends[:, 1] // size for size in sizes(t)]
    return np.asarray(np.sum(apart, axis=0, dtype=np.int64))
