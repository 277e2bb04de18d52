"""Pairs of servers that forward: every pair of small fabrics against the exact programme."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from relparallel.reliability import bcube_pair, dcell_pair, evaluate, ring_pair
from relparallel.topology import bcube, dcell, torus

CHANCES = [(0.9, 0.8, 0.85), (0.4, 0.3, 0.6), (0.999, 0.99, 0.9999), (1.0, 1.0, 0.9), (1.0, 0.9, 1.0)]


def programme(fabric, pair, server, switch, cable, direct):
    """The exact answer; cables between two servers are up with probability ``direct``."""
    links = np.where(fabric.endpoint[fabric.edges].all(axis=1), direct, cable)
    return evaluate(fabric, pair, links, np.where(fabric.endpoint, server, switch))


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("ups", CHANCES)
def test_bcube_agrees_with_the_exact_programme(n, ups):
    fabric = bcube(n, 1)
    others = range(1, n * n) if n < 4 else (3, 4, 15)
    for target in others:
        exact, closed = programme(fabric, (0, target), *ups, 1.0), bcube_pair(n, 0, target, *ups)
        assert closed.unreliability == pytest.approx(exact.unreliability, rel=1e-12)
        assert closed.reliability == pytest.approx(exact.reliability, rel=1e-12)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("ups", CHANCES)
def test_dcell_agrees_with_the_exact_programme_for_every_pair(n, ups):
    fabric = dcell(n, 1)
    for pair in combinations(range(n * (n + 1)), 2):
        exact, closed = programme(fabric, pair, *ups, 0.7), dcell_pair(n, *pair, *ups, cable_up=0.7)
        assert closed.unreliability == pytest.approx(exact.unreliability, rel=1e-12)
        assert closed.reliability == pytest.approx(exact.reliability, rel=1e-12)


def test_a_larger_dcell_agrees_with_the_exact_programme_for_every_class():
    fabric, ups = dcell(5, 1), (0.95, 0.9, 0.85)
    for target in (1, 5, 6, 10, 11, 12):
        exact, closed = programme(fabric, (0, target), *ups, 0.85), dcell_pair(5, 0, target, *ups)
        assert closed.unreliability == pytest.approx(exact.unreliability, rel=1e-12)


def test_two_arms_are_what_fails_first():
    """In large fabrics a server is lost when both of its ways out are."""
    cut = 1e-4**2
    for pair in (bcube_pair(16, 0, 17, switch_up=0.9999), dcell_pair(16, 0, 34, switch_up=0.9999)):
        assert pair.unreliability == pytest.approx(2 * cut, rel=1e-3)


def test_direction_does_not_matter():
    ups = (0.9, 0.8, 0.7)
    for form, n, pair in ((bcube_pair, 6, (3, 31)), (dcell_pair, 6, (3, 31))):
        there, back = form(n, *pair, *ups), form(n, *pair[::-1], *ups)
        assert there.unreliability == pytest.approx(back.unreliability, rel=1e-13)


@pytest.mark.parametrize(("n", "hops"), [(3, 1), (8, 4), (12, 3)])
def test_ring_agrees_with_the_exact_programme(n, hops):
    exact = evaluate(nx.cycle_graph(n), (0, hops), 0.8, 0.9)
    assert ring_pair(n, hops, 0.9, 0.8).unreliability == pytest.approx(exact.unreliability, rel=1e-13)
    assert ring_pair(n, hops, 0.9, 0.8).reliability == pytest.approx(exact.reliability, rel=1e-13)


def test_a_long_torus_is_swept_along_its_length():
    """The exact programme needs no form of its own: its states are those of one cross-section."""
    ring = evaluate(torus((2, 40)), (0, 20), 0.99)
    assert ring.method == "exact"
    assert ring.width <= 6
    assert 4 * 0.01**3 < ring.unreliability < 3e-5


@pytest.mark.parametrize(("build", "n"), [(bcube, 3), (bcube, 4), (dcell, 3)])
def test_three_levels_are_bracketed_closely(build, n):
    """Both ends have as many ways out as there are levels: the bracket holds what that gives."""
    fabric, down = build(n, 2), 1e-3
    found = evaluate(fabric, (0, fabric.num_hosts - 1), link_down=down, max_seconds=0.5)
    assert found.method == "bounds"
    assert found.upper < 1.002 * found.lower
    assert 0.99 * 2 * down**3 < found.lower < 1.01 * 2 * down**3


@pytest.mark.parametrize("build", [bcube, dcell])
def test_three_small_levels_are_exact(build):
    """The programme, and a bracket from cuts and paths that never asks it."""
    fabric = build(2, 2)
    pair = (0, fabric.num_hosts - 1)
    exact = evaluate(fabric, pair, 0.99, np.where(fabric.endpoint, 1.0, 0.999))
    around = evaluate(fabric, pair, 0.99, np.where(fabric.endpoint, 1.0, 0.999), method="bounds")
    assert exact.method == "exact"
    assert around.lower <= exact.unreliability <= around.upper


@pytest.mark.parametrize("form", [bcube_pair, dcell_pair])
@pytest.mark.parametrize(
    ("bad", "name"),
    [({"n": 1}, "n"), ({"n": 49}, "n"), ({"source": 90}, "source"), ({"target": 0}, "target")],
)
def test_bad_input_is_refused_by_name(form, bad, name):
    with pytest.raises(ValueError, match=f"{name} must"):
        form(**{"n": 4, "source": 0, "target": 1, **bad})
