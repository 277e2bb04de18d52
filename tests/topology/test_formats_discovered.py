"""Networks that tools have found: every cable, host and NVLink, against what wrote the file."""

import re
import zlib
from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from public_data import DATA, needs_data
from relparallel.topology import read
from relparallel.units import GB, GBIT


@pytest.fixture
def rng():
    return np.random.default_rng(3)


DEVICES = ("mlx5_{}", "HCA-{}", "hfi1_{}", "mlx5_bond_{}", "ibp{}s0")


def fabric(rng, hosts=6, leaves=3, spines=2, device="mlx5_{}"):
    """Hosts with one to three adapters at random leaves, leaves under all spines, some cables twice."""
    graph = nx.MultiGraph()
    for host in range(hosts):
        for card in range(int(rng.integers(1, 4))):
            leaf = f"leaf-{rng.integers(leaves) if card else host % leaves}"
            graph.add_edge(f"node-{host}", leaf, card=device.format(card), speed="4xNDR")
    for leaf in range(leaves):
        for spine in range(spines):
            for _ in range(int(rng.integers(1, 4))):
                graph.add_edge(f"leaf-{leaf}", f"spine-{spine}", card="", speed="4xNDR")
    return graph


def scan(graph, *, adapters=True):
    """What ibnetdiscover prints of a graph, one block for each switch and adapter."""
    ports, blocks = Counter(), {}
    for a, b, data in graph.edges(data=True):
        ends = []
        for name in (a, b):
            host = name.startswith("node")
            said = f"{name} {data['card']}" if host else name
            guid = f"{'H' if host else 'S'}-{hash_of(said):016x}"
            ports[guid] += 1
            ends.append((host, guid, ports[guid], said))
        for (host, guid, port, said), (far_host, far, far_port, far_said) in (ends, ends[::-1]):
            kind = "Ca" if host else "Switch"
            lines = blocks.setdefault(guid, [f'{kind}\t65 "{guid}"\t\t# "{said}"'])
            own, other = (f"({guid[2:]})" if one else "" for one in (host, far_host))
            comment = f'lid 1 lmc 0 "{far_said}" lid 2' if host else f'"{far_said}" lid 2'
            lines.append(
                f'[{port}]{own}\t"{far}"[{far_port}]{other} \t\t# {comment} {data["speed"]}'
            )
    kept = [lines for lines in blocks.values() if adapters or lines[0].startswith("Switch")]
    return "#\n# Topology file: generated\n#\n\n" + "\n\n".join("\n".join(one) for one in kept)


def hash_of(text):
    """A GUID of a name, the same in every run."""
    return zlib.crc32(text.encode())


def counted(t):
    """Cables between every two labels, and their speed."""
    return {
        frozenset((t.labels[u], t.labels[v])): (int(many), float(speed))
        for (u, v), many, speed in zip(t.edges.tolist(), t.multiplicity, t.capacity, strict=True)
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("adapters", [True, False])
def test_a_scan_has_every_host_and_every_cable_once(file, rng, device, adapters):
    """A reader that halves the lines, or takes every adapter for a host, counts others."""
    graph = fabric(rng, device=device)
    text = scan(graph, adapters=adapters)
    file.write_text(text)
    t = read(file)
    wanted = Counter(frozenset(pair) for pair in graph.edges())
    assert {pair: many for pair, (many, _) in counted(t).items()} == wanted
    assert (t.num_hosts, t.num_switches, t.num_links) == (6, 5, graph.number_of_edges())
    assert set(t.capacity.tolist()) == {400 * GBIT}
    assert dict(zip(t.labels, t.tier.tolist(), strict=True)) == {
        node: {"node": 0, "leaf": 1, "spine": 2}[node.partition("-")[0]] for node in graph
    }
    assert len(set(re.findall(r'"(H-\w+)"', text))) > t.num_hosts
    assert not adapters or len(re.findall(r"(?m)^\[", text)) == 2 * t.num_links
    assert adapters or len(re.findall(r"(?m)^\[", text)) / 2 != t.num_links


@pytest.mark.parametrize("cut", [("node-0", "node-5"), ("node-1", "node-2")])
def test_cuts_of_a_scan_are_those_of_the_graph(file, rng, cut):
    graph = fabric(rng)
    file.write_text(scan(graph))
    plain = nx.Graph()
    for a, b in graph.edges():
        plain.add_edge(a, b, capacity=graph.number_of_edges(a, b))
    found = nx.Graph()
    for (a, b), (many, _) in ((tuple(pair), value) for pair, value in counted(read(file)).items()):
        found.add_edge(a, b, capacity=many)
    assert nx.maximum_flow_value(found, *cut) == nx.maximum_flow_value(plain, *cut)


def test_adapters_of_storage_are_left_out_where_that_is_asked(file):
    """Their switch was a leaf of all hosts, and their cables a part of the network of training."""
    graph = nx.MultiGraph()
    for host in range(6):
        for card in range(4):
            ends = f"node-{host}", f"leaf-{host // 3}"
            graph.add_edge(*ends, card=f"mlx5_{card}", speed="4xNDR")
        graph.add_edge(f"node-{host}", "leaf-storage", card="mlx5_4", speed="4xHDR")
    graph.add_edges_from([("leaf-0", "spine"), ("leaf-1", "spine")], card="", speed="4xNDR")
    file.write_text(scan(graph))
    assert read(file).num_links == graph.number_of_edges()
    t = read(file, devices="mlx5_[0-3]")
    graph.remove_edges_from(list(graph.edges("leaf-storage")))
    wanted = Counter(frozenset(pair) for pair in graph.edges())
    assert {pair: many for pair, (many, _) in counted(t).items()} == wanted
    notes = " ".join(t.graph_attributes["notes"])
    assert "6 adapters of other devices are left out" in notes
    assert "no host reaches 1 switches, such as leaf-storage" in notes
    assert "mlx5_0, mlx5_1, mlx5_2, mlx5_3; devices= of" in notes
    with pytest.raises(ValueError, match=r"devices must match some of mlx5_0, .* got 'eth'"):
        read(file, devices="eth")


@pytest.mark.parametrize(
    ("speed", "gbit"),
    [
        *[("1xSDR", 2.5), ("4xDDR", 20), ("4xQDR", 40), ("4xFDR10", 40), ("4xFDR", 56)],
        *[("4xEDR", 100), ("2xHDR", 100), ("4xHDR", 200), ("2xNDR", 200), ("4xNDR", 400)],
        *[("4xXDR", 800), ("4X NDR", 400), ("12xHDR", 600), ("4xNDR s=4 w=2 v=1 e=8", 400)],
    ],
)
def test_a_speed_is_its_lanes_times_the_rate_of_one(file, speed, gbit):
    graph = nx.MultiGraph()
    graph.add_edge("node-4xHDR", "leaf-0", card="mlx5_0", speed=speed)  # a name is no speed
    file.write_text(scan(graph))
    assert read(file).capacity.tolist() == [gbit * GBIT]


def test_a_slow_cable_of_a_bundle_is_told_and_the_bundle_keeps_its_sum(file, rng):
    graph = fabric(rng)
    graph.add_edge("leaf-0", "spine-0", card="", speed="1xEDR")
    file.write_text(scan(graph))
    t = read(file)
    many, speed = counted(t)[frozenset(("leaf-0", "spine-0"))]
    assert many == graph.number_of_edges("leaf-0", "spine-0")
    assert many * speed == pytest.approx(((many - 1) * 400 + 25) * GBIT)
    notes = " ".join(t.graph_attributes["notes"])
    assert "1 of 25" in notes
    assert "cables between leaf-0 and spine-0 differ" in notes


HEAD = 'Switch\t41 "S-01"\t\t# "leaf-1" enhanced port 0 lid 4 lmc 0\n'


def test_what_is_no_host_is_none(file):
    """Aggregation nodes sit inside a switch, routers join subnets, an empty port joins nothing."""
    file.write_text(
        HEAD
        + '[1]\t"H-02"[1](2) \t\t# "node-a mlx5_0" lid 9 4xHDR\n'
        + '[2]\t"H-0x03"[1](3) \t\t# "node-b HCA-1" lid 8 4xHDR\n'
        + '[3][ext 7]\t"R-04"[1](4) \t\t# "router" lid 7 4xHDR\n[4]\n[5]\t\t# down\n'
        + '[41]\t"H-05"[1](5) \t\t# "Mellanox Technologies Aggregation Node" lid 6 4xHDR\n'
        + '\nCa\t1 "H-05"\t\t# "Mellanox Technologies Aggregation Node"\n'
        + '[1](5) \t"S-01"[41]\t\t# lid 6 lmc 0 "leaf-1" lid 4 4xHDR\n'
        + '\nCa\t1 "H-03"\t\t# "node-b HCA-1"\n[1](3) \t"S-01"[2]\t\t# lid 8 lmc 0 "old" lid 4 4xHDR\n'
        + '\nRt\t1 "R-04"\t\t# "router"\n[1](4) \t"S-01"[3]\t\t# lid 7 lmc 0 "leaf-1" lid 4 4xHDR\n'
        + '\nSwitch\t41 "S-09"\t\t# "alone" base port 0 lid 1 lmc 0\n'
    )
    t = read(file)
    assert [t.labels[v] for v in t.hosts] == ["node-a", "node-b"]
    assert set(t.labels) == {"node-a", "node-b", "leaf-1", "router", "alone"}
    assert t.num_links == 3
    notes = " ".join(t.graph_attributes["notes"])
    assert "1 aggregation nodes inside switches are left out" in notes
    assert "2 ports without a cable" in notes
    assert "no host reaches 1 switches, such as alone" in notes


def test_adapters_that_are_called_alike_are_not_one_host(file):
    """Names of the maker and localhost stand at every card; nodes-a's two cards are one host."""
    names = ["MT4123 ConnectX6 Mellanox Technologies"] * 3 + ["localhost mlx5_0"] * 2
    names += ["node-a mlx5_0", "node-a mlx5_1", "atlas35"]
    file.write_text(
        HEAD
        + "".join(
            f'[{i}]\t"H-1{i}"[1](1) \t\t# "{name}" lid 9 4xHDR\n' for i, name in enumerate(names, 1)
        )
    )
    t = read(file)
    assert t.num_hosts == 3 + 2 + 1 + 1
    assert "8 adapters are of 7 hosts, by their names" in t.graph_attributes["notes"]
    assert "5 of them share a name: each is taken for a host" in t.graph_attributes["notes"]
    assert "localhost mlx5_0 (H-15)" in t.labels


def test_switches_of_the_same_name_stay_apart(file, rng):
    graph = fabric(rng)
    text = scan(graph)
    for number in range(3):
        text = text.replace(f'"leaf-{number}"', '"Quantum Mellanox Technologies"')
    file.write_text(text.replace('"spine-0"', '"MF0;SPINE-0:MQM9700/U1"'))
    t = read(file)
    assert (t.num_switches, t.num_links) == (5, graph.number_of_edges())
    assert "SPINE-0" in t.labels


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD, "no cable joins what it lists; scan from a host"),
        ('[1]\t"H-02"[1](2)\t# "a mlx5_0" lid 9 4xHDR\n' + HEAD, "line 1: expected a port of the"),
        (HEAD + '[1]\t"H-02[1](2)\n', "line 2: expected a port"),
        (HEAD + '[1]\t"H-02"[1](2)\t# "a mlx5_0" lid 9 4xWDR\n', "line 2: expected lanes of SDR"),
        (
            HEAD + '[1]\t"H-02"[1](2)\t# "a mlx5_0" lid 9 4xHDR\n[1]\t"H-03"[1](2)\t# "b" 4xHDR\n',
            "line 3: port 1 of S-01 has two cables",
        ),
    ],
)
def test_a_wrong_scan_is_named_with_its_line(file, text, said):
    file.write_text(text)
    with pytest.raises(ValueError, match=said) as refused:
        read(file)
    assert str(file) in str(refused.value)


LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")
KINDS = ("PCIe switch", "PCIe bridges", "host bridge", "NUMA node", "sockets")


def matrix(cell, names, *, legend=None, colour=False, numa=None):
    """What nvidia-smi prints of a function of two devices."""
    head = "\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"
    lines = [head.replace("GPU0", "\x1b[4mGPU0", 1) + "\x1b[0m" if colour else head]
    for name in names:
        cells = [" X " if name == other else cell(name, other) for other in names]
        tail = f"\t0-47,96-143\t{numa[name]}\t\tN/A" if numa and name.startswith("GPU") else ""
        lines.append("\t".join([name, *cells]) + tail)
    lines += ["", "Legend:", "", "  X    = Self", "  SYS  = Connection traversing PCIe", ""]
    lines += ["NIC Legend:", ""] if legend else []
    return "\n".join([*lines, *(f"  {short}: {name}" for short, name in (legend or {}).items())])


def joint(t, a, b):
    """Kind of the highest part on the way between two devices over PCIe, by networkx."""
    tree = t.to_networkx()
    tree.remove_nodes_from([n for n, d in tree.nodes(data=True) if d["kind"] == "nvswitch"])
    inner = ("gpu", "nic")
    kinds = nx.get_node_attributes(tree, "kind")
    tree.remove_edges_from(
        [(u, v) for u, v in tree.edges() if kinds[u] in inner and kinds[v] in inner]
    )
    return max((kinds[n] for n in nx.shortest_path(tree, a, b)[1:-1]), key=KINDS.index)


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_what_two_devices_have_in_common_is_read_back(file, seed, colour):
    """Devices on a random tree of five levels; the way between any two is the matrix's cell."""
    rng = np.random.default_rng(seed)
    names = [*(f"GPU{i}" for i in range(6)), *(f"NIC{i}" for i in range(5))]
    # ancestors from the top: the first that differs says the level
    path = {name: tuple(rng.integers(2, size=4)) for name in names}
    same = {
        pair: next((i for i in range(4) if path[pair[0]][i] != path[pair[1]][i]), 4)
        for pair in combinations(names, 2)
    }

    def cell(a, b):
        return LEVELS[4 - same[(a, b) if (a, b) in same else (b, a)]]

    legend = {f"NIC{i}": f"mlx5_{i + 3}" for i in range(5)}
    file.write_text(matrix(cell, names, legend=legend, colour=colour))
    t = read(file)
    assert [t.labels[v] for v in t.hosts] == names[:6]
    assert set(legend.values()) <= set(t.labels)
    for a, b in same:
        assert joint(t, legend.get(a, a), legend.get(b, b)) == KINDS[LEVELS.index(cell(a, b))]


@pytest.mark.parametrize(
    ("gpus", "many", "device", "each", "generation"),
    [
        (8, 18, "h100-80gb", 450 * GB, 25 * GB),
        (8, 12, "a100-80gb", 300 * GB, 25 * GB),
        (8, 8, "h800-80gb", 200 * GB, 25 * GB),
        (16, 6, "v100-32gb", 150 * GB, 25 * GB),
        (4, 18, "gb200-186gb", 900 * GB, 50 * GB),
    ],
)
def test_links_of_all_pairs_that_no_gpu_has_go_to_nvswitches(
    file, gpus, many, device, each, generation
):
    """The matrix gives every pair all links of a GPU: counted by pairs they were many times as many."""
    names = [f"GPU{i}" for i in range(gpus)]
    file.write_text(matrix(lambda *_: f"NV{many}", names))
    t = read(file, accelerator=device)
    inside = t.is_kind("nvswitch")
    links = inside[t.edges].any(axis=1)
    assert (inside.sum(), t.multiplicity[links].sum()) == (1, gpus * many)
    assert many * gpus * (gpus - 1) // 2 > 2 * gpus * many or gpus == 4
    assert t.capacity[links].tolist() == pytest.approx([generation] * gpus)
    assert (t.capacity * t.multiplicity)[links].tolist() == pytest.approx([each] * gpus)


def test_a_gpu_that_lost_links_has_fewer_to_its_nvswitch(file):
    """The matrix tells the smaller of both ends; what each GPU has left comes back."""
    left = dict(zip((f"GPU{i}" for i in range(8)), (18, 18, 16, 18, 12, 18, 18, 18), strict=True))
    file.write_text(matrix(lambda a, b: f"NV{min(left[a], left[b])}", list(left)))
    t = read(file, link_bandwidth=25 * GB)
    links = t.is_kind("nvswitch")[t.edges].any(axis=1)
    assert t.multiplicity[links].tolist() == list(left.values())


CUBE = [(a, b) for a, b in combinations(range(8), 2) if a // 4 == b // 4 or b - a == 4]


@pytest.mark.parametrize(
    ("pairs", "gpus", "many", "device"),
    [
        (list(combinations(range(4), 2)), 4, 4, "a100-40gb"),
        (list(combinations(range(4), 2)), 4, 6, "gh200-96gb"),
        (CUBE, 8, 1, "v100-16gb"),
        ([(0, 1), (2, 3)], 4, 12, "a100-80gb"),
    ],
)
def test_links_that_a_gpu_has_join_it_to_the_other(file, pairs, gpus, many, device):
    def cell(a, b):
        pair = tuple(sorted((int(a[3:]), int(b[3:]))))
        return f"NV{many}" if pair in pairs else "SYS"

    file.write_text(matrix(cell, [f"GPU{i}" for i in range(gpus)]))
    t = read(file, accelerator=device)
    direct = t.endpoint[t.edges].all(axis=1)
    assert t.edges[direct].tolist() == [list(pair) for pair in pairs]
    assert set(t.multiplicity[direct].tolist()) == {many}
    assert "nvswitch" not in t.kinds


def test_gpus_of_one_numa_node_are_joined_there_also_behind_nvlinks(file):
    names = [f"GPU{i}" for i in range(4)]
    numa = dict(zip(names, (0, 0, 1, 1), strict=True))
    file.write_text(matrix(lambda *_: "NV18", names, numa=numa))
    t = read(file)
    assert joint(t, "GPU0", "GPU1") == "NUMA node"
    assert joint(t, "GPU1", "GPU2") == "sockets"
    assert "NVLink 25 GB/s" in " ".join(t.graph_attributes["notes"])


TWO = matrix(lambda *_: "NV4", ["GPU0", "GPU1"])


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (TWO.replace("GPU1\tNV4", "GPU1\tNV3"), {}, "line 3: expected the same as above"),
        (TWO.replace("GPU1\tNV4", "GPU1\tOK"), {}, "line 3: expected .* got 'OK'"),
        (TWO.replace("\n\tGPU", "\n").replace("\nGPU1\tNV4\t X ", ""), {}, "no row of GPU1"),
        (TWO.replace("GPU1\tNV4\t X ", "GPU1\tNV4"), {}, "line 3: expected X .* got ''"),
        (TWO, {"link_bandwidth": 0}, "link_bandwidth must be"),
        (TWO, {"accelerator": "a100"}, "name must be"),
        (TWO, {"accelerator": "a100-80gb", "link_bandwidth": 1e9}, "must be None with accelerator"),
    ],
)
def test_a_wrong_matrix_is_named_with_its_line(file, text, options, said):
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read(file, "nvidia-smi", **options)


@needs_data
def test_public_networks_are_read_as_they_are():
    cases = DATA / "public-cases"
    scanned, built, labelled = (
        read(cases / name)
        for name in ("ibnetdiscover.txt", "clab.yml", "nodes_topograph_july2026.yaml")
    )
    for t, hosts, links in ((scanned, 4, 12), (built, 2, 6), (labelled, 3, 5)):
        assert (t.num_hosts, t.is_kind("leaf").sum(), t.num_links) == (hosts, 2, links)
    assert [t.is_kind("spine").sum() for t in (scanned, built, labelled)] == [2, 2, 1]
    assert set(scanned.capacity.tolist()) == {400 * GBIT}
    assert scanned.multiplicity[scanned.edges[:, 0] >= 4].tolist() == [2, 2, 2, 2]
