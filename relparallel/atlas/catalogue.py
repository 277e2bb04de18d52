"""One network of every design at about the same size."""

import math
from inspect import signature
from typing import Any

import numpy as np

from relparallel._checks import require_int, require_rng
from relparallel.topology import Topology, describe, names
from relparallel.topology.description import rules


def designs(
    endpoints: int = 100_000, *, rng: np.random.Generator | None = None
) -> dict[str, Topology]:
    """One network of every design here, as near to the wanted number of hosts as its rules allow.

    Parameters
    ----------
    endpoints : int, optional
        Hosts wanted, 1,000 to 1,000,000. A published cluster has its largest size where that is
        smaller.
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
    return {
        name: member(name, endpoints, draw) for name in names() if rules()[name].sizes is not None
    }


def member(name: str, hosts: int, rng: np.random.Generator) -> Topology:
    """The network of a design with about so many hosts; the generator wires it if it is random."""
    builder = rules()[name].builder
    random = {"rng": rng} if "rng" in signature(builder).parameters else {}
    network: Topology = builder(**closest(name, hosts), **random)
    return network


def closest(name: str, hosts: int) -> dict[str, Any]:
    """Parameters of the design with the number of hosts that is nearest, by ratio."""
    best, distance, sizes = None, math.inf, rules()[name].sizes
    for parameters in () if sizes is None else sizes(hosts):
        try:
            found = describe(name, **parameters).hosts
        except ValueError:  # no such member of the family
            continue
        if abs(math.log(found / hosts)) < distance:
            best, distance = parameters, abs(math.log(found / hosts))
    if best is None:
        raise ValueError(
            f"endpoints must allow a {name}, got {hosts}: its @design gives its ``sizes``"
        )
    return best
