"""Two estimators that look for the likeliest cuts: recursive variance reduction, and zero variance.

*Recursive.* Take the most likely cut, parts 1..d. All of them are down with the chance Q = q_1 ...
q_d; else one is the first that is up, number i with the chance P_i = q_1 ... q_{i-1} p_i. Cancela
and El Khadiri draw i with the chance P_i / (1 - Q), fix the parts 1..i, and go on with the network
G_i that is left. Where failures are rare this draws i = 1 almost always and misses what the others
hold; so i is drawn with a chance r_i proportional to P_i u_i, u_i being the sum over the most
likely cuts of G_i, and

    Z(G) = Q + (P_i / r_i) Z(G_i),    Z = 1 where the terminals are separated, 0 where they are connected.

One time in ten i is drawn in proportion to P_i alone, which bounds the ratio P_i / r_i. By
induction E Z(G) = Q + sum_i P_i U(G_i) = U(G), for u_i is zero only where U(G_i) is: unbiased.
Every sample is at least the chance of the most likely cut, so that none is lost however rare
failures are.

*Zero variance.* Parts are drawn one after the other. If the unreliability u0 and u1 of the network
with the next part down and up were known, drawing "down" with the chance q u0 / (q u0 + p u1) would
give every sample the same weight. In their place stand sums over the most likely cuts. The weight
of a sample is the product of true over drawn chances; its mean is the unreliability for any
approximation that is zero only where the truth is. Neither state is drawn with a chance below 0.05
while both can lead to a failure, so that no weight grows along a sample. The next part is always
one of the most likely cut: as all q fall to zero together, the dominant cuts decide u0 and u1 up to
constant factors, and the relative error stays bounded.

*Likely cuts.* One maximum flow a pair of terminals: a part that can fail carries at most -ln(q),
one that is up any flow, one that is down none; the smallest cut has the largest chance. A node that
can fail is an arc.

References
----------
Cancela and El Khadiri, "A recursive variance-reduction algorithm for estimating
communication-network reliability", IEEE Transactions on Reliability 44, 1995. Cancela, El Khadiri,
Rubino and Tuffin, "Balanced and approximate zero-variance recursive estimators for the network
reliability problem", ACM Transactions on Modeling and Computer Simulation 25, 2015. L'Ecuyer,
Rubino, Saggadi and Tuffin, "Approximate zero-variance importance sampling for static network
reliability estimation", IEEE Transactions on Reliability 60, 2011.
"""

import math
from typing import Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.sampling.moments import with_sample
from relparallel.reliability.sampling.sampling_network import FloatArray, IntArray, Network

_SMALL: Final = 1e-11  # capacities below are rounding


_PLAIN: Final = 0.1
_LEAST: Final = 0.05


@numba.njit(cache=True)
def sample_recursive(network, flow, samples, rng):  # type: ignore[no-untyped-def]
    """Draw and average samples of Z."""
    space, weight = workspace(flow), flow.weight.copy()
    shares, cut = np.empty(len(weight)), np.empty(len(weight), np.int64)
    mean, square, cube, work = 0.0, 0.0, 0.0, 0
    for sample in range(samples):
        weight[:] = flow.weight
        value, left = 0.0, 1.0
        chance, size, looked = likely_cuts(flow, weight, space)
        while size > 0 and left > 0.0:
            cut[:size] = space.cut[:size]
            all_down, ratio, more = _first_up(network, flow, weight, space, cut[:size], shares, rng)
            value += left * all_down
            left *= ratio
            work += looked + more
            if left > 0.0:
                chance, size, looked = likely_cuts(flow, weight, space)
        work += looked
        value += left * chance
        mean, square, cube = with_sample(mean, square, cube, sample, value)
    return mean, square, cube, work


@numba.njit(cache=True)
def _first_up(network, flow, weight, space, cut, shares, rng):  # type: ignore[no-untyped-def]
    """Draw the first part of the cut that is up and fix it and those before.

    Returns the chance that all are down, the chance of what was drawn over that of drawing it, and
    the work.
    """
    some, down, work = 0.0, 1.0, 0
    for k in range(len(cut)):
        weight[cut[k]] = flow.most
        chance, _, looked = likely_cuts(flow, weight, space)
        weight[cut[k]] = 0.0
        work += looked
        shares[k] = down * network.up[cut[k]] * chance
        some += shares[k]
        down *= network.down[cut[k]]
    if some == 0.0:
        return down, 0.0, work
    _mix(network, cut, shares, some)
    aim, before, drawn = rng.random(), 1.0, 0
    for k in range(len(cut)):
        if shares[k] > 0.0:
            drawn = k
        aim -= shares[k]
        if aim < 0.0:
            break
    for k in range(drawn):
        before *= network.down[cut[k]]
    for k in range(drawn, len(cut)):
        weight[cut[k]] = flow.most if k == drawn else flow.weight[cut[k]]
    return down, before * network.up[cut[drawn]] / shares[drawn], work


@numba.njit(cache=True)
def _mix(network, cut, shares, some):  # type: ignore[no-untyped-def]
    """Turn shares that add up to ``some`` into the chances of drawing each part."""
    plain, before = 0.0, 1.0
    for k in range(len(cut)):
        plain += before * network.up[cut[k]] if shares[k] > 0.0 else 0.0
        before *= network.down[cut[k]]
    before = 1.0
    for k in range(len(cut)):
        if shares[k] > 0.0:
            own = before * network.up[cut[k]] / plain
            shares[k] = (1.0 - _PLAIN) * shares[k] / some + _PLAIN * own
        before *= network.down[cut[k]]


@numba.njit(cache=True)
def sample_zero_variance(network, flow, samples, rng):  # type: ignore[no-untyped-def]
    """Draw and average weights."""
    space, weight = workspace(flow), flow.weight.copy()
    mean, square, cube, work = 0.0, 0.0, 0.0, 0
    for sample in range(samples):
        weight[:] = flow.weight
        value, looked = _weight(network, flow, weight, space, rng)
        work += looked
        mean, square, cube = with_sample(mean, square, cube, sample, value)
    return mean, square, cube, work


@numba.njit(cache=True)
def _weight(network, flow, weight, space, rng):  # type: ignore[no-untyped-def]
    """Draw parts until the terminals are separated; the weight of the sample, and the work."""
    chance, size, work = likely_cuts(flow, weight, space)
    ratio = 1.0
    while size > 0:
        part = space.cut[0]
        up, down = network.up[part], network.down[part]
        weight[part] = flow.most
        if_up, _, looked = likely_cuts(flow, weight, space)
        up_part = space.cut[0]
        weight[part] = 0.0
        if_down, size, more = likely_cuts(flow, weight, space)
        work += looked + more
        drawn = down * if_down / (down * if_down + up * if_up)
        if if_up > 0.0:
            drawn = _LEAST + (1.0 - 2.0 * _LEAST) * drawn
        if rng.random() < drawn:
            ratio *= down / drawn
        else:
            ratio *= up / (1.0 - drawn)
            weight[part] = flow.most
            size, space.cut[0] = 1, up_part
        chance = 1.0
    return ratio * chance, work


class FlowGraph(NamedTuple):
    """Arcs a and a ^ 1 are each other's reverse; arc a leaves ``head[a ^ 1]``."""

    head: IntArray
    part: IntArray
    open: NDArray[np.bool_]
    first: IntArray
    around: IntArray
    weight: FloatArray
    most: float
    sources: IntArray
    sinks: IntArray


class Workspace(NamedTuple):
    """Scratch of `likely_cuts`, made once per kernel call."""

    residual: FloatArray
    parent: IntArray
    queue: IntArray
    marked: NDArray[np.bool_]
    cut: IntArray
    keys: NDArray[np.uint64]
    seen: NDArray[np.uint64]


def flow_graph(network: Network) -> FlowGraph:
    """Arcs of a network."""
    m, n = len(network.ends), len(network.terminal)
    weight = np.full(m + n, np.inf)
    weight[network.rate > 0] = network.rate[network.rate > 0]
    most = 1.0 + weight[np.isfinite(weight)].sum()
    fails = network.down[m:] > 0
    exits = np.arange(n)
    exits[fails] = n + np.arange(fails.sum())
    split = np.flatnonzero(fails)
    u, v = network.ends.T
    both = ~(fails[u] | fails[v])  # perfect ends: one arc and its reverse carry either direction
    one = ~both
    tail = np.concatenate([split, u[both], exits[u[one]], exits[v[one]]])
    head = np.concatenate([exits[split], v[both], v[one], u[one]])
    links = np.arange(m)
    part = np.concatenate([m + split, links[both], links[one], links[one]])
    two_way = np.zeros(len(part), dtype=bool)
    two_way[len(split) : len(split) + both.sum()] = True
    leaves = np.column_stack([tail, head]).ravel()
    vertices = n + len(split)
    first = np.zeros(vertices + 1, dtype=np.int64)
    np.cumsum(np.bincount(leaves, minlength=vertices), out=first[1:])
    terminals = np.flatnonzero(network.terminal)
    return FlowGraph(
        head=np.column_stack([head, tail]).ravel(),
        part=np.repeat(part, 2),
        open=np.column_stack([np.ones_like(two_way), two_way]).ravel(),
        first=first,
        around=np.argsort(leaves, kind="stable"),
        weight=np.minimum(weight, most),
        most=float(most),
        sources=np.full(len(terminals) - 1, terminals[0]),
        sinks=terminals[1:],
    )


@numba.njit(cache=True)
def workspace(flow):  # type: ignore[no-untyped-def]
    """Scratch for one kernel call."""
    vertices, parts = len(flow.first) - 1, len(flow.weight)
    keys = np.empty(parts, np.uint64)
    state = np.uint64(0x9E3779B97F4A7C15)
    for part in range(parts):  # splitmix64: a key per part, a cut's key is the sum of its parts'
        state += np.uint64(0x9E3779B97F4A7C15)
        mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        keys[part] = mixed ^ (mixed >> np.uint64(31))
    return Workspace(
        np.empty(len(flow.head)),
        np.empty(vertices, np.int64),
        np.empty(vertices, np.int64),
        np.zeros(parts, np.bool_),
        np.empty(parts, np.int64),
        keys,
        np.empty(2 * len(flow.sinks), np.uint64),
    )


@numba.njit(cache=True)
def likely_cuts(flow, weight, space):  # type: ignore[no-untyped-def]
    """Summed chances of the likeliest cuts nearest either terminal, by one maximum flow a pair."""
    best, size, total, found, work = flow.most, 0, 0.0, 0, 0
    for k in range(len(flow.sinks)):
        inseparable, looked = _send(flow, weight, space, flow.sources[k], flow.sinks[k])
        work += looked
        if inseparable:
            continue
        for side in range(2):
            if side == 1:
                work += _search_back(flow, space, flow.sinks[k])
            value, count, key = _read_cut(flow, weight, space)
            work += len(flow.head)
            if count == 0:
                return 1.0, 0, work
            fresh = True
            for j in range(found):
                fresh = fresh and space.seen[j] != key
            if not fresh:
                continue
            space.seen[found] = key
            found += 1
            total += math.exp(-value)
            if value < best:
                best, size = value, count
                space.cut[:count] = space.cut[len(space.cut) - count :][::-1].copy()
    return min(total, 1.0), size, work


@numba.njit(cache=True)
def _send(flow, weight, space, source, sink):  # type: ignore[no-untyped-def]
    """Send flow on shortest paths until no more fits; whether nothing can stop it, and the work."""
    residual, parent, queue = space.residual, space.parent, space.queue
    for arc in range(len(residual)):
        residual[arc] = weight[flow.part[arc]] if flow.open[arc] else 0.0
    sent, work = 0.0, len(residual)
    while sent < flow.most - _SMALL:
        parent[:] = -1
        parent[source] = -2
        queue[0], start, end = source, 0, 1
        while start < end and parent[sink] == -1:
            x = queue[start]
            start += 1
            for k in range(flow.first[x], flow.first[x + 1]):
                arc = flow.around[k]
                y = flow.head[arc]
                if parent[y] == -1 and residual[arc] > _SMALL:
                    parent[y] = arc
                    queue[end] = y
                    end += 1
            work += flow.first[x + 1] - flow.first[x]
        if parent[sink] == -1:
            return False, work
        room, y = flow.most, sink
        while y != source:
            room = min(room, residual[parent[y]])
            y = flow.head[parent[y] ^ 1]
        y = sink
        while y != source:
            residual[parent[y]] -= room
            residual[parent[y] ^ 1] += room
            y = flow.head[parent[y] ^ 1]
        sent += room
    return True, work


@numba.njit(cache=True)
def _search_back(flow, space, sink):  # type: ignore[no-untyped-def]
    """Mark all vertices from which nothing more can be sent to the sink as reached; the work."""
    parent, queue, work = space.parent, space.queue, 0
    parent[:] = -2
    parent[sink] = -1
    queue[0], start, end = sink, 0, 1
    while start < end:
        y = queue[start]
        start += 1
        for k in range(flow.first[y], flow.first[y + 1]):
            arc = flow.around[k] ^ 1
            x = flow.head[arc ^ 1]
            if parent[x] == -2 and space.residual[arc] > _SMALL:
                parent[x] = -1
                queue[end] = x
                end += 1
        work += flow.first[y + 1] - flow.first[y]
    return work


@numba.njit(cache=True)
def _read_cut(flow, weight, space):  # type: ignore[no-untyped-def]
    """Parts bounding what the last search reached: weight, number, key; listed from the end."""
    value, count, key = 0.0, 0, np.uint64(0)
    last = len(space.cut) - 1
    for arc in range(len(flow.head)):
        part = flow.part[arc]
        if (
            flow.open[arc]
            and weight[part] > 0.0
            and not space.marked[part]
            and space.parent[flow.head[arc ^ 1]] != -1
            and space.parent[flow.head[arc]] == -1
        ):
            space.marked[part] = True
            space.cut[last - count] = part
            value += weight[part]
            key += space.keys[part]
            count += 1
    for k in range(count):
        space.marked[space.cut[last - k]] = False
    return value, count, key
