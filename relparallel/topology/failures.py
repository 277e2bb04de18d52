"""Samples of what fails: sixty-four states of a network in every machine word.

A *scenario* says of every node and of every pair of joined nodes whether it works. A pair works while one of
its parallel cables does; a group of shared risk takes all its members along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_int, require_probability, require_rng
from relparallel.topology._arrays import BoolArray, FloatArray
from relparallel.topology.fabric import Topology, as_topology

if TYPE_CHECKING:
    import networkx as nx

Words = NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Scenarios:
    """States of a network: bit b of word w belongs to scenario 64 w + b and is 1 where a part works.

    Parameters
    ----------
    nodes : uint64 array [n, words]
        Nodes.
    pairs : uint64 array [m, words]
        Pairs of joined nodes, whatever their ends do.
    count : int
        Scenarios, more than 64 (words - 1) and at most 64 words.

    Examples
    --------
    >>> up = np.array([[3], [1]], dtype=np.uint64)
    >>> Scenarios(nodes=up, pairs=up[:1], count=2).alive(1).tolist()
    [True, False, True]
    """

    nodes: Words
    pairs: Words
    count: int

    def alive(self, scenario: int) -> BoolArray:
        """One scenario by itself.

        Parameters
        ----------
        scenario : int
            Between 0 and ``count`` - 1.

        Returns
        -------
        bool array [n + m]
            Whether each node, then each pair of joined nodes, works.

        Examples
        --------
        >>> up = np.array([[2]], dtype=np.uint64)
        >>> Scenarios(nodes=up, pairs=up, count=2).alive(0).tolist()
        [False, False]
        """
        require_int(scenario=scenario, at_least=0, at_most=self.count - 1)
        word, bit = divmod(scenario, 64)
        both = np.concatenate([self.nodes[:, word], self.pairs[:, word]])
        return np.asarray(both >> np.uint64(bit) & np.uint64(1), dtype=bool)


def sample_failures(
    topology: Topology | nx.Graph[Any],
    samples: int,
    rng: np.random.Generator,
    *,
    link_down: ArrayLike = 0.0,
    node_down: ArrayLike = 0.0,
    shared_risk_down: ArrayLike = 0.0,
) -> Scenarios:
    """Draw independent scenarios.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        The network.
    samples : int
        Scenarios, at least 1.
    rng : numpy.random.Generator
        Source of the random numbers; the same state gives the same scenarios.
    link_down : float or float array [m], optional
        Probability that one cable is down, for all or for each pair of joined nodes.
    node_down : float or float array [n], optional
        Probability that a node is down.
    shared_risk_down : float or float array [groups], optional
        Probability that a group of ``shared_risk`` is down.

    Returns
    -------
    Scenarios
        Packed states.

    Notes
    -----
    Random words are compared with the binary digits of a probability until all 64 outcomes are decided,
    about eight words each (xoshiro256++, seeded by ``rng``). The probability is exact to 2^-64.

    References
    ----------
    Blackman, Vigna, "Scrambled linear pseudorandom number generators", ACM Trans. Math. Softw. 2021.

    Examples
    --------
    >>> import networkx as nx
    >>> found = sample_failures(nx.cycle_graph(4), 1000, np.random.default_rng(1), link_down=0.5)
    >>> found.pairs.shape, round(float(np.bitwise_count(found.pairs).mean()) / 62.5, 1)
    ((4, 16), 0.5)
    """
    t = as_topology(topology, name="topology")
    count = require_int(samples=samples, at_least=1)
    require_rng(rng=rng)
    chances = {
        "link_down": (link_down, len(t.edges)),
        "node_down": (node_down, t.num_nodes),
        "shared_risk_down": (shared_risk_down, len(t.shared_risk)),
    }
    link, node, risk = (_chances(name, value, size) for name, (value, size) in chances.items())
    down = np.concatenate([node, link**t.multiplicity, risk])
    seed = rng.integers(0, 2**64, size=4, dtype=np.uint64)
    up = _draw(np.minimum(down, np.nextafter(1.0, 0.0)), down >= 1.0, -(-count // 64), seed)
    nodes, pairs, groups = np.split(up, [t.num_nodes, t.num_nodes + len(t.edges)])
    for group, words in zip(t.shared_risk, groups, strict=True):
        nodes[list(group.nodes)] &= words
        pairs[list(group.edges)] &= words
    return Scenarios(nodes=nodes, pairs=pairs, count=count)


def _chances(name: str, value: ArrayLike, size: int) -> FloatArray:
    """One probability per part, from one for all or one for each."""
    checked = np.asarray(require_probability(**{name: value}))
    if checked.ndim and checked.shape != (size,):
        raise ValueError(f"{name} must be one number or {size} numbers, got shape {checked.shape}")
    return np.broadcast_to(checked, (size,)).astype(np.float64)


@numba.njit(cache=True)
def _draw(down, never, words, state):  # type: ignore[no-untyped-def]
    """Words of bits that are 0 with the probability of the row; rows that ``never`` work are 0."""
    one, up = np.uint64(1), np.empty((down.size, words), dtype=np.uint64)
    full = ~np.uint64(0)
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    for row in range(down.size):
        digits = np.uint64(down[row] * 18446744073709551616.0)  # p 2^64, exact
        for word in range(words):
            fails, open_, left = np.uint64(0), full, digits
            while left != 0 and open_ != 0:
                x = s0 + s3
                drawn = ((x << np.uint64(23)) | (x >> np.uint64(41))) + s0
                shifted = s1 << np.uint64(17)
                s2 ^= s0
                s3 ^= s1
                s1 ^= s2
                s0 ^= s3
                s2 ^= shifted
                s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
                if left >> np.uint64(63):  # digit 1: a drawn 0 is below, a drawn 1 stays undecided
                    fails |= open_ & ~drawn
                    open_ &= drawn
                else:
                    open_ &= ~drawn
                left <<= one
            up[row, word] = np.uint64(0) if never[row] else ~fails
    return up
