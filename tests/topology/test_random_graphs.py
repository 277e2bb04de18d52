from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.metrics import hop_statistics
from relparallel.topology import check, jellyfish, xpander


def seeded(seed=1):
    return np.random.default_rng(seed)


@settings(max_examples=40)
@given(st.integers(3, 9), st.integers(0, 12), st.integers(0, 3), st.integers(0, 2**32))
def test_jellyfish_is_simple_regular_and_connected(r, more, p, seed):
    n = r + 1 + more
    n += n * r % 2
    t = jellyfish(n, r + p, r, seeded(seed))
    check(t)
    switches = t.degrees[-n:]
    assert (switches == r + p).all()
    assert (t.multiplicity == 1).all()
    assert nx.is_connected(t.to_networkx())
    assert t.num_hosts == (n * p if p else n)


def test_the_state_of_the_generator_decides_the_graph():
    assert jellyfish(40, 8, 5, seeded()) == jellyfish(40, 8, 5, seeded())
    assert jellyfish(40, 8, 5, seeded()) != jellyfish(40, 8, 5, seeded(2))
    assert xpander(4, 9, 1, seeded()) == xpander(4, 9, 1, seeded())
    assert xpander(4, 9, 1, seeded()) != xpander(4, 9, 1, seeded(2))


def test_with_all_ports_to_others_jellyfish_is_complete():
    assert nx.is_isomorphic(jellyfish(6, 5, 5, seeded()).to_networkx(), nx.complete_graph(6))


def test_every_regular_graph_may_be_drawn():
    """All 70 cubic graphs on 6 labelled nodes, of which 10 are bipartite."""
    rng = seeded()
    drawn = {jellyfish(6, 3, 3, rng).edges.tobytes() for _ in range(1000)}
    assert len(drawn) == 70


def test_jellyfish_is_nearly_as_short_as_a_graph_can_be():
    n, r = 1000, 12
    hops = hop_statistics(jellyfish(n, r, r, seeded()))
    shortest = (r + 2 * r * (r - 1) + 3 * (n - 1 - r - r * (r - 1))) / (
        n - 1
    )  # of any such graph (Cerf 1974)
    assert shortest < hops.mean < 1.1 * shortest


@pytest.mark.parametrize(("d", "k", "p"), [(3, 1, 0), (3, 5, 2), (6, 4, 1), (8, 7, 0)])
def test_xpander_is_a_lift_of_the_complete_graph(d, k, p):
    t = xpander(d, k, p, seeded())
    check(t)
    first = t.num_nodes - (d + 1) * k
    both = (t.edges >= first).all(axis=1)
    pods = t.pod[t.edges[both]]
    for u, v in combinations(range(d + 1), 2):
        ends = t.edges[both][(pods == (u, v)).all(axis=1)]
        assert [len(set(side)) for side in ends.T.tolist()] == [k, k]  # a perfect matching
    assert np.count_nonzero(both) == d * (d + 1) * k // 2


@pytest.mark.parametrize("d", [4, 8])
def test_xpander_is_nearly_ramanujan(d):
    """All eigenvalues but the complete graph's -1 and d are near 2 sqrt(d - 1) or smaller."""
    adjacency = nx.to_numpy_array(xpander(d, 100, 0, seeded()).to_networkx())
    values = np.sort(np.abs(np.linalg.eigvalsh(adjacency)))
    assert values[-1] == pytest.approx(d)
    assert values[-2] < 2 * np.sqrt(d - 1) * 1.05
