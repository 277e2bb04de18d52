"""Which small sets of parts cut a network apart, and how likely each unlisted cut is at most.

A *cut* is a set of links and nodes whose failure separates two terminals; it is minimal when no
part of it does. The network fails exactly when some minimal cut is down. The search below lists the
likely ones and bounds the probability of all others, so that nothing is left out silently.

**Search.** Number the terminals t_1, t_2, ... by breadth first. Let C be a minimal cut, t_i the
first terminal that C separates from t_1, S the component of t_i without C and T that of t_1. The
search colours nodes: S, T, or D for a node of C. It starts with t_i in S and t_1 ... t_(i-1) in T,
and decides one node next to S after the other. C leads to exactly one child of every decision,
namely the one with its own colours. The parts that a partial colouring already forces into the cut
are the links between S and T and the nodes of D; their probability is the product of their chances.

**Leaf.** Pack paths from S to T greedily through nodes without a colour so that no two share a part
that can fail. Every cut below this colouring has to break them all, so

    P(some cut below is down) <= P(forced parts down) * product over the paths of P(path broken) .

If this is below ``floor`` the colouring is a leaf and the bound is added to ``rest``. If there is
no path, the forced parts are a cut by themselves; it is listed when it is minimal.

**Theorem.** U <= P(some listed cut is down) + rest. *Proof.* In a state that fails, all parts of
some minimal cut C are down. The colours of C lead to one leaf. If that leaf is a bound, the state
is counted there: the forced parts belong to C, and C breaks every path from S to T. Else the forced
parts are a cut inside C, hence C itself, which is listed.

Every minimal cut that is likelier than ``floor``, or has at most ``limit`` parts where that is the
rule, is listed: a leaf that is a bound holds none.

References
----------
Vazirani and Yannakakis, "Suboptimal cuts: their enumeration, weight and number", ICALP 1992 (search
trees over partial colourings, pruned by flows). Karger, "A randomized fully polynomial time
approximation scheme for the all-terminal network reliability problem", SIAM Journal on Computing
29, 1999 (few cuts are near-minimum; the tail of `karger_tail`).
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

from relparallel.reliability.bounding.cut_search import search
from relparallel.reliability.problem import Problem

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MAX_STEPS: Final = 2**29  # links that one search looks at, some seconds
MAX_CUTS: Final = 200_000
_ROUNDING: Final = 1 + 1e-9  # more than the rounding of a million products and sums
TINY: Final = 1e-300  # a product below this may have underflowed; more is never claimed


@dataclass(frozen=True, kw_only=True, slots=True)
class CutFamily:
    """Minimal cuts of a network, and a bound on all others."""

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
    problem: Problem,
    floor: float,
    limit: int = 2**31,
    max_steps: int = MAX_STEPS,
    max_cuts: int = MAX_CUTS,
) -> CutFamily:
    """List minimal cuts, terminals up, likelier than ``floor``, of at most ``limit`` parts."""
    n = len(problem.node)
    indptr, near, link = rows_of(n, problem.edges)
    up, down = np.ascontiguousarray(problem.link.T)
    node_up, node_down = problem.node.T.copy()
    node_up[problem.terminals], node_down[problem.terminals] = 1.0, 0.0
    order = _by_distance(n, problem.edges, problem.terminals)
    network = (indptr, near, link, up, down, node_up, node_down)
    starts, parts, chances, rest, visited, steps, stopped = search(
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
    """Bound the probability that a cut of chance <= ``floor`` is down in a connected n-node graph.

    For links that fail alone and all nodes as terminals. Give a link of chance q the weight -log q;
    the likeliest cut is then a minimum cut of weight c, and at most n**(2 a) cuts weigh a c or
    less. With likeliest = n**-(2 + d) the sum over all cuts of chance at most floor = likeliest**a
    is at most n**(-a d) (1 + 2/d); where d <= 0 nothing is known and the bound is 1.
    """
    if likeliest <= 0.0:
        return 1.0
    excess = -math.log(likeliest) / math.log(n) - 2
    if excess <= 0:
        return 1.0
    share = math.log(floor) / math.log(likeliest)
    return min(1.0, math.exp(-share * excess * math.log(n)) * (1 + 2 / excess))


def rows_of(n: int, edges: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Neighbours of every node, and the links that lead to them, in compressed rows."""
    ends = np.concatenate([edges, edges[:, ::-1]])
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends[:, 0], minlength=n), out=indptr[1:])
    return indptr, ends[order, 1], order % len(edges) if len(edges) else order


def _by_distance(n: int, edges: IntArray, terminals: IntArray) -> IntArray:
    """The terminals breadth first, each close to one before it."""
    graph = scipy.sparse.coo_array(
        (np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)
    ).tocsr()
    reached = scipy.sparse.csgraph.breadth_first_order(
        graph, int(terminals[0]), directed=False, return_predecessors=False
    )
    order = reached[np.isin(reached, terminals)]
    return np.concatenate([order, np.setdiff1d(terminals, order)]).astype(np.int64)
