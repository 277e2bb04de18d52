"""Importance where parts are interchangeable: all parts of a class matter alike.

With n parts of up-probability p in a class, dR/dp is n times Birnbaum's measure of each. R is the
sum that answers the question, made in integers: it is made once more with p moved by a step far
below its last digit, and the difference of integers loses nothing.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.closed_forms.alike_pods import Match, match_fabric
from relparallel.reliability.closed_forms.fat_tree_forms import pods_joined
from relparallel.reliability.closed_forms.form_recognition import AnyPath, over_any_path
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.lumped.arithmetic import exact_up
from relparallel.reliability.lumped.interchangeable_nodes import recognised, terminals_joined
from relparallel.reliability.lumped.lumping import (
    connected,
    floors,
    large_terms,
    match_small_fabric,
    scale_of,
)
from relparallel.reliability.probability import series
from relparallel.reliability.problem import Problem
from relparallel.topology import Topology

_STEP: Final = Fraction(1, 2**64)  # of the probability to be up or down, whichever is smaller
_DIGITS: Final = Fraction(1, 2**160)  # of R and 1 - R that the sums keep
_BLUR: Final = 2.0**-120  # of R or 1 - R, below which terms of a lumped sum are left out

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Ups = Sequence[Fraction]


class Classes(NamedTuple):
    """Classes of interchangeable parts, and what must work in any case.

    ``value``: probability that the terminals are joined, by the up-probabilities of the classes, to
    a few bits of a number that may be tiny. ``floor``: what R and 1 - R are at least, about.
    """

    rows: list[IntArray]
    needed: IntArray
    floor: Fraction
    value: Callable[[Ups, Fraction], Fraction]


def class_importance(
    topology: Topology, problem: Problem, perfect: bool = False
) -> tuple[float, FloatArray]:
    """Unreliability, and by how much it grows when a link or a node is down, one after the other.

    Notes
    -----
    One sum for each class of parts that can fail, or with ``perfect`` of all parts. Six digits of
    what is above 1e-30 of R and of 1 - R; what does not show is 0.
    """
    chances = np.concatenate([problem.link, problem.node])
    model = _classes(topology, problem, perfect)
    ups = [exact_up(tuple(chances[rows[0]].tolist())) for rows in model.rows]
    smallest = (
        model.floor * _DIGITS * min([Fraction(1), *(min(up, 1 - up) for up in ups if 0 < up < 1)])
    )
    joined = model.value(ups, smallest)
    slopes = np.zeros(len(chances))
    inner = float(joined), float(1 - joined)
    outside = series(*map(tuple, chances[model.needed].tolist()))
    for k, (up, rows) in enumerate(zip(ups, model.rows, strict=True)):
        if up == 1 and not perfect:
            continue
        step = _STEP * (min(up, 1 - up) or 1) * (-1 if 2 * up > 1 else 1)
        change = model.value([*ups[:k], up + step, *ups[k + 1 :]], smallest) - joined
        slopes[rows] = (
            outside[0] * float(change / step) / len(rows) if abs(change) > smallest else 0.0
        )
    own = chances[model.needed, 0]
    before, after = (np.concatenate([[1.0], np.cumprod(some)])[:-1] for some in (own, own[::-1]))
    slopes[model.needed] = inner[0] * before * after[::-1]
    return float(series(inner, outside)[1]), np.where((chances[:, 1] > 0) | perfect, slopes, 0.0)


def _classes(topology: Topology, problem: Problem, perfect: bool) -> Classes:
    """Those of the first kind of network that fits."""
    if len(problem.terminals) == 1:
        return Classes(
            [], len(problem.edges) + problem.terminals, Fraction(1), lambda *_: Fraction(1)
        )
    reasons = []
    for find in (_of_lumped, _of_nodes) if perfect else (_of_form, _of_lumped, _of_nodes):
        try:
            found = find(topology, problem)
        except NotExactError as why:
            reasons.append(str(why))
            continue
        if found is not None:
            return found
    raise NotExactError(
        "; ".join(reasons) or "graph must have parts that are alike for importance by classes"
    )


def _least(*bounds: Fraction) -> Fraction:
    """The least of these that is not 0."""
    return min([Fraction(1), *(bound for bound in bounds if bound)])


def _of_form(topology: Topology, problem: Problem) -> Classes | None:
    """A fabric with a closed form: cores, switches and links of pods with and without terminals."""
    match = match_fabric(topology, problem)
    if match is None:
        return None
    path = over_any_path(match)
    if path.decides == "partitions" and path.far.copies:
        raise NotExactError(
            "all pods must hold terminals for importance where cables to cores fail"
        )
    kinds = [
        [
            own
            for own, pods in zip(match.pods, match.fabric.pods, strict=True)
            if bool(pods.terminals) is near
        ]
        for near in (True, False)
    ]
    rows = [
        match.core,
        *(
            np.concatenate([np.empty(0, int), *(own[name] for own in some)])
            for name in ("aggregation", "core_link")
            for some in kinds
        ),
    ]
    kept = [k for k, own in enumerate(rows) if len(own)]

    def value(ups: Ups, smallest: Fraction) -> Fraction:
        every = dict(zip(kept, ups, strict=True))
        return _joined_by_form(match, path, [every.get(k, Fraction(1)) for k in range(5)], smallest)

    tree, cut = floors(match.fabric)
    return Classes([rows[k] for k in kept], match.needed, _least(tree, cut), value)


def _joined_by_form(match: Match, path: AnyPath, ups: Ups, smallest: Fraction) -> Fraction:
    """Probability that the terminals are joined, with what their leaves must do in two tiers."""
    core, near, far, near_link, far_link = ups
    planes, cores, aggregations = match.fabric[:3]
    if path.decides == "one":
        return near if match.two_tiers else Fraction(1)
    if path.decides == "pod":
        return 1 - (1 - near) ** (planes * aggregations)
    if path.decides == "partitions":
        return pods_joined(path.near.copies, (core, near, near_link), smallest)
    size = path.near.copies, path.far.copies
    terminals, columns = [True, False, False], planes * cores
    if path.decides == "cores":
        node_ups, links = [near, far, core], {(0, 2): near_link, (1, 2): far_link}
    else:
        columns, node_ups = planes, [Fraction(1), Fraction(1), 1 - (1 - core) ** cores]
        links = {(0, 2): 1 - (1 - near) ** aggregations, (1, 2): 1 - (1 - far) ** aggregations}
    return terminals_joined([*size, columns], terminals, node_ups, links, smallest)


def _of_lumped(topology: Topology, problem: Problem) -> Classes | None:
    """A fabric whose sum over the partitions of its cores is short."""
    match = match_small_fabric(topology, problem)
    if match is None:
        return None
    fabric = match.fabric
    tree, cut = floors(fabric)
    floor = _least(tree, cut)
    terms = [*large_terms(fabric, float(floor) * _BLUR)]
    named = [
        (t, name) for t, own in enumerate(match.pods) for name, rows in own.items() if len(rows)
    ]

    def value(ups: Ups, smallest: Fraction) -> Fraction:
        chances = [(up, 1 - up) for up in ups]
        pods = list(fabric.pods)
        for (t, name), chance in zip(named, chances[1:], strict=True):
            pods[t] = pods[t]._replace(**{name: chance})  # type: ignore[arg-type]
        scale = scale_of(fabric, smallest)
        moved = fabric._replace(core=chances[0], pods=tuple(pods))
        return Fraction(connected(moved, scale, terms), scale.one)

    rows = [match.core, *(match.pods[t][name] for t, name in named)]
    return Classes(rows, match.needed, floor, value)


def _of_nodes(_: Topology, problem: Problem) -> Classes | None:
    """A complete graph, or a complete bipartite one, of alike nodes."""
    found = recognised(problem)
    if found is None:
        return None
    relay = np.ones(len(problem.node), dtype=bool)
    relay[problem.terminals] = False
    kind = 2 * found.right + relay
    first = int(kind[problem.terminals[0]])
    order = sorted(np.unique(kind).tolist(), key=lambda k: (k != first, k))
    seat = np.array([order.index(k) for k in kind.tolist()])
    ends = np.sort(seat[problem.edges], axis=1)
    pairs = sorted(set(map(tuple, ends.tolist())))
    relays = [k for k, one in enumerate(order) if one % 2]
    m, size = len(problem.edges), np.bincount(seat).tolist()
    rows = [
        *(m + np.flatnonzero(seat == k) for k in relays),
        *(np.flatnonzero((ends == pair).all(axis=1)) for pair in pairs),
    ]

    def value(ups: Ups, smallest: Fraction) -> Fraction:
        own = dict(zip(relays, ups, strict=False))
        links = dict(zip(pairs, ups[len(relays) :], strict=True))
        node_ups = [own.get(k, Fraction(1)) for k in range(len(size))]
        return terminals_joined(size, [one % 2 == 0 for one in order], node_ups, links, smallest)

    up = exact_up(tuple(found.link.tolist()))
    degree = int(np.bincount(problem.edges.ravel()).max())
    floor = _least(up ** (len(problem.node) - 1), (1 - up) ** degree)
    return Classes(rows, m + problem.terminals, floor, value)
