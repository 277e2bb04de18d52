"""A family of fabrics differing in redundancy alone: rails, planes, and how many GPUs share a leaf.

Every member gives a GPU the same bandwidth, so that what differs is what a lost part does.
"""

from dataclasses import replace

import numpy as np

from relparallel._checks import require_flag, require_int, require_real
from relparallel.topology import Design, SharedRisk, Topology
from relparallel.units import GB, GBIT


def redundant_fabric(
    servers: int,
    rails: int = 1,
    planes: int = 1,
    *,
    gpus: int = 8,
    servers_per_leaf: int = 8,
    spines: int = 8,
    card: float = 400 * GBIT,
    nvlink: float = 450 * GB,
    relay: bool = True,
    oversubscription: float = 1.0,
) -> Topology:
    """Two-layer fabric with as many rails and planes as wanted, at equal bandwidth.

    GPU r of a server is on rail r mod rails. In every plane, the GPUs of one rail of a block of
    servers meet one leaf, and each leaf meets all spines of its plane. The card of a GPU has one
    port in every plane.

    Parameters
    ----------
    servers, servers_per_leaf : int
        Servers, and those that meet the same leaves; the latter divides the former.
    rails : int
        1: all GPUs of a server meet the same leaf; ``gpus``: one leaf for each of them. Divides
        ``gpus``.
    planes, spines : int
        1: one leaf for a card, which stops its servers when it fails; 2: dual leaves (dual ToR).
        Spines of each plane.
    gpus : int
        Of a server; NVLink joins them and forwards.
    card, nvlink : float
        Of a GPU, all its ports together, in one direction [bytes/s].
    relay : bool
        Whether GPUs forward for others of their server over NVLink when a card or a leaf is lost.
    oversubscription : float
        Bandwidth of the cards below a leaf over that of its up-links, at least 1.

    Returns
    -------
    Topology
        GPUs server by server, as many cards, an NVSwitch per server, leaves (block, rail, plane),
        spines plane by plane; several planes are groups of ``shared_risk``. A port has card/planes;
        an up-link card gpus servers_per_leaf/(rails planes spines oversubscription).

    References
    ----------
    Qian et al., "Alibaba HPN", SIGCOMM 2024, sections 4 and 5: dual ToR, dual plane, rails. Wang et
    al., "Rail-only", HotI 2024.

    Examples
    --------
    >>> redundant_fabric(servers=16, rails=8, planes=2)
    <Topology redundant_fabric(servers=16, rails=8, planes=2, relay=True): 128 hosts, 192 switches, 768 links>
    """
    require_int(
        servers=servers,
        rails=rails,
        planes=planes,
        gpus=gpus,
        servers_per_leaf=servers_per_leaf,
        spines=spines,
        at_least=1,
        at_most=10**5,
    )
    require_flag(relay=relay)
    require_real(card=card, nvlink=nvlink, above=0, at_most=1e18)
    require_real(oversubscription=oversubscription, at_least=1, at_most=1e6)
    if gpus % rails:
        raise ValueError(f"rails must divide gpus = {gpus}, got {rails}")
    if servers % servers_per_leaf:
        raise ValueError(
            f"servers_per_leaf must divide servers = {servers}, got {servers_per_leaf}"
        )
    hosts, leaves = servers * gpus, servers // servers_per_leaf * rails * planes
    gpu, leaf, plane = np.arange(hosts)[:, None], np.arange(leaves)[:, None], np.arange(planes)
    # the first leaf and the first spine
    first, top = 2 * hosts + servers, 2 * hosts + servers + leaves
    block = gpu // gpus // servers_per_leaf
    own = first + (block * rails + gpu % rails) * planes + plane
    above = top + leaf % planes * spines + np.arange(spines)
    pairs = [
        (gpu, hosts + gpu),
        (gpu, 2 * hosts + gpu // gpus),
        (hosts + gpu, own),
        (first + leaf, above),
    ]
    cables = [
        np.stack(np.broadcast_arrays(low, high), axis=-1).reshape(-1, 2) for low, high in pairs
    ]
    t = Topology.of(
        edges=np.concatenate(cables),
        node_kind={
            "gpu": hosts,
            "nic": hosts,
            "nvswitch": servers,
            "leaf": leaves,
            "spine": planes * spines,
        },
        transit=np.arange(top + planes * spines) >= (0 if relay else hosts),
        device_class={"leaf": "switch", "spine": "switch"},
        meta=Design(
            name="redundant_fabric",
            parameters={"servers": servers, "rails": rails, "planes": planes, "relay": relay},
        ),
    )
    uplink = card * gpus * servers_per_leaf / (rails * planes * spines * oversubscription)
    kind = t.node_kind[t.edges].max(axis=1)  # 1: card, 2: NVSwitch, 3: leaf, 4: spine
    capacity = np.select([kind == 1, kind == 2, kind == 3], [card, nvlink, card / planes], uplink)
    return replace(t, capacity=capacity, shared_risk=_planes(first, leaves, planes, spines))


def _planes(first: int, leaves: int, planes: int, spines: int) -> tuple[SharedRisk, ...]:
    """The leaves and spines of every plane; one plane is no group."""
    leaf, spine = first + np.arange(leaves), first + leaves + np.arange(planes * spines)
    switches = np.concatenate([leaf, spine])
    plane = np.concatenate([np.arange(leaves) % planes, np.arange(planes * spines) // spines])
    return tuple(
        SharedRisk(name=f"plane {i}", nodes=tuple(switches[plane == i].tolist()))
        for i in range(planes if planes > 1 else 0)
    )
