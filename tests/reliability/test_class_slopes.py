"""Importance of classes of alike parts against the sweep back, which knows no classes."""

import numpy as np
import pytest

from relparallel.reliability import evaluate
from relparallel.reliability.problem import read_problem
from relparallel.reliability.programme.compiled import compiled
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.sensitivity.adjoint import differentiate
from relparallel.reliability.sensitivity.class_slopes import slopes_by_class
from relparallel.topology import fat_tree, leaf_spine


def both(fabric, terminals, link, node):
    """U and slopes by class, and by the sweep back."""
    problem = read_problem(fabric, terminals, link, node)
    swept = differentiate(compiled(problem), problem.link, problem.node)
    return slopes_by_class(fabric, problem), (
        swept.unreliability,
        np.concatenate([swept.links, swept.nodes]),
    )


def tiered(fabric, down):
    """Every tier, and the links below it, with another chance."""
    node = 1 - down * np.array([1, 2, 3, 4])[fabric.tier]
    return 1 - down * np.array([1, 1, 2, 5])[fabric.tier[fabric.edges].max(axis=1)], node


@pytest.mark.parametrize("down", [0.1, 1e-3, 1e-6])
def test_every_part_of_a_fat_tree(down):
    fabric = fat_tree(4)
    (failed, slopes), (expected, swept) = both(fabric, "all", *tiered(fabric, down))
    assert failed == pytest.approx(expected, rel=1e-13)
    assert slopes == pytest.approx(swept, rel=1e-12, abs=0)


@pytest.mark.parametrize("kind", ["host", "leaf"])
def test_every_part_of_a_leaf_spine(kind):
    fabric = leaf_spine(leaves=6, spines=4, hosts_per_leaf=2)
    found, expected = both(fabric, np.flatnonzero(fabric.is_kind(kind)), 0.99, 0.999)
    assert found[0] == pytest.approx(expected[0], rel=1e-13)
    assert found[1] == pytest.approx(expected[1], rel=1e-12, abs=0)


def test_some_parts_that_never_fail():
    fabric = fat_tree(6)
    node = np.array([1.0, 1.0, 0.99, 0.999])[fabric.tier]
    found, expected = both(fabric, np.flatnonzero(fabric.is_kind("edge")), 1.0, node)
    assert found[1] == pytest.approx(expected[1], rel=1e-11, abs=0)
    assert np.count_nonzero(found[1]) == fabric.is_kind("core").sum() + fabric.is_kind("aggregation").sum()


def test_a_fabric_that_is_too_wide_for_the_sweep_has_its_importances():
    """60 leaves: the frontier would need more live vertices than there are labels."""
    fabric = leaf_spine(leaves=60, spines=16, hosts_per_leaf=1)
    result = evaluate(fabric, "all", 0.99, 0.999)
    found = result.importance()
    assert found.unreliability == pytest.approx(result.unreliability, rel=1e-12)
    table = found.to_frame().groupby("kind")["birnbaum"].max()
    spine = fabric.is_kind("spine")
    names = dict(zip(found.names, found.birnbaum.tolist(), strict=True))
    slopes = [names[v] for v in np.flatnonzero(spine).tolist()]
    assert np.ptp(slopes) == 0
    worse = evaluate(fabric, "all", 0.99, np.where(spine, 0.999 - 1e-6, 0.999)).unreliability
    better = evaluate(fabric, "all", 0.99, np.where(spine, 0.999 + 1e-6, 0.999)).unreliability
    assert (worse - better) / 2e-6 == pytest.approx(16 * slopes[0], rel=1e-3, abs=1e-12)
    assert table["node"] > 0.1  # a leaf or a host fails alone
    with pytest.raises(NotExactError, match="importance"):
        result.importance(perfect=True)


def test_what_is_not_alike_is_refused():
    fabric = fat_tree(4)
    for terminals in ((0, 4), "switches", tuple(range(13))):
        assert slopes_by_class(fabric, read_problem(fabric, terminals, 0.9, 0.9)) is None
    assert slopes_by_class(fabric, read_problem(fabric, "all", 1.0, 1.0)) is None
