"""Training clusters as their owners and makers published them.

Eight GPUs of a server share an NVSwitch; each has network cards of its own and forwards, so that a
message may take the card of another GPU of the server. No latency is modelled
(``dataclasses.replace`` sets others).

Letters: SU scalable units of a SuperPOD, s segments of HPN.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from relparallel._checks import require_choice, require_flag, require_int
from relparallel.topology._arrays import IntArray
from relparallel.topology.description import Description, design, planned
from relparallel.topology.designs._shared import nested, wired
from relparallel.topology.designs.gpu_clusters import NVLink, with_nvlink
from relparallel.topology.fabric import Topology
from relparallel.units import GB, GBIT

_GPUS: Final = 8  # of a server
_SU_SERVERS: Final = 32
_POD_UNITS: Final = 4  # of a SuperPOD of three tiers: 32 leaves and 32 spines
_UNITS: Final = (1, 2, 4, 8, 16, 32, 64, 128)

_HPN_HOSTS: Final = 128  # of a segment
_HPN_PLANES: Final = 2
_HPN_AGGREGATION: Final = 60  # of a plane
_HPN_SEGMENTS: Final = 15  # of a pod
_HPN_NVLINK: Final = NVLink(_GPUS, capacity=200 * GB)

_RACKS: Final = 192  # of a pod of Meta's cluster
_RACK_SERVERS: Final = 2
_SPINES: Final = 16  # of a pod: one for each GPU of a rack, so that a pod is non-blocking
_OVERSUBSCRIPTION: Final = 7  # of a pod towards the others
_META_NVLINK: Final = NVLink(_GPUS, capacity=450 * GB)


def _dgx_superpod(scalable_units: int, nvswitch_detail: bool = False) -> Description:
    leaves, spines, cores, nvlink = _superpod(scalable_units, nvswitch_detail)
    servers = _SU_SERVERS * scalable_units
    gpus, links = _GPUS * servers, nvlink.chips * nvlink.links
    pod = _SU_SERVERS * _GPUS * (_POD_UNITS if cores else scalable_units)
    total = (
        2 * (_GPUS - 1 + _SU_SERVERS - 1) + 4 * (pod - _GPUS - _SU_SERVERS + 1) + 6 * (gpus - pod)
    )
    core = {"core": cores} if cores else {}
    return Description(
        nodes={"gpu": gpus, "nvswitch": servers * nvlink.chips, "leaf": leaves, "spine": spines}
        | core,
        degrees={"gpu": links + 1, "nvswitch": _GPUS * nvlink.links, "leaf": 64, "spine": 64}
        | dict.fromkeys(core, 64),
        links=gpus * (links + 2 + bool(cores)),
        diameter=6 if cores else 4,
        mean_hops=total / (gpus - 1),
        host_connectivity=min(links + 1, _GPUS),
    )


def _dgx_superpod_moves(scalable_units: int, nvswitch_detail: bool = False) -> list[IntArray]:
    _, spines, cores, nvlink = _superpod(scalable_units, nvswitch_detail)
    pods = scalable_units // _POD_UNITS if cores else 1
    return nested(
        "pod unit server gpu, pod unit server chip, pod unit gpu, pod spine"
        + ", spine core" * (cores > 0),
        pod=pods,
        unit=scalable_units // pods,
        server=_SU_SERVERS,
        gpu=_GPUS,
        chip=nvlink.chips,
        spine=spines // pods,
        core=cores * pods // spines,
    )


@design(
    closed_form=_dgx_superpod,
    symmetries=_dgx_superpod_moves,
    stripes=lambda t: (t.rail[t.edges].max(axis=1) == 0).astype(np.int64),
    grid=lambda scalable_units, nvswitch_detail: (_GPUS,),
    sizes=lambda hosts: [{"scalable_units": units} for units in _UNITS],
    paper="nvidia2025superpod",
)
def dgx_superpod(scalable_units: int, nvswitch_detail: bool = False) -> Topology:
    """DGX SuperPOD B200: units of 32 servers with 8 rail leaves, in two tiers or three.

    GPU r of every server of a unit meets leaf r of the unit. Up to 8 units: half as many spines as
    leaves, each leaf with 8/SU cables to each. Above: pods of 4 units, each of their 32 leaves with
    one cable to each of 32 spines, and half as many cores as leaves.

    Parameters
    ----------
    scalable_units : {1, 2, 4, 8, 16, 32, 64, 128}
        SU above; other numbers do not spread evenly over 64-port switches.
    nvswitch_detail : bool, optional
        False: one node per server, with one bundle of 900 GB/s to each GPU. True: both chips, each
        with 9 links of 50 GB/s to each GPU.

    Returns
    -------
    Topology
        256 SU GPUs server by server, NVSwitch nodes, 8 SU leaves, spines, cores. ``pod`` is the
        unit, ``rail`` the leaf's position in it.

    Notes
    -----
    The published table counts switches and cables, all reproduced; how leaves of large systems are
    grouped under spines it does not say: here by units, the fat-tree of 64-port switches. Every
    stage has as many cables as there are GPUs. Source: NVIDIA, DGX B200 SuperPOD reference
    architecture, 2025, table of larger SuperPODs.

    Examples
    --------
    >>> dgx_superpod(scalable_units=2)
    <Topology dgx_superpod(scalable_units=2, nvswitch_detail=False): 512 hosts, 88 switches, 1536 links>
    """
    form = planned("dgx_superpod", scalable_units, nvswitch_detail)
    leaves, _, cores, nvlink = _superpod(scalable_units, nvswitch_detail)
    gpu, chip, leaf, spine, *_ = (np.arange(count) for count in form.nodes.values())
    unit = gpu // (_SU_SERVERS * _GPUS)
    if cores:
        above = leaf[:, None] // 32 * 32 + np.arange(32)
        # Spine j of every pod meets the j-th group of pods/2 cores, with 64/pods cables to each.
        pods = leaves // 32
        cores_above = spine[:, None] % 32 * (pods // 2) + np.repeat(
            np.arange(pods // 2), 64 // pods
        )
    else:
        above = np.tile(np.repeat(spine, 8 // scalable_units), (leaves, 1))
        cores_above = spine[:, None]  # there are none
    t = wired(
        form,
        nvlink.cables(_SU_SERVERS * scalable_units),
        ("gpu", gpu, "leaf", unit * _GPUS + gpu % _GPUS),
        ("leaf", leaf[:, None], "spine", above),
        ("spine", spine[:, None], "core", cores_above),
        pod={"gpu": unit, "nvswitch": chip // (chip.size // scalable_units), "leaf": leaf // _GPUS},
        rail={"gpu": gpu % _GPUS, "leaf": leaf % _GPUS},
        hosts_forward=True,
    )
    return with_nvlink(t, nvlink)


def _hpn7(segments: int = 15) -> Description:
    if require_int(segments=segments, at_least=1) > _HPN_SEGMENTS:
        allowed = f"segments must be an integer in [1, {_HPN_SEGMENTS}], got {segments}"
        raise ValueError(f"{allowed}: a pod's aggregation switches have no ports for more")
    hosts = _HPN_HOSTS * segments
    gpus, leaves = hosts * _GPUS, segments * _GPUS * _HPN_PLANES
    near = _GPUS - 1 + _HPN_HOSTS - 1
    return Description(
        nodes={
            "gpu": gpus,
            "nvswitch": hosts,
            "leaf": leaves,
            "aggregation": _HPN_PLANES * _HPN_AGGREGATION,
        },
        degrees={
            "gpu": 1 + _HPN_PLANES,
            "nvswitch": _GPUS,
            "leaf": _HPN_HOSTS + _HPN_AGGREGATION,
            "aggregation": leaves // _HPN_PLANES,
        },
        links=gpus * (1 + _HPN_PLANES) + leaves * _HPN_AGGREGATION,
        diameter=4,
        mean_hops=4 - 2 * near / (gpus - 1),
        host_connectivity=1 + _HPN_PLANES,
    )


def _planes(t: Topology) -> IntArray:
    """Stripes: the plane of the leaf, which alternates; by labels, for part of the cluster too."""
    leaf, number = t.is_kind("leaf"), np.array(t.labels, dtype=np.int64)
    first = number[leaf].min(initial=np.iinfo(np.int64).max)
    plane = np.where(leaf[t.edges], number[t.edges] - first, 0).sum(axis=1) % 2
    return np.where(leaf[t.edges].any(axis=1), 1 + plane, 0)


@design(
    closed_form=_hpn7,
    symmetries=lambda segments: nested(
        "segment host rail, segment host, segment rail plane, plane switch",
        segment=segments,
        host=_HPN_HOSTS,
        rail=_GPUS,
        plane=_HPN_PLANES,
        switch=_HPN_AGGREGATION,
    ),
    stripes=_planes,
    grid=lambda segments: (_GPUS,),
    sizes=lambda hosts: [{"segments": count} for count in range(1, _HPN_SEGMENTS + 1)],
    paper="qian2024hpn",
)
def hpn7(segments: int = 15) -> Topology:
    """One pod of Alibaba's HPN 7.0: rails on two planes, and one tier of aggregation for all.

    GPU r of the 128 hosts of a segment meets two leaves (ToRs), one of each plane; each leaf meets
    all 60 aggregation switches of its plane.

    Parameters
    ----------
    segments : int, optional
        1 to 15: as many as 128-port aggregation switches reach.

    Returns
    -------
    Topology
        1,024 s GPUs host by host, 128 s NVSwitch nodes, 16 s leaves (segment, rail, plane), 120
        aggregation switches plane by plane. ``pod`` is the segment, ``rail`` that of GPUs and
        leaves. Cards have two ports of 200 Gbit/s, leaves 60 of 400 Gbit/s up.

    Notes
    -----
    The 15 x 1,024 GPUs of a pod are 2 links apart where they share a host or a leaf, else 4: mean 4
    - 268/15359. A leaf may fail: every GPU has one on the other plane. Source: Qian et al., SIGCOMM
    2024, sections 4 to 6.

    Examples
    --------
    >>> hpn7(segments=15)
    <Topology hpn7(segments=15): 15360 hosts, 2280 switches, 60480 links>
    """
    form = planned("hpn7", segments)
    gpu, host, leaf = (np.arange(form.nodes[kind])[:, None] for kind in ("gpu", "nvswitch", "leaf"))
    segment, rail = gpu // (_HPN_HOSTS * _GPUS), gpu % _GPUS
    own = (segment * _GPUS + rail) * _HPN_PLANES + np.arange(_HPN_PLANES)
    above = leaf % _HPN_PLANES * _HPN_AGGREGATION + np.arange(_HPN_AGGREGATION)
    t = wired(
        form,
        _HPN_NVLINK.cables(host.size),
        ("gpu", gpu, "leaf", own),
        ("leaf", leaf, "aggregation", above),
        pod={"gpu": segment, "nvswitch": host // _HPN_HOSTS, "leaf": leaf // (_GPUS * _HPN_PLANES)},
        rail={"gpu": rail, "leaf": leaf // _HPN_PLANES % _GPUS},
        hosts_forward=True,
    )
    card = t.is_kind("gpu")[t.edges].any(axis=1)
    return with_nvlink(replace(t, capacity=np.where(card, 200 * GBIT, t.capacity)), _HPN_NVLINK)


def _meta_roce(pods: int = 8) -> Description:
    racks, trunks = _RACKS * require_int(pods=pods, at_least=1), _SPINES if pods > 1 else 0
    rack = _RACK_SERVERS * _GPUS
    gpus, pod = racks * rack, _RACKS * rack
    nodes = {"gpu": gpus, "nvswitch": gpus // _GPUS, "rack": racks, "cluster": pods * _SPINES}
    degrees = {
        "gpu": 2,
        "nvswitch": _GPUS,
        "rack": rack + _SPINES,
        "cluster": _RACKS + bool(trunks),
    }
    return Description(
        nodes=nodes | ({"aggregation": trunks} if trunks else {}),
        degrees=degrees | ({"aggregation": pods} if trunks else {}),
        links=2 * gpus + racks * _SPINES + pods * trunks,
        diameter=6 if trunks else 4,
        mean_hops=(2 * (rack - 1) + 4 * (pod - rack) + 6 * (gpus - pod)) / (gpus - 1),
        host_connectivity=2,
    )


def _meta_roce_moves(pods: int = 8) -> list[IntArray]:
    layout = "pod rack server gpu, pod rack server, pod rack, pod spine" + ", spine" * (pods > 1)
    return nested(layout, pod=pods, rack=_RACKS, server=_RACK_SERVERS, gpu=_GPUS, spine=_SPINES)


@design(
    closed_form=_meta_roce,
    symmetries=_meta_roce_moves,
    sizes=lambda hosts: [{"pods": pods} for pods in range(1, 9)],
    paper="llama2024herd",
)
def meta_roce(pods: int = 8) -> Topology:
    """Meta's cluster of 24,576 H100s on RoCE: non-blocking pods of 192 racks, 7:1 between pods.

    The 16 GPUs of a rack meet one rack switch (RTSW), which meets the 16 cluster switches (CTSW) of
    its pod. Cluster switch i of every pod meets aggregation switch i (ATSW).

    Parameters
    ----------
    pods : int, optional
        At least 1; one pod has no aggregation switches.

    Returns
    -------
    Topology
        3,072 GPUs per pod rack by rack, an NVSwitch node per 8 GPUs, 192 rack and 16 cluster
        switches per pod, 16 aggregation switches. ``pod`` is the pod.

    Notes
    -----
    Published are pods, racks, GPUs and the ratio 7:1. How many cluster and aggregation switches
    there are is not: 16 is the least that one 400 Gbit/s port of a rack switch per GPU allows, and
    the trunk of a cluster switch to its aggregation switch is one link of 192/7 ports' capacity.
    Source: Llama Team, arXiv 2407.21783, section 3.3.1; Gangidi et al., SIGCOMM 2024.

    Examples
    --------
    >>> meta_roce(pods=1)
    <Topology meta_roce(pods=1): 3072 hosts, 592 switches, 9216 links>
    """
    form = planned("meta_roce", pods)
    gpu, server, rack, spine, *trunks = (np.arange(count) for count in form.nodes.values())
    grouped = {"gpu": gpu, "nvswitch": server, "rack": rack, "cluster": spine}
    t = wired(
        form,
        _META_NVLINK.cables(server.size),
        ("gpu", gpu, "rack", gpu // (_RACK_SERVERS * _GPUS)),
        ("rack", rack[:, None], "cluster", rack[:, None] // _RACKS * _SPINES + np.arange(_SPINES)),
        ("cluster", spine, "aggregation", spine % _SPINES),
        pod={kind: node // (node.size // pods) for kind, node in grouped.items()},
        hosts_forward=True,
    )
    trunk = (t.edges >= t.num_nodes - _SPINES).any(axis=1) & bool(trunks)
    uplink = t.capacity * np.where(trunk, _RACKS / _OVERSUBSCRIPTION, 1)
    return with_nvlink(replace(t, capacity=uplink), _META_NVLINK)


def _superpod(scalable_units: int, nvswitch_detail: bool) -> tuple[int, int, int, NVLink]:
    """Leaves, spines, cores, and the NVLink of a server."""
    require_choice(_UNITS, scalable_units=scalable_units)
    nvlink = NVLink.fifth(_GPUS, 2, detail=require_flag(nvswitch_detail=nvswitch_detail))
    leaves = _GPUS * scalable_units
    return (
        (leaves, leaves // 2, 0, nvlink)
        if scalable_units <= 8
        else (leaves, leaves, leaves // 2, nvlink)
    )
