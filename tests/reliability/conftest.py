"""Oracles in exact fractions: enumeration, factoring, both states of a part."""

from fractions import Fraction
from itertools import combinations, product

import pytest

from relparallel.reliability import evaluate


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


def condition(network, terminals, links, nodes, part):
    """Birnbaum importance of a part: both states exactly, so their difference loses nothing."""
    key = "link_down" if isinstance(part, tuple) else "node_down"
    down = {"link_down": links, "node_down": nodes}
    up, failed = (
        evaluate(
            network, terminals, method="exact", **down | {key: down[key] | {part: state}}
        ).unreliability
        for state in (Fraction(0), Fraction(1))
    )
    return float(failed - up)


@pytest.fixture(scope="session")
def by_enumeration():
    """Reliability by all 2^(cables + nodes) states."""
    return enumerate_states


@pytest.fixture(scope="session")
def by_factoring():
    """Reliability by deletion and contraction."""
    return factor


@pytest.fixture(scope="session")
def by_conditioning():
    """Importance of a part by both its states."""
    return condition
