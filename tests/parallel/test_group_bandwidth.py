"""Groups on links of a cluster or topology: counted by hand, along listed paths, with losses."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from relparallel.hardware import Cluster, cluster
from relparallel.parallel import Links, Placement, Strategy, collective_time
from relparallel.parallel.group_bandwidth import group_links
from relparallel.topology import Topology, dgx_superpod, hpn7, leaf_spine, rail_only
from relparallel.topology.routing import ecmp_paths

STRATEGY = Strategy(tensor=8, pipeline=2, data=4)
SELENE = cluster("a100-80gb-selene", gpus=64)
DEGREES = ("tensor", "context", "data", "pipeline", "shard", "expert")


def placed(**degrees: int) -> Placement:
    return Placement(strategy=Strategy(**degrees))


def alive(topology: Topology, *, nodes: tuple = (), edges: tuple = ()) -> np.ndarray:
    state = np.ones(topology.num_nodes + len(topology.edges), dtype=bool)
    state[list(nodes)] = False
    state[[topology.num_nodes + edge for edge in edges]] = False
    return state


@pytest.mark.parametrize("tensor", [1, 2, 4, 8, 16])
def test_groups_that_leave_a_node_share_its_network(tensor):
    found = group_links(placed(tensor=tensor, data=64 // tensor), SELENE, "data")
    leaving = min(tensor, 8)  # data groups of a node
    assert found.bandwidth == pytest.approx(np.full(tensor, 200e9 / leaving))


@pytest.mark.parametrize("degrees", [(8, 8), (16, 4), (2, 32), (4, 16)])
def test_a_ring_takes_the_time_of_the_closed_form(degrees):
    tensor, data = degrees
    for degree, ranks in {"tensor": tensor, "data": data}.items():
        found = group_links(placed(tensor=tensor, data=data), SELENE, degree)
        stride = 1 if degree == "tensor" else tensor
        inside = min(max(8 // stride, 1), ranks)
        links = Links(
            latency=0, bandwidth=300e9, network_latency=0, network_bandwidth=200e9 * inside / 8
        )
        ours = 2 * (ranks - 1) / ranks * 1e9 / found.bandwidth
        assert ours == pytest.approx(
            collective_time("all_reduce", "ring", 1e9, ranks, inside, links)
        )


def test_tensor_groups_over_two_nodes_run_at_the_speed_of_the_network():
    inside = group_links(placed(tensor=8, data=8), SELENE, "tensor").bandwidth
    across = group_links(placed(tensor=16, data=4), SELENE, "tensor").bandwidth
    assert inside == pytest.approx(np.full(8, 300e9))
    assert across == pytest.approx(np.full(4, 200e9))


def test_a_chain_and_an_exchange_share_their_links_alike():
    chain = group_links(Placement(strategy=STRATEGY), SELENE, "pipeline", pattern="chain")
    assert chain.bandwidth == pytest.approx(np.full(32, 25e9))
    every = group_links(Placement(strategy=STRATEGY), SELENE, "tensor", pattern="all_to_all")
    assert every.bandwidth == pytest.approx(np.full(8, 300e9))


@pytest.mark.parametrize("degree", DEGREES)
def test_groups_are_those_of_the_placement(degree):
    strategy = Strategy(tensor=2, pipeline=2, data=4, context=2, expert=4, shard=2)
    groups = group_links(Placement(strategy=strategy), SELENE, degree).groups
    size = {"shard": 2}.get(degree) or getattr(strategy, degree)
    assert groups.shape == (32 // size, size)
    assert np.array_equal(np.sort(groups, axis=None), np.arange(32))


@pytest.mark.parametrize(
    "topology", [dgx_superpod(1), rail_only(8), leaf_spine(8, 3, 8)], ids=lambda t: t.meta.name
)
@pytest.mark.parametrize("pattern", ["ring", "chain", "all_to_all"])
def test_flow_follows_every_shortest_path_alike(topology, pattern):
    found = group_links(placed(tensor=4, data=6), topology, "data", pattern=pattern)
    index = {tuple(edge): i for i, edge in enumerate(topology.edges.tolist())}
    group = found.groups[1]
    n, m = len(group), len(topology.edges)
    pairs = [(i, (i + 1) % n) for i in range(n - (pattern == "chain"))]
    if pattern == "all_to_all":
        pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    flow = np.zeros(2 * m)
    for i, j in pairs:
        ends = (int(topology.hosts[group[k]]) for k in (i, j))
        paths = set(ecmp_paths(topology, *ends))
        wide = [
            np.prod([topology.multiplicity[index[min(h), max(h)]] for h in links_of(p)])
            for p in paths
        ]
        for path, width in zip(paths, wide, strict=True):
            for u, v in links_of(path):
                link = index[min(u, v), max(u, v)] + m * (u > v)
                flow[link] += width / sum(wide) / (1 if pattern != "all_to_all" else n - 1)
    assert found.flow.toarray()[1] == pytest.approx(flow)


def crossing(found, links):
    """Which groups send anything over any of these links."""
    return np.asarray(found.flow.toarray()[:, links].sum(axis=1) > 0)


def links_of(path):
    return list(pairwise(path))


def test_on_rails_every_group_has_a_rail_of_its_own():
    for topology in (dgx_superpod(1), rail_only(32), hpn7(1)):
        found = group_links(placed(tensor=8, data=32), topology, "data")
        assert found.bandwidth == pytest.approx(np.full(8, 50e9))


def test_without_rails_groups_meet_on_the_way_to_the_spine():
    found = group_links(placed(tensor=8, data=8), leaf_spine(8, 4, 8), "data")
    assert found.load.max() == 2.0
    assert found.bandwidth == pytest.approx(np.full(8, found.capacity.min() / 2))


@pytest.mark.parametrize("degree", ["tensor", "data", "pipeline"])
@pytest.mark.parametrize("part", [0, 13, 63, 64, 71])
def test_a_weaker_link_slows_exactly_the_groups_that_cross_it(degree, part):
    placement = Placement(strategy=STRATEGY)
    share = np.ones(72)
    share[part] = 0.1
    before = group_links(placement, SELENE, degree)
    after = group_links(placement, SELENE, degree, alive=share)
    assert np.array_equal(after.bandwidth < before.bandwidth, crossing(before, [part]))
    share[part] = 0
    cut = group_links(placement, SELENE, degree, alive=share)
    assert np.array_equal(cut.bandwidth == 0, crossing(before, [part]))


def test_a_dead_gpu_tears_its_group_apart_and_no_other():
    topology = dgx_superpod(1)
    placement = placed(tensor=8, data=32)
    for degree in ("tensor", "data"):
        before = group_links(placement, topology, degree)
        after = group_links(placement, topology, degree, alive=alive(topology, nodes=(3,)))
        torn = (before.groups == 3).any(axis=1)
        assert np.array_equal(after.bandwidth == 0, torn)
        assert np.array_equal(after.joined, ~torn)


@pytest.mark.parametrize("what", ["cable", "leaf", "spine"])
def test_what_loses_its_path_moves_and_slows_only_whom_it_meets(what):
    topology = dgx_superpod(1)
    placement = placed(tensor=8, data=32)
    leaf = int(np.flatnonzero(topology.is_kind("leaf"))[0])
    spine = int(np.flatnonzero(topology.is_kind("spine"))[0])
    cable = int(np.flatnonzero((topology.edges == (0, leaf)).all(axis=1))[0])
    dead = {"cable": {"edges": (cable,)}, "leaf": {"nodes": (leaf,)}, "spine": {"nodes": (spine,)}}[
        what
    ]
    before = group_links(placement, topology, "data")
    after = group_links(placement, topology, "data", alive=alive(topology, **dead))
    gone = np.flatnonzero(after.capacity < before.capacity)
    moved = crossing(before, gone)
    busier = np.flatnonzero(after.load > before.load + 1e-9)
    slower = after.bandwidth < before.bandwidth * (1 - 1e-9)
    assert after.joined.all()
    assert not np.any(slower & ~moved & ~crossing(after, busier))
    assert slower.any() == (what != "spine")  # on rails no group needs the spine


def test_a_group_is_as_fast_as_its_slowest_link():
    found = group_links(placed(tensor=8, data=8), leaf_spine(8, 4, 8), "data")
    used, seconds = found.flow.toarray() > 0, found.load / found.capacity
    assert found.bandwidth == pytest.approx(1 / np.where(used, seconds, 0.0).max(axis=1))
    alone = group_links(placed(tensor=8, data=1), SELENE, "data")
    assert np.isinf(alone.bandwidth).all()


def test_impossible_placements_are_refused_with_the_rule():
    for network in (SELENE, rail_only(8)):
        with pytest.raises(
            ValueError, match=r"at most the 64 GPUs of the network, got tensor .* = 128"
        ):
            group_links(placed(tensor=8, data=16), network, "data")
    with pytest.raises(
        ValueError, match="network must have an accelerator and a network_bandwidth"
    ):
        group_links(placed(tensor=8), Cluster(nodes=8), "tensor")
    with pytest.raises(ValueError, match="alive must have one share for each of 72 links"):
        group_links(placed(tensor=8), SELENE, "tensor", alive=np.ones(3))
