"""The search and the classes of twins beneath the hop counts, against networkx and plain Python."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.metrics._bfs import SOURCES, WORDS, count_levels
from relparallel.metrics.distances import _subgraph
from relparallel.topology import Topology
from relparallel.topology.compiled import first_twins

seeds = st.integers(0, 10**6)
marks = st.lists(st.booleans(), min_size=20, max_size=20)


def random_network(seed):
    """Sparse enough for isolated nodes, with twins; nodes may be silent, relays never adjacent."""
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(16, rng.uniform(0.02, 0.4), seed=seed)
    for copy in range(16, 20):
        graph.add_edges_from([(copy, v) for v in graph[int(rng.integers(16))]])
        graph.add_node(copy)
    nx.set_node_attributes(graph, dict(enumerate((rng.random(20) < 0.7).tolist())), "transit")
    relays = nx.maximal_independent_set(graph, seed=seed)[: rng.integers(0, 7)]
    return graph, np.sort(np.array(relays, dtype=np.int64)), rng


def expected_levels(graph, relays, weight, sources):
    """Row per distance, column per word of each pass: one networkx search from every source."""
    columns = WORDS * -(-len(sources) // SOURCES)
    counts, relays = np.zeros((30, columns), dtype=np.int64), set(relays.tolist())
    arcs = nx.DiGraph()
    arcs.add_nodes_from(graph)
    for u, v in graph.to_directed().edges:
        arcs.add_edge(u, v, cost=1 if {u, v} & relays else 2)
    for i, s in enumerate(sources.tolist()):
        sending = nx.subgraph_view(
            arcs, filter_edge=lambda u, _, s=s: u == s or graph.nodes[u]["transit"]
        )
        column = i // SOURCES * WORDS + i % WORDS
        for v, distance in nx.single_source_dijkstra_path_length(sending, s, weight="cost").items():
            if v != s and v not in relays:
                counts[distance // 2, column] += weight[v]
    return counts[: np.flatnonzero(counts.any(axis=1)).max(initial=0) + 1]


@given(seeds)
def test_levels_are_those_of_networkx_for_every_word(seed):
    graph, relays, rng = random_network(seed)
    t = Topology.from_networkx(graph, strict=False)
    weight = rng.integers(0, 9, size=20)
    sources = rng.permutation(np.setdiff1d(np.arange(20), relays))[: rng.integers(1, 16)]
    found = count_levels(t.indptr, t.indices, t.transit, relays, weight, sources)
    expected = expected_levels(graph, relays, weight, sources)
    assert np.array_equal(found[: len(expected)], expected)
    assert not found[len(expected) :].any()


@pytest.mark.parametrize("seed", range(3))
def test_every_bit_of_every_pass_is_a_search_of_its_own(seed):
    graph, relays, rng = random_network(seed)
    t = Topology.from_networkx(graph, strict=False)
    weight = rng.integers(1, 2**40, size=20)
    sources = rng.choice(np.setdiff1d(np.arange(20), relays), size=2 * SOURCES + 9)
    found = count_levels(t.indptr, t.indices, t.transit, relays, weight, sources)
    expected = expected_levels(graph, relays, weight, sources)
    assert found.shape[1] == 3 * WORDS
    assert np.array_equal(found[: len(expected)], expected)
    assert not found[len(expected) :].any()


def plain_twins(t, chosen):
    first = {}
    for v in np.flatnonzero(chosen).tolist():
        neighbours = tuple(t.indices[t.indptr[v] : t.indptr[v + 1]].tolist())
        first.setdefault((neighbours, bool(t.transit[v])), []).append(v)
    found = np.arange(t.num_nodes)
    for same in first.values():
        found[same] = same[0]
    return found


@pytest.mark.parametrize("seed", range(40))
def test_twins_have_equal_neighbour_lists(seed):
    graph, _, rng = random_network(seed)
    t = Topology.from_networkx(graph, strict=False)
    chosen = rng.random(20) < 0.8
    assert np.array_equal(
        first_twins(t.indptr, t.indices[:, None], t.transit, chosen), plain_twins(t, chosen)
    )


@given(seeds, marks)
def test_the_subgraph_is_that_of_networkx(seed, keep):
    graph, _, _ = random_network(seed)
    keep = np.array(keep)
    t = Topology.from_networkx(graph, strict=False)
    inside = np.flatnonzero(keep)
    matrix = nx.to_numpy_array(graph, nodelist=range(20), dtype=int)[np.ix_(inside, inside)]
    indptr, indices = _subgraph(t.indptr, t.indices, keep)
    assert np.array_equal(np.diff(indptr), matrix.sum(axis=1))
    assert np.array_equal(indices, np.nonzero(matrix)[1])
