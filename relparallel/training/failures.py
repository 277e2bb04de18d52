"""Component classes: what fails, how often, and what is behind it: nodes, replicas, training state.

All parts of a class have the same rate, and parts with the same harm are counted together, so that
131,072 GPUs are a few domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import (
    choice,
    each,
    flag,
    instance,
    real,
    record,
    require_instance,
    require_int,
    whole,
)
from relparallel.hardware import Cluster, ComponentRates
from relparallel.hardware.machines import LEVELS
from relparallel.parallel import Placement
from relparallel.training._arguments import FASTEST, LONGEST, require_time
from relparallel.training._random_failures import set_inside
from relparallel.training.failure_sources import NodeLives, Replay, SharedEvents, Source
from relparallel.training.spares import loss_probability
from relparallel.units import DAY, HOUR

if TYPE_CHECKING:
    import pandas as pd

EFFECTS: Final = ("stop", "degrade", "corrupt")


@record
class ComponentClass:
    """Parts with the same rate and the same effect.

    Parameters
    ----------
    name : str
        What fails.
    level : {"gpu", "tray", "node", "nvlink", "switch", "rack", "job"}
        What is behind it: one GPU, those of its host (a tray of a node), its node, which also an
        NVLink switch tray stops, the nodes of a switch or a rack, or the job.
    rate : float
        Failures per part and second, as given: of the job itself whatever its size.
    effect : {"stop", "degrade", "corrupt"}
        A stopped rank is missed at once; a degraded part slows the job until it is repaired; a
        corrupted rank spoils every replica at the next gradient sum.
    detection : float
        Time until the job notices [s].
    repair : float, optional
        Mean time until the part works again [s]; that of the recovery policy where omitted.
    slowdown : float
        Step time over the usual one while a part is degraded, at least 1; 1 with the other effects.
    parts : int, optional
        How many there are; as many as the cluster has of the level where omitted.
    gpus : tuple of int
        GPUs behind one of them; where empty, as many consecutive ones as are behind a part of the
        level.
    bound : bool
        Whether the slowdown is an upper bound, the job being unknown.
    spared : bool
        Whether a spare tray of the node stands in at once: the failure stops what it stops, and no
        node is missing (`FailureModel.with_spare_trays`).

    Examples
    --------
    >>> ComponentClass(name="power supply", level="node", rate=3e-10).effect
    'stop'
    """

    name: str = instance(str)
    level: str = choice(LEVELS)
    rate: float = real(at_least=0, at_most=FASTEST)
    effect: str = choice(EFFECTS, default="stop")
    detection: float = real(at_least=0, at_most=LONGEST, default=0.0)
    repair: float | None = real(at_least=0, at_most=LONGEST, default=None)
    slowdown: float = real(at_least=1, at_most=1e9, default=1.0)
    parts: int | None = whole(at_least=1, at_most=10**10, default=None)
    gpus: tuple[int, ...] = each(int, default=())
    bound: bool = flag(default=False)
    spared: bool = flag(default=False)

    def __post_init__(self) -> None:
        require_int(gpus=min(self.gpus, default=0), at_least=0)
        if self.parts is not None and self.local and not self.gpus:
            raise ValueError("gpus must be given with parts that stop something, got ()")
        if self.slowdown > 1 and self.effect != "degrade":
            raise ValueError(
                f"slowdown must be 1 unless effect is 'degrade', got {self.slowdown!r}"
            )

    @property
    def stops(self) -> bool:
        """Whether a failure interrupts anything; a degraded part only slows the job."""
        return self.effect != "degrade"

    @property
    def local(self) -> bool:
        """Whether a part takes down a part of the job only."""
        return self.level != "job" and self.effect == "stop"


@dataclass(frozen=True, kw_only=True, slots=True)
class Domain:
    """Parts of a class that do the same harm when one of them fails."""

    component: ComponentClass
    parts: int
    # missing until the part is repaired; 0 where it slows the job, needs no repair, or is spared
    nodes: int
    replicas: int  # with a rank behind it
    ranks: int  # of those replicas: what stands still if the others go on
    state_lost: bool  # whether all copies of some shard of the training state are behind it
    shared: bool = False  # an event of `SharedEvents`, whichever nodes it takes

    @property
    def rate(self) -> float:
        """Failures of all these parts per second."""
        return self.parts * self.component.rate


@record(slots=False)
class FailureModel:
    """All component classes of a cluster.

    Parameters
    ----------
    classes : tuple of ComponentClass
        At least one.
    cluster : Cluster
        How many parts of each level there are.
    placement : Placement, optional
        Strategy and rank order of the job, which fill the cluster: what its `domains` depend on.
    source : SharedEvents, NodeLives or Replay, optional
        How the failures come that take a single node: in events that several share, by lives of
        their own, or, with all others that stop the job, as in a record. Independent and at
        constant rates where omitted. The rates of the classes hold with each but the last.

    Examples
    --------
    >>> from relparallel.hardware import llama3_interruptions
    >>> failures = FailureModel.from_rates(llama3_interruptions(), Cluster(nodes=2048))
    >>> round(failures.mtbf / 3600, 4), round(1e3 * 86400 * failures.node_rate, 3)
    (3.0931, 3.165)
    """

    classes: tuple[ComponentClass, ...] = each(ComponentClass)
    cluster: Cluster = instance(Cluster)
    placement: Placement | None = instance(Placement, default=None)
    source: Source | None = instance((SharedEvents, NodeLives, Replay), default=None)

    def __post_init__(self) -> None:
        if not self.classes:
            raise ValueError("classes must hold at least one component class, got ()")
        if isinstance(self.source, SharedEvents) and len(self.source.sizes) > self.cluster.nodes:
            raise ValueError(
                f"source must have events of at most {self.cluster.nodes} nodes, those of the job, "
                f"got {len(self.source.sizes)}"
            )
        last = max(max(entry.gpus, default=0) for entry in self.classes)
        require_int(gpus=last, at_most=self.cluster.gpus - 1)
        for entry in self.classes:
            self.parts(entry)  # refuses those that the cluster has none of
        if self.placement is not None:
            self.placement.strategy.for_gpus(self.cluster.gpus)

    @classmethod
    def from_rates(
        cls, rates: ComponentRates, cluster: Cluster, placement: Placement | None = None
    ) -> FailureModel:
        """Carry the failure table of one run over to another cluster, one class per cause.

        Silent data corruption corrupts, everything else stops. Failures per GPU are those of the
        run (`ComponentRates.carried`), so that a job fails as a whole in proportion to its GPUs.
        """
        require_instance(ComponentRates, rates=rates)
        require_instance(Cluster, cluster=cluster)
        carried = [rates.carried(row, cluster) for row in rates.causes]
        classes = tuple(
            ComponentClass(
                name=row.cause,
                level=level,
                rate=rate,
                effect="corrupt" if row.cause == "Silent data corruption" else "stop",
            )
            for row, (level, rate) in zip(rates.causes, carried, strict=True)
        )
        return cls(classes=classes, cluster=cluster, placement=placement)

    def with_spare_trays(self, repair: float) -> FailureModel:
        """Tell failures for which a spare tray of the node stands in from those that take the node.

        Parameters
        ----------
        repair : float
            Mean time until a failed tray works again, where its class does not say [s].

        Returns
        -------
        FailureModel
            Each class of GPUs and trays as two: of a node whose trays fail at rate L and are
            repaired in the mean time r, the share B takes the node, Erlang's B of ``spare_trays``
            servers and the load L r; the first of all its trays back, after r / (spare_trays + 1),
            brings it back. The others are ``spared``. Itself without spare trays, and where they
            are told apart already.

        Notes
        -----
        Trays under repair in a node are a birth-death chain, in the last state of which the node is
        missing and none of its trays can fail: exact where the other nodes work on, for exponential
        lives and any repairs. A job that waits waits less than this gives, since trays come back
        meanwhile and in spare nodes: at loads up to 0.1 at most 0.5 % less without spare nodes; a
        quarter to a half less with one or two, where it waits less than 1e-4 of the time. Failures
        that are spared count as those of the job do, however many nodes are missing.

        References
        ----------
        Erlang 1917; Sevastyanov, Theory Probab. Appl. 2, 1957.

        Examples
        --------
        >>> from relparallel.hardware import cluster, llama3_interruptions
        >>> from dataclasses import replace
        >>> racks = replace(cluster("gb200-186gb-nvl72", gpus=4096), spare_trays=2)
        >>> model = FailureModel.from_rates(llama3_interruptions(), racks)
        >>> round(model.with_spare_trays(7 * 86400.0).node_rate / model.node_rate, 4)
        0.1098
        """
        mean, spares = float(require_time(repair=repair)), self.cluster.spare_trays
        pool = [entry for entry in self.classes if entry.local and entry.level in ("gpu", "tray")]
        rates = [self.class_rate(entry) / self.cluster.nodes for entry in pool]
        if not spares or not any(rates) or any(entry.spared for entry in self.classes):
            return self
        times = [mean if entry.repair is None else entry.repair for entry in pool]
        load = sum(rate * time for rate, time in zip(rates, times, strict=True))
        taken, back = float(loss_probability(spares, load)), load / sum(rates) / (spares + 1)
        classes = list(self.classes)
        for entry in pool:
            place = classes.index(entry)
            classes[place : place + 1] = [
                replace(entry, rate=entry.rate * (1 - taken), spared=True),
                replace(entry, rate=entry.rate * taken, repair=back),
            ]
        return replace(self, classes=tuple(classes))

    @property
    def node_rate(self) -> float:
        """Failures per node and second that stop it or a tray of it, and leave the others alive."""
        stopped = (
            self.class_rate(entry) * self._nodes(entry) for entry in self.classes if entry.local
        )
        return sum(stopped) / self.cluster.nodes

    @property
    def job_rate(self) -> float:
        """Failures per second that stop or spoil all replicas at once."""
        return sum(
            self.class_rate(entry) for entry in self.classes if entry.stops and not entry.local
        )

    @property
    def mtbf(self) -> float:
        """Mean time between interruptions of a job any failure stops [s]; infinite without any."""
        total = sum(
            self.class_rate(entry) / (self.shared.mean_size if self._shares(entry) else 1)
            for entry in self.classes
            if entry.stops
        )
        return 1 / total if total else float("inf")

    @property
    def shared(self) -> SharedEvents:
        """How many nodes fail together; one where nothing else is said."""
        return self.source if isinstance(self.source, SharedEvents) else _SINGLE

    def _shares(self, entry: ComponentClass) -> bool:
        """Whether failures of a class come in events that nodes share."""
        return self.shared is not _SINGLE and entry.local and self._nodes(entry) == 1

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """What each class hits under the placement: one entry for each class and kind of part.

        Parts of the job itself, and corrupt data, hit every replica; nodes of shared events stand
        anywhere, or in a row. O(GPUs log GPUs) once for each level, then O(classes).
        """
        if self.placement is None:
            raise ValueError("placement must be given for the domains of a FailureModel, got None")
        ranks = self.placement.strategy.model_parallel
        return tuple(
            Domain(
                component=component,
                parts=parts,
                nodes=nodes,
                replicas=replicas,
                ranks=replicas * ranks,
                state_lost=lost,
                shared=self._shares(entry),
            )
            for entry in self.classes
            for component, parts, nodes, replicas, lost in self._harms(entry, self.placement)
        )

    def _harms(
        self, entry: ComponentClass, placement: Placement
    ) -> list[tuple[ComponentClass, int, int, int, bool]]:
        """What `_kinds` says, with the rate of a part, and events of several nodes."""
        if not self._shares(entry):
            return [(entry, *kind) for kind in self._kinds(entry, placement)]
        parts, found = self.parts(entry), []
        for nodes, share in self.shared.rates(1.0).items():
            component = replace(entry, rate=entry.rate * share)
            if nodes == 1:
                found += [(component, *kind) for kind in self._kinds(entry, placement)]
                continue
            for chance, hit, lost in self._hit(nodes, placement):
                part = replace(component, rate=component.rate * chance)
                found.append((part, parts, nodes, hit, lost))
        return found

    def _hit(self, nodes: int, placement: Placement) -> list[tuple[float, int, bool]]:
        """Chance, replicas and lost state of what an event of several nodes can hit."""
        width, size = nodes * self.cluster.gpus_per_node, self.cluster.gpus_per_node
        if self.shared.neighbours:
            kinds = _part_kinds(placement, width, self.cluster.gpus // width)
            total = sum(count for count, _, _ in kinds)
            return [(count / total, hit, lost) for count, hit, lost in kinds]
        single = _part_kinds(placement, size, self.cluster.nodes)
        each, alone = max(hit for _, hit, _ in single), any(lost for _, _, lost in single)
        lost = 1.0 if alone else set_inside(self.cluster.nodes, copy_nodes(placement, size), nodes)
        hit = min(nodes * each, placement.strategy.data)
        return [(chance, hit, it) for chance, it in ((lost, True), (1 - lost, False)) if chance]

    def _kinds(
        self, entry: ComponentClass, placement: Placement
    ) -> list[tuple[int, int, int, bool]]:
        """Parts, nodes, replicas and lost state of every kind of part of a class."""
        if entry.effect == "corrupt" or entry.level == "job":
            return [(self.parts(entry), 0, placement.strategy.data, entry.effect == "corrupt")]
        if entry.parts is not None or entry.gpus:
            nodes, replicas, lost = behind(placement, entry.gpus, self.cluster.gpus_per_node)
            return [(self.parts(entry), 0 if entry.spared else nodes, replicas, lost)]
        nodes = self._nodes(entry) if entry.stops else 0
        width = self.cluster.gpus_per_part(entry.level)
        places = self.cluster.gpus // width
        alike = self.cluster.parts(entry.level) // places  # NVLink switch trays of one node
        return [
            (count * alike, nodes, replicas, lost and entry.stops)
            for count, replicas, lost in _part_kinds(placement, width, places)
        ]

    def _nodes(self, entry: ComponentClass) -> int:
        """Nodes behind a part of a class, the whole node of a GPU."""
        size = self.cluster.gpus_per_node
        if entry.spared:
            return 0
        if entry.gpus:
            return len({gpu // size for gpu in entry.gpus})
        return max(self.cluster.gpus_per_part(entry.level) // size, 1)

    def parts(self, entry: ComponentClass) -> int:
        """Return how many parts a class has: its own number, else its level's in the cluster."""
        require_instance(ComponentClass, entry=entry)
        return self.cluster.parts(entry.level) if entry.parts is None else entry.parts

    def class_rate(self, entry: ComponentClass) -> float:
        """Return the failures per second of all parts of a class together."""
        return self.parts(entry) * entry.rate

    def to_frame(self) -> pd.DataFrame:
        """Rows by class: level, effect, parts, interruptions per day, mean hours between them."""
        import pandas as pd

        return pd.DataFrame([self._row(entry) for entry in self.classes])

    def _row(self, entry: ComponentClass) -> dict[str, object]:
        """One class of the table."""
        rate = self.class_rate(entry)
        return {
            "class": entry.name,
            "level": entry.level,
            "effect": entry.effect,
            "parts": self.parts(entry),
            "per day": rate * DAY,
            "hours between": 1 / (rate * HOUR) if rate else float("inf"),
            "repair": entry.repair,
            "slowdown": entry.slowdown,
            "slowdown is": "bound" if entry.bound else "computed" if entry.slowdown > 1 else "",
            "nodes": self._nodes(entry) if entry.local else 0,
        }


_SINGLE: Final = SharedEvents(sizes=(1.0,))


def copy_nodes(placement: Placement, gpus_per_node: int) -> int:
    """Fewest nodes that hold all copies of some shard of the state."""
    held = np.sort(_copies(placement) // gpus_per_node, axis=1)
    return int(1 + (np.diff(held, axis=1) > 0).sum(axis=1).min())


@lru_cache(maxsize=256)
def _part_kinds(placement: Placement, width: int, parts: int) -> tuple[tuple[int, int, bool], ...]:
    """Parts, replicas and lost state of each kind of part with so many GPUs; O(GPUs log GPUs)."""
    replicas = groups_per_part(placement.replicas, width)
    lost = np.zeros(parts + 1, dtype=np.bool_)  # the last of fewer GPUs, if any, is left out
    lost[state_copies_lost(placement, width)] = True
    lost = lost[:parts]
    counts = np.bincount(2 * replicas + lost)
    return tuple(
        (int(counts[kind]), int(kind) // 2, bool(kind % 2)) for kind in np.flatnonzero(counts)
    )


def groups_per_part(groups: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Groups, one per row, with a GPU among those of each part, of so many consecutive GPUs."""
    label = np.empty(groups.size, dtype=np.int32)
    label[groups] = np.arange(len(groups), dtype=np.int32)[:, None]
    behind = np.sort(label[: label.size // width * width].reshape(-1, width), axis=1)
    return np.asarray(1 + (behind[:, 1:] != behind[:, :-1]).sum(axis=1))


def state_copies_lost(placement: Placement, width: int) -> NDArray[np.int64]:
    """Parts of so many consecutive GPUs that stand before every copy of some shard of the state."""
    part = _copies(placement) // width
    alone = part[:, 0][(part == part[:, :1]).all(axis=1)]
    return np.flatnonzero(np.bincount(alone.ravel()))


def behind(placement: Placement, gpus: Sequence[int], gpus_per_node: int) -> tuple[int, int, bool]:
    """Nodes and replicas with a rank among these GPUs, and whether all copies of a shard are."""
    hit = np.zeros(placement.strategy.gpus, dtype=np.bool_)
    hit[list(gpus)] = True
    nodes = int(hit.reshape(-1, gpus_per_node).any(axis=1).sum())
    lost = hit[_copies(placement)].all(axis=1).any()
    return nodes, int(hit[placement.replicas].any(axis=1).sum()), bool(lost)


def _copies(placement: Placement) -> NDArray[np.int64]:
    """GPUs with a copy of each shard of the state, [groups, copies, shards]."""
    strategy = placement.strategy
    shards = strategy.shard_group if strategy.zero_stage else 1
    return placement.data_groups.reshape(-1, strategy.data // shards, shards)
