"""What simulators build from our files, read in their own ways; files that are replaced whole."""

from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

import relparallel as rp
from relparallel.topology import Topology, bcube, fat_tree, leaf_spine, torus
from relparallel.topology.formats import _text
from relparallel.topology.formats.graphml import read_graphml, write_graphml
from relparallel.topology.formats.simai import read_simai, write_simai
from relparallel.topology.formats.simulators import write_booksim, write_htsim, write_ns3
from small_networks import FILED, rail_network


def fingerprint(graph: nx.Graph) -> tuple[str, list[tuple[int, int]]]:
    """What two networks share that are one up to names: colour refinement, and all distances."""
    found = rp.metrics.hop_statistics(nx.convert_node_labels_to_integers(nx.Graph(graph.edges)))
    plain = nx.Graph(graph.edges)
    nx.set_edge_attributes(plain, 1, "cable")
    colours = nx.weisfeiler_lehman_graph_hash(plain, edge_attr="cable", iterations=4)
    return colours, sorted(found.histogram.items())


# ------------------------------------------------------------------------------------------ ns-3,
# htsim


@pytest.mark.parametrize("t", [*FILED[:-1], rail_network()], ids=repr)
def test_the_reader_of_ns3_builds_the_same_network(t, file):
    """Read as ``topof >> node_num >> switch_num >> link_num`` and the loops after it do."""
    write_ns3(t, file)
    words = iter(file.read_text().split())
    nodes, switches, links = (int(next(words)) for _ in range(3))
    listed = {int(next(words)) for _ in range(switches)}
    graph = nx.MultiGraph()
    graph.add_nodes_from((i, {"switch": i in listed}) for i in range(nodes))
    for _ in range(links):
        u, v, capacity, latency, _ = (next(words) for _ in range(5))
        graph.add_edge(
            int(u), int(v), capacity=_text.read_rate(capacity), latency=_text.read_delay(latency)
        )
    assert next(words, None) is None
    back = Topology.from_networkx(graph)
    for name in ("edges", "multiplicity", "capacity", "latency"):
        np.testing.assert_array_equal(getattr(back, name), getattr(t, name))
    assert listed == set(t.switches.tolist())


def htsim_network(text: str) -> nx.MultiGraph:
    """Read and wire as htsim: hosts at ToR i // radix, full pods, core p + A l at aggregation p."""
    head, tiers, current = {}, [], None
    for words in (line.split() for line in text.splitlines() if line.strip()):
        if words[0] == "Tier":
            current = {}
            tiers.append(current)
        else:
            (head if current is None else current)[words[0]] = int(words[1])
    nodes, pods = head["Nodes"], head["Nodes"] // head["Podsize"]
    tor, agg = tiers[:2]
    tors = nodes // tor["Radix_Down"]
    up = nodes * tor["Downlink_speed_Gbps"] // (agg["Downlink_speed_Gbps"] * tor["Oversubscribed"])
    aggs = up // (pods * agg["Radix_Down"])
    graph = nx.MultiGraph()
    graph.add_edges_from((("host", i), ("tor", i // tor["Radix_Down"])) for i in range(nodes))
    for switch in range(tors):
        pod = switch // (tors // pods)
        for other in range(pod * aggs, (pod + 1) * aggs):
            graph.add_edges_from([(("tor", switch), ("agg", other))] * agg["Bundle"])
    if head["Tiers"] == 3:
        core = tiers[2]
        for switch in range(pods * aggs):
            for step in range(agg["Radix_Up"] // core["Bundle"]):
                other = switch % aggs + aggs * step
                graph.add_edges_from([(("agg", switch), ("core", other))] * core["Bundle"])
    return graph


def with_delay(t: Topology, seconds: float = 1e-6) -> Topology:
    return replace(t, latency=np.full(len(t.edges), seconds))


def bundled() -> Topology:
    t = with_delay(leaf_spine(4, 2, 8))
    up = ~t.endpoint[t.edges].any(axis=1)
    return replace(t, multiplicity=np.where(up, 2, 1))


@pytest.mark.parametrize(
    "t",
    [with_delay(fat_tree(4)), with_delay(fat_tree(6)), with_delay(leaf_spine(4, 2, 8)), bundled()],
    ids=repr,
)
def test_htsim_wires_the_same_network(t, file):
    write_htsim(t, file, switch_latency=2e-9)
    theirs = htsim_network(file.read_text())
    ours = nx.MultiGraph()
    for (u, v), cables in zip(t.edges.tolist(), t.multiplicity.tolist(), strict=True):
        ours.add_edges_from([(u, v)] * cables)
    assert fingerprint(nx.Graph(theirs)) == fingerprint(nx.Graph(ours))
    assert sorted(d for _, d in theirs.degree) == sorted(d for _, d in ours.degree)
    assert theirs.number_of_edges() == t.num_links
    assert file.read_text().count("Switch_Latency_ns 2\n") == int(file.read_text().split()[3])


def moved_host() -> Topology:
    """Leaf-spine whose hosts are numbered across the racks."""
    t = with_delay(leaf_spine(2, 2, 2))
    swap = np.array([0, 2, 1, 3, 4, 5, 6, 7])
    return Topology.of(
        edges=swap[t.edges], node_kind={"host": 4, "leaf": 2, "spine": 2}, meta=t.meta, latency=1e-6
    )


@pytest.mark.parametrize(
    ("t", "message"),
    [
        (
            fat_tree(4),
            "latency must be a whole number of ns, at least 1, for htsim, got 0 ns; set it",
        ),
        (with_delay(fat_tree(4), 1.5e-9), "latency must be a whole number of ns"),
        (
            replace(with_delay(fat_tree(4)), capacity=np.full(48, 1.0)),
            "capacity must be a whole number of Gbit/s",
        ),
        (with_delay(bcube(3, 1)), "every cable must join neighbouring tiers; write another format"),
        (with_delay(torus((3, 3))), "it needs 2 or 3 tiers of switches, got 0"),
        (
            with_delay(leaf_spine(3, 4, 2)),
            "downwards to upwards capacity must be a whole ratio, got 2 x 400",
        ),
        (
            with_delay(rp.topology.f10(4)),
            "every pod must divide the core switches among its switches",
        ),
        (moved_host(), "hosts must be numbered rack by rack; number the hosts rack by rack"),
        (
            replace(with_delay(fat_tree(4)), latency=np.linspace(1e-6, 1e-5, 48)),
            "tier 0 must have one number for latency",
        ),
    ],
)
def test_what_htsim_would_wire_otherwise_is_refused(t, message, file):
    with pytest.raises(ValueError, match=message):
        write_htsim(t, file)
    assert not file.exists()


# ----------------------------------------------------------------------------------------------
# BookSim


def booksim_network(text: str) -> tuple[dict[int, int], dict[tuple[int, int], int]]:
    """Router of every node and cycles of every channel, read as ``AnyNet::readFile`` does."""
    home: dict[int, int] = {}
    cycles: dict[tuple[int, int], int] = {}
    for line in text.splitlines():
        words = line.split()
        head, rest = int(words[1]), words[2:]
        assert words[0] == "router"
        for kind, number, length in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
            if kind == "node":
                assert home.setdefault(int(number), head) == head
            else:
                cycles[head, int(number)] = int(length)
    return home, cycles


@pytest.mark.parametrize("t", [with_delay(t, 3e-9) for t in FILED], ids=repr)
def test_booksim_reads_the_same_network(t, file):
    write_booksim(t, file)
    home, cycles = booksim_network(file.read_text())
    assert sorted(home) == list(range(t.num_hosts))
    assert set(cycles.values()) <= {3}
    assert all((v, u) in cycles for u, v in cycles)
    graph = nx.Graph(list(cycles))
    graph.add_nodes_from(home.values())
    assert sorted(graph) == list(range(len(graph)))
    node = [("node", i) for i in range(t.num_hosts)]
    alone = {i for i in range(t.num_hosts) if t.degrees[t.hosts[i]] != 1}
    graph.add_edges_from((node[i], home[i]) for i in home if i not in alone)
    assert graph.number_of_edges() == len(t.edges)
    assert len(t.edges) == 0 or fingerprint(graph) == fingerprint(nx.Graph(t.edges.tolist()))


def test_hosts_in_a_row_get_routers(file):
    write_booksim(nx.path_graph(3), file, cycle=1e-6)
    assert file.read_text().splitlines() == [
        "router 0 node 0 1 router 1 1",
        "router 1 node 1 1 router 0 1 router 2 1",
        "router 2 node 2 1 router 1 1",
    ]


@pytest.mark.parametrize(
    ("t", "message"),
    [
        (bundled(), "nodes 32 and 36 have parallel cables; merge them"),
        (
            replace(fat_tree(4), capacity=np.linspace(1, 2, 48)),
            "capacities differ; give all cables one",
        ),
        (nx.Graph([(0, 1), (2, 3)]), "it is not connected; write its parts one by one"),
        (
            replace(bcube(2, 1), transit=np.arange(8) >= 4),
            "host 0 has 2 cables and forwards nothing",
        ),
    ],
)
def test_what_booksim_cannot_say_is_refused(t, message, file):
    with pytest.raises(ValueError, match=message):
        write_booksim(t, file)
    assert not file.exists()


# ----------------------------------------------------------------------------------------- all of
# them

WRITERS = [write_graphml, write_simai, write_ns3, write_htsim, write_booksim]


@pytest.mark.parametrize("write", WRITERS)
def test_a_file_is_replaced_whole_or_not_at_all(write, file, monkeypatch):
    t = with_delay(fat_tree(4))
    write(t, file)
    before = file.read_bytes()
    monkeypatch.setattr(_text.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write(replace(t, latency=2 * t.latency), file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("write", WRITERS)
def test_the_same_network_gives_the_same_bytes(write, tmp_path):
    paths = [tmp_path / "first", tmp_path / "second"]
    for path in paths:
        write(with_delay(fat_tree(4)), path)
    assert all(a.read_bytes() == b.read_bytes() for a, b in pairwise(paths))


@pytest.mark.parametrize("read", [read_graphml, read_simai])
def test_a_missing_file_is_missing(read, file):
    with pytest.raises(FileNotFoundError, match="network"):
        read(file)


@pytest.mark.parametrize(
    "call", [*(lambda p, w=w: w(fat_tree(4), p) for w in WRITERS[:3]), read_simai]
)
def test_a_folder_is_no_file(call, tmp_path):
    with pytest.raises(ValueError, match="path must name a file"):
        call(tmp_path)
