"""Failing core cables: against the frontier DP, all states, components, and the lattice itself."""

from fractions import Fraction
from itertools import combinations, product
from math import comb, factorial, prod
from time import process_time

import numpy as np
import pytest

from relparallel.reliability import evaluate, fat_tree_pods_connected
from relparallel.reliability.closed_forms.fat_tree_forms import pods_apart
from relparallel.reliability.closed_forms.random_graph_connectivity import sides_connected
from relparallel.topology import fat_tree

CHANCES = [
    (0.9, 0.85, 0.8),
    (1.0, 1.0, 0.8),
    (0.3, 0.4, 0.6),
    (0.999, 0.99, 0.9999),
    (0.02, 0.9, 0.05),
]


@pytest.mark.parametrize("chances", CHANCES)
@pytest.mark.parametrize("pods", [2, 3, 4])
def test_pods_agree_with_the_exact_programme(chances, pods):
    core, aggregation, cable = chances
    fabric = fat_tree(4)
    is_core = fabric.is_kind("core")
    links = np.where(is_core[fabric.edges].any(axis=1), cable, 1.0)
    nodes = np.where(is_core, core, np.where(fabric.is_kind("aggregation"), aggregation, 1.0))
    speakers = np.flatnonzero(fabric.is_kind("edge"))[::2][:pods]
    exact = evaluate(fabric, speakers, links, nodes)
    closed = fat_tree_pods_connected(4, *chances, pods=pods)
    assert closed.unreliability == pytest.approx(exact.unreliability, rel=1e-12)
    assert closed.reliability == pytest.approx(exact.reliability, rel=1e-12)


def one_group(k, h, a, link):
    """Distribution of what one group joins, as a partition of the pods, by all of its states."""
    result = {}
    for up in product((0, 1), repeat=k):
        for wires in product((0, 1), repeat=k * h):
            label = list(range(k))
            for core in range(h):
                near = [p for p in range(k) if up[p] and wires[core * k + p]]
                for p, q in combinations(near, 2):
                    label = [label[p] if x == label[q] else x for x in label]
            weight = np.prod([a if u else 1 - a for u in up]) * np.prod(
                [link if w else 1 - link for w in wires]
            )
            key = tuple(label.index(x) for x in label)
            result[key] = result.get(key, 0.0) + weight
    return result


def test_two_groups_of_four_pods_by_all_states():
    """Joins of the partitions of two independent groups, without any code of the package."""
    groups = one_group(4, 2, 0.7, 0.6)
    together = 0.0
    for (x, p), (y, q) in product(groups.items(), repeat=2):
        label = list(range(4))
        for cut in (x, y):
            for i, j in combinations(range(4), 2):
                if cut[i] == cut[j]:
                    label = [label[i] if z == label[j] else z for z in label]
        together += p * q * (len(set(label)) == 1)
    assert fat_tree_pods_connected(4, 1.0, 0.7, 0.6).reliability == pytest.approx(
        together, rel=1e-12
    )


@pytest.mark.parametrize("k", [6, 10, 16])
@pytest.mark.parametrize("aggregation", [0.3, 0.9, 0.999])
def test_perfect_cables_are_components_of_pods_and_groups(k, aggregation):
    for terminals in (2, k // 2, k):
        together, lower, upper = pods_apart(k, 0.7, aggregation, 1.0, terminals)
        closed = fat_tree_pods_connected(k, 0.7, aggregation, pods=terminals)
        assert lower == upper == pytest.approx(closed.unreliability, rel=1e-12)
        assert together == pytest.approx(closed.reliability, rel=1e-12)


@pytest.mark.parametrize("k", [6, 12])
@pytest.mark.parametrize("cable", [0.1, 0.6, 0.99])
def test_perfect_aggregation_leaves_pods_and_single_cores(k, cable):
    """Without failures of aggregation switches, all h^2 cores meet all pods on their own."""
    cores = (k // 2) ** 2
    exact = sides_connected((k, 0), (0, cores), (cable, 1 - cable), (1.0, 0.0), (0.9, 1 - 0.9))
    closed = fat_tree_pods_connected(k, 0.9, 1.0, cable)
    assert (closed.reliability, closed.unreliability) == pytest.approx(exact, rel=1e-12)


def set_partitions(n):
    """All partitions of 0..n-1 as tuples of labels."""
    found = [()]
    for _ in range(n):
        found = [(*p, i) for p in found for i in range(max(p, default=-1) + 2)]
    return found


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7])
def test_partial_sums_lie_above_and_below_in_turn(n):
    """A state with n components, T with terminals: sums over coarser partitions bracket one."""
    for held in range(2, n + 1):
        sums, total = [], Fraction(0)
        for b in range(2, n + 1):
            cut = [p for p in set_partitions(n) if max(p) == b - 1]
            total += (-1) ** b * factorial(b - 2) * sum(len(set(p[:held])) - 1 for p in cut)
            sums.append(total)
        assert sums[-1] == 1
        assert all((value >= 1) if i % 2 == 0 else (value <= 1) for i, value in enumerate(sums))


def test_what_is_cut_off_after_few_blocks_is_the_full_sum():
    """At k = 32 few blocks settle rare failures; frequent ones take all 8,349 partitions."""
    rare = fat_tree_pods_connected(32, 0.999, 0.999, 0.999)
    alone = 32 * (0.001 + 0.999 * (1 - 0.999**2) ** 16) ** 16
    assert rare.unreliability == pytest.approx(alone, rel=1e-9)
    assert rare.exact
    start = process_time()
    often = fat_tree_pods_connected(32, 0.3, 0.4, 0.3)
    assert often.exact
    assert often.reliability + often.unreliability == pytest.approx(1.0, abs=1e-15)
    assert process_time() - start < 10  # 1.4 s on a quiet machine


def test_a_bracket_where_there_are_too_many_partitions():
    wide = fat_tree_pods_connected(48, 0.3, 0.4, 0.3)
    assert 0 < wide.lower <= wide.unreliability <= wide.upper < 1e-2
    assert not wide.exact


def descending(n, largest):
    """Partitions of n."""
    if n == 0:
        return [()]
    return [(s, *rest) for s in range(min(n, largest), 0, -1) for rest in descending(n - s, s)]


def in_fractions(k, core, aggregation, cable):
    """R by inversion, cores that may be in no block counted b - 1 times too often, in fractions."""
    c, a, q, h = Fraction(core), Fraction(aggregation), 1 - Fraction(cable), k // 2
    total = Fraction(0)
    for parts in descending(k, k):
        phi, b = Fraction(0), len(parts)
        for j in range(h + 1):
            poly = [Fraction(-(b - 1)) ** i / factorial(i) for i in range(j + 1)]
            for s in parts:
                block = [((1 - a) + a * q ** (j - i)) ** s / factorial(i) for i in range(j + 1)]
                poly = [sum(poly[d - i] * block[i] for i in range(d + 1)) for d in range(j + 1)]
            phi += comb(h, j) * c**j * (1 - c) ** (h - j) * factorial(j) * poly[j]
        ways = Fraction(factorial(k), prod(map(factorial, parts)))
        ways /= prod(factorial(parts.count(s)) for s in set(parts))
        total += (-1) ** (b - 1) * factorial(b - 1) * ways * phi**h
    return total


@pytest.mark.parametrize("chances", CHANCES)
def test_eight_pods_in_fractions(chances):
    exact, closed = in_fractions(8, *chances), fat_tree_pods_connected(8, *chances)
    assert closed.unreliability == pytest.approx(float(1 - exact), rel=1e-14)
    assert closed.reliability == pytest.approx(float(exact), rel=1e-14)


def test_small_chances_keep_their_digits():
    few = fat_tree_pods_connected(8, 0.001, 0.4, 0.01)
    assert few.unreliability == 1.0
    assert few.reliability == pytest.approx(float(in_fractions(8, 0.001, 0.4, 0.01)), rel=1e-12)
    none = fat_tree_pods_connected(4, 1.0, 1.0, 0.0)
    assert (none.reliability, none.unreliability) == (0.0, 1.0)
    assert fat_tree_pods_connected(8, 0.5, 0.5, 0.5, pods=1).unreliability == 0.0


def test_more_pods_need_more():
    risk = [fat_tree_pods_connected(8, 0.9, 0.8, 0.9, pods=p).unreliability for p in range(1, 9)]
    assert risk == sorted(risk)
    assert risk[-1] < 8 * risk[1]


@pytest.mark.parametrize(
    "bad", [{"k": 66}, {"k": 5}, {"core_link_up": 1.5}, {"pods": 0}, {"pods": 9}]
)
def test_bad_input_is_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(bad))} must"):
        fat_tree_pods_connected(**{"k": 8, "core_link_up": 0.9, **bad})
