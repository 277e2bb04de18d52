"""One network of every design at about the same size."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

import relparallel.topology as builders
from relparallel._checks import require_int, require_rng
from relparallel.topology import Topology, describe, names


def designs(endpoints: int = 100_000, *, rng: np.random.Generator | None = None) -> dict[str, Topology]:
    """One network of every design here, each as near to the wanted number of hosts as its rules allow.

    Parameters
    ----------
    endpoints : int, optional
        Hosts wanted, 1,000 to 1,000,000. A published cluster has its largest size where that is smaller.
    rng : numpy.random.Generator, optional
        Wires the random designs; by default always the same.

    Returns
    -------
    dict of str to Topology
        By name of the builder.

    Examples
    --------
    >>> designs(1000)["bcube"]
    <Topology bcube(n=10, k=2): 1000 hosts, 300 switches, 3000 links>
    """
    require_int(endpoints=endpoints, at_least=1000, at_most=10**6)
    draw = np.random.default_rng(0) if rng is None else require_rng(rng=rng)
    racks = round(endpoints / 24)
    chosen = {name: _closest(name, tried, endpoints) for name, tried in _candidates(endpoints).items()}
    built = {name: getattr(builders, name)(**parameters) for name, parameters in chosen.items()}
    built["jellyfish"] = builders.jellyfish(n=racks, k=64, r=40, rng=draw)
    built["xpander"] = builders.xpander(d=40, k=max(round(racks / 41), 1), p=24, rng=draw)
    return {name: built[name] for name in names() if name in built}


def _candidates(n: int) -> dict[str, Iterable[dict[str, Any]]]:
    """Parameters to choose from for n hosts; those that break a rule of the paper are passed over."""
    return {**_trees(n), **_of_servers(n), **_of_groups(), **_clusters()}


def _trees(n: int) -> dict[str, Iterable[dict[str, Any]]]:
    """Switches in tiers; racks of 48 where the design leaves that open."""
    even, racks = range(2, 200, 2), round(n / 48)
    pod = next(size for size in (1024, 256, 64) if n >= 8 * size)
    groups = round(math.sqrt(racks))
    tree = {"aggregations": groups, "racks_per_aggregation": round(racks / groups), "hosts_per_rack": 48}
    return {
        "aspen": [{"levels": 4, "k": k, "fault_tolerance": (0, 1, 0)} for k in even],
        "c_through": [tree],
        "f10": [{"k": k} for k in even],
        "fat_tree": [{"k": k} for k in even],
        "helios": [{"pods": round(n / pod), "hosts_per_pod": pod, "electrical": 0.5, "optical": 0.5}],
        "leaf_spine": [{"leaves": racks, "spines": 24, "hosts_per_leaf": 48}],
        "three_tier": [
            {"cores": 8, "pods": max(round(racks / a), 2), "access_per_pod": a, "hosts_per_access": 48}
            for a in (8, 32)
        ],
        "vl2": [{"d_a": d, "d_i": d} for d in range(2, 500, 2)],
    }


def _of_servers(n: int) -> dict[str, Iterable[dict[str, Any]]]:
    """Hosts that forward."""
    side, cube = math.isqrt(n) // 4, round(n ** (1 / 3))
    grids = [(d, d + i) for d in range(2, 40) for i in (0, 1)]
    return {
        "bcube": [{"n": m, "k": k} for k in (2, 3, 4) for m in range(4, 101)],
        "dcell": [{"n": m, "k": k} for k in (2, 3) for m in range(2, 41)],
        "ficonn": [{"n": m, "k": 2} for m in range(4, 100, 2)],
        "hammingmesh": [{"a": 4, "b": 4, "x": side + i, "y": side + i} for i in (0, 1)],
        "mdcube": [{"n": m, "k": 1, "dims": dims} for m in range(4, 49, 4) for dims in grids],
        "torus": [{"dims": (cube, cube + i, cube + j)} for i, j in ((0, 0), (0, 1), (1, 1))],
        "tpu_v4": [{"dims": (4 * a, 4 * a, 4 * a)} for a in range(1, 5)],
    }


def _of_groups() -> dict[str, Iterable[dict[str, Any]]]:
    """Switches that are joined directly, balanced as the papers advise."""
    small = range(1, 60)
    return {
        "dragonfly": [{"p": h, "a": 2 * h, "h": h} for h in small],
        "dragonfly_plus": [{"l": h, "s": h, "p": h, "h": h} for h in small],
        "hyperx": [{"dims": (s, s, s), "t": 3 * s // 2} for s in small],
        "polarfly": [{"q": q, "p": (q + 1) // 2} for q in range(3, 140)],
        "slim_fly": [{"q": q, "p": (3 * q + 1) // 4} for q in range(3, 100)],
    }


def _clusters() -> dict[str, Iterable[dict[str, Any]]]:
    """Published clusters."""
    ports = [(leaves, p) for p in (64, 128, 256) for leaves in (2**i for i in range(1, 9))]
    return {
        "dgx_superpod": [{"scalable_units": 2**i} for i in range(8)],
        "hpn7": [{"segments": s} for s in range(1, 16)],
        "meta_roce": [{"pods": p} for p in range(1, 9)],
        "nvl72": [{"racks": r} for r in range(1, 1200)],
        "rail_only": [{"domains": leaves * p // 2, "switch_ports": p} for leaves, p in ports],
    }


def _closest(name: str, tried: Iterable[dict[str, Any]], wanted: int) -> dict[str, Any]:
    """Parameters of the design with the number of hosts that is nearest, by ratio."""
    best, distance = None, math.inf
    for parameters in tried:
        try:
            hosts = describe(name, **parameters).hosts
        except ValueError:  # no such member of the family
            continue
        if abs(math.log(hosts / wanted)) < distance:
            best, distance = parameters, abs(math.log(hosts / wanted))
    if best is None:
        raise ValueError(f"endpoints must allow a {name}, got {wanted}")
    return best
