"""Hosts of a job: against the frontier DP, all states of groups, and the closed form of a pair."""

from itertools import combinations, product

import numpy as np
import pytest

from relparallel.reliability import evaluate, fat_tree_pair, fat_tree_pods_connected
from relparallel.reliability.closed_forms.form_recognition import bound_pairs
from relparallel.reliability.problem import read_problem
from relparallel.topology import fat_tree


def asked(k, hosts, core, aggregation, edge=1.0, core_link=1.0, edge_link=1.0, host=1.0):
    """Arguments of `evaluate`; edge switches without hosts of the job work."""
    fabric = fat_tree(k)
    nodes = np.array([1.0, 1.0, aggregation, core])[fabric.tier]
    nodes[[fabric.num_hosts + h // (k // 2) for h in hosts]] = edge
    nodes[list(hosts)] = host
    links = np.array([1.0, 1.0, edge_link, core_link])[fabric.tier[fabric.edges].max(axis=1)]
    return fabric, hosts, links, nodes


def job_connected(*ups, routing="any"):
    return evaluate(*asked(*ups), method="closed_form", routing=routing)


@pytest.mark.parametrize(
    "hosts", [(0,), (0, 1), (0, 2), (0, 1, 3), (0, 4), (1, 2, 5, 6, 15), tuple(range(16))]
)
@pytest.mark.parametrize("cable", [1.0, 0.8])
def test_any_path_agrees_with_the_exact_programme(hosts, cable):
    ups = (4, hosts, 0.9, 0.85, 0.95, cable, 1.0, 0.97)
    truth, closed = evaluate(*asked(*ups), method="exact"), job_connected(*ups)
    assert closed.unreliability == pytest.approx(truth.unreliability, rel=1e-12)
    assert closed.reliability == pytest.approx(truth.reliability, rel=1e-12)


def climbing(k, edges, core, aggregation, core_link, edge_link):
    """Chance that each two edge switches have a up-down path, by all states of all groups."""
    h, pods = k // 2, [e // (k // 2) for e in edges]
    inside = sorted(set(pods))
    sizes = [("core", core)] * h + [("agg", aggregation)] * len(inside)
    sizes += [("wire", core_link)] * (h * len(inside)) + [("arm", edge_link)] * len(edges)
    one = {}
    for state in product((0, 1), repeat=len(sizes)):
        weight = np.prod([p if s else 1 - p for s, (_, p) in zip(state, sizes, strict=True)])
        cores, aggs = state[:h], state[h : h + len(inside)]
        wires, arms = state[h + len(inside) : -len(edges)], state[-len(edges) :]
        joined = set()
        for x, y in combinations(range(len(edges)), 2):
            i, j = inside.index(pods[x]), inside.index(pods[y])
            up = arms[x] and arms[y] and aggs[i] and aggs[j]
            over = any(
                cores[c] and wires[c * len(inside) + i] and wires[c * len(inside) + j]
                for c in range(h)
            )
            if up and (i == j or over):
                joined.add((x, y))
        one[frozenset(joined)] = one.get(frozenset(joined), 0.0) + weight
    whole = len(edges) * (len(edges) - 1) // 2
    ways = product(one.items(), repeat=h)
    return sum(
        np.prod([p for _, p in groups])
        for groups in ways
        if len(frozenset().union(*(s for s, _ in groups))) == whole
    )


@pytest.mark.parametrize("edges", [(0, 1), (0, 2), (0, 1, 2), (0, 2, 4), (0, 1, 2, 3)])
def test_up_down_by_all_states(edges):
    hosts = [2 * e for e in edges]
    ups = (0.9, 0.8, 0.7, 0.85)
    truth = climbing(4, edges, *ups)
    closed = job_connected(4, hosts, *ups[:2], 0.95, *ups[2:], 0.9, routing="updown")
    ends = 0.95 ** len(edges) * 0.9 ** len(edges)
    assert closed.reliability == pytest.approx(ends * truth, rel=1e-12)
    assert closed.unreliability == pytest.approx(1 - ends * truth, rel=1e-12)


@pytest.mark.parametrize("k", [4, 16, 48])
def test_two_hosts_are_a_pair(k):
    half = k // 2
    for other, turn in ((1, "edge"), (half, "aggregation"), (half**2, "core")):
        ups = (0.95, 0.9, 0.99, 0.97, 0.93, 0.98)
        job, pair = (
            job_connected(k, (0, other), *ups, routing="updown"),
            fat_tree_pair(k, *ups, turn=turn),
        )
        assert job.unreliability == pytest.approx(pair.unreliability, rel=1e-12)
        assert job.reliability == pytest.approx(pair.reliability, rel=1e-12)


def test_all_hosts_need_all_pods():
    job = job_connected(16, range(1024), 0.99, 0.95)
    assert job.unreliability == pytest.approx(
        fat_tree_pods_connected(16, 0.99, 0.95).unreliability, rel=1e-13
    )


def test_many_edge_switches_get_a_bracket_that_holds_those_that_are_followed():
    ups = (0.9, 0.9, 1.0, 0.95, 0.95)
    five = job_connected(8, range(0, 80, 16), *ups, routing="updown")
    fabric, hosts, links, nodes = asked(8, range(0, 112, 16), *ups)
    seven = bound_pairs(fabric, read_problem(fabric, hosts, links, nodes))
    assert five.exact
    assert not seven.exact
    assert seven.lower <= five.unreliability <= seven.upper
    pair = job_connected(8, (0, 16), *ups, routing="updown").unreliability
    assert (seven.lower, seven.upper) == pytest.approx((pair, 21 * pair), rel=1e-12)


def test_large_jobs_are_bounded_by_their_pairs():
    """All hosts of a k=16 fat-tree whose aggregation switches fail: within and between pods."""
    fabric, hosts, links, nodes = asked(16, range(1024), 1.0, 0.99)
    found = evaluate(fabric, hosts, links, nodes, method="bounds", routing="updown")
    inside, across = 0.01**8, (1 - 0.99**2) ** 8
    assert (found.method, found.routing) == ("bounds", "updown")
    assert found.lower == pytest.approx(across, rel=1e-9)
    assert found.upper == pytest.approx(
        16 * 28 * inside + (128 * 127 // 2 - 16 * 28) * across, rel=1e-9
    )
