"""What a cluster is made of: nodes of equal GPUs, links between them, and the switches they share.

A `Cluster` counts parts and has two levels of links; it has no graph.
"""

from functools import cache
from typing import Final

from relparallel._checks import instance, real, record, require_choice, require_int, whole
from relparallel.hardware.data_sheets import Accelerator, accelerator
from relparallel.published import shipped_rows
from relparallel.units import GBIT, MB

_MOST: Final = 250e9  # bytes/s of a GPU: more than the fastest adapter, of 1,600 Gbit/s, carries
LEVELS: Final = ("gpu", "tray", "node", "nvlink", "switch", "rack", "job")
"""What stops when a part fails: one GPU, the GPUs that share a host (a tray or all of a node), its
node, the node that an NVLink switch tray joins (a partition that lost a switch is not operational:
NVIDIA, NMX-M documentation 85.1, "Partition Health"), all nodes on a switch or cable, all that
share a rack or its power, or the job itself."""


@record
class Cluster:
    """Nodes of equal GPUs, in groups that share a switch.

    Two levels of links: inside a node as the accelerator gives it, and between nodes. A node may be
    a box of eight GPUs or a whole rack that NVLink joins, whose GPUs share hosts in trays.

    Parameters
    ----------
    nodes, gpus_per_node : int
        Nodes, and GPUs in each.
    nodes_per_switch, nodes_per_rack : int
        Nodes that stop when one switch (or its cable) fails, and that share a rack or its power;
        divisors of ``nodes``.
    accelerator : Accelerator, optional
        What computes; times need it, counts do not.
    network_bandwidth : float, optional
        Of a node to the others, all its adapters together, in one direction [bytes/s], at least 1e6
        and at most 250e9 a GPU, which no adapter carries; from 1e15 on it limits nothing.
    name : str, optional
        Under which `cluster` finds it.
    gpus_per_tray : int, optional
        GPUs that share a host, which fails as a whole; a divisor of ``gpus_per_node``, all of it if
        omitted.
    nvlink_trays : int, optional
        NVLink switch trays of each node, each a part that fails on its own; none where omitted.
    spare_trays : int
        Trays that each node has besides those of the job: 2 where 16 of the 18 of an NVL72 rack
        work. While one is free it stands in for a failed one, and the node stays; they do not fail
        while they stand by.

    Examples
    --------
    >>> Cluster(nodes=2048).gpus
    16384
    """

    nodes: int = whole(at_least=1, at_most=10**6)
    gpus_per_node: int = whole(default=8, at_least=1, at_most=10**4)
    nodes_per_switch: int = whole(default=1, at_least=1)
    nodes_per_rack: int = whole(default=1, at_least=1)
    accelerator: Accelerator | None = instance(Accelerator, default=None)
    network_bandwidth: float | None = real(default=None, above=0, at_most=1e18)
    name: str = instance(str, default="")
    gpus_per_tray: int | None = whole(default=None, at_least=1, at_most=10**4)
    nvlink_trays: int | None = whole(default=None, at_least=1, at_most=10**4)
    spare_trays: int = whole(default=0, at_least=0, at_most=10**4)

    def __post_init__(self) -> None:
        if self.network_bandwidth is not None and self.network_bandwidth < MB:
            raise ValueError(
                "network_bandwidth must be at least 1e6 bytes/s (400 Gbit/s is 400 * units.GBIT), "
                f"got {self.network_bandwidth:g}"
            )
        # a part of a node has all its adapters
        most = _MOST * self.gpus_per_node if self.nodes > 1 else 1e15
        if self.network_bandwidth is not None and most < self.network_bandwidth < 1e15:
            raise ValueError(
                f"network_bandwidth must be at most {_MOST:g} bytes/s a GPU (3,200 Gbit/s of a "
                "node is "
                "3200 * units.GBIT), or at least 1e15 where it limits nothing, got "
                f"{self.network_bandwidth:g} for {self.gpus_per_node}: bits?"
            )
        for name in ("nodes_per_switch", "nodes_per_rack"):
            if self.nodes % getattr(self, name):
                raise ValueError(
                    f"{name} must divide nodes = {self.nodes}, got {getattr(self, name)}"
                )
        if self.gpus_per_node % self.tray:
            raise ValueError(
                f"gpus_per_tray must divide {self.gpus_per_node} GPUs, got {self.tray}"
            )
        if self.spare_trays and self.tray == self.gpus_per_node:
            raise ValueError(
                "spare_trays must be 0 unless gpus_per_tray is below gpus_per_node = "
                f"{self.gpus_per_node}, "
                f"got {self.spare_trays}"
            )

    @property
    def gpus(self) -> int:
        """GPUs of the whole cluster."""
        return self.nodes * self.gpus_per_node

    @property
    def tray(self) -> int:
        """GPUs that share a host."""
        return self.gpus_per_tray or self.gpus_per_node

    @property
    def paid(self) -> int:
        """GPUs that are paid for: those of spare trays as well."""
        return self.gpus + self.nodes * self.spare_trays * self.tray

    def parts(self, level: str) -> int:
        """Return how many parts of a level the cluster has."""
        if level == "nvlink":
            if self.nvlink_trays is None:
                raise ValueError(
                    "nvlink_trays must be given for failures of level 'nvlink', got None"
                )
            return self.nodes * self.nvlink_trays
        return self.gpus // self.gpus_per_part(level)

    def gpus_per_part(self, level: str) -> int:
        """Return how many GPUs stop when one part of a level fails."""
        require_choice(LEVELS, level=level)
        nodes = {
            "node": 1,
            "nvlink": 1,
            "switch": self.nodes_per_switch,
            "rack": self.nodes_per_rack,
            "job": self.nodes,
        }
        return {"gpu": 1, "tray": self.tray}.get(level) or nodes[level] * self.gpus_per_node


@cache
def _rows() -> dict[str, dict[str, str]]:
    """Shipped clusters by name."""
    return {row["cluster"]: row for row in shipped_rows("clusters.csv")}


def clusters() -> tuple[str, ...]:
    """Names that `cluster` knows.

    Returns
    -------
    tuple of str
        In alphabetical order.

    Examples
    --------
    >>> "a100-80gb-selene" in clusters()
    True
    """
    return tuple(sorted(_rows()))


def cluster(name: str, gpus: int) -> Cluster:
    """Cluster of a published kind, with as many GPUs as wanted.

    Parameters
    ----------
    name, gpus : str, int
        One of `clusters`, and its GPUs: less than a node, or whole nodes. A rack of 72 is a node:
        GPUs that fill no racks are 64 of each, if they are so many.

    Returns
    -------
    Cluster
        With its accelerator and its network; ``data/clusters.csv`` names the source of every row.

    Examples
    --------
    >>> selene = cluster("a100-80gb-selene", gpus=1536)
    >>> selene.nodes, selene.network_bandwidth
    (192, 200000000000.0)
    >>> [cluster("gb300-279gb-nvl72", gpus=many).gpus_per_node for many in (72, 144, 128, 8)]
    [72, 72, 64, 8]
    """
    row = _rows()[require_choice(clusters(), name=name)]
    require_int(gpus=gpus, at_least=1, at_most=10**7)
    sizes = [int(row[field]) for field in ("gpus_per_node", "gpus_used") if row[field]]
    node = next((size for size in sizes if gpus % size == 0), min(gpus, sizes[0]))
    if gpus % node:
        whole = " or ".join(map(str, sizes))
        raise ValueError(
            f"gpus must fill nodes of {whole} GPUs of {name}, got {gpus}: {nearest(gpus, *sizes)}"
        )
    tray = max(size for size in range(1, int(row["gpus_per_tray"]) + 1) if node % size == 0)
    return Cluster(
        nodes=gpus // node,
        gpus_per_node=node,
        accelerator=accelerator(row["accelerator"]),
        # its share
        network_bandwidth=float(row["network_gbit"]) * GBIT * node / int(row["gpus_per_node"]),
        name=name,
        gpus_per_tray=tray if tray < node else None,
        nvlink_trays=int(row["nvlink_trays"]) if row["nvlink_trays"] else None,
    )


def nearest(gpus: int, *sizes: int) -> str:
    """Next numbers of GPUs that fill nodes of one of the sizes."""
    below = max(gpus // size * size for size in sizes)
    above = min(-(-gpus // size) * size for size in sizes)
    return f"the nearest are {below} and {above}" if below else f"the nearest is {above}"
