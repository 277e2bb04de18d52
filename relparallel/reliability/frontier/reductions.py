"""Make a network smaller without changing its K-terminal reliability, and write down how.

Every independent part has a *slot* that holds its chance (up, down): first the links, then the
nodes, then what the reductions make of them. Rules replace the network by a smaller one and, at
most, *require* a slot: without it everything fails. Chances play no role: a *tape* of rows, each of
which fills one slot from earlier ones, evaluates the rules for any chances. The network is then cut
at its cut nodes: a depth-first search from a terminal finds the blocks, and a block lies on a path
between terminals if and only if the part of the search tree below its topmost node holds a
terminal. Every other block goes.

=============  =============================================================================================
series         a non-terminal with two links becomes one link: a, b and c (-1: never fails) are up
degree one     a non-terminal with one link goes; a terminal's only link must work, its neighbour takes over
degree two     a terminal between two terminals: at least one link must work; both, given that, are in series
parallel       links between the same two nodes become one: a or b is up
=============  =============================================================================================

References
----------
Satyanarayana and Wood, "A linear-time algorithm for computing K-terminal reliability in
series-parallel networks", SIAM Journal on Computing 14, 1985. Hopcroft and Tarjan, "Algorithm 447:
efficient algorithms for graph manipulation", Communications of the ACM 16, 1973.
"""

from typing import Final, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.states import njit_borrowing

SERIES: Final = np.int64(0)  # plain numbers would compile what is called with them once more
PARALLEL: Final = np.int64(1)
BOTH: Final = np.int64(2)


IntArray = NDArray[np.int64]
_NO = np.int64(-1)
_ROWS, _REQUIRED, _SLOTS = 0, 1, 2


class Network(NamedTuple):
    """Links in doubly linked lists around their ends: half-links 2 e and 2 e + 1 are of link e."""

    end: IntArray
    after: IntArray
    before: IntArray
    head: IntArray
    degree: IntArray
    link: IntArray
    node: IntArray
    terminal: NDArray[np.bool_]


class Tape(NamedTuple):
    """Rows and required slots so far, in arrays with room to spare."""

    rows: IntArray
    required: IntArray
    counts: IntArray


@numba.njit(cache=True)
def tape_of(links, nodes):  # type: ignore[no-untyped-def]
    """Return an empty tape with room for the reductions of a network in blocks.

    A removed node writes at most three rows and requires at most two parts; blocks share at most n
    nodes.
    """
    room = 8 * nodes + 8
    counts = np.zeros(3, np.int64)
    counts[_SLOTS] = links + nodes
    return Tape(np.empty((room, 5), np.int64), np.empty(room, np.int64), counts)


@numba.njit(cache=True)
def network_of(ends, link, node, terminal):  # type: ignore[no-untyped-def]
    """A network of links ends[m, 2] with these slots; ``node`` and ``terminal`` become its own."""
    m, n = len(ends), len(node)
    network = Network(
        np.empty(2 * m, np.int64),
        np.empty(2 * m, np.int64),
        np.empty(2 * m, np.int64),
        np.full(n, -1, np.int64),
        np.zeros(n, np.int64),
        link,
        node,
        terminal,
    )
    for e in range(m - 1, -1, -1):  # so that lists run in the order of the links
        attach(network, e, ends[e, 0], ends[e, 1])
    return network


@njit_borrowing
def attach(network, e, u, v):  # type: ignore[no-untyped-def]
    """Put link e between u and v."""
    for half, at in ((2 * e, u), (2 * e + 1, v)):
        first = network.head[at]
        network.end[half], network.after[half], network.before[half] = at, first, -1
        if first >= 0:
            network.before[first] = half
        network.head[at] = half
        network.degree[at] += 1


@njit_borrowing
def detach(network, e):  # type: ignore[no-untyped-def]
    """Take link e out."""
    for half in (2 * e, 2 * e + 1):
        before, after, at = network.before[half], network.after[half], network.end[half]
        if before >= 0:
            network.after[before] = after
        else:
            network.head[at] = after
        if after >= 0:
            network.before[after] = before
        network.degree[at] -= 1


@njit_borrowing
def write(tape, code, a, b, c):  # type: ignore[no-untyped-def]
    """Append a row; return the slot that it fills."""
    row, made = tape.counts[_ROWS], tape.counts[_SLOTS]
    tape.rows[row, 0], tape.rows[row, 1] = code, made
    tape.rows[row, 2], tape.rows[row, 3], tape.rows[row, 4] = a, b, c
    tape.counts[_ROWS], tape.counts[_SLOTS] = row + 1, made + 1
    return made


@njit_borrowing
def require(tape, slot):  # type: ignore[no-untyped-def]
    """Require that a part is up; -1 always is."""
    if slot >= 0:
        tape.required[tape.counts[_REQUIRED]] = slot
        tape.counts[_REQUIRED] += 1


@njit_borrowing
def make_terminal(network, tape, v):  # type: ignore[no-untyped-def]
    """Add a terminal, which must be up; return whether it is new."""
    new = not network.terminal[v]
    network.terminal[v] = True
    require(tape, network.node[v])
    network.node[v] = -1
    return new


@njit_borrowing
def _join(network, tape, e, u, v):  # type: ignore[no-untyped-def]
    """Put link e between u and v, in parallel to one that may be there."""
    # one way to a parallel link is enough: along the shorter list
    near, far = (u, v) if network.degree[u] <= network.degree[v] else (v, u)
    half = network.head[near]
    while half >= 0:
        if network.end[half ^ 1] == far:
            network.link[half // 2] = write(
                tape, PARALLEL, network.link[half // 2], network.link[e], _NO
            )
            return
        half = network.after[half]
    attach(network, e, u, v)


@numba.njit(cache=True)
def reduce(network, tape, terminals):  # type: ignore[no-untyped-def]
    """Apply the rules for nodes with at most two links, in place, until none fits."""
    n = len(network.degree)
    todo, top = np.empty(4 * n + len(network.end), np.int64), 0
    for v in range(n - 1, -1, -1):
        if network.degree[v] <= 2:
            todo[top] = v
            top += 1
    while top > 0 and terminals > 1:
        top -= 1
        v = todo[top]
        if not 0 <= network.degree[v] <= 2:
            continue
        if network.degree[v] == 0:
            if network.terminal[v]:
                return 0
            network.degree[v] = -1
            continue
        first = network.head[v]
        second = network.after[first]
        a = network.end[first ^ 1]
        b = network.end[second ^ 1] if second >= 0 else a
        if (
            network.terminal[v]
            and second >= 0
            and not (network.terminal[a] and network.terminal[b])
        ):
            continue
        news = not network.terminal[a]
        terminals += _remove(network, tape, v, first, second)
        todo[top], todo[top + 1] = b, a
        top += 2
        half = network.head[a] if news and network.terminal[a] else -1
        while half >= 0:  # a new terminal: the rule of degree two may fit next to it
            todo[top] = network.end[half ^ 1]
            top += 1
            half = network.after[half]
    return terminals


@njit_borrowing
def _remove(network, tape, v, first, second):  # type: ignore[no-untyped-def]
    """Remove a node with its one or two half-links; return the change in number of terminals."""
    e, a, change = first // 2, network.end[first ^ 1], 0
    detach(network, e)
    if second < 0:
        if network.terminal[v]:
            require(tape, network.link[e])
            change = make_terminal(network, tape, a) - 1  # the neighbour takes its place
    else:
        f, b = second // 2, network.end[second ^ 1]
        detach(network, f)
        if network.terminal[v]:
            require(tape, write(tape, PARALLEL, network.link[e], network.link[f], _NO))
            network.link[e] = write(tape, BOTH, network.link[e], network.link[f], _NO)
            change = -1
        else:
            network.link[e] = write(tape, SERIES, network.link[e], network.link[f], network.node[v])
        _join(network, tape, e, a, b)
    network.degree[v], network.terminal[v] = -1, False
    return change


@njit_borrowing
def play(rows, chances):  # type: ignore[no-untyped-def]
    """Fill the slots that the tape makes, in place."""
    for row in range(len(rows)):
        code, made, a, b, c = rows[row]
        up_a, down_a = chances[a, 0], chances[a, 1]
        up_b, down_b = chances[b, 0], chances[b, 1]
        if code == SERIES:
            up, down = up_a * up_b, down_a + up_a * down_b
            if c >= 0:
                down += up * chances[c, 1]
                up *= chances[c, 0]
        elif code == PARALLEL:
            up, down = up_a + down_a * up_b, down_a * down_b
        else:
            some = up_a + down_a * up_b
            # down, as it stays if only one of them comes up
            up = up_a * up_b / some if some > 0.0 else 0.0
            down = (up_a * down_b + down_a * up_b) / some if some > 0.0 else 1.0
        chances[made, 0], chances[made, 1] = up, down


@numba.njit(cache=True)
def split(network, tape, root, cut):  # type: ignore[no-untyped-def]
    """Assign every link on a path between terminals to its block.

    The nodes where these blocks meet become terminals, in place: they must be up.
    """
    n, m = len(network.degree), len(network.link)
    # order of discovery; what is reached back
    found, low = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    entry = np.full(n, -1, np.int64)  # half-link, at the node itself, by which it was found
    turn = network.head.copy()  # half-link to look at next
    below = np.zeros(n, np.int64)  # terminals in the search tree from here on down
    owner = np.full(n, -1, np.int64)  # block in which the node is not the topmost
    path, open_nodes = np.empty(n, np.int64), np.empty(n, np.int64)
    path[0], depth, waiting, blocks, time = root, 1, 0, 0, 1
    found[root], below[root] = 0, 1
    while depth > 0:
        v = path[depth - 1]
        half = turn[v]
        if half >= 0:
            turn[v] = network.after[half]
            u = network.end[half ^ 1]
            if found[u] < 0:
                found[u], low[u], entry[u] = time, time, half ^ 1
                below[u] = network.terminal[u]
                time += 1
                path[depth], open_nodes[waiting] = u, u
                depth += 1
                waiting += 1
            elif half != entry[v]:
                low[v] = min(low[v], found[u])
            continue
        depth -= 1
        if depth == 0:
            break
        above = path[depth - 1]
        below[above] += below[v]
        low[above] = min(low[above], low[v])
        if low[v] < found[above]:  # a link leads past ``above``, which is no cut node here
            continue
        while True:  # v closes a block under ``above``
            waiting -= 1
            owner[open_nodes[waiting]] = blocks if below[v] > 0 else -1
            if open_nodes[waiting] == v:
                break
        if below[v] > 0:
            blocks += 1
            if cut:
                make_terminal(network, tape, above)
    block = np.full(m, -1, np.int64)
    for e in range(m):
        u, v = network.end[2 * e], network.end[2 * e + 1]
        if network.degree[u] > 0 and network.degree[v] > 0:
            block[e] = owner[v] if found[v] > found[u] else owner[u]
            if not cut:
                block[e] = 0 if found[u] >= 0 else -1
    return block, blocks if cut else 1, below[root]
