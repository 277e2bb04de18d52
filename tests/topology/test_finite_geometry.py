import networkx as nx
import numpy as np
import pytest

from relparallel.topology import describe, polarfly, slim_fly
from relparallel.topology.designs.finite_geometry import FiniteField

FIELDS = (2, 3, 4, 5, 7, 8, 9, 16, 25, 27)
PROJECTIVE = (2, 3, 4, 5, 7, 8, 9, 11)


def adjacency(t):
    matrix = np.zeros((t.num_nodes,) * 2, dtype=np.int64)
    matrix[t.edges[:, 0], t.edges[:, 1]] = matrix[t.edges[:, 1], t.edges[:, 0]] = 1
    return matrix


@pytest.mark.parametrize("q", FIELDS)
def test_the_axioms_of_a_field(q):
    field, e = FiniteField(q), np.arange(q)
    a, b, c = np.ix_(e, e, e)
    plus, times = field.add(e[:, None], e), field.multiply(e[:, None], e)
    for table in (plus, times):
        assert (table == table.T).all()
        assert (table[table[a, b], c] == table[a, table[b, c]]).all()
    assert (times[a, plus[b, c]] == plus[times[a, b], times[a, c]]).all()
    assert (plus[0] == e).all()
    assert (times[1] == e).all()
    assert (plus[e, field.negate(e)] == 0).all()
    assert (times[e[1:], field.invert(e[1:])] == 1).all()
    assert sorted(field.powers.tolist()) == list(range(1, q))


@pytest.mark.parametrize("q", [6, 10, 12, 36, 100, 8190])
def test_there_is_no_field_of_another_size(q):
    for design in (lambda: slim_fly(q, 1), lambda: polarfly(q), lambda: describe("polarfly", q=q)):
        with pytest.raises(ValueError, match=f"q must be a prime power.*got {q}"):
            design()


@pytest.mark.parametrize("q", [5, 7, 13])
def test_slim_fly_is_wired_by_the_rule_of_the_paper(q):
    """The rule in integers modulo a prime, with its least primitive element."""
    xi = next(g for g in range(2, q) if len({pow(g, i, q) for i in range(q - 1)}) == q - 1)
    w = (q + 1) // 4
    even = (
        [*range(0, q - 1, 2)]
        if q % 4 == 1
        else [*range(0, 2 * w, 2), *range(2 * w - 1, 4 * w - 2, 2)]
    )
    steps = [{pow(xi, i + shift, q) for i in even} for shift in (0, 1)]
    rule = nx.Graph()
    for i in range(2):
        rule.add_edges_from(
            ((i, x, y), (i, x, (y + s) % q)) for x in range(q) for y in range(q) for s in steps[i]
        )
    rule.add_edges_from(
        ((0, x, (m * x + c) % q), (1, m, c)) for x in range(q) for m in range(q) for c in range(q)
    )
    assert {frozenset(e) for e in slim_fly(q, 0).edges.tolist()} == {
        frozenset(i * q * q + x * q + y for i, x, y in edge) for edge in rule.edges
    }


def test_slim_fly_5_is_the_graph_of_hoffman_and_singleton():
    t = slim_fly(q=5, p=0)
    a = adjacency(t)
    # no triangle, one common neighbour of others
    assert (a @ a + a - 6 * np.eye(50, dtype=int) == 1).all()
    values, times = np.unique(np.linalg.eigvalsh(a).round(9), return_counts=True)
    assert dict(zip(values.tolist(), times.tolist(), strict=True)) == {-3.0: 21, 2.0: 28, 7.0: 1}
    assert nx.girth(t.to_networkx()) == 5


@pytest.mark.parametrize("q", PROJECTIVE)
def test_two_points_are_orthogonal_to_exactly_one(q):
    """(A + D)^2 = J + q I, D marking the quadrics: every line meets every other in one point."""
    t = polarfly(q, p=0)
    quadric = t.degrees == q
    both = adjacency(t) + np.diag(quadric)
    assert (both @ both == 1 + q * np.eye(t.num_nodes, dtype=int)).all()
    assert np.flatnonzero(quadric).tolist() == list(range(q**2, q**2 + q + 1))
    if q % 2:
        assert not adjacency(t)[q**2 :, q**2 :].any()  # no two quadrics are orthogonal


@pytest.mark.parametrize("q", [3, 5, 11])
def test_polarfly_joins_vectors_whose_product_is_zero(q):
    points = (
        [(1, y, z) for y in range(q) for z in range(q)]
        + [(0, 1, z) for z in range(q)]
        + [(0, 0, 1)]
    )
    product = np.array(points) @ np.array(points).T % q
    order = np.argsort(product.diagonal() == 0, kind="stable")  # quadrics last
    wanted = np.argwhere(np.triu(product[np.ix_(order, order)] == 0, k=1))
    assert (polarfly(q, 0).edges == wanted).all()
