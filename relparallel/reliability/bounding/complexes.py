"""Kruskal-Katona and Ball-Provan bounds: what a few counts of a graph say about its all-terminal reliability.

Let F_i be the number of sets of i links whose failure leaves a graph of n nodes and m links connected, and
let all links be up with the same probability p = 1 - q. The sets form a complex of dimension d = m - n + 1,

    R = sum_i F_i p**(m - i) q**i = p**(n - 1) sum_i H_i q**i ,   U = sum_i (C(m, i) - F_i) p**(m - i) q**i .

Known are F_i = C(m, i) below the size c of a minimum cut, F_c = C(m, c) - (number of minimum cuts), and F_d,
the number of spanning trees. The rest is bounded:

* Kruskal (1963) and Katona (1968): a complex with F_c sets of c links has at most F_c^(i/c) of i > c, and one
  with F_d sets of d links has at least F_d^(i/d) of i < d. With x = C(a_k, k) + C(a_(k-1), k - 1) + ...,
  a_k > a_(k-1) > ..., the power x^(i/k) is the same sum with i - k added to every lower index.
* Ball and Provan (1982): the complex is shellable, so H is an M-sequence (Macaulay, Stanley): H_j is at most
  H_i^<j/i>, which adds j - i to upper and lower indices. As sum H_i = F_d, the largest R puts this mass as
  early as growth allows, and the smallest as late as growth allows.

The smallest is found step by step. If A = H_0 + ... + H_(i-1) is as small as can be, H_i has to be at least
the least r with A + sum_(j >= i) r^<j/i> >= F_d. That sum grows by at least one with r, so a larger A never
makes A + r smaller: all partial sums are bounded below, and R rises with each of them.

Everything is counted in integers and evaluated in fractions; only the result is rounded, outward.

References
----------
Ball and Provan, "Bounds on the reliability polynomial for shellable independence systems", SIAM Journal on
Algebraic and Discrete Methods 3, 1982. Colbourn, "The Combinatorics of Network Reliability", 1987.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.bounding.cuts import find_cuts
from relparallel.reliability.problem import Problem
from relparallel.reliability.programme.blocks import Bracket

MAX_CYCLES: Final = 128  # independent cycles d; the work grows as d**3 on integers of d digits


class Counts(NamedTuple):
    """Nodes, links, size and number of the minimum cuts, number of spanning trees."""

    nodes: int
    links: int
    smallest: int
    cuts: int
    trees: int

    @property
    def rank(self) -> int:
        """Most links that can fail."""
        return self.links - self.nodes + 1


def count(problem: Problem) -> Counts:
    """The counts of a connected graph all of whose nodes are terminals, without its chances."""
    n, m = len(problem.node), len(problem.edges)
    if m - n + 1 > MAX_CYCLES:
        raise ValueError(
            f"graph must have at most {MAX_CYCLES} independent cycles for counts, got {m - n + 1}"
        )
    even = Problem(
        edges=problem.edges,
        link=np.full((m, 2), 0.5),
        node=np.tile([1.0, 0.0], (n, 1)),
        terminals=np.arange(n),
        transit=np.ones(n, dtype=np.bool_),
    )
    least = int(np.bincount(problem.edges.ravel(), minlength=n).min())
    family = find_cuts(even, 0.0, limit=least)
    if family.stopped:
        raise ValueError(f"graph must have fewer minimum cuts, got more than {len(family)}")
    smallest = int(family.sizes.min())
    return Counts(n, m, smallest, int((family.sizes == smallest).sum()), _spanning_trees(n, problem.edges))


def kruskal_katona(counts: Counts, down: float) -> Bracket:
    """Bounds of the unreliability when every link is down with probability ``down``."""
    m, d, c = counts.links, counts.rank, counts.smallest
    known = _known(counts)
    fewest, most = [], []
    for i in range(m + 1):
        if i in known:
            exact = known[i]
            fewest.append(exact)
            most.append(exact)
        else:
            fewest.append(_shifted(counts.trees, d, i - d, 0))
            most.append(min(_shifted(known[c], c, i - c, 0), math.comb(m, i)))
    return _mass(most, m, down)[0], _mass(fewest, m, down)[1]


def ball_provan(counts: Counts, down: float) -> Bracket:
    """Bounds of the unreliability when every link is down with probability ``down``."""
    d, c = counts.rank, min(counts.smallest, counts.rank)
    known = _known(counts)
    heads = [
        sum((-1) ** (i - j) * math.comb(d - j, i - j) * known[j] for j in range(i + 1)) for i in range(c + 1)
    ]
    if c == d:
        early = late = heads
    else:
        early, late = _early(heads, d, counts.trees), _late(heads, d, counts.trees)
    return _from_h(early, counts, down)[0], _from_h(late, counts, down)[1]


def _known(counts: Counts) -> dict[int, int]:
    """F_i where it is known."""
    m, d, c = counts.links, counts.rank, counts.smallest
    known = {i: math.comb(m, i) for i in range(min(c, d + 1))}
    if c <= d:
        known[c] = math.comb(m, c) - counts.cuts
    known[d] = counts.trees
    return known | dict.fromkeys(range(d + 1, m + 1), 0)


def _spanning_trees(n: int, edges: NDArray[np.int64]) -> int:
    """Kirchhoff's determinant by fraction-free elimination (Bareiss), in integers."""
    rows = [[0] * (n - 1) for _ in range(n - 1)]
    for u, v in edges.tolist():
        for a, b in ((u, v), (v, u)):
            if a < n - 1:
                rows[a][a] += 1
                if b < n - 1:
                    rows[a][b] -= 1
    previous = 1
    for k in range(n - 2):  # a Laplacian of a connected graph needs no pivoting
        pivot = rows[k]
        for i in range(k + 1, n - 1):
            row, factor = rows[i], rows[i][k]
            if factor == 0 and pivot[k] == previous:
                continue
            rows[i] = [(x * pivot[k] - factor * y) // previous for x, y in zip(row, pivot, strict=True)]
        previous = pivot[k]
    return rows[-1][-1] if n > 1 else 1


def _shifted(x: int, k: int, lower: int, upper: int) -> int:
    """Write x as a sum of C(a_j, j), j = k, k - 1, ..., and add the shifts to every lower and upper index."""
    total = 0
    while x > 0 and k > 0:
        a = k
        while math.comb(2 * a, k) <= x:
            a *= 2
        step = a
        while step > 0:
            if math.comb(a + step, k) <= x:
                a += step
            else:
                step //= 2
        x -= math.comb(a, k)
        if k + lower >= 0:
            total += math.comb(a + upper, k + lower)
        k -= 1
    return total


def _growth(r: int, i: int, j: int) -> int:
    """Macaulay's bound r^<j/i> on H_j when H_i = r."""
    return _shifted(r, i, j - i, j - i) if i else 1


def _early(heads: list[int], d: int, trees: int) -> list[int]:
    """The M-sequence with all mass as early as growth allows."""
    c, result, left = len(heads) - 1, list(heads), trees - sum(heads)
    for i in range(c + 1, d + 1):
        result.append(min(_growth(heads[c], c, i), left))
        left -= result[-1]
    return result


def _late(heads: list[int], d: int, trees: int) -> list[int]:
    """Smallest partial sums that an M-sequence with this total can have, as differences."""
    result, so_far = list(heads), sum(heads)
    for i in range(len(heads), d + 1):
        low, high = 0, trees - so_far
        while low < high:
            r = (low + high) // 2
            if so_far + _reach(r, i, d, trees - so_far) >= trees:
                high = r
            else:
                low = r + 1
        result.append(low)
        so_far += low
    return result


def _reach(r: int, i: int, d: int, enough: int) -> int:
    """Sum of r^<j/i> over j = i ... d, or ``enough`` if it is at least that."""
    total = 0
    for j in range(i, d + 1):
        total += _growth(r, i, j)
        if total >= enough:
            return enough
    return total


def _mass(f: list[int], m: int, down: float) -> Bracket:
    """U from F_0, ..., F_m, rounded down and up."""
    q = Fraction(down)
    powers = _terms(1 - q, q, m)
    return _outward(sum((math.comb(m, i) - f[i]) * power for i, power in enumerate(powers)))


def _from_h(h: list[int], counts: Counts, down: float) -> Bracket:
    """U from H_0, ..., H_d, rounded down and up."""
    q = Fraction(down)
    return _outward(1 - (1 - q) ** (counts.nodes - 1) * sum(x * q**i for i, x in enumerate(h)))


def _terms(p: Fraction, q: Fraction, m: int) -> list[Fraction]:
    """p**(m - i) q**i for i = 0 ... m."""
    return [p ** (m - i) * q**i for i in range(m + 1)]


def _outward(exact: Fraction | int) -> Bracket:
    """The floats below and above a number inside [0, 1]."""
    near = float(exact)
    below = near if Fraction(near) <= exact else math.nextafter(near, 0.0)
    above = near if Fraction(near) >= exact else math.nextafter(near, 1.0)
    return max(below, 0.0), min(above, 1.0)
