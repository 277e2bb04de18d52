"""Generalised splitting of Botev, L'Ecuyer, Rubino, Simard and Tuffin.

Every part is down at time 0 and comes up after an exponential time of rate -ln(q); the terminals
are connected from a time S on, and the unreliability is P(S > 1). Levels 0 < g_1 < ... < g_t = 1
are climbed one at a time: a draw with S > g_1 is a first state; a state at level g_k makes two
steps of a Markov chain that leaves the distribution given S > g_k as it is, and those with S >
g_{k+1} are states at the next level. With N states at the last level, N / 2^(t-1) has the mean P(S
> 1): every state at one level has two offspring, each distributed as given S > g_k if the state
was. Replications are independent, so that their variance is estimated without bias.

A step is a sweep of Gibbs sampling: the time of each part is drawn anew given all others. It has to
exceed g_k if the part would join all terminals at time g_k, else it is free. The levels come from a
pilot run that keeps about half of its states per level; they are fixed before the replications
begin.

References
----------
Botev, L'Ecuyer, Rubino, Simard and Tuffin, "Static network reliability estimation via generalized
splitting", INFORMS Journal on Computing 25, 2013.
"""

from typing import Final

import numba
import numpy as np

from relparallel.reliability.sampling.moments import with_sample

_FACTOR: Final = 2  # offspring per state: the states at the next level are about as many
_MOST_LEVELS: Final = 1100  # 2^-1100 is below the smallest float


@numba.njit(cache=True)
def sample_splitting(network, levels, samples, rng):  # type: ignore[no-untyped-def]
    """Draw and average replications."""
    rate, last = network.rate, len(levels) - 1
    states, left = np.empty((len(levels), len(rate))), np.zeros(len(levels), np.int64)
    space, scale = _space(network), float(_FACTOR) ** -last
    mean, square, cube, work = 0.0, 0.0, 0.0, 0
    for sample in range(samples):
        reached, work = 0, work + len(rate)
        _fresh(rate, states[0], rng)
        depth = -1 if _label(network, states[0], levels[0], *space) else 0
        reached += depth == last
        left[0] = _FACTOR
        while depth >= 0 and last > 0:
            if left[depth] == 0:
                depth -= 1
                continue
            left[depth] -= 1
            here, above = states[depth], depth + 1
            work += _sweep(network, rate, here, levels[depth], space, rng) + len(rate)
            if _label(network, here, levels[above], *space):
                continue
            if above == last:
                reached += 1
            else:
                states[above] = here
                left[above] = _FACTOR
                depth = above
        mean, square, cube = with_sample(mean, square, cube, sample, reached * scale)
    return mean, square, cube, work


@numba.njit(cache=True)
def _space(network):  # type: ignore[no-untyped-def]
    """Room for the component of every node (-1: down), and for the terminals in every component."""
    return np.empty(len(network.terminal), np.int64), np.empty(len(network.terminal), np.int64)


@numba.njit(cache=True)
def _fresh(rate, times, rng):  # type: ignore[no-untyped-def]
    """Draw all times; parts that never fail are up from the beginning."""
    for part in range(len(rate)):
        times[part] = rng.standard_exponential() / rate[part] if rate[part] > 0.0 else 0.0


@numba.njit(cache=True)
def _root(root, v):  # type: ignore[no-untyped-def]
    """The node that stands for a component, with shorter ways to it from now on."""
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v


@numba.njit(cache=True)
def _label(network, times, level, root, held):  # type: ignore[no-untyped-def]
    """Find the components of what is up at a time; whether one of them holds all terminals."""
    m, wanted, most = len(network.ends), 0, 0
    for v in range(len(root)):
        root[v], held[v] = v if times[m + v] <= level else -1, network.terminal[v]
        wanted += network.terminal[v]
    for link in range(m):
        u, v = network.ends[link, 0], network.ends[link, 1]
        if times[link] <= level and root[u] >= 0 and root[v] >= 0:
            u, v = _root(root, u), _root(root, v)
            if u != v:
                root[u] = v
                held[v] += held[u]
                most = max(most, held[v])
    for v in range(len(root)):
        if root[v] >= 0:
            root[v] = _root(root, v)
    return most == wanted


@numba.njit(cache=True)
def _sweep(network, rate, times, level, space, rng):  # type: ignore[no-untyped-def]
    """Draw every part anew, given that terminals are apart at the level; the work."""
    root, held = space
    wanted, work, stale = network.terminal.sum(), len(rate), True
    for part in range(len(rate)):
        if rate[part] == 0.0:
            continue
        was_up, joined = times[part] <= level, 0
        if not was_up:
            if stale:
                _label(network, times, level, root, held)
                work, stale = work + len(rate), False
            joined = _would_join(network, times, level, root, held, part)
        times[part] = rng.standard_exponential() / rate[part] + (level if joined == wanted else 0.0)
        stale |= was_up != (times[part] <= level)
    return work


@numba.njit(cache=True)
def _would_join(network, times, level, root, held, part):  # type: ignore[no-untyped-def]
    """Terminals that would be in one component if a part that is down came up."""
    m, ends = len(network.ends), network.ends
    if part < m:
        one, two = root[ends[part, 0]], root[ends[part, 1]]
        return 0 if one < 0 or two < 0 or one == two else held[one] + held[two]
    joined, first, last = 0, network.first[part - m], network.first[part - m + 1]
    for k in range(first, last):
        link = network.around[k]
        label = root[ends[link, 0] + ends[link, 1] - (part - m)] if times[link] <= level else -1
        fresh = label >= 0
        for j in range(first, k):
            other = network.around[j]
            fresh &= (
                times[other] > level or root[ends[other, 0] + ends[other, 1] - (part - m)] != label
            )
        if fresh:
            joined += held[label]
    return joined


@numba.njit(cache=True)
def _time_connected(network, times, root, held):  # type: ignore[no-untyped-def]
    """When the terminals become connected: the first time by which they are, by bisection."""
    order = np.sort(times)
    low, high = -1, len(order) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if _label(network, times, order[middle], root, held):
            high = middle
        else:
            low = middle
    return order[high]


@numba.njit(cache=True)
def pilot_levels(network, rate, count, rng):  # type: ignore[no-untyped-def]
    """Levels where about half the states go on, by adaptive splitting (its estimate is biased)."""
    states, reached, space = np.empty((count, len(rate))), np.empty(count), _space(network)
    levels, depth = np.empty(_MOST_LEVELS), 0
    for i in range(count):
        _fresh(rate, states[i], rng)
        reached[i] = _time_connected(network, states[i], *space)
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
            _sweep(network, rate, states[i], level, space, rng)
            reached[i] = _time_connected(network, states[i], *space)
    levels[depth] = 1.0
    return levels[: depth + 1].copy()
