"""What own runs say of other predictions, of near ones more than of far ones, and how sure that is.

The logarithm of measured over predicted time is taken for a Student process. Half of its variance
is a factor that the runs of a model share, the other half depends on degrees as well; both stay with
models that are near in size, kind and number format, for the signs of errors differ between models.
A run repeats to 4 %. The scale is learnt too, with two degrees of freedom before the first run, when
the interval is that of `step_time`; where runs explain nothing it stays what it was. On published
runs a factor for all models, of any share or of one that the runs choose, did more harm than good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import Result, require_choice
from relparallel.hardware import Accelerator, Cluster
from relparallel.parallel.machine_parameters import (
    Calibration,
    calibration,
    described,
    newest_software,
    softwares,
)
from relparallel.parallel.past_runs import FEATURES, REACH, experience, features
from relparallel.parallel.quantities import Split
from relparallel.parallel.run import Run
from relparallel.parallel.step import StepTime, step_time
from relparallel.parallel.strategy import Strategy
from relparallel.parallel.strategy_text import notation
from relparallel.workload import Transformer

if TYPE_CHECKING:
    import pandas as pd

_SHARED: Final = 0.5  # of the variance before any run: the factor that the runs of a model share
_MODELS: Final = 1.0  # distance between models over which errors stay alike; of degrees it is REACH
_OF_MODEL: Final = np.array([name not in Split._fields for name in FEATURES])
_REPEAT: Final = 0.04  # standard deviation of the logarithm of a run that is repeated
_FREEDOM: Final = 2.0  # of Student's t before any run
DRAWS: Final = 4096
_OFF: Final = 10.0  # a run so many times its prediction is questioned
Vector = NDArray[np.float64]


def _alike(one: Vector, other: Vector) -> Vector:
    """Covariance of errors before any run, of variance 1."""
    from scipy.spatial.distance import cdist

    models, degrees = (
        np.exp(-cdist(one[:, kind], other[:, kind], "sqeuclidean") / (2 * reach**2))
        for kind, reach in ((_OF_MODEL, _MODELS), (~_OF_MODEL, REACH))
    )
    return np.asarray(models * (_SHARED + (1 - _SHARED) * degrees))


def _quantile(level: float, freedom: Vector | float) -> Vector:
    """Bound of Student's t at a level."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, (1 + level) / 2))


def _repeat(bound: Vector) -> Vector:
    """Variance of a run that is repeated, beside that of an error with a 90 % bound before any run."""
    return np.asarray((_REPEAT * _quantile(0.9, _FREEDOM) / bound) ** 2)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lessons:
    """What n runs with one software on one kind of accelerator say; n may be 0.

    ``rules``: the known software that it is priced as; ``log_ratio``: logarithm of measured over
    predicted time; ``bound``: of its size, at 90 %, before any run.
    """

    software: str
    rules: str
    runs: tuple[Run, ...] = ()
    features: Vector = field(default_factory=lambda: np.empty((0, len(FEATURES))))
    log_ratio: Vector = field(default_factory=lambda: np.empty(0))
    bound: Vector = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, runs: Sequence[Run], accept: bool = False) -> Lessons:
        """What runs say; one ten times off its prediction is refused unless all are accepted."""
        device, name = require_device(runs[0].cluster), runs[0].software
        nothing = cls(software=name, rules=_rules(name, device))
        rows, log_ratio, bounds = [], [], []
        for run in runs:
            given = run.model, run.strategy, run.cluster, run.global_batch
            before = nothing.predict(*given, precision=run.precision)
            off = run.time / before.total
            if not accept and not 1 / _OFF < off < _OFF:
                raise ValueError(
                    f"runs must be near what is predicted, got {run.time:.4g} s of {run.id} for "
                    f"{before.total:.4g} s: check unit, batch and GPUs; accept=True learns it"
                )
            s = Split.of(run.strategy, run.global_batch)
            rows.append(features(run.model, run.precision, s))
            log_ratio.append(np.log(off))
            bounds.append(np.log(before.interval()[1] / before.total))
        return replace(
            nothing,
            runs=tuple(runs),
            features=np.concatenate(rows),
            log_ratio=np.array(log_ratio),
            bound=np.array(bounds),
        )

    def without(self, run: int) -> Lessons:
        """The same of all runs but one."""
        parts = ("features", "log_ratio", "bound")
        kept: dict[str, Any] = {name: np.delete(getattr(self, name), run, 0) for name in parts}
        return replace(self, **kept)

    @property
    def before(self) -> Lessons:
        """What was known before any run."""
        return Lessons(software=self.software, rules=self.rules)

    def freedom(self, there: Vector) -> Vector:
        """Degrees of freedom of the errors that are left: as many more as runs explain of them."""
        known = _alike(there, self.features)
        return np.asarray(
            _FREEDOM + self.log_ratio.size * (known * self._solved(known.T).T).sum(axis=1)
        )

    def shift(self, there: Vector) -> Vector:
        """Expected logarithm of measured over predicted time at rows of `features`."""
        return np.asarray(_alike(there, self.features) @ self._solved(self.log_ratio))

    def factors(self, model: Transformer, precision: str, s: Split) -> Vector:
        """Expected measured over predicted time of the strategies of a grid, on its own axes."""
        found = np.exp(self.shift(features(model, precision, s)))
        return np.reshape(found, np.broadcast_shapes(*map(np.shape, s)))

    def covariance(self, there: Vector, bound: Vector) -> Vector:
        """What is left of the covariance of errors, whose 90 % bound was given; 1 was their variance."""
        known = _alike(there, self.features)
        left = _alike(there, there) - known @ self._solved(known.T)
        repeat = _repeat(bound)
        root = np.sqrt(1 + repeat)
        return np.asarray((left + np.diag(repeat)) / root[:, None] / root)

    def stretch(self, there: Vector, level: float = 0.9) -> Vector:
        """How much the runs stretch intervals at a level, beside what they explain."""
        known, freedom = self.log_ratio * _quantile(0.9, _FREEDOM) / self.bound, self.freedom(there)
        of_each = known @ self._solved(known) / max(known.size, 1)  # 1 as expected
        scale = (_FREEDOM + (freedom - _FREEDOM) * of_each) / freedom
        return np.asarray(np.sqrt(scale) * _quantile(level, freedom) / _quantile(level, _FREEDOM))

    def factor(self) -> tuple[float, float, float]:
        """Measured over predicted time at the runs, on average, and its 90 % interval."""
        known = _alike(self.features, self.features).mean(axis=0)
        shift, less = known @ self._solved(np.column_stack([self.log_ratio, known]))
        wide = (self.bound * self.stretch(self.features)).mean() * np.sqrt(known.mean() - less)
        return float(np.exp(shift)), float(np.exp(shift - wide)), float(np.exp(shift + wide))

    def predict(
        self,
        model: Transformer,
        strategy: Strategy,
        cluster: Cluster,
        global_batch: int,
        precision: str = "bf16",
        **options: Any,
    ) -> StepTime:
        """`step_time` after the runs, with its arguments."""
        options |= {"software": self.rules, "precision": precision}
        step = step_time(model, strategy, cluster, global_batch, **options)
        known = calibration(require_device(cluster))
        return self.taught(step, known, model, precision, Split.of(strategy, global_batch))

    def taught(
        self, step: StepTime, known: Calibration, model: Transformer, precision: str, s: Split
    ) -> StepTime:
        """A step of `step_time` with what the runs say of it; ``s`` is its strategy."""
        if self.software == self.rules and not self.log_ratio.size:
            return step
        there, levels = features(model, precision, s), step.log_errors
        if not described(self.software):
            levels = experience().log_errors(there, step.mfu, known, precision, self.software)
        bound = np.interp([0.9], *np.transpose([(0.0, 0.0), *levels]))
        left = float(np.sqrt(self.covariance(there, bound)[0, 0]))
        factor = float(np.exp(self.shift(there)[0]))
        seconds = step.to_frame()["seconds"]
        changed: dict[str, Any] = {
            **dict(zip(map(str, seconds.index), factor * seconds, strict=True)),
            "mfu": step.mfu / factor,
            "software": self.software,
            "log_errors": tuple(
                (one, left * float(self.stretch(there, one)[0]) * size) for one, size in levels
            ),
        }
        apart = np.sqrt(np.square(self.features - there).sum(axis=1))
        if apart.size and apart.min() < step.distance:
            changed |= {"nearest": self.runs[apart.argmin()].id, "distance": float(apart.min())}
        priced = f", priced as {self.rules}" if self.rules != self.software else ""
        said = f"own runs with {self.software} ({self.log_ratio.size}): times {factor:.3f}{priced}"
        logs = (run.said for run in self.runs if run.said)
        return replace(step, **changed, notes=(said, *logs, *step.notes))

    def shares(self, score: Vector, there: Vector, bound: Vector) -> Vector:
        """Share of the best that each strategy gives in many draws of the errors, [draws, strategies].

        One at a row of `features` gives its score over exp(error); ``bound`` is that of the error at
        90 %, before any run.
        """
        worth = np.log(np.maximum(score, 1e-300)) - self.errors(there, bound)
        return np.asarray(np.exp(worth - worth.max(axis=1, keepdims=True)))

    def errors(self, there: Vector, bound: Vector, seed: int = 0) -> Vector:
        """Draws of log(measured / predicted) at rows of `features`, [draws, rows], about their mean."""
        rng, size, freedom = np.random.default_rng(seed), len(bound), self.freedom(there).mean()
        root = np.linalg.cholesky(self.covariance(there, bound) + 1e-9 * np.eye(size))
        errors = rng.standard_normal((DRAWS, size)) @ root.T
        errors *= np.sqrt(freedom / rng.chisquare(freedom, (DRAWS, 1)))
        return np.asarray(errors * (bound * self.stretch(there) / _quantile(0.9, freedom)))

    def _solved(self, right: Vector) -> Vector:
        """The covariance of the runs, inverted, times columns."""
        own = _alike(self.features, self.features) + np.diag(_repeat(self.bound))
        return np.asarray(np.linalg.solve(own, right))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Learned(Result):
    """Own runs, and what they say of other strategies: `predict`, or `plan` with ``measured``."""

    lessons: tuple[Lessons, ...]  # of each software on each kind of accelerator

    @classmethod
    def of(cls, runs: Sequence[Run], accept: bool = False) -> Learned:
        """What runs say, those with one software on one kind of accelerator together."""
        groups: dict[tuple[str, str], list[Run]] = {}
        for run in runs:
            groups.setdefault((run.family, run.software), []).append(run)
        return cls(lessons=tuple(Lessons.of(own, accept) for own in groups.values()))

    def about(self, device: Accelerator, software: str | None = None) -> Lessons:
        """Lessons on an accelerator, with the software of most runs on it where none is named."""
        on = [own for own in self.lessons if own.runs[0].family == device.family]
        if software is None:
            most = max(on, key=lambda own: own.log_ratio.size, default=None)
            software = most.software if most else newest_software(device)
        if not described(software):
            known = {*softwares(), *(own.software for own in self.lessons)}
            require_choice(known, software=software)
        nothing = Lessons(software=software, rules=_rules(software, device))
        return next((own for own in on if own.software == software), nothing)

    def predict(
        self,
        model: Transformer,
        strategy: Strategy,
        cluster: Cluster,
        global_batch: int,
        *,
        software: str | None = None,
        precision: str = "bf16",
        **options: Any,
    ) -> StepTime:
        """`step_time` after the runs, with its arguments; software is that of the runs where omitted."""
        own = self.about(require_device(cluster), software)
        return own.predict(model, strategy, cluster, global_batch, precision, **options)

    def factors(self) -> pd.DataFrame:
        """By accelerators and software: runs, and their factor on average, with its 90 % interval."""
        import pandas as pd

        rows = [
            (own.runs[0].family, own.software, len(own.runs), *own.factor()) for own in self.lessons
        ]
        names = ["accelerator", "software", "runs", "factor", "from", "to"]
        return pd.DataFrame(rows, columns=names).set_index(names[:2])

    def to_frame(self) -> pd.DataFrame:
        """By run: seconds measured, predicted before and after, and by the other runs, with 90 % bounds."""
        import pandas as pd

        rows = []
        for own in self.lessons:
            after = np.exp(own.shift(own.features) - own.log_ratio)
            for place, run in enumerate(own.runs):
                others, there = own.without(place), own.features[[place]]
                bound = own.bound[[place]]
                wide = others.stretch(there) * bound * np.sqrt(others.covariance(there, bound)[0])
                shift = others.shift(there) - own.log_ratio[place]
                ratios = np.exp([-own.log_ratio[place], *shift, *(shift - wide), *(shift + wide)])
                seconds = run.time * np.array([1.0, ratios[0], after[place], *ratios[1:]])
                rows.append((run.id, own.software, notation(run.strategy), *seconds.tolist()))
        names = "run", "software", "strategy", "measured", "predicted", "learnt"
        return pd.DataFrame(rows, columns=[*names, "left out", "from", "to"]).set_index("run")

    def _said(self) -> str:
        return "; ".join(
            f"{software} on {family}: times {factor:.3f} ({low:.3f} to {high:.3f}) by {count} runs"
            for (family, software), count, factor, low, high in self.factors().itertuples()
        )


def require_device(cluster: Cluster) -> Accelerator:
    """Accelerator of a cluster that has one."""
    if cluster.accelerator is None:
        raise ValueError(f"cluster must have an accelerator, got {cluster!r}")
    return cluster.accelerator


def _rules(software: str, device: Accelerator) -> str:
    """Known software as which another is priced: the newest on the accelerator."""
    return software if described(software) else newest_software(device)
