from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from relparallel.metrics import hop_statistics
from relparallel.topology import dragonfly, dragonfly_plus, hyperx
from relparallel.topology.symmetry import is_automorphism


def fabric(t):
    """Cables of switches, numbered from 0."""
    both = (t.edges >= t.num_hosts).all(axis=1)
    return {frozenset(edge) for edge in (t.edges[both] - t.num_hosts).tolist()}


@pytest.mark.parametrize(("a", "h"), [(1, 1), (1, 3), (2, 1), (2, 2), (4, 2), (3, 3)])
def test_dragonfly_is_wired_by_its_rule(a, h):
    """Group x meets group y on global port y if y < x, else y - 1; h ports to a switch."""
    groups = a * h + 1
    wanted = {
        frozenset((x * a + i, x * a + j))
        for x in range(groups)
        for i, j in combinations(range(a), 2)
    }
    for x, y in combinations(range(groups), 2):
        port = {(u, v): v if v < u else v - 1 for u, v in ((x, y), (y, x))}
        wanted.add(frozenset((x * a + port[x, y] // h, y * a + port[y, x] // h)))
    assert fabric(dragonfly(1, a, h)) == wanted


@pytest.mark.parametrize("arrangement", ["consecutive", "palmtree"])
@pytest.mark.parametrize(("a", "h"), [(4, 2), (3, 2), (5, 1)])
def test_one_cable_joins_every_two_groups(a, h, arrangement):
    t = dragonfly(1, a, h, arrangement)
    group = t.pod[t.edges]
    between = np.sort(group[group[:, 0] != group[:, 1]], axis=1)
    assert sorted(map(tuple, between.tolist())) == list(combinations(range(a * h + 1), 2))


def shift(t, a, groups):
    """Move every group to the place of the next."""
    node = np.arange(t.num_nodes)
    servers = t.num_hosts // groups
    own = (node + servers) % t.num_hosts
    switch = t.num_hosts + (node - t.num_hosts + a) % (a * groups)
    return np.where(node < t.num_hosts, own, switch)


def test_all_groups_of_a_palmtree_are_alike_those_of_a_consecutive_dragonfly_are_not():
    alike, unlike = dragonfly(2, 4, 2, "palmtree"), dragonfly(2, 4, 2)
    assert is_automorphism(alike, shift(alike, 4, 9))
    assert not is_automorphism(unlike, shift(unlike, 4, 9))
    assert hop_statistics(alike).mean < hop_statistics(unlike).mean


def test_only_spines_of_dragonfly_plus_leave_their_group():
    t = dragonfly_plus(3, 4, 2, 2)
    leaf = t.is_kind("leaf")[t.edges].any(axis=1)
    assert (t.pod[t.edges[leaf, 0]] == t.pod[t.edges[leaf, 1]]).all()
    far = np.sort(t.pod[t.edges][~leaf & ~t.endpoint[t.edges].any(axis=1)], axis=1)
    assert sorted(map(tuple, far.tolist())) == list(combinations(range(9), 2))
    group = nx.bipartite.is_bipartite(t.to_networkx().subgraph(np.flatnonzero(t.pod == 0)))
    assert group
    assert not t.transit[t.hosts].any()


def test_switches_of_hyperx_are_as_far_apart_as_they_have_different_coordinates():
    dims = (3, 2, 4)
    graph = hyperx(dims, t=0).to_networkx()
    points = list(product(*map(range, dims)))
    for u, lengths in nx.all_pairs_shortest_path_length(graph):
        for v, length in lengths.items():
            assert length == sum(a != b for a, b in zip(points[u], points[v], strict=True))


def test_special_cases_of_hyperx():
    assert nx.is_isomorphic(hyperx((2,) * 4, t=0).to_networkx(), nx.hypercube_graph(4))
    assert nx.is_isomorphic(hyperx((7,), t=0).to_networkx(), nx.complete_graph(7))
    twice = hyperx((3, 3), t=1, k=2)
    assert set(twice.multiplicity[~twice.endpoint[twice.edges].any(axis=1)].tolist()) == {2}
