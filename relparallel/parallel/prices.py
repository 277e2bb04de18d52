"""What every strategy of a grid costs: whether it is possible and fits, how long its step takes.

The numbers are those of `memory` and `step_time`, by the same formulas: rules first, then memory,
then time.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import (
    MOST_DEVICES,
    Result,
    require_flag,
    require_instance,
    require_int,
    require_number,
)
from relparallel.hardware import Cluster
from relparallel.parallel.bytes_by_part import peaks
from relparallel.parallel.corrections import Learned, Lessons, require_device
from relparallel.parallel.feasibility import FEASIBLE, REASONS, first_broken, rules_of_rows
from relparallel.parallel.gpu_memory import (
    RESERVE,
    Precision,
    kept_by,
    known_precision,
    storage_of,
)
from relparallel.parallel.grid import StrategyGrid
from relparallel.parallel.group_bandwidth import degrees_of, slowdowns
from relparallel.parallel.machine_parameters import Calibration
from relparallel.parallel.quantities import Machine, Numbers, Sizes, Split, Storage
from relparallel.parallel.step import StepTime, step_of
from relparallel.parallel.step_formula import step_parts, total
from relparallel.parallel.strategy import DEGREES, Strategy
from relparallel.sweep import map_chunks
from relparallel.topology import Topology
from relparallel.workload import Transformer

CHUNK: Final = 2**14  # rows at a time: their parts stay in the cache
_MEMORY: Final = len(REASONS) - 1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Evaluation(Result):
    """Step time [s], memory of the fullest GPU [bytes], place in `REASONS`, of every grid row."""

    grid: StrategyGrid
    time: NDArray[np.float64]
    memory: NDArray[np.float64]
    reason: NDArray[np.int8]

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Rows that keep every rule and fit; bool, shape (n,)."""
        return np.asarray(self.reason == FEASIBLE)

    def counts(self) -> pd.Series:
        """How many rows there are for each reason; they sum to the rows of the grid."""
        found = pd.Series(
            np.bincount(self.reason, minlength=len(REASONS)), index=REASONS, name="rows"
        )
        return found[found > 0].rename_axis("reason")

    def to_frame(self, rows: slice = slice(None)) -> pd.DataFrame:
        """Rows as a table: the strategy, seconds, bytes, and the reason in words."""
        require_instance(slice, rows=rows)
        costs = {"time": self.time[rows], "memory": self.memory[rows]}
        table: pd.DataFrame = self.grid[rows].to_frame()
        return table.assign(**costs, reason=[REASONS[k] for k in self.reason[rows]])

    def _said(self) -> str:
        counts = ", ".join(f"{number:,} {reason}" for reason, number in self.counts().items())
        return f"{len(self.grid):,} strategies: {counts}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pricing:
    """What the cost of a strategy depends on besides the strategy; `pricing` makes it.

    With ``degrees``, rows [k, 4] of tensor, pipeline, data and context degree in lexicographic
    order, the groups of each degree are slower by a factor of their own, ``slow`` [k]. A search
    leaves a share of the memory free, ``memory_margin``.
    """

    model: Transformer
    gpus: int
    node: int
    global_batch: int
    available: float
    sizes: Sizes
    storage: Storage
    machine: Machine
    memory_margin: float = 0.0
    lessons: Lessons | None = None
    degrees: NDArray[np.int64] | None = None
    slow: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def wired(
        self,
        cluster: Cluster,
        network: Cluster | Topology,
        degrees: NDArray[np.int64],
        order: tuple[str, ...] = DEGREES,
    ) -> Pricing:
        """The same on a network with another rank order, for strategies with some degrees, [k, 4]."""
        known = np.unique(degrees, axis=0)
        each = slowdowns(known, cluster, network, order)
        slow = {name: np.array([one.get(name, 1.0) for one in each]) for name in DEGREES}
        return replace(self, degrees=known, slow=slow)

    def split(self, rows: Mapping[str, NDArray[Any]] | NDArray[Any]) -> Split:
        """Rows of a grid, or its columns by name, with the micro-batches of a replica."""
        return Split.of_columns(rows, self.global_batch)

    def peak(self, s: Split) -> NDArray[np.float64]:
        """Memory of the fullest GPU [bytes]."""
        with np.errstate(all="ignore"):
            return np.asarray(peaks(self.sizes, s, self.storage))

    def parts(self, s: Split, slow: Mapping[str, Numbers] | None = None) -> tuple[Numbers, ...]:
        """Parts of the step [s]; groups of a degree may be slower by a further factor.

        Own runs count: what they say multiplies every part.
        """
        rates = self.machine.rates
        # strategies fill the GPUs, so that three degrees say the fourth
        if self.degrees is not None:
            wanted, known = (
                (tensor * (self.gpus + 1) + pipeline) * (self.gpus + 1) + data
                for tensor, pipeline, data in (s[:3], self.degrees.T[:3])
            )
            place = np.searchsorted(known, wanted)
            rates = rates.slowed({name: factor[place] for name, factor in self.slow.items()})
        with np.errstate(all="ignore"):
            parts = step_parts(self.sizes, rates.slowed(slow or {}), s)
        if self.lessons is None:
            return parts
        factor = self.lessons.factors(self.model, self.machine.precision, s)
        return tuple(factor * part for part in parts)

    def time(self, s: Split, slow: Mapping[str, Numbers] | None = None) -> NDArray[np.float64]:
        """Time of the step [s]."""
        return np.asarray(total(self.parts(s, slow)))

    def step(self, strategy: Strategy) -> StepTime:
        """What `step_time` says of one strategy that fits, and own runs."""
        s, machine = Split.of(strategy, self.global_batch), self.machine
        parts = replace(self, lessons=None).parts(s)
        step = step_of(parts, machine, self.model, self.global_batch, self.gpus, s)
        if self.lessons is None:
            return step
        return self.lessons.taught(step, machine.known, self.model, machine.precision, s)


def pricing(
    model: Transformer,
    cluster: Cluster,
    global_batch: int,
    *,
    software: str | None = None,
    precision: str = "bf16",
    calibrated: Calibration | None = None,
    storage: str | Precision | None = None,
    dropout: bool | None = None,
    reserve: float = RESERVE,
    learned: Learned | None = None,
    memory_margin: float = 0.0,
) -> Pricing:
    """All about a model and a cluster that strategies are priced with; arguments of `price_strategies`.

    ``learned`` corrects every step by what own runs say; a search leaves the share ``memory_margin``
    of the memory that tensors can have free, -infinity where all that keeps the rules fits.
    """
    require_instance(Transformer, model=model)
    require_instance((Learned, type(None)), learned=learned)
    lessons = learned.about(require_device(cluster), software) if learned else None
    software = lessons.rules if lessons else software
    machine = Machine.of(model, cluster, software, precision, calibrated)
    require_int(global_batch=global_batch, at_least=1, at_most=MOST_DEVICES)
    room = cluster.accelerator.memory if cluster.accelerator else 0.0
    require_number(reserve=reserve, at_least=0, at_most=room)
    if memory_margin != -np.inf:
        require_number(memory_margin=memory_margin, at_least=0, at_most=0.9)
    kept, flash, masks = kept_by(machine.software, model, precision, dropout=dropout)
    kept = kept if storage is None else known_precision(storage=storage)
    return Pricing(
        model=model,
        gpus=cluster.gpus,
        node=cluster.gpus_per_node,
        global_batch=global_batch,
        available=room - reserve,
        memory_margin=memory_margin,
        sizes=Sizes.of(model),
        storage=storage_of(kept, flash_attention=flash, dropout=masks),
        machine=machine,
        lessons=lessons,
    )


def price_strategies(
    model: Transformer,
    grid: StrategyGrid,
    cluster: Cluster,
    global_batch: int,
    *,
    software: str | None = None,
    precision: str = "bf16",
    calibrated: Calibration | None = None,
    storage: str | Precision | None = None,
    dropout: bool | None = None,
    reserve: float = RESERVE,
    complete: bool = False,
    network: Topology | None = None,
    executor: Executor | None = None,
) -> Evaluation:
    """Find out what every strategy of a grid costs.

    Parameters
    ----------
    model, grid, cluster : Transformer, StrategyGrid, Cluster
        What is trained, the strategies, and what they have to fill.
    global_batch : int
        Sequences of a step.
    software, precision, calibrated : str, str, Calibration
        As in `step_time`; software and precision also say what is stored, and in how many bytes.
    storage, dropout : str or Precision, bool, optional
        Instead of that of the software: one of `PRECISIONS`, or bytes of one's own; as in `memory`.
    reserve : float
        Bytes of a GPU that tensors cannot have, as in `StageMemory.fits`.
    complete : bool
        Whether the time of strategies that do not fit is wanted too.
    network : Topology, optional
        How the GPUs are wired, as in `step_time`.
    executor : concurrent.futures.Executor, optional
        Where chunks of rows are evaluated; the numbers do not depend on it.

    Returns
    -------
    Evaluation
        Time, memory and reason of every row: what `memory` and `step_time` say of its strategy, to
        the last bit. O(rows), about a microsecond for a row that fits and much less for one that
        breaks a rule.

    Examples
    --------
    >>> from relparallel.hardware import cluster
    >>> gpt3 = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    >>> grid = StrategyGrid.all(gpus=64, model=gpt3, global_batch=64, tensor=8, recompute="full")
    >>> found = price_strategies(gpt3, grid, cluster("a100-80gb-selene", gpus=64), global_batch=64)
    >>> int(found.counts().sum()) == len(grid), bool(found.feasible.any()), bool(found.feasible.all())
    (True, True, False)
    """
    costs = pricing(
        model,
        cluster,
        global_batch,
        software=software,
        precision=precision,
        calibrated=calibrated,
        storage=storage,
        dropout=dropout,
        reserve=reserve,
    )
    require_instance(StrategyGrid, grid=grid)
    require_flag(complete=complete)
    require_instance((Topology, type(None)), network=network)
    rows = grid.choices
    if network is not None:
        rules = rules_of_rows(model, rows, global_batch, costs.gpus, costs.node)
        costs = costs.wired(cluster, network, degrees_of(rows[rules == 0]))
    work = partial(_evaluated, costs, complete)
    parts = map_chunks(
        work, (rows[k : k + CHUNK] for k in range(0, max(rows.size, 1), CHUNK)), executor
    )
    time, memory, reason = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Evaluation(grid=grid, time=time, memory=memory, reason=reason)


def _evaluated(
    costs: Pricing, complete: bool, rows: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int8]]:
    """Time, memory and reason: memory of rows that keep the rules, time of those that fit too."""
    rules = rules_of_rows(costs.model, rows, costs.global_batch, costs.gpus, costs.node)
    reason = first_broken(rules)
    time, memory = np.full((2, rows.size), np.nan)
    kept = np.flatnonzero(reason == FEASIBLE)
    memory[kept] = costs.peak(costs.split(rows[kept]))
    fits = memory[kept] <= costs.available
    reason[kept[~fits]] = _MEMORY
    timed = kept if complete else kept[fits]
    time[timed] = costs.time(costs.split(rows[timed]))
    return time, memory, reason
