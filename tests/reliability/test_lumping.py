import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import relparallel as rp
from relparallel.reliability import evaluate, fat_tree_pods_connected
from relparallel.reliability.closed_forms.alike_pods import Fabric, Pods
from relparallel.reliability.lumped.lumping import lumped, terminals_connected
from relparallel.reliability.lumped.pod_partitions import layouts
from relparallel.reliability.probability import CERTAIN, part
from relparallel.reliability.problem import read_problem
from relparallel.topology import fat_tree


def fat_tree_connected(
    k,
    core_up=1.0,
    aggregation_up=1.0,
    edge_up=1.0,
    core_link_up=1.0,
    edge_link_up=1.0,
    host_up=1.0,
    host_link_up=1.0,
):
    """All hosts of a fat-tree, as its symmetry answers."""
    tree = fat_tree(k)
    node = np.array([host_up, edge_up, aggregation_up, core_up])[tree.tier]
    link = np.array([1.0, host_link_up, edge_link_up, core_link_up])[
        tree.tier[tree.edges].max(axis=1)
    ]
    return lumped(tree, read_problem(tree, "all", link, node))


CHANCES = st.sampled_from([0.0, 0.25, 0.5, 0.8, 0.99, 1.0])
CLASSES = ("aggregation", "core_link", "edge_link", "other_link", "edge")


def fabric(planes, cores, aggregations, pods, core, aggregation, edge, core_link, edge_link):
    """Parts of a class are alike in all pods."""
    chances = [part(up) for up in (aggregation, core_link, edge_link, edge_link, edge)]
    return Fabric(
        planes, cores, aggregations, part(core), tuple(Pods(*pod, *chances) for pod in pods)
    )


def unlumped(some, given="down"):
    """The same question to the frontier DP, which knows nothing of the symmetry."""
    graph, side, number = nx.Graph(), ("up", "down").index(given), 0
    cores = [("c", plane, c) for plane in range(some.planes) for c in range(some.cores)]
    graph.add_nodes_from(cores, p=some.core[side])
    for pods in some.pods:
        for _ in range(pods.copies):
            seats = [("t", number, e) for e in range(pods.terminals)]
            idle = [("e", number, e) for e in range(pods.others)]
            middle = [
                ("a", number, plane, s)
                for plane in range(some.planes)
                for s in range(some.aggregations)
            ]
            graph.add_nodes_from(seats, p=CERTAIN[side])
            graph.add_nodes_from(idle, p=pods.edge[side])
            graph.add_nodes_from(middle, p=pods.aggregation[side])
            for switch in middle:
                above = [core for core in cores if core[1] == switch[2]]
                graph.add_edges_from(((switch, core) for core in above), p=pods.core_link[side])
                graph.add_edges_from(((switch, edge) for edge in seats), p=pods.edge_link[side])
                graph.add_edges_from(((switch, edge) for edge in idle), p=pods.other_link[side])
            number += 1
    terminals = [v for v in graph if v[0] == "t"]
    return evaluate(
        graph, terminals, method="exact", **{f"link_{given}": "p", f"node_{given}": "p"}
    )


def assert_same(lumped, exact, rel=1e-13):
    assert lumped.reliability == pytest.approx(exact.reliability, rel=rel, abs=0)
    assert lumped.unreliability == pytest.approx(exact.unreliability, rel=rel, abs=0)


@st.composite
def fabrics(draw):
    planes, cores, aggregations = draw(
        st.sampled_from([(1, 1, 1), (1, 2, 2), (1, 3, 2), (2, 2, 1), (3, 1, 1)])
    )
    sizes = draw(
        st.lists(
            st.tuples(st.just(1), st.integers(1, 2), st.integers(0, 1)), min_size=2, max_size=3
        )
    )
    sizes += [(1, 0, 2)] * draw(st.integers(0, 1))
    pods = [Pods(*size, *(part(draw(CHANCES)) for _ in CLASSES)) for size in sizes]
    return Fabric(planes, cores, aggregations, part(draw(CHANCES)), tuple(pods))


@settings(max_examples=60, deadline=None)
@given(some=fabrics())
def test_lumping_changes_nothing(some):
    assert_same(terminals_connected(some), unlumped(some))


@pytest.mark.parametrize(
    "ups",
    [(0.95, 0.9, 0.98, 0.97, 0.93), (0.999, 0.9999, 1.0, 0.99, 0.999), (0.5, 0.4, 0.9, 0.3, 0.6)],
)
def test_the_4_ary_fat_tree_with_all_parts_failing(ups):
    network = fat_tree(4)
    node = np.array([1.0, ups[2], ups[1], ups[0]])[network.tier]
    link = np.array([1.0, 1.0, ups[4], ups[3]])[network.tier[network.edges].max(axis=1)]
    assert_same(fat_tree_connected(4, *ups), evaluate(network, "all", link, node, method="exact"))


def test_the_6_ary_fat_tree_against_the_closed_form_of_switch_failures():
    found = fat_tree_connected(6, core_up=0.9, aggregation_up=0.85)
    assert_same(found, fat_tree_pods_connected(6, 0.9, 0.85))
    # enumeration of 2^21 states
    assert found.unreliability == pytest.approx(2.0436756487e-02, rel=1e-10)


def test_the_cores_of_the_6_ary_fat_tree_with_four_pods():
    some = fabric(3, 3, 1, [(4, 3, 0)], 0.95, 0.9, 1.0, 0.97, 0.93)
    assert_same(terminals_connected(some), unlumped(some))


@pytest.mark.slow
def test_the_8_ary_fat_tree_where_others_have_a_closed_form():
    """Failing switches, and links to the core: a sum over partitions of the pods."""
    row = rp.published.facts("network-reliability")["NR-mob-k8"]
    given = dict(row.inputs)
    found = fat_tree_connected(
        8, given["core_up"], given["aggregation_up"], core_link_up=1 - given["core_link_down"]
    )
    assert found.unreliability == pytest.approx(row.value, rel=2e-14, abs=0)
    assert found.states == 1_806_502
    cores = layouts(4, 4)
    assert sum(int(some.ways.sum()) for some in cores) == 82_864_869_803  # Bell(17) - 1
    assert sum(len(some.ways) for some in cores) == 286_878


@pytest.mark.slow
def test_the_8_ary_fat_tree_with_all_parts_failing_loses_its_smallest_cuts_first():
    """Four aggregation switches of a pod, each down or cut from one edge switch: ratio 1 + O(x)."""
    x = 2.0**-20
    cut = 8 * ((2 * x) ** 4 + 4 * ((5 * x) ** 4 - (2 * x) ** 4))
    found = fat_tree_connected(8, 1 - x, 1 - 2 * x, 1.0, 1 - x, 1 - 3 * x).unreliability
    assert 1 - 10 * x < found / cut < 1


@pytest.mark.parametrize("down", [1e-3, 1e-9, 1e-30, 1e-70, 1e-150])
def test_failure_keeps_its_digits(down):
    rare = (1.0, down)
    some = Fabric(2, 2, 1, rare, (Pods(4, 2, 0, *[rare] * 5),))
    found = terminals_connected(some).unreliability
    assert found == pytest.approx(unlumped(some).unreliability, rel=1e-13, abs=0)
    assert found == pytest.approx(28 * down**2, rel=20 * math.sqrt(down), abs=0)


def test_success_keeps_its_digits():
    some = fabric(2, 2, 1, [(4, 2, 0)], 1e-9, 1e-9, 1.0, 1e-9, 1e-9)
    found = terminals_connected(some)
    assert found.reliability == pytest.approx(unlumped(some, "up").reliability, rel=1e-13, abs=0)
    assert 0 < found.reliability < 1e-100


def test_perfect_and_hopeless_parts():
    for ups in ((1.0,) * 5, (1.0, 1.0, 0.3, 1.0, 1.0)):
        found = terminals_connected(fabric(4, 4, 1, [(8, 4, 0)], *ups))
        assert (found.reliability, found.unreliability, found.states) == (1.0, 0.0, 0)
    for hopeless in (0, 1, 3, 4):
        ups = [0.9] * 5
        ups[hopeless] = 0.0
        found = terminals_connected(fabric(4, 4, 1, [(8, 4, 0)], *ups))
        assert (found.reliability, found.unreliability) == (0.0, 1.0)


def test_hosts_and_edge_switches_multiply_outside():
    whole = fat_tree_connected(4, 0.9, 0.9, 0.97, 0.95, 0.95, 0.99, 0.98)
    inner = fat_tree_connected(4, 0.9, 0.9, 1.0, 0.95, 0.95)
    assert whole.reliability == pytest.approx(
        inner.reliability * 0.97**8 * (0.99 * 0.98) ** 16, rel=1e-14
    )


def test_more_parts_that_work_help():
    ups = [0.9, 0.8, 0.7, 0.85, 0.9]
    some = fabric(2, 2, 1, [(2, 2, 1), (1, 0, 2)], *ups)
    changes = [some._replace(core=part(0.95))]
    changes += [
        some._replace(pods=tuple(pods._replace(**{name: part(0.95)}) for pods in some.pods))
        for name in CLASSES
    ]
    for better in changes:
        assert terminals_connected(better).unreliability < terminals_connected(some).unreliability


def test_many_pods_cost_nothing():
    """A thousand leaves under two spines, all links perfect: what fails is both spines."""
    some = fabric(1, 2, 1, [(1000, 1, 0)], 0.99, 1.0, 1.0, 1.0, 1.0)
    assert terminals_connected(some).unreliability == pytest.approx(1e-4, rel=1e-12)
    assert terminals_connected(some).states == 4


def test_the_answer_is_lumped_and_exact():
    found = fat_tree_connected(6, core_up=0.99, core_link_up=0.99)
    assert (found.method, found.exact, found.states) == ("exact", True, 2868)


def test_what_cannot_be_lumped():
    assert fat_tree_connected(10, 0.9) is None  # the states of its cores are too many
    with pytest.raises(ValueError, match="two pods"):
        terminals_connected(fabric(2, 2, 1, [(1, 2, 0), (3, 0, 2)], 0.9, 0.9, 0.9, 0.9, 0.9))
