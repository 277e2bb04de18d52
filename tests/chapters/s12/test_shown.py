"""What a notebook shows of a choice: headline, then table; formulations come when asked for."""

import networkx as nx
import pandas as pd

from chapters.s12.fabric_choice import cheapest_fabric
from chapters.s12.redundancy_allocation import redundancy_allocation
from chapters.s12.survivable_augmentation import survivable_augmentation
from relparallel.topology import leaf_spine


def test_an_allocation_names_its_subsystems():
    parts = pd.DataFrame(
        {
            "subsystem": ["supply", "supply", "fan"],
            "reliability": [0.99, 0.999, 0.95],
            "price": [10, 30, 3],
        }
    )
    best = redundancy_allocation(parts, limits={"price": 80}, needed=[1, 2])
    assert best.to_frame().index.tolist() == ["supply", "fan"]
    assert "price 74 of 80" in best._repr_html_()
    assert "<th>supply</th>" in best._repr_html_()
    more = redundancy_allocation(parts, limits={"price": 80}, needed=[1, 2], most=9)
    assert more.unreliability < best.unreliability  # eight parts were the limit, not the price


def test_other_choices_begin_with_what_they_come_to():
    closing = nx.Graph([(0, 3, {"cost": 5.0})])
    assert (
        "1 links, price 5 (proven)"
        in survivable_augmentation(nx.path_graph(4), closing)._repr_html_()
    )
    choice = cheapest_fabric({"one spine": leaf_spine(4, 1, 4)}, 16, 0.01)
    assert "u of pair at most 0.01: one spine, proven" in choice._repr_html_()
    assert "no fabric" in choice.at(1e-12)._repr_html_()
