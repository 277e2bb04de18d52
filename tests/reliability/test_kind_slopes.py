"""Slopes of the lumped sum against its differences, and against the sweep back."""

from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.reliability import evaluate
from relparallel.reliability.chances import CERTAIN, part
from relparallel.reliability.lumped import kind_slopes
from relparallel.reliability.lumped.arithmetic import Dual, Duals, Scale, exact_up
from relparallel.reliability.lumped.kind_slopes import slopes_of_kinds
from relparallel.reliability.lumped.lumping import Fabric, connected

CLASSES = "core", "aggregation", "core_link", "edge_link"
STEP = Fraction(1, 2**80)  # of a class's smaller chance


def fabric(planes, cores, aggregations, pods, terminals, chances):
    return Fabric(
        planes=planes,
        cores=cores,
        aggregations=aggregations,
        pods=((pods, terminals, 0),),
        edge=CERTAIN,
        **dict(zip(CLASSES, chances, strict=True)),
    )


def connected_slopes(some):
    """R and its slopes, where all pods are alike and have no other edge switches."""
    joined, core, (own,) = slopes_of_kinds(some)
    return joined, {"core": core} | {name: own[name] for name in CLASSES[1:]}


def rare(*downs):
    return [(1.0 - down, down) for down in downs]


def by_differences(some, name):
    """R and its slope: two sums of so many more bits that their difference has all digits of a float."""
    up, down = exact_up(getattr(some, name)), 1 - exact_up(getattr(some, name))
    step = min(up, down) * STEP
    worse = replace(some, **{name: (up - step, down + step)})
    smallest = min(connected_slopes(some)[1][name], Fraction(1, 2**60)) * STEP * STEP * min(up, down)
    before, after = (
        Fraction(total, scale.one) for total, scale, _ in (connected(f, smallest) for f in (some, worse))
    )
    return before, (before - after) / step


FABRICS = {
    "reliable": fabric(2, 2, 1, 4, 2, [part(0.9999)] * 4),
    "unreliable": fabric(2, 2, 1, 4, 2, [part(0.9)] * 4),
    "hopeless": fabric(2, 2, 1, 3, 2, [part(x) for x in (1e-3, 1e-4, 1e-5, 0.01)]),
    "a core in 1e50": fabric(2, 2, 1, 4, 2, rare(1e-50, 1e-3, 1e-2, 1e-4)),
    "a link in 1e40": fabric(2, 2, 1, 4, 2, rare(1e-2, 1e-3, 1e-40, 1e-9)),
    "all in 1e30": fabric(2, 3, 1, 3, 2, rare(1e-30, 1e-30, 1e-30, 1e-30)),
    "two switches in a plane": fabric(2, 2, 2, 3, 2, [part(x) for x in (0.99, 0.97, 0.95, 0.9)]),
    "one plane": fabric(1, 6, 2, 5, 3, [part(x) for x in (0.99, 0.9999, 0.9, 0.999)]),
    "6-ary": fabric(3, 3, 1, 6, 3, [part(x) for x in (0.999, 0.9999, 0.99, 0.9)]),
    "6-ary, unreliable": fabric(3, 3, 1, 6, 3, [part(0.9)] * 4),
    "leaves under spines": fabric(1, 8, 1, 30, 1, [part(0.999), part(0.9999), part(0.99), CERTAIN]),
}


@pytest.mark.parametrize("name", FABRICS)
def test_slopes_are_quotients_of_differences(name):
    some = FABRICS[name]
    joined, slopes = connected_slopes(some)
    for of in CLASSES:
        if getattr(some, of)[1] > 0:
            whole, expected = by_differences(some, of)
            assert float(abs(slopes[of] / expected - 1)) < 1e-14
    assert float(abs(joined / whole - 1)) < 1e-15
    assert float(abs((1 - joined) / (1 - whole) - 1)) < 1e-15


@pytest.mark.slow
def test_slopes_of_the_8_ary_fat_tree_are_a_difference_in_all_chances_at_once():
    """Steps of 2^-24 to both sides leave 2^-48 of the slopes; sums to 2^-88 leave 2^-45 of the difference."""
    some = fabric(4, 4, 1, 8, 4, rare(0.01, 0.008, 0.002, 0.004))
    shift, smallest = Fraction(1, 2**24), Fraction(1, 2**88)
    steps = {of: (1 - exact_up(getattr(some, of))) * shift for of in CLASSES}
    joined = []
    for side in (1, -1):
        ups = {of: exact_up(getattr(some, of)) + side * step for of, step in steps.items()}
        total, scale, _ = connected(replace(some, **{of: (up, 1 - up) for of, up in ups.items()}), smallest)
        joined.append(Fraction(total, scale.one))
    expected, (_, slopes) = float(joined[0] - joined[1]) / 2, connected_slopes(some)
    assert sum(float(slopes[of] * step) for of, step in steps.items()) == pytest.approx(expected, rel=1e-12)


def swept(some):
    """Slope of every class: those of its parts, by the sweep back, added up."""
    graph, ((pods, terminals, _),) = nx.Graph(), some.pods
    width = some.planes * some.aggregations
    for pod in range(pods):
        for switch in range(width):
            above = [("core", switch // some.aggregations, c) for c in range(some.cores)]
            graph.add_edges_from((core, ("aggregation", pod, switch), {"of": "core_link"}) for core in above)
            below = [("terminal", pod, t) for t in range(terminals)]
            graph.add_edges_from((edge, ("aggregation", pod, switch), {"of": "edge_link"}) for edge in below)
    links = {(u, v): getattr(some, of)[1] for u, v, of in graph.edges(data="of")}
    nodes = {v: getattr(some, v[0])[1] for v in graph if v[0] != "terminal"}
    ends = [v for v in graph if v[0] == "terminal"]
    found = evaluate(graph, ends, link_down=links, node_down=nodes, method="exact").importance(perfect=True)
    slopes = dict.fromkeys((*CLASSES, "terminal"), 0.0)
    for name, kind, slope in zip(found.names, found.kinds, found.birnbaum.tolist(), strict=True):
        slopes[graph.edges[name]["of"] if kind == "link" else name[0]] += slope
    return found.unreliability, slopes


@settings(max_examples=40, deadline=None)
@given(
    shape=st.sampled_from([(1, 1, 1), (1, 2, 2), (1, 3, 2), (2, 2, 1), (2, 1, 2), (3, 1, 1)]),
    pods=st.integers(2, 3),
    terminals=st.integers(1, 2),
    downs=st.tuples(*[st.sampled_from([1e-20, 1e-3, 0.2, 0.5, 0.75])] * 4),
)
def test_slopes_are_those_of_the_sweep_back(shape, pods, terminals, downs):
    some = fabric(*shape, pods, terminals, rare(*downs))
    joined, slopes = connected_slopes(some)
    failed, expected = swept(some)
    assert float(1 - joined) == pytest.approx(failed, rel=1e-13, abs=0)
    for of in CLASSES:
        assert float(slopes[of]) == pytest.approx(expected[of], rel=1e-12, abs=0)


@pytest.mark.parametrize("perfect", CLASSES)
def test_a_class_that_never_fails_changes_nothing_for_the_others(perfect):
    some = replace(fabric(2, 2, 1, 3, 2, [part(0.99)] * 4), **{perfect: CERTAIN})
    found, (_, expected) = connected_slopes(some)[1], swept(some)
    for of in set(CLASSES) - {perfect}:
        assert float(found[of]) == pytest.approx(expected[of], rel=1e-12, abs=0)


def test_duals_of_integers_are_those_of_fractions():
    x, y = Dual(Fraction(1, 3), (Fraction(1), Fraction(0))), Dual(Fraction(2, 7), (Fraction(0), Fraction(1)))
    scale = Scale(200)
    numbers, single = Duals(scale, 2), Duals(scale, 1)
    first, second = (
        single.array([Dual(x.value, (Fraction(1),))]),
        single.array([Dual(y.value, (Fraction(1),))]),
    )
    for exact, found in (
        (x * y, numbers.times(numbers.array([x]), numbers.array([y]))),
        (x * y, single.product(second[:, None], first[:, None])),  # by other chances: of the second first
        (1 - x**3 * y**0, numbers.array([1 - x**3])),
        (Dual(Fraction(3), (Fraction(0),) * 2), numbers.array([Fraction(3)])),
    ):
        assert found.reshape(3).tolist() == pytest.approx(
            [scale.integer(part) for part in (exact.value, *exact.slopes)], abs=4
        )


def test_links_of_one_plane_are_no_worse_than_the_cut_they_are_in():
    """With one core the core, its links and the switches below are in series."""
    some = fabric(1, 1, 1, 2, 1, [part(x) for x in (0.5, 0.75, 0.875, 0.9375)])
    joined, slopes = connected_slopes(some)
    assert joined == Fraction(1, 2) * Fraction(3, 4) ** 2 * Fraction(7, 8) ** 2 * Fraction(15, 16) ** 2
    expected = np.array([1, 2, 2, 2]) / [0.5, 0.75, 0.875, 0.9375]
    assert [float(slopes[name] / joined) for name in CLASSES] == pytest.approx(expected, rel=1e-15)


def of_one_plane(cores, idle, downs):
    """Two pods with a terminal and some without, as a Clos network of intermediate switches has them."""
    chances = dict(zip((*CLASSES, "edge"), rare(*downs), strict=True))
    pods = (idle, 0, cores), (2, 1, cores - 1)
    return Fabric(planes=1, cores=cores, aggregations=2, pods=pods, **chances)


def sums_made(monkeypatch, some):
    """How often the lumped sum is made for the slopes of a fabric."""
    sums, summed = [], kind_slopes._summed
    monkeypatch.setattr(kind_slopes, "_summed", lambda *given: sums.append(1) or summed(*given))
    assert slopes_of_kinds(some) is not None
    return len(sums)


@pytest.mark.parametrize("cores", [2, 4, 6])
@pytest.mark.parametrize("idle", [1, 4])
@pytest.mark.parametrize(
    "downs",
    [
        (0.0, 0.0, 1e-5, 1e-5, 0.0),
        (0.02, 0.02, 1e-8, 1e-8, 0.02),
        (1e-6, 1e-6, 1e-7, 1e-7, 1e-6),
        (0.0, 0.0, 1e-13, 1e-13, 0.0),  # some are too small for a float
    ],
)
def test_slopes_of_one_plane_are_guessed_well_enough_for_one_sum(monkeypatch, cores, idle, downs):
    assert sums_made(monkeypatch, of_one_plane(cores, idle, downs)) == 1


@pytest.mark.parametrize(("shape", "edges"), [((2, 3, 2), 4), ((2, 2, 2), 2), ((3, 3, 1), 3), ((2, 3, 1), 4)])
@pytest.mark.parametrize(("switch", "link"), [(1e-9, 1e-3), (1e-9, 1e-5), (1e-6, 1e-6), (1e-3, 1e-7)])
def test_slopes_of_several_planes_are_guessed_well_enough_for_one_sum(
    monkeypatch, shape, edges, switch, link
):
    chances = dict(zip((*CLASSES, "edge"), rare(switch, switch, link, link, switch), strict=True))
    planes, cores, switches = shape
    pods = (3, 0, edges), (2, 1, edges - 1)
    some = Fabric(planes=planes, cores=cores, aggregations=switches, pods=pods, **chances)
    assert sums_made(monkeypatch, some) == 1


def test_slopes_too_small_for_any_sum_are_0(monkeypatch):
    some = of_one_plane(4, 2, (0.0, 0.0, 1e-6, 1e-6, 0.0))
    every = slopes_of_kinds(some)
    monkeypatch.setattr(kind_slopes, "_LEAST", 1e-80)
    found = slopes_of_kinds(some)
    assert float(found.joined) == float(every.joined)
    for kept, own in zip(found.pods, every.pods, strict=True):
        for of in ("core_link", "other_link"):
            expected = float(own[of]) if own[of] >= 1e-80 else 0.0
            assert float(kept[of]) == pytest.approx(expected, rel=1e-11, abs=0)
    assert found.pods[0]["other_link"] == 0 < every.pods[0]["other_link"] < 1e-80 < found.pods[0]["core_link"]
    monkeypatch.setattr(kind_slopes, "_SMALL", 1e-3)
    assert slopes_of_kinds(some) is None  # they may count where R is as small
