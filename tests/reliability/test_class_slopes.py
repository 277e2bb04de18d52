"""Importance of classes of alike parts against the sweep back and conditioning, which know no classes."""

from dataclasses import replace
from fractions import Fraction
from time import process_time

import numpy as np
import pytest

from relparallel.reliability import evaluate
from relparallel.reliability.chances import part
from relparallel.reliability.lumped.arithmetic import exact_up
from relparallel.reliability.lumped.kind_slopes import slopes_of_kinds
from relparallel.reliability.lumped.lumping import Fabric, connected
from relparallel.reliability.problem import read_problem
from relparallel.reliability.programme.compiled import compiled
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.reliability.sensitivity.adjoint import differentiate, swept_slopes
from relparallel.reliability.sensitivity.class_slopes import slopes_by_class
from relparallel.topology import bcube, fat_tree, leaf_spine


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


@pytest.mark.parametrize("down", [0.1, 1e-3, 1e-6, 1e-12])
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


@pytest.mark.parametrize("up", [0.9, 0.9999])
def test_conditioning_on_one_part_of_each_class(up):
    """The same fabric with one part down, and up, in which this part's class is no more alike."""
    fabric = fat_tree(4)
    problem = read_problem(fabric, "all", up, up)
    _, slopes = slopes_by_class(fabric, problem)
    structure = compiled(problem)
    kinds = fabric.tier[fabric.edges].max(axis=1)
    links = [int(np.flatnonzero(kinds == kind)[-1]) for kind in (1, 2, 3)]
    nodes = [int(np.flatnonzero(fabric.tier == tier)[-1]) for tier in range(4)]
    for row in (*links, *(len(problem.edges) + v for v in nodes)):
        outcomes = []
        for chance in ((0.0, 1.0), (1.0, 0.0)):
            parts = np.concatenate([problem.link, problem.node])
            parts[row] = chance
            outcomes.append(structure.evaluate(*np.split(parts, [len(problem.edges)])))
        without, perfect = outcomes
        if without.unreliability < 0.5:  # the side that keeps more digits
            assert slopes[row] == pytest.approx(
                without.unreliability - perfect.unreliability, rel=1e-9, abs=0
            )
        else:
            assert slopes[row] == pytest.approx(perfect.reliability - without.reliability, rel=1e-9, abs=0)


def cost(up, k):
    """CPU seconds of one evaluation and of all importances, the least of some in turn."""
    fabric = fat_tree(k)
    spent = []
    for _ in range(4 if k < 8 else 2):
        start = process_time()
        result = evaluate(fabric, "all", up, up)
        middle = process_time()
        result.importance()
        spent.append((middle - start, process_time() - middle))
    return map(min, zip(*spent[1:], strict=True))


@pytest.mark.parametrize("up", [0.9, 0.99, 0.9999])
def test_all_importances_of_the_6_ary_fat_tree_cost_less_than_five_evaluations(up):
    once, every = cost(up, 6)
    assert every < 5 * once


@pytest.mark.slow
def test_all_importances_of_the_8_ary_fat_tree_cost_less_than_five_evaluations():
    once, every = cost(0.99, 8)
    assert every < 5 * once


def test_the_sweep_and_the_classes_meet_in_one_question():
    """Asked for the programme the sweep back is taken, otherwise the classes."""
    fabric = leaf_spine(leaves=8, spines=7, hosts_per_leaf=1)
    swept, alike = (evaluate(fabric, "all", 0.9, 0.95, method=m).importance() for m in ("exact", "auto"))
    assert alike.names == swept.names
    assert alike.birnbaum == pytest.approx(swept.birnbaum, rel=1e-12, abs=0)
    spines = [i for i, v in enumerate(alike.names) if v in np.flatnonzero(fabric.is_kind("spine")).tolist()]
    assert np.ptp(alike.birnbaum[spines]) == 0  # one number for the class


@pytest.mark.parametrize("hosts", [(0, 4), (0, 1, 4), (0, 4, 8), (0, 2, 4), (0, 1, 2, 3, 12)])
@pytest.mark.parametrize("down", [0.1, 1e-4, 1e-8])
def test_every_part_where_some_pods_have_no_terminals(hosts, down):
    fabric = fat_tree(4)
    terminals = np.flatnonzero(fabric.is_kind("host"))[list(hosts)]
    (failed, slopes), (expected, swept) = both(fabric, terminals, *tiered(fabric, down))
    assert failed == pytest.approx(expected, rel=1e-13)
    assert slopes == pytest.approx(swept, rel=1e-11, abs=0)


def test_some_parts_that_never_fail_where_some_pods_have_no_terminals():
    fabric = fat_tree(4)
    terminals = np.flatnonzero(fabric.is_kind("host"))[[0, 4]]
    for node in ([1.0, 1.0, 1.0, 1.0], [1.0, 0.999, 1.0, 0.9], [1.0, 1.0, 0.99, 1.0]):
        (_, slopes), (_, swept) = both(fabric, terminals, 0.99, np.array(node)[fabric.tier])
        assert slopes == pytest.approx(swept, rel=1e-11, abs=0)


def test_leaves_without_terminals():
    fabric = leaf_spine(leaves=5, spines=3, hosts_per_leaf=1)
    terminals = np.flatnonzero(fabric.is_kind("leaf"))[:2]
    (_, slopes), (_, swept) = both(fabric, terminals, 0.99, 0.999)
    assert slopes == pytest.approx(swept, rel=1e-11, abs=0)


def test_what_is_not_alike_is_refused():
    fabric = fat_tree(4)
    link = np.full(len(fabric.edges), 0.9)
    link[-1] = 0.8
    for terminals, up in (("switches", 0.9), ((0, 4), link)):
        assert slopes_by_class(fabric, read_problem(fabric, terminals, up, 0.9)) is None
    assert slopes_by_class(fabric, read_problem(fabric, "all", 1.0, 1.0)) is None


@pytest.mark.parametrize("pods", [((2, 1, 2), (4, 0, 3)), ((1, 1, 2), (1, 2, 1), (4, 0, 3))])
def test_slopes_of_all_kinds_together_are_quotients_of_differences(pods):
    """Steps of 2^-24 to both sides leave 2^-48 of a slope; sums to 2^-110 leave less of the difference."""
    chances = {"core": 0.01, "aggregation": 0.012, "edge": 0.011, "core_link": 0.1, "edge_link": 0.08}
    fabric = Fabric(
        planes=3, cores=3, aggregations=1, pods=pods, **{n: part(1 - q) for n, q in chances.items()}
    )
    found = slopes_of_kinds(fabric)
    of_class = {n: sum(pod[n] for pod in found.pods) for n in chances if n != "core"} | {"core": found.core}
    of_class["edge_link"] += sum(pod["other_link"] for pod in found.pods)
    for name, slope in of_class.items():
        up = exact_up(getattr(fabric, name))
        step, joined = (1 - up) / 2**24, []
        for moved in (up + step, up - step):
            total, scale, _ = connected(replace(fabric, **{name: (moved, 1 - moved)}), Fraction(1, 2**110))
            joined.append(Fraction(total, scale.one))
        assert float(slope) == pytest.approx(float((joined[0] - joined[1]) / (2 * step)), rel=1e-12)


@pytest.mark.parametrize("servers", [3, 4, 5])
@pytest.mark.parametrize("perfect", ["", "columns", "row links"])
def test_levels_of_a_bcube_against_the_sweep(servers, perfect):
    """Every class has its own chance, or some never fail."""
    network = bcube(servers, 1)
    low = network.tier[network.edges].max(axis=1) == 1
    link = np.where(low, 1.0 if perfect == "row links" else 0.8, 0.95)
    levels = [0.9, 0.7, 1.0 if perfect == "columns" else 0.99]
    problem = read_problem(network, "all", link, np.array(levels)[network.tier])
    wanted = np.concatenate([problem.link[:, 1], problem.node[:, 1]]) > 0
    failed, slopes = slopes_by_class(network, problem)
    expected = swept_slopes(problem, wanted, True, 2**24)
    assert failed == pytest.approx(expected[0], rel=1e-13)
    assert slopes.tolist() == pytest.approx(expected[1].tolist(), rel=1e-11, abs=0)


@pytest.mark.parametrize("down", [0.1, 1e-9])
def test_importance_of_a_bcube_costs_less_than_five_evaluations(down):
    """Three to four times on a quiet machine; a thousand times by the sweep."""
    network = bcube(8, 1)
    spent = {"evaluate": [], "importance": []}
    for _ in range(7):
        start = process_time()
        result = evaluate(network, "all", link_down=down, node_down=down)
        middle = process_time()
        result.importance()
        spent["evaluate"].append(middle - start)
        spent["importance"].append(process_time() - middle)
    assert min(spent["importance"]) < 5 * min(spent["evaluate"])


def test_slopes_of_a_bcube_divide_no_fractions(monkeypatch):
    """Steps leave integers behind: quotients of fractions of a thousand digits took longer than the sum."""
    taken, divide = [], Fraction.__truediv__
    network = bcube(6, 1)
    problem = read_problem(network, "all", 1.0, 1.0, 1e-9, np.where(network.tier > 0, 1e-3, 0.0))
    monkeypatch.setattr(Fraction, "__truediv__", lambda x, y: taken.append(1) or divide(x, y))
    _, slopes = slopes_by_class(network, problem)
    assert (slopes > 0).sum() == len(problem.edges) + 12
    assert not taken
