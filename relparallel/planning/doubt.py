"""How sure the order of a plan is: chance to be the best, loss to expect, and which runs would tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.optimize.joint_plans import JointPlan, joint, plan_of
from relparallel.optimize.joint_search import Choice, JointSearch
from relparallel.parallel import Strategy, notation
from relparallel.parallel.corrections import DRAWS, Lessons, require_device
from relparallel.parallel.past_runs import experience, features
from relparallel.parallel.quantities import Split
from relparallel.planning.own_logs import KINDS, OwnLog
from relparallel.planning.ranking import (
    Row,
    candidates,
    in_groups,
    in_words,
    merged,
    share_kept,
    usual,
)
from relparallel.workload import Transformer

_NEAREST: Final = 0.25
"""Share of the choices that counts as near measured runs."""

ENOUGH: Final = (10, 2)
"""Runs of a kind of model, and publishers, behind accelerators that are held against other vendors'."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Doubt:
    """Rows of a plan and those behind them, and the share of the best of all that each gives in draws."""

    rows: Sequence[Row]
    count: int  # of them in the table
    shares: NDArray[np.float64]  # [draws, rows]
    measured: NDArray[np.bool_]  # whether an own run was the same
    best_run: Row | None = None  # near measured runs, over which gains are shrunk
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> JointPlan:
        """The plan of the first row."""
        row = self.rows[0]
        return plan_of(row.one.search, row.choice, row.one.counts)

    @property
    def probability(self) -> NDArray[np.float64]:
        """To be the best of the rows."""
        return np.asarray((self.shares == 1).mean(axis=0))

    @property
    def loss(self) -> NDArray[np.float64]:
        """Expected share that is lost to the best of the rows."""
        return np.asarray(1 - self.shares.mean(axis=0))

    @property
    def to_measure(self) -> tuple[Strategy, ...]:
        """The first two strategies that were not measured."""
        return tuple(self.rows[place].strategy for place in np.flatnonzero(~self.measured)[:2])

    def kept(self, search: JointSearch, choice: Choice, score: float) -> float:
        """Share of its predicted worth that is expected of a choice on the same cluster."""
        if (first := self.best_run) is None:
            return 1.0
        there, bounds, _, lessons = known_of([(first.one.search, first.choice), (search, choice)])
        gain = np.log(np.maximum([first.score, score], 1e-300) / first.score)
        return float(share_kept(gain, there, bounds, lessons)[1])

    def said(self, where: str) -> list[str]:
        """What to measure next, and what is expected of the best of those and the first."""
        runs = [notation(strategy) for strategy in self.to_measure]
        known = [0, *np.flatnonzero(~self.measured)[:2]]
        after = 1 - self.shares[:, known].max(axis=1).mean()
        told = f"the first row is expected to lose {self.loss[0]:.1%}, the best of them {after:.1%}"
        return [where + " and ".join(runs), told] if runs else []

    def ranking(self) -> str:
        """How rows are ranked, and which would be the first by its prediction alone."""
        raw, first = max(self.rows, key=lambda row: row.raw), self.rows[0]
        if self.best_run is None or raw is first:
            return ""
        more, left = raw.raw / first.raw - 1, raw.score / first.score - 1
        why = f"of which {left:.1%} are expected"
        if raw.beyond:
            why = f"which nobody has run (at most {in_words(raw.one.search.question.apart)})"
        return f"by predictions alone {notation(raw.strategy)} leads by {more:.1%}, {why}"


def ranked(
    model: Transformer,
    cluster: Cluster,
    asked: Mapping[str, Any],
    count: int,
    like: str | None,
    log: OwnLog | None,
) -> Doubt:
    """Rows of a plan on a cluster; ``asked`` are arguments of `joint`, ``log`` ranks by its replay."""
    if "memory_margin" not in asked:  # speeds were measured
        one = joint(model, cluster, **asked)
        every = one.search.ranked(max(KINDS, 2 * count))
        return doubt_of([Row.of(one, each) for each in every], count, log)
    learned, margin = asked.get("learned"), asked["memory_margin"]
    own = () if learned is None else [run for one in learned.lessons for run in one.runs]
    given = {**asked, "apart": usual(model, require_device(cluster), own)}

    def ask(limits: Mapping[str, Any], **options: Any) -> JointPlan:
        within = {"limits": {**asked["limits"], **limits}}
        return joint(model, cluster, **{**given, **within, **options})

    said = f"{margin:.0%} of the memory of a GPU stay free"
    try:
        one = ask({})
    except ValueError:
        if not margin:
            raise
        given["memory_margin"] = 0.0
        one, said = ask({}), f"nothing fits where {said}: rows may take it all"
    rows = candidates(one, ask, count, own, asked["limits"])
    if like and not (rows := [row for row in rows if not row.beyond]):
        raise ValueError(f"like must be None where nobody has run what fits, got {like!r}")
    notes = [said] * bool(margin) + [row.too_large for row in rows if row.too_large]
    return replace(doubt_of(rows, count, log), notes=tuple(notes))


def doubt_of(rows: Sequence[Row], count: int, log: OwnLog | None = None) -> Doubt:
    """Shrink gains of rows, merge twins, put them in order, and draw errors; measured speeds have none.

    By a log, where one is given, rows have the scores of its replay, and others with it.
    """
    if log is not None:
        one = rows[-1].one
        rows = [row for row in rows if row.run or row.layout]
        rows += [Row.of(one, each) for each in log.ranked(one.search, count)]
        rows = [replace(row, score=log.score(row.one.search, row.choice)) for row in rows]
    # what was found twice counts once, an own run as such
    found = {
        (row.strategy, row.site.spares): row for row in sorted(rows, key=lambda row: bool(row.run))
    }
    rows = sorted(found.values(), key=lambda row: -row.score)
    if log is not None and rows[0].score < 0:
        raise ValueError(f"rank must be another than 'replay' here: {'; '.join(log.refused)}")
    score = np.array([row.score for row in rows])
    if any(row.site.fastest.costs is None for row in rows):
        shares, done = score[None] / score.max(), np.ones(len(rows), dtype=bool)
        return Doubt(rows=rows, count=min(count, len(rows)), shares=shares, measured=done)
    there, bounds, distance, lessons = known_of([(row.one.search, row.choice) for row in rows])
    near = [k for k, row in enumerate(rows) if not row.beyond] or [*range(len(rows))]
    first = min(k for k in near if distance[k] <= np.quantile(distance[near], _NEAREST))
    order = [first, *range(len(rows))]  # the best of the nearest, and all
    gain = np.log(np.maximum(score, 1e-300) / score[first])[order]
    kept = share_kept(gain, there[order], bounds[order], lessons)[1:].tolist()
    place = {id(row.choice): k for k, row in enumerate(rows)}
    shrunk = [replace(x, score=x.score * k, kept=k) for x, k in zip(rows, kept, strict=True)]
    ordered, count = in_groups(merged(shrunk), count)
    ordered = ordered[: max(count, KINDS)]
    some = [place[id(row.choice)] for row in ordered]
    return Doubt(
        rows=ordered,
        count=count,
        shares=lessons.shares(np.array([row.score for row in ordered]), there[some], bounds[some]),
        measured=(there[some][:, None] == lessons.features).all(axis=2).any(axis=1),
        best_run=rows[first],
    )


def known_of(
    asked: Sequence[tuple[JointSearch, Choice]],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], Lessons]:
    """Features of choices, bounds of errors before own runs, distances to runs, and what own runs say.

    The bounds hold for 90 %.
    """
    places, bounds, apart, lessons = [], [], [], Lessons(software="", rules="")
    for search, choice in asked:
        fastest = search.sites[choice.site].fastest
        costs, strategy = fastest.costs, fastest.grid[choice.row]
        assert costs is not None
        lessons = costs.lessons or lessons
        s = Split.of(strategy, costs.global_batch)
        places.append(features(costs.model, costs.machine.precision, s))
        before = lessons.before if lessons.software else None
        step = replace(costs, lessons=before).step(strategy)
        bounds.append(np.log(step.interval()[1] / step.total))
        own = np.square(lessons.features - places[-1]).sum(axis=1).min(initial=np.inf)
        apart.append(min(step.distance, float(np.sqrt(own))))
    return np.concatenate(places), np.array(bounds), np.array(apart), lessons


def order_of(
    found: Sequence[JointPlan], worth: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Chance of each cluster to be worth most, and more than each other one, [cluster, cluster].

    Steps on one family of accelerators err as strategies on a cluster do, families apart; every
    draw of the errors is counted with both signs. Measured speeds do not err. Not a number between
    `vendors`.
    """
    families: dict[str, list[int]] = {}
    for place, one in enumerate(found):
        if one.step is not None:
            families.setdefault(require_device(one.cluster).family, []).append(place)
    value = np.tile(np.log(worth), (2 * DRAWS, 1))
    for seed, places in enumerate(families.values()):
        there, bounds, _, lessons = known_of([(found[k].search, found[k].choice) for k in places])
        errors = lessons.errors(there, bounds, seed)
        value[:, places] -= np.concatenate([errors, -errors])
    groups, best = np.array(vendors(found)[0]), np.full(len(found), np.nan)
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        if own.size > 1 or len(found) == 1:
            first = value[:, own] == value[:, own].max(axis=1, keepdims=True)
            best[own] = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
    before, after = value[:, :, None], value[:, None, :]
    beats = ((before > after) + (before == after) / 2).mean(axis=0)
    return best, np.where(groups[:, None] == groups, beats, np.nan)


def vendors(found: Sequence[JointPlan]) -> tuple[list[str], str]:
    """Groups of clusters that can be put in order, by their place, and why there are several.

    Accelerators of one vendor can: what is wrong with their calibrations is much the same. Those of
    several only if each rests on at least ten runs of that kind of model by two publishers, or on
    own runs: with fewer nobody could predict what another measured (`Experience.support`).
    """
    makers = [require_device(one.cluster).vendor for one in found]
    few, kind = dict[str, str](), ""
    for one, maker in zip(found, makers, strict=True):
        costs = one.search.sites[one.choice.site].fastest.costs
        if costs is None or (costs.lessons is not None and costs.lessons.log_ratio.size):
            continue
        machine, mixture = costs.machine, costs.model.experts > 1
        runs, publishers = experience().support(machine.known, mixture, machine.software.name)
        if runs < ENOUGH[0] or publishers < ENOUGH[1]:
            few[maker] = f"on {machine.known.family} number {runs}, their publishers {publishers}"
            kind = "mixtures" if mixture else "dense models"
    if len({*makers}) == 1 or not few:
        return [""] * len(found), ""
    said = f"no order between vendors: measured runs of {kind} {'; '.join(few.values())}"
    groups = [maker if maker in few else "" for maker in makers]
    return groups, f"{said}; it takes {ENOUGH[0]} and {ENOUGH[1]}"
