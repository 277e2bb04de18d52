from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from relparallel.metrics import ResilienceCurve, resilience_curve
from relparallel.topology import SharedRisk, bcube, dcell, fat_tree, leaf_spine, torus

SHARES = [0.0, 0.1, 0.3, 0.6, 1.0]


def curve(t, failing, shares=SHARES, samples=8, seed=1):
    return resilience_curve(t, failing, shares, samples=samples, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("failing", ["links", "nodes", "switches", "hosts", "degree", "tier", "racks"])
@pytest.mark.parametrize("t", [fat_tree(4), bcube(3, 1), dcell(3, 1), leaf_spine(4, 2, 3)], ids=repr)
def test_more_failures_leave_less(t, failing):
    found = curve(t, failing)
    for shares in (found.pairs, found.accessible):
        assert np.all(shares[:, 0] == 1)
        assert np.all(np.diff(shares, axis=1) <= 1e-12)
    assert found.failed.tolist() == [round(s * found.parts) for s in SHARES]
    assert np.all(found.accessible >= found.pairs - 1e-12)


def test_hosts_that_fail_take_their_pairs_along():
    found = curve(fat_tree(4), "hosts")
    left = 16 - found.failed
    assert found.parts == 16
    assert found.pairs == pytest.approx(np.tile(left * (left - 1) / 240, (8, 1)), rel=1e-12)
    assert found.accessible == pytest.approx(np.tile(left / 16, (8, 1)), rel=1e-12)


def test_racks_of_a_clos_network_are_leaves_with_their_hosts():
    found = curve(leaf_spine(5, 2, 4), "racks", [0.0, 0.2, 0.4])
    assert found.parts == 5
    assert found.pairs[0] == pytest.approx([1, 16 * 15 / 380, 12 * 11 / 380], rel=1e-12)


def test_racks_of_a_bcube_are_its_lowest_switches_and_of_a_torus_its_pods():
    assert curve(bcube(4, 1), "racks").parts == 4
    assert curve(torus((5, 3)), "racks").parts == 5


def test_the_core_is_the_tier_that_a_fat_tree_cannot_lose():
    found = curve(fat_tree(8), "tier", [0, 16 / 80, 48 / 80, 1])
    assert found.pairs[0] == pytest.approx([1, 15 / 127, 3 / 127, 0], rel=1e-12)  # pods, then edge switches
    assert np.ptp(found.pairs, axis=0).max() == 0


def test_the_largest_switches_fail_first():
    graph = nx.star_graph(6)
    nx.set_node_attributes(graph, {0: False}, "endpoint")
    graph.add_edge(1, "s")
    graph.nodes["s"]["endpoint"] = False
    assert curve(graph, "degree", [0.5]).pairs.max() == 0
    assert curve(graph, "degree", [0.5]).parts == 2


def test_parallel_cables_fail_one_by_one():
    t = replace(torus((2,)), multiplicity=np.array([4]))
    found = curve(t, "links", [0.0, 0.75, 1.0])
    assert found.parts == 4
    assert found.pairs[0].tolist() == [1, 1, 0]


def test_power_domains_are_the_groups_of_shared_risk():
    groups = tuple(SharedRisk(name=f"feed {i}", nodes=tuple(range(4 * i, 4 * i + 4))) for i in range(4))
    t = replace(torus((4, 4)), shared_risk=groups)
    found = curve(t, "shared_risk", [0.25, 0.5])
    assert found.parts == 4
    assert found.accessible[:, 0] == pytest.approx(0.75)
    assert set(np.round(found.accessible[:, 1], 3)) <= {0.25, 0.5}  # a ring of two rows, or two rows apart
    with pytest.raises(ValueError, match="failing must name parts that the network has"):
        curve(torus((4, 4)), "shared_risk")


def test_the_mean_of_links_is_that_of_chance():
    """One cable of a tree of three lost: the pairs that it separates, averaged over the cables."""
    found = curve(nx.path_graph(3), "links", [0.5], samples=1000)
    assert found.to_frame()["pairs"].iloc[0] == pytest.approx(1 / 3, rel=1e-12)
    found = curve(nx.path_graph(4), "links", [1 / 3], samples=1000)
    row = found.to_frame().iloc[0]
    truth = np.mean([3 / 6, 2 / 6, 3 / 6])
    assert abs(row["pairs"] - truth) < 4 * row["pairs error"]
    assert row["pairs error"] == pytest.approx(np.std([3 / 6, 2 / 6, 3 / 6]) / 1000**0.5, rel=0.1)


def test_a_table_for_the_reader():
    found = curve(fat_tree(4), "links")
    assert found.to_frame().index.name == "share of links"
    assert "accessible" in found._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topology": nx.empty_graph(1)}, "topology must have"),
        ({"failing": "fans"}, "failing must be one of"),
        ({"topology": torus((3,)), "failing": "switches"}, "failing must name parts"),
        ({"shares": [1.2]}, "shares must be"),
        ({"shares": []}, "shares must be"),
        ({"samples": 1}, "samples must be"),
        ({"rng": None}, "rng must be"),
    ],
)
def test_bad_arguments_are_named(arguments, error):
    good = {
        "topology": fat_tree(4),
        "failing": "links",
        "shares": [0.1],
        "samples": 2,
        "rng": np.random.default_rng(0),
    }
    with pytest.raises((TypeError, ValueError), match=error):
        resilience_curve(**good | arguments)


@pytest.mark.parametrize(
    ("field", "value"), [("pairs", [0.5]), ("accessible", [[2.0]]), ("parts", 0), ("failed", np.array([-1]))]
)
def test_bad_curves_are_named(field, value):
    good = {"failing": "links", "parts": 3, "failed": np.array([1]), "pairs": [[1.0]], "accessible": [[1.0]]}
    with pytest.raises((TypeError, ValueError), match=f"{field} must"):
        ResilienceCurve(**good | {field: value})
