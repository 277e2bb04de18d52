"""Component classes: what can fail, how often, and what stops with it.

All parts of a class have the same rate (18 classes at four levels in the Llama-3 table), so a job is
evaluated class by class, however many GPUs it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pandas as pd

from relparallel._checks import require_choice, require_instance
from relparallel.hardware import LEVELS, Cluster, ComponentRates
from relparallel.training._arguments import require_rate
from relparallel.units import DAY, HOUR

__all__ = ["EFFECTS", "ComponentClass", "FailureModel"]

EFFECTS: Final = ("stop", "corrupt")


@dataclass(frozen=True, kw_only=True, slots=True)
class ComponentClass:
    """Parts that fail alike.

    Parameters
    ----------
    name : str
        What fails.
    level : {"gpu", "node", "switch", "job"}
        What stops with it: one GPU, its node, the nodes behind a switch, or the job.
    rate : float
        Failures per part and second.
    effect : {"stop", "corrupt"}
        A stopped rank is missed at once. A corrupted one spoils every replica at the next gradient sum.

    Raises
    ------
    TypeError, ValueError
        If a field has the wrong type or is out of range.

    Examples
    --------
    >>> ComponentClass(name="power supply", level="node", rate=3e-10).effect
    'stop'
    """

    name: str
    level: str
    rate: float
    effect: str = "stop"

    def __post_init__(self) -> None:
        require_instance(str, name=self.name)
        require_choice(LEVELS, level=self.level)
        require_rate(rate=self.rate)
        require_choice(EFFECTS, effect=self.effect)

    @property
    def local(self) -> bool:
        """Whether a part takes down a part of the job only."""
        return self.level != "job" and self.effect == "stop"


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureModel:
    """All component classes of a cluster.

    Parameters
    ----------
    classes : tuple of ComponentClass
        At least one.
    cluster : Cluster
        How many parts of each level there are.

    Raises
    ------
    TypeError, ValueError
        If a field has the wrong type or there is no class.

    Examples
    --------
    >>> from relparallel.hardware import llama3_interruptions
    >>> failures = FailureModel.from_rates(llama3_interruptions(), Cluster(nodes=2048))
    >>> round(failures.mtbf / 3600, 4), round(1e3 * 86400 * failures.node_rate, 3)
    (3.0931, 3.165)
    """

    classes: tuple[ComponentClass, ...]
    cluster: Cluster

    def __post_init__(self) -> None:
        require_instance(tuple, classes=self.classes)
        if not self.classes:
            raise ValueError("classes must hold at least one component class, got ()")
        for entry in self.classes:
            require_instance(ComponentClass, classes=entry)
        require_instance(Cluster, cluster=self.cluster)

    @classmethod
    def from_rates(cls, rates: ComponentRates, cluster: Cluster) -> FailureModel:
        """Carry the failure table of one run over to another cluster.

        Parameters
        ----------
        rates : ComponentRates
            Rates per part; those of the job itself do not grow with the cluster.
        cluster : Cluster
            Where the job runs.

        Returns
        -------
        FailureModel
            One class per cause; silent data corruption corrupts, everything else stops.

        Raises
        ------
        TypeError
            If an argument has the wrong type.
        """
        require_instance(ComponentRates, rates=rates)
        classes = tuple(
            ComponentClass(
                name=row.cause, level=row.level, rate=row.rate,
                effect="corrupt" if row.cause == "Silent data corruption" else "stop",
            )
            for row in rates.causes
        )  # fmt: skip
        return cls(classes=classes, cluster=cluster)

    @property
    def node_rate(self) -> float:
        """Failures per node and second that stop this node and leave the others alive."""
        parts = {"gpu": self.cluster.gpus_per_node, "node": 1, "switch": 1}
        return sum(entry.rate * parts[entry.level] for entry in self.classes if entry.local)

    @property
    def job_rate(self) -> float:
        """Failures per second that stop or spoil all replicas at once."""
        return sum(self.class_rate(entry) for entry in self.classes if not entry.local)

    @property
    def mtbf(self) -> float:
        """Mean time between interruptions of a job that any failure stops [s]; infinite without failures."""
        total = sum(self.class_rate(entry) for entry in self.classes)
        return 1 / total if total else float("inf")

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

        Raises
        ------
        TypeError
            If it is no `ComponentClass`.
        """
        require_instance(ComponentClass, entry=entry)
        return entry.rate * self.cluster.parts(entry.level)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class: level, effect, parts, interruptions per day, mean hours between them.

        Returns
        -------
        pandas.DataFrame
            In the order of the classes.
        """
        rates = [self.class_rate(entry) for entry in self.classes]
        return pd.DataFrame(
            {
                "class": [entry.name for entry in self.classes],
                "level": [entry.level for entry in self.classes],
                "effect": [entry.effect for entry in self.classes],
                "parts": [self.cluster.parts(entry.level) for entry in self.classes],
                "per day": [rate * DAY for rate in rates],
                "hours between": [1 / (rate * HOUR) if rate else float("inf") for rate in rates],
            }
        )
