"""Clusters whose NVLink domains are joined by rails: switches that all GPUs of one position share.

Every GPU has NVLink to its domain and, unless the domain is alone, one network card to a leaf of
its rail. GPUs forward: a message may change rails inside a domain. A network cable has 400 Gbit/s,
an NVLink of the fifth generation 50 GB/s in each direction and no latency is modelled
(``dataclasses.replace`` sets others).

Letters: m rails, u GPUs of a domain on each rail, d domains, P ports per switch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from relparallel._checks import require_flag, require_int
from relparallel.topology._arrays import IntArray
from relparallel.topology.description import Description, design, planned
from relparallel.topology.designs._shared import Cables, nested, wired
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import SharedRisk
from relparallel.units import GB

_TRAY_GPUS: Final = 4  # of a compute tray of NVL72; each has its own rail
_TRAYS: Final = 18
_TRAY_CHIPS: Final = 2  # of a switch tray of NVL72
_PORTS: Final = 144  # of the leaf and spine switches between NVL72 racks


class NVLink(NamedTuple):
    """NVLink of a domain: how many GPUs, over how many chips, how many links of a GPU to each."""

    gpus: int
    chips: int = 1
    links: int = 1
    capacity: float = 18 * 50 * GB  # of one of these links

    @classmethod
    def fifth(cls, gpus: int, chips: int, *, detail: bool) -> NVLink:
        """Fifth generation: 18 links of each GPU, spread over chips, or one bundle to one node."""
        return cls(gpus, chips, 18 // chips, 50 * GB) if detail else cls(gpus)

    def cables(self, domains: int) -> Cables:
        """GPUs and chips that the links join, domain by domain."""
        gpu, chip = (
            np.arange(domains * self.gpus)[:, None],
            np.repeat(np.arange(self.chips), self.links),
        )
        return "gpu", gpu, "nvswitch", gpu // self.gpus * self.chips + chip


class _Rails(NamedTuple):
    """Domains, rails, GPUs of a domain on one rail, and the switches of a rail."""

    domains: int
    rails: int
    each: int
    leaves: int
    spines: int
    parallel: int  # cables of a leaf with a spine

    @property
    def near(self) -> int:
        """Domains on one leaf."""
        return self.domains // self.leaves

    @property
    def gpus(self) -> int:
        return self.domains * self.rails * self.each


def _rail_only(domains: int, gpus_per_domain: int = 8, switch_ports: int = 64) -> Description:
    rails = _rail_only_rule(domains, gpus_per_domain, switch_ports)
    return _described(
        rails, NVLink(gpus_per_domain), 2 if domains > 1 and gpus_per_domain > 1 else 1
    )


def _by_rail(t: Topology) -> IntArray:
    """Stripes: the rail of a cable where there are at most four, else whether it is the first."""
    rail = t.rail[t.edges].max(axis=1)
    return np.where(rail >= 0, rail + 1, 0) if t.rail.max() < 4 else (rail == 0).astype(np.int64)


def _rail_only_sizes(hosts: int) -> list[dict[str, int]]:
    """Switches of 64, 128 or 256 ports, or 8 for few hosts; leaves so many that no port is free."""
    ports = (64, 128, 256) if hosts >= 1000 else (8,)
    return [{"domains": 2**i * p // 2, "switch_ports": p} for p in ports for i in range(1, 9)]


@design(
    closed_form=_rail_only,
    symmetries=lambda domains, gpus_per_domain, switch_ports: _rail_moves(
        _rail_only(domains, gpus_per_domain, switch_ports).nodes, domains, gpus_per_domain
    ),
    stripes=_by_rail,
    grid=lambda domains, gpus_per_domain, switch_ports: (gpus_per_domain,),
    sizes=_rail_only_sizes,
    paper="wang2024railonly",
)
def rail_only(domains: int, gpus_per_domain: int = 8, switch_ports: int = 64) -> Topology:
    """Rail-only network: GPU r of every NVLink domain is on rail r, and no switch joins two rails.

    Parameters
    ----------
    domains : int
        NVLink domains (servers, or racks), at least 1. A rail of more than ``switch_ports`` of them
        has two tiers: ``domains`` is then L P/2 for an even number L of leaves that divides P.
    gpus_per_domain : int, optional
        GPUs of each, at least 1: as many as there are rails. K in the paper.
    switch_ports : int, optional
        Ports per switch: even, at least 2. P above.

    Returns
    -------
    Topology
        GPUs domain by domain, one NVSwitch node per domain, leaves rail by rail, and spines if a
        rail has two tiers. ``rail`` is that of GPUs and switches, ``pod`` the domain of GPUs and
        NVSwitches.

    Notes
    -----
    A GPU reaches another rail over NVLink alone: 4 links where a rail is one switch, 6 where it has
    two tiers. The rails need no core. Source: Wang et al., HotI 2024 (arXiv 2307.12169), section 3.

    Examples
    --------
    >>> rail_only(domains=32, gpus_per_domain=8)
    <Topology rail_only(domains=32, gpus_per_domain=8, switch_ports=64): 256 hosts, 40 switches, 512 links>
    """
    form = planned("rail_only", domains, gpus_per_domain, switch_ports)
    return _built(
        form, _rail_only_rule(domains, gpus_per_domain, switch_ports), NVLink(gpus_per_domain)
    )


def _nvl72(racks: int = 1, nvswitch_detail: bool = False) -> Description:
    rails, nvlink = _nvl72_rule(racks, nvswitch_detail)
    return _described(rails, nvlink, nvlink.chips * nvlink.links + (racks > 1))


@design(
    closed_form=_nvl72,
    symmetries=lambda racks, nvswitch_detail: _rail_moves(
        _nvl72(racks, nvswitch_detail).nodes, racks, _TRAY_GPUS
    ),
    stripes=_by_rail,
    grid=lambda racks, nvswitch_detail: (_TRAYS * _TRAY_GPUS,),
    sizes=lambda hosts: [{"racks": racks} for racks in range(1, 1200)],
    paper="nvidia2025gb200",
)
def nvl72(racks: int = 1, nvswitch_detail: bool = False) -> Topology:
    """NVL72 racks: 72 GPUs in one NVLink domain, and four rails between racks.

    The four GPUs of a compute tray are on rails 0 to 3; a rail is non-blocking, of 144-port
    switches.

    Parameters
    ----------
    racks : int, optional
        At least 1. One rack has no network; more than 8 must be 4 L for an even number L of leaves
        that divides 144.
    nvswitch_detail : bool, optional
        False: one node per rack, with one bundle of 900 GB/s to each GPU. True: the 18 chips of the
        rack, each with one link of 50 GB/s to each GPU; the two chips of a switch tray share its
        risk.

    Returns
    -------
    Topology
        GPUs rack by rack, NVSwitch nodes, leaves and spines of the rails. ``rail`` is that of GPUs
        and switches, ``pod`` the rack of GPUs and NVSwitches.

    Notes
    -----
    72 GPUs x 18 links are 18 chips x 72 ports: 1,296 links of a rack carry 129.6 TB/s in both
    directions. Source: NVIDIA, DGX GB200 SuperPOD reference architecture, 2025 (racks, 8 to a
    unit).

    Examples
    --------
    >>> nvl72(racks=1, nvswitch_detail=True)
    <Topology nvl72(racks=1, nvswitch_detail=True): 72 hosts, 18 switches, 1296 links>
    """
    t = _built(planned("nvl72", racks, nvswitch_detail), *_nvl72_rule(racks, nvswitch_detail))
    if not nvswitch_detail:
        return t
    chips = np.flatnonzero(t.is_kind("nvswitch")).reshape(racks, -1, _TRAY_CHIPS)
    trays = (
        SharedRisk(name=f"rack {rack} switch tray {tray}", nodes=tuple(pair))
        for rack, pairs in enumerate(chips.tolist())
        for tray, pair in enumerate(pairs)
    )
    return replace(t, shared_risk=tuple(trays))


def with_nvlink(t: Topology, nvlink: NVLink) -> Topology:
    """Set the capacity of all links at NVSwitches."""
    at_switch = t.is_kind("nvswitch")[t.edges].any(axis=1)
    return replace(t, capacity=np.where(at_switch, nvlink.capacity, t.capacity))


def _rail_only_rule(domains: int, gpus_per_domain: int, switch_ports: int) -> _Rails:
    require_int(domains=domains, gpus_per_domain=gpus_per_domain, at_least=1)
    if require_int(switch_ports=switch_ports, at_least=2) % 2:
        raise ValueError(f"switch_ports must be even, half of them up, got {switch_ports}")
    return _rails("domains", domains, gpus_per_domain, 1, switch_ports)


def _nvl72_rule(racks: int, nvswitch_detail: bool) -> tuple[_Rails, NVLink]:
    require_int(racks=racks, at_least=1)
    detail = require_flag(nvswitch_detail=nvswitch_detail)
    rails = _rails("racks", racks, _TRAY_GPUS, _TRAYS, _PORTS)
    return rails if racks > 1 else rails._replace(leaves=0), NVLink.fifth(72, 18, detail=detail)


def _rails(name: str, domains: int, rails: int, each: int, ports: int) -> _Rails:
    """One switch to a rail where its ports suffice, else a non-blocking network of two tiers."""
    if domains * each <= ports:
        return _Rails(domains, rails, each, 1, 0, 0)
    leaves, rest = divmod(domains * each, ports // 2)
    if rest or leaves % 2 or ports % leaves:
        raise ValueError(
            f"{name} must fill an even number of leaves that divides {ports}, {ports // 2} GPUs to "
            "a leaf, "
            f"got {domains}, {domains * each / (ports // 2):g} leaves to a rail"
        )
    return _Rails(domains, rails, each, leaves, leaves // 2, ports // leaves)


def _present(counts: dict[str, int]) -> dict[str, int]:
    """Only the kinds that there are."""
    return {kind: count for kind, count in counts.items() if count}


def _built(form: Description, r: _Rails, nvlink: NVLink) -> Topology:
    """Domains, their NVLink, and the switches of all rails."""
    gpu, chip = np.arange(r.gpus), np.arange(form.nodes["nvswitch"])
    leaf, spine = np.arange(r.rails * r.leaves), np.arange(r.rails * r.spines)
    rail = {
        "gpu": gpu % r.rails,
        "leaf": leaf // max(r.leaves, 1),
        "spine": spine // max(r.spines, 1),
    }
    own = rail["gpu"] * r.leaves + (gpu // nvlink.gpus // r.near if r.leaves else 0)
    above = rail["leaf"][:, None] * r.spines + np.repeat(np.arange(r.spines), r.parallel)
    t = wired(
        form,
        nvlink.cables(r.domains),
        ("gpu", gpu, "leaf", own),
        ("leaf", leaf[:, None], "spine", above),
        pod={"gpu": gpu // nvlink.gpus, "nvswitch": chip // nvlink.chips},
        rail=rail,
        hosts_forward=True,
    )
    return with_nvlink(t, nvlink)


def _described(r: _Rails, nvlink: NVLink, paths: int) -> Description:
    leaves, up = r.rails * r.leaves, r.spines * r.parallel
    nodes = {
        "gpu": r.gpus,
        "nvswitch": r.domains * nvlink.chips,
        "leaf": leaves,
        "spine": r.rails * r.spines,
    }
    several, far = r.gpus > 1, r.domains - (r.near if r.leaves else 1)
    near = r.domains - far
    other = r.rails - 1  # rails that are reached over NVLink
    total = 2 * (nvlink.gpus - 1) + r.each * ((near - 1) * (2 + 4 * other) + far * (4 + 6 * other))
    links = nvlink.chips * nvlink.links
    return Description(
        nodes=_present(nodes),
        degrees=_present(
            {
                "gpu": links + (r.leaves > 0),
                "nvswitch": nvlink.gpus * nvlink.links,
                "leaf": r.near * r.each + up if leaves else 0,
                "spine": r.leaves * r.parallel,
            }
        ),
        links=r.gpus * (links + (r.leaves > 0)) + leaves * up,
        diameter=2 * several if r.domains == 1 else 2 + 2 * (far > 0) + 2 * (other > 0),
        mean_hops=total / (r.gpus - 1) if several else None,
        host_connectivity=paths * several,
    )


def _rail_moves(nodes: Mapping[str, int], domains: int, rails: int) -> list[IntArray]:
    """Next leaf of each rail, domain of a leaf, GPU of a domain and rail, rail, NVSwitch, spine."""
    leaves, spines = (nodes.get(kind, 0) // rails for kind in ("leaf", "spine"))
    groups = max(leaves, 1)
    return nested(
        "leaf near each rail, leaf near chip"
        + ", rail leaf" * (leaves > 0)
        + ", rail spine" * (spines > 0),
        leaf=groups,
        near=domains // groups,
        each=nodes["gpu"] // (domains * rails),
        rail=rails,
        chip=nodes["nvswitch"] // domains,
        spine=spines,
    )
