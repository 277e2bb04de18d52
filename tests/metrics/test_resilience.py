from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.metrics import Survival, hosts_connected, survival
from relparallel.reliability import evaluate
from relparallel.topology import (
    SharedRisk,
    Topology,
    bcube,
    equipped,
    fat_tree,
    leaf_spine,
    sample_failures,
    torus,
    with_power_domains,
)

graphs = st.builds(
    lambda n, p, seed: nx.gnp_random_graph(n, p, seed=seed),
    st.integers(2, 10),
    st.floats(0.1, 0.7),
    st.integers(0, 10**6),
)
marks = st.lists(st.booleans(), min_size=10, max_size=10)


def oracle(t, alive):
    """Share of the pairs of hosts with a path, and of the hosts around one part of forwarding nodes."""
    nodes, pairs = alive[: t.num_nodes], alive[t.num_nodes :]
    graph = nx.Graph()
    graph.add_nodes_from(np.flatnonzero(nodes).tolist())
    graph.add_edges_from(
        (u, v) for (u, v), up in zip(t.edges.tolist(), pairs, strict=True) if up and nodes[u] and nodes[v]
    )
    hosts = [v for v in graph if t.endpoint[v]]
    silent = {v for v in graph if not t.transit[v]}
    joined = sum(
        nx.has_path(graph.subgraph([v for v in graph if v in (a, b) or v not in silent]), a, b)
        for a in hosts for b in hosts if a != b
    )  # fmt: skip
    around = [
        sum(h in part or any(u in part for u in graph[h]) for h in hosts)
        for part in nx.connected_components(graph.subgraph([v for v in graph if v not in silent]))
    ]
    alone = [1] if hosts else []
    total = t.num_hosts
    return joined / (total * (total - 1)), max([*around, *alone], default=0) / total


@settings(max_examples=150)
@given(graphs, marks, marks, st.integers(0, 10**6))
def test_what_survives_is_what_paths_say(graph, endpoint, transit, seed):
    nx.set_node_attributes(graph, dict(enumerate([True, True, *endpoint])), "endpoint")
    nx.set_node_attributes(graph, dict(enumerate(transit)), "transit")
    t = Topology.from_networkx(graph, strict=False)
    alive = np.random.default_rng(seed).random(t.num_nodes + len(t.edges)) < 0.8
    found = survival(t, alive)
    pairs, accessible = oracle(t, alive)
    assert found.pairs == pytest.approx(pairs, rel=1e-14)
    assert found.accessible == pytest.approx(accessible, rel=1e-14)


def test_racks_on_one_feed_are_lost_together():
    """Every rack has hosts: all hosts are joined when no power domain is down."""
    t = with_power_domains(leaf_spine(6, 2, 2), racks_per_domain=2)
    found = hosts_connected(t, 20_000, np.random.default_rng(1), shared_risk_down=0.1)
    assert found.lower < 0.9**3 < found.upper


def test_availabilities_of_the_parts_are_chances_of_failure():
    """Two hosts on a switch: three nodes and two cables that all must work."""
    t = equipped(leaf_spine(1, 1, 2), mtbf={"server": 9.0, "switch": 9.0, "cable": 9.0}, mttr=1.0)
    down = {
        "link_down": 1 - t.edge_attributes["availability"],
        "node_down": 1 - t.node_attributes["availability"],
    }
    found = hosts_connected(t, 20_000, np.random.default_rng(2), **down)
    assert found.lower < 0.9**5 < found.upper


@pytest.mark.parametrize("t", [fat_tree(4), bcube(3, 1), leaf_spine(3, 2, 2)], ids=repr)
def test_everything_survives_where_nothing_fails(t):
    everything = np.ones(t.num_nodes + len(t.edges), dtype=bool)
    assert survival(t, everything) == Survival(pairs=1.0, accessible=1.0)
    assert survival(t, ~everything) == Survival(pairs=0.0, accessible=0.0)


def multi_homed():
    """Three hosts on two switches each, no switch with all of them: joined in pairs."""
    graph = nx.Graph(
        [(h, f"s{i}") for h, pair in {"a": (0, 1), "b": (1, 2), "c": (2, 0)}.items() for i in pair]
    )
    for v in graph:
        graph.nodes[v].update(endpoint=v in "abc", transit=v not in "abc")
    return Topology.from_networkx(graph, strict=False)


@pytest.mark.parametrize(
    ("t", "down"),
    [
        (torus((3, 3)), {"link_down": 0.1}),
        (fat_tree(4), {"link_down": 0.01}),
        (nx.petersen_graph(), {"link_down": 0.2, "node_down": 0.02}),
        (replace(torus((4,)), multiplicity=np.array([2, 1, 3, 1])), {"link_down": 0.3}),
    ],
)
def test_the_interval_holds_the_exact_probability(t, down):
    whole = t if isinstance(t, Topology) else Topology.from_networkx(t, strict=False)
    chances = {"link_down": down["link_down"], "node_down": down.get("node_down", 0.0)}
    truth = evaluate(whole, terminals=tuple(whole.labels[v] for v in whole.hosts), method="exact", **chances)
    found = hosts_connected(t, 40_000, np.random.default_rng(6), confidence=0.999, **down)
    assert found.lower < truth.reliability < found.upper
    assert found.upper - found.lower < 0.03


def test_hosts_of_two_switches_do_not_speak_for_each_other():
    """Each pair meets at a switch of its own, so that every cable is needed."""
    found = hosts_connected(multi_homed(), 40_000, np.random.default_rng(6), link_down=0.1, confidence=0.999)
    assert found.lower < 0.9**6 < found.upper


@pytest.mark.parametrize("t", [multi_homed(), bcube(2, 2), torus((3, 3))], ids=repr)
def test_every_scenario_is_judged_as_by_itself(t):
    chances = {"link_down": 0.15, "node_down": 0.03}
    samples = 700
    joined = hosts_connected(t, samples, np.random.default_rng(2), **chances).value * samples
    stream = np.random.default_rng(2).spawn(1)[0]
    drawn = sample_failures(t, samples, stream, **chances)
    assert round(joined) == sum(survival(t, drawn.alive(i)).pairs == 1 for i in range(samples))
    assert 0 < joined < samples


def test_the_interval_covers_as_often_as_stated():
    rng, truth, runs = np.random.default_rng(8), 0.9**5 + 5 * 0.1 * 0.9**4, 400
    found = [hosts_connected(nx.cycle_graph(5), 200, rng, link_down=0.1, confidence=0.9) for _ in range(runs)]
    covered = np.mean([f.lower <= truth <= f.upper for f in found])
    assert covered >= 0.9 - 3 * (0.9 * 0.1 / runs) ** 0.5
    mean = np.mean([f.value for f in found])
    assert mean == pytest.approx(truth, abs=4 * (truth * (1 - truth) / (200 * runs)) ** 0.5)


def test_the_answer_does_not_depend_on_the_workers():
    arguments = (fat_tree(4), 3 * 4096 + 5)
    alone = hosts_connected(*arguments, np.random.default_rng(1), link_down=0.02)
    with ThreadPoolExecutor(3) as executor:
        many = hosts_connected(*arguments, np.random.default_rng(1), link_down=0.02, executor=executor)
    assert many == alone


def test_a_shared_risk_counts_once():
    t = replace(torus((6,)), shared_risk=(SharedRisk(name="duct", edges=(0, 3)),))
    found = hosts_connected(t, 50_000, np.random.default_rng(3), shared_risk_down=0.25)
    assert found.lower < 0.75 < found.upper


def test_certain_states_are_certain():
    rng = np.random.default_rng(0)
    assert hosts_connected(fat_tree(4), 100, rng).value == 1
    assert hosts_connected(fat_tree(4), 100, rng, link_down=1.0).value == 0
    assert hosts_connected(nx.disjoint_union(nx.path_graph(2), nx.path_graph(2)), 100, rng).value == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topology": nx.empty_graph(1)}, "topology must have at least two hosts"),
        ({"samples": 0}, "samples must be"),
        ({"rng": None}, "rng must be"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"executor": 3}, "executor must be"),
        ({"link_down": -0.1}, "link_down must be"),
    ],
)
def test_bad_arguments_are_named(arguments, error):
    good = {"topology": fat_tree(4), "samples": 10, "rng": np.random.default_rng(0)}
    with pytest.raises((TypeError, ValueError), match=error):
        hosts_connected(**good | arguments)


@pytest.mark.parametrize("alive", [np.ones(5, dtype=bool), np.ones(84), None])
def test_a_bad_state_is_named(alive):
    with pytest.raises((TypeError, ValueError), match="alive must be"):
        survival(fat_tree(4), alive)
