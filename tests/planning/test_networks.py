"""A plan's networks: by name with the cluster's links, from files of schedulers, nodes and GPUs."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import relparallel as rp
from relparallel.optimize import joint
from relparallel.parallel import Strategy, step_time
from relparallel.planning import FABRICS
from relparallel.planning.inputs import network_of
from relparallel.topology import leaf_spine, write
from relparallel.workload import transformer

HALL = rp.cluster("h100-80gb-dgx", gpus=64)
MODEL = transformer("gpt3-6.7b")


def seconds(network, cluster, split):
    return step_time(MODEL, split, cluster, 64, network=network_of(network, cluster))


@pytest.mark.parametrize("name", FABRICS)
def test_every_fabric_by_name_has_the_links_of_the_cluster(name):
    """Where both networks carry all at full rate, the wiring alone changes nothing."""
    split = Strategy(tensor=8, data=8)
    usual, wired = seconds(None, HALL, split), seconds(name, HALL, split)
    assert wired.tensor == pytest.approx(usual.tensor, rel=1e-9)
    assert wired.data == pytest.approx(usual.data, rel=1e-9)
    slow = replace(HALL, network_bandwidth=HALL.network_bandwidth / 2)
    assert seconds(name, slow, split).data > 1.5 * wired.data
    device = replace(HALL.accelerator, node_link=HALL.accelerator.node_link / 2)
    assert seconds(name, replace(HALL, accelerator=device), split).tensor > 1.5 * wired.tensor


LEAVES = "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-7]\nSwitchName=c Nodes=n8\n"


@pytest.mark.parametrize("text", [LEAVES, LEAVES + "SwitchName=top Switches=a,b,c\n"])
def test_leaves_of_a_scheduler_stop_their_own_nodes(tmp_path, text):
    path = tmp_path / "topology.conf"
    path.write_text(text)
    t = network_of(path, HALL)
    notes = t.graph_attributes["notes"]
    assert (
        "of the switches that nodes hang at, 1 stop 4 nodes, 1 stop 3 nodes, 1 stop 1 nodes"
        in notes
    )
    assert any("nothing joins 3 switches" in note for note in notes) == ("top" not in text)
    assert "nodes_per_switch" not in t.graph_attributes
    split = Strategy(tensor=8, data=8)
    assert seconds(path, HALL, split).total == pytest.approx(
        seconds(None, HALL, split).total, rel=1e-9
    )
    model = rp.failure_model(t, split, cluster=HALL)
    stops = Counter(
        {len(c.gpus): c.parts for c in model.classes if c.name == "leaf" and c.effect == "stop"}
    )
    assert stops == {32: 1, 24: 1, 8: 1}


def test_equal_leaves_are_told_and_a_job_takes_the_first_nodes(tmp_path):
    path = tmp_path / "topology.conf"
    path.write_text(
        "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-8]\nSwitchName=c Nodes=n[9-12]\n"
    )
    t = network_of(path, HALL)
    assert t.graph_attributes["nodes_per_switch"] == 4
    assert "the job is on the first 8 of 12 nodes of the network" in t.graph_attributes["notes"]
    assert t.num_hosts == 64
    found = joint(MODEL, HALL, global_batch=64, network=t, limits={"tensor": 8, "schedule": "1f1b"})
    assert found.network is t


def test_a_network_of_nodes_keeps_the_speed_of_its_cables():
    nodes = leaf_spine(leaves=4, spines=1, hosts_per_leaf=2)
    fast = replace(nodes, capacity=np.full(len(nodes.edges), 4 * HALL.network_bandwidth))
    split = Strategy(tensor=8, data=8)
    usual = seconds(None, HALL, split)
    assert seconds(fast, HALL, split).total == pytest.approx(usual.total, rel=1e-9)
    assert seconds(nodes, HALL, split).data > 4 * usual.data  # 400 Gbit/s a node in place of 3,200


def test_a_network_of_gpus_is_taken_as_it_is(tmp_path):
    path = tmp_path / "topo.txt"
    write(leaf_spine(leaves=8, spines=8, hosts_per_leaf=8), path, "ns3")
    assert network_of(path, HALL).num_hosts == 64


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "rail_only",
            "network must be a file of a network, or one of 'two-level', .* got 'rail_only'; did "
            "you",
        ),
        ("nothere.conf", "network must be a file of a network, .* got 'nothere.conf'"),
        (
            leaf_spine(leaves=2, spines=1, hosts_per_leaf=2),
            "network must have a host for each of 64 GPUs, or",
        ),
        (rp.topology.torus((3, 3, 3)), "network must have a host for each of 64 GPUs, or"),
    ],
)
def test_a_network_that_does_not_fit_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        network_of(given, HALL)
