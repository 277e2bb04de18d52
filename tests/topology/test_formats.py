"""Round trips on files written here; the simulators' readers are rebuilt from their sources."""

import tarfile
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pace import pace
from public_data import DATA, needs_data
from relparallel.topology import (
    Design,
    SharedRisk,
    Topology,
    fat_tree,
)
from relparallel.topology.formats import _text
from relparallel.topology.formats.graphml import read_graphml, write_graphml
from relparallel.topology.formats.simai import read_simai, write_simai
from relparallel.units import GBIT
from small_networks import FILED, rail_network

# ----------------------------------------------------------------------------------------------
# GraphML


@pytest.mark.parametrize("t", FILED, ids=repr)
def test_every_design_comes_back_from_graphml(t, file):
    write_graphml(t, file)
    assert read_graphml(file) == t


def test_every_attribute_comes_back_from_graphml(file):
    odd = np.empty(36, dtype=object)
    odd[:] = [None, ("a", 1), "python:x", "", "two\nlines", [1.5, None], {1: "x"}, True, *range(28)]
    t = replace(
        fat_tree(4),
        latency=np.linspace(0, 1e-6, 48),
        capacity=np.linspace(1, 2, 48),
        multiplicity=np.arange(1, 49),
        labels=tuple(("node", i) for i in range(36)),
        shared_risk=(
            SharedRisk(name="duct", nodes=(0, 3), edges=(1, 2)),
            SharedRisk(name="rack", nodes=(0,)),
        ),
        node_attributes={"odd": odd, "power": np.linspace(0, 1, 36), "rack": np.arange(36)},
        edge_attributes={"length": np.linspace(1, 9, 48), "id": np.arange(48)},
        graph_attributes={"site": "北京", "floors": (1, 2), "node_default": 3},
        meta=Design(name="own", parameters={"dims": (2, 3), "k": np.int64(4)}, paper="someone2026"),
    )
    write_graphml(t, file)
    assert read_graphml(file) == t


labels = st.one_of(
    st.integers(), st.text(max_size=4), st.tuples(st.text(max_size=2), st.booleans())
)


@settings(max_examples=40)
@given(
    names=st.lists(labels, min_size=2, max_size=6, unique_by=lambda x: (str(x), x)),
    remark=st.one_of(labels, st.floats(allow_nan=False, allow_infinity=False)),
)
def test_labels_and_attributes_of_any_kind_come_back(tmp_path_factory, names, remark):
    graph = nx.path_graph(len(set(names)))
    graph = nx.relabel_nodes(graph, dict(enumerate(dict.fromkeys(names))))
    graph.nodes[names[0]]["remark"] = remark
    path = tmp_path_factory.mktemp("graphml") / "graph"
    write_graphml(graph, path)
    assert read_graphml(path) == Topology.from_networkx(graph)


def test_networkx_reads_what_we_write(file):
    write_graphml(fat_tree(4), file)
    graph = nx.read_graphml(file)
    assert sorted(map(sorted, graph.edges)) == sorted(
        sorted(map(str, e)) for e in fat_tree(4).edges.tolist()
    )
    assert graph.nodes["0"]["kind"] == "host"
    assert graph.nodes["0"]["tier"] == 0


def test_a_file_of_another_tool_is_read_with_defaults(file):
    graph = nx.MultiGraph([("a", "b"), ("a", "b"), ("b", "c")])
    graph.nodes["a"]["colour"] = "red"
    nx.write_graphml(graph, file)
    t = read_graphml(file)
    assert t.labels == ("a", "b", "c")
    assert t.multiplicity.tolist() == [2, 1]
    assert t.node_attributes["colour"].tolist() == ["red", None, None]


HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hop count\n", "network, line 1: no XML"),
        (
            f"{HEAD}\n<graph edgedefault='undirected'>\n<node id='a'></graph>",
            "network, line 3: no XML",
        ),
        ("<html></html>", "network: no GraphML that can be read"),
        (
            f"{HEAD}<graph edgedefault='undirected'></graph></graphml>",
            "network must have at least one node",
        ),
        (
            f"{HEAD}<graph edgedefault='undirected'><node id='a'/><edge source='a' "
            "target='a'/></graph>"
            "</graphml>",
            "network must have no self-loops",
        ),
        (
            f"{HEAD}<graph edgedefault='undirected'><node id='a'/><node id='b'/></graph></graphml>",
            "network must be connected, got 2 parts of 1, 1 nodes",
        ),
        (
            f"{HEAD}<key id='k' for='node' attr.name='pod' attr.type='string'/>"
            "<graph edgedefault='undirected'><node id='a'><data key='k'>first</data></node></graph>"
            "</graphml>",
            "network: pod must be integers",
        ),
    ],
)
def test_a_wrong_graphml_file_is_named(file, text, message):
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_graphml(file)


def test_what_is_no_literal_is_refused_by_name(file):
    graph = nx.path_graph(2)
    graph.nodes[1]["owner"] = object()
    with pytest.raises(ValueError, match="owner of node 1 must be made of numbers, texts"):
        write_graphml(graph, file)
    assert not file.exists()


# ------------------------------------------------------------------------------------------------
# SimAI


SIMAI = """\
9 2 2 3 12 H100
4 5 6 7 8
0 4 3600Gbps 0.000025ms 0
0 6 400Gbps 0.0005ms 9.9999999999999998e-13
1 4 3600Gbps 0.000025ms 0
1 7 400Gbps 0.0005ms 9.9999999999999998e-13
2 5 3600Gbps 0.000025ms 0
2 6 400Gbps 0.0005ms 9.9999999999999998e-13
3 5 3600Gbps 0.000025ms 0
3 7 400Gbps 0.0005ms 9.9999999999999998e-13
6 8 400Gbps 0.0005ms 9.9999999999999998e-13
6 8 400Gbps 0.0005ms 9.9999999999999998e-13
7 8 400Gbps 0.0005ms 9.9999999999999998e-13
7 8 400Gbps 0.0005ms 9.9999999999999998e-13
"""


def test_a_simai_file_says_all_and_comes_back(file):
    t = rail_network()
    write_simai(t, file, gpus_per_server=2)
    assert file.read_text() == SIMAI
    back = read_simai(file)
    for name in ("edges", "multiplicity", "capacity", "latency", "endpoint", "transit"):
        np.testing.assert_array_equal(getattr(back, name), getattr(t, name))
    assert back.edge_attributes["error_rate"].tolist() == t.edge_attributes["error_rate"].tolist()
    assert back.pod.tolist() == [0, 0, 1, 1, -1, -1, -1, -1, -1]
    assert back.tier.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    write_simai(back, file, gpus_per_server=2)
    assert file.read_text() == SIMAI


@pytest.mark.parametrize("t", [t for t in FILED if t.num_nodes > 1], ids=repr)
def test_every_design_comes_back_from_simai(t, file):
    write_simai(t, file, gpus_per_server=1, gpu_type="A100")
    assert (
        file.read_text().splitlines()[0] == f"{t.num_nodes} 1 0 {t.num_switches} {t.num_links} A100"
    )
    back = read_simai(file, gpus_forward=True)
    # builders number hosts first, then tier by tier
    np.testing.assert_array_equal(back.edges, t.edges)


@given(capacity=st.floats(1, 1e15), latency=st.floats(0, 10))
def test_every_digit_of_a_quantity_is_kept(capacity, latency):
    assert _text.read_rate(_text.rate(capacity)) == capacity
    assert _text.read_delay(_text.delay(latency)) == latency


def test_units_of_a_simai_file():
    assert _text.read_rate("1.5Tbps") == _text.read_rate("1500gbps") == 1500 * GBIT
    assert _text.read_delay("2us") == _text.read_delay("0.002ms") == 2e-6


def broken(*changes: tuple[str, str]) -> str:
    text = SIMAI
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


LINTS = {
    "link count": (broken(("12 H100", "20 H100")), 1, "promises 20 links, the file has 12"),
    "idle ToR": (
        broken(
            ("9 2 2 3 12", "10 2 2 4 13"),
            ("6 7 8", "6 7 9 8"),
            ("0 4 3", "8 9 400Gbps 0.0005ms 0\n0 4 3"),
        ),
        2,
        "switch 9 is a bottom switch without GPUs",
    ),
    "unconnected node": (
        broken(("9 2 2 3", "10 2 2 4"), ("7 8", "7 8 9")),
        2,
        "node 9 has no cable",
    ),
    "server size": (
        broken(("9 2 2", "9 3 2"), ("\n3 5 ", "\n3 4 "), ("\n2 5", "\n2 4")),
        1,
        "do not fill",
    ),
    "split server": (
        broken(("\n1 4 ", "\n1 5 ")),
        2,
        "GPUs 0 to 1 of one server hang at different",
    ),
    "unequal parallel cables": (
        broken(("6 8 400", "6 8 200")),
        12,
        "differs from the one on line 11",
    ),
    "several parts": (
        broken(
            ("9 2 2 3 12", "11 2 2 5 13"),
            ("7 8", "7 8 9 10"),
            ("0 4 3", "9 10 400Gbps 0ms 0\n0 4 3"),
        ),
        1,
        "the network falls into 2 parts",
    ),
}


@pytest.mark.parametrize("rule", LINTS)
def test_faults_that_the_simulator_passes_over_are_named(rule, file):
    text, line, told = LINTS[rule]
    file.write_text(text)
    with pytest.raises(
        ValueError, match=rf"line {line}: .*{told}.*; .*, or read with strict=False"
    ):
        read_simai(file)


def test_the_generator_that_left_switches_idle_is_caught(file):
    """Two segments were asked for, all GPUs came into the first: the other has uplinks only."""
    gpus, first, second, spine = range(4), (4, 5), (6, 7), (8, 9)
    cables = [(g, first[g % 2]) for g in gpus] + [(s, p) for s in (*first, *second) for p in spine]
    lines = [f"{u} {v} 100Gbps 0.0005ms 0" for u, v in cables]
    file.write_text("\n".join([f"10 2 0 6 {len(cables)} A100", "4 5 6 7 8 9", *lines]))
    told = (
        r"switch 6 is a bottom switch without GPUs;.*\n.*switch 7 is a bottom switch without GPUs;"
    )
    with pytest.raises(ValueError, match=told):
        read_simai(file)
    assert read_simai(file, strict=False).num_links == 12


def test_without_strictness_all_cables_are_read(file):
    file.write_text(LINTS["link count"][0])
    assert read_simai(file, strict=False).num_links == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "line 1: expected nodes gpus_per_server nvswitches switches links gpu_type, got ''; "
            "correct",
        ),
        ("9 2 2\n", "line 1: expected nodes"),
        (
            broken(("9 2 2 3", "9 2 2 x")),
            "line 1: expected a whole number >= 0, got 'x'; correct the line",
        ),
        (broken(("9 2", "9 0")), "line 1: expected a whole number >= 1, got '0'"),
        (broken(("4 5 6 7 8", "4 5 6 7 9")), "line 2: expected a node between 0 and 8, got 9"),
        (
            broken(("4 5 6 7 8", "4 5 6 7 7")),
            "line 2: expected the 2 [+] 3 different ids of switches",
        ),
        (
            broken(("0 6 400Gbps", "0 6 4x0Gbps")),
            "line 4: expected a rate such as 400Gbps, got 4x0Gbps",
        ),
        (broken(("0 6 400Gbps", "0 6 0Gbps")), "line 4: the rate must be above 0, got 0Gbps"),
        (
            broken(("0 6 400Gbps 0.0005ms", "0 6 400Gbps nanms")),
            "line 4: expected a delay such as 0.0005ms",
        ),
        (
            broken(("0 6 400Gbps 0.0005ms", "0 6 400Gbps -1ms")),
            "line 4: the delay must be at least 0, got -1ms",
        ),
        (
            broken(("0.000025ms 0", "0.000025ms 2")),
            r"line 3: expected an error rate in \[0, 1\], got 2",
        ),
        (
            broken(("0 6 400Gbps", "6 6 400Gbps")),
            "line 4: node 6 is joined to itself; join two different",
        ),
        (
            broken(("0 6 400Gbps", "0 400Gbps")),
            "line 4: expected source target rate delay error_rate",
        ),
        (
            broken(("0 6 400Gbps", "0 66 400Gbps")),
            "line 4: expected a node between 0 and 8, got 66",
        ),
    ],
)
def test_a_wrong_simai_file_is_named_with_its_line(file, text, message):
    file.write_text(text)
    with pytest.raises(ValueError, match="network, " + message):
        read_simai(file)


def test_a_file_that_is_no_text_is_named(file):
    file.write_bytes(b"9 2 2 3 12 H100\n\xff\xfe")
    with pytest.raises(ValueError, match="network, line 2: this is no text in UTF-8"):
        read_simai(file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gpus_per_server": 3}, "gpus_per_server must divide the 16 hosts, got 3"),
        ({"gpu_type": "H 100"}, "gpu_type must be one word, got 'H 100'"),
        ({"gpu_type": ""}, "gpu_type must be one word"),
    ],
)
def test_what_a_simai_file_cannot_say_is_refused(file, arguments, message):
    with pytest.raises(ValueError, match=message):
        write_simai(fat_tree(4), file, **arguments)


def test_a_directed_file_of_another_tool_gives_cables(file):
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", label="10 Gbps")
    graph.add_edge("b", "a", label="10 Gbps")  # the same cable
    graph.add_edge("b", "c", label="1 Gbps")
    graph.add_edge("b", "c", label="2 Gbps")  # a parallel one
    nx.write_graphml(graph, file)
    t = read_graphml(file)
    assert t.multiplicity.tolist() == [1, 2]
    assert t.edge_attributes["label"].tolist() == ["10 Gbps", ("1 Gbps", "2 Gbps")]


def test_cables_from_a_node_to_itself_are_refused_or_left_out(file):
    nx.write_graphml(nx.DiGraph([("a", "b"), ("b", "b")]), file)
    with pytest.raises(ValueError, match="self-loops"):
        read_graphml(file)
    assert read_graphml(file, strict=False).num_links == 1


@needs_data
def test_every_network_of_the_topology_zoo_is_read(tmp_path):
    with tarfile.open(DATA / "topology-zoo/topology-zoo.tar.xz") as files:
        files.extractall(tmp_path, filter="data")
    files = sorted(tmp_path.rglob("*.graphml"))
    assert len(files) == 221
    for file in files[:: pace(8, 1)]:
        assert read_graphml(file, strict=False).num_links
