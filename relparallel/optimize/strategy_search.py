"""The best strategy of all: every row of the grid is asked, so nothing feasible is skipped."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import require_choice, require_instance, require_real
from relparallel.hardware import Cluster
from relparallel.optimize._sentences import PART_TIMES, broken_down, compared, listed, named
from relparallel.parallel import Evaluation, Strategy, StrategyGrid, evaluate
from relparallel.parallel.evaluate import pricing
from relparallel.parallel.feasibility import REASONS, RULES, broken_rules
from relparallel.parallel.grid import AXES, SYNCHRONOUS
from relparallel.parallel.strategy import SCHEDULES
from relparallel.units import GB
from relparallel.workload import Transformer

OBJECTIVES: Final[Mapping[str, tuple[str, ...]]] = {
    "time": ("time", "memory", "gpus"),
    "memory": ("memory", "time", "gpus"),
    "gpu_time": ("gpu_time", "time", "memory"),
}
"""What is to be small, and what decides between equals; after that, the order of the rows."""


@dataclass(frozen=True, kw_only=True)
class _Search:
    """The question: a model, clusters to choose from, limits of the axes, and how costs are counted."""

    model: Transformer
    clusters: tuple[Cluster, ...]
    global_batch: int
    objective: str
    limits: Mapping[str, Any]
    options: Mapping[str, Any]
    executor: Executor | None = field(default=None, repr=False, compare=False)

    def grid(self, cluster: Cluster, **limits: Any) -> StrategyGrid:
        """All strategies on a cluster."""
        return StrategyGrid.all(cluster.gpus, self.model, self.global_batch, **{**self.limits, **limits})

    def evaluated(self, cluster: Cluster, **limits: Any) -> Iterator[Evaluation]:
        """What they cost, one schedule after the other, the plainest first: all at once are gigabytes."""
        every = {**self.limits, **limits}
        wanted = np.atleast_1d(np.array(every.pop("schedule", SYNCHRONOUS), dtype=object))
        unknown = [name for name in wanted if name not in SCHEDULES]
        for name in [*unknown, *(name for name in SCHEDULES if name in wanted)]:
            grid = self.grid(cluster, **every, schedule=name)
            yield evaluate(
                self.model, grid, cluster, self.global_batch, **self.options, executor=self.executor
            )

    def table(self, found: Evaluation, rows: NDArray[np.int64], cluster: Cluster) -> pd.DataFrame:
        """Strategies with their costs and the parts of their step."""
        grid: StrategyGrid = found.grid[rows]
        costs = pricing(self.model, cluster, self.global_batch, **self.options)
        parts = pd.DataFrame(costs.parts(costs.rows(grid.choices)), columns=list(PART_TIMES))
        own = {"time": found.time[rows], "memory": found.memory[rows]}
        own["gpu_time"] = cluster.gpus * own["time"]
        return pd.concat([grid.to_frame().assign(gpus=cluster.gpus, **own), parts], axis=1)

    def best(self, table: pd.DataFrame) -> pd.Series:
        """The row of a table that the objective prefers."""
        return table.sort_values(list(OBJECTIVES[self.objective]), kind="stable").iloc[0]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StrategyOptimum:
    """The best strategy, the proof that it is, and what speaks against the others.

    Parameters
    ----------
    strategy : Strategy
        The best one.
    cluster : Cluster
        The one, of those to choose from, that it fills.
    time, memory : float
        Of a step [s], of the fullest GPU [bytes].
    counts : pandas.DataFrame
        Rows of the grid by reason, one column for each number of GPUs: all that there are.
    pareto : pandas.DataFrame
        Feasible strategies that no other beats in one of time, memory and GPUs without losing in another;
        one row where several cost the same.
    alternatives : pandas.DataFrame
        On the same cluster, the best strategy for each value of each axis, with the parts of its step [s].
    search : object
        The question that was asked.
    """

    strategy: Strategy
    cluster: Cluster
    time: float
    memory: float
    counts: pd.DataFrame
    pareto: pd.DataFrame
    alternatives: pd.DataFrame
    search: Any = field(repr=False)

    def __post_init__(self) -> None:
        require_instance(Strategy, strategy=self.strategy)
        require_instance(Cluster, cluster=self.cluster)
        for name in ("time", "memory"):
            cost: Any = getattr(self, name)
            require_instance(float, **{name: require_real(**{name: cost}, above=0)})
        for name in ("counts", "pareto", "alternatives"):
            require_instance(pd.DataFrame, **{name: getattr(self, name)})
        require_instance(_Search, search=self.search)

    @property
    def rows(self) -> int:
        """Strategies that were asked: the sum of the counts."""
        return int(self.counts.to_numpy().sum())

    def explain(self) -> str:
        """Say why this strategy is the best, and what the others lose on.

        Returns
        -------
        str
            The step by parts, the rows by reason, and for each axis the best strategy with another value.
        """
        winner = self._winner()
        lines = [
            f"Smallest {self.search.objective} of {self.rows:,} strategies: {named(winner, AXES)} "
            f"on {self.cluster.gpus} GPUs.",
            f"A step takes {self.time:.4g} s and {self.memory / GB:.1f} GB: {broken_down(winner)}.",
            f"Every row was asked: {listed(self.counts.sum(axis=1), '; ')}.",
            "The best with another value, axis by axis:",
        ]
        return "\n".join(lines + [self._line(axis, winner) for axis in AXES])

    def why_not(self, **values: Any) -> str:
        """Say what the best strategy with given values costs on the same cluster, or what forbids them.

        Parameters
        ----------
        **values
            By axis: one value, or several to choose from.

        Returns
        -------
        str
            A sentence with numbers.
        """
        wanted = ", ".join(f"{name}={value!r}" for name, value in values.items())
        firsts, rows = [], 0
        for found in self.search.evaluated(self.cluster, **values):
            rows += len(found.grid)
            first = _order(found, self.search.objective)[:1]
            firsts.append(self.search.table(found, first, self.cluster))
        if rows == 0:
            return f"{wanted}: no degrees like that multiply to {self.cluster.gpus} GPUs."
        if all(table.empty for table in firsts):
            return f"{wanted}: {_forbidden(self.search, self.cluster, values)}."
        best = self.search.best(_joined(firsts))
        return f"{wanted}: {compared(best, self._winner())}."

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{html.escape(line)}</p>" for line in self.explain().splitlines()[:3])
        shown: str = self.pareto.to_html(float_format="{:.4g}".format)
        return f"{said}<p>Nothing is better in one of time, memory and GPUs without loss:</p>{shown}"

    def _winner(self) -> pd.Series:
        rows = self.alternatives
        return rows[(rows["axis"] == "tensor") & (rows["tensor"] == self.strategy.tensor)].iloc[0]

    def _line(self, axis: str, winner: pd.Series) -> str:
        rows = self.alternatives[self.alternatives["axis"] == axis]
        others = rows[rows[axis] != winner[axis]]
        if others.empty:
            return f"- {axis}: no other value is feasible."
        best = self.search.best(others)
        return f"- {axis} {best[axis]}: {compared(best, winner)}."


def best_strategy(
    model: Transformer,
    cluster: Cluster | Sequence[Cluster],
    global_batch: int,
    *,
    objective: str = "time",
    limits: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> StrategyOptimum:
    """Find the best of all strategies by asking every one of them.

    Parameters
    ----------
    model : Transformer
        What is trained.
    cluster : Cluster or sequence of Cluster
        What it is trained on, or several of different size to choose from.
    global_batch : int
        Sequences of a step.
    objective : {"time", "memory", "gpu_time"}
        What is to be small: the time of a step, the memory of the fullest GPU, or GPUs times time.
    limits : Mapping of str to values, optional
        Values of an axis to which the search is limited, as in `StrategyGrid.all`.
    executor : concurrent.futures.Executor, optional
        Where the grid is evaluated; the answer does not depend on it.
    **options
        Of `evaluate`: software, precision, storage, reserve and so on.

    Returns
    -------
    StrategyOptimum
        The strategy with its proof: `counts` holds the reason of every row, and sums to the grid.

    Notes
    -----
    Full enumeration of `StrategyGrid.all`, no pruning: rules first, memory for rows that keep them, time for
    those that fit. Between equals, less memory wins, then fewer GPUs, then the earlier row: the plainer
    schedule. The grid has schedules that many frameworks lack, zero bubble among them; limits such as
    ``{"schedule": ("gpipe", "1f1b", "interleaved_1f1b")}`` ask for the best of what one offers. O(rows).

    Examples
    --------
    >>> from relparallel.hardware import cluster
    >>> gpt = Transformer(layers=24, hidden=2304, heads=24, vocabulary=51200, sequence=2048)
    >>> best = best_strategy(gpt, cluster("a100-80gb-selene", gpus=8), global_batch=32)
    >>> best.strategy.gpus, best.rows == len(StrategyGrid.all(8, gpt, 32))
    (8, True)
    >>> best.why_not(tensor=5)
    'tensor=5: no degrees like that multiply to 8 GPUs.'
    """
    require_choice(tuple(OBJECTIVES), objective=objective)
    require_instance((Mapping, type(None)), limits=limits)
    search = _Search(
        model=model, clusters=_clusters(cluster), global_batch=global_batch, objective=objective,
        limits=dict(limits or {}), options=options, executor=executor,
    )  # fmt: skip
    tables, counts = [], {}
    for one in search.clusters:
        blocks, rows = [], pd.Series(0, index=REASONS)
        for found in search.evaluated(one):
            rows = rows.add(found.counts(), fill_value=0)
            blocks.append(_candidates(search, found, one))
        counts[one.gpus] = rows
        tables.append(_merged(search, _joined(blocks)))
    asked = pd.DataFrame(counts).reindex(REASONS).astype(int)
    return _optimum(search, tables, asked[(asked > 0).any(axis=1)])


def _optimum(search: _Search, tables: list[pd.DataFrame], counts: pd.DataFrame) -> StrategyOptimum:
    """The best of the candidates of all clusters."""
    every = pd.concat(tables, ignore_index=True)
    if every.empty:
        said = listed(counts.sum(axis=1), ", ")
        raise ValueError(f"cluster must allow a strategy for {search.model}, got {search.clusters}: {said}")
    winner = search.best(every)
    place = [one.gpus for one in search.clusters].index(winner["gpus"])
    shard = None if winner["shard"] == winner["data"] else int(winner["shard"])
    fields = {
        name: value.item() if isinstance(value, np.generic) else value for name, value in winner.items()
    }
    return StrategyOptimum(
        strategy=Strategy(**{name: fields[name] for name in AXES} | {"shard": shard}),
        cluster=search.clusters[place],
        time=float(winner["time"]),
        memory=float(winner["memory"]),
        counts=counts.rename_axis("reason").rename_axis("gpus", axis=1),
        pareto=_front(every[every["axis"] == "front"]).drop(columns=["axis", "gpu_time", *PART_TIMES]),
        alternatives=tables[place][tables[place]["axis"] != "front"].reset_index(drop=True),
        search=search,
    )


def _clusters(cluster: Any) -> tuple[Cluster, ...]:
    """One or several, each of another size."""
    several = (cluster,) if isinstance(cluster, Cluster) else cluster
    if not isinstance(several, (tuple, list)) or not several:
        raise TypeError(f"cluster must be a Cluster or several of them, got {cluster!r:.80}")
    for one in several:
        require_instance(Cluster, cluster=one)
    if len({one.gpus for one in several}) < len(several):
        raise ValueError(f"cluster must name clusters of different sizes, got {cluster!r:.200}")
    return tuple(several)


def _order(found: Evaluation, objective: str) -> NDArray[np.int64]:
    """Feasible rows, the best first."""
    rows = np.flatnonzero(found.feasible)
    first, second = found.time[rows], found.memory[rows]
    if objective == "memory":
        first, second = second, first
    return rows[np.lexsort((second, first))]


def _candidates(search: _Search, found: Evaluation, cluster: Cluster) -> pd.DataFrame:
    """The best row for every value of every axis, and the rows of the front of time and memory."""
    order = _order(found, search.objective)
    axes, rows = [], []
    for axis in AXES:
        column = found.grid.choices[axis][order]
        values, first = np.unique(column, return_index=True)
        axes += [axis] * values.size
        rows += order[first].tolist()
    front = _rows_of_front(found)
    table = search.table(found, np.array(rows + front, dtype=np.int64), cluster)
    return table.assign(axis=axes + ["front"] * len(front))


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """One table of several, of which some have no row."""
    return pd.concat([table for table in tables if not table.empty] or tables[:1], ignore_index=True)


def _merged(search: _Search, table: pd.DataFrame) -> pd.DataFrame:
    """The best row for every value of every axis, of those of all schedules, and the rows of their fronts."""
    front = table[table["axis"] == "front"]
    kept = [
        table[table["axis"] == axis]
        .sort_values(list(OBJECTIVES[search.objective]), kind="stable")
        .drop_duplicates(axis)
        .sort_values(axis, kind="stable")
        for axis in AXES
    ]
    return pd.concat([*kept, front], ignore_index=True)


def _rows_of_front(found: Evaluation) -> list[int]:
    """Feasible rows by time, each with less memory than all before it."""
    order = _order(found, "time")
    memory = found.memory[order]
    least = np.minimum.accumulate(memory)
    fresh = np.r_[True, memory[1:] < least[:-1]] if memory.size else np.empty(0, np.bool_)
    kept: list[int] = order[fresh].tolist()
    return kept


def _front(table: pd.DataFrame) -> pd.DataFrame:
    """Rows that no other row is at least as good as in all, and better in one; the first of equal ones."""
    table = table.drop_duplicates(["time", "memory", "gpus"])
    costs = table[["time", "memory", "gpus"]].to_numpy(dtype=np.float64)
    no_worse = (costs[:, None] <= costs[None]).all(axis=2)
    beaten = (no_worse & (costs[:, None] < costs[None]).any(axis=2)).any(axis=0)
    return table.iloc[np.flatnonzero(~beaten)].sort_values(["gpus", "time"]).reset_index(drop=True)


def _forbidden(search: _Search, cluster: Cluster, values: Mapping[str, Any]) -> str:
    """What every row with given values fails by: a rule that all break, memory, or several things."""
    common, least, counts = -1, np.inf, pd.Series(0, index=REASONS)
    for found in search.evaluated(cluster, **values):
        bits = broken_rules(
            search.model, found.grid.choices, search.global_batch, cluster.gpus, cluster.gpus_per_node
        )
        common &= int(np.bitwise_and.reduce(bits))
        counts = counts.add(found.counts(), fill_value=0).astype(int)
        least = min(least, np.nanmin(found.memory, initial=np.inf))
    broken = [rule for k, rule in enumerate(RULES) if common >> k & 1]
    if broken:
        return "forbidden, " + " and ".join(broken)
    reasons = listed(counts[counts > 0].reindex([r for r in REASONS if counts[r] > 0]), ", ")
    if np.isinf(least):
        return f"forbidden, {reasons}"
    available = pricing(search.model, cluster, search.global_batch, **search.options).available
    return (
        f"does not fit, at least {least / GB:.1f} GB are needed and {available / GB:.1f} GB there; {reasons}"
    )
