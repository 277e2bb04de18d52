"""Leaves and spines: against the frontier DP, Gilbert's recursion in fractions, and by hand."""

from fractions import Fraction
from functools import cache
from math import comb
from time import process_time

import numpy as np
import pytest

from relparallel.reliability import evaluate, leaf_spine_leaves_connected, leaf_spine_pair
from relparallel.topology import leaf_spine

CHANCES = [(0.9, 0.8, 0.95), (0.3, 0.2, 0.6), (0.999, 0.99, 1.0), (1.0, 0.5, 0.7)]


def chances(fabric, spine, cable, leaf, host=1.0):
    """Arguments of `evaluate`; a host and its cable fail as one."""
    hosts = fabric.is_kind("host")
    nodes = np.where(fabric.is_kind("spine"), spine, np.where(hosts, host, leaf))
    return {"link_up": np.where(hosts[fabric.edges].any(axis=1), 1.0, cable), "node_up": nodes}


def gilbert(rows, columns, q):
    """Probability that all rows are connected in a random bipartite graph, in fractions."""

    @cache
    def apart(m, n, only_rows):
        return sum(
            comb(m - 1, i - 1)
            * comb(n, j)
            * (1 - apart(i, j, False))
            * q ** (i * (n - j) + j * (m - i))
            for i in range(1, m + 1)
            for j in range(n + 1)
            if (i < m if only_rows else (i, j) != (m, n))
        )

    return 1 - apart(rows, columns, True)


@pytest.mark.parametrize(("leaves", "spines"), [(4, 3), (6, 4), (3, 5), (1, 2), (2, 1)])
@pytest.mark.parametrize("ups", CHANCES)
def test_all_leaves_agree_with_the_exact_programme(leaves, spines, ups):
    fabric = leaf_spine(leaves, spines, 1)
    exact = evaluate(fabric, np.flatnonzero(fabric.is_kind("leaf")), **chances(fabric, *ups))
    closed = leaf_spine_leaves_connected(leaves, spines, *ups)
    assert closed.unreliability == pytest.approx(exact.unreliability, rel=1e-12)
    assert closed.reliability == pytest.approx(exact.reliability, rel=1e-12)


def test_all_hosts_agree_with_the_exact_programme():
    fabric = leaf_spine(3, 3, 2)
    exact = evaluate(fabric, "all", **chances(fabric, 0.9, 0.8, 0.95, 0.97))
    closed = leaf_spine_leaves_connected(3, 3, 0.9, 0.8, 0.95, 0.97, hosts_per_leaf=2)
    assert closed.unreliability == pytest.approx(exact.unreliability, rel=1e-12)


@pytest.mark.parametrize(("leaves", "spines"), [(2, 3), (4, 3), (6, 4), (5, 1)])
@pytest.mark.parametrize("ups", CHANCES)
def test_a_pair_agrees_with_the_exact_programme_over_any_path(leaves, spines, ups):
    fabric = leaf_spine(leaves, spines, 1)
    exact = evaluate(fabric, (0, 1), **chances(fabric, *ups, 0.9))
    closed = leaf_spine_pair(leaves, spines, *ups, 0.9)
    assert closed.unreliability == pytest.approx(exact.unreliability, rel=1e-12)
    assert closed.reliability == pytest.approx(exact.reliability, rel=1e-12)


def test_two_leaves_have_only_paths_that_climb_once():
    for routing in ("any", "updown"):
        pair = leaf_spine_pair(2, 5, 0.9, 0.8, 0.7, 0.6, routing=routing)
        assert pair.reliability == pytest.approx(
            0.6**2 * 0.7**2 * (1 - (1 - 0.9 * 0.8**2) ** 5), rel=1e-13
        )
    some, climbing = (
        leaf_spine_pair(6, 5, 0.9, 0.8, routing=r).unreliability for r in ("any", "updown")
    )
    assert some < climbing == pytest.approx((1 - 0.9 * 0.8**2) ** 5, rel=1e-13)


def test_one_leaf_needs_no_spine():
    pair = leaf_spine_pair(1, 1, 0.0, 0.0, 0.9, 0.8, same_leaf=True)
    assert pair.reliability == pytest.approx(0.8**2 * 0.9, rel=1e-15)


@pytest.mark.parametrize("cable", [0.1, 0.4, 0.9, 0.999])
def test_sixteen_leaves_in_fractions(cable):
    s, q = Fraction(0.9), 1 - Fraction(cable)
    exact = sum(comb(8, j) * s**j * (1 - s) ** (8 - j) * gilbert(16, j, q) for j in range(9))
    closed = leaf_spine_leaves_connected(16, 8, 0.9, cable)
    assert closed.reliability == pytest.approx(float(exact), rel=1e-12)
    assert closed.unreliability == pytest.approx(float(1 - exact), rel=1e-12)


def test_sixty_four_leaves_and_thirty_two_spines_in_less_than_a_second():
    start = process_time()
    closed = leaf_spine_leaves_connected(leaves=64, spines=32, spine_up=0.999, link_up=0.999)
    assert process_time() - start < 1
    assert f"{closed.unreliability:.3e}" == "2.705e-85"
    spine = Fraction(0.999)
    # a leaf alone: every spine is down or out of reach
    dead = spine * (1 - Fraction(0.999)) + (1 - spine)
    assert closed.unreliability == pytest.approx(float(64 * dead**32), rel=1e-9)


def test_extremes():
    assert leaf_spine_leaves_connected(8, 4, 1.0, 1.0).unreliability == 0
    assert leaf_spine_leaves_connected(8, 4, 0.0, 1.0).reliability == 0
    assert leaf_spine_leaves_connected(8, 4, 1.0, 0.0).reliability == 0
    assert (
        leaf_spine_leaves_connected(8, 4, leaf_up=0.5, hosts_per_leaf=3, host_up=0.0).unreliability
        == 1
    )


@pytest.mark.parametrize(
    ("bad", "name"),
    [({"leaves": 0}, "leaves"), ({"spines": 257}, "spines"), ({"leaf_up": -1}, "leaf_up")],
)
@pytest.mark.parametrize("function", [leaf_spine_leaves_connected, leaf_spine_pair])
def test_bad_input_is_refused_by_name(function, bad, name):
    with pytest.raises((TypeError, ValueError), match=f"{name} must"):
        function(**{"leaves": 4, "spines": 3, **bad})


def test_a_pair_of_one_leaf_has_to_say_so():
    with pytest.raises(ValueError, match="leaves must be an integer"):
        leaf_spine_pair(1, 2)
    with pytest.raises(ValueError, match="routing must"):
        leaf_spine_pair(2, 2, routing="shortest")
