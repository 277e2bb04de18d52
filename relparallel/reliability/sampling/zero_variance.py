"""Approximate zero-variance importance sampling of L'Ecuyer, Rubino, Saggadi and Tuffin.

Parts are drawn one after the other. If the unreliability u0 and u1 of the network with the next part down and
up were known, drawing "down" with the chance q u0 / (q u0 + p u1) would give every sample the same weight. In
their place stand sums over the most likely cuts between the first terminal and each of the others, each
distinct cut once. The weight of a sample is the product of true over drawn chances; its mean is the
unreliability for any approximation that is zero only where the truth is: unbiased. A network with a cut left
has u > 0 here, one without has u = 0 exactly.

Neither state is drawn with a chance below 0.05 while both can lead to a failure: where the cuts found are far
from all, weights would else grow along a sample, and a few samples would hold most of the sum.

The next part is always one of the most likely cut. As all q fall to zero together, the dominant cuts decide
u0 and u1 up to constant factors, and the relative error stays bounded.

References
----------
L'Ecuyer, Rubino, Saggadi and Tuffin, "Approximate zero-variance importance sampling for static network
reliability estimation", IEEE Transactions on Reliability 60, 2011.
"""

from __future__ import annotations

from typing import Final

import numba

from relparallel.reliability.sampling.cut_flow import likely_cuts, workspace
from relparallel.reliability.sampling.running_moments import with_sample

_LEAST: Final = 0.05


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
