"""Importance where a fabric is too wide for the programme: all parts of a class matter alike.

If exchanging parts maps any of a class to any other, each has the class's share of the derivative of the
lumped sum, which `relparallel.reliability.lumped.kind_slopes` finds with the sum; where a closed form is
known, `relparallel.reliability.closed_forms.form_slopes` has its derivative by one part of each class.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import Chance, series
from relparallel.reliability.closed_forms.form_recognition import Form, read_form
from relparallel.reliability.lumped.bcube_slopes import bcube_slopes
from relparallel.reliability.lumped.kind_slopes import slopes_of_kinds
from relparallel.reliability.lumped.lumping import Fabric, floors
from relparallel.reliability.lumped.pod_recognition import recognise
from relparallel.reliability.lumped.symmetry import two_levels
from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.result import Routing
from relparallel.topology import Topology

_KINDS: Final = 3  # of pods: each has slopes of its own

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def slopes_by_class(topology: Topology, problem: Problem) -> tuple[float, FloatArray] | None:
    """Unreliability, and by how much it grows when a link or a node is down.

    Notes
    -----
    All classes together take 1 to 3 times as long as the lumped sum alone, with pods of several kinds to 5.
    """
    found = recognise(topology, problem)
    if found is None:
        return _of_bcube(topology, problem)
    if len(found[0].pods) > _KINDS:
        return None
    fabric, outside = found
    tree, cut = floors(fabric)
    if tree == 0 or cut == 0:
        return None
    return _by_kind(fabric, outside, _rows(topology, problem), problem)


def _of_bcube(topology: Topology, problem: Problem) -> tuple[float, FloatArray] | None:
    """The same of a two-level BCube all of whose servers are terminals."""
    levels = two_levels(topology, problem)
    known = levels and bcube_slopes(len(levels.rows), len(levels.columns), *levels.chances)
    if levels is None or known is None:
        return None
    slopes, m = np.zeros(len(problem.edges) + len(problem.node)), len(problem.edges)
    parts = m + levels.rows, m + levels.columns, levels.row_links, levels.column_links
    outside = series(*map(tuple, problem.node[problem.terminals].tolist()))
    for some, slope in zip(parts, known[1], strict=True):
        slopes[some] = outside[0] * slope
    return _with_outside(known[0], outside, slopes, m + problem.terminals, problem)


def _by_kind(
    fabric: Fabric, outside: Chance, classes: dict[str, IntArray], problem: Problem
) -> tuple[float, FloatArray] | None:
    """The same from the lumped sum."""
    found = slopes_of_kinds(fabric)
    if found is None:
        return None
    m, size = len(problem.edges), len(problem.node)
    slopes, pod = np.zeros(m + size), np.full(size, -1)
    switches = np.concatenate([classes["near"], classes["far"]]) - m
    below, seat = classes["edge_link"], np.zeros(size, dtype=bool)
    middle = np.isin(np.arange(size), switches)
    ends = np.where(middle[problem.edges[:, :1]], problem.edges, problem.edges[:, ::-1])  # the switch first
    seat[ends[classes["seat_link"], 1]] = True
    to_seat = seat[ends[below, 1]]
    if len(below):
        count = [np.bincount(ends[below[kind], 0], minlength=size) for kind in (to_seat, ~to_seat)]
    else:  # two tiers
        count = [np.bincount(classes[name] - m, minlength=size) for name in ("near", "far")]
    for t, (_, near, far) in enumerate(fabric.pods):
        pod[switches[(count[0][switches] == near) & (count[1][switches] == far)]] = t
    above = np.concatenate([classes["near_link"], classes["far_link"]])
    idle = np.unique(ends[below[~to_seat], 1])
    pod[ends[below, 1]] = pod[ends[below, 0]]
    slopes[classes["core"]] = float(found.core) / len(classes["core"])
    for t, own in enumerate(found.pods):
        rows = {
            "aggregation": m + switches[pod[switches] == t],
            "core_link": above[pod[ends[above, 0]] == t],
            "edge_link": below[to_seat & (pod[ends[below, 0]] == t)],
            "other_link": below[~to_seat & (pod[ends[below, 0]] == t)],
            "edge": m + idle[pod[idle] == t],
        }
        for name, some in rows.items():
            slopes[some] = float(own[name]) / max(len(some), 1)
    inner = float(found.joined), float(1 - found.joined)
    return _with_outside(inner, outside, outside[0] * slopes, classes["alone"], problem)


def slopes_by_form(
    topology: Topology, problem: Problem, routing: Routing = "any", form: Form | None = None
) -> tuple[float, FloatArray] | None:
    """The same where a closed form, found before or now, answers; None where its slopes are not known."""
    if form is None:
        try:
            form = read_form(topology, problem, routing)
        except NotExactError:
            return None
    slopes, m = np.zeros(len(problem.edges) + len(problem.node)), len(problem.edges)
    if len(problem.terminals) == 1:
        slopes[m + problem.terminals] = 1.0
        return float(form.own[1]), slopes
    if form.slopes is None:
        return None
    by_class = form.slopes()
    if by_class.parts is not None:
        own = form.own[0] * by_class.parts
        return _with_outside(form.inner, form.own, own, m + problem.terminals, problem)
    classes = _rows(topology, problem)
    for name, slope in by_class._asdict().items():
        if name in classes:
            slopes[classes[name]] = form.own[0] * slope
    if by_class.seats is not None:
        _by_seats(by_class.seats, classes, problem, slopes, form.own[0])
    alone = [classes["alone"], classes["near"]] if by_class.needed else [classes["alone"]]
    return _with_outside(form.inner, form.own, slopes, np.concatenate(alone), problem)


def _by_seats(
    seats: dict[int, tuple[float, float, float]],
    classes: dict[str, IntArray],
    problem: Problem,
    slopes: FloatArray,
    own: float,
) -> None:
    """Set the slopes of parts of pods, which depend on how many edge switches of a pod have to be joined."""
    m, switches = len(problem.edges), classes["near"] - len(problem.edges)
    count = np.bincount(problem.edges[classes["seat_link"]].ravel(), minlength=len(problem.node))
    count, inside = np.maximum(count, 1), np.zeros(len(count), dtype=bool)  # in two tiers a leaf is its own
    inside[switches] = True
    table = np.zeros((max(seats) + 1, 3))
    table[list(seats)] = list(seats.values())
    slopes[m + switches] = own * table[count[switches], 0]
    for column, name in enumerate(("near_link", "seat_link"), 1):
        ends = problem.edges[classes[name]]
        switch = np.where(inside[ends[:, 0]], *ends.T)
        slopes[classes[name]] = own * table[count[switch], column]


def _with_outside(
    inner: Chance, outside: Chance, slopes: FloatArray, alone: IntArray, problem: Problem
) -> tuple[float, FloatArray]:
    """Unreliability, and slopes with those of parts that must work in any case; 0 for what never fails."""
    up = np.concatenate([problem.link[:, 0], problem.node[:, 0]])[alone]
    before, after = (np.concatenate([[1.0], np.cumprod(ups)])[:-1] for ups in (up, up[::-1]))
    slopes[alone] = inner[0] * before * after[::-1]
    fails = np.concatenate([problem.link[:, 1], problem.node[:, 1]]) > 0
    return float(series(inner, outside)[1]), np.where(fails, slopes, 0.0)


def _rows(topology: Topology, problem: Problem) -> dict[str, IntArray]:
    """Rows of the parts of every class, links first and then nodes; "alone": what must work in any case.

    Aggregation switches of pods with terminals are "near", those of the others "far", and so are their links
    to the cores. In two tiers these are the leaves.
    """
    m, edges, tier = len(problem.edges), problem.edges, topology.tier
    relays = problem.transit[edges].all(axis=1)
    core, seat, middle, near, host = np.zeros((5, len(problem.node)), dtype=bool)
    core[edges[relays]] = tier[edges[relays]] == tier[edges[relays]].max(initial=0)
    host[problem.terminals] = seat[problem.terminals] = True
    seat[edges[~relays]] = True
    seat &= problem.transit
    upper = relays & core[edges].any(axis=1)
    middle[edges[upper]] = True
    middle &= ~core
    seat_link = relays & ~upper & seat[edges].any(axis=1)
    near[edges[seat_link]] = True
    near = middle & (near | seat)
    near_link = upper & near[edges].any(axis=1)
    links = {"near_link": near_link, "far_link": upper & ~near_link, "edge_link": relays & ~upper}
    links["seat_link"] = seat_link
    nodes = {"core": core, "near": near, "far": middle & ~near}
    rows = {name: np.flatnonzero(parts) for name, parts in links.items()}
    rows |= {name: m + np.flatnonzero(parts) for name, parts in nodes.items()}
    alone = (host & ~problem.transit) | (seat & ~middle)
    return rows | {"alone": np.concatenate([np.flatnonzero(~relays), m + np.flatnonzero(alone)])}
