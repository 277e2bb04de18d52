from itertools import combinations

import numpy as np

from chapters.s23.planes import two_planes
from relparallel.metrics import edge_connectivity, survival
from relparallel.topology import fat_tree, leaf_spine


def joined(t, *switches):
    up = np.ones(t.num_nodes + len(t.edges), dtype=bool)
    up[list(switches)] = False
    return survival(t, up).pairs


def test_two_leaves_part_hosts_unless_they_stand_in_one_plane():
    """Hosts on one leaf alone are lost with both; else those with either port left are parted."""
    t = two_planes(leaf_spine(leaves=4, spines=2, hosts_per_leaf=8))
    first, second = range(32, 36), range(36, 40)  # leaves of either plane
    all_pairs = 32 * 31 / 2
    for a in (*first, *second):
        assert joined(t, a) == joined(t, a + 8 if a < 36 else 43) == 1  # a leaf, a spine
    for a, b in (*combinations(first, 2), *combinations(second, 2)):
        assert joined(t, a, b) == 1
    for a in first:
        for b in second:
            parted = 8 * 24 + 8 * 7 / 2 if b == a + 4 else 8 * 8
            assert np.isclose(joined(t, a, b), 1 - parted / all_pairs)


def test_the_planes_meet_in_the_hosts_alone():
    one = fat_tree(k=4)
    t = two_planes(one)
    assert (t.num_hosts, t.num_links) == (one.num_hosts, 2 * one.num_links)
    assert t.degrees[t.hosts].tolist() == [2] * 16
    assert float(edge_connectivity(t, 0, 15)) == 2
    assert not t.transit[t.hosts].any()
