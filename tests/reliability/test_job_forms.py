"""Hosts of a job: against the frontier DP, all states of the groups, and the closed form of a pair."""

from itertools import combinations, product

import numpy as np
import pytest

from relparallel.reliability import evaluate, fat_tree_pair, fat_tree_pods_connected, job_connected
from relparallel.topology import fat_tree


def exact(k, hosts, core, aggregation, edge, core_link, host):
    """The frontier DP; edge switches of other pods work, those of the job's pods fail only if used."""
    fabric = fat_tree(k)
    half = k // 2
    used = {int(fabric.num_hosts + h // half) for h in hosts}
    tiers = fabric.is_kind("core"), fabric.is_kind("aggregation")
    nodes = np.where(tiers[0], core, np.where(tiers[1], aggregation, 1.0))
    nodes[list(used)] = edge
    nodes[list(hosts)] = host
    links = np.where(tiers[0][fabric.edges].any(axis=1), core_link, 1.0)
    return evaluate(fabric, hosts, links, nodes)


@pytest.mark.parametrize(
    "hosts", [(0,), (0, 1), (0, 2), (0, 1, 3), (0, 4), (1, 2, 5, 6, 15), tuple(range(16))]
)
@pytest.mark.parametrize("cable", [1.0, 0.8])
def test_any_path_agrees_with_the_exact_programme(hosts, cable):
    truth = exact(4, hosts, 0.9, 0.85, 0.95, cable, 0.97)
    closed = job_connected(4, hosts, 0.9, 0.85, 0.95, cable, host_up=0.97)
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
                cores[c] and wires[c * len(inside) + i] and wires[c * len(inside) + j] for c in range(h)
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
        job, pair = job_connected(k, (0, other), *ups, routing="updown"), fat_tree_pair(k, *ups, turn=turn)
        assert job.unreliability == pytest.approx(pair.unreliability, rel=1e-12)
        assert job.reliability == pytest.approx(pair.reliability, rel=1e-12)


def test_all_hosts_need_all_pods():
    job = job_connected(16, range(1024), 0.99, 0.95)
    assert job.unreliability == fat_tree_pods_connected(16, 0.99, 0.95).unreliability


def test_many_edge_switches_get_a_bracket_that_holds_those_that_are_followed():
    ups = (0.9, 0.9, 1.0, 0.95, 0.95)
    five = job_connected(8, range(0, 80, 16), *ups, routing="updown")
    seven = job_connected(8, range(0, 112, 16), *ups, routing="updown")
    assert five.exact
    assert not seven.exact
    assert seven.lower <= five.unreliability <= seven.unreliability == seven.upper
    pair = job_connected(8, (0, 16), *ups, routing="updown").unreliability
    assert (seven.lower, seven.upper) == pytest.approx((pair, 21 * pair), rel=1e-12)


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        ({"hosts": ()}, "hosts"),
        ({"hosts": (0, 0)}, "hosts"),
        ({"hosts": (16,)}, "hosts"),
        ({"hosts": 3}, "hosts"),
        ({"hosts": (0.5,)}, "hosts"),
        ({"k": 3}, "k"),
        ({"edge_link_up": 0.9}, "edge_link_up"),
        ({"routing": "shortest"}, "routing"),
    ],
)
def test_bad_input_is_refused_by_name(bad, name):
    with pytest.raises((TypeError, ValueError), match=f"{name} must"):
        job_connected(**{"k": 4, "hosts": (0, 5), **bad})
