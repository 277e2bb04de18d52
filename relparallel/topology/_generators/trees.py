"""Symmetries of the networks of switches in tiers, whose hosts do not forward."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relparallel.topology._arrays import IntArray
from relparallel.topology._generators.blocks import blocks, flat, rolled, rolls
from relparallel.topology.description import describe

__all__ = ["aspen", "c_through", "f10", "fat_tree", "helios", "leaf_spine", "three_tier", "vl2"]


def fat_tree(k: int) -> list[IntArray]:
    """Next pod, edge switch of the pod, host of the switch, aggregation switch, core switch of its group."""
    half = k // 2
    moves = [(0, 0, 0, None), (1, 1, None, None), (2, None, None, None), (None, None, 1, 0)]
    tiers = blocks((k, half, half), (k, half), (k, half), (half, half))
    return rolls(tiers, [*moves, (None, None, None, 1)])


def f10(k: int) -> list[IntArray]:
    """Next pod, with rows and columns of the core exchanged; edge switch; host; a row of the core."""
    half = k // 2
    host, edge, above, core = blocks((k, half, half), (k, half), (k, half), (half, half))
    turned = [np.roll(tier, -1, axis=0) for tier in (host, edge, above)]
    rows = above.copy()
    rows[::2] = np.roll(above[::2], -1, axis=1)  # even pods meet rows of the core, odd ones columns
    inside = rolls((host, edge, above, core), [(1, 1, None, None), (2, None, None, None)])
    return [flat([*turned, core.T]), *inside, flat([host, edge, rows, np.roll(core, -1, axis=0)])]


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int) -> list[IntArray]:
    """Next leaf, host of the leaf, spine."""
    tiers = blocks((leaves, hosts_per_leaf), (leaves,), (spines,))
    return rolls(tiers, [(0, 0, None), (1, None, None), (None, None, 0)])


def helios(pods: int, hosts_per_pod: int, **shares: float) -> list[IntArray]:
    """Those of leaves and spines."""
    form = describe("helios", pods=pods, hosts_per_pod=hosts_per_pod, **shares)
    return leaf_spine(pods, form.nodes["core"], hosts_per_pod)


def three_tier(cores: int, pods: int, access_per_pod: int, hosts_per_access: int) -> list[IntArray]:
    """Next pod, access switch of the pod, host of the switch, aggregation switch of the pair, core switch."""
    tiers = blocks((pods, access_per_pod, hosts_per_access), (pods, access_per_pod), (pods, 2), (cores,))
    down = [(0, 0, 0, None), (1, 1, None, None), (2, None, None, None)]
    return rolls(tiers, [*down, (None, None, 1, None), (None, None, None, 0)])


def vl2(d_a: int, d_i: int) -> list[IntArray]:
    """Those of a tree of three tiers."""
    pods, racks = d_i // 2, d_a // 2
    hosts = describe("vl2", d_a=d_a, d_i=d_i).hosts
    return three_tier(racks, pods, racks, hosts // (pods * racks))


def c_through(aggregations: int, racks_per_aggregation: int, hosts_per_rack: int) -> list[IntArray]:
    """Next aggregation switch, rack of it, host of the rack."""
    racks = (aggregations, racks_per_aggregation)
    tiers = blocks((*racks, hosts_per_rack), racks, (aggregations,), (1,))
    return rolls(tiers, [(0, 0, 0, None), (1, 1, None, None), (2, None, None, None)])


def aspen(levels: int, k: int, fault_tolerance: Sequence[int]) -> list[IntArray]:
    """Next pod of each level below its parent, host of an edge switch, switch of the top with the same pods.

    Pods of one level below the same pod are wired alike. At the top the k/2 ports of a switch end in runs of
    consecutive switches that all begin at multiples of a common divisor.
    """
    links, half = [1 + f for f in fault_tolerance], k // 2  # from the top down
    below = [k // links[0], *(half // c for c in links[1:])]  # pods below a pod of levels n .. 2
    sizes = [math.prod(half // c for c in links[levels - i :]) for i in range(1, levels)]  # m_1 .. m_n-1
    top = sizes[-1] * k // (2 * links[0])
    run = math.gcd(half, top)
    tiers = [(*below, half), *((*below[: levels - i], size) for i, size in enumerate(sizes, start=1))]
    parts = blocks(*tiers, (top // run, run))
    depth = [len(tier) - 1 for tier in tiers]
    pods = [[axis if axis < d else None for d in depth] for axis in range(levels - 1)]
    hosts = [levels - 1, *[None] * (levels - 1)]
    return [*rolls(parts, [[*axes, None] for axes in (*pods, hosts)]), rolled(parts, [*[None] * levels, 1])]
