"""Two networks side by side: each number by the definition, from evaluations of its own."""

import networkx as nx
import numpy as np
import pytest

from relparallel.reliability import compare, evaluate
from relparallel.topology import leaf_spine


def test_a_chord_is_new_and_every_other_change_is_that_of_its_definition():
    before, after = nx.cycle_graph(["a", "b", "c", "d", "e"]), nx.Graph([("d", "b")])
    after.add_edges_from(before.edges)  # labels come in another order
    found = compare(evaluate(before, link_up=0.95), evaluate(after, link_up=0.95))
    u = [evaluate(graph, link_up=0.95).unreliability for graph in (before, after)]
    assert found.ratio == pytest.approx(u[1] / u[0])
    assert found.bracket == (found.ratio, found.ratio)
    table = found.to_frame()
    shares = []
    for graph, whole in zip((before, after), u, strict=True):
        share = {}
        for pair in graph.edges:
            perfect = evaluate(graph, link_up={e: 1.0 if e == pair else 0.95 for e in graph.edges})
            share[frozenset(pair)] = 1 - perfect.unreliability / whole
        shares.append(share)
    assert len(table) == 6
    for row in table.to_dict("records"):
        then, now = (share.get(frozenset(row["part"])) for share in shares)
        assert row["criticality after"] == pytest.approx(now)
        assert row["change"] == pytest.approx(now - (then or 0.0))
        assert np.isnan(row["criticality before"]) == (then is None)
    sizes = table["change"].abs().to_numpy()
    assert (sizes[:-1] >= sizes[1:] - 1e-12).all()
    assert table["change"].any()


def test_a_network_beside_itself_changes_nothing():
    ring = evaluate(nx.cycle_graph(5), link_up=0.9, node_up=0.99)
    found = compare(ring, ring)
    assert (found.ratio, set(found.to_frame()["kind"])) == (1.0, {"link", "node"})
    assert not found.to_frame()["change"].any()


def test_of_bounds_the_ratio_has_a_bracket():
    fabric = leaf_spine(leaves=4, spines=2, hosts_per_leaf=2)
    wide, narrow = (evaluate(fabric, link_up=up, method="bounds") for up in (0.9, 0.99))
    found = compare(wide, narrow)
    low, high = found.bracket
    assert low <= found.ratio <= high
    assert (low, high) == (narrow.lower / wide.upper, narrow.upper / wide.lower)
    exact = [evaluate(fabric, link_up=up).unreliability for up in (0.9, 0.99)]
    assert low <= exact[1] / exact[0] <= high


def test_what_never_fails_has_a_ratio():
    never, seldom = (evaluate(nx.cycle_graph(4), link_up=up) for up in (1.0, 0.9))
    assert compare(never, seldom).ratio == np.inf
    assert compare(never, never).ratio == 1.0
