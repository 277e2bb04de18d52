"""Component classes: what can fail, how often, and what stops with it.

All parts of a class have the same rate (18 classes at four levels in the Llama-3 table), so a job is
evaluated class by class, however many GPUs it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from relparallel._checks import require_choice, require_flag, require_instance, require_int, require_real
from relparallel.hardware import LEVELS, Cluster, ComponentRates
from relparallel.parallel import Placement
from relparallel.training._arguments import require_rate, require_time
from relparallel.training.hit_parts import behind, part_kinds
from relparallel.units import DAY, HOUR

if TYPE_CHECKING:
    import pandas as pd

EFFECTS: Final = ("stop", "degrade", "corrupt")


@dataclass(frozen=True, kw_only=True, slots=True)
class ComponentClass:
    """Parts that fail alike.

    Parameters
    ----------
    name : str
        What fails.
    level : {"gpu", "node", "switch", "rack", "job"}
        What is behind it: one GPU, its node, the nodes of a switch or a rack, or the job.
    rate : float
        Failures per part and second.
    effect : {"stop", "degrade", "corrupt"}
        A stopped rank is missed at once. A degraded part slows the job until it is repaired. A corrupted rank
        spoils every replica at the next gradient sum.
    detection : float
        Time until the job notices [s]; a hang lasts as long as the timeout of its collectives.
    repair : float, optional
        Mean time until the part works again [s]; that of the recovery policy where omitted.
    slowdown : float
        Time of a step beside the usual one while a part is degraded, at least 1; 1 with the other effects.
    parts : int, optional
        How many there are; as many as the cluster has of the level where omitted.
    gpus : tuple of int
        GPUs behind one of them, all others being alike; where empty, as many consecutive ones as are behind
        a part of the level.
    bound : bool
        Whether the slowdown is an upper bound, the job being unknown.

    Examples
    --------
    >>> ComponentClass(name="power supply", level="node", rate=3e-10).effect
    'stop'
    """

    name: str
    level: str
    rate: float
    effect: str = "stop"
    detection: float = 0.0
    repair: float | None = None
    slowdown: float = 1.0
    parts: int | None = None
    gpus: tuple[int, ...] = ()
    bound: bool = False

    def __post_init__(self) -> None:
        require_instance(str, name=self.name)
        require_flag(bound=self.bound)
        if self.parts is not None:
            require_int(parts=self.parts, at_least=1, at_most=10**10)
        for gpu in require_instance(tuple, gpus=self.gpus):
            require_int(gpus=gpu, at_least=0)
        if self.parts is not None and self.local and not self.gpus:
            raise ValueError("gpus must be given with parts that stop something, got ()")
        require_choice(LEVELS, level=self.level)
        require_rate(rate=self.rate)
        require_choice(EFFECTS, effect=self.effect)
        require_instance(float, detection=require_time(detection=self.detection))
        if self.repair is not None:
            require_instance(float, repair=require_time(repair=self.repair))
        require_instance(float, slowdown=require_real(slowdown=self.slowdown, at_least=1, at_most=1e9))
        if self.slowdown > 1 and self.effect != "degrade":
            raise ValueError(f"slowdown must be 1 unless effect is 'degrade', got {self.slowdown!r}")

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
    """Parts of a class that do the same harm when one of them fails.

    Parameters
    ----------
    component : ComponentClass
        What fails.
    parts : int
        How many there are.
    nodes : int
        Nodes that are missing until the part is repaired: those behind it, the whole node of a GPU. None
        where it only slows the job, and where nothing needs repair (the job's own software, corrupt data).
    replicas : int
        Model replicas with a rank behind it.
    ranks : int
        Ranks of those replicas: what stands still if the others go on.
    state_lost : bool
        Whether all copies of some shard of the training state are behind it, so that only a checkpoint
        elsewhere brings them back.

    Examples
    --------
    >>> from relparallel.parallel import Strategy
    >>> placement = Placement(strategy=Strategy(tensor=8, pipeline=16, data=128))
    >>> rack = ComponentClass(name="rack", level="rack", rate=1e-9)
    >>> hall = Cluster(nodes=2048, nodes_per_rack=4)
    >>> model = FailureModel(classes=(rack,), cluster=hall, placement=placement)
    >>> [(d.parts, d.nodes, d.replicas, d.ranks, d.state_lost) for d in model.domains]
    [(512, 4, 4, 512, False)]
    """

    component: ComponentClass
    parts: int
    nodes: int
    replicas: int
    ranks: int
    state_lost: bool

    @property
    def rate(self) -> float:
        """Failures of all these parts per second."""
        return self.parts * self.component.rate


@dataclass(frozen=True, kw_only=True, slots=True)
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

    Examples
    --------
    >>> from relparallel.hardware import llama3_interruptions
    >>> failures = FailureModel.from_rates(llama3_interruptions(), Cluster(nodes=2048))
    >>> round(failures.mtbf / 3600, 4), round(1e3 * 86400 * failures.node_rate, 3)
    (3.0931, 3.165)
    """

    classes: tuple[ComponentClass, ...]
    cluster: Cluster
    placement: Placement | None = None

    def __post_init__(self) -> None:
        require_instance(tuple, classes=self.classes)
        if not self.classes:
            raise ValueError("classes must hold at least one component class, got ()")
        for entry in self.classes:
            require_instance(ComponentClass, classes=entry)
        require_instance(Cluster, cluster=self.cluster)
        for gpu in (max(entry.gpus) for entry in self.classes if entry.gpus):
            require_int(gpus=gpu, at_most=self.cluster.gpus - 1)
        require_instance((Placement, type(None)), placement=self.placement)
        if self.placement is not None:
            self.placement.strategy.for_gpus(self.cluster.gpus)

    @classmethod
    def from_rates(
        cls, rates: ComponentRates, cluster: Cluster, placement: Placement | None = None
    ) -> FailureModel:
        """Carry the failure table of one run over to another cluster.

        Parameters
        ----------
        rates : ComponentRates
            Rates per part; those of the job itself do not grow with the cluster.
        cluster : Cluster
            Where the job runs.
        placement : Placement, optional
            How it runs there.

        Returns
        -------
        FailureModel
            One class per cause; silent data corruption corrupts, everything else stops.
        """
        require_instance(ComponentRates, rates=rates)
        classes = tuple(
            ComponentClass(
                name=row.cause, level=row.level, rate=row.rate,
                effect="corrupt" if row.cause == "Silent data corruption" else "stop",
            )
            for row in rates.causes
        )  # fmt: skip
        return cls(classes=classes, cluster=cluster, placement=placement)

    @property
    def node_rate(self) -> float:
        """Failures per node and second that stop this node and leave the others alive."""
        stopped = (self.class_rate(entry) * self._nodes(entry) for entry in self.classes if entry.local)
        return sum(stopped) / self.cluster.nodes

    @property
    def job_rate(self) -> float:
        """Failures per second that stop or spoil all replicas at once."""
        return sum(self.class_rate(entry) for entry in self.classes if entry.stops and not entry.local)

    @property
    def mtbf(self) -> float:
        """Mean time between interruptions of a job that any failure stops [s]; infinite without failures."""
        total = sum(self.class_rate(entry) for entry in self.classes if entry.stops)
        return 1 / total if total else float("inf")

    @property
    def domains(self) -> tuple[Domain, ...]:
        """What each class hits under the placement: one entry for each class and kind of part.

        Raises a ValueError where the model has no placement. Parts of the job itself, and corrupt data, hit
        every replica. O(GPUs log GPUs) once for each level, then O(classes).
        """
        if self.placement is None:
            raise ValueError("placement must be given for the domains of a FailureModel, got None")
        return tuple(domain for entry in self.classes for domain in self._domains(entry, self.placement))

    def _domains(self, entry: ComponentClass, placement: Placement) -> list[Domain]:
        """Entries of one class."""
        every, each = placement.strategy.data, placement.strategy.model_parallel
        if entry.effect == "corrupt" or entry.level == "job":
            lost = entry.effect == "corrupt"
            return [
                Domain(
                    component=entry,
                    parts=self.parts(entry),
                    nodes=0,
                    replicas=every,
                    ranks=every * each,
                    state_lost=lost,
                )
            ]
        if entry.parts is not None or entry.gpus:
            return [self._listed(entry, placement)]
        return [
            Domain(
                component=entry, parts=kind.parts, nodes=self._nodes(entry) if entry.stops else 0,
                replicas=kind.replicas, ranks=kind.replicas * each,
                state_lost=kind.state_lost and entry.stops,
            )
            for kind in part_kinds(placement, self.cluster, entry.level)
        ]  # fmt: skip

    def _listed(self, entry: ComponentClass, placement: Placement) -> Domain:
        """Parts that are counted, with the GPUs behind one of them."""
        nodes, replicas, lost = behind(placement, entry.gpus, self.cluster.gpus_per_node)
        return Domain(
            component=entry, parts=self.parts(entry), nodes=nodes, replicas=replicas,
            ranks=replicas * placement.strategy.model_parallel, state_lost=lost,
        )  # fmt: skip

    def _nodes(self, entry: ComponentClass) -> int:
        """Nodes behind a part of a class, the whole node of a GPU."""
        each = self.cluster.gpus_per_node
        if entry.gpus:
            return len({gpu // each for gpu in entry.gpus})
        return max(self.cluster.gpus_per_part(entry.level) // each, 1)

    def parts(self, entry: ComponentClass) -> int:
        """Return how many parts a class has.

        Parameters
        ----------
        entry : ComponentClass
            The class.

        Returns
        -------
        int
            Its own number, else that of its level in the cluster.
        """
        require_instance(ComponentClass, entry=entry)
        return self.cluster.parts(entry.level) if entry.parts is None else entry.parts

    def class_rate(self, entry: ComponentClass) -> float:
        """Return the failures per second of all parts of a class together.

        Parameters
        ----------
        entry : ComponentClass
            The class.

        Returns
        -------
        float
            Rate [1/s].
        """
        require_instance(ComponentClass, entry=entry)
        return entry.rate * self.parts(entry)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class: level, effect, parts, interruptions per day, mean hours between them.

        Returns
        -------
        pandas.DataFrame
            In the order of the classes.
        """
        import pandas as pd

        rates = [self.class_rate(entry) for entry in self.classes]
        return pd.DataFrame(
            {
                "class": [entry.name for entry in self.classes],
                "level": [entry.level for entry in self.classes],
                "effect": [entry.effect for entry in self.classes],
                "parts": [self.parts(entry) for entry in self.classes],
                "per day": [rate * DAY for rate in rates],
                "hours between": [1 / (rate * HOUR) if rate else float("inf") for rate in rates],
                "repair": [entry.repair for entry in self.classes],
                "slowdown": [entry.slowdown for entry in self.classes],
                "slowdown is": [
                    "bound" if entry.bound else "computed" if entry.slowdown > 1 else ""
                    for entry in self.classes
                ],
                "nodes": [self._nodes(entry) if entry.local else 0 for entry in self.classes],
            }
        )
