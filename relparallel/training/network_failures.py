"""What the loss of a network part does to a training step: it stops ranks, or it slows all of them.

A lost card, cable, leaf, spine or plane changes the bandwidth of exactly those collectives whose groups cross
it; the step waits for the slowest of them. Parts of the same kind that carry the same are one class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from relparallel._checks import require_instance, require_int, require_real
from relparallel.hardware import LEVELS, Cluster
from relparallel.parallel import Placement
from relparallel.parallel.group_links import GroupLinks, group_links, rerouted
from relparallel.parallel.step_time import communicating, slowed_step
from relparallel.topology import Topology
from relparallel.training._arguments import require_rate, require_time
from relparallel.training.failures import ComponentClass
from relparallel.training.network_parts import Part, classes_of, cut_off, parts_of
from relparallel.workload import Transformer

__all__ = ["NetworkImpact", "NetworkPart", "network_impact"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkPart:
    """Network parts of one kind whose loss does the same.

    Parameters
    ----------
    name : str
        Kind of part: "nic" (all ports of a GPU), "gpu-leaf cable", the kind of a switch, a group of shared
        risk.
    count : int
        How many there are.
    stopped : tuple of int
        GPUs of the job that one of them cuts off; none where the job goes on.
    slowdown : float
        Time of a step without the part over the usual one, at least 1; 1 where it stops ranks.
    slowest : str
        Degree whose groups lose most bandwidth; empty where none loses any.
    left : float
        Share of its bandwidth that this degree keeps.

    Raises
    ------
    TypeError, ValueError
        If a field has the wrong type or is out of range.

    Examples
    --------
    >>> NetworkPart(name="leaf", count=16, slowdown=1.5, slowest="data", left=0.5).effect
    'degrade'
    """

    name: str
    count: int
    stopped: tuple[int, ...] = ()
    slowdown: float = 1.0
    slowest: str = ""
    left: float = 1.0

    def __post_init__(self) -> None:
        require_instance(str, name=self.name, slowest=self.slowest)
        require_int(count=self.count, at_least=1, at_most=10**9)
        for gpu in require_instance(tuple, stopped=self.stopped):
            require_int(stopped=gpu, at_least=0)
        require_instance(float, slowdown=require_real(slowdown=self.slowdown, at_least=1, at_most=1e9))
        require_instance(float, left=require_real(left=self.left, at_least=0, at_most=1 + 1e-9))

    @property
    def effect(self) -> str:
        """Whether its loss stops ranks ("stop"), slows the step ("degrade") or does nothing ("none")."""
        return "stop" if self.stopped else "degrade" if self.slowdown > 1 else "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkImpact:
    """What every kind of network part does to one job.

    Parameters
    ----------
    parts : tuple of NetworkPart
        Kinds of parts.
    step : float
        Seconds of a step while everything works.

    Raises
    ------
    TypeError, ValueError
        If a part is no `NetworkPart` or the step is not positive.

    Examples
    --------
    >>> leaf = NetworkPart(name="leaf", count=4, slowdown=2.0, slowest="data", left=0.5)
    >>> NetworkImpact(parts=(leaf,), step=10.0).to_frame()["slowdown"].tolist()
    [2.0]
    """

    parts: tuple[NetworkPart, ...]
    step: float = field(default=1.0)

    def __post_init__(self) -> None:
        for part in require_instance(tuple, parts=self.parts):
            require_instance(NetworkPart, parts=part)
        require_instance(float, step=require_real(step=self.step, above=0, at_most=1e18))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per kind of part.

        Returns
        -------
        pandas.DataFrame
            Part, count, effect, GPUs cut off, slowdown, slowest degree and the bandwidth that it keeps.
        """
        return pd.DataFrame(
            {
                "part": [part.name for part in self.parts],
                "count": [part.count for part in self.parts],
                "effect": [part.effect for part in self.parts],
                "GPUs cut off": [len(part.stopped) for part in self.parts],
                "slowdown": [part.slowdown for part in self.parts],
                "slowest groups": [part.slowest for part in self.parts],
                "bandwidth left": [part.left for part in self.parts],
            }
        )

    def component_classes(
        self, rates: Mapping[str, float], cluster: Cluster, repair: float | None = None
    ) -> tuple[ComponentClass, ...]:
        """Return the classes that `failure_model` takes.

        Parameters
        ----------
        rates : Mapping of str to float
            Failures per part and second, by name of the part; parts that are not named never fail.
        cluster : Cluster
            Whose levels say what stops.
        repair : float, optional
            Mean time until a part works again [s].

        Returns
        -------
        tuple of ComponentClass
            One for each kind with a rate and an effect.

        Raises
        ------
        TypeError, ValueError
            If there is no part of such a name, or a number is negative.

        Notes
        -----
        A part that stops w GPUs is of the lowest level with at least w behind a part; one that slows is of
        the level whose number of parts is nearest. The rate of all parts together is kept:
        ``rate count / parts of the level``.
        """
        known = {part.name for part in self.parts}
        for name, rate in require_instance(Mapping, rates=rates).items():
            if name not in known:
                raise ValueError(f"rates must name parts among {sorted(known)}, got {name!r}")
            require_rate(rates=rate)
        require_instance(Cluster, cluster=cluster)
        if repair is not None:
            require_time(repair=repair)
        return tuple(
            _component(part, float(rates[part.name]), cluster, repair)
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
    software: str = "megatron-2022",
    samples: int | None = 2,
) -> NetworkImpact:
    """Find out what the loss of every part of a network does to a job.

    Parameters
    ----------
    model : Transformer
        What is trained.
    placement : Placement
        Strategy, and which host of the network, being a GPU, runs which rank.
    cluster : Cluster
        Accelerator and links for which the step time is calibrated.
    global_batch : int
        Sequences of a step.
    network : Topology
        How the GPUs are wired.
    software : str
        As `step_time` takes it.
    samples : int, optional
        Parts of a class that are evaluated, first, last and between; all where they differ. None: all parts
        of the network.

    Returns
    -------
    NetworkImpact
        Kinds of parts: switches, cables by what they join, cards, groups of shared risk. Of parallel cables
        one is lost.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, or the groups of the placement are torn apart from the beginning.

    Notes
    -----
    Classes are parts of one kind that colour refinement of cables, loads and groups does not tell apart, with
    fewer rounds where it would find more than 256; members that are looked at and differ split a class. The
    slowdown is the time with the least bandwidth that a group of each degree has left (`group_links`) over
    the time with what it had. Groups that do not cross a part keep their paths, the others are searched anew:
    O(ranks of these x cables) for each part evaluated. Traffic takes shortest paths only, so a card with one
    of two ports left keeps all its own, while the other cards of the server share that of a lost card. A
    loss after which shortest paths happen to be spread better counts as harmless.

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
    job = _Job.of(model, placement, cluster, global_batch, network, software)
    kinds = classes_of(network, parts_of(network), job.links.values(), samples is None)
    found = [entry for kind in kinds for entry in job.kinds(kind, samples)]
    return NetworkImpact(parts=_merged(found), step=job.step)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Job:
    """A job on its whole network, and times of steps by how much bandwidth is left."""

    placement: Placement
    network: Topology
    links: dict[str, GroupLinks]
    usual: dict[str, float]
    time: Any
    step: float

    @classmethod
    def of(
        cls, model: Transformer, placement: Placement, cluster: Cluster, global_batch: int, network: Topology,
        software: str,
    ) -> _Job:  # fmt: skip
        strategy = placement.strategy
        degrees = communicating(strategy).items()
        links = {d: group_links(placement, network, d, pattern=p) for d, p in degrees}
        default = Placement(strategy=strategy)
        given = {d: group_links(default, cluster, d, pattern=p).bandwidth.min() for d, p in degrees}
        usual = {degree: float(found.bandwidth.min()) for degree, found in links.items()}
        if not all(usual.values()):
            raise ValueError(f"network must join the groups of the placement, got {network!r}")
        known: dict[tuple[float, ...], float] = {}

        def time(has: dict[str, float]) -> float:
            key = tuple(has.values())
            if key not in known:
                slow = {degree: float(given[degree] / has[degree]) for degree in has}
                known[key] = slowed_step(model, strategy, cluster, global_batch, slow, software)
            return known[key]

        return cls(
            placement=placement, network=network, links=links, usual=usual, time=time, step=time(usual)
        )

    def kinds(self, kind: list[Part], samples: int | None) -> Iterator[NetworkPart]:
        """What the parts of a class do: one entry where those that are looked at agree, else one for each."""
        chosen = np.unique(np.linspace(0, len(kind) - 1, min(samples or 1, len(kind))).astype(int))
        seen = [self.without(kind[i]) for i in chosen]
        if len({_harm(entry) for entry in seen}) == 1:
            yield _counted(seen[0], len(kind))
        else:
            yield from (self.without(part) for part in kind)

    def without(self, part: Part) -> NetworkPart:
        """What the loss of one part does."""
        living, cables = part.left(self.network)
        ranks = np.sort(self.placement.gpu.ravel())
        lost = cut_off(self.network, living, cables, ranks)
        if lost.size:
            return NetworkPart(name=part.name, count=1, stopped=tuple(lost.tolist()), left=0.0)
        links = {d: rerouted(found, self.network, living, cables) for d, found in self.links.items()}
        torn = [found.groups[~found.joined].ravel() for found in links.values()]
        if (apart := np.unique(np.concatenate([lost, *torn]))).size:
            return NetworkPart(name=part.name, count=1, stopped=tuple(apart.tolist()), left=0.0)
        has = {degree: float(found.bandwidth.min()) for degree, found in links.items()}
        left = {degree: min(has[degree] / self.usual[degree], 1.0) for degree in has}
        slowest = min(left, key=left.__getitem__, default="")
        share = left.get(slowest, 1.0)
        slowdown = max(self.time(has) / self.step, 1.0)
        return NetworkPart(
            name=part.name, count=1, slowdown=slowdown, slowest=slowest if share < 1 else "", left=share
        )


def _harm(part: NetworkPart) -> tuple[Any, ...]:
    """What tells two kinds of one name apart."""
    return (part.name, len(part.stopped), round(part.slowdown, 9), part.slowest, round(part.left, 9))


def _counted(part: NetworkPart, count: int) -> NetworkPart:
    return NetworkPart(
        name=part.name, count=count, stopped=part.stopped, slowdown=part.slowdown, slowest=part.slowest,
        left=part.left,
    )  # fmt: skip


def _merged(found: list[NetworkPart]) -> tuple[NetworkPart, ...]:
    """Kinds with the same name and the same harm together, the worst of each name first."""
    alike: dict[tuple[Any, ...], list[NetworkPart]] = {}
    for part in found:
        alike.setdefault(_harm(part), []).append(part)
    names = list(dict.fromkeys(part.name for part in found))
    merged = [_counted(same[0], sum(part.count for part in same)) for same in alike.values()]
    return tuple(
        sorted(merged, key=lambda part: (names.index(part.name), -len(part.stopped), -part.slowdown))
    )


def _component(part: NetworkPart, rate: float, cluster: Cluster, repair: float | None) -> ComponentClass:
    """The class of a kind of part; the level keeps what it stops, or how many there are."""
    if part.effect == "stop":
        level = next(name for name in LEVELS if cluster.gpus_per_part(name) >= len(part.stopped))
    else:
        level = min(LEVELS, key=lambda name: abs(np.log(cluster.parts(name) / part.count)))
    return ComponentClass(
        name=part.name, level=level, rate=rate * part.count / cluster.parts(level), effect=part.effect,
        repair=repair, slowdown=part.slowdown,
    )  # fmt: skip
