"""State of nodes that meet again after a loss, over sockets in one process."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

from relparallel.rehearsal.job import Timetable
from relparallel.rehearsal.node import Node, Order, Run
from relparallel.rehearsal.transports import Door

GIVEN = {
    "policy": "elastic",
    "nodes_per_replica": 2,
    "repair": 1.0,
    "seed": 0,
    "seconds": 9.0,
    "step": 0.1,
}


@pytest.fixture
def nodes_of(tmp_path):
    """Nodes of a run, whose doors are closed in the end."""
    with ExitStack() as stack:

        def build(run):
            folder = tmp_path / str(run.copies)
            folder.mkdir()
            found = [Node(slot, run, folder, None) for slot in range(run.nodes)]
            for node in found:
                node.door = Door(folder, node.slot)
                stack.callback(node.door.close)
            return found

        yield build


def meet(nodes, number):
    """Let these nodes be one order, and agree on the state."""
    order = Order(number, tuple(node.slot for node in nodes), frozenset())

    def join(node):
        stage = node.stage
        node._meet(order)
        node._agree(len(nodes), knows=node.stage == stage)

    with ThreadPoolExecutor(len(nodes)) as pool:
        list(pool.map(join, nodes))


def learn(nodes, steps):
    with ThreadPoolExecutor(len(nodes)) as pool:
        for step in range(steps):
            gradient = np.arange(nodes[0].run.size, dtype=np.float32) + step
            list(pool.map(Node._update, nodes, [gradient] * len(nodes)))


@pytest.mark.parametrize("lost", [1, 3])
def test_a_lost_shard_is_taken_from_its_twin(nodes_of, lost):
    """Momentum is the same as if nobody had died; with one copy the job begins again."""
    for copies in (2, 1):
        nodes = nodes_of(Run(**GIVEN, nodes=8, copies=copies))
        meet(nodes, 1)
        assert all(node.state.held.sum() == copies * node.run.size / 8 for node in nodes)
        learn(nodes, 3)
        weights = np.concatenate([node.state.weights[node.own] for node in nodes[:2]])
        left = [node for node in nodes if node.replica != lost]
        meet(left, 2)
        known = np.zeros(nodes[0].run.size, np.float32)
        for node in left:
            known[node.state.held] = node.state.momentum[node.state.held]
        expected = np.zeros_like(known)
        for step in range(3):
            expected = 0.9 * expected + 0.1 * (np.arange(expected.size) + step)
        if copies == 2:
            assert {node.state.done for node in left} == {3}
            assert known == pytest.approx(expected, rel=1e-5)
            again = np.concatenate([node.state.weights[node.own] for node in left[:2]])
            assert np.array_equal(again, weights)
        else:
            assert {node.state.done for node in left} == {0}
            assert not known.any()


def test_a_node_that_changes_its_stage_brings_its_shards_along(nodes_of):
    """Nodes 0 and 3 of two broken replicas make one: weights come from the whole one."""
    nodes = nodes_of(Run(**GIVEN, nodes=6, copies=2))
    meet(nodes, 1)
    learn(nodes, 2)
    weights = [node.state.weights[node.own].copy() for node in nodes[4:]]
    again = [nodes[4], nodes[5], nodes[3], nodes[0]]  # 3 was of the second stage
    meet(again, 2)
    assert {node.state.done for node in again} == {2}
    for node in again:
        assert np.array_equal(node.state.weights[node.own], weights[node.stage])


def test_the_half_done_step_is_dropped_by_all(nodes_of):
    nodes = nodes_of(Run(**GIVEN, nodes=4))
    meet(nodes, 1)
    learn(nodes, 2)
    before = nodes[0].state.weights[nodes[0].own].copy()
    nodes[0]._update(np.ones(nodes[0].run.size, np.float32))  # the others did not get the sum
    meet(nodes, 2)
    assert {node.state.done for node in nodes} == {2}
    assert np.array_equal(nodes[2].state.weights[nodes[2].own], before)


def test_a_timetable_kills_when_it_says_whoever_stands_by():
    table = {"node": [2, 2, 0], "start": [1.0, 9.0, 1.0], "end": [4.0, 9.5, 2.0]}
    records = {name: np.array(column) for name, column in table.items()}
    chaos = Timetable(records)
    assert chaos.due == {}
    chaos.age(0, 100.0)
    chaos.age(1, 105.0)  # the time began before
    assert chaos.due == {2: 101.0, 0: 101.0}
    chaos.strike(2)
    assert chaos.due[2] == 109.0
    chaos.strike(0)
    assert 0 not in chaos.due, "it fails no more"
