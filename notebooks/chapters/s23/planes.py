"""A second port for every host."""

import numpy as np

from relparallel.topology import Design, Topology


def two_planes(plane: Topology) -> Topology:
    """Two copies of a network of switches on the same hosts, which have a port in both.

    Hosts come first in ``plane`` and do not forward. So are the GPUs of HPN 7.0 wired: Qian et al.,
    SIGCOMM 2024.

    >>> from relparallel.topology import leaf_spine
    >>> two_planes(leaf_spine(leaves=4, spines=2, hosts_per_leaf=8))
    <Topology two planes(): 32 hosts, 12 switches, 80 links>
    """
    second = np.where(plane.edges < plane.num_hosts, plane.edges, plane.edges + plane.num_switches)
    kind = np.concatenate([plane.node_kind, plane.node_kind[plane.num_hosts :]])
    place = np.argsort(np.argsort(kind, kind="stable"))  # both planes' nodes, kind by kind
    return Topology.of(
        edges=place[np.concatenate([plane.edges, second])],
        node_kind={name: int((kind == i).sum()) for i, name in enumerate(plane.kinds)},
        meta=Design(name="two planes"),
        transit=np.arange(kind.size) >= plane.num_hosts,
    )
