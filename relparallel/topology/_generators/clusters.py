"""Symmetries of GPU clusters: pods, units, servers, rails and switches that are wired alike."""

from __future__ import annotations

from collections.abc import Mapping

from relparallel.topology._arrays import IntArray
from relparallel.topology._generators.blocks import blocks, rolls
from relparallel.topology.description import describe

__all__ = ["dgx_superpod", "hpn7", "meta_roce", "nvl72", "rail_only"]


def rail_only(domains: int, gpus_per_domain: int = 8, switch_ports: int = 64) -> list[IntArray]:
    """Those of rails."""
    form = describe("rail_only", domains=domains, gpus_per_domain=gpus_per_domain, switch_ports=switch_ports)
    return _rails(form.nodes, domains, gpus_per_domain)


def nvl72(racks: int = 1, nvswitch_detail: bool = False) -> list[IntArray]:
    """Those of four rails."""
    return _rails(describe("nvl72", racks=racks, nvswitch_detail=nvswitch_detail).nodes, racks, 4)


def _rails(nodes: Mapping[str, int], domains: int, rails: int) -> list[IntArray]:
    """Next leaf of every rail, domain of a leaf, GPU of a domain and rail, rail, NVSwitch, spine."""
    leaves, spines = (nodes.get(kind, 0) // rails for kind in ("leaf", "spine"))
    near = (max(leaves, 1), domains // max(leaves, 1))
    each, chips = nodes["gpu"] // (domains * rails), nodes["nvswitch"] // domains
    parts = blocks((*near, each, rails), (*near, chips), (rails, leaves), (rails, spines))
    inside = [(1, 1, None, None), (2, None, None, None), (None, 2, None, None)]
    return rolls(parts, [(0, 0, 1, None), *inside, (3, None, 0, 0), (None, None, None, 1)])


def dgx_superpod(scalable_units: int, nvswitch_detail: bool = False) -> list[IntArray]:
    """Next pod, unit, server, rail, NVSwitch, spine with its cores, core."""
    nodes = describe("dgx_superpod", scalable_units=scalable_units, nvswitch_detail=nvswitch_detail).nodes
    pods = scalable_units // 4 if "core" in nodes else 1
    servers, spines = (pods, scalable_units // pods, 32), nodes["spine"] // pods
    chips = nodes["nvswitch"] // (scalable_units * 32)
    core = (spines, nodes.get("core", 0) // spines)
    parts = blocks((*servers, 8), (*servers, chips), (*servers[:2], 8), (pods, spines), core)
    outer = [(0, 0, 0, 0, None), (1, 1, 1, None, None), (2, 2, None, None, None), (3, None, 2, None, None)]
    inner = [(None, 3, None, None, None), (None, None, None, 1, 0), (None, None, None, None, 1)]
    return rolls(parts, [*outer, *inner])


def hpn7(segments: int = 15) -> list[IntArray]:
    """Next segment, host of it, rail, plane, aggregation switch of every plane."""
    parts = blocks((segments, 128, 8), (segments, 128), (segments, 8, 2), (2, 60))
    outer = [(0, 0, 0, None), (1, 1, None, None), (2, None, 1, None)]
    return rolls(parts, [*outer, (None, None, 2, 0), (None, None, None, 1)])


def meta_roce(pods: int = 8) -> list[IntArray]:
    """Next pod, rack of it, server of the rack, GPU, cluster switch with its aggregation switch."""
    servers, trunks = (pods, 192, 2), 16 if pods > 1 else 0
    parts = blocks((*servers, 8), servers, (pods, 192), (pods, 16), (trunks,))
    outer = [(0, 0, 0, 0, None), (1, 1, 1, None, None), (2, 2, None, None, None)]
    return rolls(parts, [*outer, (3, None, None, None, None), (None, None, None, 1, 0)])
