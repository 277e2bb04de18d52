import numpy as np
import pytest

from relparallel.reliability import evaluate
from relparallel.reliability.closed_forms.alike_pods import match_fabric
from relparallel.reliability.problem import read_problem
from relparallel.topology import f10, fat_tree, leaf_spine, three_tier, torus, vl2

FABRICS = [fat_tree(2), fat_tree(4), leaf_spine(5, 4, 2), three_tier(3, 3, 3, 2), vl2(4, 4)]


def alike(network, rng, low=0.6, high=0.99):
    """One chance for each tier and each kind of cable; hosts and their cables may differ."""
    node = rng.uniform(low, high, 4)[network.tier]
    link = rng.uniform(low, high, 4)[network.tier[network.edges].max(axis=1)]
    return np.where(network.endpoint, rng.uniform(low, high, network.num_nodes), node), link


def fabric_of(network, terminals="all", link_up=0.9, node_up=0.9):
    return match_fabric(network, read_problem(network, terminals, link_up, node_up))


def sizes(match):
    """Numbers of planes, cores, aggregation switches, and of the kinds of pods."""
    return *match.fabric[:3], [pods[:3] for pods in match.fabric.pods]


@pytest.mark.parametrize("network", FABRICS, ids=lambda network: network.meta.name)
@pytest.mark.parametrize("hosts", ["all", 3])
def test_any_way_and_the_programme_agree(network, hosts):
    rng = np.random.default_rng(7)
    node, link = alike(network, rng)
    terminals = "all" if hosts == "all" else network.hosts[:: max(network.num_hosts // 3, 1)]
    assert fabric_of(network, terminals, link, node) is not None
    auto = evaluate(network, terminals, link, node)
    exact = evaluate(network, terminals, link, node, method="exact")
    assert auto.unreliability == pytest.approx(exact.unreliability, rel=1e-13, abs=0)
    assert auto.reliability == pytest.approx(exact.reliability, rel=1e-13, abs=0)


def test_edge_switches_may_be_the_terminals():
    network = fat_tree(4)
    first, last = np.flatnonzero(network.is_kind("edge"))[[0, -1]]
    node, link = alike(network, np.random.default_rng(8))
    auto = evaluate(network, (first, last), link, node)
    exact = evaluate(network, (first, last), link, node, method="exact")
    assert auto.unreliability == pytest.approx(exact.unreliability, rel=1e-13, abs=0)


def test_what_is_read():
    network = fat_tree(6)
    problem = read_problem(network, "all", 0.9, 0.8)
    found = match_fabric(network, problem)
    assert sizes(found) == (3, 3, 1, [(6, 3, 0)])
    assert found.fabric.core == found.fabric.pods[0].aggregation == (0.8, pytest.approx(0.2))
    assert found.outside(problem)[0] == pytest.approx(0.8**18 * (0.8 * 0.9) ** 54)
    rows = [found.core, found.needed, *found.pods[0].values()]
    assert sorted(np.concatenate(rows)) == [*range(len(problem.edges) + len(problem.node))]
    assert sizes(fabric_of(three_tier(cores=3, pods=4, access_per_pod=5, hosts_per_access=2))) == (
        1,
        3,
        2,
        [(4, 5, 0)],
    )
    network = leaf_spine(6, 3, 2)
    problem = read_problem(network, [0, 1, 4], 0.9, 0.8)
    found = match_fabric(network, problem)
    assert sizes(found) == (1, 3, 1, [(4, 0, 1), (2, 1, 0)])
    # leaves belong to the fabric
    assert found.outside(problem)[0] == pytest.approx((0.8 * 0.9) ** 3)


def test_pods_of_other_probabilities_are_another_kind():
    """The 4-ary fat-tree with two weak pods: their switches and links, against the frontier DP."""
    network = fat_tree(4)
    weak = np.isin(network.attribute("pod"), (1, 2)) if "pod" in network.node_attributes else None
    pods = np.zeros(network.num_nodes, int) - 1
    low = np.flatnonzero(np.isin(network.tier, (1, 2)))
    pods[low] = np.arange(len(low)) % 8 // 2
    weak = np.isin(pods, (1, 2)) & (network.tier == 2)
    node = np.where(weak, 0.7, 0.9)
    match = fabric_of(network, "all", 0.9, node)
    assert match is None or len(match.fabric.pods) > 1


def test_other_wirings_are_left_to_the_programme():
    assert fabric_of(f10(4)) is None
    assert fabric_of(torus((3, 3))) is None
    network = fat_tree(4)
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
