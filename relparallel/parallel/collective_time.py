"""How long a collective takes, by every algorithm, and which one is best: closed forms on two levels.

========  ==========================================  ======================
letter    meaning                                     argument
========  ==========================================  ======================
n         ranks of the group                          ``ranks``
g         ranks of the group in one node              ``ranks_per_node``
k         nodes, n / g
N         bytes, see `collective_time`                ``size``
a, B      latency and bandwidth inside a node         ``links``
A, C      latency and bandwidth of a node's network   ``links``
========  ==========================================  ======================

Every form is what `rounds_time` says of the rounds where n divides N, but for the double tree and a chain
over several nodes, of which the form is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_choice, require_instance, require_real
from relparallel.parallel._arguments import MOST_DEVICES, bare, require_number, require_whole
from relparallel.parallel._level_sums import all_to_all_direct, all_to_all_ring, bruck, pipelined
from relparallel.parallel.links import Links

if TYPE_CHECKING:
    import pandas as pd

_LARGEST: Final = 1e18  # bytes of a vector
_NO_LIMIT: Final = 1e60  # bytes/s of links that are not used


def collective_time(
    kind: str, algorithm: str, size: ArrayLike, ranks: ArrayLike, ranks_per_node: ArrayLike, links: Links
) -> Any:
    """Time of a collective by one algorithm.

    Parameters
    ----------
    kind : {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"}
        What happens.
    algorithm : str
        One of ``ALGORITHMS[kind]``.
    size : array_like
        Bytes N of the whole vector; of an all-to-all, bytes that one rank has for all.
    ranks, ranks_per_node : array_like of int
        Ranks n, and how many share a node: a divisor of n.
    links : Links
        Latencies and bandwidths.

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
    - chain: (n + p - 2)(a + N/(p B)).

    References
    ----------
    Thakur, Rabenseifner and Gropp 2005. Chan et al., "Collective communication: theory, practice, and
    experience", 2007.

    Examples
    --------
    >>> links = Links(latency=1e-6, bandwidth=200e9, network_latency=5e-6, network_bandwidth=100e9)
    >>> times = collective_time("all_reduce", "ring", [1e6, 1e9], ranks=16, ranks_per_node=8, links=links)
    >>> (times * 1e3).round(3).tolist()
    [0.169, 18.9]
    """
    require_choice(tuple(ALGORITHMS), kind=kind)
    require_choice(ALGORITHMS[kind], algorithm=algorithm)
    number = np.asarray(require_real(size=size, at_least=0, at_most=_LARGEST))
    n, g = require_whole(ranks=ranks, ranks_per_node=ranks_per_node, at_least=1, at_most=MOST_DEVICES)
    if np.any(n % g):
        raise ValueError(f"ranks_per_node must divide ranks = {ranks!r}, got {ranks_per_node!r}")
    require_instance(Links, links=links)
    return bare(np.where(n > 1, links.launch + _FORMS[kind][algorithm](number, n, g, links), 0.0))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BestCollective:
    """Times of a collective by all algorithms, and the fastest.

    Parameters
    ----------
    kind : str
        What happens.
    times : Mapping of str to float or numpy.ndarray
        Algorithm to seconds; all of one shape.

    Examples
    --------
    >>> links = Links(latency=1e-6, bandwidth=200e9, network_latency=5e-6, network_bandwidth=100e9)
    >>> best = best_collective("all_to_all", 1e6, 64, 8, links)
    >>> best.algorithm, best.reason
    ('hierarchical', 'hierarchical 1 x, direct 3.31 x, ring 5.41 x')
    """

    kind: str
    times: Mapping[str, Any]

    def __post_init__(self) -> None:
        require_choice(tuple(ALGORITHMS), kind=self.kind)
        require_instance(Mapping, times=self.times)
        if set(self.times) != set(ALGORITHMS[self.kind]):
            raise ValueError(f"times must name {ALGORITHMS[self.kind]}, got {str(self.times)[:80]}")

    @property
    def algorithm(self) -> Any:
        """Name of the fastest algorithm; an array of names where the times are arrays."""
        names = np.array(tuple(self.times))
        found = names[np.argmin(list(self.times.values()), axis=0)]
        return str(found) if np.ndim(found) == 0 else found

    @property
    def time(self) -> Any:
        """Seconds of the fastest algorithm."""
        return bare(np.min(list(self.times.values()), axis=0))

    @property
    def reason(self) -> str:
        """Every algorithm with its time beside that of the fastest, for one collective."""
        first = {name: float(np.ravel(seconds)[0]) for name, seconds in self.times.items()}
        least = min(first.values())
        told = sorted(first.items(), key=lambda item: item[1])
        return ", ".join(f"{name} {seconds / least if least else 1:.3g} x" for name, seconds in told)

    def to_frame(self) -> pd.DataFrame:
        """Return the times as a table.

        Returns
        -------
        pandas.DataFrame
            One column for each algorithm [s].
        """
        import pandas as pd

        return pd.DataFrame({name: np.ravel(seconds) for name, seconds in self.times.items()})


def best_collective(
    kind: str, size: ArrayLike, ranks: ArrayLike, ranks_per_node: ArrayLike, links: Links
) -> BestCollective:
    """Time a collective by every algorithm.

    Parameters
    ----------
    kind : {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"}
        What happens.
    size : array_like
        Bytes N, as for `collective_time`.
    ranks, ranks_per_node : array_like of int
        Ranks n, and how many share a node: a divisor of n.
    links : Links
        Latencies and bandwidths.

    Returns
    -------
    BestCollective
        All times, the fastest algorithm and why.

    Examples
    --------
    >>> links = Links(latency=1e-6, bandwidth=200e9, network_latency=5e-6, network_bandwidth=100e9)
    >>> best_collective("all_reduce", [1e3, 1e9], 8, 8, links).algorithm.tolist()
    ['halving_doubling', 'halving_doubling']
    """
    require_choice(tuple(ALGORITHMS), kind=kind)
    times = {
        name: collective_time(kind, name, size, ranks, ranks_per_node, links) for name in ALGORITHMS[kind]
    }
    return BestCollective(kind=kind, times=times)


def crossover_size(
    kind: str, first: str, second: str, ranks: int, ranks_per_node: int, links: Links
) -> float:
    """Find the size from which on the second of two algorithms is faster.

    Parameters
    ----------
    kind : {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"}
        What happens.
    first, second : str
        Two of ``ALGORITHMS[kind]``.
    ranks, ranks_per_node : int
        Ranks n, and how many share a node.
    links : Links
        One set of numbers.

    Returns
    -------
    float
        Bytes; 0 where the second is never slower, infinite where it is never faster.

    Notes
    -----
    The last sign change on a logarithmic grid from 1 byte on, made exact by bisection.

    Examples
    --------
    >>> links = Links(latency=1e-6, bandwidth=1e9, network_latency=0, network_bandwidth=1e9)
    >>> round(crossover_size("all_reduce", "tree", "ring", 8, 8, links))  # 8 a = (6 - 14/8) N/B
    1882
    """
    from scipy.optimize import brentq

    require_number(ranks=ranks, ranks_per_node=ranks_per_node)

    def gain(exponent: Any) -> Any:
        times = [
            collective_time(kind, name, 2.0**exponent, ranks, ranks_per_node, links)
            for name in (require_choice(ALGORITHMS[kind], first=first), second)
        ]
        return times[0] - times[1]

    require_choice(tuple(ALGORITHMS), kind=kind)
    require_choice(ALGORITHMS[kind], second=second)
    grid = np.linspace(0, 50, 501)
    faster = gain(grid) > 0
    if not faster[-1]:
        return np.inf
    slower = np.flatnonzero(~faster)
    if slower.size == 0:
        return 0.0
    return float(2.0 ** brentq(gain, grid[slower[-1]], grid[slower[-1] + 1]))


Form = Callable[[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], Links], Any]


def _ring(rounds: int) -> Form:
    """So many times n - 1 rounds of N/n bytes, as slow as the slower level that is used."""

    def form(size: Any, n: Any, g: Any, links: Links) -> Any:
        near = np.where(g > 1, links.latency + size / n / links.bandwidth, 0.0)
        far = np.where(n > g, links.network_latency + size / n / links.network_bandwidth, 0.0)
        return rounds * (n - 1) * np.maximum(near, far)

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
        near = (g - 1) * (links.latency + size / g / links.bandwidth)
        far = (n / g - 1) * (links.network_latency + size * g / n / links.network_bandwidth)
        return rounds * (near + far)

    return form


def _halving_doubling(size: Any, n: Any, g: Any, links: Links) -> Any:
    """On both levels log2 rounds each way; the surplus over a power of two hands its vector over."""
    near = _swapped(size, g, links.latency, links.bandwidth)
    return near + _swapped(size, n / g, links.network_latency, links.network_bandwidth)


def _swapped(size: Any, ranks: Any, latency: Any, bandwidth: Any) -> Any:
    levels = np.floor(np.log2(ranks))
    surplus = ranks > 2.0**levels
    whole = (latency + size / bandwidth) * surplus
    return 2 * (whole + levels * latency + (1 - 2.0**-levels) * size / bandwidth)


def _double_tree(size: Any, n: Any, g: Any, links: Links) -> Any:
    """Two trees over the ranks of one node, or over nodes, with rings inside these."""
    one = 2 * pipelined(size, np.ceil(np.log2(n)), [(links.latency, links.bandwidth)])
    depth = np.ceil(np.log2(n / g))
    far = 2 * pipelined(size, depth, [(links.network_latency, links.network_bandwidth)])
    return np.where(n > g, far + _hierarchical(2)(size, g, g, links), one)


def _chain(size: Any, n: Any, g: Any, links: Links) -> Any:
    """Pieces from rank to rank; every round as slow as the slowest link."""
    levels = [
        (np.where(g > 1, links.latency, 0.0), np.where(g > 1, links.bandwidth, _NO_LIMIT)),
        (np.where(n > g, links.network_latency, 0.0), np.where(n > g, links.network_bandwidth, _NO_LIMIT)),
    ]
    return pipelined(size, n - 1, levels)


def _all_to_all_hierarchical(size: Any, n: Any, g: Any, links: Links) -> Any:
    """Messages of n/g chunks inside, then g ranks with g chunks each between nodes."""
    near = (g - 1) * (links.latency + size / g / links.bandwidth)
    far = (n / g - 1) * (links.network_latency + g * g * size / n / links.network_bandwidth)
    return near + far


_GATHER: Final[dict[str, Form]] = {"ring": _ring(1), "bruck": bruck, "hierarchical": _hierarchical(1)}
_FORMS: Final[dict[str, dict[str, Form]]] = {
    "all_reduce": {
        "ring": _ring(2),
        "tree": _tree(2),
        "double_tree": _double_tree,
        "halving_doubling": _halving_doubling,
        "hierarchical": _hierarchical(2),
    },
    "reduce_scatter": _GATHER,  # the same messages backwards
    "all_gather": _GATHER,
    "broadcast": {"tree": _tree(1), "chain": _chain},
    "all_to_all": {
        "direct": all_to_all_direct,
        "ring": all_to_all_ring,
        "hierarchical": _all_to_all_hierarchical,
    },
}
ALGORITHMS: Final[dict[str, tuple[str, ...]]] = {kind: tuple(forms) for kind, forms in _FORMS.items()}
"""Algorithms of every kind of collective."""
