"""The cheapest fabric is the cheapest that holds, and its bracket holds the exact value."""

import numpy as np
import pytest

import relparallel as rp
from relparallel.optimize import cheapest_fabric, fabric_choice

FABRICS = {f"{s} spines": rp.topology.leaf_spine(4, s, 4) for s in (1, 2, 4)} | {
    "bcube": rp.topology.bcube(4, 1)
}


def test_the_unavailability_is_that_of_the_exact_programme():
    choice = cheapest_fabric(FABRICS, 16, 0.5)
    for name, fabric in FABRICS.items():
        ready = rp.topology.equipped(fabric)
        up = ready.node_attributes["availability"].copy()
        up[[0, 15]] = 1.0
        exact = rp.reliability.evaluate(ready, (0, 15), link_up="availability", node_up=up).unreliability
        lower, upper = choice.table.loc[name, ["lower", "upper"]]
        assert lower == upper == pytest.approx(exact, rel=1e-9)


def test_a_bracket_of_smaller_networks_holds_the_exact_value(monkeypatch):
    exact = cheapest_fabric(FABRICS, 16, 0.5).table
    monkeypatch.setattr(fabric_choice, "MOST_STATES", 4)
    narrow = cheapest_fabric(FABRICS, 16, 0.5).table
    assert (narrow["upper"] > narrow["lower"]).any()
    assert (narrow["lower"] <= exact["lower"] * (1 + 1e-12)).all()
    assert (narrow["upper"] >= exact["upper"] * (1 - 1e-12)).all()


@pytest.mark.parametrize("admitted", [1e-3, 2e-5, 1e-8, 1e-15])
def test_the_choice_is_the_cheapest_that_is_good_enough(admitted):
    choice = cheapest_fabric(FABRICS, 16, admitted)
    good = choice.table[choice.table["upper"] <= admitted]
    assert choice.proven
    assert choice.name == (good["cost"].idxmin() if len(good) else None)
    assert choice.at(0.5).name == choice.table["cost"].idxmin()


def test_small_fabrics_are_not_chosen():
    choice = cheapest_fabric(FABRICS, 17, 0.5)
    assert choice.name is None
    assert set(choice.verdicts) == {"too few hosts"}


def test_an_open_bracket_is_not_called_proven():
    table = cheapest_fabric(FABRICS, 16, 0.5).table.copy()
    table.iloc[0, table.columns.get_loc("lower")] = 0.0
    choice = fabric_choice.FabricChoice(table=table, hosts=16, unavailability=1e-12 + np.finfo(float).eps)
    assert choice.verdicts.iloc[0] == "not decided"
    assert not choice.proven
