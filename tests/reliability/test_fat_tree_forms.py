import subprocess
import sys
from fractions import Fraction
from functools import cache
from math import comb
from time import process_time

import numpy as np
import pytest
from hypothesis import given, strategies as st

import relparallel as rp
from relparallel.reliability import evaluate, fat_tree_pair, fat_tree_pods_connected
from relparallel.topology import fat_tree

CHANCES = st.floats(0, 1)


def chances(fabric, core=1.0, aggregation=1.0, edge=1.0, core_link=1.0, edge_link=1.0):
    """Arguments of `evaluate` for a fat-tree with these up-probabilities; perfect host cables."""
    upper = fabric.is_kind("core")[fabric.edges].any(axis=1)
    lower = fabric.is_kind("host")[fabric.edges].any(axis=1)
    tiers = {"core": core, "aggregation": aggregation, "edge": edge}
    node_up = np.ones(fabric.num_nodes)
    for kind, up in tiers.items():
        node_up[fabric.is_kind(kind)] = up
    return {
        "link_up": np.where(upper, core_link, np.where(lower, 1.0, edge_link)),
        "node_up": node_up,
    }


def part_of(fabric, pods, core=True):
    """The fabric's switches in some pods, with or without the core."""
    keep = np.isin(fabric.pod, pods) & ~fabric.endpoint | (fabric.is_kind("core") & core)
    return fabric.to_networkx().subgraph(np.flatnonzero(keep).tolist())


def as_attributes(fabric, graph, **ups):
    """Copy of a part of the fabric whose nodes and edges carry their up-probability."""
    graph, given = graph.copy(), chances(fabric, **ups)
    links = dict(zip(map(tuple, fabric.edges.tolist()), given["link_up"].tolist(), strict=True))
    for u, v in graph.edges:
        graph.edges[u, v]["up"] = links[min(u, v), max(u, v)]
    for v in graph:
        graph.nodes[v]["up"] = given["node_up"][v]
    return graph


def gilbert(m, n, q):
    """Probability that the m left vertices of a random K_{m,n} are not connected, in fractions."""

    @cache
    def apart(i, j):
        return split(i, j) if i else Fraction(0)

    def split(m, n, left_only=False):
        return sum(
            comb(m - 1, i - 1) * comb(n, j) * (1 - apart(i, j)) * q ** (i * (n - j) + j * (m - i))
            for i in range(1, m + 1)
            for j in range(n + 1)
            if (i < m if left_only else (i, j) != (m, n))
        )

    return split(m, n, left_only=True)


def test_the_48_ary_fat_tree():
    result = rp.reliability.fat_tree_pods_connected(k=48, core_up=0.99, aggregation_up=0.99)
    assert f"{result.unreliability:.1e}" == "4.8e-47"
    assert (result.reliability, result.method) == (1.0, "closed_form")


def test_the_48_ary_fat_tree_takes_less_than_half_a_second_in_a_fresh_process():
    code = """
from time import process_time
start = process_time()
import relparallel as rp
rp.reliability.fat_tree_pods_connected(k=48, core_up=0.99, aggregation_up=0.99).unreliability
print(process_time() - start)
import sys
assert not {"numba", "networkx", "pandas", "scipy"} & set(sys.modules)
"""
    seconds = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, check=True, text=True
            ).stdout
        )
        for _ in range(2)
    ]
    assert min(seconds) < 0.5


def test_every_form_of_the_48_ary_fat_tree_takes_less_than_a_tenth_of_a_second():
    """CPU time of all of them together; 7 ms on a quiet machine."""
    design, seconds = rp.topology.describe("fat_tree", k=48), []
    for _ in range(3):
        start = process_time()
        fat_tree_pods_connected(48, 0.99, 0.99)
        fat_tree_pair(48, 0.999, 0.999, 0.999, 0.9999, 0.9999, 0.99)
        rp.reliability.accessible_servers(design, 0.99, 0.999, 0.9999)
        seconds.append(process_time() - start)
    assert min(seconds) < 0.1


@pytest.mark.parametrize("k", [2, 4, 6])
@pytest.mark.parametrize(
    ("core", "aggregation"), [(0.9, 0.85), (0.3, 0.999), (1.0, 0.5), (0.99, 1.0)]
)
def test_pods_agree_with_the_exact_programme(k, core, aggregation):
    fabric = fat_tree(k)
    one_per_pod = np.flatnonzero(fabric.is_kind("edge"))[:: k // 2]
    exact = evaluate(fabric, one_per_pod, **chances(fabric, core, aggregation))
    closed = fat_tree_pods_connected(k, core, aggregation)
    assert closed.unreliability == pytest.approx(exact.unreliability, rel=1e-12)
    assert closed.reliability == pytest.approx(exact.reliability, rel=1e-12)


@pytest.mark.parametrize("aggregation", [1e-3, 0.3, 0.75, 0.999])
@pytest.mark.parametrize("core", [0.2, 0.99])
def test_pods_agree_with_gilberts_recursion_in_fractions(aggregation, core):
    k, h, a, c = 8, 4, Fraction(aggregation), Fraction(core)
    alive = 1 - (1 - c) ** h
    exact = sum(
        comb(h, j) * alive**j * (1 - alive) ** (h - j) * gilbert(k, j, 1 - a) for j in range(h + 1)
    )
    closed = fat_tree_pods_connected(k, core, aggregation)
    assert closed.unreliability == pytest.approx(float(exact), rel=1e-13)
    assert closed.reliability == pytest.approx(float(1 - exact), rel=1e-13)


def test_one_perfect_group_is_enough_and_no_core_is_never():
    assert fat_tree_pods_connected(16, 1.0, 1.0).unreliability == 0
    assert fat_tree_pods_connected(16, 0.0, 1.0).reliability == 0
    assert fat_tree_pods_connected(16, 1.0, 0.0).reliability == 0
    # a path of three
    assert fat_tree_pods_connected(2, 0.5, 0.5).reliability == pytest.approx(0.125)
    rare = fat_tree_pods_connected(16, 1.0, 1 - 2**-40)
    # one pod loses all groups
    assert rare.unreliability == pytest.approx(16 * 2.0 ** (-40 * 8), rel=1e-9)


@given(CHANCES, CHANCES)
def test_probabilities_add_up_at_every_size(core, aggregation):
    for k in (2, 6, 20):
        result = fat_tree_pods_connected(k, core, aggregation)
        assert result.reliability + result.unreliability == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("k", [4, 6])
@pytest.mark.parametrize("ups", [(0.95, 0.9, 0.8, 0.97, 0.93), (0.5, 0.6, 1.0, 0.7, 0.8)])
def test_an_edge_pair_has_only_its_own_two_pods(k, ups):
    fabric = fat_tree(k)
    core, aggregation, edge, core_link, edge_link = ups
    first = int(np.flatnonzero(fabric.is_kind("edge"))[0])
    kinds = {
        "core": core,
        "aggregation": aggregation,
        "core_link": core_link,
        "edge_link": edge_link,
    }
    graph = as_attributes(fabric, part_of(fabric, [0, 1]), **kinds)
    others = [v for v in graph if fabric.is_kind("edge")[v] and v not in (first, first + k // 2)]
    graph.remove_nodes_from(others)  # a path through another edge switch would go up again
    for v in (first, first + k // 2):
        graph.nodes[v]["up"] = edge
    pair = fat_tree_pair(k, core, aggregation, edge, core_link, edge_link)
    # In two pods every path that visits no other edge switch of its pods crosses between groups
    # nowhere.
    exact = evaluate(graph, (first, first + k // 2), "up", "up")
    assert pair.unreliability == pytest.approx(exact.unreliability, rel=1e-12)
    assert pair.reliability == pytest.approx(exact.reliability, rel=1e-12)


@pytest.mark.parametrize("k", [4, 6])
def test_an_edge_pair_of_one_pod_turns_at_its_aggregation(k):
    fabric = fat_tree(k)
    graph = as_attributes(fabric, part_of(fabric, [0], core=False), aggregation=0.9, edge_link=0.8)
    first, second, *others = (v for v in graph if fabric.is_kind("edge")[v])
    graph.remove_nodes_from(others)
    exact = evaluate(graph, (first, second), "up", "up")
    pair = fat_tree_pair(k, 0.5, 0.9, edge_link_up=0.8, core_link_up=0.5, turn="aggregation")
    assert pair.unreliability == pytest.approx(exact.unreliability, rel=1e-12)


def test_hosts_and_their_edge_switches_stand_in_series():
    one = fat_tree_pair(8, 0.5, 0.5, 0.9, 0.5, 0.5, 0.8, turn="edge")
    assert one.reliability == pytest.approx(0.9 * 0.8**2, rel=1e-15)
    for turn in ("core", "aggregation"):
        bare = fat_tree_pair(8, 0.9, 0.8, 1.0, 0.7, 0.9, turn=turn)
        hosts = fat_tree_pair(8, 0.9, 0.8, 0.95, 0.7, 0.9, 0.85, turn=turn)
        assert hosts.reliability == pytest.approx(bare.reliability * (0.95 * 0.85) ** 2, rel=1e-14)


def test_a_pair_of_the_32_ary_fat_tree_in_fractions():
    c, a, link = Fraction(0.999), Fraction(0.999), Fraction(0.9999)
    exact = (1 - (a * link) ** 2 * (1 - (1 - c * link**2) ** 16)) ** 16
    pair = fat_tree_pair(
        k=32, core_up=0.999, aggregation_up=0.999, core_link_up=0.9999, edge_link_up=0.9999
    )
    assert pair.unreliability == pytest.approx(float(exact), rel=1e-13)
    assert pair.unreliability == pytest.approx(2.98063411705136e-43, rel=2e-12)


def test_valley_free_paths_are_fewer_than_paths():
    fabric = fat_tree(4)
    first = int(np.flatnonzero(fabric.is_kind("edge"))[0])
    ups = {"core": 0.95, "aggregation": 0.9, "core_link": 0.97, "edge_link": 0.93}
    some_path = evaluate(fabric, (first, first + 2), **chances(fabric, **ups))
    climbing = fat_tree_pair(4, 0.95, 0.9, core_link_up=0.97, edge_link_up=0.93)
    assert climbing.unreliability == pytest.approx(0.0944481291807887, rel=1e-12)
    assert some_path.unreliability == pytest.approx(0.05541209938104521, rel=1e-12)


@pytest.mark.parametrize("function", [fat_tree_pods_connected, fat_tree_pair])
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"k": 5}, "k"),
        ({"k": 0}, "k"),
        ({"k": -4}, "k"),
        ({"k": 258}, "k"),
        ({"k": 4.0}, "k"),
        ({"k": True}, "k"),
        ({"k": None}, "k"),
        ({"k": 4, "core_up": 1.1}, "core_up"),
        ({"k": 4, "core_up": float("nan")}, "core_up"),
        ({"k": 4, "aggregation_up": "0.9"}, "aggregation_up"),
        ({"k": 4, "aggregation_up": None}, "aggregation_up"),
        ({"k": 4, "aggregation_up": [0.9, 0.8]}, "aggregation_up"),
    ],
    ids=repr,
)
def test_bad_input_is_refused_by_name(function, arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"{name} must"):
        function(**arguments)


@pytest.mark.parametrize("name", ["edge_up", "core_link_up", "edge_link_up", "host_up", "turn"])
def test_bad_input_of_the_pair_is_refused_by_name(name):
    with pytest.raises((ValueError, TypeError), match=f"{name} must"):
        fat_tree_pair(4, **{name: -1})
