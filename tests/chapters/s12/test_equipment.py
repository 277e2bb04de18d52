import networkx as nx
import numpy as np
import pytest

import relparallel as rp
from chapters.s12.equipment import equipped, mean_lives, mean_repair
from relparallel.topology import bill_of_materials, fat_tree, leaf_spine, names, unit_prices
from relparallel.units import DAY, YEAR
from valid_calls import CALLS

ADDED = {"cost", "power", "mtbf", "mttr", "availability"}


def built(name):
    return getattr(rp.topology, name)(**CALLS[f"topology.{name}"]())


@pytest.mark.parametrize("prices", ["helios2010", "ndr2024"])
@pytest.mark.parametrize("name", names())
def test_every_design_gets_every_attribute_and_the_parts_add_up_to_the_bill(name, prices):
    t = built(name)
    # no price of circuit switches
    if prices == "ndr2024" and name in ("c_through", "helios", "tpu_v4"):
        with pytest.raises(ValueError, match="prices must have the cost of an ocs port"):
            equipped(t, prices=unit_prices(prices))
        return
    found, bill = (
        equipped(t, prices=unit_prices(prices)),
        bill_of_materials(t, prices=unit_prices(prices)),
    )
    nodes, edges = found.node_attributes, found.edge_attributes
    assert set(nodes) >= ADDED
    assert set(edges) >= ADDED
    assert nodes["cost"].sum() + edges["cost"].sum() == pytest.approx(bill.cost, rel=1e-12)
    assert nodes["power"].sum() + edges["power"].sum() == pytest.approx(bill.power, rel=1e-12)
    for part in (nodes, edges):
        assert ((part["availability"] > 0) & (part["availability"] <= 1)).all()
    nvlink = "nvswitch" in t.kinds and t.is_kind("nvswitch")[t.edges].any(axis=1)
    assert found.latency == pytest.approx(
        np.where(nvlink, 25e-9, 500e-9) * np.ones(len(t.edges)), rel=1e-12
    )
    assert (found.capacity == t.capacity).all()


def test_availability_is_the_share_of_time_between_repairs():
    t = equipped(
        leaf_spine(2, 1, 1), mtbf={"server": 99.0, "switch": 999.0, "cable": np.inf}, mttr=1.0
    )
    assert t.node_attributes["availability"].tolist() == pytest.approx(
        [0.99, 0.99, 0.999, 0.999, 0.999]
    )
    assert t.edge_attributes["availability"].tolist() == [1.0, 1.0, 1.0, 1.0]
    shares = rp.reliability.availability(t.node_attributes["mtbf"], t.node_attributes["mttr"])
    assert np.allclose(t.node_attributes["availability"], shares, rtol=1e-15)


def test_lives_are_those_of_the_published_counts():
    """268 GPU and 53 node events; 16,384 GPUs in 2,048 nodes, 54 days; 0.00051, 0.00057 a month."""
    lives = mean_lives()
    assert lives["gpu"] == lives["accelerator"] == pytest.approx(16384 * 54 * DAY / 268, rel=1e-12)
    assert (
        lives["server"] == lives["node"] == pytest.approx(2048 * 54 * DAY / (268 + 53), rel=1e-12)
    )
    assert lives["switch"] == pytest.approx(YEAR / 12 / 0.00051, rel=1e-12)
    assert lives["cable"] == pytest.approx(YEAR / 12 / 0.00057, rel=1e-12)
    assert lives["nvswitch"] == np.inf
    assert mean_repair() == pytest.approx(352.4 * 60)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mtbf": {"fan": 1.0}}, "must be of .*cable.*, got fan"),
        ({"mtbf": {"switch": 0.0}}, "mtbf must be a number > 0, got 0.0"),
        ({"mttr": -1.0}, "mttr must be a number >= 0, got -1.0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        equipped(fat_tree(4), **arguments)


def test_hardware_that_nothing_is_known_of_is_named():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: "server", 1: "ocs", 2: "server"}, "device_class")
    nx.set_node_attributes(graph, {0: True, 1: False, 2: True}, "endpoint")
    with pytest.raises(
        ValueError, match=r"mtbf must name every device class of .*, got nothing for 'ocs'"
    ):
        equipped(graph, prices=unit_prices("helios2010"))
    with pytest.raises(ValueError, match="prices must have the cost of an ocs port"):
        equipped(graph, mtbf={"ocs": 1e9})
