"""Checkpoints to go back to: levels that survive different failures, how often each is written.

The levels are ordered from the cheapest to the last, which survives everything. After every
``interval`` of work a checkpoint is written; every so many of one level, it is one of the next
level instead, which serves as a copy of all lower levels too.

A failure goes back to the newest durable checkpoint of the first level that is still there, and
reads that. A checkpoint of a level is durable ``delay`` after its standstill; what is still on its
way when a failure strikes arrives before the job goes on, if a level below brought the job back to
it. Failures strike at any time: while the job computes, stands still, notices and restarts. One
that strikes during a restart starts it again, from the level being read or a higher one.
"""

from collections.abc import Mapping
from dataclasses import field

from relparallel._checks import (
    choice,
    each,
    instance,
    real,
    record,
    require_choice,
    require_instance,
    require_int,
    require_probability,
)
from relparallel.hardware.machines import LEVELS
from relparallel.training._arguments import FASTEST, LONGEST, SHORTEST


@record
class Cause:
    """Failures that send the job back to a checkpoint, after exponential times.

    Parameters
    ----------
    level : {"gpu", "tray", "node", "nvlink", "switch", "rack", "job"}
        What fails; it decides which checkpoints survive.
    rate : float
        Failures of the job by this cause per second.
    detection, restart : float
        Time until the job notices; fixed part of a restart, besides reading the checkpoint [s].

    Examples
    --------
    >>> Cause(level="node", rate=1 / 11132, detection=30.0, restart=300.0).level
    'node'
    """

    level: str = choice(LEVELS)
    rate: float = real(at_least=0, at_most=FASTEST)
    detection: float = real(at_least=0, at_most=LONGEST, default=0.0)
    restart: float = real(at_least=0, at_most=LONGEST, default=0.0)


@record
class CheckpointLevel:
    """One kind of checkpoint.

    Parameters
    ----------
    name : str
        Where it lies.
    cost : float
        Time the job stands still to write it [s].
    restart : float
        Time to read it and go on [s].
    survives : mapping of str to float
        Probability that it is still there after a failure, by the level of the failure; 1 where not
        named, but that of its node for a tray and an NVLink switch tray.
    delay : float
        Time from the end of the standstill until it is durable [s].

    References
    ----------
    Levels: Moody et al., "Design, Modeling, and Evaluation of a Scalable Multi-level Checkpointing
    System", SC 2010.

    Examples
    --------
    >>> CheckpointLevel(name="memory", cost=1.0, restart=60.0, survives={"rack": 0.0}).survival("rack")
    0.0
    """

    name: str = instance(str)
    cost: float = real(at_least=0, at_most=LONGEST)
    restart: float = real(at_least=0, at_most=LONGEST)
    survives: Mapping[str, float] = field(default_factory=dict)
    delay: float = real(at_least=0, at_most=LONGEST, default=0.0)

    def __post_init__(self) -> None:
        for level, probability in require_instance(Mapping, survives=self.survives).items():
            require_choice(LEVELS, survives=level)
            require_probability(survives=probability)

    def survival(self, level: str) -> float:
        """Return the probability that a checkpoint outlives a failure at that level."""
        whole = self.survives.get("node", 1.0) if level in ("tray", "nvlink") else 1.0
        return float(self.survives.get(require_choice(LEVELS, level=level), whole))


@record
class Checkpointing:
    """Levels of checkpoints, and how often each is written.

    Parameters
    ----------
    levels : tuple of CheckpointLevel
        Cheapest first; the last survives every failure.
    interval : float, optional
        Work between two checkpoints of the first level [s]; the optimum where omitted.
    every : tuple of int, optional
        How many checkpoints of a level there are for one of the next, itself counted; one number
        less than there are levels; the optimum where omitted.
    unseen : float, optional
        Interval where no failure goes back to a checkpoint [s], against those that nobody has seen;
        nothing is written then where omitted.

    References
    ----------
    Moody et al., SC 2010. Di et al., "Optimization of Multi-level Checkpoint Model", IPDPS 2014.

    Examples
    --------
    >>> memory = CheckpointLevel(name="memory", cost=1.0, restart=60.0, survives={"rack": 0.0})
    >>> storage = CheckpointLevel(name="storage", cost=60.0, restart=600.0)
    >>> Checkpointing(levels=(memory, storage), interval=300.0, every=(20,)).every
    (20,)
    """

    levels: tuple[CheckpointLevel, ...] = each(CheckpointLevel)
    interval: float | None = real(at_least=SHORTEST, at_most=LONGEST, default=None)
    every: tuple[int, ...] | None = instance(tuple, default=None)
    unseen: float | None = real(at_least=SHORTEST, at_most=LONGEST, default=None)

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError("levels must hold at least one level of checkpoints, got ()")
        if any(self.levels[-1].survival(level) < 1 for level in LEVELS):
            raise ValueError(
                f"levels must end with one that survives every failure, got {self.levels[-1]!r}"
            )
        if self.every is not None:
            for count in self.every:
                require_int(every=count, at_least=1, at_most=10**9)
            if len(self.every) != len(self.levels) - 1:
                raise ValueError(
                    f"every must hold {len(self.levels) - 1} numbers for {len(self.levels)} "
                    "levels, "
                    f"got {self.every}"
                )
