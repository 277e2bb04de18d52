"""Generalised splitting of Botev, L'Ecuyer, Rubino, Simard and Tuffin.

Every part is down at time 0 and comes up after an exponential time of rate -ln(q); the terminals are
connected from a time S on, and the unreliability is P(S > 1). Levels 0 < g_1 < ... < g_t = 1 are climbed one
at a time: a draw with S > g_1 is a first state; a state at level g_k makes two steps of a Markov chain that
leaves the distribution given S > g_k as it is, and those with S > g_{k+1} are states at the next level. With
N states at the last level, N / 2^(t-1) has the mean P(S > 1): every state at one level has two offspring,
each distributed as given S > g_k if the state was. Replications are independent, so that their variance is
estimated without bias.

A step is a sweep of Gibbs sampling: the time of each part is drawn anew given all others. It has to exceed
g_k if the part would join all terminals at time g_k, else it is free. The levels come from a pilot run that
keeps about half of its states per level; they are fixed before the replications begin.

References
----------
Botev, L'Ecuyer, Rubino, Simard and Tuffin, "Static network reliability estimation via generalized splitting",
INFORMS Journal on Computing 25, 2013.
"""

from typing import Final

import numba
import numpy as np

from relparallel.reliability.sampling.moments import with_sample
from relparallel.reliability.sampling.sampling_network import FloatArray, Network

_FACTOR: Final = 2  # offspring per state: the states at the next level are about as many
_MOST_LEVELS: Final = 1100  # 2^-1100 is below the smallest float


def pilot_levels(network: Network, rng: np.random.Generator, states: int = 512) -> FloatArray:
    """Levels at which about half of the states go on, by adaptive splitting, whose own estimate is biased."""
    levels: FloatArray = _pilot(network, network.rate, states, rng)
    return levels


@numba.njit(cache=True)
def sample_splitting(network, levels, samples, rng):  # type: ignore[no-untyped-def]
    """Draw and average replications."""
    rate, last = network.rate, len(levels) - 1
    nodes_fail = rate[len(network.ends) :].sum() > 0.0
    states, left = np.empty((len(levels), len(rate))), np.zeros(len(levels), np.int64)
    labels, held, queue = _scratch(network, len(levels))
    scale = float(_FACTOR) ** -last
    mean, square, cube, work = 0.0, 0.0, 0.0, 0
    for sample in range(samples):
        reached, depth, work = 0, 0, work + len(rate)
        _fresh(rate, states[0], rng)
        work += _label(network, states[0], levels[0], labels[0], held[0], queue)
        depth = -1 if _connected(network, labels[0], held[0]) else 0
        reached += depth == last
        left[0] = _FACTOR
        while depth >= 0 and last > 0:
            if left[depth] == 0:
                depth -= 1
                continue
            left[depth] -= 1
            here, above = states[depth], depth + 1
            work += _sweep(network, rate, here, levels[depth], labels[depth], held[depth], queue, rng)
            if nodes_fail:
                work += _label(network, here, levels[above], labels[above], held[above], queue)
            else:
                work += _rise(network, here, levels[depth : above + 1], labels, held, queue, depth)
            if _connected(network, labels[above], held[above]):
                continue
            if above == last:
                reached += 1
            else:
                states[above] = here
                left[above] = _FACTOR
                depth = above
        value = reached * scale
        mean, square, cube = with_sample(mean, square, cube, sample, value)
    return mean, square, cube, work


@numba.njit(cache=True)
def _scratch(network, levels):  # type: ignore[no-untyped-def]
    """Per level: the label of every node (-1: down), and nodes and terminals under every label; a queue.

    Labels below n are those of a flood; splits of components take new ones, whose next is in the last place.
    """
    n = len(network.terminal)
    return (
        np.empty((levels, n), np.int64),
        np.zeros((levels, 4 * n + 64, 2), np.int64),
        np.empty(n, np.int64),
    )


@numba.njit(cache=True)
def _fresh(rate, times, rng):  # type: ignore[no-untyped-def]
    """Draw all times; parts that never fail are up from the beginning."""
    for part in range(len(rate)):
        times[part] = rng.standard_exponential() / rate[part] if rate[part] > 0.0 else 0.0


@numba.njit(cache=True)
def _connected(network, labels, held):  # type: ignore[no-untyped-def]
    """Whether one component holds all terminals."""
    label, wanted = -1, 0
    for v in range(len(labels)):
        if network.terminal[v]:
            label = labels[v]
            wanted += 1
    return held[label, 1] == wanted


@numba.njit(cache=True)
def _label(network, times, level, labels, held, queue):  # type: ignore[no-untyped-def]
    """Give every component of what is up at a time a label below n; the work."""
    n, m, work = len(labels), len(network.ends), 0
    labels[:] = -1
    for v in range(n):
        if labels[v] < 0 and times[m + v] <= level:
            work += _flood(network, times, level, labels, held, queue, v, v)
    held[-1, 0] = n
    return work + n


@numba.njit(cache=True)
def _flood(network, times, level, labels, held, queue, start, label):  # type: ignore[no-untyped-def]
    """Label everything that is connected with a node, and count it; the work."""
    m, terminals, work, begin, end = len(network.ends), 0, 0, 0, 1
    queue[0], labels[start] = start, label
    while begin < end:
        x = queue[begin]
        begin += 1
        terminals += network.terminal[x]
        for k in range(network.first[x], network.first[x + 1]):
            link = network.around[k]
            y = network.ends[link, 0] + network.ends[link, 1] - x
            if times[link] <= level and labels[y] != label and times[m + y] <= level:
                labels[y] = label
                queue[end] = y
                end += 1
        work += network.first[x + 1] - network.first[x]
    held[label, 0], held[label, 1] = end, terminals
    return work


@numba.njit(cache=True)
def _sweep(network, rate, times, level, labels, held, queue, rng):  # type: ignore[no-untyped-def]
    """Draw every part anew, given that terminals are apart at the level; labels follow; the work."""
    n, m, wanted, work = len(labels), len(network.ends), network.terminal.sum(), len(rate)
    for part in range(len(rate)):
        if rate[part] == 0.0:
            continue
        was_up = times[part] <= level
        joined = 0 if was_up else _would_join(network, times, level, labels, held, part)
        times[part] = rng.standard_exponential() / rate[part] + (level if joined == wanted else 0.0)
        if was_up == (times[part] <= level):
            continue
        if held[-1, 0] + 2 * n >= len(held) - 1:
            work += _label(network, times, level, labels, held, queue)
        elif part >= m:
            work += _node_changed(network, times, level, labels, held, queue, part - m)
        elif was_up:
            work += _link_went_down(network, times, level, labels, held, queue, part)
        else:
            work += _link_came_up(network, times, level, labels, held, queue, part)
    return work


@numba.njit(cache=True)
def _would_join(network, times, level, labels, held, part):  # type: ignore[no-untyped-def]
    """Terminals that would be in one component if a part that is down came up."""
    m = len(network.ends)
    if part < m:
        one, two = labels[network.ends[part, 0]], labels[network.ends[part, 1]]
        return 0 if one < 0 or two < 0 or one == two else held[one, 1] + held[two, 1]
    joined, first, last = 0, network.first[part - m], network.first[part - m + 1]
    for k in range(first, last):
        label = _beyond(network, times, level, labels, part - m, k)
        fresh = label >= 0
        for j in range(first, k):
            fresh = fresh and _beyond(network, times, level, labels, part - m, j) != label
        if fresh:
            joined += held[label, 1]
    return joined


@numba.njit(cache=True)
def _beyond(network, times, level, labels, v, k):  # type: ignore[no-untyped-def]
    """Label of the node behind the k-th link in ``around``, -1 if the link or the node is down."""
    link = network.around[k]
    if times[link] > level:
        return -1
    return labels[network.ends[link, 0] + network.ends[link, 1] - v]


@numba.njit(cache=True)
def _spread(network, times, level, labels, queue, start, old, label, wanted):  # type: ignore[no-untyped-def]
    """Give what is connected with a node and has the old label a new one, until a wanted node has it.

    Returns the number of nodes with the new label, which are the first of ``queue``, and the work.
    """
    begin, end, work = 0, 1, 0
    queue[0], labels[start] = start, label
    while begin < end:
        x = queue[begin]
        begin += 1
        for k in range(network.first[x], network.first[x + 1]):
            link = network.around[k]
            y = network.ends[link, 0] + network.ends[link, 1] - x
            work += 1
            if times[link] <= level and labels[y] == old:
                labels[y] = label
                queue[end] = y
                end += 1
                if y == wanted:
                    return end, work
    return end, work


@numba.njit(cache=True)
def _link_went_down(network, times, level, labels, held, queue, part):  # type: ignore[no-untyped-def]
    """Split a component unless its two ends are still connected; the work."""
    u, v = network.ends[part, 0], network.ends[part, 1]
    old, label = labels[u], held[-1, 0]
    if old < 0 or labels[v] < 0:
        return 1
    end, work = _spread(network, times, level, labels, queue, u, old, label, v)
    if labels[v] == label:  # undo
        for k in range(end):
            labels[queue[k]] = old
        return work
    held[label, 0], held[label, 1] = end, 0
    for k in range(end):
        held[label, 1] += network.terminal[queue[k]]
    held[old, 0] -= end
    held[old, 1] -= held[label, 1]
    held[-1, 0] += 1
    return work


@numba.njit(cache=True)
def _link_came_up(network, times, level, labels, held, queue, part):  # type: ignore[no-untyped-def]
    """Join two components: the smaller one takes the label of the larger; the work."""
    u, v = network.ends[part, 0], network.ends[part, 1]
    if labels[u] < 0 or labels[v] < 0 or labels[u] == labels[v]:
        return 1
    if held[labels[u], 0] > held[labels[v], 0]:
        u, v = v, u
    old, label = labels[u], labels[v]
    _, work = _spread(network, times, level, labels, queue, u, old, label, np.int64(-1))
    held[label, 0] += held[old, 0]
    held[label, 1] += held[old, 1]
    return work


@numba.njit(cache=True)
def _rise(network, times, levels, labels, held, queue, depth):  # type: ignore[no-untyped-def]
    """Labels of the next level where no node fails, until all terminals are connected; the work."""
    above, wanted, work = depth + 1, network.terminal.sum(), len(network.ends)
    labels[above], held[above] = labels[depth], held[depth]
    for link in range(len(network.ends)):
        if levels[0] < times[link] <= levels[1]:
            work += _link_came_up(network, times, levels[1], labels[above], held[above], queue, link)
            if held[above, labels[above, network.ends[link, 0]], 1] == wanted:
                break
    return work


@numba.njit(cache=True)
def _node_changed(network, times, level, labels, held, queue, v):  # type: ignore[no-untyped-def]
    """Flood everything around a node that went up or down; the work."""
    m, start, work = len(network.ends), held[-1, 0], 1
    labels[v] = -1
    if times[m + v] <= level:
        work = _flood(network, times, level, labels, held, queue, v, start)
        held[-1, 0] += 1
        return work
    for k in range(network.first[v], network.first[v + 1]):
        link = network.around[k]
        x = network.ends[link, 0] + network.ends[link, 1] - v
        if 0 <= labels[x] < start:
            work += _flood(network, times, level, labels, held, queue, x, held[-1, 0])
            held[-1, 0] += 1
    return work


@numba.njit(cache=True)
def _time_connected(network, times, root):  # type: ignore[no-untyped-def]
    """When the terminals become connected: links in the order in which they and their ends are up."""
    m, n = len(network.ends), len(root)
    ready = np.empty(m)
    for link in range(m):
        u, v = network.ends[link, 0], network.ends[link, 1]
        ready[link] = max(times[link], times[m + u], times[m + v])
    held = network.terminal.astype(np.int64)
    wanted = held.sum()
    for v in range(n):
        root[v] = v
    for link in np.argsort(ready):
        u, v = network.ends[link, 0], network.ends[link, 1]
        while root[u] != u:
            root[u] = root[root[u]]
            u = root[u]
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        if u != v:
            root[u] = v
            held[v] += held[u]
            if held[v] == wanted:
                return ready[link]
    return np.inf


@numba.njit(cache=True)
def _pilot(network, rate, count, rng):  # type: ignore[no-untyped-def]
    """Levels of an adaptive run; see `pilot_levels`."""
    states, reached = np.empty((count, len(rate))), np.empty(count)
    labels, held, queue = _scratch(network, np.int64(1))
    levels, depth = np.empty(_MOST_LEVELS), 0
    for i in range(count):
        _fresh(rate, states[i], rng)
        reached[i] = _time_connected(network, states[i], queue)
    while depth < _MOST_LEVELS - 1:
        order = np.argsort(reached)
        level = reached[order[count - count // _FACTOR - 1]]
        if level >= 1.0:
            break
        levels[depth] = level
        depth += 1
        alive = order[count - count // _FACTOR :]
        for k in range(count - len(alive)):
            states[order[k]] = states[alive[k % len(alive)]]
        for i in range(count):
            _label(network, states[i], level, labels[0], held[0], queue)
            _sweep(network, rate, states[i], level, labels[0], held[0], queue, rng)
            reached[i] = _time_connected(network, states[i], queue)
    levels[depth] = 1.0
    return levels[: depth + 1].copy()
