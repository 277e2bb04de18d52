"""Each published network reliability by every exact route that applies: none is another's check."""

from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from chapters.s13 import survival_signature
from evidence.claims.network_reliability import _TERMINALS, _graph as named
from relparallel import topology
from relparallel.published import facts
from relparallel.reliability import bounds, evaluate
from relparallel.reliability.closed_forms.alike_nodes import twins
from relparallel.reliability.closed_forms.fat_tree_forms import pods_apart
from relparallel.reliability.extensions.srlg import conditioned, swept
from relparallel.reliability.frontier.decomposition import compiled
from relparallel.reliability.problem import Group, read_problem
from relparallel.reliability.sensitivity.reverse_pass import gradient

FACTS = facts("network-reliability")
ROWS = {
    name: fact
    for name, fact in FACTS.items()
    if fact.role == "check"
    and "graph" in fact.inputs
    and {"link_up", "link_down"} & set(fact.inputs)
    and "joined" not in fact.inputs  # of reliabilities that others print, with fewer digits
}


def rows(pattern):
    """Ids of published rows."""
    return [name for name in FACTS if fnmatchcase(name, pattern)]


SMALL = 1500  # states that programmes in plain Python visit in a moment


def key(name):
    """What rows of the same question at other chances have in common."""
    return tuple(ROWS[name].inputs.get(part) for part in ("graph", "terminals", "source", "target"))


@cache
def question(graph, terminals, source, target):
    """Network and terminals of a row."""
    return named(graph), (source, target) if terminals is None else _TERMINALS[terminals]


def asked(name):
    """Network, terminals, up-probability of the links as a fraction."""
    given = ROWS[name].inputs
    up = given["link_up"] if "link_up" in given else 1 - Fraction(str(given["link_down"]))
    return *question(*key(name)), Fraction(up).limit_denominator(10**6)


@cache
def signature(*asking):
    network, terminals = question(*asking)
    return survival_signature(network, "links", terminals)


@cache
def structure(*asking):
    """The network taken apart, and taken apart without reductions."""
    problem = read_problem(*question(*asking), 0.5, 1.0)
    return compiled(problem), compiled(problem, reductions=False)


def read(name):
    network, terminals, up = asked(name)
    return network, read_problem(network, terminals, 1.0, 1.0, float(1 - up))


def by_programme(name):
    network, terminals, up = asked(name)
    return evaluate(network, terminals, link_down=float(1 - up), method="exact").unreliability


def without_reductions(name):
    _, problem = read(name)
    return structure(*key(name))[1].evaluate(problem.link, problem.node).unreliability


def by_symmetry(name):
    return twins(read(name)[1]).unreliability


def by_two_sweeps(name):
    _, problem = read(name)
    wanted = np.concatenate([problem.link[:, 1], problem.node[:, 1]]) > 0
    return gradient(structure(*key(name))[0], problem.link, problem.node, wanted)[0]


def by_polynomial(name):
    *_, up = asked(name)
    return signature(*key(name)).reliability(float(up)).unreliability


def by_polynomial_in_fractions(name):
    *_, up = asked(name)
    return signature(*key(name)).reliability(up).unreliability


def by_plain_sweep(name):
    _, problem = read(name)
    return swept(structure(*key(name))[1], problem, [], 10**5)[1]


def by_conditioning(name):
    """The first link as a group of shared risk."""
    _, problem = read(name)
    first = Group(frozenset(), frozenset([0]), tuple(problem.link[0]))
    problem.link[0] = 1.0, 0.0
    return conditioned(structure(*key(name))[0], problem, [first], 10**6).down


def by_truncation_of_nothing(name):
    """The published value, moved into the certified bracket if it is outside."""
    network, terminals, up = asked(name)
    found = bounds(
        network, terminals, link_down=float(1 - up), method="anytime", rtol=1e-15, max_states=2**15
    )
    assert found.upper == pytest.approx(found.lower, rel=1e-10)
    return min(max(ROWS[name].value, found.lower), found.upper)


ROUTES = {
    by_programme: None,
    without_reductions: None,
    by_two_sweeps: None,
    by_conditioning: None,
    by_truncation_of_nothing: 10**5,
    by_polynomial: 10**4,
    by_polynomial_in_fractions: SMALL,
    by_plain_sweep: SMALL,
}


def applies(limit, states):
    """Whether a route is not too long for a test."""
    return limit is None or states <= limit


@pytest.mark.parametrize("name", ROWS)
def test_every_route_gives_the_published_value(name):
    _, problem = read(name)
    states = structure(*key(name))[0].evaluate(problem.link, problem.node).states
    found = {route.__name__: route(name) for route, most in ROUTES.items() if applies(most, states)}
    if twins(problem) is not None:
        found["by_symmetry"] = by_symmetry(name)
    assert {route: float(value) for route, value in found.items()} == pytest.approx(
        dict.fromkeys(found, ROWS[name].value), rel=1e-12, abs=0
    )


@pytest.mark.parametrize("name", rows("NR-*-poly"))
def test_polynomials_are_the_reliability_in_fractions(name):
    """Counts of subsets in fractions, and the programme in floats."""
    given, third = FACTS[name].inputs, Fraction(1, 3)
    network, terminals = question(
        *(given.get(part) for part in ("graph", "terminals", "source", "target"))
    )
    if terminals == "switches":
        network, terminals = network.to_networkx().subgraph(network.switches.tolist()), "nodes"
    m = len(FACTS[name].value) - 1
    exact = sum(n * third**j * (1 - third) ** (m - j) for j, n in enumerate(FACTS[name].value))
    found = evaluate(network, terminals, float(third), method="exact").reliability
    assert found == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("name", rows("NR-ftsw-*"))
def test_switch_failures_by_the_partitions_of_the_pods(name):
    """Published rows come from outbreaks; inversion over partitions shares nothing with them."""
    given, fact = FACTS[name].inputs, FACTS[name]
    found = pods_apart(given["k"], given["core_up"], given["aggregation_up"], 1.0, given["k"])
    tolerance = float(fact.tolerance.removeprefix("rel "))
    assert found.lower == found.upper == pytest.approx(fact.value, rel=tolerance, abs=0)


@pytest.mark.parametrize(
    "name", [row for row in rows("NR-ftpair-*") if FACTS[row].inputs["k"] <= 16]
)
def test_pairs_by_the_programme(name, by_climbing):
    """Up-down paths through what lies above the pair, any path through all of the fabric."""
    given = dict(FACTS[name].inputs)
    fabric = topology.fat_tree(given.pop("k"))
    core, edge = fabric.is_kind("core"), np.flatnonzero(fabric.is_kind("edge"))
    node = np.where(
        core, given["core_up"], np.where(fabric.tier == 2, given["aggregation_up"], 1.0)
    )
    upper = core[fabric.edges].any(axis=1)
    link = np.where(upper, given["core_link_up"], given["edge_link_up"])
    pair = (int(edge[0]), int(edge[-1]))
    link[fabric.endpoint[fabric.edges].any(axis=1)] = 1.0
    found = (evaluate if name.endswith("anypath") else by_climbing)(fabric, pair, link, node)
    assert found.unreliability == pytest.approx(FACTS[name].value, rel=1e-10, abs=0)


def test_leaves_by_the_programme_and_the_closed_form():
    given = FACTS["NR-ls-16x8"].inputs
    fabric = topology.leaf_spine(given["leaves"], given["spines"], 1)
    node = np.where(fabric.is_kind("spine"), given["spine_up"], 1.0)
    link = np.where(fabric.endpoint[fabric.edges].any(axis=1), 0.0, given["link_down"])
    leaves = np.flatnonzero(fabric.is_kind("leaf"))
    problem = read_problem(fabric, leaves, 1.0, node, link)
    closed = evaluate(fabric, leaves, 1.0, node, link_down=link, method="closed_form")
    for found in (compiled(problem).evaluate(problem.link, problem.node), closed):
        assert found.unreliability == pytest.approx(FACTS["NR-ls-16x8"].value, rel=1e-10, abs=0)
