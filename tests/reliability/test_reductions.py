from fractions import Fraction

import networkx as nx
import pytest

from relparallel.reliability.chances import parallel, series
from relparallel.reliability.reductions import Network, reduce, split


def network(graph, terminals, chance):
    """Every link and node up with this fraction; terminals are perfect."""
    part = (chance, 1 - chance)
    return Network(
        links={u: dict.fromkeys(graph[u], part) for u in graph},
        nodes=dict.fromkeys(graph, part) | dict.fromkeys(terminals, (1, 0)),
        terminals=set(terminals),
    )


def cables(graph, chance):
    return [(u, v, chance) for u, v in graph.edges]


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
    small = network(graph, terminals, up)
    reduce(small)
    nodes = dict.fromkeys(graph, up) | dict.fromkeys(terminals, 1)
    assert len(small.terminals) == 1
    assert small.alive == by_enumeration(cables(graph, up), nodes, terminals, set(graph))
    assert small.alive + small.failed == 1


def test_blocks_off_every_path_go_and_the_others_multiply(by_enumeration):
    graph = nx.Graph(nx.complete_graph(4).edges)
    graph.add_edges_from([(3, 4), (4, 5), (5, 3), (5, 6), (0, 7), (7, 8), (8, 0)])
    whole = network(graph, (1, 4), Fraction(3, 4))
    blocks = split(whole)
    assert sorted(sorted(block.links) for block in blocks) == [[0, 1, 2, 3], [3, 4, 5]]
    assert sorted(sorted(block.terminals) for block in blocks) == [[1, 3], [3, 4]]
    assert whole.alive == Fraction(3, 4)  # the node between the blocks
    product = whole.alive
    for block in blocks:
        nodes = {v: chance[0] for v, chance in block.nodes.items()}
        links = [(u, v, up) for u, near in block.links.items() for v, (up, _) in near.items() if u < v]
        product *= by_enumeration(links, nodes, tuple(block.terminals), set(graph))
    nodes = dict.fromkeys(graph, Fraction(3, 4)) | {1: 1, 4: 1} | dict.fromkeys((2, 6, 7, 8), 1)
    pruned = graph.subgraph([0, 1, 2, 3, 4, 5])
    kept = {v: nodes[v] if v != 2 else Fraction(3, 4) for v in pruned}
    assert product == by_enumeration(cables(pruned, Fraction(3, 4)), kept, (1, 4), set(graph))


def test_nodes_out_of_reach_go():
    graph = nx.Graph([(0, 1), (1, 2), (3, 4)])
    part = network(graph, (0, 2), Fraction(1, 2))
    assert part.restrict()
    assert set(part.links) == {0, 1, 2}
    assert not network(graph, (0, 3), Fraction(1, 2)).restrict()


def test_series_and_parallel_are_dual():
    a, b = (Fraction(1, 3), Fraction(2, 3)), (Fraction(3, 4), Fraction(1, 4))
    assert series(a, b) == (Fraction(1, 4), Fraction(3, 4))
    assert parallel(a, b) == (Fraction(5, 6), Fraction(1, 6))
    assert series() == (1, 0)
    assert parallel(*[(1.0, 1e-100)] * 3)[1] == pytest.approx(1e-300, rel=1e-15)
