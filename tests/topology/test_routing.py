from collections import Counter
from itertools import combinations, pairwise, permutations

import networkx as nx
import numpy as np
import pytest

from relparallel.topology import Topology, aspen, bcube, dcell, fat_tree, ficonn, leaf_spine, vl2
from relparallel.topology.routing import (
    bcube_paths,
    dcell_route,
    ecmp_paths,
    ficonn_route,
    paths,
    up_down_paths,
    vl2_route,
)


def is_walk(t, path):
    """Every step follows a cable, and only nodes that forward lie between the ends."""
    inner = path[1:-1]
    return all(joined(t, u, v) for u, v in pairwise(path)) and all(t.transit[v] for v in inner)


def joined(t, u, v):
    return v in t.indices[t.indptr[u] : t.indptr[u + 1]]


def server_hops(t, path):
    return sum(bool(t.endpoint[v]) for v in path) - 1


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (4, 1), (2, 3), (5, 0)])
def test_bcube_source_routing_gives_k_plus_one_parallel_paths_between_any_two_servers(n, k):
    t = bcube(n, k)
    for s, d in permutations(t.hosts.tolist(), 2):
        paths = bcube_paths(t, s, d)
        assert len(paths) == k + 1
        assert all(is_walk(t, path) and path[0] == s and path[-1] == d for path in paths)
        inner = [v for path in paths for v in path[1:-1]]
        assert len(inner) == len(set(inner))
        differing = sum(s // n**level % n != d // n**level % n for level in range(k + 1))
        lengths = sorted(server_hops(t, path) for path in paths)
        assert lengths == [differing] * differing + [differing + 2] * (k + 1 - differing)


def test_the_first_hop_of_bcube_path_i_is_at_level_k_minus_i():
    t = bcube(n=4, k=2)
    for s, d in [(0, 63), (5, 6), (1, 17)]:
        assert [t.tier[path[1]] - 1 for path in bcube_paths(t, s, d)] == [2, 1, 0]


def test_parallel_cables_are_paths_of_their_own():
    # three cables to each pod below, by Walraed-Sullivan
    t = aspen(levels=4, k=6, fault_tolerance=(0, 0, 2))
    top, below = t.edges[t.multiplicity > 1][0].tolist()
    assert len(ecmp_paths(t, top, below)) == 3
    assert len(ecmp_paths(nx.MultiGraph([(0, 1), (0, 1), (1, 2), (1, 2), (1, 2)]), 0, 2)) == 6
    assert len(up_down_paths(t, int(t.hosts[0]), int(t.hosts[-1]))) == 9 * 3 * 3


@pytest.mark.parametrize(("n", "k"), [(4, 0), (4, 1), (3, 2), (2, 2)])
def test_dcell_routes_are_walks_of_at_most_the_bound(n, k):
    t = dcell(n, k)
    hops = []
    for s, d in permutations(t.hosts.tolist(), 2):
        path = dcell_route(t, s, d)
        assert is_walk(t, path)
        assert (path[0], path[-1], len(set(path))) == (s, d, len(path))
        hops.append(server_hops(t, path))
    assert max(hops) <= 2 ** (k + 1) - 1


@pytest.mark.parametrize(("n", "k"), [(4, 0), (8, 1), (4, 2), (2, 3)])
def test_ficonn_routes_are_walks_of_at_most_the_bound(n, k):
    t = ficonn(n, k)
    hops = []
    for s, d in permutations(t.hosts.tolist(), 2):
        path = ficonn_route(t, s, d)
        assert is_walk(t, path)
        assert (path[0], path[-1], len(set(path))) == (s, d, len(path))
        hops.append(server_hops(t, path))
    assert max(hops) == 2 ** (k + 1) - 1


@pytest.mark.parametrize(
    ("t", "route"),
    [(dcell(4, 2), dcell_route), (ficonn(8, 2), ficonn_route)],
    ids=["DCell", "FiConn"],
)
def test_routes_back_run_over_the_same_nodes(t, route):
    last = t.num_hosts - 1
    for s, d in [(0, last), (3, 41), (last // 2, 7)]:
        assert route(t, s, d) == route(t, d, s)[::-1]


def test_the_copies_of_a_dcell_are_joined_over_their_one_cable():
    t = dcell(n=4, k=2)
    copy = t.pod
    for s, d in [(0, 419), (25, 300), (80, 21)]:
        path = dcell_route(t, s, d)
        crossings = [(u, v) for u, v in pairwise(path) if copy[u] != copy[v]]
        assert [(copy[u], copy[v]) for u, v in crossings] == [(copy[s], copy[d])]


def test_valiant_routes_bounce_off_every_intermediate_switch_alike():
    t, rng = vl2(d_a=8, d_i=6), np.random.default_rng(3)
    paths = [vl2_route(t, 0, 239, rng=rng) for _ in range(4000)]
    assert all(is_walk(t, path) and len(path) == 7 for path in set(paths))
    tops = Counter(path[3] for path in paths)
    assert set(tops) == set(np.flatnonzero(t.is_kind("intermediate")).tolist())
    assert all(abs(count - 1000) < 5 * (4000 * 3 / 16) ** 0.5 for count in tops.values())
    assert len(set(paths)) == 2 * 4 * 2
    assert set(paths) == set(ecmp_paths(t, 0, 239))


def test_traffic_of_a_rack_stays_and_that_of_a_pod_bounces():
    t, rng = vl2(d_a=4, d_i=4), np.random.default_rng(0)
    assert vl2_route(t, 0, 19, rng=rng) == (0, 80, 19)
    within_pod = vl2_route(t, 0, 20, rng=rng)
    assert t.pod[0] == t.pod[20]
    assert t.kinds[t.node_kind[within_pod[3]]] == "intermediate"
    assert is_walk(t, within_pod)


@pytest.mark.parametrize(
    "t", [fat_tree(4), bcube(3, 1), leaf_spine(3, 2, 2), dcell(2, 1)], ids=repr
)
def test_ecmp_paths_are_the_shortest_paths(t):
    graph = t.to_networkx()
    for s, d in combinations(t.hosts.tolist(), 2):
        assert set(ecmp_paths(t, s, d)) == {
            tuple(path) for path in nx.all_shortest_paths(graph, s, d)
        }


def test_hosts_that_do_not_forward_lie_on_no_ecmp_path():
    """A host with cables to two leaves is no bridge between them."""
    cables = [(0, 3), (1, 3), (1, 4), (2, 4)]
    t = Topology.of(
        edges=cables,
        node_kind={"host": 3, "leaf": 2},
        transit=np.ones(5) == [0, 0, 0, 1, 1],
        meta=vl2(2, 2).meta,
    )
    assert ecmp_paths(t, 0, 2) == ()
    assert ecmp_paths(t, 0, 1) == ((0, 3, 1),)


@pytest.mark.parametrize("k", [4, 6, 8])
def test_up_down_paths_of_a_fat_tree(k):
    t, half = fat_tree(k), k // 2
    last = t.num_hosts - 1
    between = up_down_paths(t, 0, last)
    assert set(between) == set(ecmp_paths(t, 0, last))
    assert len(between) == half**2
    within_pod = up_down_paths(t, 0, half)
    assert [len(path) - 1 for path in within_pod] == [4] * half
    for path in (*between, *within_pod):
        steps = np.diff(t.tier[list(path)])
        assert np.all(np.abs(steps) == 1)
        assert np.all(np.diff(steps) <= 0)


def test_paths_within_one_tier_or_through_a_valley_are_not_up_down():
    t = bcube(n=3, k=1)
    assert up_down_paths(t, 0, 1) == ((0, 9, 1),)
    assert up_down_paths(t, 0, 4) == ()
    assert len(ecmp_paths(t, 0, 4)) == 2


def test_too_many_paths_are_refused(monkeypatch):
    t = bcube(n=2, k=4)  # 120 orders of correcting five digits
    monkeypatch.setattr("relparallel.topology.routing._MOST_PATHS", 119)
    with pytest.raises(ValueError, match="target must be at the end of at most 119 paths"):
        ecmp_paths(t, 0, 31)
    monkeypatch.setattr("relparallel.topology.routing._MOST_PATHS", 120)
    assert len(ecmp_paths(t, 0, 31)) == 120


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: bcube_paths(dcell(4, 1), 0, 1), "topology must be built by bcube"),
        (lambda: dcell_route(bcube(4, 1), 0, 1), "topology must be built by dcell"),
        (lambda: ficonn_route("ficonn", 0, 1), "topology must be Topology"),
        (lambda: bcube_paths(bcube(4, 1), 0, 16), "target must be a server"),
        (
            lambda: vl2_route(vl2(4, 4), 80, 0, rng=np.random.default_rng(0)),
            "source must be a server",
        ),
        (lambda: vl2_route(vl2(4, 4), 1, 0, rng=0), "rng must be"),
        (lambda: ecmp_paths(nx.cycle_graph(4), 0, 0), "target must differ from source"),
        (lambda: up_down_paths(fat_tree(4), 0, 99), "target must be a node"),
    ],
)
def test_bad_arguments_are_named(call, error):
    with pytest.raises((TypeError, ValueError), match=error):
        call()


def test_paths_by_the_name_of_a_routing():
    tree, cube, copies = fat_tree(4), bcube(4, 1), ficonn(4, 1)
    assert paths(tree, 0, 2) == ecmp_paths(tree, 0, 2)
    assert paths(tree, 0, 2, "updown") == up_down_paths(tree, 0, 2)
    assert paths(cube, 0, 5, "design") == bcube_paths(cube, 0, 5)
    assert paths(copies, 1, 9, "design") == (ficonn_route(copies, 1, 9),)
    assert paths(dcell(4, 1), 1, 17, "design") == (dcell_route(dcell(4, 1), 1, 17),)
    with pytest.raises(TypeError, match="rng"):
        paths(vl2(4, 4), 0, 79, "design")
    with pytest.raises(ValueError, match="topology must be built by dcell"):
        paths(tree, 0, 2, "design")
