"""Smallest cuts by enumeration, and the asymptotic life of a network against the exact one."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

import relparallel as rp
from relparallel.reliability import evaluate, mean_time_to_isolation, smallest_cuts
from relparallel.topology import describe

SMALL = [
    ("fat_tree", {"k": 4}),
    ("leaf_spine", {"leaves": 3, "spines": 2, "hosts_per_leaf": 2}),
    ("bcube", {"n": 3, "k": 0}),
    ("bcube", {"n": 3, "k": 1}),
    ("bcube", {"n": 4, "k": 1}),
    ("dcell", {"n": 3, "k": 0}),
    ("dcell", {"n": 3, "k": 1}),
    ("dcell", {"n": 4, "k": 1}),
]


@pytest.mark.parametrize("parts", ["links", "switches"])
@pytest.mark.parametrize(("design", "sizes"), SMALL, ids=repr)
def test_smallest_cuts_by_enumeration(design, sizes, parts):
    fabric = getattr(rp.topology, design)(**sizes)
    graph, hosts = fabric.to_networkx(), {fabric.labels[v] for v in fabric.hosts}
    loses = nx.Graph.remove_edges_from if parts == "links" else nx.Graph.remove_nodes_from
    items = [*graph.edges] if parts == "links" else [fabric.labels[v] for v in fabric.switches]

    def cuts(count):
        found = 0
        for lost in combinations(items, count):
            rest = graph.copy()
            loses(rest, lost)
            found += not hosts <= nx.node_connected_component(rest, min(hosts))
        return found

    size, number = smallest_cuts(describe(design, **sizes), parts)
    assert [cuts(count) for count in range(1, size + 1)] == [0] * (size - 1) + [number]


@pytest.fixture(scope="module")
def exact_lives():
    """Mean of the exact survival function of a BCube; parts live an exponential time with mean one."""
    fabric, times = rp.topology.bcube(4, 1), np.linspace(0.0, 3.0, 121)
    up = np.exp(-times)
    links = [evaluate(fabric, "all", p).reliability for p in up]
    switches = [evaluate(fabric, "all", 1.0, np.where(fabric.endpoint, 1.0, p)).reliability for p in up]
    return {"links": np.trapezoid(links, times), "switches": np.trapezoid(switches, times)}


def test_life_of_links_nears_the_exact_one(exact_lives):
    """No two of the smallest cuts share a cable."""
    near = mean_time_to_isolation(1.0, *smallest_cuts(describe("bcube", n=4, k=1), "links"))
    assert near == pytest.approx(exact_lives["links"], rel=0.12)


def test_cuts_that_share_switches_come_later(exact_lives):
    """The first row and the first column are both down after 1/4 + 1/4 - 1/8."""
    near = mean_time_to_isolation(1.0, *smallest_cuts(describe("bcube", n=4, k=1), "switches"))
    assert near < 0.7 * exact_lives["switches"]
    assert exact_lives["switches"] == pytest.approx(3 / 8, rel=0.03)


def test_life_scales_as_its_parts_do():
    assert mean_time_to_isolation(3.0, 1, 6) == pytest.approx(0.5)
    assert mean_time_to_isolation(1.0, 2, 4) == pytest.approx(np.sqrt(np.pi) / 4)


@pytest.mark.parametrize(
    "form", [describe("bcube", n=2, k=1), describe("dcell", n=3, k=2), describe("fat_tree", k=2)]
)
def test_designs_without_a_form_are_refused_by_name(form):
    with pytest.raises(ValueError, match="form must"):
        smallest_cuts(form, "links")
