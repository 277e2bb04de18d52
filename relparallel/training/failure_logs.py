"""Failure records of real machines: what failed, where, when, and how long it was down.

A record that cannot be true is refused with its row named. What is merged, replaced or left out is
counted in `FailureLog.notes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from relparallel._checks import (
    Result,
    choice,
    instance,
    record,
    require_choice,
    require_instance,
    require_int,
    require_real,
)
from relparallel.hardware import Cluster
from relparallel.hardware.machines import LEVELS
from relparallel.training._arguments import require_time
from relparallel.training.failure_sources import Replay, SharedEvents
from relparallel.training.failures import ComponentClass
from relparallel.training.log_columns import OVERLAPS, overlapping, texts, times
from relparallel.training.outages import Outages
from relparallel.units import DAY, HOUR

if TYPE_CHECKING:
    from relparallel.training.log_report import LogReport
    from relparallel.training.unequal_nodes import WorstNodes

USUAL: Final = {
    "job": "job software application framework user network fabric storage",
    "switch": "switch leaf tor",
    "rack": "rack power pdu cooling facility facilities",
    "node": "node host cpu memory dimm dram nic ssd disk psu supply motherboard kernel hardware "
    "boot",
    "gpu": "gpu xid hbm sram ecc nvlink",
}
"""Words in the names of causes, by what fails; where words of several fit, the last one counts."""
_NO_TIME: Final = "{} outages take no time: they stop a job, and no node is down"
_SHOWN: Final = 6  # causes in a line
_COLUMNS: Final[dict[str, Any]] = {
    "node": np.str_,
    "cause": np.str_,
    "start": np.float64,
    "end": np.float64,
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
        When it failed and when it was back [s since the watch began]; NaN for an end that is not
        known.
    population, finish : int, float, optional
        Nodes that were watched, and the end of the watch [s]; by default the last failure.
    overlaps : {"refuse", "merge", "keep"}
        What becomes of a failure of a node that is still down: refused, one repair with the earlier
        one, or kept.
    notes : tuple of str
        What a reader changed, with the number of rows.
    begin : float, optional
        When the watch began [s]; by default with the first failure.
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

    def __post_init__(self) -> None:
        node, cause = texts(node=self.node), texts(cause=self.cause)
        start = times(start=self.start)
        end = times(open_too=True, end=self.end)
        for name, column in (("start", start), ("end", end), ("cause", cause)):
            if len(column) != len(node):
                raise ValueError(
                    f"{name} must have as many rows as node, {len(node)}, got {len(column)}"
                )
        notes = require_instance(tuple, notes=self.notes)
        if (nameless := node == "").any():
            raise ValueError(
                f"node must have a name in every row, got '' in row {nameless.argmax() + 1}"
            )
        if (bad := end < start).any():
            i, more = bad.argmax(), bad.sum() - 1
            raise ValueError(
                f"end must not lie before start, got start {start[i]:g} s and end {end[i]:g} s in "
                "row "
                f"{i + 1} (node {node[i]}), and {more} more such rows"
            )
        table = pd.DataFrame({"node": node, "start": start, "end": end, "cause": cause})
        table, merged = overlapping(table.iloc[np.lexsort((end, start))], self.overlaps)
        failed = int(table["node"].nunique())
        require_int(population=self.population, at_least=max(failed, 1), at_most=10**9)
        first, last = float(table["start"].iloc[0]), float(table["start"].iloc[-1])
        finish, begin = last, first
        if self.finish is not None:
            finish = require_real(finish=self.finish, at_least=last, at_most=1e18)
        if self.begin is not None:
            begin = require_real(begin=self.begin, at_least=0, at_most=first)
        for name, kind in _COLUMNS.items():
            object.__setattr__(self, name, table[name].to_numpy(dtype=kind))
        for level in (self.levels or {}).values():
            require_choice(LEVELS, levels=level)
        object.__setattr__(self, "finish", finish)
        object.__setattr__(self, "begin", begin)
        if (still := int((end == start).sum())) and (said := _NO_TIME.format(still)) not in notes:
            merged = (*merged, said)
        object.__setattr__(self, "notes", notes + merged)
        wide = {"job", "rack", "switch"} & {*self.level_of().values()}
        if (wide or self.levels) and self.reading not in notes:
            object.__setattr__(self, "notes", (*self.notes, self.reading))

    @property
    def repairs(self) -> Times:
        """Time to repair of every failure [s], NaN where its end is not known."""
        return np.asarray(self.end - self.start)

    @property
    def span(self) -> float:
        """Length of the watch [s]."""
        return self.watched - float(self.start[0] if self.begin is None else self.begin)

    @property
    def rate(self) -> float:
        """Failures per node and second of the watch."""
        if self.span <= 0:
            raise ValueError(
                f"start must hold failures at two moments, got {len(self.start)} row(s)"
            )
        return len(self.start) / (self.population * self.span)

    @property
    def watched(self) -> float:
        """End of the watch [s]."""
        return float(self.start[-1] if self.finish is None else self.finish)

    @property
    def censored(self) -> float:
        """Time since the last failure [s]: a life that had not ended when the watch did."""
        return self.watched - float(self.start[-1])

    def gaps(self) -> Times:
        """Return the times between failures [s]; failures of one moment count as one."""
        return np.diff(np.unique(self.start))

    def level_of(self) -> dict[str, str]:
        """What fails with each cause: as given, else by usual words in its name, else a node."""
        found = {}
        for cause in np.unique(self.cause).tolist():
            words = {
                *(split := re.findall(r"[a-z]+", cause.lower())),
                *(word.rstrip("s") for word in split),
            }
            usual = [level for level, known in USUAL.items() if words & {*known.split()}]
            found[cause] = (self.levels or {}).get(cause, usual[-1] if usual else "node")
        return found

    @property
    def reading(self) -> str:
        """How causes are read: what fails with each of them."""
        given, found = self.levels or {}, self.level_of()
        said = [f"{cause} is a failure of the {level}" for cause, level in found.items()]
        said = said[:_SHOWN] + [f"{len(said) - _SHOWN} more"] * (len(said) > _SHOWN)
        if not {*given} >= {*found}:
            said[-1] += " (by usual words in the names, else of the node; levels= says)"
        said += [
            f"levels names {cause!r}, which never failed" for cause in given if cause not in found
        ]
        return f"causes of the log: {'; '.join(said)}"

    def repair_of(self, cause: str) -> float | None:
        """Return the mean time to repair of a cause [s], None where no repair was seen.

        Time under repair over the repairs that ended (the estimate of an exponential distribution):
        a node that is still down at the end of the watch counts with its time until then.
        """
        hit = self.cause == cause
        ended = np.isfinite(self.repairs)
        # it failed again: when it was back?
        later = pd.Series(self.node).duplicated(keep="last").to_numpy()
        still = self.watched - self.start[hit & ~ended & ~later]
        if not (hit & ended).any():
            return None
        return float((self.repairs[hit & ended].sum() + still.sum()) / (hit & ended).sum())

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
            times to repair as `repair_of` has them, those of the recovery policy where no repair
            was seen.
        """
        place = Cluster(nodes=self.population) if cluster is None else cluster
        host = "tray" if place.tray < place.gpus_per_node else "node"
        found = {cause: host if at == "node" else at for cause, at in self.level_of().items()}
        return tuple(
            ComponentClass(
                name=cause,
                level=level,
                repair=self.repair_of(cause),
                rate=self.rate
                * float((self.cause == cause).mean())
                * place.parts(host)
                / place.parts(level),
            )
            for cause, level in found.items()
        )

    def select(self, cause: str) -> FailureLog:
        """Return the failures of one class, watched as long."""
        require_choice(tuple(np.unique(self.cause).tolist()), cause=cause)
        chosen = self.cause == cause
        columns = {name: getattr(self, name)[chosen] for name in _COLUMNS}
        levels = {cause: self.level_of()[cause]} if self.levels else None
        return replace(self, levels=levels, **columns)

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
        length, month = require_time(window=window, month=month, positive=True, single=True)
        event = np.cumsum(np.diff(self.start, prepend=self.start[0]) > length)
        taken = np.bincount(pd.Series(self.node).groupby(event).nunique().to_numpy())[1:]
        made = SharedEvents(
            sizes=tuple((taken / taken.sum()).tolist()), together=together, lasting=month
        )
        months = int(self.span / month)
        border = np.linspace(self.watched - self.span, self.watched, months + 1)
        end = np.where(np.isnan(self.end), self.watched, self.end)
        held = np.clip(end, border[:, None], None) - np.clip(self.start, border[:, None], None)
        down = -np.diff(held.sum(axis=1)) * months / self.span  # nodes in the mean of each month
        shape = made.drift(down, self.span / max(months, 1), float((end - self.start).mean()))
        if shape is not None:
            made = replace(made, phases=SharedEvents.drifting(shape))
        if nodes is None:
            return made
        require_int(nodes=nodes, at_least=1, at_most=self.population)
        met = np.arange(1, min(nodes, taken.size) + 1)[:, None]
        size = np.arange(1, taken.size + 1)
        own = scipy.stats.hypergeom.pmf(met, self.population, size, nodes) @ taken
        return replace(made, sizes=tuple((own / own.sum()).tolist()))

    def records(self, nodes: Sequence[str] | None = None) -> pd.DataFrame:
        """Return failures as records for `simulate`.

        Nodes have the places of their names in ``nodes``, those of the job by rank, then its spares;
        where omitted, those that failed are numbered in the order of their names. Overlapping
        outages of a node are one.
        """
        if self.overlaps == "keep":
            return replace(self, overlaps="merge").records(nodes)
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
        table["mean_repair"] = [self.repair_of(cause) for cause in table.index]
        table["level"] = table.index.map(self.level_of())
        share = table["failures"] / len(self.start)
        table = table.assign(share=share, per_1000_node_days=1000 * DAY * self.rate * share)
        table = table.rename_axis("cause").reset_index()
        order = np.argsort(-table["failures"].to_numpy(), kind="stable")
        ordered: pd.DataFrame = table.iloc[order].reset_index(drop=True)
        return ordered

    def _outages(self) -> tuple[FailureLog, Outages]:
        """The log with overlapping outages of a node as one, and these since the window began."""
        log = replace(self, overlaps="merge")
        _ = log.rate  # refuses a log of one moment
        begin, known = log.watched - log.span, np.isfinite(log.end)
        last = ~pd.Series(log.node).duplicated(keep="last").to_numpy()
        # down until the window ends; one that failed again: when it was back?
        still = np.where(last & known.any(), log.watched, log.start)
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
        return self._outages()[1].distribution()

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
        levels, counts = self.level_of(), pd.Series(self.cause).value_counts()
        causes = [
            f"{cause} {many} ({levels[str(cause)]})" for cause, many in counts.head(_SHOWN).items()
        ]
        causes += [f"{len(counts) - _SHOWN} more causes"] * (len(counts) > _SHOWN)
        often = (
            f"{1000 * DAY * self.rate:.4g} per 1000 node-days" if self.span > 0 else "at one moment"
        )
        said = (
            f"{len(self.start)} failures of {self.population} nodes in {self.span / DAY:.4g} "
            f"days, {often}"
        )
        return "; ".join([said, ", ".join(causes), *self.notes])
