"""What a job needs, part by part and pair by pair, against steps priced on the network without."""

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest

from relparallel.hardware import cluster
from relparallel.parallel import Placement, Strategy, step_time
from relparallel.parallel.flows import PairFlows, Wiring
from relparallel.parallel.group_bandwidth import communicating, groups_of
from relparallel.topology import Design, Topology, dgx_superpod, leaf_spine, rail_only, torus
from relparallel.training import needed, network_impact, redundant_fabric
from relparallel.training.network_parts import parts_of
from relparallel.workload import Transformer

GPT = Transformer(layers=8, hidden=1024, heads=16, vocabulary=51200, sequence=1024)
FABRICS = {
    "leaf and spine": lambda: leaf_spine(leaves=2, spines=2, hosts_per_leaf=4),
    "one spine": lambda: leaf_spine(leaves=4, spines=1, hosts_per_leaf=2),
    "rails": lambda: redundant_fabric(2, rails=2, gpus=4, servers_per_leaf=2, spines=1),
    "planes": lambda: redundant_fabric(2, planes=2, gpus=4, servers_per_leaf=1, spines=1),
    "rails only": lambda: rail_only(domains=2, gpus_per_domain=4),
    "torus": lambda: torus((4, 3)),
    "mesh": lambda: torus((2, 4), wrap=(False, False)),
}
SPLITS = {
    "TP4 DP2": Strategy(tensor=4, data=2),
    "TP2 PP2 DP2": Strategy(tensor=2, pipeline=2, data=2),
    "PP8": Strategy(pipeline=8),
}
MACHINE = replace(cluster("a100-80gb-selene", gpus=8), name="")


def ask(network, split, **more):
    return needed(split, network, GPT, MACHINE, 64, **more)


@cache
def fabric(name):
    return FABRICS[name]()


@cache
def whole(name, split):
    return step_time(GPT, SPLITS[split], MACHINE, 64, network=fabric(name)).total


def without(name, split, *parts):
    """Effect and slowdown by `step_time` on what is left; it refuses groups that are torn apart."""
    network = fabric(name)
    alive = np.ones(network.num_nodes + len(network.edges), dtype=bool)
    for part in parts:
        alive[list(part.nodes)] = False
        alive[network.num_nodes + np.array(part.pairs, dtype=int)] = False
    try:
        time = step_time(GPT, SPLITS[split], MACHINE, 64, network=network, alive=alive).total
    except ValueError as error:
        if "torn apart" not in str(error):
            raise
        return "stop", 1.0
    slow = round(max(time / whole(name, split), 1.0), 9)
    return ("degrade" if slow > 1 else "none"), slow


def verdicts(found):
    """What each part does."""
    return {
        parts[0]: (loss.effect.effect, round(loss.effect.slowdown, 9))
        for loss in found.losses
        for parts in loss.parts
    }


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", FABRICS)
def test_every_part_does_what_the_step_without_it_takes(name, split):
    found = verdicts(ask(fabric(name), SPLITS[split]))
    assert found == {part: without(name, split, part) for part in parts_of(fabric(name))}


@pytest.mark.parametrize("split", ["TP2 PP2 DP2", "PP8"])
@pytest.mark.parametrize("name", ["leaf and spine", "one spine", "rails only", "torus", "mesh"])
def test_every_pair_does_what_the_step_without_both_takes(name, split):
    network = fabric(name)
    single = verdicts(ask(network, SPLITS[split]))
    worst = ("none", "degrade", "stop").index
    slow = Counter()
    for pair in combinations(parts_of(network), 2):
        names = " + ".join(sorted(part.name for part in pair))
        alone = max((single[part][0] for part in pair), key=worst)
        slow[names, *without(name, split, *pair), alone] += 1
    found = Counter()
    for loss in ask(network, SPLITS[split], lost=2).losses:
        names = " + ".join(sorted(loss.effect.name.split(" + ")))
        effect = loss.effect
        found[names, effect.effect, round(effect.slowdown, 9), loss.alone] += effect.count
    assert found == slow


@pytest.mark.parametrize("name", FABRICS)
def test_kinds_of_parts_are_those_of_network_impact(name):
    network, split = fabric(name), SPLITS["TP4 DP2"]
    impact = network_impact(GPT, Placement(strategy=split), MACHINE, 64, network)
    found = ask(network, split)
    kinds = [
        Counter((p.name, p.effect, round(p.slowdown, 9), p.slowest, len(p.stopped)) for p in parts)
        for parts in ((loss.effect for loss in found.losses), impact.parts)
    ]
    assert kinds[0] == kinds[1]
    assert found.step == impact.step


def carrying(network, split):
    """The plain model: a cable on a path of a group is needed."""
    wiring, place = Wiring.of(network), Placement(strategy=split)
    load = sum(
        PairFlows.of(wiring, network, network.hosts[groups_of(place, degree)], pattern).load
        for degree, pattern in communicating(split).items()
    )
    return {(pair,) for pair in np.flatnonzero(load.reshape(2, -1).sum(axis=0)).tolist()}


def test_a_cable_on_a_path_need_not_be_needed():
    """A ring that runs one way leaves the way back to what loses its cable."""
    network, split = torus((4, 4)), Strategy(tensor=4)
    assert len(carrying(network, split)) == 4
    assert needed(split, network).count("none") == network.num_links


def test_a_cable_on_no_path_may_be_all_that_holds_a_host():
    """A job of one GPU sends nothing, and yet the only cable of a host is needed."""
    network = leaf_spine(leaves=2, spines=2, hosts_per_leaf=4)
    for split, job in ((SPLITS["TP4 DP2"], 8), (Strategy(tensor=4), 4)):
        found = needed(split, network)
        stops = {
            parts[0].name for loss in found.losses if loss.effect.stopped for parts in loss.parts
        }
        assert stops == {"host-leaf cable", "leaf", "nic"}
        cut = sum(
            loss.effect.count
            for loss in found.losses
            if loss.effect.stopped and loss.effect.name == "nic"
        )
        assert cut == job


def test_hosts_that_no_switch_joins_any_more_stop():
    """Two planes, hosts that do not forward: one lost port each leaves neighbours of a ring joined."""
    network = Topology.of(
        edges=[(host, switch) for host in range(4) for switch in (4, 5)],
        node_kind={"host": 4, "switch": 2},
        transit=np.arange(6) >= 4,
        meta=Design(name="planes"),
    )
    found = needed(Strategy(data=4), network, lost=2)
    cables = [
        loss for loss in found.losses if loss.effect.name == "host-switch cable + host-switch cable"
    ]
    # both ports of one host; or one of a host and the other one of another
    assert sum(loss.effect.count for loss in cables if loss.effect.stopped) == 4 + 4 * 3
    assert {loss.alone for loss in cables} == {"degrade"}


def test_parallel_cables_count_singly():
    network = leaf_spine(leaves=2, spines=1, hosts_per_leaf=4, cables=2)
    split = SPLITS["TP4 DP2"]
    frame = ask(network, split).to_frame(each=True)
    cables = frame[frame["part"].str.endswith("cable")]
    assert cables["count"].sum() == network.num_links
    assert (cables.loc[cables["part"] == "leaf-spine cable", "count"] == 2).all()
    # one of two cables slows, both of a pair stop: once for each leaf
    both = ask(network, split, lost=2)
    ends = [
        loss for loss in both.losses if loss.effect.name == "leaf-spine cable + leaf-spine cable"
    ]
    assert sum(loss.effect.count for loss in ends if loss.effect.effect == "stop") == 2
    each = [part.number(network) for part in parts_of(network)]
    pairs = sum(
        each[i] * (each[i] - 1) // 2 if i == j else each[i] * each[j]
        for i, j in combinations_with_replacement(range(len(each)), 2)
    )
    assert sum(loss.effect.count for loss in both.losses) == pairs


@pytest.mark.parametrize("lost", [1, 2])
def test_classes_give_what_every_part_gives(lost):
    """On a larger network, each part for itself."""
    split = Strategy(tensor=4, pipeline=2, data=2)
    for network in (rail_only(domains=4, gpus_per_domain=4), torus((4, 4))):
        found = [needed(split, network, lost=lost, samples=samples) for samples in (2, None)]
        tables = [one.to_frame().drop(columns="for example") for one in found]
        same = [sorted(table.round(9).astype(str).values.tolist()) for table in tables]
        assert same[0] == same[1]


def test_the_line_says_how_many():
    network = dgx_superpod(scalable_units=1)
    found = needed(Strategy(tensor=8, data=32), network)
    assert "of 768 links" in repr(found)
    assert sum(found.count(effect) for effect in ("stop", "degrade", "none")) == sum(
        part.number(network) for part in parts_of(network)
    )
    assert "neither part does alone" in repr(needed(Strategy(data=4), torus((4,)), lost=2))


def test_what_a_model_needs_is_refused_without_one():
    network, split = torus((4, 2)), SPLITS["TP4 DP2"]
    with pytest.raises(ValueError, match="cluster must be left out without a model"):
        needed(split, network, cluster=MACHINE)
    with pytest.raises(TypeError, match="cluster must be Cluster, got None"):
        needed(split, network, GPT)
    with pytest.raises(ValueError, match=r"lost must be an integer in \[1, 2\], got 3"):
        needed(split, network, lost=3)
    with pytest.raises(ValueError, match="effect must be one of"):
        needed(split, network).count("slow")
