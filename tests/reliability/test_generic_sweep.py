"""The compiled sweep, forth and back, against the one in plain Python."""

import networkx as nx
import numpy as np
import pytest

from relparallel.reliability.frontier.compiled_sweep import ANY, compile_sweep, sweep
from relparallel.reliability.frontier.generic_sweep import moves, sweep as plain_sweep
from relparallel.reliability.sensitivity.reverse_pass import there_and_back


def programme_of(edges, terminals, link_up, node_up):
    node_up = np.asarray(node_up, dtype=float)
    terminal = np.isin(np.arange(len(node_up)), terminals)
    link, node = (
        np.column_stack([up, 1 - up]) for up in (np.asarray(link_up, dtype=float), node_up)
    )
    return compile_sweep(np.array(edges), link, node, terminal)


def random_programmes(count, seed):
    """Connected graphs, links in any order, some perfect, nodes that fail or not, any terminals."""
    rng = np.random.default_rng(seed)
    while count:
        n = int(rng.integers(3, 8))
        graph = nx.gnp_random_graph(n, rng.uniform(0.3, 1), seed=int(rng.integers(2**30)))
        if not nx.is_connected(graph):
            continue
        edges = rng.permutation(np.array(graph.edges))
        link_up = np.where(rng.random(len(edges)) < 0.2, 1.0, rng.uniform(0.05, 0.999, len(edges)))
        terminals = rng.choice(n, rng.integers(2, n + 1), replace=False)
        fails = (rng.random(n) < rng.choice([0, 0.5])) & ~np.isin(np.arange(n), terminals)
        yield programme_of(edges, terminals, link_up, np.where(fails, rng.uniform(0.3, 1, n), 1.0))
        count -= 1


def test_the_sweep_equals_the_plain_one_on_random_programmes():
    stays = 0
    for programme in random_programmes(300, 3):
        slots = list(map(tuple, programme.chances.reshape(-1, 2).tolist()))
        rows = moves(programme.steps, np.arange(len(slots)).reshape(-1, 3), slots)
        success, failure, *_ = plain_sweep(bytes(programme.width), rows, 2**20)
        found = sweep(programme.steps, programme.chances, 2**20, ANY)
        assert found[:2] == pytest.approx((success, failure), rel=1e-13, abs=1e-300)
        stays += (programme.steps[:, [0, 1, 6, 7]] < 0).all(axis=1).sum()
    assert stays > 100  # rows that change a layer in place


def test_importance_is_a_difference():
    for programme in random_programmes(40, 8):
        steps, chances = programme.steps, programme.chances
        free, gain = chances[:, 1::2] > 0, np.zeros((len(steps), 3))
        _, failure, _ = there_and_back(steps, chances, free, True, gain, 2**20)
        assert failure == pytest.approx(sweep(steps, chances, 2**20, ANY)[1], rel=1e-13, abs=1e-300)
        for row in np.flatnonzero(free[:, 0]):
            outcomes = []
            for up in (0.0, 1.0):
                certain = chances.copy()
                certain[row, :2] = up, 1 - up
                outcomes.append(sweep(steps, certain, 2**20, ANY)[1])
            assert gain[row, 0] == pytest.approx(outcomes[0] - outcomes[1], rel=1e-11, abs=1e-14)
