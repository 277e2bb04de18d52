import numpy as np
import pytest

from relparallel.reliability import evaluate
from relparallel.reliability.lumped.pod_recognition import recognise
from relparallel.reliability.problem import read_problem
from relparallel.topology import f10, fat_tree, leaf_spine, three_tier, torus, vl2

FABRICS = [fat_tree(2), fat_tree(4), leaf_spine(5, 4, 2), three_tier(3, 3, 3, 2), vl2(4, 4)]


def alike(network, rng, low=0.6, high=0.99):
    """One chance for each tier and each kind of cable; hosts and their cables may differ."""
    node = rng.uniform(low, high, 4)[network.tier]
    link = rng.uniform(low, high, 4)[network.tier[network.edges].max(axis=1)]
    return np.where(network.endpoint, rng.uniform(low, high, network.num_nodes), node), link


def fabric_of(network, terminals="all", link_up=0.9, node_up=0.9):
    return recognise(network, read_problem(network, terminals, link_up, node_up))


@pytest.mark.parametrize("network", FABRICS, ids=lambda network: network.meta.name)
@pytest.mark.parametrize("hosts", ["all", 3])
def test_lumped_and_exact_agree(network, hosts):
    rng = np.random.default_rng(7)
    node, link = alike(network, rng)
    terminals = "all" if hosts == "all" else network.hosts[:: max(network.num_hosts // 3, 1)]
    assert fabric_of(network, terminals, link, node) is not None
    auto = evaluate(network, terminals, link, node)
    exact = evaluate(network, terminals, link, node, method="exact")
    assert auto.unreliability == pytest.approx(exact.unreliability, rel=1e-13, abs=0)
    assert auto.reliability == pytest.approx(exact.reliability, rel=1e-13, abs=0)
    assert auto.states < exact.states or network.num_hosts < 3


def test_edge_switches_may_be_the_terminals():
    network = fat_tree(4)
    first, last = np.flatnonzero(network.is_kind("edge"))[[0, -1]]
    node, link = alike(network, np.random.default_rng(8))
    auto = evaluate(network, (first, last), link, node)
    exact = evaluate(network, (first, last), link, node, method="exact")
    assert (auto.width, exact.width > 0) == (0, True)
    assert auto.unreliability == pytest.approx(exact.unreliability, rel=1e-13, abs=0)


def test_what_is_read():
    fabric, own = fabric_of(fat_tree(6), link_up=0.9, node_up=0.8)
    assert (fabric.planes, fabric.cores, fabric.aggregations, fabric.pods) == (3, 3, 1, ((6, 3, 0),))
    assert fabric.core == fabric.aggregation == (0.8, pytest.approx(0.2))
    assert own[0] == pytest.approx(0.8**18 * (0.8 * 0.9) ** 54)
    fabric, _ = fabric_of(three_tier(cores=3, pods=4, access_per_pod=5, hosts_per_access=2))
    assert (fabric.planes, fabric.cores, fabric.aggregations, fabric.pods) == (1, 3, 2, ((4, 5, 0),))
    fabric, own = fabric_of(leaf_spine(6, 3, 2), [0, 1, 4], node_up=0.8)
    assert (fabric.planes, fabric.cores, sorted(fabric.pods)) == (1, 3, [(2, 1, 0), (4, 0, 1)])
    assert own[0] == pytest.approx((0.8 * 0.9) ** 3)  # the leaves themselves belong to the fabric


def test_other_wirings_are_left_to_the_programme():
    assert fabric_of(f10(4)) is None
    assert fabric_of(torus((3, 3))) is None
    network = fat_tree(4)
    assert fabric_of(network, [0, 1]) is None  # one pod: a path need not meet a core
    assert fabric_of(network, network.switches) is None  # cores are terminals
    link = np.full(network.num_links, 0.9)
    assert fabric_of(network, "all", link) is not None
    link[-1] = 0.8
    assert fabric_of(network, "all", link) is None  # one core link is another kind
    link[-1] = 0.0
    assert fabric_of(network, "all", link) is None  # one core link is missing
    node = np.full(network.num_nodes, 0.9)
    node[0] = 0.5
    assert fabric_of(network, "all", 0.9, node) is not None  # hosts may differ
    node[np.flatnonzero(network.is_kind("aggregation"))[0]] = 0.5
    assert fabric_of(network, "all", 0.9, node) is None


def test_fabrics_with_too_many_states_are_left_alone():
    assert fabric_of(fat_tree(10)) is None
    assert fabric_of(leaf_spine(4, 200, 1)) is None
    assert fabric_of(fat_tree(8)) is not None
