"""Importance where a closed form answers: against the sweep back, and against both states of a part."""

from fractions import Fraction
from time import process_time

import networkx as nx
import numpy as np
import pytest

from relparallel.reliability import evaluate
from relparallel.reliability.chances import CERTAIN
from relparallel.reliability.closed_forms import partition_slopes
from relparallel.reliability.closed_forms.form_slopes import Sides
from relparallel.reliability.closed_forms.pivotal_blocks import pivotal_slopes
from relparallel.reliability.programme.frontier import NotExactError
from relparallel.topology import Topology, fat_tree, leaf_spine, three_tier


def under_single_aggregation_switches():
    """Three tiers with one aggregation switch per pod in the place of a pair."""
    graph = nx.Graph(three_tier(3, 4, 2, 1).to_networkx())
    pairs = [v for v, tier in graph.nodes("tier") if tier == 2]
    graph.remove_nodes_from(pairs[::2])
    return Topology.from_networkx(graph)


NETWORKS = {
    "leaf-spine": (leaf_spine(5, 4, 2), ()),
    "leaves under one spine": (leaf_spine(4, 1, 2), ()),
    "switches of a fat-tree": (fat_tree(4), (2, 3)),
    "partitions of pods": (fat_tree(4), (2,)),
    "two aggregation switches per plane": (three_tier(3, 3, 3, 2), (2, 3)),
    "one plane, cables to cores": (under_single_aggregation_switches(), (2,)),
}
TERMINALS = {
    "all": "all",
    "one": (2,),
    "one switch": (0, 1),
    "one pod": (0, 2),
    "two": (0, 5),
    "many": (0, 1, 3, 7),
}


def chances(network, perfect_cables, down, host=0.9):
    """Chances by tier and by tier of cables; switches at the edge that are no terminals' work."""
    node = np.where(network.endpoint, 1 - host, down * np.array([1, 2, 3, 4])[network.tier])
    if network.tier.max() > 2:
        node[network.tier == 1] = 0.0
    link = down * np.array([0, 1, 2, 5])[network.tier[network.edges].max(axis=1)]
    link[np.isin(network.tier[network.edges].max(axis=1), perfect_cables)] = 0.0
    return {"link_up": 1 - link, "node_up": 1 - node}


def failing_cables(network, down, more=()):
    """Aggregation switches (2), cores (3) and cables between them (4) fail, some more than others."""
    extra, cables = dict(more), network.tier[network.edges].max(axis=1) == 3
    node = [0.0, 0.0, down + extra.get(2, 0.0), down + extra.get(3, 0.0)]
    return {
        "link_up": np.where(cables, 1 - down - extra.get(4, 0.0), 1.0),
        "node_up": 1 - np.array(node)[network.tier],
    }


@pytest.mark.parametrize("down", [0.1, 1e-3, 1e-9])
@pytest.mark.parametrize("asked", TERMINALS.values(), ids=TERMINALS)
@pytest.mark.parametrize(("network", "perfect"), NETWORKS.values(), ids=NETWORKS)
def test_every_part_against_the_sweep_back(network, perfect, asked, down):
    parts = chances(network, perfect, down)
    closed = evaluate(network, asked, method="closed_form", **parts)
    found, swept = (
        evaluate(network, asked, method=m, **parts).importance() for m in ("closed_form", "exact")
    )
    assert closed.unreliability == found.unreliability == pytest.approx(swept.unreliability, rel=1e-12, abs=0)
    assert (found.names, found.kinds) == (swept.names, swept.kinds)
    np.testing.assert_allclose(found.birnbaum, swept.birnbaum, rtol=1e-11, atol=1e-30 * swept.unreliability)
    assert found.structural == pytest.approx(swept.structural, rel=1e-11, abs=1e-30)
    assert found.risk_reduction == pytest.approx(swept.risk_reduction, rel=1e-9)
    assert len(found.to_frame()) == len(found.names)


@pytest.mark.parametrize("asked", [(0, 3), (0, 1, 5), "all"], ids=str)
@pytest.mark.parametrize("down", [Fraction(1, 8), Fraction(1, 2**20)])
@pytest.mark.parametrize("name", ["leaf-spine", "switches of a fat-tree", "partitions of pods"])
def test_one_part_of_every_class_against_conditioning_in_fractions(name, down, asked, by_conditioning):
    network, perfect = NETWORKS[name]
    kinds = network.tier[network.edges].max(axis=1)
    links = {
        tuple(pair): down * int(kind) * (int(kind) not in (1, *perfect))
        for pair, kind in zip(network.edges.tolist(), kinds.tolist(), strict=True)
    }
    nodes = {v: down * int(t) * (t > 1 or not perfect) for v, t in enumerate(network.tier.tolist())}
    asked_nodes = set(range(network.num_hosts)) if asked == "all" else set(asked)
    floats = {pair: float(q) for pair, q in links.items()}, {v: float(q) for v, q in nodes.items()}
    result = evaluate(network, asked, link_down=floats[0], node_down=floats[1])
    assert result.method == "closed_form"
    found = result.importance()
    slopes = dict(zip(found.names, found.birnbaum.tolist(), strict=True))
    near = {max(pair) for pair in links if min(pair) in asked_nodes}
    classes = {}
    for part in found.names:
        ends = part if isinstance(part, tuple) else (part,)
        classes[tuple(sorted((int(network.tier[v]), v in near) for v in ends))] = part
    assert len(classes) >= 2
    for part in classes.values():
        exact = by_conditioning(network, asked, links, nodes, part)
        assert slopes[part] == pytest.approx(exact, rel=1e-12, abs=0)


def test_slopes_of_large_fabrics_are_the_derivative_of_the_form():
    """Far too wide for the programme: the sum over all switches, by a central difference."""
    for network, asked in ((leaf_spine(60, 40, 1), (0, 59)), (fat_tree(24), "all"), (fat_tree(16), (0, 900))):
        switch, step = network.tier >= 2, 1e-5
        if network.tier.max() == 2:
            switch = network.tier >= 1
        down = np.where(switch, 0.6, 0.0)
        found = evaluate(network, asked, node_down=down).importance()
        high, low = (
            evaluate(network, asked, node_down=np.where(switch, 0.6 + h, 0.0)).unreliability
            for h in (step, -step)
        )
        assert found.birnbaum.sum() == pytest.approx((high - low) / (2 * step), rel=1e-6, abs=0)


@pytest.mark.parametrize("asked", ["all", (0, 431), (0, 100, 200, 300)])
def test_partitions_of_many_pods_are_the_derivative_of_their_form(asked):
    """Cores, switches and cables of the 12-ary fat-tree, each class by its own central difference."""
    network, step = fat_tree(12), 1e-5
    found = evaluate(network, asked, **failing_cables(network, 0.4)).importance()
    names = {name: slope for name, slope in zip(found.names, found.birnbaum.tolist(), strict=True) if slope}
    tiers = [int(network.tier[v]) if isinstance(v, int) else 4 for v in names]
    for of in (2, 3, 4):
        high, low = (
            evaluate(network, asked, **failing_cables(network, 0.4, {of: h})).unreliability
            for h in (step, -step)
        )
        mine = sum(slope for slope, tier in zip(names.values(), tiers, strict=True) if tier == of)
        assert mine == pytest.approx((high - low) / (2 * step), rel=1e-7, abs=0)


def test_slopes_far_below_the_last_digit_of_one():
    """64 leaves and 32 spines: to first order the 31 other spines, or their cables, cut one leaf off."""
    network, down = leaf_spine(64, 32, 1), 1e-6
    cables = np.where(network.tier[network.edges].max(axis=1) == 2, down, 0.0)
    found = evaluate(network, "all", link_down=cables).importance()
    assert found.birnbaum == pytest.approx(np.full(64 * 32, down**31), rel=1e-4, abs=0)


@pytest.mark.parametrize(
    ("network", "asked", "chance"),
    [
        (leaf_spine(16, 8, 4), (0, 63), {"link_up": 0.99, "node_up": 0.999}),
        (leaf_spine(48, 24, 4), "all", {"link_up": 0.99, "node_up": 0.999}),
        (leaf_spine(48, 24, 4), (0, 100), {"link_up": 0.99, "node_up": 0.999}),
        (fat_tree(6), "all", {"node_up": 0.999}),
        (fat_tree(16), "all", {"node_up": 0.999}),
        (fat_tree(8), "all", failing_cables(fat_tree(8), 0.01)),
        (fat_tree(8), (0, 127), failing_cables(fat_tree(8), 0.01)),
        (fat_tree(16), (0, 1023), failing_cables(fat_tree(16), 0.1)),
        (fat_tree(16), (0, 100, 200), failing_cables(fat_tree(16), 1e-5)),
        (fat_tree(24), "all", failing_cables(fat_tree(24), 0.01)),
        (fat_tree(24), (0, 3455), failing_cables(fat_tree(24), 0.1)),
        (fat_tree(24), (0, 3455), failing_cables(fat_tree(24), 0.01)),
        (fat_tree(12), (0, 100, 200), failing_cables(fat_tree(12), 0.1, {3: 0.8})),
        (fat_tree(16), (0, 1023), failing_cables(fat_tree(16), 0.5, {3: 0.2})),
        (fat_tree(24), (0, 200, 3455), failing_cables(fat_tree(24), 0.1, {3: 0.8})),
        (fat_tree(24), "all", failing_cables(fat_tree(24), 1e-4, {2: 0.1, 3: 0.98})),
    ],
    ids=str,
)
def test_all_importances_cost_less_than_five_evaluations(network, asked, chance, times_one_evaluation):
    assert times_one_evaluation(network, asked, **chance) < 5


def every_tier_fails(network):
    """Chances by tier and by tier of cables, hosts among them."""
    kinds = network.tier[network.edges].max(axis=1)
    return np.array([0.0, 0.9, 0.8, 0.7])[kinds], np.array([0.95, 0.9, 0.85, 0.75])[network.tier]


@pytest.mark.parametrize(
    ("network", "asked"),
    [(fat_tree(4), asked) for asked in ((5,), (0, 1), (0, 3), (0, 15), (0, 3, 7), (0, 2, 4, 9))]
    + [(leaf_spine(5, 4, 2), asked) for asked in ((0, 1), (0, 3), (0, 3, 7), (0, 3, 5, 7, 9))],
    ids=str,
)
def test_up_down_pairs_against_conditioning_one_part_after_the_other(network, asked):
    """The programme for up-down paths knows no slopes: it tells both states of every part."""
    link, node = every_tier_fails(network)
    result = evaluate(network, asked, link, node, routing="updown")
    assert result.method == "closed_form"
    found, rows = result.importance(), {tuple(pair): i for i, pair in enumerate(network.edges.tolist())}
    assert found.unreliability == result.unreliability
    known = {}
    for name, kind, slope in zip(found.names, found.kinds, found.birnbaum.tolist(), strict=True):
        near = network.tier[list(name)].max() if kind == "link" else network.tier[name]
        if (kind, int(near), slope) in known:
            continue
        known[kind, int(near), slope] = name
        failed = []
        for state in (0.0, 1.0):
            chance = {"link_up": link.copy(), "node_up": node.copy()}
            chance[f"{kind}_up"][rows[name] if kind == "link" else name] = state
            exact = evaluate(network, asked, **chance, routing="updown", method="exact")
            failed.append(exact.unreliability)
        assert slope == pytest.approx(failed[0] - failed[1], rel=1e-10, abs=1e-14)
    assert len(found.to_frame()) == len(found.names)


def test_up_down_slopes_far_below_the_last_digit_of_one():
    """The host pair of the 32-ary fat-tree: one of its 16 groups in both states, in fractions."""
    network, q = fat_tree(32), Fraction(1, 2**10)
    kinds = network.tier[network.edges].max(axis=1)
    link, node = (
        np.array([1.0, 1.0, 1 - q, 1 - q], dtype=float)[kinds],
        np.where(network.tier > 1, 1 - float(q), 1.0),
    )
    result = evaluate(network, (0, 8191), link, node, routing="updown")
    up, h = 1 - q, 16

    def group(core=up, aggregation=up, core_cable=up, cable=up):
        """That a group fails, one part of each of these chances and all else alike."""
        cores = 1 - (1 - up**3) ** (h - 1) * (1 - core * core_cable * up)
        return 1 - aggregation * cable * up * up * cores

    found = result.importance()
    assert result.unreliability == pytest.approx(float(group() ** h), rel=1e-13, abs=0)
    slopes = dict(zip(found.names, found.birnbaum.tolist(), strict=True))
    values = {float(x) for x in np.unique([x for x in slopes.values() if x > 0])}
    for part in ("core", "aggregation", "core_cable", "cable"):
        exact = float((group(**{part: 0}) - group(**{part: 1})) * group() ** (h - 1))
        assert min(abs(x / exact - 1) for x in values) < 1e-12
    table = found.to_frame()
    assert np.isfinite(table["structural"]).all()


def test_what_up_down_paths_cannot_tell():
    network = fat_tree(4)
    result = evaluate(network, (0, 15), 0.9, routing="updown")
    with pytest.raises(NotExactError, match="perfect must be False"):
        result.importance(perfect=True)
    with pytest.raises(ValueError, match="or a closed form must apply"):
        evaluate(network, (0, 15), 0.9, routing="updown", method="exact").importance()


@pytest.mark.parametrize("asked", [(0, 127), (0, 3, 20, 50, 127)], ids=str)
def test_up_down_importances_cost_less_than_five_evaluations(asked):
    link, node = every_tier_fails(fat_tree(8))
    spent = []
    for _ in range(6):
        start = process_time()
        result = evaluate(fat_tree(8), asked, link, node, routing="updown")
        middle = process_time()
        result.importance()
        spent.append((middle - start, process_time() - middle))
    once, every = map(min, zip(*spent, strict=True))
    assert every < 5 * once


def test_every_failure_needs_all_aggregation_switches_of_one_pod():
    """With one of them perfect there is no form any more, and the programme is too wide to tell the rest."""
    network = fat_tree(8)
    result = evaluate(network, (0, 4), node_up=np.where(network.tier == 2, 0.9, 1.0))
    assert result.unreliability == pytest.approx(1e-4, rel=1e-12)
    table = result.importance().to_frame()
    mine = table[table["birnbaum"] > 0]
    assert mine["birnbaum"].to_numpy() == pytest.approx(np.full(4, 1e-3), rel=1e-12)
    assert mine["risk_reduction"].isna().all()
    assert (table["risk_reduction"].dropna() == 1).all()


def classes_that_fail(slopes, ups, k, terminals):
    """Slopes by core, near and far switch, near and far cable, without those of parts that are not there."""
    there = [ups[0] < 1, ups[1] < 1, ups[1] < 1 and terminals < k, True, terminals < k]
    return [float(slope) for slope, is_there in zip(slopes, there, strict=False) if is_there]


@pytest.mark.parametrize("ups", [(0.999, 0.99, 0.999), (1.0, 0.9, 0.99), (0.1, 0.9, 0.2)], ids=str)
@pytest.mark.parametrize(("k", "terminals"), [(8, 2), (12, 5), (12, 12)])
def test_twice_the_bits_change_no_slope_of_partitions(ups, k, terminals):
    """Also where a far pod's cable matters 1e-40 times as much as a near one's."""
    found = classes_that_fail(partition_slopes._whole(k, ups, terminals), ups, k, terminals)
    finer = classes_that_fail(partition_slopes._slopes(k, ups, terminals, 400), ups, k, terminals)
    assert found == pytest.approx(finer, rel=1e-14, abs=0)


@pytest.mark.parametrize("link", [0.5, 0.9, 0.999, 1 - 1e-6])
@pytest.mark.parametrize("core", [0.8, 0.99, 1.0])
@pytest.mark.parametrize("k", [4, 6, 8])
def test_pivotal_chances_are_the_derivative_in_whole_numbers(k, core, link):
    """Chances of being pivotal in floats, and differences of alternating sums in 600 bits."""
    for aggregation in (0.7, 0.99999, 1.0):
        for terminals in range(2, k + 1):
            ups = core, aggregation, link
            found = classes_that_fail(pivotal_slopes(k, *ups, terminals), ups, k, terminals)
            exact = classes_that_fail(partition_slopes._slopes(k, ups, terminals, 600), ups, k, terminals)
            assert found == pytest.approx(exact, rel=1e-12, abs=0)


@pytest.mark.parametrize("terminals", [2, 7, 32])
@pytest.mark.parametrize(("core", "link"), [(1.0, 0.9), (0.9, 0.9), (0.7, 0.8), (1.0, 0.5)])
def test_pivotal_chances_of_large_fabrics_are_those_of_a_bipartite_graph(core, link, terminals):
    """Perfect aggregation switches: 32 pods and 256 cores, whose slopes an outbreak tells."""
    found = pivotal_slopes(32, core, 1.0, link, terminals)
    chances_of = (core, 1 - core), (link, 1 - link)
    sides = Sides(terminals, 32 - terminals, 256, CERTAIN, *chances_of).link_slopes()
    assert found.near_link == pytest.approx(sides.near_link, rel=1e-12, abs=0)
    if terminals < 32:
        assert found.far_link == pytest.approx(sides.far_link, rel=1e-12, abs=0)
    if core < 1:
        assert found.core == pytest.approx(sides.core, rel=1e-12, abs=0)


def test_slopes_of_24_pods_in_floats_are_those_in_whole_numbers():
    """The slope of a far cable lies 32 digits below that of a near switch; both routes know 11 of its own."""
    asked = 24, (0.9, 0.9, 0.99), 2
    found, exact = pivotal_slopes(24, *asked[1], 2), partition_slopes._whole(*asked)
    assert found[:5] == pytest.approx(exact[:5], rel=1e-11, abs=0)
    assert found.far_link < 1e-31 * found.near


@pytest.mark.parametrize("ups", [(0.3, 0.5, 0.3), (0.02, 0.1, 0.02)], ids=str)
@pytest.mark.parametrize("terminals", [2, 5, 16])
def test_frequent_failures_are_left_to_whole_numbers(terminals, ups):
    assert pivotal_slopes(16, *ups, terminals) is None
    found = classes_that_fail(partition_slopes.slopes_of_partitions(16, *ups, terminals), ups, 16, terminals)
    finer = classes_that_fail(partition_slopes._slopes(16, ups, terminals, 400), ups, 16, terminals)
    assert found == pytest.approx(finer, rel=1e-12, abs=0)


@pytest.mark.parametrize("ups", [(0.3, 0.7, 0.9), (0.1, 0.7, 0.9), (0.5, 0.1, 0.7)], ids=str)
def test_ten_digits_where_steps_are_far_above_their_sum(ups):
    """Floats while they keep enough digits, else whole numbers."""
    for terminals in (2, 6, 12):
        found = classes_that_fail(
            partition_slopes.slopes_of_partitions(12, *ups, terminals), ups, 12, terminals
        )
        finer = classes_that_fail(partition_slopes._slopes(12, ups, terminals, 400), ups, 12, terminals)
        assert found == pytest.approx(finer, rel=1e-10, abs=0)


@pytest.mark.parametrize("terminals", [2, 12, 24])
@pytest.mark.parametrize(("core", "link"), [(0.3, 0.1), (0.1, 0.9), (0.02, 0.9999)])
def test_whole_numbers_of_24_pods_are_those_of_a_bipartite_graph(core, link, terminals):
    """Cores seldom up, and perfect aggregation switches: an outbreak among 24 pods and 144 cores."""
    found = partition_slopes._whole(24, (core, 1.0, link), terminals)
    sides = Sides(terminals, 24 - terminals, 144, CERTAIN, (core, 1 - core), (link, 1 - link)).link_slopes()
    assert found.core == pytest.approx(sides.core, rel=1e-10, abs=0)
    assert found.near_link == pytest.approx(sides.near_link, rel=1e-10, abs=0)
    if terminals < 24:
        assert found.far_link == pytest.approx(sides.far_link, rel=1e-10, abs=0)


@pytest.mark.parametrize("asked", [(0, 5), (0, 1, 5, 9), "all"], ids=str)
@pytest.mark.parametrize("core", [Fraction(1, 50), Fraction(1, 10), Fraction(3, 10)], ids=str)
@pytest.mark.parametrize(
    ("aggregation", "cable"), [(Fraction(1, 10), Fraction(1, 50)), (Fraction(9, 10),) * 2]
)
def test_cores_seldom_up_against_conditioning_in_fractions(core, aggregation, cable, asked, by_conditioning):
    """A core, and switches and cables of pods with and without terminals."""
    network = fat_tree(4)
    ups = np.array([Fraction(1), Fraction(1), aggregation, core])
    kinds = network.tier[network.edges].max(axis=1).tolist()
    links = {
        tuple(pair): 1 - (cable if kind == 3 else Fraction(1))
        for pair, kind in zip(network.edges.tolist(), kinds, strict=True)
    }
    nodes = {v: 1 - ups[tier] for v, tier in enumerate(network.tier.tolist())}
    result = evaluate(
        network,
        asked,
        link_up={pair: float(1 - q) for pair, q in links.items()},
        node_up={v: float(1 - q) for v, q in nodes.items()},
    )
    assert result.method == "closed_form"
    found = result.importance()
    slopes = dict(zip(found.names, found.birnbaum.tolist(), strict=True))
    known = {}
    for part in found.names:
        ends = part if isinstance(part, tuple) else (part,)
        known[tuple(int(network.tier[v]) for v in ends), slopes[part]] = part
    checked = [part for (tiers, _), part in known.items() if max(tiers) > 1 and min(tiers) > 1]
    assert len(checked) >= 3
    for part in checked:
        exact = by_conditioning(network, asked, links, nodes, part)
        assert slopes[part] == pytest.approx(exact, rel=1e-10, abs=0)
