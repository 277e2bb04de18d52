from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from relparallel.metrics import oversubscription
from relparallel.topology import bcube, fat_tree, leaf_spine, meta_roce, vl2


@pytest.mark.parametrize(
    ("t", "ratios"),
    [
        (fat_tree(8), [1, 1]),
        (leaf_spine(4, 2, 8), [4]),
        (leaf_spine(4, 8, 2), [0.25]),
        (vl2(8, 6), [1, 1]),
        (bcube(4, 1), []),
        (nx.cycle_graph(4), []),
    ],
)
def test_ratios_of_the_designs(t, ratios):
    assert oversubscription(t)["ratio"].tolist() == pytest.approx(ratios)


def test_the_cluster_switches_of_a_training_network_are_oversubscribed():
    assert oversubscription(meta_roce(2))["ratio"].iloc[-1] == pytest.approx(7)


def test_capacity_and_parallel_cables_count():
    t = leaf_spine(2, 1, 4)
    up = ~t.endpoint[t.edges].any(axis=1)
    assert oversubscription(replace(t, capacity=np.where(up, 4.0, 1.0)))["ratio"].tolist() == [1]
    doubled = oversubscription(replace(t, multiplicity=np.where(up, 2, 1)))
    assert doubled["ratio"].tolist() == [2]
    assert doubled.loc[1, "down"] == 8 * t.capacity[0]
    assert doubled.loc[1, "nodes"] == 2


def test_the_worst_node_may_be_worse_than_its_tier():
    t = leaf_spine(2, 2, 2)
    lost = np.flatnonzero(~t.endpoint[t.edges].any(axis=1))
    for count, worst in ((1, 2), (2, np.inf)):
        parts = {
            n: np.delete(getattr(t, n), lost[:count], axis=0)
            for n in ("edges", "multiplicity", "capacity", "latency")
        }
        found = oversubscription(replace(t, **parts)).loc[1]
        assert (found["ratio"], found["worst"]) == (pytest.approx(4 / (4 - count)), worst)


def test_it_must_be_a_network():
    with pytest.raises(TypeError, match="topology must be"):
        oversubscription("net")
