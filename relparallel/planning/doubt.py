"""How sure the order of a plan is: chance to be the best, loss to expect, and which runs would tell."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel.optimize.joint_plans import JointPlan
from relparallel.optimize.joint_search import Choice, JointSearch
from relparallel.parallel import Strategy, notation
from relparallel.parallel.columns import Split
from relparallel.parallel.experience import features
from relparallel.parallel.learning import Lessons

KINDS: Final = 20
"""Kinds of strategy among which the best is looked for; those behind them hardly ever are."""


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

    def said(self, where: str) -> str:
        """What to measure next, and what is expected of the best of those and the first."""
        runs = [notation(strategy) for strategy in self.to_measure]
        known = [0, *np.flatnonzero(~self.measured)[:2]]
        after = 1 - self.shares[:, known].max(axis=1).mean()
        return (
            f"to measure next{where}: {' and '.join(runs)}; the best of them is expected to lose "
            f"{after:.1%}, the first alone {self.loss[0]:.1%}"
        ) * bool(runs)


def doubt_of(search: JointSearch, count: int) -> Doubt:
    """Doubt about the first choices of a search, at least so many; measured speeds leave none."""
    choices = search.ranked(max(count, KINDS))
    score = np.array([choice.score for choice in choices])
    places, bounds, lessons = [], [], Lessons(software="", rules="")
    for choice in choices:
        fastest = search.sites[choice.site].fastest
        if fastest.costs is None:
            shares, done = score[None] / score.max(), np.ones(len(choices), dtype=bool)
            return Doubt(search=search, choices=choices, shares=shares, measured=done)
        lessons = fastest.costs.lessons or lessons
        costs, strategy = fastest.costs, fastest.grid[choice.row]
        s = Split.of(strategy, costs.global_batch)
        places.append(features(costs.model, costs.machine.precision, s))
        before = lessons.before if lessons.software else None
        step = replace(costs, lessons=before).step(strategy)
        bounds.append(np.log(step.interval()[1] / step.total))
    there = np.concatenate(places)
    measured = (there[:, None] == lessons.features).all(axis=2).any(axis=1)
    shares = lessons.shares(score, there, np.array(bounds))
    return Doubt(search=search, choices=choices, shares=shares, measured=measured)


def asked_for(found: Sequence[JointPlan], count: int) -> list[str]:
    """By cluster, what to measure next."""
    several = len(found) > 1
    said = (doubt_of(one.search, count).said(f" on {one.cluster.name}" * several) for one in found)
    return [one for one in said if one]
