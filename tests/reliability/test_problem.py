import subprocess
import sys
from dataclasses import astuple

import networkx as nx
import numpy as np
import pytest

from relparallel.reliability import evaluate
from relparallel.reliability.frontier.compiled_sweep import ANY, NotExactError, require_fit
from relparallel.reliability.frontier.decomposition import Outcome, compiled, solved
from relparallel.reliability.problem import read_problem
from relparallel.topology import as_topology


def graphs():
    """Labels in order, out of order, and of several kinds; neighbours in any order."""
    rng = np.random.default_rng(7)
    for seed in range(20):
        graph = nx.gnp_random_graph(int(rng.integers(2, 12)), 0.5, seed=seed)
        pairs = rng.permutation(np.array(graph.edges, dtype=int).reshape(-1, 2)).tolist()
        shuffled = nx.Graph(pairs)
        shuffled.add_nodes_from(graph)
        yield from (graph, shuffled, nx.relabel_nodes(shuffled, lambda v: (v, "pod")))
    yield nx.complete_graph(6).subgraph([1, 2, 4])  # a view
    yield nx.empty_graph(3)
    yield nx.Graph(nx.path_graph(4).edges, name="named")


@pytest.mark.parametrize(
    "chances", [(0.9, 1), (0.9, 0.8), (1, 1.0), (1.0, 1.0, 1e-9), (1.0, 1.0, 0.25, 0)]
)
def test_a_plain_graph_is_read_as_its_topology_is(chances):
    for graph in graphs():
        labels = list(graph)
        for terminals in ("all", labels[:1], labels[::-2], tuple(labels)):
            quick, general = (
                read_problem(g, terminals, *chances) for g in (graph, as_topology(graph))
            )
            for one, other in zip(astuple(quick)[:5], astuple(general)[:5], strict=True):
                assert one.dtype == other.dtype
                assert np.array_equal(one, other)


def test_attributes_of_a_plain_graph_count():
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, {(0, 1): {"cost": 3}})
    assert read_problem(graph, "all", 0.5, 1.0).link.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    nx.set_edge_attributes(graph, {(0, 1): {"multiplicity": 2}})
    assert read_problem(graph, "all", 0.5, 1.0).link.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    nx.set_node_attributes(graph, {1: {"transit": False}})
    assert len(read_problem(graph, [0, 2], 0.5, 1.0).edges) == 0


@pytest.mark.parametrize("terminals", [[0, 0], [], [7], ["0"], [0, None]])
def test_terminals_that_are_no_distinct_nodes_are_refused(terminals):
    with pytest.raises(ValueError, match="terminals must"):
        read_problem(nx.path_graph(3), terminals, 0.5, 1.0)


def test_a_loop_is_refused():
    with pytest.raises(ValueError, match="graph must"):
        read_problem(nx.Graph([(0, 1), (1, 1)]), "all", 0.5, 1.0)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("link_up", {(0, 1): [0.5, 0.5]}, "link_up must give one number each"),
        ("node_up", {0: [0.5]}, "node_up must give one number each"),
        ("link_up", {(0, 1): 0.5, (1, 0): 0.5}, r"link_up must name every link once, got \(1, 0\)"),
    ],
)
def test_a_mapping_gives_one_number_to_a_part(kind, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        evaluate(nx.path_graph(3), **{kind: given})


@pytest.mark.parametrize("up", [[0.5, 0.5], 0.5, "up"])
def test_one_of_up_and_down_is_given(up):
    with pytest.raises(ValueError, match=r"link_up must be left at 1\.0 where link_down is given"):
        evaluate(nx.path_graph(3), link_up=up, link_down=0.5)


@pytest.mark.parametrize("seconds", [1e13, 1e300, 1e308])
def test_all_the_time_in_the_world_is_no_limit(seconds):
    assert evaluate(nx.cycle_graph(5), link_up=0.5, max_seconds=seconds).reliability == 6 / 32


def test_no_chances_for_no_links():
    assert evaluate(nx.empty_graph(1), link_up=[], node_up=[0.75]).reliability == 0.75


def test_parts_that_are_always_down_are_parts():
    """They change nothing now, but something would change if they worked."""
    graph = nx.Graph(["sa", "at", "sb", "bt"])
    dead = evaluate(graph, ("s", "t"), 0.9, {"a": 0.0, "t": 0.0})
    assert dead.reliability == 0.0
    birnbaum = dict(zip(dead.importance().names, dead.importance().birnbaum, strict=True))
    assert birnbaum["t"] == pytest.approx(0.81, rel=1e-15)
    link = evaluate(graph, ("s", "t"), {("s", "a"): 0.0, ("b", "t"): 0.5})
    assert link.reliability == 0.5
    birnbaum = dict(zip(link.importance().names, link.importance().birnbaum, strict=True))
    assert birnbaum["s", "a"] == pytest.approx(0.5, rel=1e-15)


def test_solving_at_once_is_compiling_and_evaluating():
    for graph in (*graphs(), nx.dodecahedral_graph(), nx.star_graph(4), nx.grid_2d_graph(4, 4)):
        problem = read_problem(graph, [next(iter(graph)), list(graph)[-1]][: len(graph)], 0.9, 0.99)
        assert solved(problem, 2**24) == compiled(problem).evaluate(problem.link, problem.node)


def test_solving_stops_at_its_limits():
    wide = read_problem(nx.complete_graph(17), "all", 0.9, 1.0)
    found = solved(wide, 2**24)
    assert found == Outcome(0.0, 1.0, 0, 0, found.width, found.layers)
    with pytest.raises(NotExactError, match="at most 15 live vertices"):
        require_fit(found.width)
    grid = read_problem(nx.grid_2d_graph(6, 6), "all", 0.9, 1.0)
    assert solved(grid, 10).peak > 10
    assert 100 < solved(grid, 2**24, 100).states < solved(grid, 2**24, ANY).states


def test_an_answer_loads_no_sampling():
    code = (
        "import sys, networkx as nx\n"
        "from relparallel.reliability import evaluate\n"
        "evaluate(nx.cycle_graph(5), [0, 2], 0.9)\n"
        "evaluate(nx.cycle_graph(5), [0, 2], 0.9, method='exact')\n"
        "kinds = ('sampling', 'repair')\n"
        "print([kind for kind in kinds if f'relparallel.reliability.{kind}' in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
