"""A failure log beside the formulas of a plan: replayed choices, spares, and what the log refutes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from relparallel._checks import require_choice
from relparallel.hardware import Cluster
from relparallel.optimize.joint_plans import JointPlan, plan_of
from relparallel.optimize.joint_search import Choice, JointSearch
from relparallel.optimize.joint_sites import Site
from relparallel.parallel import notation
from relparallel.planning.few_failures import FewFailures, repaired, watched
from relparallel.training import FailureLog, SharedEvents, spares_needed
from relparallel.training.failure_sources import Replay
from relparallel.training.order_statistics import NORMAL
from relparallel.units import DAY, MINUTE, YEAR

RANKS: Final = ("independent", "events", "replay")
"""By what rows are ranked: a formula for independent failures, one for shared events, the log."""

KINDS: Final = 20
"""Kinds of strategy among which the best is looked for; those behind them hardly ever are."""

_TIMES: Final = 20  # replays of a choice
_PARTS: Final = 6  # of the log, whose differences say how much one log leaves open
_HELD: Final = 8  # numbers of spares among which a replay looks for the best
_SHORT: Final = 1e-3  # share of the time that spares may be too few
_LOGS: Final = 499  # of independent failures, beside which the log is held
Floats = NDArray[np.float64]


class Replayed(NamedTuple):
    """Relative goodput under a log, with its 90 % interval."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.share:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnLog:
    """A log, what was replayed of it, and the shared events that it gives."""

    log: FailureLog
    repaired: bool = False  # a repair was given, which is used in place of those of the log
    replayed: dict[Any, Replayed] = field(default_factory=dict, repr=False)
    refused: dict[str, None] = field(default_factory=dict, repr=False)  # why something was not

    @cached_property
    def few(self) -> FewFailures:
        """The doubt that its failures leave."""
        return FewFailures(log=self.log, given=self.repaired)

    def events(self, nodes: int) -> SharedEvents:
        """Events of the log as so many of its nodes meet them, and drift of its rate."""
        if not self.log.start.size:
            return SharedEvents(sizes=(1.0,))
        return self.log.shared_events(nodes=min(nodes, self.log.population))

    def of(self, search: JointSearch, choice: Choice) -> Replayed:
        """Replay the log on a choice, once; not a number where that cannot be, with the reason."""
        key = (search, choice.site, choice.row, choice.policy, choice.checkpoint)
        if key not in self.replayed:
            try:
                self.replayed[key] = self._run(search, choice)
            except ValueError as error:
                self.refused[str(error)] = None
                self.replayed[key] = Replayed(np.nan, np.nan, np.nan)
        return self.replayed[key]

    def _run(self, search: JointSearch, choice: Choice) -> Replayed:
        """Twenty replays, each of the whole log from a random time on, nodes in a random order.

        The interval is that of the mean of six parts of the log, by Student's t.
        """
        from relparallel.training.simulation import simulate  # loads a compiler

        site, recovery = search.sites[choice.site], search.recoveries[choice.policy]
        source = self.source(site.cluster.nodes)
        report = simulate(
            replace(search.model(choice.site, choice.row), source=source),
            1.0,
            search.checkpoints[choice.checkpoint],
            recovery,
            spares=site.spares if recovery.takes_spares else 0,
            years=_TIMES * source.span / YEAR,
            rng=np.random.default_rng(0),
            horizon=source.span / _PARTS,
            replications=_TIMES,
        )
        assert report.samples is not None
        error = report.samples.reshape(_TIMES, _PARTS).var(axis=1, ddof=1).mean() / _PARTS
        mean, wide = report.mean, float(scipy.stats.t.ppf(0.95, _PARTS - 1) * np.sqrt(error))
        return Replayed(mean, max(mean - wide, 0.0), min(mean + wide, 1.0))

    def source(self, nodes: int) -> Replay:
        """The log as it is replayed on so many nodes.

        If it watched fewer, copies of it stand side by side, begun at evenly spread times.
        """
        one = self.log.replay()
        copies = -(-nodes // one.nodes)
        if copies == 1:
            return one
        beside = []
        for copy in range(copies):
            table = one.records.assign(node=one.records["node"] + copy * one.nodes)
            start = (table["start"] + copy / copies * one.span) % one.span
            beside.append(table.assign(start=start, end=start + table["end"] - table["start"]))
        records = pd.concat(beside, ignore_index=True)
        return replace(one, records=records, nodes=copies * one.nodes)

    def score(self, search: JointSearch, choice: Choice) -> float:
        """Score of a choice under the log."""
        share = self.of(search, choice).share
        worth = choice.throughput / search.sites[choice.site].weight
        return -1.0 if np.isnan(share) else worth * share

    def ranked(self, search: JointSearch, count: int) -> list[Choice]:
        """Choices in order of their score under the log, the best of each kind of strategy.

        Replayed are the first by the formula, and with every recovery the best for each of at most
        eight numbers of spares.
        """
        held = np.unique([site.spares for site in search.sites])
        held = held[np.linspace(0, held.size - 1, min(held.size, _HELD)).round().astype(int)]
        tried = search.ranked(max(count, KINDS))
        for policy, spares in product(search.recoveries, held.tolist()):
            one = search.best(partial(_holding, spares), (policy,))
            tried += [] if one is None else [one]
        found: dict[Any, Choice] = {}
        for one in sorted(tried, key=lambda choice: -self.score(search, choice)):
            kind = (one.site, *search.sites[one.site].fastest.kind(one.row))
            found.setdefault(kind, one)
        return [*found.values()]

    def best(self, one: JointPlan, count: int) -> JointPlan:
        """The plan of the best choice under the log."""
        first = self.ranked(one.search, count)[0]
        if self.score(one.search, first) < 0:
            raise ValueError(f"rank must be another than 'replay' here: {'; '.join(self.refused)}")
        return plan_of(one.search, first, one.counts)

    def facts(self, one: JointPlan) -> list[str]:
        """What the log is, and which repair the plan takes of it."""
        return [watched(self.log), *repaired(self.few, one)]

    def said(self, one: JointPlan, count: int, rank: str) -> list[str]:
        """What the log says of the spares, of independence, and of the order of the rows."""
        if not self.log.start.size:
            return [self._spares(one)]
        turned = self._turned(one, count, rank)
        verdict = self.log.report(np.random.default_rng(0), replications=_LOGS).verdict
        said = [self._spares(one), f"failures of the log, {verdict}"]
        if self.refused:
            return [f"the log cannot be replayed everywhere: {'; '.join(self.refused)}", *said]
        return [self._replay(one), *said, turned]

    def _replay(self, one: JointPlan) -> str:
        """How the log is replayed."""
        nodes, watched, days = one.cluster.nodes, self.log.population, self.log.span / DAY
        said = f"the log is replayed {_TIMES} times, {days:.4g} days each"
        if nodes < watched:
            said += f", {nodes:,} of its {watched:,} nodes drawn at random"
        if nodes > watched:
            said += (
                f"; it watched {watched:,} nodes, fewer than the {nodes:,} of the cluster: "
                f"{-(-nodes // watched)} copies stand side by side, begun at other times, so that "
                "nothing strikes two of them together"
            )
        if {*self.log.level_of().values()} & {"switch", "rack", "job"}:
            said += ", every failure taking the one node that it names"
        recovery, strategy = one.search.recoveries[one.policy], one.strategy
        if not recovery.waits and 1 < strategy.state_copies < strategy.data:
            said += "; the loss of all copies of a shard is not seen"
        return said

    def _spares(self, one: JointPlan) -> str:
        """Numbers of spares by both models and the log, for no more nodes than it watched."""
        nodes, seen = min(one.cluster.nodes, self.log.population), self.few.repair
        repair = one.search.recoveries[one.policy].repair if seen is None else seen.value
        rate = self.log.outage_rate or self.few.rate.value
        few, many = self.few.spares(nodes, rate, repair, _SHORT)
        asked = nodes, rate, repair, _SHORT, "hot"
        said = (
            f"spares of {nodes:,} nodes, short {_SHORT:.1%} of the time: {spares_needed(*asked)} "
        )
        said += f"by independent failures ({few} to {many})"
        if seen is None or np.isnan(self.log.end).any():
            return said
        shared = spares_needed(*asked, source=self.events(nodes))
        return f"{said}, {self._down(nodes)} by this log ({shared} by shared events)"

    def _down(self, nodes: int) -> int:
        """Nodes down that are exceeded for so little of the time, of so many drawn from the log."""
        time = self.log.down_distribution()
        number, spares = np.arange(time.size), 0
        while time @ scipy.stats.hypergeom.sf(spares, self.log.population, number, nodes) > _SHORT:
            spares += 1
        return spares

    def _turned(self, one: JointPlan, count: int, rank: str) -> str:
        """Whether another choice is the best under the log."""
        search, first = one.search, by_formula(one).choice
        other = self.ranked(search, count)[0]
        before, after = self.score(search, first), self.score(search, other)
        model = "independent failures" if search.question.source is None else "shared events"
        chance = math.hypot(*(_spread(search, each, self.log.span) for each in (first, other)))
        if after <= before:
            return f"what is the best by the formula of {model} stays so under the replay"
        more = f"{after / max(before, 1e-300) - 1:.2%}"
        turns = "the order turns over under the replay"
        if after - before <= NORMAL * chance:
            turns = f"under the replay another leads by {more}, as chance alone may have it"
        return (
            f"{turns}: it leaves {self.of(search, first)} of {_named(search, first)}, the first by "
            f"the formula of {model}, and {self.of(search, other)} of {_named(search, other)}, "
            f"{more} more tokens"
            + ("; rows are ranked so" if rank == "replay" else "; rank='replay' ranks rows so")
        )


def bounds_of(search: JointSearch, choice: Choice, log: OwnLog | None) -> dict[str, Any]:
    """90 % interval of the relative goodput, by a log with its doubt; with it of the checkpoints."""
    state, horizon = choice.state, search.question.horizon
    if log is None:
        spread = NORMAL * math.sqrt(state.variance_rate / horizon)
        return {"goodput": (max(state.share - spread, 0.0), min(state.share + spread, 1.0))}
    least, most = (each / MINUTE for each in log.few.checkpoint(search, choice))
    around = {"checkpoint from": least, "checkpoint to": most}
    return {"goodput": log.few.share(state, horizon), **around}


def by_formula(one: JointPlan) -> JointPlan:
    """The plan of the best choice by the formula."""
    first = one.search.best()
    assert first is not None
    return plan_of(one.search, first, one.counts)


def _holding(spares: int, site: Site, row: int) -> bool:
    """Whether a site holds back so many nodes."""
    return site.spares == spares


def _spread(search: JointSearch, choice: Choice, span: float) -> float:
    """Standard deviation of a score in runs of a length [s], by the formula."""
    worth = choice.throughput / search.sites[choice.site].weight
    return worth * math.sqrt(choice.state.variance_over(span) / span)


def _named(search: JointSearch, choice: Choice) -> str:
    """A choice in a few words."""
    site = search.sites[choice.site]
    strategy = notation(site.fastest.grid[choice.row], short=True)
    return f"{strategy}, {choice.policy}, {site.spares} spares"


def own_log(rank: str, rates: Any, options: Mapping[str, Any]) -> OwnLog | None:
    """The log of a plan, if what fails is one; else no order but that of the formula."""
    require_choice(RANKS, rank=rank)
    given = options.get("repair") is not None
    log = OwnLog(log=rates, repaired=given) if isinstance(rates, FailureLog) else None
    if rank == "independent":
        return log
    if log is None:
        raise ValueError(f"rank must be 'independent' unless rates is a FailureLog, got {rank!r}")
    if options.get("source") is not None:
        raise ValueError(
            f"source must be left out with rank {rank!r}, got {options['source']!r:.80}"
        )
    if rank == "replay" and options.get("objective") == "p10":
        raise ValueError(
            "rank must be 'independent' or 'events' with objective 'p10', got 'replay'"
        )
    return log


def source_of(log: OwnLog | None, rank: str, machines: tuple[Cluster, ...]) -> dict[str, Any]:
    """Shared events as the smallest cluster meets it, where a plan is ranked by it."""
    if log is None or rank != "events":
        return {}
    return {"source": log.events(min(one.nodes for one in machines))}
