"""A network taken apart once: what its reliability is computed from, for any chances of its parts.

The structure decides everything but the numbers: which chances the reductions combine, where the
network falls into blocks, and in which order the frontier DP sweeps through each of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.compiled_sweep import (
    ANY,
    LinkSweep,
    compile_steps,
    fitting,
    gather,
    require_fit,
    sweep,
)
from relparallel.reliability.frontier.link_orders import link_order, vertex_order
from relparallel.reliability.frontier.reductions import (
    network_of,
    play,
    reduce,
    require,
    split,
    tape_of,
)
from relparallel.reliability.frontier.states import MAX_LIVE
from relparallel.reliability.probability import CERTAIN, Chance, series
from relparallel.reliability.problem import Problem, require_relays

Bracket = tuple[float, float]  # lower and upper bound of an unreliability
_SLACK: Final = 1e-12  # relative; more than the rounding of the reductions


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
    """Tape and sweeps of a network.

    Slots hold chances (up, down): m links, n nodes, those that the tape makes, and the outcome of
    every sweep, in this order. The terminals are connected if and only if all required slots are
    up.
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
        """Most vertices that are live at once; 0 without a sweep."""
        return int(self.widths.max(initial=0))

    def chances(self, link: FloatArray, node: FloatArray) -> FloatArray:
        """Chances by slot, float64[slots, 2]: links and nodes as given, the tape's filled in."""
        slots = np.empty((self.slots, 2))
        slots[: self.links], slots[self.links : self.links + self.nodes] = link, node
        slots[self.slots - len(self.widths) :] = 1.0, 0.0
        play(self.tape, slots)
        return slots

    def sweeps(self, link: FloatArray, node: FloatArray) -> list[LinkSweep]:
        """Every sweep with its chances, to run one by one."""
        slots = self.chances(link, node)
        bounds = zip(
            self.starts[:-1].tolist(), self.starts[1:].tolist(), self.widths.tolist(), strict=True
        )
        return [
            LinkSweep(steps=self.steps[i:j], chances=gather(self.parts[i:j], slots), width=width)
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
        found = self.outcome(link, node, most, max_visits)
        require_fit(self.width, found.peak, most, found.states, max_visits)
        return found

    def outcome(
        self, link: FloatArray, node: FloatArray, max_states: int, max_visits: int
    ) -> Outcome:
        """The same, stopped where a layer is too large."""
        structure = self.tape, self.required, self.steps, self.parts, self.starts, self.slots
        up, down, peak, states = _evaluate(*structure, link, node, max_states, max_visits)
        return Outcome(up, down, peak, states, self.width, len(self.steps))


def compiled(problem: Problem, reductions: bool = True, ordered: bool = True) -> Compiled:
    """Take a network apart: reductions, blocks, orders and sweeps."""
    m, n = len(problem.link), len(problem.node)
    found = _blocks(problem.edges, n, problem.terminals, reductions)
    connected, slots, tape, required, ends, links, nodes, terminal, starts, shares = found
    steps, parts, widths = (
        np.empty((len(ends), 9), np.int64),
        np.empty((len(ends), 3), np.int64),
        [],
    )
    for k, share in enumerate(shares.tolist() if ordered else [0.0] * len(shares)):
        (i, first), (j, end) = starts[k : k + 2].tolist()
        block = ends[i:j], links[i:j], nodes[first:end], terminal[first:end]
        steps[i:j], parts[i:j], width = _block_sweep(*block, share)
        widths.append(width)
    return Compiled(
        connected=connected,
        links=m,
        nodes=n,
        slots=slots,
        tape=tape,
        required=required,
        steps=steps,
        parts=parts,
        starts=starts[:, 0],
        widths=np.array(widths, np.int64),
    )


def solved(problem: Problem, max_states: int, max_visits: int = ANY) -> Outcome:
    """Reliability of a network that is asked for once; it may be too wide, or stop early."""
    found = compiled(problem)
    if not found.connected or found.width > MAX_LIVE:
        return Outcome(0.0, 1.0, 0, 0, found.width, len(found.steps))
    return found.outcome(problem.link, problem.node, max_states, max_visits)


def _block_sweep(
    ends: IntArray, links: IntArray, nodes: IntArray, terminal: NDArray[np.bool_], share: float
) -> tuple[IntArray, IntArray, int]:
    """Steps, parts and width of one block's sweep; with a share of 0 its order is as it comes."""
    order = (
        link_order(vertex_order(ends, terminal, share), ends)
        if share > 0.0
        else np.arange(len(ends))
    )
    found: tuple[IntArray, IntArray, int] = compile_steps(order, ends, links, nodes, terminal)
    return found


@numba.njit(cache=True)
def _blocks(edges, n, terminals, reductions):  # type: ignore[no-untyped-def]
    """Tape, required slots, what reductions leave of each block: links, nodes, where they start."""
    m = len(edges)
    tape, terminal, node, link = (
        tape_of(m, n),
        np.zeros(n, np.bool_),
        np.empty(n, np.int64),
        np.empty(m, np.int64),
    )
    for v in range(n):
        node[v] = m + v
    for e in range(m):
        link[e] = e
    for v in terminals:
        require(tape, node[v])
        terminal[v], node[v] = True, -1
    whole, left = network_of(edges, link, node, terminal), len(terminals)
    if reductions:
        left = reduce(whole, tape, left)
    ends, links = np.empty((m, 2), np.int64), np.empty(m, np.int64)
    nodes, flags = np.empty(2 * m, np.int64), np.empty(2 * m, np.bool_)
    starts, shares, sweeps, connected = np.zeros((n + 2, 2), np.int64), np.empty(n + 1), 0, left > 0
    if left > 1:
        root = 0
        while not whole.terminal[root]:
            root += 1
        block, blocks, reached = split(whole, tape, root, reductions)
        connected = reached == left
        order, first = _grouped(block, blocks)
        for k in range(blocks if connected else 0):
            i, v = starts[sweeps]
            rows = order[first[k] : first[k + 1]]
            count, size = _reduced(
                whole, rows, tape, reductions, ends[i:], links[i:], nodes[v:], flags[v:]
            )
            if count > 0:
                starts[sweeps + 1, 0], starts[sweeps + 1, 1] = i + count, v + size
                shares[sweeps] = len(rows) / len(order)
                sweeps += 1
    made = tape.counts[2]
    for k in range(sweeps):
        require(tape, made + k)
    used, size = starts[sweeps]
    return (
        connected,
        made + sweeps,
        tape.rows[: tape.counts[0]],
        tape.required[: tape.counts[1]],
        ends[:used],
        links[:used],
        nodes[:size],
        flags[:size],
        starts[: sweeps + 1],
        shares[:sweeps],
    )


@numba.njit(cache=True)
def _grouped(block, blocks):  # type: ignore[no-untyped-def]
    """Links of every block: ``order[first[k] : first[k + 1]]``, ascending."""
    first, order = np.zeros(blocks + 2, np.int64), np.empty(len(block), np.int64)
    for k in block:
        first[k + 2] += k >= 0
    for k in range(blocks + 1):
        first[k + 1] += first[k]
    for e in range(len(block)):
        if block[e] >= 0:
            order[first[block[e] + 1]] = e
            first[block[e] + 1] += 1
    return order, first


@numba.njit(cache=True)
def _reduced(whole, rows, tape, reductions, ends, links, nodes, terminal):  # type: ignore[no-untyped-def]
    """Write down what reductions leave of one block; return how many links and nodes that are."""
    pairs, place = np.empty((len(rows), 2), np.int64), np.full(len(whole.node), -1, np.int64)
    node, link, n = np.empty(2 * len(rows), np.int64), np.empty(len(rows), np.int64), 0
    chosen, terminals = np.zeros(2 * len(rows), np.bool_), np.int64(0)
    for i in range(len(rows)):
        link[i] = whole.link[rows[i]]
        for side in range(2):
            v = whole.end[2 * rows[i] + side]
            if place[v] < 0:
                place[v], node[n], chosen[n] = n, whole.node[v], whole.terminal[v]
                terminals += whole.terminal[v]
                n += 1
            pairs[i, side] = place[v]
    part = network_of(pairs, link, node[:n], chosen[:n])
    if reductions and reduce(part, tape, terminals) < 2:
        return 0, 0
    size, count = 0, 0
    for v in range(n):
        place[v] = size
        if part.degree[v] > 0:
            nodes[size], terminal[size] = part.node[v], part.terminal[v]
            size += 1
    for e in range(len(rows)):
        u, v = part.end[2 * e], part.end[2 * e + 1]
        if part.degree[u] > 0 and part.degree[v] > 0:
            ends[count, 0], ends[count, 1], links[count] = place[u], place[v], part.link[e]
            count += 1
    return count, size


@numba.njit(cache=True)
def _evaluate(tape, required, steps, parts, starts, slots, link, node, max_states, max_visits):  # type: ignore[no-untyped-def]
    """Play the tape, run the sweeps, multiply what is required; stop early at too large a layer."""
    chances, sweeps = np.empty((slots, 2)), len(starts) - 1
    for i in range(len(link)):
        chances[i, 0], chances[i, 1] = link[i, 0], link[i, 1]
    for i in range(len(node)):
        chances[len(link) + i, 0], chances[len(link) + i, 1] = node[i, 0], node[i, 1]
    play(tape, chances)
    peak, states = np.int64(0), np.int64(0)
    for k in range(sweeps):
        own = gather(parts[starts[k] : starts[k + 1]], chances)
        sums = sweep(steps[starts[k] : starts[k + 1]], own, max_states, max_visits - states)
        up, down, most, visited = sums
        chances[slots - sweeps + k, 0], chances[slots - sweeps + k, 1] = up, down
        peak, states = max(peak, most), states + visited
        if peak > max_states or states > max_visits:
            break
    alive, failed = 1.0, 0.0  # a sum of its own: 1 - alive has no digits left of 1e-20
    for slot in required:
        failed += alive * chances[slot, 1]
        alive *= chances[slot, 0]
    return alive, failed, peak, states


class Block(NamedTuple):
    """A part of the network that cannot be reduced, as a problem and as a sweep through its links.

    All its nodes forward, and no terminal fails.
    """

    problem: Problem
    sweep: LinkSweep


class Blocks(NamedTuple):
    """It works when ``apart`` works and every block connects its terminals; all are independent."""

    apart: Chance
    blocks: list[Block]


def into_blocks(problem: Problem, ordered: bool = False) -> Blocks:
    """Split off what fails alone, reduce the rest and cut it at its cut nodes.

    Only with ``ordered`` do the sweeps sweep in a good order, which takes time to find.
    """
    require_relays(problem)
    parts = compiled(problem, ordered=ordered)
    if not parts.connected:
        return Blocks((0.0, 1.0), [])
    chances = parts.chances(
        problem.link, problem.node
    )  # the blocks' own, which are required too, are certain
    apart = series(CERTAIN, *map(tuple, chances[parts.required].tolist()))
    return Blocks(
        apart, [Block(_as_problem(rows), rows) for rows in parts.sweeps(problem.link, problem.node)]
    )


def combine(apart: Chance, brackets: Iterable[Bracket]) -> Bracket:
    """Bracket of the unreliability of the whole from those of the blocks."""
    lower, upper = apart, apart
    for low, high in brackets:
        lower, upper = series(lower, (1 - low, low)), series(upper, (1 - high, high))
    return min(float(lower[1]) * (1 - _SLACK), 1.0), min(float(upper[1]) * (1 + _SLACK), 1.0)


def _as_problem(rows: LinkSweep) -> Problem:
    """The network that a sweep sweeps through, its nodes in the order in which they enter."""
    at: dict[int, int] = {}
    node: list[list[float]] = []
    terminals, edges = [], []
    for step, chance in zip(rows.steps.tolist(), rows.chances.tolist(), strict=True):
        for side in (0, 1):
            if step[side] >= 0:
                at[step[side]] = len(node)
                if step[2 + side]:
                    terminals.append(len(node))
                node.append(chance[2 + 2 * side : 4 + 2 * side])
        edges.append((at[step[4]], at[step[5]]))
    return Problem(
        edges=np.array(edges, dtype=np.int64),
        link=np.ascontiguousarray(rows.chances[:, :2]),
        node=np.array(node),
        terminals=np.array(terminals, dtype=np.int64),
        transit=np.ones(len(node), dtype=np.bool_),
    )
