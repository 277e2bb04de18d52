"""The failure model of a topology against its parts, lost one by one."""

from collections import Counter
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from chapters.s44.consequences import consequences
from relparallel.hardware import Cluster, cluster, llama3_interruptions
from relparallel.parallel import Placement, Strategy, step_time
from relparallel.parallel.group_bandwidth import communicating, group_links
from relparallel.published import facts
from relparallel.topology import fat_tree, leaf_spine
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    Recovery,
    blast_radius,
    failure_model,
    goodput,
    published_network_rates,
    redundant_fabric,
    simulate,
)
from relparallel.training.failing_parts import rate_table
from relparallel.training.network_parts import outside, parts_of
from relparallel.units import DAY, HOUR
from relparallel.workload import Transformer

GPT = Transformer(layers=8, hidden=1024, heads=16, vocabulary=51200, sequence=1024)
SPLIT = Strategy(tensor=4, pipeline=2, data=4)
HOME = replace(cluster("a100-80gb-selene", gpus=32), nodes=8, gpus_per_node=4, name="")
SMALL = {"gpus": 4, "servers_per_leaf": 4, "spines": 2}
FABRICS = {
    "one leaf": lambda: redundant_fabric(8, **SMALL),
    "one leaf, no relay": lambda: redundant_fabric(8, relay=False, **SMALL),
    "rails, no relay": lambda: redundant_fabric(8, 4, relay=False, **SMALL),
    "rails and planes": lambda: redundant_fabric(8, 4, 2, **SMALL),
    "planes, no relay": lambda: redundant_fabric(8, planes=2, relay=False, **SMALL),
    "leaf and spine": lambda: leaf_spine(leaves=4, spines=2, hosts_per_leaf=8),
}
OTHER = ("pipeline", "context", "data", "tensor")
CHANCE = {"cable": 1e-9, "switch": 2e-9, "nic": 3e-9}


def alone(network, place, part, known):
    """What one part does: GPUs cut off by connected components, else the step time without it."""
    alive = np.ones(network.num_nodes + len(network.edges), dtype=bool)
    alive[list(part.nodes)] = False
    alive[network.num_nodes + np.array(part.pairs, dtype=int)] = False
    graph = nx.Graph()
    graph.add_nodes_from(range(network.num_nodes))
    graph.add_edges_from(network.edges[alive[network.num_nodes :]].tolist())
    graph.remove_nodes_from(part.nodes)
    forwards = graph.subgraph(np.flatnonzero(network.transit).tolist())
    at = [
        [
            i
            for i, h in enumerate(network.hosts.tolist())
            if h in found or found & set(graph.adj.get(h, ()))
        ]
        for found in map(set, nx.connected_components(forwards))
    ]
    gone = sorted(set(range(network.num_hosts)) - set(max(at, key=len)))
    if gone:
        return "stop", tuple(gone), 1.0
    total = step_time(GPT, SPLIT, HOME, 64, placement=place, network=network, alive=alive).total
    return ("degrade" if total > known * (1 + 1e-9) else "none"), (), max(total / known, 1.0)


def lost(place, gpus):
    """Whether all ranks with one shard of a state that is not split are among these GPUs."""
    return any(set(group) <= set(gpus) for group in place.data_groups.tolist())


@pytest.mark.parametrize("order", [None, OTHER])
@pytest.mark.parametrize("name", FABRICS)
def test_domains_are_what_all_parts_lost_one_by_one_add_up_to(name, order):
    network = FABRICS[name]()
    place = Placement(strategy=SPLIT) if order is None else Placement(strategy=SPLIT, order=order)
    usual = step_time(GPT, SPLIT, HOME, 64, placement=place, network=network).total
    expected = Counter()
    for part in parts_of(network):
        if not outside(network, part.name):
            continue
        effect, gone, slow = alone(network, place, part, usual)
        family = (
            "cable"
            if part.name.endswith("cable")
            else part.name
            if part.name == "nic"
            else "switch"
        )
        rate = 4e-9 if part.name == "plane" else CHANCE[family]
        hit = sum(bool(set(gone) & set(replica)) for replica in place.replicas.tolist())
        if effect != "none":
            key = (
                part.name,
                effect,
                round(slow, 8),
                len({g // 4 for g in gone}),
                hit,
                lost(place, gone),
            )
            expected[key] += rate
    rates = CHANCE | ({"plane": 4e-9} if network.shared_risk else {})
    model = failure_model(
        network,
        SPLIT,
        place,
        workload=GPT,
        cluster=HOME,
        global_batch=64,
        network_rates=rates,
        repair=HOUR,
    )
    found = Counter()
    for domain in model.domains[
        len(rate_table("llama3", HOME).causes) - 2 :
    ]:  # without the network and the cards
        part = domain.component
        key = (
            part.name,
            part.effect,
            round(part.slowdown, 8),
            domain.nodes,
            domain.replicas,
            domain.state_lost,
        )
        found[key] += domain.rate
        assert part.repair == HOUR
        assert not part.bound
    assert set(found) == set(expected)
    assert all(found[key] == pytest.approx(expected[key], rel=1e-12) for key in expected)


@pytest.mark.parametrize("name", FABRICS)
def test_without_a_workload_the_slowdown_is_one_over_the_bandwidth_left(name):
    network, place = FABRICS[name](), Placement(strategy=SPLIT)
    model = failure_model(network, SPLIT, cluster=HOME)
    known = failure_model(network, SPLIT, workload=GPT, cluster=HOME, global_batch=64)
    worst = {}
    for part in parts_of(network):
        alive = np.ones(network.num_nodes + len(network.edges), dtype=bool)
        alive[list(part.nodes)] = False
        alive[network.num_nodes + np.array(part.pairs, dtype=int)] = False
        slow = 1.0
        for degree, pattern in communicating(SPLIT).items():
            had = group_links(place, network, degree, pattern=pattern).bandwidth.min()
            has = group_links(place, network, degree, pattern=pattern, alive=alive).bandwidth.min()
            slow = max(slow, had / has if has else np.inf)
        worst[part.name] = max(worst.get(part.name, 1.0), slow)
    bounds = {entry.name: entry for entry in model.classes if entry.bound}
    for entry in known.classes:
        if entry.slowdown > 1:
            most = max(other.slowdown for other in model.classes if other.name == entry.name)
            assert entry.slowdown <= most * (1 + 1e-12)
            assert most == pytest.approx(worst[entry.name], rel=1e-9)
    assert all(entry.effect == "degrade" for entry in bounds.values())


def test_hosts_that_are_nodes_stop_all_their_gpus():
    network = leaf_spine(leaves=4, spines=2, hosts_per_leaf=4)
    split = Strategy(tensor=8, pipeline=4, data=4)
    model = failure_model(network, split)
    domains = {domain.component.name: domain for domain in model.domains}
    leaf, cable = domains["leaf"], domains["host-leaf cable"]
    assert (leaf.parts, leaf.nodes, leaf.component.gpus[:2]) == (
        4,
        4,
        (leaf.component.gpus[0], leaf.component.gpus[0] + 1),
    )
    assert (cable.parts, cable.nodes, cable.replicas) == (16, 1, 1)
    assert leaf.component.level == "switch"
    assert domains["spine"].component.slowdown == pytest.approx(2.0)


def test_the_network_of_the_table_is_counted_once():
    network = redundant_fabric(8, planes=2, **SMALL)
    model = failure_model(network, SPLIT, cluster=HOME)
    names = [entry.name for entry in model.classes]
    assert "Network switch/cable" not in names
    assert "NIC" not in names
    table = {row.cause: row for row in llama3_interruptions().causes}
    (nic,) = (domain for domain in model.domains if domain.component.name == "nic")
    # nodes of four GPUs, not of eight
    assert nic.rate == pytest.approx(8 * table["NIC"].rate * 4 / 8)
    rates = published_network_rates()
    by_name = {domain.component.name: domain.rate for domain in model.domains}
    assert by_name["leaf"] == pytest.approx(4 * rates["switch"])
    assert by_name["nic-leaf cable"] == pytest.approx(64 * rates["cable"])
    assert by_name["plane"] == 0


def test_a_table_of_all_hardware_keeps_its_total():
    network = redundant_fabric(8, **SMALL)
    model = failure_model(network, SPLIT, cluster=HOME, rates="rsc1")
    assert sum(domain.rate for domain in model.domains) == pytest.approx(8 * 6.5e-3 / DAY * 4 / 8)
    with pytest.raises(ValueError, match="network_rates must stay below"):
        failure_model(network, SPLIT, cluster=HOME, rates="rsc1", network_rates={"cable": 1.0})


def test_tables_are_what_was_published_of_a_node():
    """Against the rates per 1,000 node-days of another row of the facts."""
    text = facts("training-reliability")["RATE-001"].inputs_text
    shown = {
        "rsc2": "RSC-2 2.34",
        "bloom": "BLOOM 2.98",
        "llama3": "Llama-3 3.79",
        "rsc1": "RSC-1 6.50",
        "mpt7b": "MPT-7B 7.66",
        "opt175b": "OPT 14.1",
    }
    for name, words in shown.items():
        assert words in text
        nodes = Cluster(nodes=2048)
        table = rate_table(name, nodes)
        total = sum(row.rate * nodes.parts(row.level) for row in table.causes if name != "llama3")
        total = total or table.events / (54 * DAY)
        digits = len(words.split(".")[1])
        assert round(1000 * DAY * total / 2048, digits) == pytest.approx(float(words.split()[-1]))
        assert table.source
    log = rate_table("glm130b", Cluster(nodes=96)).causes[0]
    assert (log.events, log.components, log.duration / HOUR) == (10, 96, 53 * 24 + 20)


@pytest.mark.parametrize("policy", ["spares", "elastic"])
def test_goodput_of_a_topology_is_what_is_simulated(policy):
    network = redundant_fabric(8, relay=False, **SMALL)
    model = failure_model(
        network,
        SPLIT,
        workload=GPT,
        cluster=HOME,
        global_batch=64,
        rates="rsc1",
        repair=6 * HOUR,
        network_rates={"cable": 2e-10, "leaf": 3e-9, "spine": 4e-8, "leaf-spine cable": 1e-8},
    )
    effects = {domain.component.effect for domain in model.domains if domain.rate}
    assert effects == {"stop", "degrade"}
    plan = Checkpointing(levels=(CheckpointLevel(name="storage", cost=30.0, restart=200.0),))
    way = Recovery(policy, repair=6 * HOUR, restart=100.0, pause=20.0)
    closed = goodput(model, 5.0, plan, way, spares=2 if policy == "spares" else 0)
    drawn = simulate(
        model,
        5.0,
        plan,
        way,
        2 if policy == "spares" else 0,
        years=400.0,
        rng=np.random.default_rng(5),
    )
    low, high = drawn.brackets["productive"]
    error = (high - low) / 2 / 2.093
    assert abs(drawn.buckets["productive"] - closed.buckets["productive"]) <= 3 * error
    assert error < 1e-3


def test_what_a_part_of_a_rail_stops_is_spread_over_nodes():
    """Without relays a rail leaf cuts off one GPU of each server of its block, and all replicas."""
    network = redundant_fabric(8, 4, relay=False, **SMALL)
    model = failure_model(network, SPLIT, cluster=HOME)
    (leaf,) = (domain for domain in model.domains if domain.component.name == "leaf")
    assert (leaf.parts, leaf.nodes, len(leaf.component.gpus)) == (8, 4, 4)
    radius = blast_radius(leaf.component, Placement(strategy=SPLIT), HOME)
    assert radius.replicas == leaf.replicas
    plan = Checkpointing(levels=(CheckpointLevel(name="storage", cost=30.0, restart=200.0),))
    table = consequences(model, plan, Recovery("elastic", repair=HOUR, pause=20.0))
    assert table.loc["leaf", "replicas"] == leaf.replicas
    assert table.loc["leaf", "ranks"] == 4
    assert table.loc["leaf", "nodes missing"] == 4


@pytest.mark.parametrize(
    ("extra", "match"),
    [
        ({"network_rates": {"core": 1e-9}}, "network_rates must name parts"),
        ({"repair": {"core": 1.0}}, "repair must name parts"),
        ({"workload": GPT}, "global_batch must be given"),
        (
            {"workload": GPT, "global_batch": 64, "cluster": Cluster(nodes=8, gpus_per_node=4)},
            "cluster must have",
        ),
        ({"network_rates": {"cable": -1.0}}, "network_rates"),
        ({"software": "megatron-2022"}, "software must be left out without a workload"),
        (
            {"workload": GPT, "global_batch": 64, "software": "megatron-1990"},
            "software must be one of",
        ),
    ],
)
def test_wrong_extras_are_refused(extra, match):
    with pytest.raises(ValueError, match=match):
        failure_model(redundant_fabric(8, **SMALL), SPLIT, **({"cluster": HOME} | extra))


def test_what_a_slow_part_costs_follows_the_software():
    """Software that hides more of the sums loses less with a leaf; the default is a step's."""
    network, place = FABRICS["planes, no relay"](), Placement(strategy=SPLIT)
    known = {"workload": GPT, "cluster": HOME, "global_batch": 64}

    def slowdown(software):
        model = failure_model(network, SPLIT, **known, software=software)
        return next(entry.slowdown for entry in model.classes if entry.name == "leaf")

    (leaf, *_) = (part for part in parts_of(network) if part.name == "leaf")
    alive = np.ones(network.num_nodes + len(network.edges), dtype=bool)
    alive[list(leaf.nodes)] = False
    for software in ("megatron-2022", "megatron-2025"):
        options = {"placement": place, "network": network, "software": software}
        usual = step_time(GPT, SPLIT, HOME, 64, **options).total
        without = step_time(GPT, SPLIT, HOME, 64, **options, alive=alive).total
        assert slowdown(software) == pytest.approx(without / usual, rel=1e-9)
    assert slowdown("megatron-2022") != slowdown("megatron-2025")
    assert slowdown(None) == slowdown(step_time(GPT, SPLIT, HOME, 64).software)


def test_extras_need_a_topology():
    with pytest.raises(ValueError, match="repair must be left out"):
        failure_model(Cluster(nodes=4), SPLIT, repair=HOUR)


def test_repairs_by_name_and_by_family():
    model = failure_model(
        fat_tree(4), Strategy(tensor=8, data=16), repair={"cable": HOUR, "edge": DAY}
    )
    times = {entry.name: entry.repair for entry in model.classes}
    assert (times["host-edge cable"], times["edge"], times["nic"]) == (HOUR, DAY, None)


def test_counted_parts_check_their_fields():
    with pytest.raises(ValueError, match="gpus must be given"):
        ComponentClass(name="leaf", level="switch", rate=1e-9, parts=3)
    leaf = ComponentClass(name="leaf", level="switch", rate=1e-9, parts=3, gpus=(1, 99))
    with pytest.raises(ValueError, match="gpus"):
        FailureModel(classes=(leaf,), cluster=Cluster(nodes=2))
