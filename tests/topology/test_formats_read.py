"""Files of schedulers and of other tools, and the faults that they have."""

import json

import networkx as nx
import numpy as np
import pytest
import yaml

from public_data import DATA, needs_data
from relparallel.topology import fat_tree, leaf_spine, read, write
from relparallel.topology.formats import READERS
from relparallel.units import GBIT


def below(t) -> dict[str, int]:
    """Nodes under every switch of the lowest tier."""
    return {
        t.labels[v]: int(t.endpoint[t.indices[t.indptr[v] : t.indptr[v + 1]]].sum())
        for v in np.flatnonzero(t.tier == 1)
    }


TREE = """# a tree
SwitchName=leaf1 Nodes=gpu[001-004,010]   # five
switchname=leaf2 \\
    nodes=gpu[005-009] LinkSpeed=100
SwitchName=top Switches=leaf[1-2]
"""
YAML = """- topology: other
  block: {block_sizes: [2], blocks: [{block: b1, nodes: "x[1-2]"}]}
- topology: usual
  cluster_default: true
  tree:
    switches:
      - {switch: top, children: "leaf[1-2]"}
      - {switch: leaf1, nodes: "gpu[001-004,010]"}
      - {switch: leaf2, nodes: "gpu[005-009]"}
"""


@pytest.mark.parametrize("text", [TREE, YAML, TREE.replace("\n", "\r\n")])
def test_a_tree_of_slurm_has_its_nodes_at_their_leaves(file, text):
    file.write_text(text, newline="")
    t = read(file)
    assert (t.num_hosts, t.num_switches, t.num_links) == (10, 3, 12)
    assert below(t) == {"leaf1": 5, "leaf2": 5}
    assert t.labels[t.num_nodes - 1] == "top"
    assert "gpu010" in t.labels
    assert not t.transit[t.hosts].any()
    assert "not how many cables" in t.graph_attributes["notes"][-1]


def test_blocks_of_slurm_stay_apart(file):
    file.write_text("BlockName=b1 Nodes=n[01-18]\nBlockName=b2 Nodes=n[19-36]\nBlockSizes=18,36\n")
    t = read(file)
    assert below(t) == {"b1": 18, "b2": 18}
    assert t.kinds == ("node", "block")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "SwitchName=a Nodes=n[1-2]\nSwitchName=a Nodes=n3\n",
            "line 2: switch a stands on line 1 too",
        ),
        ("SwitchName=a Nodes=n[1-2\n", r"line 1: expected a list of hosts .* got 'n\[1-2'"),
        ("SwitchName=a Nodes=n[1-99999999]\n", "at most 1,000,000 names"),
        (
            "SwitchName=a Nodes=n1\nSwitchName=b Switches=a,c\n",
            "line 2: c under b is named and not",
        ),
        ("SwitchName=a\n", "line 1: nothing hangs at a"),
        ("\nSwitchName=a Node=n1\n", "line 2: expected SwitchName .* got 'SwitchName=a Node=n1'"),
        ("SwitchName=a Nodes=n1 Nodes=n2\n", "line 1: .* each once"),
        (
            "SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n",
            "line 2: switches and blocks are of two plugins",
        ),
        ("SwitchName=a Nodes=n1\nSwitchName=b Switches=b\n", "b under b is a circle"),
        (
            "SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Switches=a\n",
            "under . under . is a circle",
        ),
        ("SwitchName=a Nodes=ALL\n", "line 1: expected a list of hosts .* got 'ALL'"),
        ("SwitchName=a Nodes=n1,a\n", "line 1: a under a is a node and a switch"),
        ("BlockSizes=18\n", "no switch and no block"),
        (
            "topology: x\ntree:\n  switches: [{switch: a, node: n1}]\n",
            "line 1: expected switch, nodes or",
        ),
        ("topology: x\ntopology: y\n", "'topology' stands twice"),
    ],
)
def test_a_wrong_file_of_slurm_is_named_with_its_line(file, text, said):
    file.write_text(text)
    with pytest.raises(ValueError, match=said) as refused:
        read(file)
    assert str(file) in str(refused.value)


def test_blanks_around_equals_and_quotes_are_as_slurm_takes_them(file):
    file.write_text('SwitchName = "a" Nodes = "n[1-3]"\nSwitchName =b Switches= a\n')
    assert below(read(file)) == {"a": 3}


def test_a_node_at_two_leaves_keeps_both_and_is_told(file):
    file.write_text("SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[3-5]\n")
    t = read(file)
    assert below(t) == {"a": 3, "b": 3}
    assert "1 nodes hang at several switches, such as n3" in t.graph_attributes["notes"][0]


LABEL = "network.topology.nvidia.com"


def node(name: str, **labels: str) -> dict:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {f"{LABEL}/{k}": v for k, v in labels.items()}},
    }


CLOUDS = {  # labels of the switch next to a node and of the one above it
    "tiers": ("fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1"),
    "July 2026": (f"{LABEL}/tier-0", f"{LABEL}/tier-1"),
    "ten tiers": (f"{LABEL}/tier-9", f"{LABEL}/tier-10"),
    "AWS": ("topology.k8s.aws/network-node-layer-3", "topology.k8s.aws/network-node-layer-2"),
    "Google": ("cloud.google.com/gce-topology-subblock", "cloud.google.com/gce-topology-block"),
    "Oracle": ("oci.oraclecloud.com/rdma.local_block_id", "oci.oraclecloud.com/rdma.hpc_island_id"),
}


@pytest.mark.parametrize(
    "kind", ["labels", "old", "instances", "instances of AWS", "yaml", *CLOUDS]
)
def test_labels_of_topograph_are_a_tree(file, kind):
    names = [(f"n{i}", f"l{i // 3}", "s1") for i in range(6)]
    if kind == "instances":
        data = {"instances": [{"id": n, "network_layers": [a, b]} for n, a, b in names]}
    elif kind == "instances of AWS":  # from the top
        data = {"Instances": [{"InstanceId": n, "NetworkNodes": [b, a]} for n, a, b in names]}
    elif kind in CLOUDS:
        near, far = CLOUDS[kind]
        labels = {"topology.kubernetes.io/zone": "z", "cloud.google.com/gce-topology-host": "h"}
        data = {
            "items": [
                {"metadata": {"name": n, "labels": {far: b, near: a, **labels}}}
                for n, a, b in names
            ]
        }
    else:
        first = "block" if kind == "old" else "leaf"
        data = {
            "kind": "List",
            "items": [node(n, **{first: a, "spine": b, "accelerator": "x"}) for n, a, b in names],
        }
    text = json.dumps(data)
    if kind == "yaml":
        text = yaml.safe_dump(data)
    elif kind == "documents":
        text = yaml.safe_dump_all(data["items"]) + "---\n"
    file.write_text(text)
    t = read(file)
    assert (t.num_hosts, t.num_switches, t.num_links) == (6, 3, 8)
    assert below(t) == {"l0": 3, "l1": 3}


def test_layers_of_aws_count_from_the_top(file):
    """The tree whose leaves were layer 1 would have one switch under 24 nodes."""
    area = "topology.k8s.aws/network-node-layer"
    file.write_text(
        json.dumps(
            {
                "items": [
                    {
                        "metadata": {
                            "name": f"i-{i}",
                            "labels": {
                                f"{area}-1": "nn-top",
                                f"{area}-2": f"nn-mid{i // 12}",
                                f"{area}-3": f"nn-leaf{i // 4}",
                                f"{LABEL}/accelerator": "cb",
                            },
                        }
                    }
                    for i in range(24)
                ]
            }
        )
    )
    t = read(file)
    assert [int((t.tier == level).sum()) for level in range(4)] == [24, 6, 2, 1]
    assert set(below(t).values()) == {4}


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node("a", leaf="l"), node("a", leaf="l")], "node 2: a stands there twice"),
        ([node("a", leaf="l"), {"metadata": {}}], "node 2: no name"),
        (
            [node("a", leaf="x", spine="y"), node("b", leaf="y", spine="x")],
            "under . under . is a circle",
        ),
        ([node("a"), node("b", leaf="")], "no node has a label of a switch"),
    ],
)
def test_wrong_labels_are_refused(file, nodes, said):
    file.write_text(json.dumps({"items": nodes}))
    with pytest.raises(ValueError, match=said):
        read(file)


def test_nodes_without_a_label_are_counted(file):
    file.write_text(json.dumps({"items": [node("a", leaf="l"), node("b")]}))
    assert "1 of 2 nodes have no label" in read(file).graph_attributes["notes"][0]


@pytest.mark.parametrize("t", [fat_tree(4), leaf_spine(3, 2, 4)], ids=repr)
def test_ns3_comes_back(t, file):
    write(t, file, "ns3")
    again = read(file)
    assert (again.num_hosts, again.num_switches, again.num_links) == (
        t.num_hosts,
        t.num_switches,
        t.num_links,
    )
    assert np.allclose(np.sort(again.capacity), np.sort(t.capacity))
    assert not again.transit[again.hosts].any()
    same = nx.vf2pp_is_isomorphic(nx.Graph(again.edges.tolist()), nx.Graph(t.edges.tolist()))
    assert same


def test_hosts_of_ns3_that_are_joined_forward(file):
    file.write_text("3 0 3\n\n0 1 200Gbps 0.005ms 0\n1 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n")
    t = read(file)
    assert t.transit.all()
    assert t.capacity.tolist() == [200 * GBIT, 100 * GBIT]
    assert t.multiplicity.tolist() == [1, 2]


def test_tabs_and_rates_in_bytes_are_as_ns3_takes_them(file):
    file.write_text("3\t1\t2\n2\n0 2 50GBps 1us 0\n1\t2\t400Gbps\t1us\t0\n")
    assert read(file).capacity.tolist() == [5e10, 5e10]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "2 0 1\n0 1 400GBPS 1us 0\n",
            "line 2: expected bps for bits or Bps for bytes, got 400GBPS",
        ),
        ("3 0 2\n0 1 200Gbps 1us 0\n", "promises 2 links, the file has 1"),
        ("2 0 1\n0 1 200 1us 0\n", "line 2: expected a rate such as 400Gbps, got 200"),
        (
            "2 0 1\n0 0 200Gbps 1us 0\n",
            "line 2: node 0 is joined to itself; join two different nodes",
        ),
        ("2 0 1 4\n0 1 200Gbps 1us 0\n", "line 1: expected nodes switches links"),
        ("3 1 1\n0 1 200Gbps 1us 0\n", "line 2: expected a whole number >= 0, got '200Gbps'"),
    ],
)
def test_a_wrong_file_of_ns3_is_named_with_its_line(file, text, said):
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read(file, "ns3")


@needs_data
def test_public_files_are_read_as_they_are():
    cases = DATA / "public-cases"
    superpod = read(cases / "slurm_topology.conf")
    assert list(below(superpod).values()) == [18, 18, 18, 18, 8]
    assert "n019" in superpod.labels
    assert "circe-n019" not in superpod.labels
    dgx = read(cases / "dgx1_ns3.txt").to_networkx()
    assert (len(dgx), dgx.size(), nx.node_connectivity(dgx)) == (8, 16, 4)
    assert nx.maximum_flow_value(dgx.to_directed(), 0, 7) == pytest.approx(1200 * GBIT)


GML = """graph [
 node [ id 0 label "a" ]
 node [ id 1 label "b" ]
 edge [ source 0 target 1 capacity 5.0e9 ]
%s]
"""


def test_gml_is_read_with_its_attributes(file):
    file.write_text(GML % "")
    t = read(file)
    assert (t.labels, t.capacity.tolist()) == (("a", "b"), [5e9])
    again = nx.path_graph(4)
    nx.write_gml(again, file)
    assert "no capacity is given" in read(file).graph_attributes["notes"][0]


def test_parallel_cables_of_gml_are_a_multiplicity_also_where_the_file_does_not_say_multigraph(
    file,
):
    file.write_text(GML % " edge [ source 0 target 1 capacity 5.0e9 ]\n")
    t = read(file)
    assert (t.multiplicity.tolist(), t.num_links) == ([2], 2)
    assert "1 parallel cables are kept as multiplicity" in t.graph_attributes["notes"]


def test_nodes_of_gml_with_the_same_label_are_named_by_their_ids(file):
    file.write_text((GML % "").replace('"b"', '"a"'))
    t = read(file)
    assert list(t.labels) == [0, 1]
    assert "named by their ids" in t.graph_attributes["notes"][0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GML % " edge [ source 0 target 0 ]\n", "no self-loops.*strict=False"),
        ("graph [ node [ id 0 label 'a ]", "no GML that can be read"),
        (GML % ' node [ id 2 label "c" ]\n', "must be connected, got 2 parts"),
        (GML % " edge [ source 0 target 1 capacity 6.0e9 ]\n", "parallel edges must agree"),
        (GML % " edge [ source 0 target 7 ]\n", "no GML that can be read"),
    ],
)
def test_wrong_gml_is_refused(file, text, said):
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read(file, "gml")


def test_self_loops_are_left_out_where_that_is_wanted(file):
    file.write_text(GML % " edge [ source 0 target 0 capacity 5.0e9 ]\n")
    t = read(file, strict=False)
    assert t.num_links == 1
    assert "1 cables from a node to itself are left out" in t.graph_attributes["notes"]


@pytest.mark.parametrize("key", ["links", "edges"])
def test_node_link_json_comes_back(file, key):
    graph = nx.MultiGraph([("a", "b"), ("a", "b"), ("b", "c")])
    nx.set_edge_attributes(graph, 5e9, "capacity")
    file.write_text(json.dumps(nx.node_link_data(graph, edges=key)))
    t = read(file)
    assert (t.labels, t.multiplicity.tolist(), t.capacity.tolist()) == (
        ("a", "b", "c"),
        [2, 1],
        [5e9, 5e9],
    )


def test_parallel_links_of_json_are_a_multiplicity_also_where_the_file_says_no_multigraph(file):
    links = [{"source": 0, "target": 1}, {"source": 1, "target": 0}]
    file.write_text(
        json.dumps({"multigraph": False, "nodes": [{"id": 0}, {"id": 1}], "links": links})
    )
    assert read(file).multiplicity.tolist() == [2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"nodes": [{"id": 1}], "links": [1], "edges": [1]}', "edges or links, got both"),
        (
            '{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}',
            "a link ends at 2, which is no node",
        ),
        ('{"nodes": [{"id": 1}, {"id": 1}], "links": []}', "an id stands twice"),
        ('{"nodes": [{"name": 1}], "links": []}', "expected nodes with ids"),
        ('{"nodes": [{"id": 1, "id": 2}], "links": []}', "'id' stands twice"),
        ('{"nodes": [{"id": 1, "x": NaN}], "links": []}', "NaN is no number"),
        ('{"nodes": [{"id": 1}], "links": [', "no JSON or YAML"),
        ("[1]", "expected nodes with ids"),
    ],
)
def test_wrong_json_is_refused(file, text, said):
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read(file, "json")


SNDLIB = """<?xml version="1.0" encoding="UTF-8"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0"><networkStructure>
<nodes coordinatesType="geographical"><node id="A"><coordinates><x>1.5</x><y>2</y></coordinates></node>
<node id="B"><coordinates><x>3</x><y>4</y></coordinates></node></nodes><links>
<link id="L1"><source> A </source><target>B</target>
<preInstalledModule><capacity>40.0</capacity><cost>0.0</cost></preInstalledModule></link>
%s</links></networkStructure>
<demands><demand id="D1"><source>A</source><target>B</target><demandValue>1</demandValue></demand></demands>
</network>"""


def test_a_network_of_sndlib_is_read(file):
    file.write_text(SNDLIB % '<link id="L2"><source>B</source><target>A</target></link>')
    t = read(file)
    assert (t.labels, t.multiplicity.tolist()) == (("A", "B"), [2])
    assert t.node_attributes["x"].tolist() == [1.5, 3.0]
    assert t.edge_attributes["id"].tolist() == [("L1", "L2")]
    assert "1 demands are left out" in t.graph_attributes["notes"]


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ('<link id="L2"><source>B</source><target>C</target></link>', "link 'L2' joins"),
        ('<link id="L2"><source>B</source><target>B</target></link>', "no self-loops"),
        ("<link>", "no XML"),
        (
            "<link "
            'id="L2"><source>A</source><target>B</target><preInstalledModule><capacity>NaN</capacity>'
            "</preInstalledModule></link>",
            "link 'L2' has a capacity of nan",
        ),
    ],
)
def test_a_wrong_network_of_sndlib_is_refused(file, link, said):
    file.write_text(SNDLIB % link)
    with pytest.raises(ValueError, match=said):
        read(file)


def test_what_is_no_network_names_the_formats(file):
    file.write_text("hello\n")
    with pytest.raises(ValueError, match="path must be a file of a network: sndlib, graphml"):
        read(file)
    assert set(READERS) >= {
        "graphml",
        "gml",
        "json",
        "sndlib",
        "slurm",
        "topograph",
        "ns3",
        "simai",
    }
