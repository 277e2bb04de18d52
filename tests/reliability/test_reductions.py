from fractions import Fraction

import networkx as nx
import pytest

from chapters.s13.counting import weigh
from relparallel.reliability.frontier.decomposition import compiled
from relparallel.reliability.probability import parallel, series
from relparallel.reliability.problem import read_problem


@pytest.mark.parametrize(
    ("graph", "terminals"),
    [
        (nx.path_graph(6), (0, 3)),
        (nx.star_graph(5), (1, 2, 3)),
        (nx.cycle_graph(6), (0, 2, 3)),
        (nx.ladder_graph(3), (0, 1, 2, 3, 4, 5)),
        (nx.diamond_graph(), (1, 2)),
        (nx.lollipop_graph(3, 2), (0, 4)),
    ],
    ids=["path", "star", "cycle", "ladder", "diamond", "lollipop"],
)
def test_series_parallel_networks_reduce_to_nothing(graph, terminals, by_enumeration):
    up = Fraction(2, 3)
    problem = read_problem(graph, terminals, 0.5, 0.5)
    structure = compiled(problem)
    assert structure.width == 0
    weights = [(up, 1 - up)] * (structure.links + structure.nodes)
    links = [(u, v, up) for u, v in problem.edges.tolist()]
    exact = by_enumeration(
        links, dict.fromkeys(range(len(graph)), up), problem.terminals, set(range(99))
    )
    assert weigh(problem, weights, 1) == exact


def test_series_and_parallel_are_dual():
    a, b = (Fraction(1, 3), Fraction(2, 3)), (Fraction(3, 4), Fraction(1, 4))
    assert series(a, b) == (Fraction(1, 4), Fraction(3, 4))
    assert parallel(a, b) == (Fraction(5, 6), Fraction(1, 6))
    assert series() == (1, 0)
    assert parallel(*[(1.0, 1e-100)] * 3)[1] == pytest.approx(1e-300, rel=1e-15)
