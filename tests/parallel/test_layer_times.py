"""The price of a collective in a step beside the forms of every algorithm."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.hardware import accelerator
from relparallel.parallel import Links, collective_time
from relparallel.parallel.collective_forms import FORMS
from relparallel.parallel.layer_times import gather
from relparallel.parallel.machine_parameters import calibration
from relparallel.parallel.quantities import Rates
from relparallel.published import facts

SIZES = st.floats(1e3, 1e11)
POWERS = st.integers(0, 6).map(lambda k: 2**k)


def machine(link, network, inside, **latencies):
    """A machine on which a group has so many ranks in a node, alone on its network."""
    values = dict.fromkeys(Rates._fields, 0.0) | latencies
    values |= {
        "node_link": link,
        "link_share": 1,
        "network": network,
        "network_share": 1,
        "node": inside,
    }
    return Rates(**values)


@given(SIZES, POWERS, POWERS, st.floats(1e9, 1e12), st.floats(1e9, 1e12))
def test_without_latency_it_is_the_cheapest_algorithm(size, inside, nodes, link, network):
    links = Links(latency=0, bandwidth=link, network_latency=0, network_bandwidth=network)
    found = 2 * gather(size, inside * nodes, inside, False, machine(link, network, inside))
    ranks = inside * nodes
    times = {
        name: collective_time("all_reduce", name, size, ranks, inside, links)
        for name in FORMS["all_reduce"]
    }
    assert found == pytest.approx(min(times.values()), rel=1e-9)
    assert found <= times["tree"] * (1 + 1e-9)


@given(SIZES, st.integers(2, 12), st.integers(2, 40), st.floats(1e9, 1e12), st.floats(1e9, 1e12))
def test_it_is_the_cheaper_of_one_ring_and_of_two_levels(size, inside, nodes, link, network):
    links = Links(latency=0, bandwidth=link, network_latency=0, network_bandwidth=network)
    ways = [
        float(collective_time("all_gather", name, size, inside * nodes, inside, links))
        for name in ("ring", "hierarchical")
    ]
    found = gather(size, inside * nodes, inside, False, machine(link, network, inside))
    assert found == pytest.approx(min(ways), rel=1e-9)


def test_a_slow_network_is_saved_by_two_levels_and_a_fast_one_is_not():
    slow, fast = machine(200e9, 10e9, 8), machine(200e9, 400e9, 8)
    assert gather(1e9, 16, 8, False, slow) == pytest.approx(1e9 * (7 / 8 / 200e9 + 1 / 2 / 10e9))
    assert gather(1e9, 16, 8, False, fast) == pytest.approx(1e9 * 15 / 16 / 200e9)


@pytest.mark.parametrize(("nodes", "rounds"), [(2, 1), (3, 2), (4, 2), (5, 3), (128, 7)])
def test_rounds_between_nodes_are_those_of_doubling(nodes, rounds):
    assert gather(0.0, nodes, 1, False, machine(1, 1, 1, hop=1.0)) == rounds
    assert gather(0.0, nodes, 1, True, machine(1, 1, 1, hop=1.0)) == nodes - 1


def test_an_all_reduce_inside_a_node_takes_as_long_as_nccl_measures():
    """Forty rows, two to eight A100. The latency prior was read from them: it is no prediction."""
    values = calibration("a100-80gb").values
    row = machine(accelerator("a100-80gb").node_link, 1, 8, round=values["round"])
    row = row._replace(link_share=values["link_share"])
    ratio = [
        2
        * gather(float(fact.inputs["bytes"]), float(fact.inputs["gpus"]), 8.0, False, row)
        / (float(fact.value_text) * 1e-6)
        for name, fact in facts("parallelism-cost").items()
        if name.startswith("NCCL-AR")
    ]
    error = np.abs(np.array(ratio) - 1)
    assert len(error) == 40
    assert error.mean() < 0.08
    assert error.max() < 0.25
