"""What a pod's probability and its slopes are said to be at most, and what the slopes of a sum leave out."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.reliability.lumped import kind_bounds, kind_guesses, kind_slopes
from relparallel.reliability.lumped.arithmetic import Dual, Scale, exact_up
from relparallel.reliability.lumped.lumping import Fabric, floors, groups_of, states_of_cores

CLASSES = ("core", "aggregation", "edge", "core_link", "edge_link")
SHAPES = [(1, 2, 1), (2, 2, 1), (1, 3, 2), (1, 4, 1), (2, 1, 2), (3, 1, 1), (1, 2, 3)]
DOWNS = [0.0, 1e-20, 1e-6, 1e-3, 0.1, 0.5, 0.75, 0.999, 1 - 2**-20]
PODS = [(2, 1, 0), (1, 1, 1), (1, 2, 2), (1, 1, 3), (2, 0, 1), (1, 0, 2), (3, 0, 3)]


@st.composite
def fabrics(draw):
    """Pods of some kinds, terminals in two of them or more, and parts that never, seldom or mostly fail."""
    pods = draw(st.lists(st.sampled_from(PODS), min_size=1, max_size=3, unique_by=lambda pod: pod[1:]))
    if sum(count for count, terminals, _ in pods if terminals) < 2:
        pods.append((2, 3, 0))
    chances = {of: (1.0 - down, down) for of in CLASSES for down in [draw(st.sampled_from(DOWNS))]}
    planes, cores, aggregations = draw(st.sampled_from(SHAPES))
    return Fabric(planes=planes, cores=cores, aggregations=aggregations, pods=tuple(pods), **chances)


def parts_of(fabric):
    """Tables of the pods, and chances of the cores."""
    tables = [kind_slopes._table(fabric, pod) for pod in fabric.pods]
    return tables, states_of_cores(fabric, Dual(exact_up(fabric.core), (Fraction(1),)))


def exactly(fabric, tables, group, outside):
    """W and its slopes in whole numbers, by kind of pods: [6, layouts, choices] in fractions as floats."""
    scale = Scale(400)
    above = kind_bounds.with_slopes(fabric, scale)
    sums, uncoloured = above.power_sums(group), above.uncoloured(group.sizes, outside)
    for table in tables:
        weights = above.weights(uncoloured, above.entries(table))
        duals = sums[0] @ weights
        duals[1 + kind_bounds.OF_PODS.index("core_link")] += sums[1] @ weights[0]
        yield (duals >> scale.bits) / scale.one


@settings(max_examples=60, deadline=None)
@given(fabric=fabrics())
def test_a_pods_probability_and_slopes_are_below_what_is_sure(fabric):
    """For every split, with nothing known but the ceilings."""
    tables, alive = parts_of(fabric)
    look = kind_bounds._Look.of(fabric, tables, alive)
    for group, outside in groups_of(fabric):
        ceilings = look.plain.power_sums(group) @ look.at(group.sizes, outside).ceilings
        nothing = np.full((1 + len(kind_bounds.OF_PODS), *ceilings.shape[1:]), np.inf)
        for pod, found in zip(fabric.pods, exactly(fabric, tables, group, outside), strict=True):
            sure = kind_bounds._within(fabric, pod, nothing, ceilings)
            for of, bound, exact in zip(("whole", *kind_bounds.OF_PODS), sure, abs(found), strict=True):
                tier = "edge_link" if of == "other_link" else of
                if of == "whole" or getattr(fabric, tier)[1] > 0:
                    assert (exact.astype(float) <= bound * (1 + 1e-12) + 1e-100).all()


@pytest.mark.parametrize(
    "downs", [(0.1, 0.2, 0.3, 0.02), (1e-4, 0.9, 0.98, 1e-3), (0.5, 1e-6, 0.999, 0.7)], ids=str
)
@pytest.mark.parametrize("shape", [(1, 3, 5), (1, 4, 4), (2, 2, 2), (3, 2, 1)], ids=str)
def test_slopes_in_floats_are_off_by_less_than_is_said(shape, downs):
    planes, cores, aggregations = shape
    aggregation, edge, core_link, edge_link = ((1.0 - down, down) for down in downs)
    fabric = Fabric(
        planes=planes, cores=cores, aggregations=aggregations, pods=((2, 1, 2), (1, 0, 3)), core=(0.9, 0.1),
        aggregation=aggregation, edge=edge, core_link=core_link, edge_link=edge_link,
    )  # fmt: skip
    tables, alive = parts_of(fabric)
    look = kind_bounds._Look.of(fabric, tables, alive)
    for group, outside in groups_of(fabric):
        here, sums = look.at(group.sizes, outside), look.above.power_sums(group)
        for weights, exact in zip(here.weights, exactly(fabric, tables, group, outside), strict=True):
            found = sums[0] @ weights
            found[kind_bounds._CORE_LINK] += sums[1] @ weights[0]
            assert abs(found - exact.astype(float)).max() < kind_bounds._DOUBT[0]


@settings(max_examples=60, deadline=None)
@given(fabric=fabrics())
def test_terms_left_out_of_the_slopes_do_not_count(fabric):
    """Against the sum over all terms, of more bits."""
    tree, cut = floors(fabric)
    found = kind_slopes.slopes_of_kinds(fabric) if tree > 0 and cut > 0 else None
    if found is None:
        return
    tables, alive = parts_of(fabric)
    none_is_too_small = np.full(2 + 5 * len(fabric.pods), 2.0**-900)
    _, terms = kind_bounds.terms_of_slopes(fabric, tables, alive, none_is_too_small, estimate=False)
    whole = kind_slopes._summed(fabric, tables, alive, 2.0**-800, terms)
    assert float(min(found.joined, 1 - found.joined)) == pytest.approx(
        float(min(whole.joined, 1 - whole.joined)), rel=1e-11, abs=0
    )
    if fabric.core[1] > 0:
        assert float(found.core) == pytest.approx(float(whole.core), rel=1e-11, abs=0)
    for (_, terminals, others), some, every in zip(fabric.pods, found.pods, whole.pods, strict=True):
        for of in kind_bounds.OF_PODS:
            tier = "edge_link" if of == "other_link" else of
            if getattr(fabric, tier)[1] == 0:
                continue
            if kind_guesses._useless(fabric, terminals, others, of):
                assert abs(every[of]) < Fraction(1, 2**780)
            else:
                assert float(some[of]) == pytest.approx(float(every[of]), rel=1e-11, abs=0)


@pytest.mark.parametrize(
    ("shape", "downs", "pods"),
    [
        ((2, 2, 1), (1e-3, 1e-3, 0.1, 1e-3, 1e-20), ((2, 1, 1), (1, 2, 0))),  # 1 - 1e-20 is 1 in floats
        ((2, 2, 1), (3e-4, 0.0, 0.0, 0.0, 0.0), ((1, 0, 1), (3, 3, 1))),  # only cores fail
        ((2, 2, 1), (0.3, 0.2, 0.5, 0.1, 0.0), ((2, 1, 1), (1, 0, 2))),  # a terminal always joins its pod
        ((1, 3, 2), (1e-7, 9e-7, 2e-9, 2e-9, 5e-9), ((5, 0, 3), (5, 2, 2))),  # less than is guessed
        ((1, 2, 1), (2e-6, 0.06, 0.5, 5e-24, 3e-5), ((5, 1, 1), (2, 3, 3), (1, 0, 2))),  # and much less
    ],
    ids=str,
)
def test_slopes_are_found_where_a_guess_is_far_off(shape, downs, pods):
    chances = {of: (1.0 - down, down) for of, down in zip(CLASSES, downs, strict=True)}
    planes, cores, aggregations = shape
    fabric = Fabric(planes=planes, cores=cores, aggregations=aggregations, pods=pods, **chances)
    found = kind_slopes.slopes_of_kinds(fabric)
    assert found is not None
    assert found.core > 0
