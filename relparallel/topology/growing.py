"""Growth of random networks by one switch after the other, as Jellyfish and Xpander do it."""

from __future__ import annotations

import numpy as np

from relparallel._checks import require_instance, require_int, require_rng
from relparallel.topology._arrays import IntArray
from relparallel.topology._switched import switched
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import Design


def grow(topology: Topology, switches: int, rng: np.random.Generator) -> Topology:
    """Add switches to a network of equal switches: each takes random cables apart and joins both ends.

    Parameters
    ----------
    topology : Topology
        Switches with r cables to others and p hosts each, as the builders `jellyfish` and `xpander` make; or
        hosts alone.
    switches : int
        New switches, at least 1, each with p hosts.
    rng : numpy.random.Generator
        Draws the cables; the same state gives the same network.

    Returns
    -------
    Topology
        The larger network. All switches that were there keep their number of cables; a new one has r of
        them, r - 1 if r is odd. Their ``pod`` is -1.

    Notes
    -----
    A new switch moves floor(r/2) cables, whatever the size of the network. O(m) for each.

    References
    ----------
    Singla, Hong, Popa, Godfrey, "Jellyfish: networking data centers randomly", NSDI 2012, section 4.2.
    Valadarsky, Shahaf, Dinitz, Schapira, "Xpander: towards optimal-performance datacenters", CoNEXT 2016.

    Examples
    --------
    >>> from relparallel.topology import jellyfish
    >>> rng = np.random.default_rng(1)
    >>> grow(jellyfish(n=20, k=6, r=4, rng=rng), switches=2, rng=rng)
    <Topology grown jellyfish(n=20, k=6, r=4, switches=2): 44 hosts, 22 switches, 88 links>
    """
    t = require_instance(Topology, topology=topology)
    new, p, r = require_int(switches=switches, at_least=1), *_uniform(t)
    require_rng(rng=rng)
    first = 0 if t.num_switches == 0 else t.num_hosts
    cables = np.repeat(t.edges, t.multiplicity, axis=0)
    cables = cables[(cables >= first).all(axis=1)] - first
    old = t.num_nodes - first
    for switch in range(old, old + new):
        for _ in range(r // 2):
            cables = _spliced(cables, switch, rng)
    return switched(
        cables=cables,
        p=p,
        pod=np.append(t.pod[first:], np.full(new, -1)),
        meta=Design(
            name=f"grown {t.meta.name}", parameters={**t.meta.parameters, "switches": new}, paper=t.meta.paper
        ),
    )


def _uniform(t: Topology) -> tuple[int, int]:
    """Hosts and other cables of every switch."""
    hosts, every = (t.num_hosts, t.num_switches) if t.num_switches else (0, t.num_nodes)
    p, rest = divmod(hosts, every)
    home = np.column_stack([np.arange(hosts), hosts + np.arange(hosts) // max(p, 1)])
    degrees = np.unique(t.degrees[hosts:])
    if (
        "switch" not in t.kinds
        or rest
        or degrees.size > 1
        or not np.array_equal(t.edges[t.edges[:, 0] < hosts], home)
    ):
        raise ValueError(f"topology must be of switches with as many hosts and cables each, got {t!r}")
    return p, int(degrees[0]) - p


def _spliced(cables: IntArray, switch: int, rng: np.random.Generator) -> IntArray:
    """Cables after a random one that does not touch the switch's neighbours is led through the switch."""
    near = np.unique(cables[(cables == switch).any(axis=1)])
    free = np.flatnonzero(~np.isin(cables, np.append(near, switch)).any(axis=1))
    if not free.size:
        raise ValueError(f"topology must have cables away from the neighbours of switch {switch}, got none")
    taken = int(rng.choice(free))
    through = np.array([[end, switch] for end in cables[taken]])
    return np.concatenate([np.delete(cables, taken, axis=0), through])
