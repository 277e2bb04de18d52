"""Networks and strategies chosen together, against every combination one by one."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from joint_brute_force import (
    BATCH,
    GPT,
    PLAIN,
    SELENE,
    drawn,
    hall,
    one_piece,
    recoveries,
    shares,
    steady_shares,
    unit_hits,
)
from pace import pace
from relparallel.optimize import joint
from relparallel.parallel import Placement, StrategyGrid, price_strategies, step_time
from relparallel.topology import Design, Topology
from relparallel.topology.costs import unit_prices
from relparallel.training import (
    ComponentClass,
    FailureModel,
    network_impact,
    redundant_fabric,
)
from relparallel.units import GB

NARROW = {
    "schedule": "1f1b",
    "micro_batch": (1, 2),
    "recompute": "none",
    "zero_stage": (0, 1),
    "context": 1,
    "virtual_stages": 1,
    "sequence_parallel": False,
    "tensor": (1, 2),
}
WIRED = (4, 2, 1)


@cache
def fabrics(size):
    """Fabrics that differ in what fails, and in how fast they are."""
    servers = {"servers": size[0], "gpus": size[1], "servers_per_leaf": 2, "spines": 2}
    return {
        "one leaf": redundant_fabric(**servers, card=25 * GB),
        "two planes": redundant_fabric(**servers, planes=2, card=20 * GB),
        "rails": redundant_fabric(**servers, rails=size[1], card=25 * GB, relay=False),
    }


@cache
def wired_table(size, held, fabric):
    """Every feasible row on a network with what the loss of each part does to it."""
    machine, network = replace(hall(*size), nodes=size[0] - held), fabrics(size)[fabric]
    grid = StrategyGrid.all(machine.gpus, GPT, BATCH, **NARROW)
    found, rows = price_strategies(GPT, grid, machine, BATCH, network=network), []
    for row in np.flatnonzero(found.feasible).tolist():
        placement = Placement(strategy=grid[row])
        impact = network_impact(GPT, placement, machine, BATCH, network)
        bare = replace(machine, accelerator=None)
        parts = impact.component_classes({part.name: 1.0 for part in impact.parts}, bare)
        rows.append((placement, float(found.time[row]), impact, *unit_hits(placement, bare, parts)))
    return rows


def unhindered(slow, repair):
    """Mean speed of the slowest part, from the chance that none slower than a level is degraded."""
    levels = np.unique([1.0, *(d.component.slowdown for _, d in slow)])
    below = [
        np.exp(-repair * sum(r for r, d in slow if d.component.slowdown > level))
        for level in levels
    ]
    return float(np.diff(below, prepend=0.0) @ (1 / levels))


def wired_choices(instance, rates):
    """Goodput of every fabric, row, policy, checkpoint and number of spares.

    By a linear system, and by `steady_state` where a part stops several nodes at once.
    """
    size, parts = instance["size"], rates
    rates = {f"{c.level} {c.effect}": c.rate for c in instance["rates"]} | rates
    for fabric, held in product(fabrics(size), instance["spares"]):
        nodes, known = size[0] - held, {}
        for placement, time, impact, domains, shape in wired_table(size, held, fabric):
            seen = [
                (rates[d.component.name] * d.rate, d) for d in domains if d.component.name in rates
            ]
            speed = unhindered([x for x in seen if not x[1].component.stops], instance["repair"])
            if max(d.nodes for _, d in seen) > 1:
                machine = replace(hall(*size), nodes=nodes, accelerator=None)
                named = {part.name: parts.get(part.name, 0.0) for part in impact.parts}
                classes = instance["rates"] + impact.component_classes(named, machine)
                model = FailureModel(classes=classes, cluster=machine, placement=placement)
                for share in steady_shares(model, instance, held, known):
                    yield BATCH * GPT.sequence / time * share, fabric
                continue
            for recovery in recoveries(instance):
                lies = one_piece(nodes) if recovery.waits else shape
                if lies is None:
                    continue
                hit = [
                    (r, d.nodes, recovery.goes_back(d, lies)) for r, d in seen if d.component.stops
                ]
                for share in shares(hit, lies, nodes, held, recovery, instance, known):
                    yield BATCH * GPT.sequence / time * speed * share, fabric


@pytest.mark.parametrize("seed", range(pace(1, 4)))
def test_the_optimum_over_fabrics_equals_brute_force(seed):
    rng, won = np.random.default_rng(seed), set()
    for _ in range(pace(3, 7)):
        instance = {**drawn(rng), "size": WIRED, "spares": [0, 2]}
        instance["rates"] = tuple(c for c in instance["rates"] if c.level != "rack")
        named = ("leaf", "spine", "nic-leaf cable", "leaf-spine cable")
        rates = {name: float(10 ** rng.uniform(-8, -5)) for name in named if rng.random() < 0.7}
        options = {key: value for key, value in instance.items() if key != "size"}
        plan = joint(
            GPT,
            hall(*instance["size"]),
            global_batch=BATCH,
            limits=NARROW,
            network_rates=rates,
            network=fabrics(instance["size"]),
            **options,
        )
        every = list(wired_choices(instance, rates))
        best = max(goodput for goodput, _ in every)
        assert plan.goodput == pytest.approx(best, rel=1e-9)
        assert plan.goodput == pytest.approx(
            max(x for x, name in every if name == plan.fabric), rel=1e-9
        )
        won.add(plan.fabric)
    assert len(won) > 1 or seed > 1  # of the first draws more than one fabric is the best


def test_times_on_a_network_are_those_of_single_steps():
    size = (4, 2, 1)
    for fabric in fabrics(size):
        for placement, time, impact, *_ in wired_table(size, 0, fabric)[::3]:
            step = step_time(
                GPT, placement.strategy, hall(*size), BATCH, network=fabrics(size)[fabric]
            )
            assert time == pytest.approx(step.total, rel=1e-12)
            assert impact.step == pytest.approx(step.total, rel=1e-12)


def star(machine):
    """Every node on one switch by all its bandwidth: what a cluster without a network is."""
    gpus = np.arange(machine.gpus)
    inside = machine.gpus + gpus // machine.gpus_per_node
    top = machine.gpus + machine.nodes
    above = np.stack([np.unique(inside), np.full(machine.nodes, top)], axis=1)
    t = Topology.of(
        edges=np.concatenate([np.stack([gpus, inside], axis=1), above]),
        node_kind={"gpu": machine.gpus, "nvswitch": machine.nodes, "core": 1},
        device_class={"core": "switch"},
        meta=Design(name="star"),
    )
    link = machine.accelerator.node_link
    return replace(t, capacity=np.where(t.edges[:, 1] == top, machine.network_bandwidth, link))


def test_a_network_that_never_fails_nor_blocks_is_the_plain_cluster():
    machine = replace(SELENE, nodes=4)
    rates = (ComponentClass(name="node", level="node", rate=1e-7),)
    asked = {"global_batch": BATCH * 2, "limits": PLAIN, "spares": 0}
    plain = joint(GPT, machine, rates, **asked)
    wired = joint(GPT, machine, rates, network=star(machine), network_rates={}, **asked)
    assert (wired.strategy, wired.policy) == (plain.strategy, plain.policy)
    assert wired.goodput == pytest.approx(plain.goodput, rel=1e-12)
    both = joint(GPT, machine, rates, network=[None, star(machine)], network_rates={}, **asked)
    assert both.goodput == pytest.approx(plain.goodput, rel=1e-12)


def test_a_network_replaces_the_network_of_a_failure_table_and_says_what_others_lose():
    machine = replace(SELENE, nodes=4)
    wiring = {
        f"{n} planes": redundant_fabric(servers=4, planes=n, servers_per_leaf=2) for n in (1, 2)
    }
    plan = joint(GPT, machine, "llama3", global_batch=24, limits=PLAIN, spares=0, network=wiring)
    model = plan.search.model(plan.choice.site, plan.choice.row)
    names = [c.name for c in model.classes]
    assert not any("witch" in name for name in names[: len(plan.search.sites[0].failures.classes)])
    assert {"nic-leaf cable", "leaf-spine cable"} & set(names)
    assert "nic" not in names[len(plan.search.sites[0].failures.classes) :]
    other = next(name for name in wiring if name != plan.fabric)
    assert f"- network {other}: loses" in plan.explain()
    assert plan.network is wiring[plan.fabric]
    lost = plan.alternatives().set_index("axis").loc["network"]
    alone = joint(
        GPT, machine, "llama3", global_batch=24, limits=PLAIN, spares=0, network=wiring[other]
    )
    assert 1 - alone.goodput / plan.goodput == pytest.approx(lost["loses"], abs=1e-12)
    assert set(plan.to_frame()["network"]) <= set(wiring)


def test_the_network_is_paid_for_by_its_ports_cables_and_transceivers():
    machine = replace(SELENE, nodes=4)
    # 400 Gb/s for a card, twice as much above
    wiring = redundant_fabric(servers=4, servers_per_leaf=2)
    asked = {"global_batch": 24, "limits": PLAIN, "spares": 0, "price": 1.0, "network": wiring}
    plain = joint(GPT, machine, "llama3", "cost", **asked)
    paid = joint(GPT, machine, "llama3", "cost", write_off=1e4, **asked)
    prices = unit_prices("ndr2024").cost
    link = prices["cable"] + 2 * prices["transceiver"]
    cards = 32 * (link + prices["host port"] + prices["switch port"])
    above = 32 * (link + 2 * prices["switch port"])  # as much bandwidth above the leaves as below
    more = (paid.cost_per_token - plain.cost_per_token) * plain.goodput
    assert more == pytest.approx((cards + above) / 1e4, rel=1e-9)
