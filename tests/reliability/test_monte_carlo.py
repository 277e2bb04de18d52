from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import networkx as nx
import numpy as np
import pytest

from relparallel.metrics import survival
from relparallel.reliability import estimate, evaluate
from relparallel.reliability.problem import read_problem
from relparallel.reliability.sampling.monte_carlo import count_failures, sample as packed
from relparallel.topology import Topology, bcube, fat_tree, torus


def sample(graph, samples, seed, **arguments):
    rng = np.random.default_rng(seed)
    return estimate(graph, method="crude", samples=samples, rng=rng, **arguments)


def test_the_interval_holds_the_exact_value():
    for graph, chances in (
        (nx.petersen_graph(), {"link_up": 0.8}),
        (nx.grid_2d_graph(4, 5), {"terminals": ((0, 0), (3, 4)), "link_up": 0.7, "node_up": 0.9}),
        (fat_tree(4), {"terminals": (0, 5, 15), "link_up": 0.95, "node_up": 0.98}),
    ):
        exact = evaluate(graph, method="exact", **chances)
        sampled = sample(graph, 200_000, 1, confidence=0.999, **chances)
        assert sampled.lower < exact.unreliability < sampled.upper
        assert sampled.upper - sampled.lower < 0.01
        assert (sampled.method, sampled.samples) == ("crude", 200_000)


def test_hosts_of_two_switches_do_not_speak_for_each_other():
    """Three hosts on two switches each, no switch with all of them: every cable is needed."""
    pairs = {"a": (0, 1), "b": (1, 2), "c": (2, 0)}
    graph = nx.Graph([(host, f"s{i}") for host, pair in pairs.items() for i in pair])
    for v in graph:
        graph.nodes[v].update(endpoint=v in "abc", transit=v not in "abc")
    found = sample(
        Topology.from_networkx(graph, strict=False), 40_000, 6, link_down=0.1, confidence=0.999
    )
    assert found.lower < 1 - 0.9**6 < found.upper


@pytest.mark.parametrize("t", [bcube(2, 2), torus((3, 3)), fat_tree(4)], ids=repr)
def test_every_sample_is_judged_as_by_itself(t):
    """The same random numbers, one state at a time."""
    problem = read_problem(t, "all", 0.85, 0.97)
    joined = 700 - count_failures(problem, (700, np.random.default_rng(2)))
    rng = np.random.default_rng(2)
    links, nodes = (packed(part[:, 0], 700, rng) for part in (problem.link, problem.node))
    states = [np.concatenate([bits(nodes, i), bits(links, i)]) for i in range(700)]
    assert joined == sum(survival(t, alive).pairs == 1 for alive in states)
    assert 0 < joined < 700


def bits(words, i):
    return np.unpackbits(words.view(np.uint8), axis=1)[:, i].astype(bool)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_holds_it_as_often_as_stated(confidence):
    graph, runs = nx.cycle_graph(5), 600
    exact = evaluate(graph, link_up=0.9).unreliability
    rng = np.random.default_rng(2)
    results = [
        estimate(graph, link_up=0.9, method="crude", samples=700, confidence=confidence, rng=rng)
        for _ in range(runs)
    ]
    held = np.mean([r.lower <= exact <= r.upper for r in results])
    spread = np.sqrt(confidence * (1 - confidence) / runs)
    assert confidence - 3 * spread < held < confidence + 3 * spread
    mean = np.mean([r.value for r in results])
    assert abs(mean - exact) < 4 * np.sqrt(exact * (1 - exact) / (700 * runs))


def test_nothing_seen_is_not_nothing():
    result = sample(nx.complete_graph(8), 1000, 3, link_up=0.999)
    assert (result.value, result.lower) == (0, 0)
    assert result.upper == pytest.approx(1 - 0.025 ** (1 / 1000))


def test_the_answer_does_not_depend_on_where_it_is_computed():
    arguments = {"link_up": 0.9, "node_up": 0.97, "samples": 100_000, "seed": 4}
    here = sample(nx.petersen_graph(), **arguments)
    with ThreadPoolExecutor(3) as threads:
        assert sample(nx.petersen_graph(), executor=threads, **arguments) == here
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert sample(nx.petersen_graph(), executor=processes, **arguments) == here
    assert sample(nx.petersen_graph(), **arguments) == here
    assert sample(nx.petersen_graph(), **{**arguments, "seed": 5}) != here


@pytest.mark.parametrize("samples", [2, 63, 64, 65, 2**15 - 1, 2**15, 2**15 + 1])
def test_sizes_around_words_and_chunks(samples):
    certain = sample(nx.path_graph(3), samples, 6, link_up=1.0)
    hopeless = sample(nx.path_graph(3), samples, 6, link_up=1.0, node_up={2: 0.0})
    assert (certain.value, hopeless.value) == (0, 1)
    assert certain.samples == samples
