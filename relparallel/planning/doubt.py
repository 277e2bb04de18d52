"""How sure the order of a plan is: chance to be the best, loss to expect, and which runs would tell."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.optimize.joint_plans import JointPlan
from relparallel.optimize.joint_search import Choice, JointSearch
from relparallel.parallel import Strategy, notation
from relparallel.parallel.corrections import DRAWS, Lessons, require_device
from relparallel.parallel.past_runs import experience, features
from relparallel.parallel.quantities import Split
from relparallel.planning.own_logs import KINDS, OwnLog

ENOUGH: Final = (10, 2)
"""Runs of a kind of model, and publishers, behind accelerators that are held against other vendors'."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Doubt:
    """The best choices of a search, and the share of the best of them that each gives in many draws."""

    search: JointSearch
    choices: Sequence[Choice]
    shares: NDArray[np.float64]  # [draws, choices]
    measured: NDArray[np.bool_]  # whether an own run was the same

    @property
    def probability(self) -> NDArray[np.float64]:
        """To be the best of the choices."""
        return np.asarray((self.shares == 1).mean(axis=0))

    @property
    def loss(self) -> NDArray[np.float64]:
        """Expected share that is lost to the best of the choices."""
        return np.asarray(1 - self.shares.mean(axis=0))

    @property
    def to_measure(self) -> tuple[Strategy, ...]:
        """The first two strategies that were not measured."""
        asked = (self.choices[place] for place in np.flatnonzero(~self.measured)[:2])
        return tuple(self.search.sites[one.site].fastest.grid[one.row] for one in asked)

    def said(self, where: str) -> list[str]:
        """What to measure next, and what is expected of the best of those and the first."""
        runs = [notation(strategy) for strategy in self.to_measure]
        known = [0, *np.flatnonzero(~self.measured)[:2]]
        after = 1 - self.shares[:, known].max(axis=1).mean()
        told = f"the first row is expected to lose {self.loss[0]:.1%}, the best of them {after:.1%}"
        return [where + " and ".join(runs), told] if runs else []


def doubt_of(search: JointSearch, count: int, log: OwnLog | None = None) -> Doubt:
    """Doubt about the first choices of a search, at least so many; measured speeds leave none.

    By a log, where one is given, they have the order and scores of its replay.
    """
    choices = search.ranked(max(count, KINDS)) if log is None else log.ranked(search, count)
    score = np.array([one.score if log is None else log.score(search, one) for one in choices])
    if any(search.sites[one.site].fastest.costs is None for one in choices):
        shares, done = score[None] / score.max(), np.ones(len(choices), dtype=bool)
        return Doubt(search=search, choices=choices, shares=shares, measured=done)
    there, bounds, lessons = _known([(search, choice) for choice in choices])
    measured = (there[:, None] == lessons.features).all(axis=2).any(axis=1)
    shares = lessons.shares(score, there, bounds)
    return Doubt(search=search, choices=choices, shares=shares, measured=measured)


def _known(
    asked: Sequence[tuple[JointSearch, Choice]],
) -> tuple[NDArray[np.float64], NDArray[np.float64], Lessons]:
    """Features of choices, 90 % bounds of their errors before any own run, and what such runs say."""
    places, bounds, lessons = [], [], Lessons(software="", rules="")
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
    return np.concatenate(places), np.array(bounds), lessons


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
        there, bounds, lessons = _known([(found[k].search, found[k].choice) for k in places])
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


def asked_for(found: Sequence[JointPlan], count: int, log: OwnLog | None) -> list[str]:
    """By cluster, what to measure next."""
    several = len(found) > 1
    doubts = ((doubt_of(one.search, count, log), one.cluster.name) for one in found)
    return [said for doubt, name in doubts for said in doubt.said(f"on {name}, " * several)]
