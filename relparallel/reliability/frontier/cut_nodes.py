"""Cut a network where single nodes hold it together: blocks that only share nodes decide independently.

A depth-first search from a terminal finds the blocks (Hopcroft and Tarjan). A block lies on a path between
terminals if and only if the part of the search tree below its topmost node holds a terminal: the root is one,
on the other side. Every other block goes.

References
----------
Hopcroft and Tarjan, "Algorithm 447: efficient algorithms for graph manipulation", Communications of the ACM
16, 1973.
"""

from __future__ import annotations

import numba
import numpy as np

from relparallel.reliability.frontier.reductions import make_terminal


@numba.njit(cache=True)
def split(network, tape, root, cut):  # type: ignore[no-untyped-def]
    """Assign every link on a path between terminals to its block.

    The nodes where these blocks meet become terminals, in place: they must be up.
    """
    n, m = len(network.degree), len(network.link)
    found, low = np.full(n, -1, np.int64), np.zeros(n, np.int64)  # order of discovery; what is reached back
    entry = np.full(n, -1, np.int64)  # half-link, at the node itself, by which it was found
    turn = network.head.copy()  # half-link to look at next
    below = np.zeros(n, np.int64)  # terminals in the search tree from here on down
    owner = np.full(n, -1, np.int64)  # block in which the node is not the topmost
    path, open_nodes = np.empty(n, np.int64), np.empty(n, np.int64)
    path[0], depth, waiting, blocks, time = root, 1, 0, 0, 1
    found[root], below[root] = 0, 1
    while depth > 0:
        v = path[depth - 1]
        half = turn[v]
        if half >= 0:
            turn[v] = network.after[half]
            u = network.end[half ^ 1]
            if found[u] < 0:
                found[u], low[u], entry[u] = time, time, half ^ 1
                below[u] = network.terminal[u]
                time += 1
                path[depth], open_nodes[waiting] = u, u
                depth += 1
                waiting += 1
            elif half != entry[v]:
                low[v] = min(low[v], found[u])
            continue
        depth -= 1
        if depth == 0:
            break
        above = path[depth - 1]
        below[above] += below[v]
        low[above] = min(low[above], low[v])
        if low[v] < found[above]:
            continue
        while True:  # v closes a block under ``above``
            waiting -= 1
            owner[open_nodes[waiting]] = blocks if below[v] > 0 else -1
            if open_nodes[waiting] == v:
                break
        if below[v] > 0:
            blocks += 1
            if cut:
                make_terminal(network, tape, above)
    block = np.full(m, -1, np.int64)
    for e in range(m):
        u, v = network.end[2 * e], network.end[2 * e + 1]
        if network.degree[u] > 0 and network.degree[v] > 0:
            block[e] = owner[v] if found[v] > found[u] else owner[u]
            if not cut:
                block[e] = 0 if found[u] >= 0 else -1
    return block, blocks if cut else 1, below[root]
