"""How long a collective takes, by every algorithm, and which one is best: closed forms on two levels.

n ranks with g in each of k = n/g nodes reduce a vector of N bytes; a and B are latency and bandwidth inside a
node, A and C those of a node's network. Every form is what `rounds_time` says of the rounds where n divides
N, but for the double tree and a chain over several nodes, of which the form is an upper bound. A form stands
under ``@form(kind, algorithm)``.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import require_choice, require_instance, require_real
from relparallel.parallel import algorithms, server_rounds
from relparallel.parallel._arguments import MOST_DEVICES, bare, require_number, require_whole
from relparallel.parallel.collectives import COLLECTIVES as COLLECTIVES, Links, Round
from relparallel.parallel.levels import best_blueconnect_order, blueconnect_time, require_levels

RINGS: Final = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}
"""Times that a collective passes round a ring, with n - 1 of n parts each."""
_LARGEST: Final = 1e18  # bytes of a vector
_NO_LIMIT: Final = 1e60  # bytes/s of links that are not used
_MOST_PIECES: Final = 2.0**20

Form = Callable[[Any, Any, Any, Links], Any]
FORMS: Final[dict[str, dict[str, Form]]] = {}
"""Closed forms of size, ranks, ranks of a node and links, by kind of collective and by algorithm."""
_GENERATORS: Final = (algorithms, server_rounds)  # which enter their generators into `COLLECTIVES`


def form(algorithm: str, *kinds: str) -> Callable[[Form], Form]:
    """Enter a closed form for an algorithm of some kinds of collective."""

    def enter(function: Form) -> Form:
        for kind in kinds:
            FORMS.setdefault(kind, {})[algorithm] = function
        return function

    return enter


def collective(
    kind: str, algorithm: str, ranks: int, elements: int, ranks_per_node: int | None = None,
    pieces: int | None = None, servers: int | None = None, factors: Sequence[int] | None = None,
) -> Iterator[Round]:  # fmt: skip
    """Return the rounds of messages of a collective by one algorithm.

    Parameters
    ----------
    kind, algorithm : str
        A key of `COLLECTIVES`, and one of its algorithms.
    ranks, elements : int
        Ranks n, numbered node by node, and elements N of the vector, each at least 1. In an all-to-all the
        vector of every rank has a row of N elements for each rank that sends.
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
        "ranks_per_node": ranks if ranks_per_node is None else ranks_per_node, "pieces": pieces,
        "servers": servers, "factors": factors,
    }  # fmt: skip
    known = inspect.signature(generator).parameters
    return generator(ranks, elements, **{k: v for k, v in wanted.items() if k in known and v is not None})


def collective_time(
    kind: str, algorithm: str, size: ArrayLike, ranks: ArrayLike | None = None,
    ranks_per_node: ArrayLike | None = None, links: Links | None = None, *,
    levels: Sequence[tuple[int, float, float]] | None = None,
) -> Any:  # fmt: skip
    """Time of a collective by one algorithm.

    Parameters
    ----------
    kind, algorithm : str
        A key of ``FORMS`` ("all_reduce", "all_to_all" ...), and one of ``FORMS[kind]``.
    size : array_like
        Bytes N of the whole vector; of an all-to-all, bytes that one rank has for all.
    ranks, ranks_per_node : array_like of int
        Ranks n, and how many share a node: a divisor of n.
    links : Links
        Latencies and bandwidths.
    levels : sequence of (ranks, latency, bandwidth), optional
        In place of ranks, nodes and links for the all-reduces "blueconnect", over its best factors, and
        "ring": any number of levels, as `blueconnect_time` takes them.

    Returns
    -------
    float or numpy.ndarray
        Seconds, of the shape to which the arguments broadcast; 0 for one rank.

    Notes
    -----
    With x = max(a + N/(n B), A + N/(n C)), without the first if g = 1 and the second if k = 1:

    - ring: all-reduce 2 (n - 1) x, all-gather and reduce-scatter half of it;
    - tree: all-reduce 2 log2 g (a + N/B) + 2 log2 k (A + N/C), broadcast half of it;
    - halving_doubling: 2 log2 g a + 2 (g - 1)/g N/B + 2 log2 k A + 2 (k - 1)/k N/C for powers of two;
    - hierarchical: 2 (g - 1)(a + N/(g B)) + 2 (k - 1)(A + N/(k C));
    - double_tree: 2 (D + p - 1)(a + N/(p B)) with the best number p of pieces; over nodes between a
      reduce-scatter and an all-gather inside them, if there are several;
    - recursive_doubling: log2 g (a + N/B) + log2 k (A + g N/C) for powers of two;
    - chain: (n + p - 2)(a + N/(p B)).

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
    n, g = require_whole(ranks=ranks, ranks_per_node=ranks_per_node, at_least=1, at_most=MOST_DEVICES)
    if np.any(n % g):
        raise ValueError(f"ranks_per_node must divide ranks = {ranks!r}, got {ranks_per_node!r}")
    given: Links = require_instance(Links, links=links)
    return bare(np.where(n > 1, given.launch + closed(number, n, g, given), 0.0))


def _on_levels(kind: str, algorithm: str, size: Any, levels: Sequence[tuple[int, float, float]]) -> float:
    """Time of an all-reduce over levels: by its best factors, or by one ring as slow as its slowest link."""
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
            f"{name} must have a closed form, which are {tuple(forms)}, got {algorithm!r}: price its rounds, "
            f"rounds_time(collective({kind!r}, {algorithm!r}, ...), ...)"
        )
    return forms[require_choice(tuple(forms), **named)]


def one_ring(n: Any, a: Any, near: Any, A: Any, far: Any) -> Any:
    """Ring of n ranks: n - 1 rounds of the n-th part, as slow as the slower level.

    ``near`` and ``far``: seconds of the whole vector on a level, a and A its latency; 0 where none is used.
    """
    return np.maximum((n - 1) * a + near * (n - 1) / n, (n - 1) * A + far * (n - 1) / n)


def rings_in_rings(g: Any, k: Any, a: Any, near: Any, A: Any, far: Any) -> Any:
    """A ring inside every node of g ranks, and rings between the k nodes, in the terms of `one_ring`."""
    return (g - 1) * a + near * (g - 1) / g + (k - 1) * A + far * (k - 1) / k


def _ring(rounds: int) -> Form:
    """So many times n - 1 rounds of N/n bytes."""

    def form(size: Any, n: Any, g: Any, links: Links) -> Any:
        near = [np.where(g > 1, x, 0.0) for x in (links.latency, size / links.bandwidth)]
        far = [np.where(n > g, x, 0.0) for x in (links.network_latency, size / links.network_bandwidth)]
        return rounds * one_ring(n, *near, *far)

    return form


def _tree(rounds: int) -> Form:
    """Whole vectors, once for each level of the tree."""

    def form(size: Any, n: Any, g: Any, links: Links) -> Any:
        near = np.ceil(np.log2(g)) * (links.latency + size / links.bandwidth)
        far = np.ceil(np.log2(n / g)) * (links.network_latency + size / links.network_bandwidth)
        return rounds * (near + far)

    return form


def _hierarchical(rounds: int) -> Form:
    """A ring inside every node, and rings between the nodes."""

    def form(size: Any, n: Any, g: Any, links: Links) -> Any:
        near, far = size / links.bandwidth, size / links.network_bandwidth
        return rounds * rings_in_rings(g, n / g, links.latency, near, links.network_latency, far)

    return form


@form("halving_doubling", "all_reduce")
def _halving_doubling(size: Any, n: Any, g: Any, links: Links) -> Any:
    """On both levels log2 rounds each way; the surplus over a power of two hands its vector over."""
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
    one = 2 * _pipelined(size, np.ceil(np.log2(n)), [(links.latency, links.bandwidth)])
    depth = np.ceil(np.log2(n / g))
    far = 2 * _pipelined(size, depth, [(links.network_latency, links.network_bandwidth)])
    return np.where(n > g, far + _hierarchical(2)(size, g, g, links), one)


@form("chain", "broadcast")
def _chain(size: Any, n: Any, g: Any, links: Links) -> Any:
    """Pieces from rank to rank; every round as slow as the slowest link."""
    levels = [
        (np.where(g > 1, links.latency, 0.0), np.where(g > 1, links.bandwidth, _NO_LIMIT)),
        (np.where(n > g, links.network_latency, 0.0), np.where(n > g, links.network_bandwidth, _NO_LIMIT)),
    ]
    return _pipelined(size, n - 1, levels)


@form("hierarchical", "all_to_all")
def _all_to_all_hierarchical(size: Any, n: Any, g: Any, links: Links) -> Any:
    """Messages of n/g chunks inside, then g ranks with g chunks each between nodes."""
    near = (g - 1) * (links.latency + size / g / links.bandwidth)
    far = (n / g - 1) * (links.network_latency + g * g * size / n / links.network_bandwidth)
    return near + far


@form("direct", "all_to_all")
def _all_to_all_direct(size: Any, n: Any, g: Any, links: Links) -> Any:
    """In the round to the rank d places on, min(d, n - d, g) messages leave every node."""
    near = links.latency + size / n / links.bandwidth
    chunk = size / n / links.network_bandwidth
    mixed = 2 * _sum_of_larger(g - 1, near, 0.0 * near, links.network_latency, chunk)
    far = (n - 1 - 2 * (g - 1)) * (links.network_latency + g * chunk)
    return np.where(n > g, mixed + far, (n - 1) * near)


@form("ring", "all_to_all")
def _all_to_all_ring(size: Any, n: Any, g: Any, links: Links) -> Any:
    """One chunk less in every round, to the next rank."""
    none = (np.zeros_like(size / n), 0.0 * size / n)
    near = (links.latency, size / n / links.bandwidth)
    far = (links.network_latency, size / n / links.network_bandwidth)
    return _sum_of_larger(
        n - 1,
        *(np.where(g > 1, x, y) for x, y in zip(near, none, strict=True)),
        *(np.where(n > g, x, y) for x, y in zip(far, none, strict=True)),
    )


@form("bruck", "reduce_scatter", "all_gather")
def _bruck(size: Any, n: Any, g: Any, links: Links) -> Any:
    """In round j, min(2^j, n - 2^j) chunks to the rank 2^j places back."""
    seconds: Any = 0.0
    for level in range(int(np.max(n) - 1).bit_length()):
        reach = np.clip(np.minimum(2.0**level, n - 2.0**level), 0, None)
        sent = reach * size / n
        near = np.where((reach < g) & (g > 1), links.latency + sent / links.bandwidth, 0.0)
        out = np.minimum(reach, g) * sent
        far = np.where(n > g, links.network_latency + out / links.network_bandwidth, 0.0)
        seconds = seconds + np.where(2.0**level < n, np.maximum(near, far), 0.0)
    return seconds


def _pipelined(size: Any, depth: Any, levels: Sequence[tuple[Any, Any]]) -> Any:
    """Time of depth + p - 1 rounds of size/p bytes at the slowest level, for the best whole p.

    The best p is sqrt((depth - 1) beta N/alpha) on one level; on several, the best of one or where the levels
    are equally fast, since the time of each is convex in p.
    """
    candidates = [np.asarray(1.0)]
    for latency, bandwidth in levels:
        ideal = np.sqrt(_over((depth - 1).clip(0) * size, latency * bandwidth))
        candidates += [np.floor(ideal), np.ceil(ideal)]
    if len(levels) == 2:
        (a, b), (c, d) = levels
        even = _over(size * (1 / d - 1 / b), a - c)
        candidates += [np.floor(even), np.ceil(even)]

    def time(pieces: Any) -> Any:
        p = np.clip(pieces, 1.0, _MOST_PIECES)
        slowest = np.max(np.broadcast_arrays(*(a + size / p / b for a, b in levels)), axis=0)
        return np.where(depth > 0, (depth + p - 1) * slowest, 0.0)

    return np.min(np.broadcast_arrays(*map(time, candidates)), axis=0)


def _over(above: Any, below: Any) -> Any:
    """Quotient; very large where nothing is below."""
    below = np.asarray(below, dtype=np.float64)
    return np.where(below != 0, above / np.where(below != 0, below, 1.0), _MOST_PIECES).clip(0)


def _sum_of_larger(count: Any, p: Any, q: Any, r: Any, s: Any) -> Any:
    """Sum of max(p + q j, r + s j) over j = 1 ... count: two arithmetic series that meet once."""
    meet = np.floor(np.where(q != s, (r - p) / np.where(q != s, q - s, 1.0), 0.0))
    first = np.clip(meet, 0, count)  # up to here the one with the smaller slope is larger
    flat, steep = np.where(q < s, p, r), np.where(q < s, r, p)
    low, high = np.minimum(q, s), np.maximum(q, s)
    flat, steep = np.where(q == s, np.maximum(p, r), flat), np.where(q == s, np.maximum(p, r), steep)
    triangle = first * (first + 1) / 2
    return flat * first + low * triangle + steep * (count - first) + high * (
        count * (count + 1) / 2 - triangle
    )  # fmt: skip


for _kind, _passes in RINGS.items():
    form("ring", _kind)(_ring(_passes))
    form("hierarchical", _kind)(_hierarchical(_passes))
form("tree", "all_reduce")(_tree(2))
form("tree", "broadcast")(_tree(1))
