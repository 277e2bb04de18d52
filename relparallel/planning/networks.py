"""GPUs of a cluster on a network whose hosts are its nodes, as schedulers and graphs have them."""

from collections import Counter
from dataclasses import replace

import numpy as np

from relparallel.hardware import Accelerator, Cluster
from relparallel.topology import Design, Topology
from relparallel.topology._arrays import FloatArray, IntArray, parts
from relparallel.topology.formats import UNMEASURED

# lower and upper end, bytes/s of one, how many
Cables = tuple[IntArray, IntArray, FloatArray, IntArray]


def network_of_gpus(t: Topology, cluster: Cluster) -> Topology:
    """A network of GPUs as is; one of nodes with each node's GPUs, cards and NVSwitch in its place.

    A card reaches all switches of its node. Where a file has no cables, those of a node are as fast
    as the cluster's network, and every switch has as many up as GPUs below. ``graph_attributes``
    hold ``notes`` on what was assumed and how many nodes each switch stops, and
    ``nodes_per_switch`` where all stop as many.
    """
    if t.num_hosts == cluster.gpus:
        return t
    nodes, hosts = cluster.nodes, t.hosts
    inner = {"gpu", "nic", "nvswitch"} & set(t.kinds)
    if t.num_hosts < nodes or inner or t.endpoint[t.edges].all(axis=1).any():
        wanted = f"{cluster.gpus:,} GPUs, or for each of {nodes:,} nodes under switches"
        raise ValueError(f"network must have a host for each of {wanted}, got {t!r}")
    notes = list(t.graph_attributes.get("notes", ()))
    if t.num_hosts > nodes:
        notes.append(f"the job is on the first {nodes:,} of {t.num_hosts:,} nodes of the network")
    idle = np.zeros(t.num_nodes, dtype=np.bool_)
    idle[hosts[nodes:]] = True
    kept = ~idle[t.edges].any(axis=1)
    switches = np.setdiff1d(t.edges[kept], hosts)  # those left that have a cable, kind by kind
    switches = switches[np.argsort(t.node_kind[switches], kind="stable")]
    place = np.full(t.num_nodes, -1)
    place[np.concatenate([hosts[:nodes], switches])] = np.arange(nodes + switches.size)
    ends = np.sort(place[t.edges[kept]], axis=1)
    kinds = Counter(t.kinds[code] for code in t.node_kind[switches].tolist())
    if t.meta.name in UNMEASURED:
        cables, apart = _non_blocking(ends, nodes, switches.size, cluster)
        if apart > 1:
            kinds["core of all"] = 1
            notes.append(
                f"nothing joins {apart} switches: a core that never fails and limits nothing does"
            )
    else:
        cables = (*ends.T, t.capacity[kept], t.multiplicity[kept])
    if np.unique(parts(np.column_stack(cables[:2]), nodes + kinds.total())[:nodes]).size > 1:
        raise ValueError(f"network must join the {nodes:,} nodes, got {t!r}")
    stopped = Counter(Counter(ends[ends[:, 0] < nodes, 1].tolist()).values())
    told = ", ".join(
        f"{many} stop {size} nodes" for size, many in sorted(stopped.items(), reverse=True)
    )
    notes.append(f"of the switches that nodes hang at, {told}")
    said = {"notes": tuple(notes)} | (
        {"nodes_per_switch": min(stopped)} if len(stopped) == 1 else {}
    )
    return replace(_with_gpus(cables, kinds, cluster, t.meta), graph_attributes=said)


def _non_blocking(
    ends: IntArray, nodes: int, switches: int, cluster: Cluster
) -> tuple[Cables, int]:
    """As many cables as GPUs below, as fast as their cards; how many switches a core must join."""
    below = np.zeros(nodes + switches, dtype=np.int64)
    below[:nodes] = cluster.gpus_per_node
    ups = np.bincount(ends[:, 0], minlength=nodes + switches)
    # kinds are tiers, from the bottom
    for low, high in ends[np.argsort(ends[:, 0], kind="stable")].tolist():
        below[high] += below[low] // ups[low]
    roots = np.flatnonzero((ups == 0) & (below > 0))
    if roots.size > 1:
        ends = np.concatenate(
            [ends, np.column_stack([roots, np.full(roots.size, nodes + switches)])]
        )
    ups = np.maximum(np.bincount(ends[:, 0], minlength=nodes + switches), 1)
    assert cluster.network_bandwidth is not None
    card = cluster.network_bandwidth / cluster.gpus_per_node
    many = np.maximum(below[ends[:, 0]] // ups[ends[:, 0]], 1)
    inside = ends[:, 0] < nodes  # every port of a node carries what its cards do
    speed = np.where(inside, cluster.network_bandwidth, card)
    return (ends[:, 0], ends[:, 1], speed, np.where(inside, 1, many)), roots.size


def _with_gpus(cables: Cables, kinds: Counter[str], cluster: Cluster, meta: Design) -> Topology:
    """The network with every node taken apart."""
    gpus, each, nodes = cluster.gpus, cluster.gpus_per_node, cluster.nodes
    device, bandwidth = cluster.accelerator, cluster.network_bandwidth
    assert isinstance(device, Accelerator)
    assert bandwidth is not None
    low, high, speed, many = cables
    port, first, gpu = low < nodes, 2 * gpus + nodes, np.arange(gpus)
    card = (gpus + low[port, None] * each + np.arange(each)).ravel()
    own = np.repeat(high[port] - nodes + first, each)
    lower = np.concatenate([gpu, gpu, card, low[~port] - nodes + first])
    upper = np.concatenate([gpus + gpu, 2 * gpus + gpu // each, own, high[~port] - nodes + first])
    fixed = np.repeat([bandwidth / each, device.node_link], gpus)
    outer = np.repeat((speed * many)[port] / each, each)
    order = np.lexsort((upper, lower))
    count = np.concatenate([np.ones(2 * gpus + card.size, dtype=np.int64), many[~port]])
    node_kind = {"gpu": gpus, "nic": gpus, "nvswitch": nodes, **kinds}
    t = Topology.of(
        edges=np.column_stack([lower, upper]),
        node_kind=node_kind,
        device_class={kind: "switch" for kind in kinds if kind != "core of all"},
        meta=meta,
    )
    return replace(
        t, capacity=np.concatenate([fixed, outer, speed[~port]])[order], multiplicity=count[order]
    )
