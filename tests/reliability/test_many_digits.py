"""Parts that matter in one of 1e27 to 1e60 failures keep their digits, against exact fractions."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from relparallel import topology
from relparallel.reliability import evaluate
from relparallel.reliability.lumped.alike_slopes import twin_slopes
from relparallel.reliability.problem import read_problem
from relparallel.reliability.programme.compiled import compiled
from relparallel.reliability.programme.layer_rows import planned_rows
from relparallel.reliability.sensitivity import sensitivity_sweep
from relparallel.reliability.sensitivity.adjoint import differentiate, swept_slopes
from relparallel.reliability.sensitivity.many_digits import BITS, FULL, mixed
from relparallel.reliability.sensitivity.traced_sweep import forth, no_space


def in_fractions(problem, rows):
    """U(part down) - U(part up) of some parts of a problem, each chance of failure taken as it stands."""
    graph, m = nx.Graph(), len(problem.edges)
    for v, forwards in enumerate(problem.transit.tolist()):
        graph.add_node(v, **({} if forwards else {"transit": False}))
    edges = [tuple(edge) for edge in problem.edges.tolist()]
    graph.add_edges_from(edges)
    terminals, slopes = problem.terminals.tolist(), []
    for row in rows:
        outcomes = []
        for state in map(Fraction, (1, 0)):
            link = dict(zip(edges, map(Fraction, problem.link[:, 1].tolist()), strict=True))
            node = dict(enumerate(map(Fraction, problem.node[:, 1].tolist())))
            if row < m:
                link[edges[row]] = state
            else:
                node[row - m] = state
            outcomes.append(evaluate(graph, terminals, link_down=link, node_down=node).unreliability)
        slopes.append(float(outcomes[0] - outcomes[1]))
    return slopes


def two_of_a_fat_tree():
    network = topology.fat_tree(4)
    return network, [network.labels[v] for v in network.hosts[[0, -1]]]


def one_pod_of_a_fat_tree():
    network = topology.fat_tree(4)
    return network, [network.labels[v] for v in network.hosts[:4]]


NETWORKS = {
    "fat-tree pair": (*two_of_a_fat_tree(), {"link_down": 1e-9}),
    "fat-tree pod, nodes fail": (*one_pod_of_a_fat_tree(), {"link_down": 1e-9, "node_down": 1e-9}),
    "small grid": (nx.grid_2d_graph(4, 5), [(0, 0), (3, 4)], {"link_down": 1e-14}),
    "small grid, more words": (nx.grid_2d_graph(4, 5), [(0, 0), (3, 4)], {"link_down": 1e-24}),
    "many states": (nx.grid_2d_graph(7, 7), [(0, 0), (0, 6)], {"link_down": 1e-9}),
    "many states, hardly ever up": (nx.grid_2d_graph(7, 7), [(0, 0), (0, 6)], {"link_down": 0.9999}),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("room", ["", "little"])
def test_slopes_far_below_the_unreliability_against_fractions(name, room):
    """Little room makes the sweep back go through several segments each time."""
    graph, terminals, chances = NETWORKS[name]
    found = evaluate(graph, terminals, method="exact", **chances).importance()
    slopes = found.birnbaum
    if room:
        wanted = np.concatenate([found.problem.link[:, 1], found.problem.node[:, 1]]) > 0
        slopes = swept_slopes(found.problem, wanted, True, 2**24, room=40)[1][found.part]
    order = np.argsort(found.birnbaum)[:: max(len(found.part) // 12, 1)]
    expected = in_fractions(found.problem, found.part[order].tolist())
    assert min(filter(None, expected)) < 1e-24 * found.unreliability
    for slope, exact in zip(slopes[order].tolist(), expected, strict=True):
        assert slope == pytest.approx(exact, rel=1e-9, abs=0)


def in_columns(words):
    """Whole numbers, each in a column of words."""
    return [sum(int(word) << (BITS * i) for i, word in enumerate(column)) for column in words.T]


@pytest.mark.parametrize("words", [5, 8, 34])
@pytest.mark.parametrize("down", [1e-300, 1e-9, 0.1, 0.5, 0.75, 1 - 1e-9, 1.0])
def test_mixtures_are_right_to_two_units(words, down):
    """Of numbers that agree in many digits; a difference that rounding made negative counts as 0."""
    rng, count = np.random.default_rng(words), 50
    u = rng.integers(0, FULL, (words, count), np.uint32, endpoint=True)
    d = np.where(np.arange(words)[:, None] >= rng.integers(1, words, count), u, FULL)
    d[0, 0], u[0, 0], d[1:, 0] = 5, 7, u[1:, 0]
    made, change = np.empty_like(u), np.empty(count)
    gap, carry = np.empty((words + 1, count), np.uint32), np.empty((2, count), np.uint64)
    mixed(d, u, 1 - down, down, made, change, gap, carry, count)
    rarer = Fraction(min(down, 1 - down))
    columns = zip(in_columns(d), in_columns(u), in_columns(made), change.tolist(), strict=True)
    for above, below, found, gained in columns:
        apart = max(above - below, 0)
        exact = below + rarer * apart if down <= 0.5 else above - rarer * apart
        assert abs(exact - found) < 2
        assert gained == pytest.approx(float(Fraction(apart, 2 ** (BITS * words))), rel=1e-14, abs=0)


def test_what_has_no_digits_is_no_noise():
    """Slopes of a grid of many states lie between 1e-40 and 1e-140: each has nine digits or is 0."""
    found = evaluate(nx.grid_2d_graph(7, 7), [(0, 0), (0, 6)], method="exact", link_down=1e-20).importance()
    order = np.argsort(found.birnbaum)[::6]
    exact = np.array(in_fractions(found.problem, found.part[order].tolist()))
    known = found.birnbaum[order] > 0
    assert 0 < known.sum() < len(known)
    assert exact[~known].max() < 1e-76 * found.unreliability
    assert found.birnbaum[order][known].tolist() == pytest.approx(exact[known].tolist(), rel=1e-9, abs=0)


def test_what_stands_beside_a_perfect_link_does_not_matter():
    """Exactly 0, and found without any doubt: the others keep their digits."""
    graph = nx.ladder_graph(6)
    perfect = {(0, 1): 0.0, (0, 6): 0.0, (6, 7): 0.0}  # (1, 7) joins what is joined for certain
    link = dict.fromkeys(graph.edges, 1e-12) | perfect
    found = evaluate(graph, (0, 11), link_down=link).importance()
    slopes = dict(zip(found.names, found.birnbaum.tolist(), strict=True))
    assert slopes[1, 7] == 0.0
    exact = dict(zip(found.part.tolist(), in_fractions(found.problem, found.part.tolist()), strict=True))
    assert found.birnbaum.tolist() == pytest.approx(list(exact.values()), rel=1e-9, abs=0)


def test_states_too_improbable_for_a_float_are_left_out_of_both_sweeps():
    """At 1e-15 half of those of a leaf-spine are: the sweep that remembers visits those of the programme."""
    network = nx.complete_bipartite_graph(12, 6)
    problem = read_problem(network, "all", 1.0, 1.0, 1e-20)
    structure = compiled(problem)
    visited = structure.evaluate(problem.link, problem.node).states
    chances = structure.programmes(problem.link, problem.node)[0].chances
    rows, layer = planned_rows(structure.steps, chances[:, 1::2] > 0), np.zeros(2, np.uint64)
    layer.view(np.float64)[1] = 1.0
    counts = []
    for lean in (True, False):
        free = chances[:, 1::2] > 0
        counts.append(
            forth(rows, chances, free, lean, 0, layer, 2**20, 2**26, np.zeros(4), no_space())[2].states.sum()
        )
    assert counts[0] < 1.2 * visited < 0.8 * counts[1]
    slopes = differentiate(structure, problem.link, problem.node).links
    assert slopes.tolist() == pytest.approx(twin_slopes(problem)[1][: len(slopes)].tolist(), rel=1e-9, abs=0)


@pytest.mark.parametrize(("network", "dead"), [(nx.complete_graph(9), 20), (nx.grid_2d_graph(7, 7), 30)])
def test_links_that_are_always_down_are_followed_one_at_a_time(network, dead):
    """From states that can be reached: few more states are visited than if nobody asked for those links."""
    network, m = nx.convert_node_labels_to_integers(network), network.number_of_edges()
    rng = np.random.default_rng(4)
    link_up = rng.uniform(0.5, 0.99, m)
    link_up[rng.permutation(m)[:dead]] = 0.0
    problem = read_problem(network, (0, len(network) - 1), link_up, 1.0)
    structure = compiled(problem, reductions=False)
    chances = structure.programmes(problem.link, problem.node)[0].chances
    free, layer = chances[:, 1::2] > 0.0, np.zeros(2, np.uint64)
    layer.view(np.float64)[1] = 1.0
    rows = planned_rows(structure.steps, free)
    asked, lean = (
        forth(rows, chances, free, lean, 0, layer, 2**20, 2**26, np.zeros(4), no_space())[2].states.sum()
        for lean in (False, True)
    )
    assert asked < 4 * lean
    found = evaluate(network, (0, len(network) - 1), link_up=link_up).importance()
    exact = in_fractions(found.problem, found.part[::5].tolist())
    assert found.birnbaum[::5].tolist() == pytest.approx(exact, rel=1e-9, abs=0)


def test_what_stands_beside_a_vertex_that_is_down_asks_for_no_more_sweeps(monkeypatch):
    """With a group of shared risk: its links have slope 0 whatever the digits: one sweep back is enough."""
    network = nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 5))
    node_up = np.full(25, 0.999)
    node_up[[0, 7, 16, 24]] = 1.0, 0.0, 0.0, 1.0
    problem = read_problem(network, (0, 24), 0.99, node_up)
    structure = compiled(problem, reductions=False)
    parts, given = structure.parts, np.concatenate([problem.link, problem.node])
    chances = structure.programmes(problem.link, problem.node)[0].chances
    failed = (parts >= 0) & (given[parts, 0] == 0.0)
    free, sweeps, back = chances[:, 1::2] > 0.0, [], sensitivity_sweep._all_back
    monkeypatch.setattr(sensitivity_sweep, "_all_back", lambda *given: sweeps.append(1) or back(*given))
    monkeypatch.setattr(sensitivity_sweep, "_there_and_back", sensitivity_sweep._there_and_back.py_func)
    gain = np.zeros(parts.shape)
    sensitivity_sweep.slopes.py_func(structure.steps, chances, free, free & ~failed, gain, 2**20, 2**26)
    assert len(sweeps) == 1
    rows = np.array([2, 11, 12, 20, 45, 50])
    exact = in_fractions(problem, rows.tolist())
    found = [gain[parts == row].sum() for row in rows.tolist()]
    assert 0.0 in exact
    assert found == pytest.approx(exact, rel=1e-9, abs=0)


@pytest.mark.parametrize("rare", [1e-40, 1e-120, 1e-200, 1e-290])
@pytest.mark.parametrize("shape", [(5, 5), (3, 7)])
def test_parts_of_tiny_chance_keep_their_digits(rare, shape):
    """Also where what they lead to is too improbable for a float: a link matters only if it is down."""
    network, rng = nx.convert_node_labels_to_integers(nx.grid_2d_graph(*shape)), np.random.default_rng(7)
    down = rng.uniform(1e-3, 0.3, network.number_of_edges())
    down[rng.permutation(len(down))[: len(down) // 2]] = rare
    found = evaluate(
        network, (0, len(network) - 1), link_down=dict(zip(network.edges, down.tolist(), strict=True))
    ).importance()
    exact = in_fractions(found.problem, found.part.tolist())
    assert found.birnbaum.tolist() == pytest.approx(exact, rel=1e-9, abs=0)
