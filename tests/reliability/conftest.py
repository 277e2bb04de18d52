"""Oracles in exact fractions: enumeration, factoring, whole numbers, both states of a part."""

from fractions import Fraction
from itertools import combinations, product
from math import prod

import networkx as nx
import numpy as np
import pytest

from chapters.s13.counting import weigh
from relparallel.reliability import evaluate
from relparallel.reliability.problem import read_problem


def _reaches(source, target, links, transit):
    """Whether a path joins the two whose inner nodes all forward."""
    reached, todo = {source}, [source]
    while todo:
        u = todo.pop()
        for a, b in links:
            v = b if a == u else a if b == u else None
            if v is not None and v not in reached:
                if v == target:
                    return True
                reached.add(v)
                if v in transit:
                    todo.append(v)
    return source == target


def enumerate_states(cables, nodes, terminals, transit):
    """R by all states of parts: cables are (u, v, up), nodes maps a node to its up-probability."""
    parts = [(("cable", i), Fraction(up)) for i, (_, _, up) in enumerate(cables)]
    parts += [(("node", v), Fraction(up)) for v, up in nodes.items()]
    uncertain = [(part, up) for part, up in parts if 0 < up < 1]
    total = Fraction(0)
    for states in product((True, False), repeat=len(uncertain)):
        works = {part: up == 1 for part, up in parts}
        works |= {part: state for (part, _), state in zip(uncertain, states, strict=True)}
        if not all(works["node", v] for v in terminals):
            continue
        links = [
            (u, v)
            for i, (u, v, _) in enumerate(cables)
            if works["cable", i] and works["node", u] and works["node", v]
        ]
        if all(_reaches(s, t, links, transit) for s, t in combinations(terminals, 2)):
            mass = Fraction(1)
            for (_, up), state in zip(uncertain, states, strict=True):
                mass *= up if state else 1 - up
            total += mass
    return total


def factor(links, terminals):
    """R of (u, v, up) with perfect nodes by deletion-contraction: p R(G/e) + (1 - p) R(G - e)."""
    terminals = frozenset(terminals)
    if len(terminals) == 1:
        return Fraction(1)
    links = [link for link in links if link[0] != link[1]]
    boundary = next((link for link in links if link[0] in terminals or link[1] in terminals), None)
    if boundary is None or any(all(t not in link[:2] for link in links) for t in terminals):
        return Fraction(0)
    u, v, up = boundary
    rest = list(links)
    rest.remove(boundary)
    merged = [(u if a == v else a, u if b == v else b, p) for a, b, p in rest]
    joined = frozenset(u if t == v else t for t in terminals)
    return Fraction(up) * factor(merged, joined) + (1 - Fraction(up)) * factor(rest, terminals)


def count(network, terminals, link_down, node_down):
    """U in whole numbers over the common denominator of all chances."""
    problem = read_problem(network, terminals, 1.0, 1.0, link_down, node_down)
    down = [Fraction(q) for q in [*problem.link[:, 1].tolist(), *problem.node[:, 1].tolist()]]
    weights = [(q.denominator - q.numerator, q.numerator) for q in down]
    return 1 - Fraction(weigh(problem, weights, 2**20), prod(q.denominator for q in down))


def condition(network, terminals, links, nodes, part):
    """Birnbaum importance of a part: both states exactly, so their difference loses nothing."""
    is_link = isinstance(part, tuple)
    up, failed = (
        count(
            network,
            terminals,
            links | {part: state} if is_link else links,
            nodes if is_link else nodes | {part: state},
        )
        for state in (0.0, 1.0)
    )
    return float(failed - up)


def climb(fabric, pair, link, node):
    """A pair over up-down paths of a fat-tree or leaf-spine: any path through what lies above the two."""
    tier, above = fabric.tier, np.isin(np.arange(fabric.num_nodes), pair)
    rising = tier[fabric.edges[:, :1]] < tier[fabric.edges[:, 1:]]
    low, high = np.where(rising, fabric.edges, fabric.edges[:, ::-1]).T
    for _ in range(tier.max()):
        above[high[above[low]]] = True
    kept = above[fabric.edges].all(axis=1)
    ends, chances = fabric.edges[kept].tolist(), np.broadcast_to(link, len(kept))[kept].tolist()
    links = dict(zip(map(tuple, ends), chances, strict=True))
    nodes = {v: float(np.broadcast_to(node, above.size)[v]) for v in np.flatnonzero(above).tolist()}
    return evaluate(nx.Graph(ends), pair, links, nodes, method="exact")


@pytest.fixture(scope="session")
def by_climbing():
    """Reliability of a pair over up-down paths."""
    return climb


@pytest.fixture(scope="session")
def by_enumeration():
    """Reliability by all 2^(cables + nodes) states."""
    return enumerate_states


@pytest.fixture(scope="session")
def by_counting():
    """Unreliability in whole numbers."""
    return count


@pytest.fixture(scope="session")
def by_factoring():
    """Reliability by deletion and contraction."""
    return factor


@pytest.fixture(scope="session")
def by_conditioning():
    """Importance of a part by both its states."""
    return condition
