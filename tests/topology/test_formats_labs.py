"""Labs of containerlab against the graphs that they were written from; files that no reader takes."""

import json
import re
from collections import Counter

import networkx as nx
import numpy as np
import pytest
import yaml

from relparallel.topology import read


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def lab(graph, *, extended=False, **more):
    """A lab of containerlab with the nodes and links of a graph."""
    ports, links = Counter(), []
    for ends in graph.edges():
        ports.update(ends)
        pairs = [(name, f"eth{ports[name]}") for name in ends]
        if extended:
            ends = [{"node": name, "interface": port} for name, port in pairs]
            links.append({"type": "veth", "endpoints": ends, "mtu": 9000})
        else:
            links.append({"endpoints": [":".join(pair) for pair in pairs]})
    nodes = {name: dict(data) or None for name, data in graph.nodes(data=True)}
    return {"name": "clos", "topology": {"nodes": nodes, "links": links, **more}}


def clos(rng, **host):
    graph = nx.MultiGraph()
    for number in range(3):
        graph.add_node(f"spine{number}", kind="nokia_srlinux")
    for number in range(4):
        graph.add_node(f"leaf{number}", kind="nokia_srlinux")
        for spine in range(3):
            edges = [(f"leaf{number}", f"spine{spine}")] * int(rng.integers(1, 3))
            graph.add_edges_from(edges)
        graph.add_node(f"client{number}", **(host or {"kind": "linux"}))
        graph.add_edge(f"client{number}", f"leaf{number}")
    return graph


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("dump", [yaml.safe_dump, json.dumps, "flow"])
def test_a_lab_has_its_nodes_and_links(file, rng, extended, dump):
    graph = clos(rng)
    data = lab(graph, extended=extended)
    flow = "name: clos\ntopology:\n  nodes: {}\n  links: {}\n"
    inner = data["topology"]
    text = (
        flow.format(*map(json.dumps, (inner["nodes"], inner["links"])))
        if dump == "flow"
        else dump(data)
    )
    file.write_text(text)
    t = read(file)
    pairs = [frozenset((t.labels[u], t.labels[v])) for u, v in t.edges.tolist()]
    found = dict(zip(pairs, t.multiplicity.tolist(), strict=True))
    assert found == Counter(frozenset(pair) for pair in graph.edges())
    assert {t.labels[v] for v in t.hosts} == {f"client{i}" for i in range(4)}
    assert dict(Counter(t.kinds[code] for code in t.node_kind)) == {
        "host": 4,
        "leaf": 4,
        "spine": 3,
    }
    assert "no capacity is given" in " ".join(t.graph_attributes["notes"])


@pytest.mark.parametrize(
    ("name", "node", "more", "host"),
    [
        ("n1", {"kind": "linux"}, {}, True),
        ("n1", None, {"defaults": {"kind": "linux"}}, True),
        ("n1", {"group": "ends"}, {"groups": {"ends": {"kind": "linux"}}}, True),
        ("n1", {"kind": "ceos"}, {}, False),
        ("leaf1", {"kind": "linux", "image": "frrouting/frr:v8"}, {}, False),
        ("n1", {"kind": "linux", "image": "frrouting/frr:v8"}, {}, False),
        ("n1", {"kind": "linux"}, {"kinds": {"linux": {"image": "quay.io/frr"}}}, False),
        ("server1", {"kind": "linux", "image": "frrouting/frr:v8"}, {}, True),
        ("h1", {"kind": "ceos"}, {}, True),
        ("n1", {"kind": "ceos", "group": "servers-host"}, {}, True),
        ("leaf1-server2", {"kind": "linux"}, {}, True),
        ("server-leaf1", {"kind": "linux"}, {}, False),
        ("superspine1", {"kind": "linux"}, {}, False),
        ("br-mgmt", {"kind": "bridge"}, {}, False),
    ],
)
def test_group_name_and_kind_tell_a_host(file, name, node, more, host):
    graph = nx.MultiGraph([(name, "rest")])
    graph.nodes[name].update(node or {})
    graph.nodes["rest"]["kind"] = "ceos"
    file.write_text(yaml.safe_dump(lab(graph, **more)))
    t = read(file, "containerlab")
    assert bool(t.endpoint[t.index_of(name)]) is host
    asked = read(file, hosts=re.escape(name))
    assert [asked.labels[v] for v in asked.hosts] == [name]


def test_what_nodes_share_may_stand_at_an_anchor(file):
    """Labs merge it by <<, over which the own fields of a node win."""
    file.write_text(
        "topology:\n  nodes:\n    n1: &end {kind: linux, mtu: 9000}\n    n2: {<<: *end}\n"
        "    n3: {<<: *end, kind: ceos}\n  links:\n    - endpoints: [n1:e1, n3:e1]\n"
        "    - endpoints: [n2:e1, n3:e2]\n"
    )
    t = read(file)
    assert [t.labels[v] for v in t.hosts] == ["n1", "n2"]


def test_links_out_of_a_lab_are_left_out_and_told(file, rng):
    data = lab(clos(rng))
    inside = len(data["topology"]["links"])
    data["topology"]["links"] += [
        {"endpoints": ["leaf0:eth90", "mgmt-net:leaf0"]},
        {"endpoints": ["host:eth1", "leaf1:eth90"]},
        {"type": "macvlan", "endpoint": {"node": "leaf2", "interface": "eth90"}},
        {
            "type": "vxlan-stitch",
            "endpoint": {"node": "leaf2", "interface": "eth93"},
            "remote": "10.0.0.1",
        },
        {"type": "vxlan", "endpoint": {"node": "leaf2", "interface": "eth91"}, "vni": 1},
    ]
    file.write_text(yaml.safe_dump(data))
    t = read(file)
    assert t.num_links == inside
    assert "5 links out of the lab" in " ".join(t.graph_attributes["notes"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda lab: lab["links"].append({"endpoints": ["leaf0:e9", "leaf9:e1"]}),
            "link .*'leaf9'",
        ),
        (lambda lab: lab["links"].append(lab["links"][0]), "link .* has a cable already"),
        (lambda lab: lab["links"].append({"endpoints": ["leaf0:e9"]}), "expected two ends"),
        (lambda lab: lab["links"].append("leaf0-leaf1"), "expected two ends"),
        (lambda lab: lab.pop("nodes"), "expected topology with nodes and links"),
        (lambda lab: lab.update(links="none"), "expected topology with nodes and links"),
    ],
)
def test_a_wrong_lab_is_named_with_its_link(file, rng, change, said):
    data = lab(clos(rng))
    change(data["topology"])
    file.write_text(yaml.safe_dump(data))
    with pytest.raises(ValueError, match=said) as refused:
        read(file, "containerlab")
    assert str(file) in str(refused.value)


def test_hosts_that_nobody_is_called_are_refused(file, rng):
    file.write_text(yaml.safe_dump(lab(clos(rng))))
    with pytest.raises(ValueError, match=r"hosts must match names of nodes, .* got 'nobody'"):
        read(file, hosts="nobody")
    with pytest.raises(TypeError, match="hosts"):
        read(file, hosts=3)
    with pytest.raises(ValueError, match="hosts must be a regular expression, got"):
        read(file, hosts="client[")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nodes:\n  a:\nlinks:\n- a-b\n", "nearest is containerlab: it lacks topology: and endp"),
        ("Switch : 0x01 ports 41\nguid=0x1\n", 'nearest is ibnetdiscover: it lacks "S- and "H-'),
        ("GPU0 \nNV# SYS\nCPU Affinity\n", "nearest is nvidia-smi: its head is missing"),
        ("Nodes=a,b Switches=c\n", "nearest is slurm: it lacks SwitchName="),
        ("hello\n", r"simai, got [^;]*$"),
    ],
)
def test_what_no_reader_takes_is_told_the_nearest(file, text, said):
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read(file)
