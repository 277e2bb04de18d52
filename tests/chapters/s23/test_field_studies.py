"""Observed failure rates of switches, and what they cost a design."""

import math

import networkx as nx
import pytest

from chapters.s23.resilience import field_losses
from relparallel.published import facts
from relparallel.topology import bcube, fat_tree, leaf_spine


def test_only_switches_without_a_twin_cost_hosts():
    clos, cube = field_losses(fat_tree(k=4)), field_losses(bcube(4, 1))
    assert clos["hosts cut off"].to_dict() == pytest.approx(
        {"edge": 2, "aggregation": 0, "core": 0}
    )
    assert (cube["hosts cut off"] == 0).all()


def test_rates_are_those_of_the_study_and_hours_follow_the_repair():
    found = field_losses(leaf_spine(leaves=10, spines=4, hosts_per_leaf=16))
    tor, agg = (float(facts()[f"NR-lit-gill-{kind}"].value_text) for kind in ("tor", "agg"))
    assert found.loc["leaf", "failures per year"] == pytest.approx(-10 * math.log(1 - tor))
    assert found.loc["spine", "failures per year"] == pytest.approx(-4 * math.log(1 - agg))
    low, high = found.loc["leaf", ["host-hours per year, low", "host-hours per year, high"]]
    assert high == pytest.approx(10 * low)


def test_a_network_without_switches_loses_none():
    assert field_losses(nx.path_graph(3)).empty
