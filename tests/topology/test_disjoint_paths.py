import networkx as nx
import pytest
from hypothesis import given, strategies as st

from relparallel.topology import fat_tree
from relparallel.topology.routing import disjoint_paths

cables = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 3)).filter(
        lambda c: c[0] != c[1]
    ),
    max_size=14,
)


@given(cables, st.sets(st.integers(1, 5)))
def test_the_number_is_that_of_networkx_without_the_nodes_that_do_not_forward(found, silent):
    graph = nx.Graph()
    for v in range(7):
        graph.add_node(v, transit=v not in silent)
    graph.add_edges_from((u, v, {"multiplicity": count}) for u, v, count in found)
    open_graph = graph.subgraph(set(range(7)) - silent)
    assert disjoint_paths(graph, 0, 6) == nx.maximum_flow_value(
        open_graph, 0, 6, capacity="multiplicity"
    )


def test_a_silent_source_still_sends():
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, {0: False, 3: False}, "transit")
    assert disjoint_paths(graph, 0, 3) == 1
    nx.set_node_attributes(graph, {1: False}, "transit")
    assert disjoint_paths(graph, 0, 3) == 0


@pytest.mark.parametrize(
    ("ends", "error"), [((0, 0), "target must differ"), ((0, 99), "target must be")]
)
def test_bad_ends_are_named(ends, error):
    with pytest.raises(ValueError, match=error):
        disjoint_paths(fat_tree(4), *ends)
