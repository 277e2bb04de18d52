"""Random graphs whose nodes fall into classes of alike ones, in integers that may be subtracted.

The nodes split into the component of one of them and the rest, and only the numbers of each class on both
sides count (Gilbert 1959). With sizes v of all classes, and u of the component of a node of the first one,

    joined[v] = 1 - sum of ways(u, v) joined[u] P(no link from u to the rest) over all u but v.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.lumped.arithmetic import Scale

_MOST_TERMS: Final = 3 * 10**7  # of a sum: half a minute

Integers = NDArray[Any]


def terminals_joined(
    size: Sequence[int],
    terminals: Sequence[bool],
    ups: Sequence[Fraction],
    links: Mapping[tuple[int, int], Fraction],
    smallest: Fraction,
) -> Fraction:
    """Probability that all nodes of the terminal classes, the first one among them, are up and joined.

    ``links``: up-probability of the links between two classes; to 50 bits of ``smallest``.
    """
    terms = math.prod((n + 1) * (n + 2) // 2 for n in size)
    if terms > _MOST_TERMS:
        raise NotExactError(f"classes of {list(size)} nodes take {terms} terms for importance")
    nodes = sum(size)
    scale = Scale(Scale.of(nodes, nodes, smallest).bits + 2 * nodes)
    down = {
        pair: _powers(1 - up, math.prod(max(size[a], 1) for a in pair), scale) for pair, up in links.items()
    }
    joined = _joined(size, down, scale)
    whole = tuple(
        slice(n, None) if needed else slice(None) for n, needed in zip(size, terminals, strict=True)
    )
    found = np.indices(joined.shape)[(slice(None), *whole)]
    mass = joined[whole]
    for b, n in enumerate(size):
        if terminals[b]:
            mass = scale.times(mass, scale.integer(ups[b] ** n))
            continue
        missed = [down[a, b][found[a]] for a in range(len(size)) if (a, b) in down]
        missed += [down[b, a][found[a]] for a in range(len(size)) if (b, a) in down and a != b]
        miss = reduce(scale.times, missed)
        up = scale.integer(ups[b])
        alone = scale.one - up + scale.times(up, miss)
        weights = scale.times(_powers(ups[b], n, scale)[found[b]], _choices(n)[found[b]] * scale.one)
        mass = scale.times(mass, weights)
        for left in range(1, n + 1):
            mass = np.where(n - found[b] >= left, scale.times(mass, alone), mass)
    return Fraction(int(mass.sum()), scale.one)


def _joined(size: Sequence[int], down: Mapping[tuple[int, int], Integers], scale: Scale) -> Integers:
    """Probability that so many nodes of each class, one of the first at least, are joined to each other."""
    joined = np.zeros([n + 1 for n in size], dtype=object)
    every = np.indices(joined.shape)
    for v in product(range(1, size[0] + 1), *(range(n + 1) for n in size[1:])):
        box = (slice(1, v[0] + 1), *(slice(n + 1) for n in v[1:]))
        u = every[(slice(None), *box)]
        mass = joined[box]
        for (a, b), powers in down.items():
            left_a, left_b = v[a] - u[a], v[b] - u[b]
            mass = scale.times(mass, powers[u[a] * left_a if a == b else u[a] * left_b + u[b] * left_a])
        ways = [_choices(v[0] - 1), *(_choices(n) for n in v[1:])]
        joined[v] = scale.one - int((mass * reduce(np.multiply.outer, ways)).sum())
    return joined


def _powers(x: Fraction, most: int, scale: Scale) -> Integers:
    """Powers 0..most."""
    found, one = [scale.one], scale.integer(x)
    for _ in range(most):
        found.append(scale.times(found[-1], one))
    return np.array(found, dtype=object)


def _choices(n: int) -> Integers:
    """Binomial coefficients of n."""
    return np.array([math.comb(n, k) for k in range(n + 1)], dtype=object)
