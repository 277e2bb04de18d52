"""Joint choices of strategy, spares, recovery and checkpoints, in order of what they can reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush, nlargest
from itertools import product, repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.optimize.joint_question import Question
from relparallel.optimize.joint_sites import Site
from relparallel.parallel.step import StepTime
from relparallel.training import Checkpointing, ComponentClass, FailureModel, Recovery
from relparallel.training.factors import best_rollback
from relparallel.training.goodput_forms import SteadyState, most_running, steady_state

# standard deviations from the mean down to the tenth percentile
NORMAL_TENTH: Final = 1.2815515655446004


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """One joint choice and what it gives."""

    site: int
    row: int
    policy: str
    checkpoint: str
    throughput: float
    state: SteadyState
    tenth: float
    score: float


@dataclass(kw_only=True, slots=True, eq=False)
class JointSearch:
    """The question, and what has been computed for it so far."""

    question: Question
    sites: tuple[Site, ...]
    evaluated: dict[tuple[Any, ...], Choice] = field(default_factory=dict)
    _bounds: dict[Any, list[tuple[float, int, int]]] = field(default_factory=dict)
    _states: dict[Any, SteadyState | None] = field(default_factory=dict)
    _models: dict[tuple[int, int], FailureModel] = field(default_factory=dict)
    _bare: dict[tuple[int, int], FailureModel] = field(default_factory=dict)

    @property
    def recoveries(self) -> Mapping[str, Recovery]:
        """Recoveries to choose from, by policy."""
        return self.question.recoveries

    @property
    def checkpoints(self) -> Mapping[str, Checkpointing]:
        """Levels to choose from, by name."""
        return self.question.checkpoints

    def best(
        self,
        row: Callable[[Site, int], bool] = lambda site, row: True,
        policies: tuple[str, ...] = (),
        checkpoints: tuple[str, ...] = (),
    ) -> Choice | None:
        """Best choice with certain rows, policies and checkpoints; None if there are none."""
        return next(iter(self.ranked(1, row, policies, checkpoints)), None)

    def ranked(
        self,
        count: int,
        row: Callable[[Site, int], bool] = lambda site, row: True,
        policies: tuple[str, ...] = (),
        checkpoints: tuple[str, ...] = (),
    ) -> list[Choice]:
        """Best choices of so many kinds of strategy, one per kind, best first; fewer if no more.

        Kinds are what failures can tell apart: degrees, copies of the state, nodes that are left;
        each measured strategy is one of its own. Best first: rows are asked by an upper bound on
        their score, throughput times `ceilings`, until no bound is above the last score wanted. On
        a network the score without failures of its parts is a second bound (`_reach`), and the
        parts are asked last; a slower row of a kind comes after the one before it, which shows what
        is left of all of them: if no part ever failed they would lose the same. It is not asked
        once its bound is below the best of its kind.
        """
        policies, checkpoints = (
            policies or tuple(self.recoveries),
            checkpoints or tuple(self.checkpoints),
        )
        pairs = tuple(product(policies, checkpoints))
        found: dict[Any, Choice] = {}
        least = -np.inf  # the last score wanted; of equal ones the first that was found stays
        heap = [
            (-bound, True, place, number)
            for bound, place, number in self.bounds(policies, checkpoints)
        ]
        while heap and -heap[0][0] >= least:
            bound, fresh, place, number = heappop(heap)
            site = self.sites[place]
            kind = (place, *site.fastest.kind(number))
            if kind in found and -bound < found[kind].score:
                continue
            if fresh and site.wiring is not None:
                heappush(heap, (-self._reach(place, number, pairs), False, place, number))
                continue
            if row(site, number):
                every = [x for pair in pairs if (x := self.choice(place, number, *pair))]
                top = max(every, key=lambda choice: choice.score, default=None)
                if top is not None and (kind not in found or top.score > found[kind].score):
                    found.pop(kind, None)
                    found[kind] = top
                    if len(found) >= count and top.score > least:
                        least = nlargest(count, (one.score for one in found.values()))[-1]
                most = max((x.score / float(x.state.degraded_parts) for x in every), default=0.0)
                bound = max(bound, -most * (1 + 1e-12))
            after = int(site.fastest.later[number])
            if after >= 0:
                slower = float(site.fastest.time[number] / site.fastest.time[after])
                heappush(heap, (bound * slower, False, place, after))
        return sorted(found.values(), key=lambda choice: -choice.score)[:count]

    def _reach(self, place: int, row: int, pairs: tuple[tuple[str, str], ...]) -> float:
        """Upper bound on the score of a row on a network whose parts never fail."""
        site = self.sites[place]
        seen = [self._state(place, row, *pair, bare=True) for pair in pairs]
        most = max((x.share for x in seen if x), default=0.0)
        return (
            self.question.tokens / site.weight * most / float(site.fastest.time[row]) * (1 + 1e-12)
        )

    def bounds(
        self, policies: tuple[str, ...], checkpoints: tuple[str, ...]
    ) -> list[tuple[float, int, int]]:
        """Upper bound on the score, site, row of the fastest of each kind, largest bound first."""
        key = (policies, checkpoints)
        if key not in self._bounds:
            found: list[tuple[float, int, int]] = []
            for place, site in enumerate(self.sites):
                first = site.fastest.first
                if first.size:
                    reached = self.ceilings(place, policies, checkpoints)[first]
                    bound = self.question.tokens / site.weight * reached / site.fastest.time[first]
                    found += zip(bound.tolist(), repeat(place), first.tolist(), strict=False)
            self._bounds[key] = sorted(found, key=lambda entry: -entry[0])
        return self._bounds[key]

    def ceilings(
        self, place: int, policies: tuple[str, ...], checkpoints: tuple[str, ...]
    ) -> NDArray[np.float64]:
        """Upper bound on the share of every strategy of a site.

        Policies that wait leave the same to all. For the others: the mean speed is at most
        `most_running` with the fewest nodes that a replica can touch, and what goes back under
        every policy (failures of the job, corrupt data, everything where the state has one copy)
        leaves at most `_most_kept`.
        """
        site = self.sites[place]
        kinds = site.fastest.kinds
        touched = np.maximum(kinds[:, :4].prod(axis=1) // (kinds[:, 2] * site.job.gpus_per_node), 1)
        cases, case = np.unique(
            np.column_stack([touched, kinds[:, 4] == 1]), axis=0, return_inverse=True
        )
        reached = np.zeros(len(cases))
        for policy, checkpoint in product(policies, checkpoints):
            recovery = self.recoveries[policy]
            if recovery.waits:
                seen = self._state(place, 0, policy, checkpoint, bare=True)
                reached = np.maximum(reached, 0.0 if seen is None else seen.share * (1 + 1e-12))
                continue
            running = most_running(
                self._failures(place, 0), recovery, site.spares, cases[:, 0].tolist()
            )
            several, single = (
                self._most_kept(site, recovery, checkpoint, lost) for lost in (False, True)
            )
            kept = np.where(cases[:, 1], single, several)
            reached = np.maximum(reached, np.multiply(running, kept))
        return np.asarray(reached[case.ravel()])

    def _most_kept(
        self, site: Site, recovery: Recovery, checkpoint: str, all_go_back: bool
    ) -> float:
        """Upper bound on what checkpoints leave: cheapest standstill and shortest way back of all.

        Longer ways, more expensive levels, lost checkpoints and further failures only take time.
        """
        rate = 1 / site.failures.mtbf if all_go_back else site.failures.job_rate
        seen = min((c.detection for c in site.failures.classes if c.stops), default=0.0)
        levels = self.checkpoints[checkpoint].levels
        back = recovery.restart + seen + min(level.restart for level in levels)
        kept = best_rollback(min(level.cost for level in levels), back, rate)[0]
        return min(float(kept) * (1 + 1e-12), 1.0)

    def choice(self, place: int, row: int, policy: str, checkpoint: str) -> Choice | None:
        """Evaluate one joint choice, once; None where replicas share some of their nodes only."""
        key = (place, row, policy, checkpoint)
        if key not in self.evaluated:
            site = self.sites[place]
            throughput = self.question.tokens / float(site.fastest.time[row])
            seen = self._state(place, row, policy, checkpoint)
            if seen is None:
                return None
            tenth = max(
                seen.share
                - NORMAL_TENTH * float(np.sqrt(seen.variance_rate / self.question.horizon)),
                0.0,
            )
            counted = tenth if self.question.objective == "p10" else seen.share
            self.evaluated[key] = Choice(
                site=place,
                row=row,
                policy=policy,
                checkpoint=checkpoint,
                throughput=throughput,
                state=seen,
                tenth=tenth,
                score=throughput * counted / site.weight,
            )
        return self.evaluated[key]

    def _state(
        self, place: int, row: int, policy: str, checkpoint: str, bare: bool = False
    ) -> SteadyState | None:
        """What failures leave, on a network without those of its parts if ``bare``.

        Without them it is the same for all strategies of a kind; under policies that wait, of a
        site.
        """
        site, recovery = self.sites[place], self.recoveries[policy]
        bare = bare or site.wiring is None
        kind = () if recovery.waits else tuple(site.fastest.kinds[row].tolist())
        key = (place, kind if bare else row, policy, checkpoint)
        if key not in self._states:
            held = site.spares if recovery.takes_spares else 0
            model = self._failures(place, row) if bare else self.model(place, row)
            self._states[key] = steady_state(model, self.checkpoints[checkpoint], recovery, held)
        return self._states[key]

    def step(self, choice: Choice) -> StepTime | None:
        """What `step_time` says of a choice; None of a measured one."""
        fast = self.sites[choice.site].fastest
        return None if fast.costs is None else fast.costs.step(fast.grid[choice.row])

    def rescaled(self, scale: float, repair: float | None = None) -> JointSearch:
        """The same question, all rates times a factor, new repair time; nothing evaluated yet."""
        sites, scaled = [], dict[ComponentClass, ComponentClass]()  # sites share most classes
        for site in self.sites:
            for c in site.failures.classes:
                if c not in scaled:
                    scaled[c] = replace(c, rate=scale * c.rate)
            classes = tuple(scaled[c] for c in site.failures.classes)
            wiring = None if site.wiring is None else site.wiring.scaled(scale)
            sites.append(
                replace(site, failures=replace(site.failures, classes=classes), wiring=wiring)
            )
        recoveries = {
            name: replace(one, repair=one.repair if repair is None else repair)
            for name, one in self.recoveries.items()
        }
        return JointSearch(
            question=replace(self.question, recoveries=recoveries), sites=tuple(sites)
        )

    def model(self, place: int, row: int) -> FailureModel:
        """Failures of a site under one of its strategies, with those of its network; once each."""
        if (place, row) not in self._models:
            site = self.sites[place]
            model = self._failures(place, row)
            if site.wiring is not None and model.placement is not None:
                parts = site.wiring.classes(model.placement.strategy)
                model = replace(model, classes=model.classes + parts)
            self._models[place, row] = model
        return self._models[place, row]

    def _failures(self, place: int, row: int) -> FailureModel:
        """The same without those of its network; a model finds what it hits once."""
        if (place, row) not in self._bare:
            self._bare[place, row] = self.sites[place].failures_under(row)
        return self._bare[place, row]
