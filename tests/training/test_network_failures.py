from dataclasses import replace

import numpy as np
import pytest

from relparallel.hardware import Cluster, cluster
from relparallel.parallel import Placement, Strategy, step_time
from relparallel.parallel.flows import PairFlows, Wiring
from relparallel.parallel.group_bandwidth import group_links
from relparallel.parallel.step import slowed_step
from relparallel.topology import (
    dgx_superpod,
    fat_tree,
    leaf_spine,
    rail_only,
    tpu_v4,
)
from relparallel.training import FailureModel, network_impact, redundant_fabric
from relparallel.training.network_parts import NetworkPart, parts_of
from relparallel.workload import Transformer

GPT = Transformer(layers=8, hidden=1024, heads=16, vocabulary=51200, sequence=1024)
SPLIT = Strategy(tensor=4, pipeline=2, data=4)
PLACE = Placement(strategy=SPLIT)
FABRICS = {
    "one leaf": lambda: redundant_fabric(8, gpus=4, servers_per_leaf=4, spines=2),
    "two planes": lambda: redundant_fabric(8, planes=2, gpus=4, servers_per_leaf=4, spines=2),
    "rails": lambda: redundant_fabric(8, rails=4, gpus=4, servers_per_leaf=4, spines=2),
    "rails and planes": lambda: redundant_fabric(8, 4, 2, gpus=4, servers_per_leaf=4, spines=2),
    "leaf and spine": lambda: leaf_spine(leaves=4, spines=2, hosts_per_leaf=8),
    "fat tree": lambda: fat_tree(6),
    "rails only": lambda: rail_only(domains=8, gpus_per_domain=4),
    "torus": lambda: tpu_v4((4, 4, 8)),
}


def machine(gpus=32):
    return replace(cluster("a100-80gb-selene", gpus=gpus), name="")


def impact(network, placement=PLACE, samples=2):
    return network_impact(
        GPT, placement, machine(placement.strategy.gpus), 64, network, samples=samples
    )


def rows(found):
    return {
        (p.name, p.count, len(p.stopped), round(p.slowdown, 9), p.slowest, round(p.left, 9))
        for p in found.parts
    }


@pytest.mark.parametrize("name", FABRICS)
def test_classes_of_parts_are_what_all_single_parts_give(name):
    network = FABRICS[name]()
    assert rows(impact(network)) == rows(impact(network, samples=None))
    assert sum(part.count for part in impact(network).parts) == len(parts_of(network))


@pytest.mark.parametrize("name", ["one leaf", "two planes", "rails", "fat tree"])
@pytest.mark.parametrize("order", ["tensor context data pipeline", "pipeline context data tensor"])
def test_a_part_does_what_the_step_without_it_takes(name, order):
    """Against `step_time` on the network without the part; it refuses groups torn apart."""
    network, place = FABRICS[name](), Placement(strategy=SPLIT, order=tuple(order.split()))
    whole = step_time(GPT, SPLIT, machine(), 64, placement=place, network=network).total
    found = impact(network, place)
    assert found.step == pytest.approx(whole, rel=1e-12)
    seen = set()
    for part in parts_of(network):
        if part.name in seen or (network.multiplicity[list(part.pairs)] > 1).any():
            continue
        seen.add(part.name)
        alive = np.ones(network.num_nodes + len(network.edges), dtype=bool)
        alive[list(part.nodes)] = False
        alive[network.num_nodes + np.array(part.pairs, dtype=int)] = False
        kinds = [p for p in found.parts if p.name == part.name]
        slow = max(without(place, network, alive) / whole, 1.0)
        stops = [p for p in kinds if p.stopped]
        assert stops if slow == np.inf else min(abs(p.slowdown - slow) for p in kinds) < 1e-12, part


@pytest.mark.parametrize("name", FABRICS)
def test_flows_after_a_loss_are_those_searched_anew(name):
    """What a loss moves is added to the loads before it; `group_links` searches all pairs again."""
    network = FABRICS[name]()
    wiring = Wiring.of(network)
    for degree, pattern in (("data", "ring"), ("pipeline", "chain"), ("tensor", "ring")):
        links = group_links(PLACE, network, degree, pattern=pattern)
        pairs = PairFlows.of(wiring, network, network.hosts[links.groups], pattern)
        assert np.allclose(pairs.load, links.load, rtol=1e-12, atol=1e-12)
        for part in parts_of(network)[::7]:
            _, cables = part.left(network)
            alive = np.concatenate([np.ones(network.num_nodes, dtype=bool), cables > 0])
            if (cables[cables != network.multiplicity] > 0).any():
                continue  # one of several cables: `alive` speaks of pairs
            fresh = group_links(PLACE, network, degree, pattern=pattern, alive=alive)
            bandwidth, torn = pairs.without(wiring, network, cables)
            assert bandwidth == pytest.approx(fresh.bandwidth.min(), rel=1e-12)
            apart = fresh.groups[~fresh.joined]
            assert torn.size == 0 or set(torn.tolist()) <= set(
                network.hosts[apart].ravel().tolist()
            )
            assert (torn.size > 0) == (apart.size > 0)


def without(place, network, alive):
    """Seconds of a step, infinite where groups are torn apart."""
    try:
        return step_time(
            GPT, SPLIT, machine(), 64, placement=place, network=network, alive=alive
        ).total
    except ValueError as error:
        if "torn apart" not in str(error):
            raise
        return np.inf


def by_name(found):
    return {part.name: part for part in found.parts}


def test_each_of_parallel_cables_may_fail():
    bundled = leaf_spine(leaves=4, spines=2, hosts_per_leaf=8, cables=3)
    cables = by_name(impact(bundled))["leaf-spine cable"]
    assert cables.count == 3 * 4 * 2
    assert cables.left == pytest.approx(5 / 6)  # of the six cables of a leaf


def test_one_leaf_stops_its_servers_and_two_halve_their_cards():
    single, dual = by_name(impact(FABRICS["one leaf"]())), by_name(impact(FABRICS["two planes"]()))
    assert single["leaf"].effect == "stop"
    assert single["leaf"].stopped == tuple(range(16)) or single["leaf"].stopped == tuple(
        range(16, 32)
    )
    assert dual["leaf"].effect == "degrade"
    assert dual["leaf"].left == pytest.approx(0.5)
    assert dual["plane"].left == pytest.approx(0.5)
    assert dual["nic-leaf cable"].left == pytest.approx(0.5)
    # all groups that wait for the card with one port are as slow as if every card had lost one
    assert dual["nic-leaf cable"].slowdown == pytest.approx(dual["plane"].slowdown)


def test_rails_keep_the_job_alive_without_a_second_plane():
    rails = by_name(impact(FABRICS["rails"]()))
    assert rails["leaf"].effect == "degrade"
    assert rails["leaf"].left == pytest.approx(3 / 4)  # three rails carry what four did
    assert rails["nic"].left == pytest.approx(3 / 4)


def test_without_relays_a_lost_port_cuts_off_a_single_card_and_halves_a_dual_one():
    shape = {"gpus": 4, "servers_per_leaf": 4, "spines": 2, "relay": False}
    single = by_name(impact(redundant_fabric(8, **shape)))
    dual = by_name(impact(redundant_fabric(8, planes=2, **shape)))
    assert len(single["nic-leaf cable"].stopped) == len(single["nic"].stopped) == 1
    assert dual["nic-leaf cable"].left == pytest.approx(0.5)
    assert len(dual["nic"].stopped) == 1


def test_all_fabrics_of_the_family_are_as_fast_while_they_work():
    steps = {
        impact(FABRICS[name]()).step
        for name in ("one leaf", "two planes", "rails", "rails and planes")
    }
    assert max(steps) == pytest.approx(min(steps), rel=1e-12)


def test_a_host_with_one_cable_is_cut_off_with_it():
    found = by_name(impact(FABRICS["leaf and spine"]()))
    assert len(found["host-leaf cable"].stopped) == 1
    assert len(found["nic"].stopped) == 1
    assert len(found["leaf"].stopped) == 8
    assert found["spine"].effect == "degrade"
    assert found["spine"].left == pytest.approx(0.5)


def test_torn_networks_lose_the_smaller_side():
    network = leaf_spine(leaves=4, spines=1, hosts_per_leaf=8)
    assert len(by_name(impact(network))["spine"].stopped) == 24


def test_switches_that_carry_nothing_do_nothing():
    """Tensor-parallel ranks of one server leave the fabric alone."""
    found = network_impact(
        GPT, Placement(strategy=Strategy(tensor=4)), machine(4), 8, FABRICS["rails"]()
    )
    assert {part.effect for part in found.parts if "nvswitch" not in part.name} == {"none"}


def test_component_classes_keep_the_rate_and_what_stops():
    found = impact(FABRICS["one leaf"]())
    home = Cluster(nodes=8, gpus_per_node=4, nodes_per_switch=4)
    leaf, spine = found.component_classes({"spine": 1e-9, "leaf": 2e-9}, home)
    assert (leaf.name, leaf.level, leaf.effect, leaf.slowdown) == ("leaf", "switch", "stop", 1.0)
    assert (leaf.parts, leaf.rate, len(leaf.gpus)) == (2, 2e-9, 16)
    model = FailureModel(classes=(leaf, spine), cluster=home, placement=PLACE)
    assert model.class_rate(leaf) == pytest.approx(2 * 2e-9)
    assert model.class_rate(spine) == pytest.approx(2 * 1e-9)
    assert spine.effect == "degrade"
    assert spine.slowdown > 1
    with pytest.raises(ValueError, match="rates must name parts"):
        found.component_classes({"core": 1e-9}, home)


def test_the_pods_of_a_superpod_lose_a_rail():
    place = Placement(strategy=Strategy(tensor=8, pipeline=4, data=8))
    found = by_name(impact(dgx_superpod(scalable_units=1), place))
    assert found["leaf"].effect == "degrade"
    assert not found["nic"].stopped


def test_slower_groups_make_slower_steps():
    usual = slowed_step(GPT, SPLIT, machine(), 64, {})
    assert usual == pytest.approx(step_time(GPT, SPLIT, machine(), 64).total, rel=1e-12)
    assert slowed_step(GPT, SPLIT, machine(), 64, {"tensor": 2.0}) > usual


@pytest.mark.parametrize(
    "change", [{"rails": 3}, {"servers_per_leaf": 3}, {"planes": 0}, {"card": 0.0}]
)
def test_fabrics_that_do_not_divide_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        redundant_fabric(**{"servers": 8, "rails": 1} | change)


def test_a_part_is_one_of_three_things():
    assert NetworkPart(name="a", count=1, stopped=(1,)).effect == "stop"
    assert NetworkPart(name="a", count=1).effect == "none"


def test_networks_that_are_torn_from_the_beginning_are_refused():
    network = leaf_spine(leaves=2, spines=1, hosts_per_leaf=16)
    torn = replace(
        network,
        edges=network.edges[1:],
        multiplicity=network.multiplicity[1:],
        capacity=network.capacity[1:],
        latency=network.latency[1:],
    )
    with pytest.raises(ValueError, match="network must join"):
        impact(torn)
