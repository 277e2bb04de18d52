"""Placements of checkpoint copies against node-by-node matchings and against all placements."""

from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from relparallel.optimize import ReplicaPlacement, place_replicas


def drawn(rng, largest):
    nodes = int(rng.integers(2, largest + 1))
    names = ("rack", "power", "switch")[: rng.integers(1, 4)]
    kinds = {name: rng.integers(0, rng.integers(1, nodes + 1), nodes) for name in names}
    return kinds, int(rng.integers(1, min(3, nodes) + 1)), int(rng.integers(1, 4))


def may_hold(domains):
    labels = np.column_stack([np.asarray(column) for column in domains.values()])
    return (labels[:, None] != labels[None]).all(axis=2)


def check(found, domains, copies, room):
    """A placement keeps every rule; a violator refutes every placement."""
    allowed = may_hold(domains)
    if found.feasible:
        assert found.holders.shape == (len(allowed), copies)
        assert allowed[np.arange(len(allowed))[:, None], found.holders].all()
        assert all(len(set(row)) == copies for row in found.holders.tolist())
        assert np.bincount(found.holders.ravel()).max() <= room
        assert all(found.survives(kind) == 1 for kind in (*domains, "node"))
    else:
        owners = found.violator.owners
        free = np.minimum(room, allowed[owners].sum(axis=0)).sum()
        assert (found.violator.needed, found.violator.room) == (copies * owners.size, free)
        assert free < copies * owners.size


def any_placement(allowed, copies, room):
    """Every choice of holders, one owner after the other."""
    choices = [list(combinations(np.flatnonzero(row), copies)) for row in allowed]
    return any(
        np.bincount(np.concatenate(rows), minlength=len(allowed)).max() <= room
        for rows in product(*choices)
    )


def test_small_placements_exist_exactly_where_the_search_of_all_finds_one():
    rng, seen = np.random.default_rng(1), set()
    for _ in range(400):
        domains, copies, room = drawn(rng, 5)
        found = place_replicas(domains, copies, room)
        check(found, domains, copies, room)
        assert found.feasible == any_placement(may_hold(domains), copies, room)
        seen.add(found.feasible)
    assert seen == {True, False}


def test_larger_placements_exist_exactly_where_the_flow_from_node_to_node_does():
    rng, seen = np.random.default_rng(2), set()
    for _ in range(80):
        domains, copies, room = drawn(rng, 24)
        network = nx.DiGraph()
        for owner, holder in np.argwhere(may_hold(domains)):
            network.add_edge(("owner", owner), ("holder", holder), capacity=1)
        for node in range(len(may_hold(domains))):
            network.add_edge("source", ("owner", node), capacity=copies)
            network.add_edge(("holder", node), "sink", capacity=room)
        found = place_replicas(domains, copies, room)
        check(found, domains, copies, room)
        whole = nx.maximum_flow_value(network, "source", "sink") == copies * len(may_hold(domains))
        assert found.feasible == whole
        seen.add(whole)
    assert seen == {True, False}


def test_two_thousand_nodes_in_racks_and_on_power_feeds():
    node = np.arange(2048)
    domains = {"rack": node // 4, "power": node // 64, "switch": node % 8}
    check(place_replicas(domains, copies=2), domains, 2, 2)


def test_partners_in_the_rack_fall_with_it():
    racks = np.arange(8) // 2
    beside = ReplicaPlacement(domains={"rack": racks}, holders=(np.arange(8) ^ 1)[:, None])
    assert (beside.survives("node"), beside.survives("rack")) == (1.0, 0.0)


def test_a_rack_with_more_than_half_of_the_nodes_is_named():
    found = place_replicas({"rack": [0] * 5 + [1] * 3})
    assert found.violator.owners.tolist() == [0, 1, 2, 3, 4]
    assert "5 nodes (0, 1, 2, 3, 4) need 5 copies" in str(found.violator)
    assert list(found.to_frame().columns) == ["rack"]
    with pytest.raises(ValueError, match="kind can be asked"):
        found.survives("rack")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"domains": {}}, "domains"),
        ({"domains": [0, 1]}, "domains"),
        ({"domains": {"rack": [0]}}, "domains"),
        ({"domains": {"rack": [0.5, 1.0]}}, "domains"),
        ({"domains": {"rack": [-1, 0]}}, "domains"),
        ({"domains": {"rack": [0, 1], "power": [0, 1, 2]}}, "domains"),
        ({"domains": {3: [0, 1]}}, "domains"),
        ({"domains": {"rack": np.arange(3000)}}, "domains"),
        ({"copies": 0}, "copies"),
        ({"copies": 9}, "copies"),
        ({"room": 0}, "room"),
        ({"copies": True}, "copies"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises((TypeError, ValueError), match=named):
        place_replicas(**{"domains": {"rack": [0, 0, 1, 1]}, **arguments})


def test_an_unknown_kind_is_refused():
    racks = {"rack": np.array([0, 0, 1, 1])}
    good = place_replicas(racks)
    assert list(good.to_frame().columns) == ["rack", "copy 1"]
    with pytest.raises(ValueError, match="kind"):
        good.survives("hall")
