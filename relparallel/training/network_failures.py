"""What the loss of a network part does to a training step: it stops ranks, or it slows all of them.

A lost card, cable, leaf, spine or plane changes the bandwidth of exactly those collectives whose
groups cross it; the step waits for the slowest of them. Parts of the same kind that carry the same
are one class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import Result, require_instance, require_int
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.parallel.group_bandwidth import communicating, group_links, groups_of
from relparallel.parallel.step import slowed_step
from relparallel.topology import Topology
from relparallel.training._arguments import require_rate
from relparallel.training.failures import ComponentClass, behind
from relparallel.training.network_parts import (
    NetworkPart,
    Part,
    classes_of,
    cut_off,
    left_without,
    parts_of,
)
from relparallel.workload import Transformer

if TYPE_CHECKING:
    from relparallel.parallel.flows import PairFlows, Wiring
    from relparallel.parallel.round_plans import RoundPlan

Ints = NDArray[np.int64]
_NOISE: Final = 1e-12  # of a bandwidth: rounding, not a loss


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkImpact(Result):
    """What each kind of network part does to a job, and the seconds of a step while all works."""

    parts: tuple[NetworkPart, ...]
    step: float = 1.0

    def to_frame(self) -> pd.DataFrame:
        """Return one row per kind of part; GPUs cut off, slowest degree and bandwidth it keeps."""
        rows = [
            (p.name, p.count, p.effect, len(p.stopped), p.slowdown, p.slowest, p.left)
            for p in self.parts
        ]
        columns = [
            "part",
            "count",
            "effect",
            "GPUs cut off",
            "slowdown",
            "slowest groups",
            "bandwidth left",
        ]
        return pd.DataFrame(rows, columns=columns)

    def component_classes(
        self, rates: Mapping[str, float], cluster: Cluster
    ) -> tuple[ComponentClass, ...]:
        """Return the classes that `failure_model` takes, one per kind with a rate and an effect.

        Rates are per part and second, by name; parts that are not named never fail. A class has as
        many parts as the network, and the GPUs that one of them cuts off; its level, which decides
        what checkpoints survive, is "gpu" or "node" where no more is cut off, else "switch".
        """
        known = {part.name for part in self.parts}
        for name, rate in require_instance(Mapping, rates=rates).items():
            if name not in known:
                raise ValueError(f"rates must name parts among {sorted(known)}, got {name!r}")
            require_rate(rates=rate)
        require_instance(Cluster, cluster=cluster)
        return tuple(
            ComponentClass(
                name=part.name,
                level=part.level(cluster.gpus_per_node),
                rate=float(rates[part.name]),
                effect=part.effect,
                slowdown=part.slowdown,
                parts=part.count,
                gpus=part.stopped,
            )
            for part in self.parts
            if part.name in rates and part.effect != "none"
        )


def network_impact(
    model: Transformer,
    placement: Placement,
    cluster: Cluster,
    global_batch: int,
    network: Topology,
    *,
    software: str | None = None,
    samples: int | None = 2,
) -> NetworkImpact:
    """Find out what the loss of every part of a network does to a job.

    Parameters
    ----------
    model, global_batch : Transformer, int
        What is trained, and sequences of a step.
    placement : Placement
        Strategy, and which host of the network, being a GPU, runs which rank.
    cluster, software : Cluster, str or None
        Accelerator, links and calibration of `step_time`.
    network : Topology
        How the GPUs, or nodes with as many GPUs each, are wired.
    samples : int, optional
        Parts of a class that are evaluated; all where they differ. None: all parts of the network.

    Returns
    -------
    NetworkImpact
        Kinds of parts: switches, cables by what they join (one of parallel cables is lost, and each
        counts), cards, groups of shared risk.

    Notes
    -----
    Classes are parts of one kind that colour refinement of cables, loads and groups does not tell
    apart. The slowdown is the time with the least bandwidth that a group of each degree has left
    (`group_links`) over the time with what it had. Traffic takes shortest paths only: a card with
    one of two ports left keeps all its own. O(cables) and O(cables near the ranks whose paths cross
    it) for each part evaluated.

    References
    ----------
    Qian et al., "Alibaba HPN", SIGCOMM 2024, section 4.2: what a lost link or ToR does.

    Examples
    --------
    >>> from relparallel.hardware import cluster
    >>> from relparallel.parallel import Strategy
    >>> from relparallel.training import redundant_fabric
    >>> gpt = Transformer(layers=24, hidden=2048, heads=16, vocabulary=51200, sequence=2048)
    >>> place, machine = Placement(strategy=Strategy(tensor=8, data=4)), cluster("a100-80gb-selene", gpus=32)
    >>> fabric = redundant_fabric(servers=4, planes=2, servers_per_leaf=2)
    >>> found = network_impact(gpt, place, machine, 64, fabric).to_frame().set_index("part")
    >>> found.loc["leaf", "effect"], float(found.loc["leaf", "bandwidth left"])
    ('degrade', 0.5)
    """
    require_instance(Placement, placement=placement)
    require_instance(Cluster, cluster=cluster)
    require_instance(Topology, network=network)
    if samples is not None:
        require_int(samples=samples, at_least=1)
    time = step_times(model, placement.strategy, cluster, global_batch, software)
    return WiredJob.of(placement, cluster, network, time).impact(samples)


def network_bounds(placement: Placement, cluster: Cluster, network: Topology) -> NetworkImpact:
    """`network_impact` at worst: 1/(least bandwidth share left), as if steps only communicated."""
    return WiredJob.of(placement, cluster, network, slowest_of()).impact()


def slowest_of() -> Callable[[dict[str, float]], float]:
    """Time of the slowest degree over that at the first call, by the bandwidth of each."""
    usual: dict[str, float] = {}

    def time(has: dict[str, float]) -> float:
        finite = {degree: found for degree, found in has.items() if np.isfinite(found)}
        return max(
            (usual.setdefault(degree, found) / found for degree, found in finite.items()),
            default=1.0,
        )

    return time


def plan_impact(plan: RoundPlan, gpus: int) -> NetworkImpact:
    """What the loss of every part of a network does to a step that sums by a plan of rounds.

    Ranks below ``gpus`` are GPUs by number; where a part cuts off none of them but tears the plan,
    all stop.
    """
    t, found = plan.network, Counter[NetworkPart]()
    own = plan.nodes[:gpus]
    for part in parts_of(t):
        hosts, cables = part.left(t)
        living = np.ones(t.num_nodes, dtype=np.bool_)
        living[list(part.nodes)] = False
        slowdown = plan.slowdown_on(living, cables)
        stopped: tuple[int, ...] = ()
        if np.isinf(slowdown):
            apart = np.flatnonzero(
                np.isin(own, cut_off(t, hosts, cables, np.unique(own[t.endpoint[own]])))
            )
            stopped = tuple(apart.tolist()) or tuple(range(own.size))
        slow = 1.0 if stopped else max(round(slowdown, 12), 1.0)
        kind = NetworkPart(name=part.name, count=1, stopped=stopped, slowdown=slow)
        found[kind] += part.number(t)
    return NetworkImpact(
        parts=tuple(replace(p, count=many) for p, many in found.items()), step=plan.step
    )


def step_times(
    model: Transformer,
    strategy: Strategy,
    cluster: Cluster,
    global_batch: int,
    software: str | None,
) -> Callable[[dict[str, float]], float]:
    """Seconds of a step by the bandwidth of each degree; inside a node that of the cluster."""
    default = Placement(strategy=strategy)
    given = {
        degree: float(group_links(default, cluster, degree, pattern=pattern).bandwidth.min())
        for degree, pattern in communicating(strategy).items()
    }

    @cache
    def seconds(has: tuple[tuple[str, float], ...]) -> float:
        slow = {
            degree: given[degree] / found if np.isfinite(found) else 1.0 for degree, found in has
        }
        return slowed_step(model, strategy, cluster, global_batch, slow, software)

    return lambda has: seconds(tuple(has.items()))


@dataclass(frozen=True, kw_only=True, eq=False)
class WiredJob:
    """A job on its whole network, and times of steps by how much bandwidth is left."""

    placement: Placement
    gpus_per_node: int
    network: Topology
    wiring: Wiring
    share: int  # GPUs of a host
    hosts: Ints
    links: dict[str, PairFlows]
    usual: dict[str, float]
    time: Callable[[dict[str, float]], float]
    step: float

    @classmethod
    def of(
        cls,
        placement: Placement,
        cluster: Cluster,
        network: Topology,
        time: Callable[[dict[str, float]], float],
    ) -> WiredJob:
        """Find the links of every group."""
        from relparallel.parallel.flows import PairFlows, Wiring  # loads a compiler

        strategy = placement.strategy
        share = _gpus_per_host(strategy.gpus, network)
        wiring = Wiring.of(network)
        links = {
            degree: PairFlows.of(
                wiring, network, network.hosts[groups_of(placement, degree) // share], pattern
            )
            for degree, pattern in communicating(strategy).items()
        }
        usual = {degree: found.bandwidth for degree, found in links.items()}
        if not all(usual.values()):
            raise ValueError(f"network must join the groups of the placement, got {network!r}")
        hosts = network.hosts[np.unique(placement.gpu // share)]
        return cls(
            placement=placement,
            gpus_per_node=cluster.gpus_per_node,
            network=network,
            wiring=wiring,
            share=share,
            hosts=hosts,
            links=links,
            usual=usual,
            time=time,
            step=float(time(usual)),
        )

    def impact(self, samples: int | None = 2) -> NetworkImpact:
        """What the loss of every part of the network does."""
        return NetworkImpact(parts=self.kinds(parts_of(self.network), samples), step=self.step)

    def kinds(self, parts: Iterable[Part], samples: int | None) -> tuple[NetworkPart, ...]:
        """Parts with the same name and the same harm together, the worst of each name first.

        So many parts of a class are looked at, all where they differ, or where samples is None.
        """
        found = [
            replace(part, count=sum(one.number(self.network) for one in kind))
            for kind, part in self.classes(parts, samples)
        ]
        groups: dict[tuple[Any, ...], list[NetworkPart]] = {}
        for part in found:
            groups.setdefault(self.harm(part), []).append(part)
        names = list(dict.fromkeys(part.name for part in found))
        merged = [
            replace(same[0], count=sum(part.count for part in same)) for same in groups.values()
        ]
        return tuple(
            sorted(
                merged,
                key=lambda part: (names.index(part.name), -len(part.stopped), -part.slowdown),
            )
        )

    def classes(
        self, parts: Iterable[Part], samples: int | None, *lost: Part
    ) -> Iterator[tuple[list[Part], NetworkPart]]:
        """Parts that are alike, and what the loss of any of them does, also after one is lost."""
        for kind in classes_of(self.network, parts, self.links.values(), samples is None, *lost):
            seen = [self.without(*lost, part) for part in sampled(kind, samples)]
            if len({self.harm(entry) for entry in seen}) == 1:
                yield kind, seen[0]
            else:
                yield from (([part], self.without(*lost, part)) for part in kind)

    def without(self, *parts: Part) -> NetworkPart:
        """What the loss of one part does, or of several at once."""
        name = " + ".join(part.name for part in parts)
        living, cables = left_without(self.network, parts)
        # where all hosts forward, groups that are not torn hold all of them together
        forward = bool(self.links) and bool(self.network.transit[self.hosts].all())
        apart = self.hosts[:0] if forward else cut_off(self.network, living, cables, self.hosts)
        has = dict(self.usual)
        for degree, found in self.links.items() if not apart.size else ():
            bandwidth, torn = found.without(self.wiring, self.network, cables)
            apart = np.union1d(apart, torn)
            if abs(bandwidth - has[degree]) > _NOISE * has[degree]:
                has[degree] = bandwidth
        if forward and apart.size:
            apart = cut_off(self.network, living, cables, self.hosts)
        if apart.size:
            first = np.searchsorted(self.network.hosts, apart)[:, None] * self.share
            gpus = np.sort((first + np.arange(self.share)).ravel())
            return NetworkPart(name=name, count=1, stopped=tuple(gpus.tolist()), left=0.0)
        left = {
            degree: min(has[degree] / self.usual[degree], 1.0)
            for degree in has
            if has[degree] < np.inf
        }
        slowest = min(left, key=left.__getitem__, default="")
        share = left.get(slowest, 1.0)
        slowdown = max(self.time(has) / self.step, 1.0)
        return NetworkPart(
            name=name,
            count=1,
            slowdown=slowdown,
            slowest=slowest if share < 1 else "",
            left=share,
        )

    def harm(self, part: NetworkPart) -> tuple[Any, ...]:
        """What tells two kinds of one name apart."""
        hit = behind(self.placement, part.stopped, self.gpus_per_node) if part.stopped else ()
        same = (len(part.stopped), round(part.slowdown, 9), part.slowest, round(part.left, 9))
        return (part.name, *same, *hit)


def sampled(kind: Sequence[Part], samples: int | None) -> list[Part]:
    """So many parts of a class, evenly from first to last; one where samples is None."""
    chosen = np.linspace(0, len(kind) - 1, min(samples or 1, len(kind))).astype(int)
    return [kind[i] for i in np.unique(chosen)]


def _gpus_per_host(gpus: int, network: Topology) -> int:
    """One where the hosts are GPUs; where they are nodes, as many as each has."""
    share = -(-gpus // network.num_hosts)
    hosts = network.num_hosts
    if gpus % share or (share > 1 and gpus != share * hosts):
        raise ValueError(
            f"network must have a host for each of {gpus} GPUs, or of equal nodes, got {hosts}"
        )
    return share
