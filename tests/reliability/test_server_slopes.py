"""Importance for pairs of servers: the sweep back, both states of a part, outbreaks, and its cost."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from relparallel.reliability import evaluate
from relparallel.reliability.chances import part
from relparallel.reliability.closed_forms.crowd_slopes import crowd_slopes
from relparallel.reliability.closed_forms.crowds import Crowd, between
from relparallel.reliability.closed_forms.server_centric_forms import bcube_crowd, dcell_crowd
from relparallel.topology import bcube, dcell, torus

CHANCES = {  # of servers, switches and cables
    "all fail": (0.9, 0.8, 0.7),
    "cables": (1.0, 1.0, 0.9),
    "nodes": (0.99, 0.9999, 1.0),
    "switches": (1.0, 0.9, 1.0),
    "servers": (0.9, 1.0, 1.0),
    "rarely": (1 - 1e-6, 1 - 1e-7, 1 - 1e-5),
}
FABRICS = {"BCube": (bcube, 3), "larger BCube": (bcube, 4), "DCell": (dcell, 3), "larger DCell": (dcell, 5)}


def chances(fabric, pair, server, switch, cable):
    """All alike but for the two servers, which fail in ways of their own."""
    node = np.where(fabric.endpoint, server, switch)
    node[list(pair)] = 0.95, 0.9
    return {"link_up": cable, "node_up": node}


def assert_like_the_sweep_back(network, pair, ups):
    parts = chances(network, pair, *ups)
    closed = evaluate(network, pair, method="closed_form", **parts)
    found, swept = (evaluate(network, pair, method=m, **parts).importance() for m in ("closed_form", "exact"))
    assert closed.unreliability == found.unreliability == pytest.approx(swept.unreliability, rel=1e-12, abs=0)
    assert (found.names, found.kinds) == (swept.names, swept.kinds)
    np.testing.assert_allclose(found.birnbaum, swept.birnbaum, rtol=1e-12, atol=1e-30 * swept.unreliability)


@pytest.mark.parametrize("ups", CHANCES.values(), ids=CHANCES)
@pytest.mark.parametrize(("build", "n"), FABRICS.values(), ids=FABRICS)
def test_every_part_against_the_sweep_back(build, n, ups):
    """Every pair of the smallest fabrics, and every pair of one server of others."""
    fabric = build(n, 1)
    pairs = combinations(range(fabric.num_hosts), 2) if n < 4 else ((0, v) for v in range(1, 2 * n + 2))
    for pair in pairs:
        assert_like_the_sweep_back(fabric, pair, ups)


@pytest.mark.parametrize(("cable", "up"), [(0.9, 0.8), (0.9, 1.0), (1.0, 0.5), (1 - 1e-9, 1 - 1e-7)])
@pytest.mark.parametrize("ring", [torus((3,)), torus((9,)), bcube(2, 1), dcell(2, 1)], ids=str)
def test_rings_against_the_sweep_back(ring, cable, up):
    for target in range(1, ring.num_hosts):
        assert_like_the_sweep_back(ring, (0, target), (up, up, cable))


@pytest.mark.parametrize("down", [Fraction(1, 8), Fraction(1, 2**20)])
@pytest.mark.parametrize(
    ("fabric", "pair"),
    [(bcube(3, 1), (0, 4)), (bcube(4, 1), (0, 1)), (dcell(3, 1), (0, 3)), (dcell(4, 1), (0, 19))],
    ids=str,
)
def test_one_part_of_every_class_against_conditioning_in_fractions(fabric, pair, down, by_conditioning):
    links = {tuple(ends): 2 * down for ends in fabric.edges.tolist()}
    nodes = {v: down if fabric.endpoint[v] else 3 * down for v in range(fabric.num_nodes)}
    floats = {ends: float(q) for ends, q in links.items()}, {v: float(q) for v, q in nodes.items()}
    result = evaluate(fabric, pair, link_down=floats[0], node_down=floats[1])
    assert result.method == "closed_form"
    found = result.importance()
    assert len(found.names) == fabric.num_nodes + len(fabric.edges)
    classes = {f"{slope:.9e}": (name, slope) for name, slope in zip(found.names, found.birnbaum, strict=True)}
    assert len(classes) >= 8
    for name, slope in classes.values():
        exact = by_conditioning(fabric, pair, links, nodes, name)
        assert slope == pytest.approx(exact, rel=1e-12, abs=0)


def without(crowd, name):
    """The crowd with a vertex down that has a name."""
    sides = {vertex: side for vertex, side in crowd.sides.items() if vertex != name}
    arms = [{v: arm for v, arm in end.items() if v != name} for end in (crowd.first, crowd.second)]
    return Crowd(sides, crowd.others, crowd.vertex, crowd.link, *arms)


SIZES = {
    "BCube": bcube_crowd(10, 0, 11, part(0.8), part(0.7), part(0.6)),
    "BCube, one switch": bcube_crowd(10, 0, 1, part(0.8), part(0.7), part(0.6)),
    "DCell": dcell_crowd(30, 0, 899, part(0.9), part(0.5), part(0.6), part(0.7)),
    "DCell, one cell": dcell_crowd(30, 0, 1, part(0.9), part(0.5), part(0.6), part(0.7)),
    "DCell, partners": dcell_crowd(30, 0, 30, part(0.9), part(0.5), part(0.6), part(0.7)),
}


@pytest.mark.parametrize("crowd", SIZES.values(), ids=SIZES)
def test_large_crowds_against_both_states_by_outbreaks(crowd):
    """Arms, and vertices that are up with p: U(down) - U(up) = (U(down) - U) / p; the sums share nothing."""
    found, names = crowd_slopes(crowd), list(crowd.sides)
    (_, failed), up = between(crowd), crowd.vertex[0]
    for end, arms in enumerate((crowd.first, crowd.second)):
        for name, arm in arms.items():
            if arm[0] > 0:
                lost = between(crowd._replace(**{("first", "second")[end]: {**arms, name: (0.0, 1.0)}}))
                expected = (lost[1] - failed) / arm[0]
                assert found.arms[end, names.index(name)] == pytest.approx(expected, rel=1e-9)
    if len(crowd.first) == len(crowd.second) == 2 and not crowd.first.keys() & crowd.second.keys():
        for name in names:
            expected = (between(without(crowd, name))[1] - failed) / up
            assert found.vertex[names.index(name)] == pytest.approx(expected, rel=1e-9)
    for side, count in enumerate(crowd.others):
        fewer = tuple(n - (at == side) for at, n in enumerate(crowd.others))
        expected = (between(crowd._replace(others=fewer))[1] - failed) / up
        assert found.vertex[len(names) + side] == pytest.approx(expected, rel=1e-9, abs=1e-14)
        assert count > 0


@pytest.mark.parametrize("fabric", [bcube(10, 1), dcell(20, 1)], ids=str)
@pytest.mark.parametrize("kind", ["links", "servers", "switches"])
def test_slopes_of_large_fabrics_are_the_derivative_of_the_form(fabric, kind):
    """Far too wide for the programme: the sum over a kind of parts, by a central difference."""

    def unreliability(step):
        links = 0.7 + step * (kind == "links")
        server, switch = 0.6 + step * (kind == "servers"), 0.8 + step * (kind == "switches")
        return evaluate(fabric, (0, 45), links, np.where(fabric.endpoint, server, switch))

    found, step = unreliability(0.0).importance(), 1e-5
    mine = [
        "links" if part == "link" else "servers" if fabric.endpoint[name] else "switches"
        for name, part in zip(found.names, found.kinds, strict=True)
    ]
    slope = (unreliability(-step).unreliability - unreliability(step).unreliability) / (2 * step)
    assert found.birnbaum[np.array(mine) == kind].sum() == pytest.approx(slope, rel=1e-7, abs=0)


def test_slopes_far_below_the_last_digit_of_one():
    """To first order a cable of the pair decides with its other one, and any other part with both."""
    down = 1e-9
    found = evaluate(bcube(16, 1), (0, 17), link_down=down).importance()
    slopes = dict(zip(found.names, found.birnbaum.tolist(), strict=True))
    near = [slope for name, slope in slopes.items() if {0, 17} & set(name)]
    assert near == pytest.approx(np.full(4, down), rel=1e-6, abs=0)
    rest = np.array([slope for name, slope in slopes.items() if not {0, 17} & set(name)])
    assert (rest > 0).all()
    assert rest.max() < down**3


def test_what_follows_from_the_importance_of_a_large_fabric():
    fabric = dcell(16, 1)
    result = evaluate(fabric, (0, 200), 0.99, 0.999)
    table = result.importance().to_frame()
    assert len(table) == fabric.num_nodes + len(fabric.edges)
    assert np.isfinite(table[["structural", "risk_reduction", "criticality"]].to_numpy()).all()
    assert set(table["part"][:2]) == {0, 200}  # without either of the two nothing works


@pytest.mark.parametrize("n", [2, 3, 6, 12])
@pytest.mark.parametrize("build", [bcube, dcell])
@pytest.mark.parametrize("ups", [(0.99, 0.999), (0.99, 1.0), (1.0, 0.999)])
def test_all_importances_cost_less_than_five_evaluations(build, n, ups, times_one_evaluation):
    fabric = build(n, 1)
    for pair in ((0, 1), (0, fabric.num_hosts - 1)):
        assert times_one_evaluation(fabric, pair, *ups, attempts=4) < 5
