"""Failure records of real machines: what failed, where, when, and how long it was down.

A record that cannot be true is refused with its row named. What is merged, replaced or left out is
counted in `FailureLog.notes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import (
    Result,
    choice,
    instance,
    record,
    require_choice,
    require_instance,
    require_int,
    require_number,
    require_real,
)
from relparallel.hardware import Cluster
from relparallel.hardware.machines import LEVELS
from relparallel.metrics import Estimate
from relparallel.training import cause_levels
from relparallel.training.cause_levels import SHOWN
from relparallel.training.failure_rates import counted_rate, counted_repair, in_node_days
from relparallel.training.failure_sources import Replay, SharedEvents
from relparallel.training.failures import ComponentClass
from relparallel.training.log_columns import OVERLAPS, others, overlapping, possible, texts, times
from relparallel.training.observation_window import UNKNOWN, cost
from relparallel.training.outages import Outages
from relparallel.units import DAY, HOUR

if TYPE_CHECKING:
    from relparallel.training.log_report import LogReport
    from relparallel.training.unequal_nodes import WorstNodes

_NO_TIME: Final = "{} outages take no time: they stop a job, and no node is down"
FIELDS: Final[dict[str, Any]] = {
    "node": np.str_,
    "cause": np.str_,
    "start": np.float64,
    "end": np.float64,
    "resumed": np.float64,
    "incident": np.int64,
    "still": np.bool_,
}
Texts = NDArray[np.str_]
Times = NDArray[np.float64]


@record(eq=False)
class FailureLog(Result):
    """Failures of a machine in the order in which they began.

    Parameters
    ----------
    node, cause : array of str [n]
        What failed, and the class of each failure.
    start, end : array [n]
        When it failed and when the node was back [s since the window began]; NaN for an end that is
        not known.
    population : int
        Nodes that were watched.
    begin, finish : float, optional
        When the observation window began and ended [s]; by default with the first and the last
        failure, which `guessed` says, with what it costs in the notes. A log without a failure needs both.
    overlaps : {"refuse", "merge", "keep"}
        What becomes of a failure of a node that is still down: refused, one repair with the earlier
        one, or kept.
    notes : tuple of str
        What a reader changed, with the number of rows.
    resumed : array [n], optional
        When the job was back [s], NaN where that is not known: never a repair of the node.
    incident : array of int [n], optional
        Rows of one event, which share a number, are one failure of several nodes; by default every
        row is one of its own. Rates count incidents, nodes down and repairs rows.
    still : array of bool [n], optional
        Whether a node whose end is not known was down when the window ended: its repair is censored.
        By default those that did not fail again, where the log knows the end of any other.
    levels : Mapping of str to str, optional
        What fails with a cause, "gpu", "node", "nvlink" (an NVLink switch tray), "switch", "rack"
        or "job", by the names of causes; the others are read by usual words in their names
        ("software" and "network" are failures of the job, "power" of a rack), as a node where there
        are none. `reading` says how.

    Examples
    --------
    >>> rows = {"node": ["a", "b"], "start": [5.0, 9.0], "end": [6.0, 9.5], "cause": ["gpu", "nic"]}
    >>> log = FailureLog(**rows, population=4)
    >>> log.gaps().tolist(), log.repairs.tolist()
    ([4.0], [1.0, 0.5])
    """

    node: Texts
    start: Times
    end: Times
    cause: Texts
    population: int
    finish: float | None = None
    overlaps: str = choice(OVERLAPS, default="refuse")
    notes: tuple[str, ...] = ()
    begin: float | None = None
    levels: Mapping[str, str] | None = instance(Mapping, default=None)
    resumed: Times = None  # type: ignore[assignment]
    incident: NDArray[np.int64] = None  # type: ignore[assignment]
    still: NDArray[np.bool_] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        columns = {
            "node": texts(node=self.node),
            "cause": texts(cause=self.cause),
            "start": times(start=self.start),
            "end": times(open_too=True, end=self.end),
        }
        many = len(columns["node"])
        columns |= others(many, resumed=self.resumed, incident=self.incident, still=self.still)
        for name, column in columns.items():
            if len(column) != many:
                raise ValueError(
                    f"{name} must have as many rows as node, {many}, got {len(column)}"
                )
        notes = require_instance(tuple, notes=self.notes)
        table = pd.DataFrame(columns)
        possible(table)
        if self.still is None:
            again = table.sort_values("start", kind="stable")["node"].duplicated(keep="last")
            table["still"] = table["end"].isna() & ~again & table["end"].notna().any()
        table, merged = overlapping(
            table.iloc[np.lexsort((columns["end"], columns["start"]))], self.overlaps
        )
        require_int(
            population=self.population, at_least=max(table["node"].nunique(), 1), at_most=10**9
        )
        first, last = table["start"].iloc[[0, -1]] if many else (np.inf, 0.0)
        if self.finish is not None:
            require_real(finish=self.finish, at_least=last, at_most=1e18)
        if self.begin is not None:
            require_real(begin=self.begin, at_least=0, at_most=min(first, self.finish or np.inf))
        if not many and self.guessed:
            raise ValueError(f"node must have a row, got none: {UNKNOWN}")
        for name, kind in FIELDS.items():
            object.__setattr__(self, name, table[name].to_numpy(dtype=kind))
        for level in (self.levels or {}).values():
            require_choice(LEVELS, levels=level)
        wide = {"job", "rack", "switch"} & {*self.level_of().values()}
        still = int((self.end == self.start).sum())
        said = [_NO_TIME.format(still)] if still else []
        ends = (self.begin is None) + (self.finish is None)
        said += [cost(self.incidents, ends)] if 0 < ends <= self.incidents else []
        said += [self.reading] if many and (wide or self.levels) else []
        more = tuple(note for note in said if note and note not in notes)
        object.__setattr__(self, "notes", notes + merged + more)

    @property
    def repairs(self) -> Times:
        """Time to repair of every failure [s], NaN where its end is not known."""
        return np.asarray(self.end - self.start)

    @property
    def guessed(self) -> bool:
        """Whether the window was taken from the first failure, to the last one, or both."""
        return self.begin is None or self.finish is None

    @property
    def span(self) -> float:
        """Length of the window [s]."""
        return self.watched - float(self.start[0] if self.begin is None else self.begin)

    @property
    def incidents(self) -> int:
        """Failures: events, however many nodes each took."""
        return len(np.unique(self.incident))

    @property
    def rate(self) -> float:
        """Failures (incidents) per second of a node that is up; 0 without any."""
        return self.outage_rate * self.incidents / max(len(self.start), 1)

    @property
    def outage_rate(self) -> float:
        """Outages per second of a node that is up: as `rate`, where each takes one node."""
        return len(self.start) / self.exposure

    @property
    def exposure(self) -> float:
        """Time in which nodes were up and could fail, of all together [s]."""
        return self._outages()[1].exposure

    def rate_interval(self, level: float = 0.9) -> Estimate:
        """Return `rate` with the interval that so few failures leave it.

        Parameters
        ----------
        level : float
            Chance of the interval to hold the rate.

        Returns
        -------
        Estimate
            Per second of a node that is up; where there was none, half a failure over the time
            watched, the mean of the posterior. Garwood's interval (1936); twelfths of the window
            that differ widen it.

        Examples
        --------
        >>> rows = {"node": ["a", "b"], "start": [5.0, 50.0], "end": [5.0, 50.0], "cause": ["x", "x"]}
        >>> rate = FailureLog(**rows, population=64, begin=0.0, finish=90.0).rate_interval()
        >>> [round(1e3 * each, 3) for each in (rate.value, rate.lower, rate.upper)]
        [0.347, 0.062, 1.093]
        """
        require_number(level=level, above=0.0, below=1.0)
        return counted_rate(self).estimate(self.incidents, level)

    @property
    def watched(self) -> float:
        """End of the window [s]."""
        return float(self.start[-1] if self.finish is None else self.finish)

    def _watched(self, **columns: Any) -> FailureLog:
        """The log with other columns, watched as long."""
        return replace(self, begin=self.watched - self.span, finish=self.watched, **columns)

    @property
    def censored(self) -> float:
        """Time since the last failure [s]: a life that had not ended when the window did."""
        return self.watched - float(self.start[-1]) if self.start.size else self.span

    def gaps(self) -> Times:
        """Return the times between failures [s]; failures of one moment count as one."""
        return np.diff(np.unique(self.start))

    def level_of(self) -> dict[str, str]:
        """What fails with each cause: as given, else by usual words in its name, else a node."""
        return cause_levels.level_of(np.unique(self.cause).tolist(), self.levels or {})

    @property
    def reading(self) -> str:
        """How causes are read: what fails with each of them."""
        return cause_levels.reading(self.level_of(), self.levels or {})

    def repair_of(self, cause: str) -> float | None:
        """Return the mean repair of a cause [s] (Kaplan and Meier), None where none was seen."""
        found = counted_repair(self, cause)
        return None if found is None else found.value

    def classes(self, cluster: Cluster | None = None) -> tuple[ComponentClass, ...]:
        """Return the classes of a failure model, one for each cause.

        Parameters
        ----------
        cluster : Cluster, optional
            Where they fail; as many nodes as were watched, of 8 GPUs, where omitted.

        Returns
        -------
        tuple of ComponentClass
            Parts of the level of `level_of` stop, at such a rate that the failures of a cause per
            node and second are those of the log: the job as a whole fails in proportion to its
            nodes. A node of a log is a host: a tray, where those of the cluster have trays. Mean
            times to repair as `repair_of` has them, that of all causes where none of one was seen,
            those of the recovery policy where none was seen at all. Without a failure those of a
            node, as `rate_interval` has them.
        """
        return cause_levels.classes(self, cluster)

    def _counts(self) -> pd.Series:
        """Failures of each cause: an event has that of its first row."""
        first = ~pd.Series(self.incident).duplicated().to_numpy()
        return (
            pd.Series(self.cause[first]).value_counts().reindex(np.unique(self.cause), fill_value=0)
        )

    def select(self, cause: str) -> FailureLog:
        """Return the failures of one class, watched as long."""
        require_choice(tuple(np.unique(self.cause).tolist()), cause=cause)
        chosen = self.cause == cause
        columns = {name: getattr(self, name)[chosen] for name in FIELDS}
        levels = {cause: self.level_of()[cause]} if self.levels else None
        return self._watched(levels=levels, **columns)

    def replay(self, *, shuffled: bool = True) -> Replay:
        """Return the log as a source of failures for `simulate`: whole, or from a random time on."""
        table = self.records()
        table[["start", "end"]] -= self.watched - self.span
        return Replay(records=table, nodes=self.population, span=self.span, shuffled=shuffled)

    def shared_events(
        self,
        *,
        window: float = HOUR,
        together: bool = True,
        month: float = 30 * DAY,
        nodes: int | None = None,
    ) -> SharedEvents:
        """Fit events that nodes share, and rates that differ between months.

        Parameters
        ----------
        window : float
            Failures belong to one event where each starts within so long of the one before [s].
        together : bool
            Whether the nodes of an event come back at one moment, as in `SharedEvents`.
        month : float
            Length of the parts of the observation window whose rates may differ [s].
        nodes : int, optional
            Nodes of the job, drawn from those that were observed: of an event it meets those that
            are its own. All of them where omitted.

        Returns
        -------
        SharedEvents
            The sizes are those of the log. The rate of a month is gamma distributed, with the
            variance that the mean numbers of nodes down of the months have beyond events of one
            rate. One rate, where the log has fewer than six months or they differ no more than by
            chance (1 %, by a chi-squared number).

        Notes
        -----
        The largest event and the worst month of the log bound what is expected: a quiet log knows
        nothing of worse ones.

        Examples
        --------
        >>> rows = {"node": ["a", "b", "c"], "start": [5.0, 9.0, 9e5], "end": [6.0, 9.5, 9.1e5]}
        >>> FailureLog(**rows, cause=["x"] * 3, population=4).shared_events().sizes
        (0.5, 0.5)
        """
        from relparallel.training.shared_fits import shared_events

        return shared_events(self, window, together, month, nodes)

    def records(self, nodes: Sequence[str] | None = None) -> pd.DataFrame:
        """Return failures as records for `simulate`.

        Nodes have the places of their names in ``nodes``, those of the job by rank, then its spares;
        where omitted, those that failed are numbered in the order of their names. Overlapping
        outages of a node are one.
        """
        if self.overlaps == "keep":
            return self._watched(overlaps="merge").records(nodes)
        if open_ := int(np.isnan(self.end).sum()):
            raise ValueError(
                f"end must be known for records, got {open_} failures without one: give repair="
            )
        number = np.unique(self.node, return_inverse=True)[1]
        if nodes is not None:
            places = {name: place for place, name in enumerate(nodes)}
            if unknown := sorted(set(self.node.tolist()) - set(places)):
                raise ValueError(f"nodes must hold every node that failed, got none {unknown[0]!r}")
            number = np.array([places[name] for name in self.node])
        return pd.DataFrame({"node": number, "start": self.start, "end": self.end})

    def to_frame(self) -> pd.DataFrame:
        """Rows by class: failures, share, failures per 1000 node-days, mean and median repair [s].

        The most frequent class first.
        """
        groups = pd.Series(self.repairs).groupby(self.cause)
        table = groups.agg(failures="size", mean_repair="mean", median_repair="median")
        table["failures"] = self._counts()
        table["mean_repair"] = [self.repair_of(cause) for cause in table.index]
        table["level"] = table.index.map(self.level_of())
        share = table["failures"] / max(self.incidents, 1)
        table = table.assign(share=share, per_1000_node_days=1000 * DAY * self.rate * share)
        table = table.rename_axis("cause").reset_index()
        order = np.argsort(-table["failures"].to_numpy(), kind="stable")
        ordered: pd.DataFrame = table.iloc[order].reset_index(drop=True)
        return ordered

    def _outages(self) -> tuple[FailureLog, Outages]:
        """The log with overlapping outages of a node as one, and these since the window began."""
        if self.span <= 0:
            raise ValueError(
                f"start must hold failures at two moments, got {len(self.start)} row(s): {UNKNOWN}"
            )
        log = self._watched(overlaps="merge")
        begin, known = log.watched - log.span, np.isfinite(log.end)
        still = np.where(log.still, log.watched, log.start)
        start, end = log.start - begin, np.where(known, log.end, still) - begin
        node = np.unique(log.node, return_inverse=True)[1]
        return log, Outages(start[None], end[None], node[None], log.population, log.span)

    def down_distribution(self) -> Times:
        """Return the shares of the observation window with 0 ... K nodes down.

        An outage that goes on counts until the end, one without an end before another not at all.

        Examples
        --------
        >>> rows = {"node": ["a", "b"], "start": [0.0, 2.0], "end": [4.0, 3.0], "cause": ["x", "x"]}
        >>> FailureLog(**rows, population=9, finish=10.0).down_distribution().tolist()
        [0.6, 0.3, 0.1]
        """
        own = self._outages()[1]
        if not own.timed and np.isnan(self.end).any():
            raise ValueError("end must be known for nodes down, got none: give repair=")
        return own.distribution()

    def report(
        self,
        rng: np.random.Generator,
        *,
        window: float = 3600.0,
        level: float = 0.01,
        replications: int = 999,
    ) -> LogReport:
        """Hold the log against independent failures of equal nodes at a constant rate.

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws the logs of independent failures.
        window : float
            Time within which failures are said to come together [s].
        level : float
            Chance to refute failures that are independent.
        replications : int
            Logs of independent failures.

        Returns
        -------
        LogReport
            Rate, nodes down and repairs, and findings with the range of independent failures, a
            p-value and a sentence: *starts together* (shared events), *nodes down* at the rate of
            each twelfth of the observation window (shared events, slow repairs) and at a constant
            rate (these or drift), *trend* (drift) and *unequal nodes*. Independent failures are
            refuted where a p-value of k is at most level / k (Bonferroni).

        Notes
        -----
        Nodes that are up fail at one constant rate, repairs do not depend on each other: all ways
        to lay the outages of the log out are then equally likely in which no two of one node
        overlap; no parameter is fitted (Cox and Lewis, "The Statistical Analysis of Series of
        Events", 1966, chapter 6). O(n log n) per replication.

        Examples
        --------
        >>> rows = {"node": [f"n{k}" for k in range(40)], "start": np.arange(40) // 2 * 1e5}
        >>> log = FailureLog(**rows, end=rows["start"] + 60, cause=["x"] * 40, population=64)
        >>> log.report(np.random.default_rng(0)).refuted
        ('starts together',)
        """
        from relparallel.training.log_report import log_report

        log, own = self._outages()
        return log_report(own, log.repairs, log.notes, rng, window, level, replications)

    def worst_nodes(self, count: int) -> WorstNodes:
        """What the nodes that failed most have of the failures to come, were they removed.

        Parameters
        ----------
        count : int
            Nodes that go.

        Returns
        -------
        WorstNodes
            Their share of the failures to come with its 95 % interval, where rates of nodes are
            gamma variables (Efron and Morris, JASA 68, 1973), beside their share of the log, which
            promises too much: those that failed most were also unlucky. ``kept``: what those of the
            first half of the window had of the second; a node that was replaced has less.

        Examples
        --------
        >>> node = ["a"] * 12 + list("bcdefgh")
        >>> rows = {"start": np.arange(19.0), "end": np.arange(19.0) + 0.5, "cause": ["x"] * 19}
        >>> worst = FailureLog(node=node, **rows, population=20).worst_nodes(1)
        >>> worst.nodes, round(worst.raw, 2), round(worst.saved.value, 2)
        (('a',), 0.63, 0.46)
        """
        from relparallel.training.unequal_nodes import worst_nodes

        log, own = self._outages()
        return worst_nodes(own, np.unique(log.node), count)

    def _said(self) -> str:
        """How many failures of what, how often, over which span, and what a reader said."""
        levels, counts = self.level_of(), self._counts().sort_values(ascending=False, kind="stable")
        causes = [
            f"{cause} {many} ({levels[str(cause)]})" for cause, many in counts.head(SHOWN).items()
        ]
        causes += [f"{len(counts) - SHOWN} more causes"] * (len(counts) > SHOWN)
        often = in_node_days(self.rate_interval()) if self.span > 0 else "at one moment"
        said = (
            f"{self.incidents} failures of {self.population} nodes in {self.span / DAY:.4g} "
            f"days, {often}"
        )
        if self.incidents < len(self.start):
            said += f"; they took {len(self.start)} nodes"
        return "; ".join(filter(None, [said, ", ".join(causes), *self.notes]))
