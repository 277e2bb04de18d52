"""Which parts of a network a job needs: whose loss stops it, slows it, or costs nothing.

`network_impact` says what the loss of each kind of part does; here every part has its answer, and
so has every pair of parts that are lost together. A pair is looked at once for all that are like
it: parts of one class come first alike, and the second ones by how they look from the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd

from relparallel._checks import Result, require_choice, require_flag, require_instance, require_int
from relparallel._notices import told
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.topology import Topology
from relparallel.training.network_failures import (
    NetworkImpact,
    WiredJob,
    sampled,
    slowest_of,
    step_times,
)
from relparallel.training.network_parts import NetworkPart, Part, parts_of
from relparallel.workload import Transformer

_WORST: Final = ("none", "degrade", "stop")


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss(Result):
    """What losing one of several parts, or pairs of parts, that are alike does to a job."""

    effect: NetworkPart  # its count is that of the parts, or pairs
    alone: str  # worst effect of one part alone: "stop", "degrade" or "none"
    parts: tuple[tuple[Part, ...], ...]  # all of them; of pairs one example


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Needed(Result):
    """What the loss of every part of a network, or of every pair of parts, does to a job.

    ``step`` are the seconds of a step while all works; None where no model is given, and slowdowns
    are upper bounds.
    """

    network: Topology
    losses: tuple[Loss, ...]
    lost: int
    step: float | None

    def count(self, effect: str) -> int:
        """Parts, or pairs, that stop the job ("stop"), slow it ("degrade") or do neither ("none").

        Examples
        --------
        >>> from relparallel.topology import torus
        >>> needed(Strategy(tensor=4, data=2), torus((4, 4))).count("none")
        20
        """
        return _count(self.losses, require_choice(_WORST, effect=effect))

    def to_frame(self, each: bool = False) -> pd.DataFrame:
        """Return one row per kind of loss as `network_impact`, worst first, or one for each part.

        With ``each``: nodes of a part by label, rows of its joined pairs in ``network.edges``, and
        how many parts, or pairs of parts, are like it there: parallel cables, or pairs of a class.
        """
        require_flag(each=each)
        kept = [loss.effect for loss in self.losses]
        frame = NetworkImpact(parts=tuple(kept)).to_frame()
        if self.lost > 1:
            frame["alone"] = [loss.alone for loss in self.losses]
        if not each:
            frame["for example"] = [self._named(loss.parts[0]) for loss in self.losses]
            return frame
        rows = [(i, parts) for i, loss in enumerate(self.losses) for parts in loss.parts]
        found = frame.iloc[[i for i, _ in rows]].reset_index(drop=True)
        found.insert(1, "nodes", [self._named(parts) for _, parts in rows])
        found.insert(2, "pairs", [sum((part.pairs for part in parts), ()) for _, parts in rows])
        if self.lost == 1:
            found["count"] = [parts[0].number(self.network) for _, parts in rows]
        return found

    def _named(self, parts: tuple[Part, ...]) -> str:
        """Labels of the nodes that are lost, or joined by what is lost; of many the first few."""
        label, said = self.network.labels, []
        for part in parts:
            joined = [[int(end) for end in self.network.edges[pair]] for pair in part.pairs]
            names = [f"{label[node]}" for node in part.nodes]
            names += ["-".join(f"{label[end]}" for end in pair) for pair in joined]
            said.append(", ".join(names[:4]) + ", ..." * (len(names) > 4))
        return " + ".join(said)

    def _said(self) -> str:
        """How many links and switches, or pairs of parts, do what."""
        if self.lost > 1:
            hidden = _count((loss for loss in self.losses if loss.alone != "stop"), "stop")
            said = self._counted("pairs of parts", list(self.losses))
            return f"{said}; {hidden:,} stop it though neither part does alone"
        kinds = {self.network.kinds[kind] for kind in self.network.node_kind[self.network.switches]}
        links = [loss for loss in self.losses if loss.effect.name.endswith(" cable")]
        switches = [loss for loss in self.losses if loss.effect.name in kinds]
        named = {"links": links, "switches": switches}
        return "; ".join(self._counted(name, losses) for name, losses in named.items() if losses)

    def _counted(self, name: str, losses: list[Loss]) -> str:
        """How many stop the job, slow it and by how much, and do nothing."""
        many = {effect: _count(losses, effect) for effect in _WORST}
        slow = [100 * (loss.effect.slowdown - 1) for loss in losses if loss.effect.slowdown > 1]
        low, high = (f"{float(f'{f(slow, default=0.0):.2g}'):,g}" for f in (min, max))
        at_most = "at most " if self.step is None else ""
        by = f" by {at_most}{high if low == high else f'{low} to {high}'} %" if slow else ""
        return (
            f"of {sum(many.values()):,} {name} {many['stop'] + many['degrade']:,} are needed: "
            f"{many['stop']:,} stop the job, {many['degrade']:,} slow it{by}, "
            f"{many['none']:,} cost nothing"
        )


def _count(losses: Iterable[Loss], effect: str) -> int:
    """Parts, or pairs, with an effect."""
    return sum(loss.effect.count for loss in losses if loss.effect.effect == effect)


@told
def needed(
    strategy: Strategy | Placement,
    network: Topology,
    model: Transformer | None = None,
    cluster: Cluster | None = None,
    global_batch: int | None = None,
    *,
    lost: int = 1,
    software: str | None = None,
    samples: int | None = 2,
) -> Needed:
    """Say of every link, switch and card of a network whether a job needs it.

    Parameters
    ----------
    strategy : Strategy or Placement
        How the job is split; a placement also says which host of the network, being a GPU, runs
        which rank (a strategy: the default order).
    network : Topology
        How the GPUs, or nodes with as many GPUs each, are wired.
    model, cluster, global_batch : Transformer, Cluster, int, optional
        What is trained on what, as in `network_impact`: slowdowns are then those of the step.
        Without them they are bounds, 1/(share of bandwidth left to the groups that lose most).
    lost : int
        Parts that are lost at a time: 1, or 2 for all pairs of parts.
    software : str, optional
        With a model, which software trains it, as in `step_time`.
    samples : int, optional
        Parts of a class that are looked at; all where they differ. None: each for itself.

    Returns
    -------
    Needed
        Parts with the same effect together, each by name: cables, switches, cards (all ports of a
        host), groups of shared risk. Parallel cables count singly.

    Notes
    -----
    A part does what `network_impact` says: one whose traffic finds as fast a way elsewhere costs
    nothing; ranks that no longer reach most others stop the job, though their groups be whole. Of
    pairs, the first part stands for its class; second parts are classed by colour refinement with
    the first one marked. O(classes of pairs) losses are looked at, not O(parts^2): seconds to a
    minute for 512 GPUs. Groups are those of tensor, pipeline, data and context, as
    rings and chains over shortest paths: trees and the all-to-all of experts may need more.

    References
    ----------
    Qian et al., "Alibaba HPN", SIGCOMM 2024, section 4.2: what a lost link or ToR does.

    Examples
    --------
    >>> from relparallel.topology import leaf_spine, torus
    >>> needed(Strategy(tensor=4, data=2), torus((4, 4)))
    Needed(of 32 links 12 are needed: 0 stop the job, 12 slow it by at most 33 %, 20 cost nothing)
    >>> fabric = leaf_spine(leaves=4, spines=2, hosts_per_leaf=4)
    >>> both = needed(Strategy(tensor=4, data=4), fabric, lost=2).to_frame().set_index("part")
    >>> both.loc["spine + spine", ["effect", "alone"]].tolist()
    ['stop', 'degrade']
    """
    require_instance((Strategy, Placement), strategy=strategy)
    require_instance(Topology, network=network)
    require_int(lost=lost, at_least=1, at_most=2)
    if samples is not None:
        require_int(samples=samples, at_least=1)
    place = Placement(strategy=strategy) if isinstance(strategy, Strategy) else strategy
    job = _job(place, network, model, cluster, global_batch, software)
    parts = parts_of(network)
    names = list(dict.fromkeys(part.name for part in parts))
    kinds = sorted(job.classes(parts, samples), key=lambda kind: names.index(kind[1].name))
    losses = list(_singles(job, kinds) if lost == 1 else _pairs(job, kinds, samples))
    names = list(dict.fromkeys(loss.effect.name for loss in losses))
    losses.sort(
        key=lambda loss: (
            names.index(loss.effect.name),
            -len(loss.effect.stopped),
            -loss.effect.slowdown,
        )
    )
    return Needed(
        network=network,
        losses=tuple(losses),
        lost=lost,
        step=None if model is None else job.step,
    )


def _job(
    placement: Placement,
    network: Topology,
    model: Transformer | None,
    cluster: Cluster | None,
    global_batch: int | None,
    software: str | None,
) -> WiredJob:
    """The job on its network, timed by its model, or by its slowest groups."""
    if model is None:
        others = {"cluster": cluster, "global_batch": global_batch, "software": software}
        for name, value in others.items():
            if value is not None:
                raise ValueError(f"{name} must be left out without a model, got {value!r}")
        alone = Cluster(nodes=placement.strategy.gpus, gpus_per_node=1)
        return WiredJob.of(placement, alone, network, slowest_of())
    require_instance(Transformer, model=model)
    home = require_instance(Cluster, cluster=cluster)
    time = step_times(
        model, placement.strategy, home, require_int(global_batch=global_batch), software
    )
    return WiredJob.of(placement, home, network, time)


def _singles(job: WiredJob, kinds: list[tuple[list[Part], NetworkPart]]) -> Iterator[Loss]:
    """Parts whose loss does the same, together."""
    same: dict[tuple[Any, ...], list[tuple[list[Part], NetworkPart]]] = {}
    for kind, found in kinds:
        same.setdefault(job.harm(found), []).append((kind, found))
    for alike in same.values():
        parts = [part for kind, _ in alike for part in kind]
        count = sum(part.number(job.network) for part in parts)
        effect = replace(alike[0][1], count=count)
        yield Loss(effect=effect, alone=effect.effect, parts=tuple((part,) for part in parts))


def _pairs(
    job: WiredJob, kinds: list[tuple[list[Part], NetworkPart]], samples: int | None
) -> Iterator[Loss]:
    """Pairs of parts whose loss together does the same."""
    rank = {part: i for i, (kind, _) in enumerate(kinds) for part in kind}
    total: dict[tuple[Any, ...], int] = {}
    first: dict[tuple[Any, ...], Loss] = {}

    def seen(one: Part) -> dict[tuple[Any, ...], int]:
        """Twice the pairs of one part with those of its class and of later ones, by effect."""
        own = rank[one]
        many: dict[tuple[Any, ...], int] = {}
        later = [part for kind, _ in kinds[own:] for part in kind]
        for alike, found in job.classes(later, samples, one):
            # a cable with itself: with another one of the same bundle
            count = sum(
                (1 + (rank[part] > own)) * (part.number(job.network) - (part == one))
                for part in alike
            )
            if not count:
                continue
            alone = max(kinds[own][1].effect, kinds[rank[alike[0]]][1].effect, key=_WORST.index)
            key = (*job.harm(found), alone)
            many[key] = many.get(key, 0) + count
            first.setdefault(key, Loss(effect=found, alone=alone, parts=((one, alike[0]),)))
        return many

    for kind, _ in kinds:
        counts = [seen(one) for one in sampled(kind, samples)]
        if all(count == counts[0] for count in counts):
            counts = [counts[0]] * len(kind)
        else:
            counts = [seen(one) for one in kind]
        for one, count in zip(kind, counts, strict=True):
            for key, many in count.items():
                total[key] = total.get(key, 0) + many * one.number(job.network)
    for key, loss in first.items():
        yield replace(loss, effect=replace(loss.effect, count=total[key] // 2))
