"""By how much the lumped sum grows with the chances of each class of parts, at the cost of a few sums.

The sum of `lumping` is a polynomial in the chances of cores, switches and links, and all of its derivatives
are sums over the same splits. With a lever for each kind of pods t, of which there are n_t,

    R = sum of w P prod W_t^(n_t),  dR by pods t = sum of w P n_t W_t^(n_t - 1) dW_t prod W_u^(n_u),

where W = sums . weights and only the links to the cores are in the power sums. What multiplies dW is gathered
once and not for each class: for the weights the lever times the power sums, for the power sums the lever
times the weights. Weights are made of tables that are the same for all splits: what multiplies an entry is
gathered over all of them. The small factors come with their derivatives from dual numbers (`arithmetic`). No
two sums are subtracted.

A part of a pod without terminals matters only when much else is down. How little is not known before: the sum
is made again, of more bits and terms, until all slopes are far above what it leaves out (`kind_bounds`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.lumped.arithmetic import Dual, Dyadic, Scale, exact_up
from relparallel.reliability.lumped.kind_bounds import Terms, levers, terms_of_slopes, with_slopes
from relparallel.reliability.lumped.kind_guesses import OF_PODS, guess
from relparallel.reliability.lumped.lumping import Fabric, states_of_cores, uplinks
from relparallel.reliability.lumped.pod_sums import signed_ways
from relparallel.reliability.lumped.pod_tables import Table, agreement, power_sum_weights

_TRIES: Final = 5
_DROP: Final = 2.0**-60  # of the least value of a slope that did not show; its square the next time
_LEAST: Final = 2.0**-700  # no sum is made for slopes below, which are 0
_SMALL: Final = 2.0**-500  # for R and 1 - R above this they do not count


class KindSlopes(NamedTuple):
    """R, its slope by the cores, and by the classes `OF_PODS` of each kind of pods."""

    joined: Fraction
    core: Fraction
    pods: list[dict[str, Fraction]]


def slopes_of_kinds(fabric: Fabric) -> KindSlopes | None:
    """Probability that the terminals are joined, and its derivative by the up-chance of each class."""
    least, tables = guess(fabric), [_table(fabric, pod) for pod in fabric.pods]
    alive = states_of_cores(fabric, Dual(exact_up(fabric.core), (Fraction(1),)))
    for attempt in range(_TRIES):
        least = np.maximum(least, _LEAST)
        least, terms = terms_of_slopes(fabric, tables, alive, least, estimate=attempt == 0)
        found = _summed(fabric, tables, alive, least.min(), terms)
        known = np.array([min(found.joined, 1 - found.joined), found.core, *_flat(found.pods)], dtype=float)
        enough = (known >= least) | np.isinf(least)
        nothing = ~enough & (least <= _LEAST)
        if nothing.any() and known[0] < _SMALL:
            return None
        if (enough | nothing).all():
            return _without(found, nothing)
        hidden = known <= least * 2.0**-30
        lower = np.where(hidden, np.maximum(least * _DROP ** (2**attempt), _LEAST), known / 4)
        least = np.where(enough, least, lower)
    return None


def _without(found: KindSlopes, nothing: NDArray[np.bool_]) -> KindSlopes:
    """The same with 0 for some slopes, in the order of `guess`."""
    core, *pods = nothing[1:].tolist()
    names = iter(pods)
    kept = [
        {name: Fraction(0) if next(names) else slope for name, slope in own.items()} for own in found.pods
    ]
    return KindSlopes(found.joined, Fraction(0) if core else found.core, kept)


def _flat(pods: list[dict[str, Any]]) -> list[Any]:
    """What there is of each kind of pods and class of parts, one after the other."""
    return [own[name] for own in pods for name in OF_PODS]


def _summed(
    fabric: Fabric, tables: list[Table], alive: list[Dual], smallest: float, terms: list[Terms]
) -> KindSlopes:
    """R and its slopes over some of the terms, all of them at least ``smallest``."""
    counts, scale = [count for count, *_ in fabric.pods], _scale(fabric, smallest)
    plain, above = uplinks(fabric, scale), with_slopes(fabric, scale)
    both, likely = np.zeros(2, dtype=object), above.scale.array(alive)
    slopes = np.zeros((len(counts), len(OF_PODS)), dtype=object)
    entries = [above.entries(table) for table in tables]
    by_entry = [[np.zeros_like(x[:2]) for x in own] for own in entries]
    for sizes, outside, pieces in terms:
        chances, uncoloured = above.core_chances(sizes, outside, likely), above.uncoloured(sizes, outside)
        weights = [plain.weights([x[0] for x in uncoloured], [x[0] for x in own]) for own in entries]
        by_weight = [np.zeros(own.T.shape, dtype=object) for own in weights]
        for some, rows, columns, large in pieces:
            sums, ways = above.power_sums(some)[:, rows], signed_ways(some)[rows]
            seen = [own.T[columns] for own in weights]
            agree = [scale.rounded((sums[0] * own).sum(axis=1)) for own in seen]
            joint, steep = levers(agree, chances[0, columns], counts, scale)
            both += chances[:, columns] @ (ways * joint) >> scale.bits
            for t, own in enumerate(large):
                lever = (ways * steep[t])[own]
                np.add.at(by_weight[t], columns[own], lever[:, None] * sums[0, own])
                slopes[t, 0] += lever @ (sums[1, own] * seen[t][own]).sum(axis=1) >> 2 * scale.bits
        for lever, total in zip(by_weight, by_entry, strict=True):
            if lever.any():
                more = above.entry_levers(uncoloured, scale.rounded(lever.T), scale)
                total[:] = map(np.add, total, more)
    slopes += [above.slopes(own, total) for own, total in zip(entries, by_entry, strict=True)]
    joined, core = (Fraction(x, scale.one) for x in both.tolist())
    pods = [
        dict(zip(OF_PODS, (Fraction(int(x), scale.one) for x in own), strict=True)) for own in slopes.tolist()
    ]
    return KindSlopes(joined, core, pods)


def _scale(fabric: Fabric, smallest: float) -> Scale:
    """Bits enough for slopes of this size by all parts of a class."""
    pods, width = sum(count for count, *_ in fabric.pods), fabric.planes * fabric.aggregations
    parts = pods * width * (fabric.cores + max(t + n for _, t, n in fabric.pods) + 1)
    return Scale.of(fabric.planes * fabric.cores, pods, Fraction(smallest) / parts**2)


def _table(fabric: Fabric, pod: tuple[int, int, int]) -> Table:
    """What multiplies the power sums, with slopes by the links below and the other edge switches."""
    width, (_, terminals, others) = fabric.planes * fabric.aggregations, pod
    link, up = (Dyadic.of(exact_up(chance)) for chance in (fabric.edge_link, fabric.edge))
    near, far, edge = Dual(link, (1, 0, 0)), Dual(link, (0, 1, 0)), Dual(up, (0, 0, 1))
    table = agreement(width, terminals, others, edge if fabric.edge[1] > 0 else 1, 1 - near, 1 - far)
    return {key: Dual(0, (0, 0, 0)) + x for key, x in power_sum_weights(table).items()}
