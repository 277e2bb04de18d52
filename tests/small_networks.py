"""A small network of each design, by the sizes its ``@design`` gives: no test lists all designs."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from inspect import Parameter, signature
from math import inf
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from relparallel.atlas.catalogue import closest
from relparallel.metrics import hop_statistics
from relparallel.topology import (
    Design,
    Topology,
    bcube,
    check,
    dcell,
    describe,
    fat_tree,
    leaf_spine,
    names,
    torus,
)
from relparallel.topology.description import rules
from relparallel.units import GBIT

HOSTS = 24  # about
# Levels, ports and fault tolerance of Aspen trees.
ASPEN = [
    (2, 4, (0,)),
    (2, 4, (1,)),
    (3, 8, (1, 0)),
    (3, 8, (0, 1)),
    (3, 8, (3, 3)),
    (4, 4, (0, 1, 0)),
    (4, 8, (1, 1, 0)),
    (4, 6, (0, 2, 0)),
    (5, 4, (0, 0, 1, 0)),
]
# The last of a design that is small enough is its example where one is enough.
SHAPES = {
    "fat_tree": [(2,), (4,), (6,), (8,)],
    "leaf_spine": [(1, 1, 1), (1, 2, 3), (2, 1, 1), (4, 2, 3), (3, 5, 2)],
    "bcube": [(2, 0), (2, 3), (3, 2), (4, 1), (5, 0)],
    "dcell": [(2, 0), (2, 1), (2, 2), (4, 1), (3, 2)],
    "torus": [
        ((1,),),
        ((2,),),
        ((5,),),
        ((4, 4),),
        ((2, 3),),
        ((3, 1, 2),),
        ((4, 3, 2),),
        ((5, 4), False),
        ((4, 4, 3), (True, False, True)),
    ],
    "f10": [(2,), (4,), (6,)],
    "vl2": [(2, 2), (2, 6), (4, 4), (8, 6)],
    "three_tier": [(1, 1, 1, 1), (2, 3, 4, 5), (4, 2, 1, 3)],
    "aspen": [*ASPEN, (3, 4, (1, 0)), (3, 8, (0, 3)), (4, 6, (0, 0, 0))],
    "ficonn": [(2, 0), (2, 1), (2, 3), (4, 1), (4, 2), (6, 1), (8, 2)],
    "mdcube": [
        (4, 1, (5, 5)),
        (4, 1, (9,)),
        (2, 1, (3, 2)),
        (3, 0, (2,)),
        (2, 2, (1, 1)),
        (3, 1, (3, 2, 3)),
        (3, 2, (3, 2)),
    ],
    "helios": [(4, 16, 0.5, 0.5), (1, 3, 0.1, 0.0, 1), (3, 8, 0.5, 0.5, 2)],
    "c_through": [(3, 2, 4), (1, 1, 1)],
    "slim_fly": [(q, p) for p in (2, 0) for q in (13, 11, 9, 8, 7, 5, 4, 3)],
    "polarfly": [(q, p) for p in (0, None) for q in (11, 9, 8, 7, 5, 4, 3, 2)],
    "dragonfly": [(2, 4, 2), (2, 3, 4), (1, 2, 1), (1, 4, 2, "palmtree")],
    "dragonfly_plus": [(2, 3, 2, 4), (3, 2, 1, 1)],
    "hyperx": [((2, 3, 3), 1, 2), ((4, 3), 2), ((5,), 0)],
    "hammingmesh": [(3, 4, 2, 3), (2, 2, 2, 2), (1, 3, 2, 1)],
    "rail_only": [(2, 3, 2), (8, 3, 4), (16, 2, 8), (32, 1, 8), (18, 2, 6)],
    "nvl72": [(racks, detail) for detail in (True, False) for racks in (1, 2, 8, 16)],
    "dgx_superpod": [*((units,) for units in (1, 2, 4, 8, 16)), (1, True), (2, True)],
    "hpn7": [(1,), (2,), (5,)],
    "meta_roce": [(1,), (2,), (3,)],
    "tpu_v4": [((4, 4, 4),), ((4, 4, 8),), ((8, 4, 12),)],
}
# Written to files and read back.
FILED = [fat_tree(4), leaf_spine(3, 2, 4), bcube(3, 1), dcell(3, 1), torus((3, 2, 4)), torus((1,))]


def arguments(name: str) -> dict[str, Any]:
    """Every argument of the builder: those of the size, the defaults of the others, a generator."""
    known = signature(rules()[name].builder).parameters
    defaults = {name: p.default for name, p in known.items() if p.default is not Parameter.empty}
    random = {"rng": np.random.default_rng(1)} if "rng" in known else {}
    return defaults | closest(name, HOSTS) | random


def built(name: str, shape: Sequence[Any]) -> Topology:
    return rules()[name].builder(*shape)


@cache
def small_networks(largest: float = inf, fewest_hosts: int = 2) -> list[Topology]:
    """Networks of so many nodes at most: those above, and one of each design that is not among them."""
    found = [built(name, shape) for name, shapes in SHAPES.items() for shape in shapes]
    found += [rules()[name].builder(**arguments(name)) for name in names() if name not in SHAPES]
    return [t for t in found if t.num_nodes <= largest and t.num_hosts >= fewest_hosts]


def random_graphs(least: int, most: int, *chances: float) -> SearchStrategy[nx.Graph]:
    """Graphs of so many nodes, any two of them joined with a chance between these two."""
    return st.builds(
        nx.gnp_random_graph, st.integers(least, most), st.floats(*chances), st.integers(0, 10**6)
    )


def agrees(t: Topology) -> None:
    """What is built is what is described: counts, degrees, disjoint paths and distances."""
    table, form = check(t), describe(t.meta.name, **t.meta.parameters)
    assert (table["described"] == table["measured"]).all()
    assert (form.hosts, form.switches, form.links) == (t.num_hosts, t.num_switches, t.num_links)
    if t.num_hosts > 1:
        hops = hop_statistics(t)
        assert form.diameter in (None, hops.diameter)
        assert form.diameter_bound is None or hops.diameter <= form.diameter_bound
        assert form.mean_hops is None or form.mean_hops == pytest.approx(hops.mean, rel=1e-13)


def rail_network() -> Topology:
    """Two servers of two GPUs and one NVSwitch, one ToR per rail, one spine with double cables."""
    cables = [
        (0, 4),
        (1, 4),
        (2, 5),
        (3, 5),
        (0, 6),
        (1, 7),
        (2, 6),
        (3, 7),
        (6, 8),
        (6, 8),
        (7, 8),
        (7, 8),
    ]
    t = Topology.of(
        edges=cables,
        node_kind={"gpu": 4, "nvswitch": 2, "leaf": 2, "spine": 1},
        transit=np.arange(9) >= 4,
        device_class={"leaf": "switch", "spine": "switch"},
        meta=Design(name="rails"),
    )
    inside = (t.edges == 4) | (t.edges == 5)
    fast = inside.any(axis=1)
    return replace(
        t,
        capacity=np.where(fast, 3600 * GBIT, 400 * GBIT),
        latency=np.where(fast, 2.5e-8, 5e-7),
        edge_attributes={"error_rate": np.where(fast, 0.0, 1e-12)},
    )
