"""Which small sets of parts cut a network apart, and how likely every cut that is not listed is at most.

A *cut* is a set of links and nodes whose failure separates two terminals; it is minimal when no part of it
does. The network fails exactly when some minimal cut is down. The search below lists the likely ones and
bounds the probability of all others, so that nothing is left out silently.

**Search.** Number the terminals t_1, t_2, ... by breadth first. Let C be a minimal cut, t_i the first
terminal that C separates from t_1, S the component of t_i without C and T that of t_1. The search colours
nodes: S, T, or D for a node of C. It starts with t_i in S and t_1 ... t_(i-1) in T, and decides one node next
to S after the other. C leads to exactly one child of every decision, namely the one with its own colours. The
parts that a partial colouring already forces into the cut are the links between S and T and the nodes of D;
their probability is the product of their chances.

**Leaf.** Pack paths from S to T greedily through nodes without a colour so that no two share a part that can
fail. Every cut below this colouring has to break them all, so

    P(some cut below is down) <= P(forced parts down) * product over the paths of P(path broken) .

If this is below ``floor`` the colouring is a leaf and the bound is added to ``rest``. If there is no path,
the forced parts are a cut by themselves; it is listed when it is minimal.

**Theorem.** U <= P(some listed cut is down) + rest. *Proof.* In a state that fails, all parts of some minimal
cut C are down. The colours of C lead to one leaf. If that leaf is a bound, the state is counted there: the
forced parts belong to C, and C breaks every path from S to T. Else the forced parts are a cut inside C, hence
C itself, which is listed.

Every minimal cut that is likelier than ``floor``, or has at most ``limit`` parts where that is the rule, is
listed: a leaf that is a bound holds none.

References
----------
Vazirani and Yannakakis, "Suboptimal cuts: their enumeration, weight and number", ICALP 1992 (search trees
over partial colourings, pruned by flows).
Karger, "A randomized fully polynomial time approximation scheme for the all-terminal network reliability
problem", SIAM Journal on Computing 29, 1999 (few cuts are near-minimum; the tail of `karger_tail`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.problem import Problem

__all__ = ["MAX_STEPS", "TINY", "CutFamily", "find_cuts", "karger_tail"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MAX_STEPS: Final = 2**29  # links that one search looks at, some seconds
MAX_CUTS: Final = 200_000
_ROUNDING: Final = 1 + 1e-9  # more than the rounding of a million products and sums
TINY: Final = 1e-300  # a product below this may have underflowed; more is never claimed
_FREE, _S, _T, _D = 0, 1, 2, 3


@dataclass(frozen=True, kw_only=True, slots=True)
class CutFamily:
    """Minimal cuts of a network, and a bound on all others.

    Attributes
    ----------
    starts : int64[c + 1]
        Where each cut begins in ``parts``.
    parts : int64[...]
        Links by their row, and node v as (number of links) + v.
    chances : float64[c]
        Probability that all parts of the cut are down.
    rest : float
        At least the probability that some minimal cut is down that is not listed.
    floor : float
        Every minimal cut likelier than this is listed, unless the search was stopped.
    visited : int
        Partial colourings that were looked at.
    steps : int
        Links that were looked at.
    stopped : bool
        Whether the search ended at its limit of steps or cuts; ``rest`` holds all the same.
    """

    starts: IntArray
    parts: IntArray
    chances: FloatArray
    rest: float
    floor: float
    visited: int
    steps: int
    stopped: bool

    def __len__(self) -> int:
        return len(self.chances)

    @property
    def sizes(self) -> IntArray:
        """Number of parts of each cut."""
        return np.diff(self.starts)


def find_cuts(
    problem: Problem, floor: float, limit: int = 2**31, max_steps: int = MAX_STEPS, max_cuts: int = MAX_CUTS
) -> CutFamily:
    """List the minimal cuts that are likelier than ``floor`` and have at most ``limit`` parts.

    Terminals are taken to be up: their own failure is a cut by itself, which the caller accounts for.
    """
    n = len(problem.node)
    indptr, near, link = _rows(n, problem.edges)
    up, down = np.ascontiguousarray(problem.link.T)
    node_up, node_down = problem.node.T.copy()
    node_up[problem.terminals], node_down[problem.terminals] = 1.0, 0.0
    order = _by_distance(n, problem.edges, problem.terminals)
    network = (indptr, near, link, up, down, node_up, node_down)
    starts, parts, chances, rest, visited, steps, stopped = _search(
        network, order, np.array([floor, TINY]), np.array([limit, max_steps, max_cuts])
    )
    return CutFamily(
        starts=starts,
        parts=parts,
        chances=chances,
        rest=min(rest * _ROUNDING, 1.0),
        floor=floor,
        visited=visited,
        steps=steps,
        stopped=stopped,
    )


def karger_tail(n: int, likeliest: float, floor: float) -> float:
    """Bound the probability that a cut of chance at most ``floor`` is down in a connected graph of n nodes.

    For links that fail alone and all nodes as terminals. Give a link of chance q the weight -log q; the
    likeliest cut is then a minimum cut of weight c, and at most n**(2 a) cuts weigh a c or less. With
    likeliest = n**-(2 + d) the sum over all cuts of chance at most floor = likeliest**a is at most
    n**(-a d) (1 + 2/d); where d <= 0 nothing is known and the bound is 1.
    """
    if likeliest <= 0.0:
        return 1.0
    excess = -math.log(likeliest) / math.log(n) - 2
    if excess <= 0:
        return 1.0
    share = math.log(floor) / math.log(likeliest)
    return min(1.0, math.exp(-share * excess * math.log(n)) * (1 + 2 / excess))


def _rows(n: int, edges: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Neighbours of every node, and the links that lead to them, in compressed rows."""
    ends = np.concatenate([edges, edges[:, ::-1]])
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends[:, 0], minlength=n), out=indptr[1:])
    return indptr, ends[order, 1], order % len(edges) if len(edges) else order


def _by_distance(n: int, edges: IntArray, terminals: IntArray) -> IntArray:
    """The terminals breadth first from the first of them: each is close to one before it."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
    reached = breadth_first_order(graph, int(terminals[0]), directed=False, return_predecessors=False)
    order = reached[np.isin(reached, terminals)]
    return np.concatenate([order, np.setdiff1d(terminals, order)]).astype(np.int64)


@numba.njit(cache=True)
def _next_path(network, colour, inside, used_link, used_node, seen, stamp, since, trail):  # type: ignore[no-untyped-def]
    """Shortest path from S to T whose parts are not used: its last node and link, or -1, -1.

    ``trail`` holds, per node, the node and the link by which it was reached, the queue, and the number of
    links that were looked at.
    """
    indptr, near, link = network[0], network[1], network[2]
    parent, via, queue, steps = trail
    end = len(inside)
    queue[:end] = inside
    head = 0
    while head < end:
        x = queue[head]
        head += 1
        steps[0] += indptr[x + 1] - indptr[x]
        for k in range(indptr[x], indptr[x + 1]):
            y, kind = near[k], colour[near[k]]
            if kind in (_S, _D) or used_link[link[k]] > since:
                continue
            if kind == _T:
                if colour[x] == _S:
                    continue
                return x, link[k]
            if seen[y] != stamp and used_node[y] <= since:
                seen[y], parent[y], via[y] = stamp, x, link[k]
                queue[end] = y
                end += 1
    return -1, -1


@numba.njit(cache=True)
def _pack(network, colour, inside, weight, floor, marks, stamp, trail):  # type: ignore[no-untyped-def]
    """Bound below a colouring, the number of disjoint paths packed, and the node to decide next."""
    up, down, node_up, node_down = network[3], network[4], network[5], network[6]
    used_link, used_node, seen = marks
    parent, via, _, _ = trail
    bound, paths, first, since = weight, 0, -1, stamp
    while True:
        stamp += 1
        x, last = _next_path(network, colour, inside, used_link, used_node, seen, stamp, since, trail)
        if x < 0:
            return bound, paths, first, stamp
        works, broken = up[last], down[last]
        used_link[last] = stamp
        while colour[x] != _S:
            broken += works * node_down[x]
            works *= node_up[x]
            broken += works * down[via[x]]
            works *= up[via[x]]
            used_link[via[x]] = stamp
            if node_down[x] > 0.0:
                used_node[x] = stamp
            if paths == 0:
                first = x
            x = parent[x]
        paths += 1
        bound *= min(broken, 1.0)
        if bound < floor:
            return bound, paths, first, stamp


@numba.njit(cache=True)
def _is_minimal(network, colour, root, seen, stamp, queue):  # type: ignore[no-untyped-def]
    """Whether all of T, and a neighbour of every node of D, is connected to the root outside S and D."""
    indptr, near = network[0], network[1]
    queue[0], seen[root] = root, stamp
    head, end = 0, 1
    while head < end:
        x = queue[head]
        head += 1
        for k in range(indptr[x], indptr[x + 1]):
            y = near[k]
            if colour[y] != _S and colour[y] != _D and seen[y] != stamp:
                seen[y] = stamp
                queue[end] = y
                end += 1
    for x in range(len(colour)):
        if colour[x] == _T and seen[x] != stamp:
            return False
        if colour[x] == _D:
            touches = False
            for k in range(indptr[x], indptr[x + 1]):
                touches |= seen[near[k]] == stamp
            if not touches:
                return False
    return True


@numba.njit(cache=True)
def _forced(network, colour, inside):  # type: ignore[no-untyped-def]
    """The links between S and T and the nodes of D."""
    indptr, near, link, up = network[0], network[1], network[2], network[3]
    found = numba.typed.List.empty_list(numba.int64)
    for x in inside:
        for k in range(indptr[x], indptr[x + 1]):
            if colour[near[k]] == _T:
                found.append(link[k])
    for x in range(len(colour)):
        if colour[x] == _D:
            found.append(len(up) + x)
    return found


@numba.njit(cache=True)
def _paint(network, colour, node, kind, weight, size):  # type: ignore[no-untyped-def]
    """Give a node its colour; return the probability and the number of the forced parts with it."""
    indptr, near, link, down, node_down = network[0], network[1], network[2], network[4], network[6]
    colour[node] = kind
    if kind == _D:
        return weight * node_down[node], size + 1
    other = _T if kind == _S else _S
    for k in range(indptr[node], indptr[node + 1]):
        if colour[near[k]] == other:
            weight *= down[link[k]]
            size += 1
    return weight, size


@numba.njit(cache=True)
def _search(network, terminals, floors, limits):  # type: ignore[no-untyped-def]
    """The search of the module's docstring, depth first; the stack holds one row per decided node."""
    n, m, (floor, tiny), (limit, max_steps, max_cuts) = len(network[0]) - 1, len(network[3]), floors, limits
    colour, inside = np.zeros(n, np.int8), np.empty(n, np.int64)
    marks = (np.zeros(m, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64))
    trail = (np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(1, np.int64))
    node, kind = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    weight, size = np.empty(n + 1), np.empty(n + 1, np.int64)
    parts = numba.typed.List.empty_list(numba.int64)
    starts, chances = [0], [0.0]
    rest, visited, stamp, stopped = 0.0, 0, 0, False
    for i in range(1, len(terminals)):
        colour[:] = _FREE
        colour[terminals[:i]] = _T
        inside[0], depth, count = terminals[i], 0, 1
        weight[0], size[0] = _paint(network, colour, terminals[i], _S, 1.0, 0)
        entering = True
        while entering or depth > 0:
            if entering:
                visited += 1
                stopped |= trail[3][0] >= max_steps or len(chances) > max_cuts
                bar = np.inf if stopped else floor
                bound, paths, first, stamp = _pack(
                    network, colour, inside[:count], weight[depth], min(bar, floor), marks, stamp, trail
                )
                entering = False
                if paths == 0 and not stopped:
                    stamp += 1
                    if _is_minimal(network, colour, terminals[0], marks[2], stamp, trail[2]):
                        parts.extend(_forced(network, colour, inside[:count]))
                        starts.append(len(parts))
                        chances.append(weight[depth])
                elif bound < bar or bound == 0.0 or size[depth] + paths > limit:
                    rest += max(bound, tiny) if weight[depth] > 0.0 else 0.0
                else:
                    node[depth], kind[depth] = first, _FREE
                    depth += 1
            v = node[depth - 1]
            if depth > 0:  # the next colour of the last decided node
                count -= kind[depth - 1] == _S
                colour[v] = _FREE
                kind[depth - 1] += 1
                if kind[depth - 1] > (_D if network[6][v] > 0.0 else _T):
                    depth -= 1
                    continue
                weight[depth], size[depth] = _paint(
                    network, colour, v, kind[depth - 1], weight[depth - 1], size[depth - 1]
                )
                if kind[depth - 1] == _S:
                    inside[count] = v
                    count += 1
                entering = True
    flat = np.empty(len(parts), np.int64)
    for i in range(len(parts)):
        flat[i] = parts[i]
    return np.array(starts), flat, np.array(chances)[1:], rest, visited, trail[3][0], stopped
