"""Closed forms of every design, and the check of a built topology against them.

Counts of cables alone prove little: a BCube whose servers hang on the wrong switches has the right number of
cables. The check therefore compares nodes and degrees of every kind, cables, components and disjoint paths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from relparallel._checks import require_choice, require_instance, require_int, require_real
from relparallel.topology.direct import require_dims
from relparallel.topology.fabric import Topology
from relparallel.topology.flows import disjoint_paths
from relparallel.topology.server_centric import dcell_servers, require_levels
from relparallel.topology.switch_centric import require_even

__all__ = ["Description", "check", "describe"]

_SAMPLED: Final = 8  # hosts to which `check` counts the disjoint paths from the first host


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """What a design promises, by closed forms.

    Attributes
    ----------
    design : str
        Name of the builder.
    parameters : Mapping
        Its arguments.
    nodes, degrees : Mapping of str to int
        Number of nodes of each kind, and cables at each of them. The first kind are the hosts.
    links : int
        Cables.
    diameter : int or None
        Largest distance of two hosts [links]; None where no closed form is known (DCell).
    diameter_bound : int
        Upper bound of it; equal to it where it is known.
    mean_hops : float or None
        Mean distance of two different hosts [links]; None where no closed form is known or there is one host.
    bisection : int or None
        Fewest cables between two halves of the hosts; None where no closed form is known.
    host_connectivity : int
        Cable-disjoint paths between any two hosts; 0 where there is one host.
    """

    design: str
    parameters: Mapping[str, Any]
    nodes: Mapping[str, int]
    degrees: Mapping[str, int]
    links: int
    diameter: int | None = None
    diameter_bound: int
    mean_hops: float | None = None
    bisection: int | None = None
    host_connectivity: int

    def __post_init__(self) -> None:
        require_choice(_FORMS, design=self.design)
        require_instance(Mapping, parameters=self.parameters, nodes=self.nodes, degrees=self.degrees)
        for name in ("nodes", "degrees"):
            counts: Mapping[str, int] = getattr(self, name)
            if not counts:
                raise ValueError(f"{name} must name at least one kind, got {counts}")
            for count in counts.values():
                require_int(**{name: count}, at_least=0)
        for name in ("links", "diameter", "diameter_bound", "bisection", "host_connectivity"):
            if not (getattr(self, name) is None and name in ("diameter", "bisection")):
                require_int(**{name: getattr(self, name)}, at_least=0)
        if self.mean_hops is not None:
            require_real(mean_hops=self.mean_hops, at_least=0)

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return next(iter(self.nodes.values()))

    @property
    def switches(self) -> int:
        """Number of nodes that are no hosts."""
        return sum(self.nodes.values()) - self.hosts

    def to_frame(self) -> pd.DataFrame:
        """Table of quantity and value; a form that is not known is left out.

        Returns
        -------
        pandas.DataFrame
            Indexed by quantity.

        Examples
        --------
        >>> describe("bcube", n=4, k=1).to_frame().loc["mean hops", "value"]
        3.2
        """
        whole = ("hosts", "switches", "links", "diameter", "diameter_bound", "mean_hops", "bisection")
        rows = {name: getattr(self, name) for name in (*whole, "host_connectivity")}
        known = {name.replace("_", " "): value for name, value in rows.items() if value is not None}
        return pd.DataFrame({"value": pd.Series(known, dtype=object)}).rename_axis("quantity")


def describe(design: str, **parameters: Any) -> Description:
    """Closed forms of a design, without building it.

    Parameters
    ----------
    design : {"fat_tree", "leaf_spine", "bcube", "dcell", "torus"}
        Name of the builder.
    **parameters
        Arguments of the builder.

    Returns
    -------
    Description
        Counts, degrees, diameter, mean distance, bisection and connectivity.

    Raises
    ------
    TypeError, ValueError
        If the design or a parameter is not one of those named, or is out of range.

    Notes
    -----
    With N hosts: fat-tree mean [2(k/2-1) + 4(k/2)(k/2-1) + 6(N-k^2/4)]/(N-1), leaf-spine [2(h-1) +
    4(N-h)]/(N-1), BCube 2(k+1)(1-1/n) N/(N-1), torus sum_i floor(k_i^2/4)/k_i N/(N-1). Bisection: fat-tree
    k^3/8, BCube N/2 for even n, torus 2N/max k_i for an even longest dimension of 4 or more (N/2 for one of
    2), leaf-spine min(hosts_per_leaf, spines) leaves/2 for an even number of leaves.

    References
    ----------
    Al-Fares et al., SIGCOMM 2008; Guo et al., SIGCOMM 2008 and 2009; Arjona Aroca and Fernandez Anta,
    "Bisection (band)width of product networks with application to data centers", arXiv 1202.6291, 2012.

    Examples
    --------
    >>> describe("dcell", n=6, k=3).hosts
    3263442
    """
    require_choice(_FORMS, design=design)
    expected = list(signature(_FORMS[design]).parameters)
    if sorted(parameters) != sorted(expected):
        raise ValueError(f"parameters of {design} must be {', '.join(expected)}, got {', '.join(parameters)}")
    return _FORMS[design](**parameters)


def check(topology: Topology) -> pd.DataFrame:
    """Compare a built topology with the closed forms of its design.

    Parameters
    ----------
    topology : Topology
        Of one of the designs that `describe` knows.

    Returns
    -------
    pandas.DataFrame
        Indexed by quantity; columns described, measured. All rows agree.

    Raises
    ------
    TypeError
        If it is no Topology.
    ValueError
        If its design is not known, or a quantity differs; the message names every one that does.

    Notes
    -----
    Compares nodes and degrees of every kind, cables, components, and cable-disjoint paths from the first host
    to eight others spread over the network. Distances and bisections are for the metrics.

    Examples
    --------
    >>> from relparallel.topology import fat_tree
    >>> print(check(fat_tree(k=4)).loc["links"].to_dict())
    {'described': 48, 'measured': 48}
    """
    t = require_instance(Topology, topology=topology)
    require_choice(_FORMS, **{"topology.meta.name": t.meta.name})
    form = describe(t.meta.name, **t.meta.parameters)
    rows = {
        **{f"{kind} nodes": (n, _count(t, kind)) for kind, n in form.nodes.items()},
        **{f"{kind} degree": (n, _degree(t, kind)) for kind, n in form.degrees.items()},
        "hosts": (form.hosts, t.num_hosts),
        "links": (form.links, t.num_links),
        "components": (1, _components(t)),
        "disjoint paths of hosts": (form.host_connectivity, _host_connectivity(t)),
    }
    wrong = [f"{name} {got} instead of {due}" for name, (due, got) in rows.items() if due != got]
    if wrong:
        raise ValueError(f"topology must agree with the closed forms of {t!r}, got {'; '.join(wrong)}")
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["described", "measured"])
    return table.rename_axis("quantity")


def _fat_tree(k: int) -> Description:
    half = require_even(k=k) // 2
    hosts = 2 * half**3
    distances = 2 * (half - 1) + 4 * half * (half - 1) + 6 * (hosts - half**2)
    return Description(
        design="fat_tree",
        parameters={"k": k},
        nodes={"host": hosts, "edge": 2 * half**2, "aggregation": 2 * half**2, "core": half**2},
        degrees={"host": 1, "edge": k, "aggregation": k, "core": k},
        links=3 * hosts,
        diameter=6,
        diameter_bound=6,
        mean_hops=distances / (hosts - 1),
        bisection=half**3,
        host_connectivity=1,
    )


def _leaf_spine(leaves: int, spines: int, hosts_per_leaf: int) -> Description:
    require_int(leaves=leaves, spines=spines, hosts_per_leaf=hosts_per_leaf, at_least=1)
    h, hosts = hosts_per_leaf, leaves * hosts_per_leaf
    diameter = 4 if leaves > 1 else 2 if hosts > 1 else 0
    return Description(
        design="leaf_spine",
        parameters={"leaves": leaves, "spines": spines, "hosts_per_leaf": h},
        nodes={"host": hosts, "leaf": leaves, "spine": spines},
        degrees={"host": 1, "leaf": h + spines, "spine": leaves},
        links=leaves * (h + spines),
        diameter=diameter,
        diameter_bound=diameter,
        mean_hops=(2 * (h - 1) + 4 * (hosts - h)) / (hosts - 1) if hosts > 1 else None,
        bisection=None if leaves % 2 else min(h, spines) * leaves // 2,
        host_connectivity=int(hosts > 1),
    )


def _bcube(n: int, k: int) -> Description:
    require_levels(n=n, k=k)
    hosts = n ** (k + 1)
    return Description(
        design="bcube",
        parameters={"n": n, "k": k},
        nodes={"server": hosts, "switch": (k + 1) * n**k},
        degrees={"server": k + 1, "switch": n},
        links=(k + 1) * hosts,
        diameter=2 * (k + 1),
        diameter_bound=2 * (k + 1),
        mean_hops=2 * (k + 1) * (n - 1) * n**k / (hosts - 1),
        bisection=None if n % 2 else hosts // 2,
        host_connectivity=k + 1,
    )


def _dcell(n: int, k: int) -> Description:
    require_levels(n=n, k=k, at_most=5)
    hosts = dcell_servers(n, k)[k]
    return Description(
        design="dcell",
        parameters={"n": n, "k": k},
        nodes={"server": hosts, "switch": hosts // n},
        degrees={"server": k + 1, "switch": n},
        links=hosts + hosts * k // 2,
        diameter=None if k else 2,
        diameter_bound=3 * 2**k - 1,
        mean_hops=None if k else 2.0,
        bisection=None,
        host_connectivity=k + 1,
    )


def _torus(dims: Sequence[int]) -> Description:
    lengths = require_dims(dims=dims)
    nodes, longest = math.prod(lengths), max(lengths)
    degree = sum(min(length, 3) - 1 for length in lengths)
    diameter = sum(length // 2 for length in lengths)
    total = sum(length**2 // 4 * (nodes // length) for length in lengths)
    return Description(
        design="torus",
        parameters={"dims": lengths},
        nodes={"node": nodes},
        degrees={"node": degree},
        links=nodes * degree // 2,
        diameter=diameter,
        diameter_bound=diameter,
        mean_hops=total / (nodes - 1) if nodes > 1 else None,
        bisection=None if longest % 2 else nodes * min(longest // 2, 2) // longest,
        host_connectivity=degree,
    )


_FORMS: Final[Mapping[str, Callable[..., Description]]] = {
    "fat_tree": _fat_tree,
    "leaf_spine": _leaf_spine,
    "bcube": _bcube,
    "dcell": _dcell,
    "torus": _torus,
}


def _count(t: Topology, kind: str) -> int:
    return int(np.count_nonzero(t.is_kind(kind))) if kind in t.kinds else 0


def _degree(t: Topology, kind: str) -> int | tuple[int, ...]:
    """Cables at the nodes of a kind: one number where they agree, else every number that occurs."""
    found = np.unique(t.degrees[t.is_kind(kind)]).tolist() if kind in t.kinds else []
    return found[0] if len(found) == 1 else tuple(found)


def _components(t: Topology) -> int:
    ones = np.ones(len(t.edges), dtype=np.int8)
    graph = csr_array((ones, (t.edges[:, 0], t.edges[:, 1])), shape=(t.num_nodes,) * 2)
    return len(np.unique(connected_components(graph, directed=False)[1]))


def _host_connectivity(t: Topology) -> int:
    """Fewest disjoint paths from the first host to some others, spread over the network."""
    spread = np.unique(np.linspace(0, t.num_hosts - 1, _SAMPLED + 1).astype(np.int64))
    first, *others = (t.labels[v] for v in t.hosts[spread])
    return min((disjoint_paths(t, first, other) for other in others), default=0)
