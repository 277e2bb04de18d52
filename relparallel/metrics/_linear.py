"""Largest concurrent flow by linear programming, exact and certified by its dual.

Traffic is aggregated by sender: one flow variable for each sender and arc. Where symmetry is proved
one sender stands for its orbit, capacity holds for orbits of arcs (the mean over the group of any
flow is a flow), and the arcs of one sender are joined when colour refinement from it cannot tell
them apart (in an equitable partition the mean over a class keeps conservation: Grohe et al.,
"Dimension reduction via colour refinement", ESA 2014).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from relparallel.metrics._demand import Problem
from relparallel.topology._arrays import FloatArray, IntArray
from relparallel.topology.symmetry import refine_colours


@dataclass(frozen=True, kw_only=True, slots=True)
class Commodity:
    """What one root sends: cells of nodes, cell ``source`` being the root alone, and arc classes.

    ``row`` is the class of arcs whose capacity a variable uses, ``demand`` what each cell receives
    in all, ``scale`` how many nodes send alike.
    """

    tail: IntArray
    head: IntArray
    row: IntArray
    demand: FloatArray
    source: int
    scale: float


def commodities(problem: Problem, most: int) -> list[Commodity]:
    """Variables of every root; none if the first root says there would be more than ``most``."""
    first = _commodity(problem, 0)
    if first.tail.size * problem.roots.size > most:
        return []
    return [first, *(_commodity(problem, i) for i in range(1, problem.roots.size))]


def solve(problem: Problem, blocks: list[Commodity]) -> tuple[float, FloatArray]:
    """Throughput by interior points with crossover, and the price of every arc."""
    rows = int(problem.arc_class.max()) + 1
    capacity = np.bincount(problem.arc_class, weights=problem.net.capacity, minlength=rows)
    kept = [_conservation(block) for block in blocks]
    used = [_uses(block, rows) for block in blocks]
    received = np.concatenate([np.delete(block.demand, block.source) for block in blocks])
    equal = scipy.sparse.hstack(
        [scipy.sparse.block_diag(kept, format="csr"), scipy.sparse.csr_array(-received[:, None])],
        format="csc",
    )
    within = scipy.sparse.hstack([*used, scipy.sparse.csr_array((rows, 1))], format="csc")
    cost = np.append(np.zeros(equal.shape[1] - 1), -1.0)
    found = scipy.optimize.linprog(  # type: ignore[call-overload]
        cost,
        A_ub=within,
        b_ub=capacity,
        A_eq=equal,
        b_eq=np.zeros(equal.shape[0]),
        method="highs-ipm",
    )
    if found.x is None:
        raise ArithmeticError(f"the linear program has no solution: {found.message}")
    return float(found.x[-1]), np.maximum(-found.ineqlin.marginals, 0.0)[problem.arc_class]


def _commodity(problem: Problem, i: int) -> Commodity:
    net, root = problem.net, int(problem.roots[i])
    cell = _cells(problem, root) if problem.symmetric else np.arange(net.weight.size)
    useful = (net.transit[net.tail] | (net.tail == root)) & (net.head != root)
    ends = np.column_stack([cell[net.tail], cell[net.head], problem.arc_class])[useful]
    if problem.symmetric:
        _, pair = np.unique(ends[:, 0] * (cell.max() + 1) + ends[:, 1], return_inverse=True)
        _, first = np.unique(pair * (problem.arc_class.max() + 1) + ends[:, 2], return_index=True)
        ends = ends[first]
    return Commodity(
        tail=ends[:, 0],
        head=ends[:, 1],
        row=ends[:, 2],
        demand=np.asarray(np.bincount(cell, weights=problem.demand[i]), dtype=np.float64),
        source=int(cell[root]),
        scale=float(problem.scale[i]),
    )


def _cells(problem: Problem, root: int) -> IntArray:
    """Coarsest equitable partition of the nodes that keeps classes and sets the root apart."""
    net = problem.net
    own = np.arange(net.weight.size) == root
    start = np.column_stack([problem.node_class, own, net.weight])
    up = net.tail < net.head
    ends = np.column_stack([net.tail, net.head])[up]
    return refine_colours(ends, start, problem.arc_class[up], problem.arc_class[net.reverse[up]])[0]


def _conservation(block: Commodity) -> scipy.sparse.csr_array:
    """What enters a cell less what leaves it; nothing is asked of the source."""
    number, arcs = block.demand.size, np.arange(block.tail.size)
    signs = np.repeat([1.0, -1.0], arcs.size)
    entries = (signs, (np.concatenate([block.head, block.tail]), np.tile(arcs, 2)))
    whole = scipy.sparse.coo_array(entries, shape=(number, arcs.size)).tocsr()
    kept: scipy.sparse.csr_array = whole[np.flatnonzero(np.arange(number) != block.source)]
    return kept


def _uses(block: Commodity, rows: int) -> scipy.sparse.csr_array:
    """Capacity that a unit of every variable takes."""
    arcs = np.arange(block.tail.size)
    width = np.full(arcs.size, block.scale)
    return scipy.sparse.coo_array((width, (block.row, arcs)), shape=(rows, arcs.size)).tocsr()
