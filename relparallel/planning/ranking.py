"""Rows of a plan: near measured runs and beyond them, twins in one, and what is expected of each.

The best of many predictions is too good in the mean: what made it first is partly its error. What lies
near measured runs somebody has run. Of a gain g = log(worth / worth of the best there), with an error of
scale s of the difference, which grows with the distance of both from runs and from each other
(`Lessons.covariance`),

    g - min(g s^2 / (s^2 + t^2), s)

is expected: the mean of what true gains of scale t leave, but never less by more than the error's scale,
since a gain far above both says that t was another. Of a loss nothing is taken off.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.hardware import Accelerator, accelerator, accelerators
from relparallel.optimize.joint_plans import JointPlan
from relparallel.optimize.joint_search import Choice
from relparallel.optimize.joint_sites import Site
from relparallel.parallel import Strategy, calibration, notation
from relparallel.parallel.corrections import Lessons
from relparallel.parallel.past_runs import FEATURES, experience
from relparallel.parallel.run import Run
from relparallel.planning.own_logs import KINDS
from relparallel.training.order_statistics import NORMAL
from relparallel.units import GB
from relparallel.workload import Transformer

_GAIN: Final = 0.12
"""Scale of true gains over the best near measured runs: in 114 published groups of layouts those that were
predicted as good as the best of the quarter nearest to other publishers' runs were ahead of it by 0.015 in
the mean and 0.125 in the standard deviation."""
_AS_GOOD: Final = 0.005  # of the score that the plainest of twins may lack
_TIED: Final = 0.01  # and a layout that somebody has run
_BEYOND: Final = 3  # kinds of strategy beyond all runs that are looked at
_LAYOUTS: Final = 12  # published ones that are tried
_FEW: Final = 3  # runs of a vendor, below which they do not say which degrees are usual
_SPLIT: Final = {"tensor": "TP", "pipeline": "PP", "context": "CP", "expert": "EP"}
_DEGREES: Final = {**_SPLIT, "virtual_stages": "VPP", "zero_stage": "ZeRO-"}
"""Axes whose largest values in measured runs say what somebody has run, and their short names."""
Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Row:
    """A choice, the plan in whose search it is, and why it is there."""

    one: JointPlan
    choice: Choice
    strategy: Strategy
    beyond: bool  # above all runs of that kind of model in some degree
    score: float  # by which rows are ranked
    kept: float = 1.0  # of the predicted worth
    layout: str = ""  # measured run that was split so
    run: Run | None = None  # own run of this very strategy
    twins: int = 0  # others that do as well
    skips: bool = False  # better ones are not in the table

    @classmethod
    def of(cls, one: JointPlan, choice: Choice, **why: Any) -> "Row":
        """Row of a choice, before anything is taken off its score."""
        fastest = one.search.sites[choice.site].fastest
        known = {"strategy": fastest.grid[choice.row], "beyond": bool(fastest.beyond[choice.row])}
        return cls(one=one, choice=choice, score=choice.score, **known, **why)

    @property
    def site(self) -> Site:
        """Where it stands."""
        return self.one.search.sites[self.choice.site]

    @property
    def raw(self) -> float:
        """The score by the prediction alone."""
        return self.score / self.kept

    @property
    def group(self) -> str:
        """How near it is to what somebody has run."""
        if self.site.fastest.costs is None:
            return "measured"
        if self.beyond:
            most, mine = self.one.search.question.apart, asdict(self.strategy)
            return f"nobody has run {in_words({k: mine[k] for k in most if mine[k] > most[k]})}"
        if self.run:
            return f"measured, {self.run.id}"
        return f"split as {self.layout}" if self.layout else "as others run"

    @property
    def too_large(self) -> str:
        """Says of an own run that its memory is predicted above what there is."""
        costs = self.site.fastest.costs
        assert costs is not None
        held = float(costs.peak(costs.split(self.site.fastest.grid.choices[[self.choice.row]]))[0])
        said = f"{held / GB:.3g} GB a GPU are predicted for {notation(self.strategy)}"
        over = held > costs.available
        return f"{said}, of {costs.available / GB:.3g}: it ran" if over and self.run else ""

    @property
    def kind(self) -> tuple[Any, ...]:
        """Twins share it: all that differs is how replicas are used, and what is sharded and spare."""
        s = self.strategy
        return s.tensor, s.pipeline, s.expert, self.beyond, self.run and self.run.id

    @property
    def plainness(self) -> tuple[Any, ...]:
        """By which the plainest of twins comes first."""
        s = self.strategy
        return s.context, s.shard is not None, s.zero_stage, s.micro_batch, self.site.spares


def in_words(degrees: Mapping[str, int]) -> str:
    """Degrees by their short names."""
    return " ".join(f"{_DEGREES[name]}{value}" for name, value in degrees.items())


def merged(rows: Sequence[Row]) -> list[Row]:
    """Of all twins that are as good the plainest, or as a published layout; the best first."""
    kinds: dict[Any, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row.kind, []).append(row)
    found: dict[Any, Row] = {}
    for kind, twins in kinds.items():
        as_run = next((row for row in twins if row.layout), None)
        least = (1 - _AS_GOOD) * max(row.score for row in twins)
        good = same = [row for row in twins if row.score >= least or row is as_run]
        if as_run:
            same = [row for row in good if row.strategy.context == as_run.strategy.context]
        plainest = min(same, key=lambda row: row.plainness)
        found[kind] = replace(plainest, twins=len(good) - 1, layout=as_run.layout if as_run else "")
    for kind, row in [*found.items()]:  # what nobody has run must be better than its twin
        near = found.get((*kind[:3], False, None))
        if row.beyond and near and near.raw >= (1 - _AS_GOOD) * row.raw:
            del found[kind]
    return sorted(found.values(), key=lambda row: -row.score)


def in_groups(rows: Sequence[Row], count: int) -> tuple[list[Row], int]:
    """Rows in their order, what nobody has run last, and how many are in the table, these first.

    A published layout and an own run have a place, and the first where nothing is better by more than
    1 %; what nobody has run has one where its prediction is above those of all others. All other rows
    are the best that are left, and a row says where better ones had to go for it.
    """
    near, far = ([row for row in rows if row.beyond == beyond] for beyond in (False, True))
    needed = [row for row in near if row.run or row.layout]
    tied = (1 - _TIED) * max((row.score for row in near), default=0.0)
    lead = next((row for row in needed if row.score >= tied), None)
    order = [*sorted(near, key=lambda row: (row is not lead, -row.score)), *far]
    needed += [row for row in far[:1] if row.raw > max((one.raw for one in near), default=0.0)]
    first = list(dict.fromkeys([*order[:1], *needed, *order]))[:count]
    rest = [row for row in order if row not in first]
    best = (1 - _TIED) * max((row.score for row in rest if not row.beyond), default=0.0)
    kept = [replace(row, skips=row.score < best) for row in order if row in first]
    return [*kept, *rest], len(kept)


def share_kept(gain: Vector, there: Vector, bounds: Vector, lessons: Lessons) -> Vector:
    """Share of its predicted worth that is expected of each choice.

    ``gain`` is that over the first, ``there`` rows of `features`, ``bounds`` those of errors at 90 %.
    """
    wide = bounds * lessons.stretch(there) / NORMAL
    left = lessons.covariance(there, bounds) * np.outer(wide, wide)
    square = np.maximum(left.diagonal() + left[0, 0] - 2 * left[0], 0)
    less = np.maximum(gain, 0) * square / (_GAIN**2 + square)
    return np.asarray(np.exp(-np.minimum(less, np.sqrt(square))))


def candidates(
    one: JointPlan,
    ask: Callable[..., JointPlan],
    count: int,
    own: Sequence[Run],
    limits: Mapping[str, Any],
) -> list[Row]:
    """Rows to choose from: the best of a search, a published layout, and the fastest own run.

    ``ask`` gives the plan under further limits and other options.
    """
    search, size = one.search, max(KINDS, 2 * count)
    while True:
        near = [Row.of(one, each) for each in search.ranked(size, _near)]
        if len(near) < size or len(merged(near)) >= count:
            break
        size *= 2
    more = size if len(merged(near)) < count else _BEYOND
    far = [Row.of(one, each) for each in search.ranked(more, lambda *row: not _near(*row))]
    return [*near, *far, *measured_row(one, ask, own, limits), *published_row(one, ask, limits)]


def _near(site: Site, row: int) -> bool:
    return not site.fastest.beyond[row]


def usual(model: Transformer, device: Accelerator, own: Sequence[Run]) -> dict[str, int]:
    """Largest degrees of runs of a kind of model, dense or mixture, on GPUs as fast or faster.

    Slower ones with less memory needed more stages. Own runs count wherever they ran.
    """
    numbers = experience().numbers[_alike(model, device)].max(axis=0)
    most = {name: int(numbers[FEATURES.index(name)]) for name in _DEGREES}
    return {k: max([v, *(getattr(run.strategy, k) for run in own)]) for k, v in most.items()}


def _alike(model: Transformer, device: Accelerator) -> NDArray[np.int64]:
    """Runs of whole models of the same kind on as fast or faster accelerators of the vendor.

    Where those are few, on such accelerators of any vendor, else on any.
    """
    past, known = experience(), calibration(device)
    kind = past.of_kind(model.experts > 1)
    chips = {one.family: one for one in map(accelerator, accelerators())}
    least = chips[known.borrowed or known.family].peak["bf16"]
    own, fast = np.zeros_like(kind), np.zeros_like(kind)
    for name, one in chips.items():
        places = past.rows.get((name,), np.arange(0))
        own[places] = one.vendor == device.vendor
        fast[places] = one.peak["bf16"] >= least
    groups = (kind & fast & own, kind & fast)
    return np.flatnonzero(next((one for one in groups if one.sum() >= _FEW), kind))


def published_row(
    one: JointPlan, ask: Callable[..., JointPlan], limits: Mapping[str, Any]
) -> list[Row]:
    """The best choice that is split as a published layout, of the nearest that can be split so here.

    Near are parameters, tokens, number format, family of accelerators and GPUs.
    """
    site, model = one.search.sites[0], one.search.question.workload
    device = site.cluster.accelerator
    assert site.fastest.costs is not None
    assert device is not None
    past, rows, known = experience(), _alike(model, device), calibration(device)
    column = dict(zip(FEATURES, past.numbers[rows].T, strict=True))
    gpus = np.prod([column[name] for name in ("tensor", "pipeline", "data", "context")], axis=0)
    asked = ("bf16", "fp8", "fp4").index(site.fastest.costs.machine.precision)
    apart = (column["format"] - asked) ** 2 + np.log(column["sequence"] / model.sequence) ** 2
    apart += np.log(column["parameters"] / model.parameters) ** 2 / 4
    apart += np.log(gpus / one.cluster.gpus) ** 2 / 4
    apart += ~np.isin(rows, past.rows.get((known.borrowed or known.family,), []))
    apart = np.round(2 * apart)
    spares = sorted({each.spares for each in one.search.sites})
    found, tried, nearest = list[Row](), set[tuple[int, ...]](), np.inf
    for place in np.argsort(apart, kind="stable").tolist():
        split = {name: int(column[name][place]) for name in _SPLIT}
        if len(tried) == _LAYOUTS or apart[place] > nearest:
            break
        if not _within(limits, split) or (*split.values(),) in tried:
            continue
        tried.add((*split.values(),))
        with suppress(ValueError):  # that nothing so fits
            row = _split_so(one, split) or _split_so(ask(split, spares=spares), split)
            if row:
                found.append(replace(row, layout=str(past.runs[rows[place]])))
                nearest = apart[place]
    return sorted(found, key=lambda row: -row.score)[:1]


def _split_so(one: JointPlan, split: Mapping[str, int]) -> Row | None:
    """The best row of a search that has such a split, within what was run."""
    so = {}
    for site in one.search.sites:
        same = [site.fastest.grid.choices[name] == value for name, value in split.items()]
        so[id(site)] = np.all(same, axis=0) & ~site.fastest.beyond
    if not any(each.any() for each in so.values()):
        return None
    best = one.search.best(lambda site, row: bool(so[id(site)][row]))
    return Row.of(one, best) if best else None


def measured_row(
    one: JointPlan, ask: Callable[..., JointPlan], own: Sequence[Run], limits: Mapping[str, Any]
) -> list[Row]:
    """The fastest own run of the model and batch on as many GPUs, within the limits of degrees."""
    question, cluster = one.search.question, one.cluster
    asked = question.workload, question.batch, cluster.gpus, cluster.accelerator
    same = [
        run
        for run in own
        if (run.model, run.global_batch, run.strategy.gpus, run.cluster.accelerator) == asked
        and _within(limits, {name: getattr(run.strategy, name) for name in _DEGREES})
    ]
    if not same:
        return []
    run = max(same, key=lambda run: run.throughput)  # it fitted, whatever is predicted
    found = ask(exactly(run.strategy), spares=0, memory_margin=-np.inf)
    return [Row.of(found, found.choice, run=run)]


def _within(limits: Mapping[str, Any], degrees: Mapping[str, int]) -> bool:
    """Whether limits allow degrees."""
    return all(value in np.atleast_1d(limits.get(k, value)) for k, value in degrees.items())


def exactly(asked: Strategy) -> dict[str, Any]:
    """Limits that leave one strategy."""
    given = {name: value for name, value in asdict(asked).items() if value is not None}
    return given | {"shard": asked.shard_group}
