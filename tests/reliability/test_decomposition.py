from fractions import Fraction
from math import prod

import networkx as nx
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from chapters.s13.counting import weigh
from relparallel.reliability.frontier import compiled_sweep
from relparallel.reliability.frontier.decomposition import compiled, solved
from relparallel.reliability.frontier.states import MAX_LIVE, pack, unpack
from relparallel.reliability.problem import read_problem

CASES = [
    (nx.petersen_graph(), (0, 2, 7)),
    (nx.grid_2d_graph(4, 5), ((0, 0), (3, 4))),
    (nx.barbell_graph(4, 3), (0, 9)),
    (nx.random_regular_graph(3, 16, seed=1), tuple(range(16))),
    (nx.ladder_graph(6), (0, 5, 7)),
]


def network(graph, terminals, seed=0):
    """A problem with a different chance for every part."""
    rng = np.random.default_rng(seed)
    problem = read_problem(graph, terminals, 0.9, 0.9)
    link, node = rng.uniform(0.5, 1, len(problem.link)), rng.uniform(0.5, 1, len(problem.node))
    return problem, np.column_stack([link, 1 - link]), np.column_stack([node, 1 - node])


@pytest.mark.parametrize(("graph", "terminals"), CASES)
def test_new_chances_need_no_new_structure(graph, terminals):
    problem, *chances = network(graph, terminals)
    reduced, whole = compiled(problem), compiled(problem, reductions=False)
    assert len(whole.tape) == 0
    assert len(reduced.steps) <= len(whole.steps)
    for seed in range(3):
        _, *chances = network(graph, terminals, seed)
        one, other = reduced.evaluate(*chances), whole.evaluate(*chances)
        assert one.unreliability == pytest.approx(other.unreliability, rel=1e-12)
        assert one.reliability == pytest.approx(other.reliability, rel=1e-12)


@pytest.mark.parametrize(("graph", "terminals"), CASES)
def test_slots_sweeps_and_required_parts_give_the_answer_by_hand(graph, terminals):
    problem, link, node = network(graph, terminals)
    structure = compiled(problem)
    slots = structure.chances(link, node)
    sweeps = [compiled_sweep.run_sweep(each, 10**6) for each in structure.sweeps(link, node)]
    outcomes = slots[structure.slots - len(sweeps) :]
    outcomes[:] = [(sweep.success, sweep.failure) for sweep in sweeps]
    expected = structure.evaluate(link, node)
    assert prod(slots[structure.required, 0]) == pytest.approx(expected.reliability, rel=1e-14)
    assert sum(sweep.visited for sweep in sweeps) == expected.states
    assert structure.width == max((each.width for each in structure.sweeps(link, node)), default=0)


def test_the_tape_plays_fractions_to_the_last_digit(by_enumeration):
    graph = nx.ladder_graph(3)
    problem = read_problem(graph, "all", 0.5, 0.5)
    structure = compiled(problem)
    assert len(structure.starts) == 1  # a ladder reduces to nothing
    ups = [Fraction(i + 1, 13) for i in range(structure.links + structure.nodes)]
    found = weigh(problem, [(up, 1 - up) for up in ups], 1)
    links = [(u, v, up) for (u, v), up in zip(problem.edges.tolist(), ups, strict=False)]
    exact = by_enumeration(links, dict(enumerate(ups[structure.links :])), tuple(graph), set(graph))
    assert found == exact


def test_certain_failures_pass_through_the_tape():
    graph = nx.cycle_graph(5)  # two links at every node, all of them terminals
    problem = read_problem(graph, "all", 0.5, 1.0)
    structure = compiled(problem)
    for broken, works in (((0,), 0.5**4), ((0, 1), 0.0)):
        link = problem.link.copy()
        link[list(broken)] = 0.0, 1.0
        assert structure.evaluate(link, problem.node).reliability == pytest.approx(works, rel=1e-15)
        assert structure.evaluate(link, problem.node).unreliability == pytest.approx(
            1 - works, rel=1e-15
        )


def test_terminals_in_two_parts_are_never_connected():
    structure = compiled(read_problem(nx.Graph([(0, 1), (2, 3), (3, 4)]), (0, 4), 0.9, 0.9))
    assert not structure.connected
    assert structure.evaluate(np.empty((3, 2)), np.empty((5, 2)))[:2] == (0.0, 1.0)
    alone = nx.Graph([(0, 1)])
    alone.add_node(2)
    assert not compiled(read_problem(alone, "all", 0.9, 0.9)).connected


def test_what_lies_off_every_path_is_left_out():
    graph = nx.Graph(nx.complete_graph(4).edges)
    graph.add_edges_from([(3, 4), (4, 5), (5, 3), (5, 6), (0, 7), (7, 8), (8, 0), (9, 10)])
    structure = compiled(read_problem(graph, (1, 4), 0.75, 0.75))
    cut = structure.links + list(graph).index(3)
    assert cut in structure.required  # the node between the two blocks that matter
    used = {*structure.required.tolist(), *structure.parts.ravel().tolist()}
    for _, made, *parts in structure.tape[::-1].tolist():
        used |= set(parts) if made in used else set()
    problem = read_problem(graph, (1, 4), 0.75, 0.75)
    labels = list(graph)
    for i, (u, v) in enumerate(problem.edges.tolist()):
        off = {labels[u], labels[v]} & {6, 7, 8, 9, 10}
        assert (i in used) == (not off)


def test_memory_limits_the_states(monkeypatch):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 10}
    problem, link, node = network(nx.grid_2d_graph(8, 8), "all")
    monkeypatch.setattr(compiled_sweep, "memory", compiled_sweep.memory.__wrapped__)  # asks anew
    monkeypatch.setattr(compiled_sweep.os, "sysconf", pages.__getitem__)
    assert compiled_sweep.fitting(2**24) == 204
    with pytest.raises(compiled_sweep.NotExactError, match="max_states=204 states in a layer"):
        compiled(problem).evaluate(link, node)
    assert compiled_sweep.fitting(100) == 100
    monkeypatch.delattr(compiled_sweep.os, "sysconf")
    assert compiled_sweep.fitting(2**24) == 2**24


def test_visits_are_limited_in_all_programmes_together():
    problem, link, node = network(nx.grid_2d_graph(5, 5), "all")
    structure = compiled(problem)
    visited = structure.evaluate(link, node).states
    assert structure.evaluate(link, node, max_visits=visited).states == visited
    for visits in (visited - 1, 100, 1):
        with pytest.raises(
            compiled_sweep.NotExactError, match=f"at most {visits} states in all layers"
        ):
            structure.evaluate(link, node, max_visits=visits)


@pytest.mark.parametrize(("graph", "terminals"), CASES)
def test_arrays_are_given_back(graph, terminals):
    """Compiled functions that count no references must neither keep nor free an array."""
    problem, _, _ = network(graph, terminals)
    solved(problem, True, 2**24)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    solved(problem, True, 2**24)
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0
    assert after.alloc - before.alloc == after.free - before.free > 0


def test_states_in_memory_are_the_states():
    rng = np.random.default_rng(1)
    for _ in range(2000):
        labels, flags = [], 0
        for slot in range(MAX_LIVE):
            labels.append(int(rng.choice([0, slot + 1, *[x for x in labels if x]])))
            flags |= int(labels[slot] == slot + 1 and rng.random() < 0.5) << 4 * slot
        both = sum(label << 4 * slot for slot, label in enumerate(labels)), flags
        state = pack(*map(np.uint64, both))
        assert unpack(np.uint64(state)) == both
        assert int(state) < 2**61
