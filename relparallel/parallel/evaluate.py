"""What every strategy of a grid costs: whether it is possible and fits, how long its step takes.

The numbers are those of `memory` and `step_time`, from the same kernels: rules first, then memory,
then time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numba
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
from relparallel.parallel._records import Machine, calibrated_machine, model_record, step_parts
from relparallel.parallel.calibration import Calibration
from relparallel.parallel.feasibility import FEASIBLE, REASONS, broken_rules, first_broken
from relparallel.parallel.grid import StrategyGrid
from relparallel.parallel.group_links import degrees_of, slowdowns
from relparallel.parallel.memory import (
    RESERVE,
    Precision,
    kept_by,
    known_precision,
    peak_memory,
    storage_record,
)
from relparallel.parallel.step_time import StepTime, step_of
from relparallel.parallel.strategy import DEGREES
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
    order, there is a machine for each of them, and a strategy is priced on that of its degrees.
    """

    model: Transformer
    gpus: int
    node: int
    global_batch: int
    available: float
    models: NDArray[Any]
    machines: NDArray[Any]
    storage: NDArray[Any]
    machine: Machine
    degrees: NDArray[np.int64] | None = None

    def wired(
        self,
        cluster: Cluster,
        network: Cluster | Topology,
        choices: NDArray[Any],
        order: tuple[str, ...] = DEGREES,
    ) -> Pricing:
        """The same on a network with another rank order, for strategies of the choices' degrees."""
        degrees = degrees_of(choices)
        machines = np.repeat(self.machines, len(degrees))
        for machine, slow in zip(
            machines, slowdowns(degrees, cluster, network, order), strict=True
        ):
            for degree, factor in slow.items():
                machine[f"{degree}_slow"] = factor
        return replace(self, machines=machines, degrees=degrees)

    def rows(self, choices: NDArray[Any]) -> NDArray[Any]:
        """Choices with the micro-batches of a replica; none where the batch is too small."""
        rows = choices.copy()
        rows["micro_batches"] = self.global_batch // (
            rows["data"].astype(np.int64) * rows["micro_batch"]
        )
        return rows

    def peak(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Memory of the fullest GPU [bytes]."""
        return peak_memory(self.models, rows, np.zeros(rows.size, np.int64), self.storage)

    def parts(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Parts of the step [s], [n, parts]."""
        return step_parts(self.models, self.machines, rows, self._machine(rows))

    def step(self, choice: NDArray[Any]) -> StepTime:
        """What `step_time` says of one strategy that fits, a row of choices."""
        (parts,) = self.parts(self.rows(choice))
        return step_of(parts, self.machine, self.model, self.global_batch, self.gpus)

    def slowed(
        self, rows: NDArray[Any], slow: Sequence[Mapping[str, float]]
    ) -> NDArray[np.float64]:
        """Parts of the step [s] where each degree's groups are slower by a factor of their own."""
        place = self._machine(rows)
        machines = self.machines[np.zeros(rows.size, np.int64) if place is None else place]
        for machine, factors in zip(machines, slow, strict=True):
            for degree, factor in factors.items():
                machine[f"{degree}_slow"] *= factor
        return step_parts(self.models, machines, rows)

    def _machine(self, rows: NDArray[Any]) -> NDArray[np.int64] | None:
        """Machine of every row; strategies fill the GPUs, so that three degrees say the fourth."""
        if self.degrees is None:
            return None
        columns = [rows[name].astype(np.int64) for name in ("tensor", "pipeline", "data")]
        wanted, known = (
            (tensor * (self.gpus + 1) + pipeline) * (self.gpus + 1) + data
            for tensor, pipeline, data in (columns, self.degrees.T[:3])
        )
        return np.searchsorted(known, wanted)


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
) -> Pricing:
    """All about a model and a cluster that strategies are priced with; arguments of `evaluate`."""
    require_instance(Transformer, model=model)
    machine = calibrated_machine(cluster, software, precision, calibrated)
    require_int(global_batch=global_batch, at_least=1, at_most=MOST_DEVICES)
    room = cluster.accelerator.memory if cluster.accelerator else 0.0
    require_number(reserve=reserve, at_least=0, at_most=room)
    kept, flash, masks = kept_by(machine.software, model, precision, dropout=dropout)
    kept = kept if storage is None else known_precision(storage=storage)
    return Pricing(
        model=model,
        gpus=cluster.gpus,
        node=cluster.gpus_per_node,
        global_batch=global_batch,
        available=room - reserve,
        models=model_record(model),
        machines=machine.row,
        storage=storage_record(kept, flash_attention=flash, dropout=masks),
        machine=machine,
    )


def evaluate(
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
        the last bit. O(rows), half a microsecond for a row that fits and much less for one that
        breaks a rule.

    Examples
    --------
    >>> from relparallel.hardware import cluster
    >>> gpt3 = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    >>> grid = StrategyGrid.all(gpus=64, model=gpt3, global_batch=64, tensor=8, recompute="full")
    >>> found = evaluate(gpt3, grid, cluster("a100-80gb-selene", gpus=64), global_batch=64)
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
    if network is not None:
        rules = broken_rules(model, grid.choices, global_batch, costs.gpus, costs.node)
        costs = costs.wired(cluster, network, grid.choices[rules == 0])
    work = partial(_evaluated, costs, complete)
    rows = grid.choices
    parts = map_chunks(
        work, (rows[k : k + CHUNK] for k in range(0, max(rows.size, 1), CHUNK)), executor
    )
    time, memory, reason = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Evaluation(grid=grid, time=time, memory=memory, reason=reason)


def _evaluated(
    costs: Pricing, complete: bool, choices: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int8]]:
    """Time, memory and reason: memory of rows that keep the rules, time of those that fit too."""
    reason = first_broken(
        broken_rules(costs.model, choices, costs.global_batch, costs.gpus, costs.node)
    )
    time, memory = np.full((2, choices.size), np.nan)
    kept = np.flatnonzero(reason == FEASIBLE)
    rows = costs.rows(choices[kept])
    memory[kept] = costs.peak(rows)
    fits = memory[kept] <= costs.available
    reason[kept[~fits]] = _MEMORY
    timed = np.ones_like(fits) if complete else fits
    time[kept[timed]] = totals(costs.parts(rows[timed]))
    return time, memory, reason


@numba.njit(cache=True)  # type: ignore[misc]
def totals(parts: Any) -> Any:
    """Sum of every row, rounded once: what an addition loses is carried along."""
    out = np.empty(parts.shape[0])
    for i in range(parts.shape[0]):
        total, lost = 0.0, 0.0
        for k in range(parts.shape[1]):
            part = parts[i, k]
            more = total + part
            lost += (total - more) + part if total >= part else (part - more) + total
            total = more
        out[i] = total + lost
    return out
