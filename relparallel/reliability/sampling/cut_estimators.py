"""Two estimators that look for the most likely cuts: recursive variance reduction, and zero variance.

*Recursive.* Take the most likely cut, parts 1..d. All of them are down with the chance Q = q_1 ... q_d; else
one is the first that is up, number i with the chance P_i = q_1 ... q_{i-1} p_i. Cancela and El Khadiri draw i
with the chance P_i / (1 - Q), fix the parts 1..i, and go on with the network G_i that is left. Where failures
are rare this draws i = 1 almost always and misses what the others hold; so i is drawn with a chance r_i
proportional to P_i u_i, u_i being the sum over the most likely cuts of G_i, and

    Z(G) = Q + (P_i / r_i) Z(G_i),    Z = 1 where the terminals are separated, 0 where they are connected.

One time in ten i is drawn in proportion to P_i alone, which bounds the ratio P_i / r_i. By induction
E Z(G) = Q + sum_i P_i U(G_i) = U(G), for u_i is zero only where U(G_i) is: unbiased. Every sample is at least
the chance of the most likely cut, so that none is lost however rare failures are.

*Zero variance.* Parts are drawn one after the other. If the unreliability u0 and u1 of the network with the
next part down and up were known, drawing "down" with the chance q u0 / (q u0 + p u1) would give every sample
the same weight. In their place stand sums over the most likely cuts. The weight of a sample is the product of
true over drawn chances; its mean is the unreliability for any approximation that is zero only where the truth
is. Neither state is drawn with a chance below 0.05 while both can lead to a failure, so that no weight grows
along a sample. The next part is always one of the most likely cut: as all q fall to zero together, the
dominant cuts decide u0 and u1 up to constant factors, and the relative error stays bounded.

References
----------
Cancela and El Khadiri, "A recursive variance-reduction algorithm for estimating communication-network
reliability", IEEE Transactions on Reliability 44, 1995.
Cancela, El Khadiri, Rubino and Tuffin, "Balanced and approximate zero-variance recursive estimators for the
network reliability problem", ACM Transactions on Modeling and Computer Simulation 25, 2015.
L'Ecuyer, Rubino, Saggadi and Tuffin, "Approximate zero-variance importance sampling for static network
reliability estimation", IEEE Transactions on Reliability 60, 2011.
"""

from __future__ import annotations

from typing import Final

import numba
import numpy as np

from relparallel.reliability.sampling.cut_flow import likely_cuts, workspace
from relparallel.reliability.sampling.moments import with_sample

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

    Returns the chance that all are down, the chance of what was drawn over that of drawing it, and the work.
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
