"""A network taken apart once: what its reliability is computed from, for any chances of its parts.

The structure decides everything but the numbers: which chances the reductions combine, where the network
falls into blocks, and in which order the frontier programme sweeps through each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.cut_nodes import split
from relparallel.reliability.programme.frontier import (
    ANY,
    Programme,
    compile_steps,
    fitting,
    gather,
    require_fit,
)
from relparallel.reliability.programme.frontier_layers import sweep
from relparallel.reliability.programme.labels import MAX_LIVE
from relparallel.reliability.programme.ordering import link_order, vertex_order
from relparallel.reliability.programme.reductions import network_of, reduce, require, tape_of
from relparallel.reliability.programme.tape import play

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class Outcome(NamedTuple):
    """Reliability and unreliability, each its own sum, and the work.

    The work is the largest layer, the states of all layers, the most live vertices and the layers.
    """

    reliability: float
    unreliability: float
    peak: int
    states: int
    width: int
    layers: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Compiled:
    """Tape and programmes of a network.

    Slots hold chances (up, down): m links, n nodes, those that the tape makes, and the outcome of every
    programme, in this order. The terminals are connected if and only if all required slots are up.
    """

    connected: bool
    links: int
    nodes: int
    slots: int
    tape: IntArray
    required: IntArray
    steps: IntArray
    parts: IntArray
    starts: IntArray
    widths: IntArray

    @property
    def width(self) -> int:
        """Most vertices that are live at once; 0 without a programme."""
        return int(self.widths.max(initial=0))

    def chances(self, link: FloatArray, node: FloatArray) -> FloatArray:
        """Slots of chances, float64[slots, 2]: links and nodes as given, those of the tape filled in."""
        slots = np.empty((self.slots, 2))
        slots[: self.links], slots[self.links : self.links + self.nodes] = link, node
        slots[self.slots - len(self.widths) :] = 1.0, 0.0
        play(self.tape, slots)
        return slots

    def programmes(self, link: FloatArray, node: FloatArray) -> list[Programme]:
        """Every programme with its chances, to run one by one."""
        slots = self.chances(link, node)
        bounds = zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), self.widths.tolist(), strict=True)
        return [
            Programme(steps=self.steps[i:j], chances=gather(self.parts[i:j], slots), width=width)
            for i, j, width in bounds
        ]

    def evaluate(
        self, link: FloatArray, node: FloatArray, max_states: int = 2**24, max_visits: int = ANY
    ) -> Outcome:
        """Reliability for these chances."""
        if not self.connected:
            return Outcome(0.0, 1.0, 0, 0, 0, 0)
        require_fit(self.width)
        most = fitting(max_states)
        structure = self.tape, self.required, self.steps, self.parts, self.starts, self.slots
        up, down, peak, states = _evaluate(*structure, link, node, most, max_visits)
        require_fit(self.width, peak, most, states, max_visits)
        return Outcome(up, down, peak, states, self.width, len(self.steps))


def compiled(problem: Problem, reductions: bool = True, ordered: bool = True) -> Compiled:
    """Take a network apart: reductions, blocks, orders and programmes.

    Notes
    -----
    Time: linear in the size of the network but for the search for an order, whose time is limited by that of
    the programme.
    """
    m, n = len(problem.link), len(problem.node)
    found = take_apart(problem.edges, n, problem.terminals, reductions, ordered)
    connected, slots, tape, required, steps, parts, starts, widths = found
    return Compiled(
        connected=connected, links=m, nodes=n, slots=slots, tape=tape, required=required,
        steps=steps, parts=parts, starts=starts, widths=widths,
    )  # fmt: skip


def solved(problem: Problem, reductions: bool, max_states: int, max_visits: int = ANY) -> Outcome:
    """Reliability of a network whose structure is not asked for again."""
    network = problem.edges, problem.link, problem.node, problem.terminals
    return Outcome(*_solve(*network, reductions, max_states, max_visits))


@numba.njit(cache=True)
def _solve(edges, link, node, terminals, reductions, max_states, max_visits):  # type: ignore[no-untyped-def]
    """`Outcome` of a network: nothing but numbers leaves compiled code."""
    found = take_apart(edges, len(node), terminals, reductions, np.bool_(True))  # True would compile a second
    connected, slots, tape, required, steps, parts, starts, widths = found
    width = 0
    for k in range(len(widths)):
        width = max(width, widths[k])
    if not connected or width > MAX_LIVE:
        return 0.0, 1.0, 0, 0, width, len(steps)
    sums = _evaluate(tape, required, steps, parts, starts, slots, link, node, max_states, max_visits)
    return sums[0], sums[1], sums[2], sums[3], width, len(steps)


@numba.njit(cache=True)
def take_apart(edges, n, terminals, reductions, ordered):  # type: ignore[no-untyped-def]
    """Everything in `Compiled` but the numbers of links and nodes, in its order."""
    m = len(edges)
    tape, terminal, node = tape_of(m, n), np.zeros(n, np.bool_), np.arange(m, m + n)
    for v in terminals:
        require(tape, node[v])
        terminal[v], node[v] = True, -1
    whole = network_of(edges, np.arange(m), node, terminal)
    left = reduce(whole, tape, len(terminals)) if reductions else len(terminals)
    steps, parts = np.empty((m, 9), np.int64), np.empty((m, 3), np.int64)
    starts, widths, programmes = np.zeros(n + 2, np.int64), np.empty(n + 1, np.int64), 0
    connected = left > 0
    if left > 1:
        root = 0
        while not whole.terminal[root]:
            root += 1
        block, blocks, reached = split(whole, tape, root, reductions)
        connected = reached == left
        order, first = _grouped(block, blocks)
        for k in range(blocks if connected else 0):
            rows = order[first[k] : first[k + 1]]
            share = len(rows) / len(order) if ordered else 0.0
            more_steps, more_parts, width = _programme(whole, rows, tape, reductions, share)
            if width > 0:
                start = starts[programmes]
                end = start + len(more_steps)
                steps[start:end], parts[start:end] = more_steps, more_parts
                starts[programmes + 1], widths[programmes] = end, width
                programmes += 1
    for k in range(programmes):
        require(tape, tape.counts[2] + k)
    slots, rows_used = tape.counts[2] + programmes, starts[programmes]
    return (
        connected, slots, tape.rows[: tape.counts[0]], tape.required[: tape.counts[1]],
        steps[:rows_used], parts[:rows_used], starts[: programmes + 1], widths[:programmes],
    )  # fmt: skip


@numba.njit(cache=True)
def _grouped(block, blocks):  # type: ignore[no-untyped-def]
    """Links of every block: ``order[first[k] : first[k + 1]]``, ascending."""
    first, order = np.zeros(blocks + 2, np.int64), np.empty(len(block), np.int64)
    for k in block:
        first[k + 2] += k >= 0
    first = np.cumsum(first)
    for e in range(len(block)):
        if block[e] >= 0:
            order[first[block[e] + 1]] = e
            first[block[e] + 1] += 1
    return order, first


@numba.njit(cache=True)
def _programme(whole, rows, tape, reductions, share):  # type: ignore[no-untyped-def]
    """Steps, parts and width of the programme of one block; width 0 if reductions leave none.

    ``share`` is that of the time to find an order; 0: none is looked for.
    """
    ends, place = np.empty((len(rows), 2), np.int64), np.full(len(whole.node), -1, np.int64)
    node, n = np.empty(2 * len(rows), np.int64), 0
    terminal, terminals = np.zeros(2 * len(rows), np.bool_), np.int64(0)
    for i in range(len(rows)):
        for side in range(2):
            v = whole.end[2 * rows[i] + side]
            if place[v] < 0:
                place[v], node[n], terminal[n] = n, whole.node[v], whole.terminal[v]
                terminals += terminal[n]
                n += 1
            ends[i, side] = place[v]
    part = network_of(ends, whole.link[rows], node[:n], terminal[:n])
    if reductions and reduce(part, tape, terminals) < 2:
        return np.empty((0, 9), np.int64), np.empty((0, 3), np.int64), 0
    place, kept = np.cumsum(part.degree > 0) - 1, np.flatnonzero(part.degree > 0)
    count = 0
    for e in range(len(rows)):
        u, v = part.end[2 * e], part.end[2 * e + 1]
        if part.degree[u] > 0 and part.degree[v] > 0:
            ends[count, 0], ends[count, 1], rows[count] = place[u], place[v], part.link[e]
            count += 1
    order = np.arange(count)
    if share > 0.0:
        order = link_order(vertex_order(ends[:count], part.terminal[kept], share), ends[:count])
    return compile_steps(ends[order], rows[order], part.node[kept], part.terminal[kept])


@numba.njit(cache=True)
def _evaluate(tape, required, steps, parts, starts, slots, link, node, max_states, max_visits):  # type: ignore[no-untyped-def]
    """Play the tape, run the programmes, multiply what is required; stop early where a layer is too large."""
    chances, programmes = np.empty((slots, 2)), len(starts) - 1
    chances[: len(link)], chances[len(link) : len(link) + len(node)] = link, node
    play(tape, chances)
    peak, states = 0, 0
    for k in range(programmes):
        rows = slice(starts[k], starts[k + 1])
        sums = sweep(steps[rows], gather(parts[rows], chances), max_states, max_visits - states)
        up, down, most, visited = sums
        chances[slots - programmes + k, 0], chances[slots - programmes + k, 1] = up, down
        peak, states = max(peak, most), states + visited
        if peak > max_states or states > max_visits:
            break
    alive, failed = 1.0, 0.0
    for slot in required:
        failed += alive * chances[slot, 1]
        alive *= chances[slot, 0]
    return alive, failed, peak, states
