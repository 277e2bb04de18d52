"""Where the failures of a design lie: how likely each set of nodes is what one terminal still reaches."""

import numpy as np
from numba import njit


@njit(cache=True)
def credits(edges, down, bought, node, terminals, root):  # type: ignore[no-untyped-def]
    """Probability of failure, and for every link the share of it across which the link would lead.

    ``edges[m, 2]``, ``down[m]``, ``bought[m]``, ``node[n, 2]`` (up, down), ``terminals`` as a bit mask. In a
    failed state the root reaches S; the state stays failed unless a link from S to a node that is up is
    added and is up. 3^(n-1) steps for the probabilities that S is connected.
    """
    n = node.shape[0]
    full = 1 << n
    inside = np.zeros(full)  # sum of log d over bought links within a set
    pair = np.zeros((n, n))
    for e in range(edges.shape[0]):
        if bought[e]:
            cost = np.log(max(down[e], 1e-250))
            pair[edges[e, 0], edges[e, 1]] += cost
            pair[edges[e, 1], edges[e, 0]] += cost
    for s in range(1, full):
        low = 0
        while not (s >> low) & 1:
            low += 1
        rest = s & (s - 1)
        inside[s] = inside[rest]
        for v in range(low + 1, n):
            if (rest >> v) & 1:
                inside[s] += pair[low, v]
    connected = np.zeros(full)
    bit = 1 << root
    failure = node[root, 1]
    share = np.zeros(edges.shape[0])
    shut = np.empty(n)
    for s in range(1, full):
        if not s & bit:
            continue
        others = s & ~bit
        parted = 0.0
        part = (others - 1) & others
        while others:  # every proper subset that holds the root
            t = part | bit
            parted += connected[t] * np.exp(inside[s] - inside[t] - inside[s & ~t])
            if part == 0:
                break
            part = (part - 1) & others
        connected[s] = max(1.0 - parted, 0.0)
        if terminals & ~s == 0:
            continue
        mass = connected[s]
        for v in range(n):
            if (s >> v) & 1:
                mass *= node[v, 0]
            else:
                apart = np.exp(inside[s | (1 << v)] - inside[s])
                closed = node[v, 1] + node[v, 0] * apart
                mass *= closed
                shut[v] = node[v, 0] * apart / closed if closed > 0 else 0.0
        failure += mass
        for e in range(edges.shape[0]):
            u, v = edges[e, 0], edges[e, 1]
            if not bought[e] and (s >> u) & 1 != (s >> v) & 1:
                share[e] += mass * (shut[v] if (s >> u) & 1 else shut[u])
    return failure, share
