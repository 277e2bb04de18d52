from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.topology import bcube, dcell, describe, ficonn, mdcube
from relparallel.topology.parts import LINK_CAPACITY
from relparallel.topology.routing import disjoint_paths


def digits(server, n, k):
    return [server // n**level % n for level in range(k + 1)]


@pytest.mark.parametrize(("n", "k"), [(3, 0), (4, 1), (3, 2), (2, 3)])
def test_bcube_servers_share_a_level_l_switch_exactly_when_they_differ_in_digit_l_only(n, k):
    t = bcube(n, k)
    graph = t.to_networkx()
    for a, b in combinations(t.hosts.tolist(), 2):
        differing = [
            level
            for level, (x, y) in enumerate(zip(digits(a, n, k), digits(b, n, k), strict=True))
            if x != y
        ]
        shared = [graph.nodes[v]["tier"] - 1 for v in set(graph[a]) & set(graph[b])]
        assert shared == (differing if len(differing) == 1 else [])


def test_bcube_pods_are_bcubes_one_level_lower():
    t = bcube(n=3, k=2)
    for pod in range(3):
        inside = t.to_networkx().subgraph(np.flatnonzero(t.pod == pod).tolist())
        assert nx.is_isomorphic(inside, bcube(n=3, k=1).to_networkx())


@pytest.mark.parametrize(("n", "k"), [(3, 1), (2, 2), (3, 2)])
def test_each_two_copies_of_a_dcell_are_joined_by_the_cable_of_the_rule(n, k):
    t = dcell(n, k)
    copies = int(t.pod.max()) + 1
    size = t.num_hosts // copies
    assert copies == size + 1
    between = {
        (min(p, q), max(p, q)): (u, v)
        for u, v in t.edges.tolist()
        if (p := t.pod[u]) != (q := t.pod[v])
    }
    assert len(between) == copies * (copies - 1) // 2
    assert all(cable == (i * size + j - 1, j * size + i) for (i, j), cable in between.items())


@pytest.mark.parametrize(("n", "k"), [(4, 1), (3, 2)])
def test_a_copy_in_a_dcell_is_a_dcell_one_level_lower(n, k):
    t = dcell(n, k)
    inside = t.to_networkx().subgraph(np.flatnonzero(t.pod == 2).tolist())
    assert nx.is_isomorphic(inside, dcell(n, k - 1).to_networkx())


@pytest.mark.parametrize(("n", "k"), [(4, 1), (8, 1), (4, 2), (2, 3)])
def test_each_two_copies_of_a_ficonn_are_joined_by_the_cable_of_the_rule(n, k):
    t = ficonn(n, k)
    copies = int(t.pod.max()) + 1
    size = t.num_hosts // copies
    assert copies == size // 2**k + 1
    between = {(t.pod[u], t.pod[v]): (u, v) for u, v in t.edges.tolist() if t.pod[u] != t.pod[v]}
    assert len(between) == copies * (copies - 1) // 2
    half = 2 ** (k - 1)
    for (i, j), cable in between.items():
        assert cable == (
            i * size + (j - 1) * 2 * half + half - 1,
            j * size + i * 2 * half + half - 1,
        )


@pytest.mark.parametrize(("n", "k"), [(4, 1), (4, 2), (2, 3)])
def test_a_copy_in_a_ficonn_is_a_ficonn_one_level_lower(n, k):
    t = ficonn(n, k)
    inside = t.to_networkx().subgraph(np.flatnonzero(t.pod == 1).tolist())
    assert nx.is_isomorphic(inside, ficonn(n, k - 1).to_networkx())


MDCUBES = [
    (4, 1, (5, 5)),
    (4, 1, (9,)),
    (2, 1, (3, 2)),
    (2, 2, (4, 1, 3)),
    (3, 0, (2,)),
    (4, 1, (3, 3)),
]


@pytest.mark.parametrize(("n", "k", "dims"), MDCUBES)
def test_containers_of_an_mdcube_that_differ_in_one_dimension_share_one_cable(n, k, dims):
    t = mdcube(n, k, dims)
    position = np.column_stack(np.unravel_index(t.pod, dims))
    between = t.edges[t.pod[t.edges[:, 0]] != t.pod[t.edges[:, 1]]]
    pairs = {tuple(sorted(pair)) for pair in t.pod[between].tolist()}
    differing = (position[between[:, 0]] != position[between[:, 1]]).sum(axis=1)
    assert set(differing.tolist()) == {1}
    containers = int(np.prod(dims))
    assert len(pairs) == len(between) == containers * (sum(dims) - len(dims)) // 2
    assert not t.endpoint[between].any()
    assert np.unique(between).size == between.size
    assert set(t.capacity[t.endpoint[t.edges[:, 0]]]) == {LINK_CAPACITY / 10}


@pytest.mark.parametrize(("n", "k", "dims"), MDCUBES)
def test_every_container_of_an_mdcube_is_a_bcube(n, k, dims):
    t, cube = mdcube(n, k, dims), bcube(n, k)
    for pod in range(int(np.prod(dims))):
        nodes = np.flatnonzero(t.pod == pod)
        number = {v: i for i, v in enumerate(nodes.tolist())}
        inside = t.edges[np.isin(t.edges, nodes).all(axis=1)].tolist()
        assert sorted((number[u], number[v]) for u, v in inside) == sorted(
            map(tuple, cube.edges.tolist())
        )
        assert np.array_equal(t.tier[nodes], cube.tier)


def test_a_dimension_of_an_mdcube_takes_the_next_switches():
    """Switches of the highest level carry the second dimension of a 2-D MDCube of full size."""
    t = mdcube(n=4, k=1, dims=(5, 5))
    between = t.edges[t.pod[t.edges[:, 0]] != t.pod[t.edges[:, 1]]]
    column = t.pod[between] % 5
    assert set(t.tier[between[column[:, 0] == column[:, 1]]].ravel()) == {1}
    assert set(t.tier[between[column[:, 0] != column[:, 1]]].ravel()) == {2}


@pytest.mark.parametrize(
    ("n", "k", "dims", "paths"), [(4, 1, (5, 5), 2), (4, 1, (2,), 1), (2, 2, (3, 2), 3)]
)
def test_disjoint_paths_between_containers_of_an_mdcube(n, k, dims, paths):
    t = mdcube(n, k, dims)
    assert min(disjoint_paths(t, 0, other) for other in t.hosts[1:].tolist()) == paths
    assert describe("mdcube", n=n, k=k, dims=dims).host_connectivity == paths


@given(st.sampled_from([bcube, dcell]), st.integers(2, 4), st.integers(0, 2))
def test_servers_meet_no_server_in_bcube_and_switches_meet_servers_only(design, n, k):
    t = design(n, k)
    ends = t.endpoint[t.edges]
    assert ends.any(axis=1).all()
    direct = int(ends.all(axis=1).sum())
    assert direct == (0 if design is bcube else t.num_hosts * k // 2)
