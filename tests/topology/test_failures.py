from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from relparallel.topology import SharedRisk, fat_tree, sample_failures, torus
from relparallel.topology.failures import Scenarios

SAMPLES = 64 * 2000


def rates(words):
    """Share of the scenarios in which each row is down."""
    return 1 - np.bitwise_count(words).mean(axis=1) / 64


@pytest.mark.parametrize("chance", [0.5, 0.02, 0.37, 1 / 3, 1e-3, 0.999])
def test_parts_fail_as_often_as_stated(chance):
    t = fat_tree(4)
    found = sample_failures(t, SAMPLES, np.random.default_rng(7), link_down=chance, node_down=1 - chance)
    sigma = (chance * (1 - chance) / SAMPLES) ** 0.5
    assert np.abs(rates(found.pairs) - chance).max() < 4.5 * sigma
    assert np.abs(rates(found.nodes) - (1 - chance)).max() < 4.5 * sigma
    assert abs(rates(found.pairs).mean() - chance) < 4 * sigma / len(t.edges) ** 0.5


def test_parts_fail_independently():
    found = sample_failures(torus((4, 4)), SAMPLES, np.random.default_rng(3), link_down=0.5, node_down=0.5)
    bits = np.unpackbits(np.concatenate([found.nodes, found.pairs]).view(np.uint8), axis=1).astype(float)
    assert np.abs(np.corrcoef(bits) - np.eye(len(bits))).max() < 5 / SAMPLES**0.5
    neighbours = np.mean((bits[:, 1:] - 0.5) * (bits[:, :-1] - 0.5), axis=1)  # of one part, in two scenarios
    assert np.abs(neighbours).max() < 5 * 0.25 / SAMPLES**0.5


def test_certain_parts_are_certain():
    found = sample_failures(nx.cycle_graph(4), 200, np.random.default_rng(0), link_down=[0, 1, 1, 0])
    assert rates(found.pairs).tolist() == [0, 1, 1, 0]
    assert rates(found.nodes).tolist() == [0, 0, 0, 0]


def test_a_pair_is_down_when_all_its_cables_are():
    t = torus((5,))
    t = replace(t, multiplicity=np.arange(1, 6))
    found = sample_failures(t, SAMPLES, np.random.default_rng(2), link_down=0.6)
    assert rates(found.pairs) == pytest.approx(0.6 ** np.arange(1, 6), abs=0.007)


def test_a_shared_risk_takes_all_its_members_along():
    t = replace(torus((6,)), shared_risk=(SharedRisk(name="feed", nodes=(0, 3), edges=(2,)),))
    found = sample_failures(t, SAMPLES, np.random.default_rng(5), shared_risk_down=0.3)
    assert np.array_equal(found.nodes[0], found.nodes[3])
    assert np.array_equal(found.nodes[0], found.pairs[2])
    assert rates(found.nodes) == pytest.approx([0.3, 0, 0, 0.3, 0, 0], abs=0.007)


def test_the_same_generator_state_gives_the_same_scenarios():
    first, again, other = (
        sample_failures(fat_tree(4), 99, np.random.default_rng(s), link_down=0.3) for s in (4, 4, 5)
    )
    assert np.array_equal(first.pairs, again.pairs)
    assert not np.array_equal(first.pairs, other.pairs)


def test_one_scenario_by_itself():
    found = sample_failures(nx.cycle_graph(5), 130, np.random.default_rng(1), link_down=0.5, node_down=0.5)
    alive = np.array([found.alive(i) for i in range(130)])
    words = np.concatenate([found.nodes, found.pairs])
    for scenario in (0, 63, 64, 129):
        bits = [int(w[scenario // 64]) >> scenario % 64 & 1 for w in words]
        assert alive[scenario].tolist() == [bool(b) for b in bits]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"samples": 0}, "samples must be"),
        ({"rng": 3}, "rng must be"),
        ({"link_down": 1.5}, "link_down must be a probability"),
        ({"link_down": [0.5, 0.5]}, "link_down must be one number or 4 numbers"),
        ({"node_down": np.nan}, "node_down must be a probability"),
        ({"shared_risk_down": [0.1]}, "shared_risk_down must be one number or 0 numbers"),
    ],
)
def test_bad_arguments_are_named(arguments, error):
    good = {"topology": nx.cycle_graph(4), "samples": 10, "rng": np.random.default_rng(0)}
    with pytest.raises((TypeError, ValueError), match=error):
        sample_failures(**good | arguments)


def test_a_scenario_that_was_not_drawn_is_refused():
    up = np.zeros((2, 1), dtype=np.uint64)
    with pytest.raises(ValueError, match="scenario must be"):
        Scenarios(nodes=up, pairs=up[:1], count=64).alive(64)
