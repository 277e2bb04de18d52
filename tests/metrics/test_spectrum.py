import networkx as nx
import numpy as np
import pytest

from relparallel.metrics import _bisection_bounds, bisection
from relparallel.metrics._bisection_bounds import modes, second_eigenvalue
from relparallel.topology import (
    Topology,
    bcube,
    dcell,
    dragonfly,
    fat_tree,
    ficonn,
    hyperx,
    jellyfish,
    leaf_spine,
    slim_fly,
    torus,
)


@pytest.mark.parametrize("dims", [(6, 6, 6), (5, 4), (12,)])
def test_the_spectrum_of_a_torus(dims):
    assert modes(torus(dims))[0][1] == pytest.approx(2 - 2 * np.cos(2 * np.pi / max(dims)), rel=1e-9)


def test_the_switches_of_the_hoffman_singleton_graph():
    """Its second eigenvalue is 5, so that p hosts on every switch make it 5/(p + 5)."""
    for p in (1, 4):
        assert modes(slim_fly(q=5, p=p))[0][1] == pytest.approx(5 / (p + 5), rel=1e-9)


def test_eliminating_switches_minimises_over_them():
    t = leaf_spine(3, 2, 4)
    values, vectors = modes(t)
    graph = nx.Graph(t.edges.tolist())
    laplacian = nx.laplacian_matrix(graph, nodelist=range(t.num_nodes)).toarray().astype(float)
    x, s = np.zeros(t.num_nodes), t.switches
    x[t.hosts] = vectors[:, 1]
    x[s] = np.linalg.lstsq(laplacian[np.ix_(s, s)], -laplacian[s] @ x, rcond=None)[0]
    assert x @ laplacian @ x == pytest.approx(values[1], rel=1e-9)
    assert np.abs(laplacian[s] @ x).max() < 1e-9


@pytest.mark.parametrize(
    "t",
    [
        dcell(4, 2), ficonn(n=8, k=2), bcube(4, 3), torus((8, 8, 8)), dragonfly(3, 6, 3), slim_fly(q=5, p=4),
        hyperx((5, 5, 5), 2),
    ],
    ids=repr,
)  # fmt: skip
def test_the_large_method_finds_the_same(t, monkeypatch):
    truth = modes(t)[0][1]
    monkeypatch.setattr(_bisection_bounds, "DENSE", 0)
    found = second_eigenvalue(t)
    assert found <= truth * (1 + 1e-9)
    assert found == pytest.approx(truth, rel=1e-3)


def test_where_no_method_fits_there_is_no_bound(monkeypatch):
    monkeypatch.setattr(_bisection_bounds, "DENSE", 0)
    assert second_eigenvalue(fat_tree(8)) == 0  # some switches have no hosts
    assert second_eigenvalue(torus((5, 5))) == 0  # too small for the method
    assert second_eigenvalue(
        Topology.from_networkx(nx.disjoint_union(nx.cycle_graph(50), nx.cycle_graph(50)), strict=False)
    ) == (pytest.approx(0, abs=1e-3))


def test_a_large_network_without_symmetry_has_a_spectral_bound():
    t = jellyfish(600, 8, 5, rng=np.random.default_rng(1))
    found = bisection(t)
    assert 0.2 * found.upper < found.lower < found.upper
