"""How long an all-reduce takes, by every algorithm, and which is best: closed forms on two levels.

n ranks with g in each of k = n/g nodes reduce a vector of N bytes; a and B are latency and
bandwidth inside a node, A and C those of a node's network. Every form is what `rounds_time` says of
the rounds where n divides N, but for the double tree, of which the form is an upper bound. A form
stands under ``@form(kind, algorithm)``; collectives without one are priced by their rounds.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import (
    MOST_DEVICES,
    bare,
    require_choice,
    require_instance,
    require_number,
    require_real,
    require_whole,
)
from relparallel.parallel import algorithms, servers
from relparallel.parallel.collectives import COLLECTIVES as COLLECTIVES, Links, Round
from relparallel.parallel.levels import best_blueconnect_order, blueconnect_time, require_levels

RINGS: Final = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}
"""Times that a collective passes round a ring, with n - 1 of n parts each."""
_LARGEST: Final = 1e18  # bytes of a vector
_MOST_PIECES: Final = 2.0**20

Form = Callable[[Any, Any, Any, Links], Any]
FORMS: Final[dict[str, dict[str, Form]]] = {}
"""Closed forms of size, ranks, ranks per node and links, by kind of collective and by algorithm."""
_GENERATORS: Final = (algorithms, servers)  # which enter their generators into `COLLECTIVES`


def form(algorithm: str, *kinds: str) -> Callable[[Form], Form]:
    """Enter a closed form for an algorithm of some kinds of collective."""

    def enter(function: Form) -> Form:
        for kind in kinds:
            FORMS.setdefault(kind, {})[algorithm] = function
        return function

    return enter


def collective(
    kind: str,
    algorithm: str,
    ranks: int,
    elements: int,
    ranks_per_node: int | None = None,
    pieces: int | None = None,
    servers: int | None = None,
    factors: Sequence[int] | None = None,
) -> Iterator[Round]:
    """Return the rounds of messages of a collective by one algorithm.

    Parameters
    ----------
    kind, algorithm : str
        A key of `COLLECTIVES`, and one of its algorithms.
    ranks, elements : int
        Ranks n, numbered node by node, and elements N of the vector, each at least 1. In an
        all-to-all the vector of every rank has a row of N elements for each rank that sends.
    ranks_per_node : int, optional
        Ranks g of a node, a divisor of n, for algorithms that know nodes; all ranks where omitted.
    pieces : int, optional
        Pieces of a vector, for algorithms that send it piece after piece.
    servers : int, optional
        Ranks at the end that only sum, in a "server_sum"; 1 where omitted.
    factors : sequence of int, optional
        Sizes of the groups of "blueconnect", which multiply to n.

    Returns
    -------
    iterator of Round
        Messages, round by round, for `execute`, `bytes_sent`, `rounds_time` and `plan_rounds`.

    Examples
    --------
    >>> from relparallel.parallel import execute
    >>> execute(collective("all_reduce", "tree", 3, 2), [[1, 2], [10, 20], [100, 200]])[1].tolist()
    [111.0, 222.0]
    """
    require_choice(tuple(COLLECTIVES), kind=kind)
    generator = COLLECTIVES[kind][require_choice(tuple(COLLECTIVES[kind]), algorithm=algorithm)]
    wanted = {
        "ranks_per_node": ranks if ranks_per_node is None else ranks_per_node,
        "pieces": pieces,
        "servers": servers,
        "factors": factors,
    }
    known = inspect.signature(generator).parameters
    return generator(
        ranks, elements, **{k: v for k, v in wanted.items() if k in known and v is not None}
    )


def collective_time(
    kind: str,
    algorithm: str,
    size: ArrayLike,
    ranks: ArrayLike | None = None,
    ranks_per_node: ArrayLike | None = None,
    links: Links | None = None,
    *,
    levels: Sequence[tuple[int, float, float]] | None = None,
) -> Any:
    """Time of a collective by one algorithm.

    Parameters
    ----------
    kind, algorithm : str
        A key of ``FORMS`` ("all_reduce", "reduce_scatter", "all_gather"), and one of
        ``FORMS[kind]``.
    size : array_like
        Bytes N of the whole vector.
    ranks, ranks_per_node : array_like of int
        Ranks n, and how many share a node: a divisor of n.
    links : Links
        Latencies and bandwidths.
    levels : sequence of (ranks, latency, bandwidth), optional
        In place of ranks, nodes and links for the all-reduces "blueconnect", over its best factors,
        and "ring": any number of levels, as `blueconnect_time` takes them.

    Returns
    -------
    float or numpy.ndarray
        Seconds, of the shape to which the arguments broadcast; 0 for one rank.

    Notes
    -----
    With x = max(a + N/(n B), A + N/(n C)), without the first if g = 1 and the second if k = 1:

    - ring: all-reduce 2 (n - 1) x, all-gather and reduce-scatter half of it;
    - tree: 2 log2 g (a + N/B) + 2 log2 k (A + N/C);
    - halving_doubling: 2 log2 g a + 2 (g - 1)/g N/B + 2 log2 k A + 2 (k - 1)/k N/C for powers of
      two;
    - hierarchical: 2 (g - 1)(a + N/(g B)) + 2 (k - 1)(A + N/(k C)), the others half of it;
    - double_tree: 2 (D + p - 1)(a + N/(p B)) with the best number p of pieces; over nodes between a
      reduce-scatter and an all-gather inside them, if there are several;
    - recursive_doubling: log2 g (a + N/B) + log2 k (A + g N/C) for powers of two.

    Thakur, Rabenseifner and Gropp 2005. Chan et al., "Collective communication", 2007.

    Examples
    --------
    >>> links = Links(latency=1e-6, bandwidth=200e9, network_latency=5e-6, network_bandwidth=100e9)
    >>> times = collective_time("all_reduce", "ring", [1e6, 1e9], ranks=16, ranks_per_node=8, links=links)
    >>> (times * 1e3).round(3).tolist()
    [0.169, 18.9]
    """
    if levels is not None:
        return _on_levels(kind, algorithm, size, levels)
    closed = require_form(kind, algorithm=algorithm)
    number = np.asarray(require_real(size=size, at_least=0, at_most=_LARGEST))
    n, g = require_whole(
        ranks=ranks, ranks_per_node=ranks_per_node, at_least=1, at_most=MOST_DEVICES
    )
    if np.any(n % g):
        raise ValueError(f"ranks_per_node must divide ranks = {ranks!r}, got {ranks_per_node!r}")
    given: Links = require_instance(Links, links=links)
    return bare(np.where(n > 1, given.launch + closed(number, n, g, given), 0.0))


def _on_levels(
    kind: str, algorithm: str, size: Any, levels: Sequence[tuple[int, float, float]]
) -> float:
    """All-reduce time over levels: by best factors, or by one ring as slow as its slowest link."""
    require_choice(("all_reduce",), kind=kind)
    require_choice(("blueconnect", "ring"), algorithm=algorithm)
    if algorithm == "blueconnect":
        return blueconnect_time(size, best_blueconnect_order(size, levels))
    known = require_levels(levels)
    moved, ranks = require_number(size=size, at_least=0), math.prod(p for p, _, _ in known)
    return 2 * (ranks - 1) * max((a + moved / ranks / b for p, a, b in known if p > 1), default=0.0)


def require_form(kind: str, **named: str) -> Form:
    """The closed form of an algorithm, or what there is instead."""
    ((name, algorithm),) = named.items()
    require_instance(str, **named)
    forms = FORMS[require_choice(tuple(FORMS), kind=kind)]
    if algorithm in COLLECTIVES.get(kind, {}) and algorithm not in forms:
        raise ValueError(
            f"{name} must have a closed form, which are {tuple(forms)}, got {algorithm!r}: price "
            "its rounds, "
            f"rounds_time(collective({kind!r}, {algorithm!r}, ...), ...)"
        )
    return forms[require_choice(tuple(forms), **named)]


def one_ring(n: Any, a: Any, near: Any, A: Any, far: Any) -> Any:
    """Ring of n ranks: n - 1 rounds of the n-th part, as slow as the slower level.

    ``near`` and ``far``: seconds of the whole vector on a level, a and A its latency; 0 where none
    is used.
    """
    return np.maximum((n - 1) * a + near * (n - 1) / n, (n - 1) * A + far * (n - 1) / n)


def rings_in_rings(g: Any, k: Any, a: Any, near: Any, A: Any, far: Any) -> Any:
    """A ring inside every node of g ranks, rings between the k nodes, in terms of `one_ring`."""
    return (g - 1) * a + near * (g - 1) / g + (k - 1) * A + far * (k - 1) / k


def _ring(rounds: int) -> Form:
    """So many times n - 1 rounds of N/n bytes."""

    def form(size: Any, n: Any, g: Any, links: Links) -> Any:
        near = [np.where(g > 1, x, 0.0) for x in (links.latency, size / links.bandwidth)]
        far = [
            np.where(n > g, x, 0.0) for x in (links.network_latency, size / links.network_bandwidth)
        ]
        return rounds * one_ring(n, *near, *far)

    return form


def _tree(size: Any, n: Any, g: Any, links: Links) -> Any:
    """Whole vectors, up and down every level of the tree."""
    near = np.ceil(np.log2(g)) * (links.latency + size / links.bandwidth)
    far = np.ceil(np.log2(n / g)) * (links.network_latency + size / links.network_bandwidth)
    return 2 * (near + far)


def _hierarchical(rounds: int) -> Form:
    """A ring inside every node, and rings between the nodes."""

    def form(size: Any, n: Any, g: Any, links: Links) -> Any:
        near, far = size / links.bandwidth, size / links.network_bandwidth
        return rounds * rings_in_rings(g, n / g, links.latency, near, links.network_latency, far)

    return form


@form("halving_doubling", "all_reduce")
def _halving_doubling(size: Any, n: Any, g: Any, links: Links) -> Any:
    """On both levels log2 rounds each way; surplus over a power of two hands its vector over."""
    near = _swapped(size, g, links.latency, links.bandwidth)
    return near + _swapped(size, n / g, links.network_latency, links.network_bandwidth)


@form("recursive_doubling", "all_reduce")
def _recursive_doubling(size: Any, n: Any, g: Any, links: Links) -> Any:
    """Whole vectors; all g ranks of a node swap theirs with those of another node at once."""
    near = _exchanged(g) * (links.latency + size / links.bandwidth)
    return near + _exchanged(n / g) * (links.network_latency + g * size / links.network_bandwidth)


def _exchanged(ranks: Any) -> Any:
    """Rounds in which every rank swaps its vector, or hands it over."""
    levels = np.floor(np.log2(ranks))
    return levels + 2 * (ranks > 2.0**levels)


def _swapped(size: Any, ranks: Any, latency: Any, bandwidth: Any) -> Any:
    levels = np.floor(np.log2(ranks))
    surplus = ranks > 2.0**levels
    whole = (latency + size / bandwidth) * surplus
    return 2 * (whole + levels * latency + (1 - 2.0**-levels) * size / bandwidth)


@form("double_tree", "all_reduce")
def _double_tree(size: Any, n: Any, g: Any, links: Links) -> Any:
    """Two trees over the ranks of one node, or over nodes, with rings inside these."""
    one = 2 * _pipelined(size, np.ceil(np.log2(n)), links.latency, links.bandwidth)
    depth = np.ceil(np.log2(n / g))
    far = 2 * _pipelined(size, depth, links.network_latency, links.network_bandwidth)
    return np.where(n > g, far + _hierarchical(2)(size, g, g, links), one)


def _pipelined(size: Any, depth: Any, latency: Any, bandwidth: Any) -> Any:
    """Time of depth+p-1 rounds of size/p bytes, best whole p, sqrt((depth - 1) beta N/alpha)."""
    scale = np.asarray(latency * bandwidth, dtype=np.float64)
    share = (depth - 1).clip(0) * size / np.where(scale > 0, scale, 1.0)
    ideal = np.sqrt(np.where(scale > 0, share, _MOST_PIECES))

    def time(pieces: Any) -> Any:
        p = np.clip(pieces, 1.0, _MOST_PIECES)
        return np.where(depth > 0, (depth + p - 1) * (latency + size / p / bandwidth), 0.0)

    return np.minimum(time(np.floor(ideal)), time(np.ceil(ideal)))


for _kind, _passes in RINGS.items():
    form("ring", _kind)(_ring(_passes))
    form("hierarchical", _kind)(_hierarchical(_passes))
form("tree", "all_reduce")(_tree)


def crossover_size(
    kind: str, first: str, second: str, ranks: int, ranks_per_node: int, links: Links
) -> float:
    """Bytes from which the second of two algorithms is faster: the last sign change from 1 byte on.

    0 where the second is never slower, infinite where it is never faster.
    """
    from scipy.optimize import brentq

    require_number(ranks=ranks, ranks_per_node=ranks_per_node)

    def gain(exponent: Any) -> Any:
        times = [
            collective_time(kind, name, 2.0**exponent, ranks, ranks_per_node, links)
            for name in (first, second)
        ]
        return times[0] - times[1]

    require_form(kind, first=first)
    require_form(kind, second=second)
    grid = np.linspace(0, 50, 501)
    faster = gain(grid) > 0
    if not faster[-1]:
        return np.inf
    slower = np.flatnonzero(~faster)
    if slower.size == 0:
        return 0.0
    return float(2.0 ** brentq(gain, grid[slower[-1]], grid[slower[-1] + 1]))


def overlap_time(
    compute: ArrayLike,
    communication: ArrayLike,
    *,
    compute_slowdown: ArrayLike = 1.0,
    communication_slowdown: ArrayLike = 1.0,
) -> Any:
    """Seconds of computation X and communication Y that start together and take a, b times longer.

    Of the stretched times x = a X and y = b Y the shorter ends first, and the rest of the other
    runs at full speed, x + (y - x)/b or y + (x - y)/a. To overlap is no slower than one after the
    other exactly if 1/a + 1/b >= 1. Miao et al., "Galvatron", VLDB 2022.
    """
    x, y = require_real(compute=compute, communication=communication, at_least=0)
    a, b = require_real(
        compute_slowdown=compute_slowdown, communication_slowdown=communication_slowdown, at_least=1
    )
    first = np.minimum(a * x, b * y)
    return bare(first + np.maximum(x - first / a, y - first / b))
