"""Availability, importance, performability, cuts and bounds: each by two routes sharing no code."""

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import networkx as nx
import numpy as np
from theorem_table import theorem

from chapters import s11, s13
from relparallel import reliability, topology
from relparallel.reliability.bounding.cut_families import find_cuts
from relparallel.reliability.closed_forms.fat_tree_forms import fat_tree_pod_bandwidth
from relparallel.reliability.problem import read_problem


def _hosts(spares: int, dormancy: float = 1.0) -> s13.RepairedParts:
    """A job of 128 hosts; life and repair are powers of two, exact as fractions."""
    return s13.RepairedParts(
        name="host", count=128 + spares, needed=128, mtbf=2.0**23, mttr=2.0**14, dormancy=dormancy
    )


@theorem("THM-availability-static", system="Availability, MTBF/MTTR")
def test_crews_enough():
    """With a crew for each host the repair chain gives the k-out-of-n formula."""
    # Elimination without a subtraction, and the binomial sum.
    chain = s13.repair_chain([_hosts(8)])
    return chain.unavailability, float(
        reliability.unavailability(2.0**23, 2.0**14, needed=128, installed=136)
    )


@theorem("THM-availability-crews", system="Availability, MTBF/MTTR")
def test_one_crew():
    """One crew and spares switched off: the repair chain gives the product form in rationals."""
    # 128 hosts and 6 cold spares: one of min(134 - k, 128) that work fails, one of k is repaired.
    rates = [Fraction(min(134 - k, 128), 2**9) for k in range(134)]
    weights = [prod(rates[:k], start=Fraction(1)) for k in range(135)]
    return s13.repair_chain([_hosts(6, 0.0)], crews=1).unavailability, float(
        sum(weights[7:]) / sum(weights)
    )


@theorem("THM-availability-frequency", system="Availability, MTBF/MTTR")
def test_ring_fails_as_often():
    """A ring fails as often by its cables' Birnbaum measures as by the chain over their number."""
    # Sum of w B over 12 cables, and the flow of the chain from one cable down to two.
    ring = reliability.failure_frequency(nx.cycle_graph(12), link_mtbf=999.0, link_mttr=1.0)
    cables = s13.RepairedParts(name="cable", count=12, needed=11, mtbf=999.0, mttr=1.0)
    return ring.frequency, s13.repair_chain([cables]).frequency


@theorem("THM-availability-common-cause", system="Availability, MTBF/MTTR")
def test_beta_factor_is_a_group():
    """Spines under the beta factor model are a group of shared risk: the same unreliability."""
    # Two leaves over four spines, a tenth of their failures in common.
    causes, spines = s13.multiple_greek_letters(1e-3, 4, [0.1]), range(2, 6)
    down: Any = dict.fromkeys(spines, float(causes[0]))
    graph = nx.complete_bipartite_graph(2, 4)
    shared = reliability.evaluate(
        graph, (0, 1), node_down=down, groups=[(tuple(spines), float(causes[3]))]
    )
    return shared.unreliability, s13.common_cause_unavailability(1, causes)


@theorem("THM-importance-conditioning", system="Importance measures")
def test_importance_is_a_difference():
    """Birnbaum's measures from one sweep are differences of two evaluations each."""
    # The sum over the core switches of a fat-tree with failing cables and switches.
    fabric, terminals = topology.fat_tree(4), (0, 5, 15)
    core = fabric.is_kind("core")
    down = np.where(core, 0.05, np.where(fabric.endpoint, 0.0, 0.02))
    parts = reliability.evaluate(
        fabric, terminals, link_down=0.01, node_down=down, method="exact"
    ).importance()
    switches = set(np.flatnonzero(core).tolist())
    mine = [
        b for b, part in zip(parts.birnbaum.tolist(), parts.names, strict=True) if part in switches
    ]
    apart = 0.0
    for switch, (sign, chance) in product(switches, ((1, 1.0), (-1, 0.0))):
        fixed = np.where(np.arange(down.size) == switch, chance, down)
        apart += (
            sign
            * reliability.evaluate(fabric, terminals, link_down=0.01, node_down=fixed).unreliability
        )
    return sum(mine), apart


@theorem("THM-performability-leaf-spine", system="Performability")
def test_uplinks_left():
    """S spines leave S s l^2 uplinks between two leaves on average, whatever routes leaves take."""
    # All 256 states of four spines and of the cables of one leaf; those of the other are perfect.
    graph = nx.complete_bipartite_graph(2, 4)
    cables: Any = {(0, spine): 0.05 for spine in range(2, 6)}
    spines: Any = dict.fromkeys(range(2, 6), 0.1)
    ends: Any = {"sources": [0], "targets": [1]}
    found = s11.performability(
        graph, "max_flow", link_down=cables, node_down=spines, gap=0.0, **ends
    )
    return found.value, 4 * 0.9 * 0.95


@theorem("THM-performability-pods", system="Performability")
def test_core_links_left():
    """Two pods of a k=48 fat-tree are left k^2/4 a^2 c m^2 core links on average."""
    # The convolution of 24 groups, and the mean of each of 576 lanes.
    law = fat_tree_pod_bandwidth(48, 0.99, 0.98, 0.995)
    return float(law @ np.arange(577)), 576 * 0.98**2 * 0.99 * 0.995**2


@theorem("THM-performability-pairs", system="Performability")
def test_pairs_connected():
    """The expected share of connected pairs over states is the mean two-terminal reliability."""
    # A ring of six with failing cables: 64 states, and three distances by the frontier DP.
    ring = nx.cycle_graph(6)
    pairs = [
        reliability.evaluate(ring, (0, other), link_up=0.8).reliability for other in range(1, 6)
    ]
    return s11.performability(ring, link_up=0.8, gap=0.0).value, sum(pairs) / 5


@theorem("THM-reliability-torus-cuts", system="3D torus")
def test_cuts_of_the_torus():
    """The 8x8x8 torus has 2048 minimal cuts of at most 10 links: one per node and one per link."""
    # The complete search, and the count of nodes and links.
    torus = topology.torus((8, 8, 8))
    problem = read_problem(torus, "nodes", 1.0, 1.0, 0.5)
    family = find_cuts(problem, 0.0, limit=10)
    return float(np.count_nonzero(family.sizes <= 10)), float(torus.num_nodes + len(torus.edges))


@theorem("THM-reliability-fat-tree-cuts", system="fat-tree")
def test_cuts_of_the_fat_tree():
    """The switches of a k=16 fat-tree have 320 minimal cuts of at most 16 links: one per switch."""
    # The complete search, and 5 k**2 / 4.
    problem = read_problem(topology.fat_tree(16), "switches", 1.0, 1.0, 0.5)
    family = find_cuts(problem, 0.0, limit=16)
    return float(np.count_nonzero(family.sizes <= 16)), 5 * 16**2 / 4


@theorem("THM-reliability-anytime", system="Network reliability")
def test_anytime_is_exact():
    """The anytime programme that drops nothing closes its bracket on the exact unreliability."""
    # Torus 5x5 with failing links and nodes.
    torus = topology.torus((5, 5))
    found = reliability.bounds(
        torus, (0, 7, 12), 0.9, 0.95, method="anytime", max_states=2**18, rtol=1e-15
    )
    return (found.lower + found.upper) / 2, reliability.evaluate(
        torus, (0, 7, 12), 0.9, 0.95
    ).unreliability


@theorem("THM-reliability-recognised-form", system="fat-tree")
def test_form_is_exact():
    """The closed form that a k=4 fat-tree is recognised for agrees with the frontier DP."""
    # Cores, aggregation switches and the cables between them fail.
    fabric = topology.fat_tree(4)
    link = np.where(fabric.tier[fabric.edges].max(axis=1) == 3, 0.97, 1.0)
    node = np.where(fabric.tier >= 2, 0.95, 1.0)
    form, exact = (
        reliability.evaluate(fabric, "all", link, node, method=method)
        for method in ("closed_form", "exact")
    )
    return form.unreliability, exact.unreliability
