from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.topology import (
    Design,
    SharedRisk,
    Topology,
    as_topology,
    bcube,
    dcell,
    fat_tree,
    leaf_spine,
    torus,
)
from relparallel.topology.parts import LINK_CAPACITY

DESIGNS = [
    fat_tree(4),
    leaf_spine(3, 2, 4),
    bcube(3, 2),
    dcell(3, 2),
    torus((3, 2, 1, 4)),
    torus((1,)),
    torus((3, 3), False),
]


@pytest.mark.parametrize("t", DESIGNS, ids=repr)
def test_every_design_comes_back_from_networkx(t):
    graph = t.to_networkx()
    assert graph.number_of_nodes() == t.num_nodes
    assert graph.number_of_edges() == len(t.edges)
    assert Topology.from_networkx(graph) == t


def test_every_attribute_comes_back_from_networkx():
    t = replace(
        fat_tree(4),
        latency=np.linspace(0, 1e-6, 48),
        capacity=np.linspace(1, 2, 48),
        multiplicity=np.arange(1, 49),
        rail=np.arange(36),
        labels=tuple(("node", i) for i in range(36)),
        shared_risk=(
            SharedRisk(name="rack", nodes=(0, 1)),
            SharedRisk(name="conduit", nodes=(1,), edges=(3, 4)),
        ),
        node_attributes={
            "owner": np.array(["me", None, *["you"] * 34], dtype=object),
            "age": np.arange(36),
        },
        edge_attributes={
            "availability": np.linspace(0.9, 1, 48),
            "spliced": np.arange(48) % 2 == 0,
        },
        graph_attributes={"site": "north", "built": 2024},
    )
    again = Topology.from_networkx(t.to_networkx())
    assert again == t
    assert again.index_of(("node", 5)) == 5
    assert again.to_networkx().graph == t.to_networkx().graph


labels = st.one_of(
    st.integers(-5, 50), st.text(max_size=3), st.tuples(st.integers(0, 3), st.integers(0, 3))
)
values = st.one_of(
    st.integers(-9, 9), st.floats(allow_nan=False), st.booleans(), st.text(max_size=3)
)


@given(st.lists(labels, min_size=1, max_size=8, unique=True), st.data())
def test_any_graph_comes_back_with_its_attributes(nodes, data):
    graph = nx.Graph(remark=data.draw(values))
    for node in nodes:
        graph.add_node(node, **data.draw(st.dictionaries(st.sampled_from(["a", "b"]), values)))
    for u, v in data.draw(
        st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=12)
    ):
        if u != v:
            graph.add_edge(u, v, **data.draw(st.dictionaries(st.sampled_from(["x", "y"]), values)))
    t = Topology.from_networkx(graph, strict=False)
    again = t.to_networkx()
    own = {"kind", "endpoint", "transit", "tier", "pod", "rail", "device_class"}
    cable = {"multiplicity", "capacity", "latency"}
    assert list(again) == nodes
    assert {
        n: {k: v for k, v in d.items() if k not in own} for n, d in again.nodes(data=True)
    } == dict(graph.nodes(data=True))
    assert {frozenset(e) for e in again.edges} == {frozenset(e) for e in graph.edges}
    for u, v, given_attributes in graph.edges(data=True):
        assert {k: w for k, w in again.edges[u, v].items() if k not in cable} == given_attributes
    assert again.graph["remark"] == graph.graph["remark"]
    assert Topology.from_networkx(again, strict=False) == t


def test_a_graph_in_several_parts_is_refused_unless_wanted():
    graph = nx.disjoint_union(nx.cycle_graph(3), nx.path_graph(2))
    with pytest.raises(
        ValueError, match="graph must be connected, got 2 parts of 3, 2 nodes: join them"
    ):
        Topology.from_networkx(graph)
    assert Topology.from_networkx(graph, strict=False) == as_topology(graph)


def test_a_plain_graph_has_endpoints_that_forward():
    t = as_topology(nx.path_graph(["a", "b", "c"]))
    assert t.num_hosts == 3
    assert t.transit.all()
    assert t.meta == Design(name="graph")
    assert t.labels == ("a", "b", "c")
    assert set(t.capacity) == {LINK_CAPACITY}


def test_attributes_of_a_graph_are_fields():
    graph = nx.Graph()
    graph.add_node("s", kind="spine", endpoint=False, tier=2)
    graph.add_node("h", kind="host", transit=False, pod=np.int64(3))
    graph.add_edge("s", "h", capacity=7, latency=1e-6, multiplicity=4, availability=0.99)
    t = as_topology(graph)
    assert (t.kinds, t.num_hosts, t.num_links) == (("spine", "host"), 1, 4)
    assert (t.tier.tolist(), t.pod.tolist(), t.transit.tolist()) == (
        [2, -1],
        [-1, 3],
        [True, False],
    )
    assert (t.capacity.tolist(), t.edge_attributes["availability"].tolist()) == ([7.0], [0.99])


def test_parallel_edges_add_up_and_must_agree():
    graph = nx.MultiGraph()
    graph.add_edge(0, 1, latency=1e-6)
    graph.add_edge(1, 0, latency=1e-6, multiplicity=3)
    assert as_topology(graph).multiplicity.tolist() == [4]
    graph.add_edge(0, 1, latency=2e-6)
    with pytest.raises(ValueError, match="parallel edges must agree in all attributes"):
        as_topology(graph)


def test_a_topology_is_returned_as_it_is():
    t = fat_tree(4)
    assert as_topology(t) is t


@pytest.mark.parametrize(
    ("graph", "error"),
    [
        (nx.DiGraph([(0, 1)]), "net must be undirected"),
        (nx.Graph(), "net must have at least one node"),
        (nx.Graph([(0, 0), (0, 1)]), "net must have no self-loops"),
        ("graph", "net must be Topology or Graph"),
        (None, "net must be Topology or Graph"),
        ([], "net must be Topology or Graph"),
    ],
)
def test_a_bad_graph_is_named(graph, error):
    with pytest.raises((TypeError, ValueError), match=error):
        as_topology(graph, name="net")


@pytest.mark.parametrize(
    ("node", "edge", "error"),
    [
        ({"tier": "gold"}, {}, "tier must be integers"),
        ({"kind": 3}, {}, "node attribute kind must be str"),
        ({"transit": "yes"}, {}, "transit must be booleans"),
        ({"shared_risk": "rack"}, {}, "shared_risk must be tuple or list"),
        ({}, {"capacity": -1}, "capacity must be a number > 0"),
        ({}, {"multiplicity": 0}, "multiplicity must be integers >= 1"),
        ({}, {"latency": "slow"}, "latency must be a number"),
    ],
)
def test_a_bad_attribute_is_named(node, edge, error):
    graph = nx.Graph()
    graph.add_node(0, **node)
    graph.add_edge(0, 1, **edge)
    with pytest.raises((TypeError, ValueError), match=error):
        as_topology(graph)


def test_names_of_arguments_are_checked():
    with pytest.raises(TypeError, match="name must be str"):
        as_topology(nx.path_graph(2), name=None)
    with pytest.raises(TypeError, match="graph must be Graph"):
        Topology.from_networkx(fat_tree(4))
