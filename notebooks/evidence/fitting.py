"""Calibration: the parameters of a machine from measured steps, with priors and bounds.

A point of the search is the logarithm of every parameter beside its prior, and of every software's
factor. Residuals are logarithms of predicted over measured time, damped beyond 5 % (pseudo-Huber)
because a few runs were disturbed, and weighted so that every set of measurements counts the same
however many rows it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, combinations
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import require_choice, require_instance
from relparallel.parallel.machine_parameters import (
    Calibration,
    factor_names,
    generation,
    priors,
    software,
)
from relparallel.parallel.past_runs import features
from relparallel.parallel.quantities import Rates, Sizes, Split
from relparallel.parallel.run import Run
from relparallel.parallel.step_formula import PARTS, as_rows, step_parts
from relparallel.sweep import map_chunks

_DAMPED: Final = 0.05  # relative error from which a residual counts linearly
_FACTOR_SD: Final = 0.1  # of the logarithm of a software's factor, a priori
_KIND_SD: Final = 0.3  # of that of a kind of layers, in general and in one software
# weight of a prior beside a source: its rows err alike, so that they are worth few
_PRIOR: Final = 5.0
_APART: Final = 0.05  # difference of two measured times from which their order is asked


def calibrate(runs: Sequence[Run]) -> Calibration:
    """Parameters that explain measured steps on one kind of accelerator.

    Parameters
    ----------
    runs : sequence of Run
        On accelerators of one family, which differ in memory only.

    Returns
    -------
    Calibration
        Parameters within their bounds, and a factor for every software among the runs. Its scatter
        is that of these very runs, smaller than that of new ones: intervals are at least as wide as
        those of the shipped calibration (`Experience.log_errors`). Least squares by trust-region
        reflection from the priors, a second for a thousand runs.

    Examples
    --------
    >>> from evidence.training_steps import measured_runs
    >>> runs = [run for run in measured_runs() if run.source in ("PTD-P", "Korthikanti")]
    >>> found = calibrate(runs)
    >>> bool(errors(runs, found)["error"].abs().mean() < 0.05)
    True
    """
    return _calibrated(_Same(tuple(_require_runs(runs))))


@dataclass(frozen=True, eq=False, slots=True)
class _Same:
    """Runs that equal others where they are the very same."""

    runs: tuple[Run, ...]

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.runs)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and list(map(id, self.runs)) == list(map(id, other.runs))


@lru_cache(maxsize=32)  # who leaves out source after source asks again for the fits of others
def _calibrated(asked: _Same) -> Calibration:
    """`calibrate` the runs."""
    problem = _Problem.of(asked.runs)
    values, factors = problem.at(problem.solve().x)
    found = Calibration(family=problem.family, values=values, factors=factors)
    table = errors(asked.runs, found)
    squares = np.square(np.log1p(table["error"])).groupby(table["source"]).mean()
    return replace(found, scatter=float(np.sqrt(squares.mean())))


def cross_validate(
    runs: Sequence[Run], by: str = "source", executor: Executor | None = None
) -> pd.DataFrame:
    """Error of every run, predicted from the groups of runs to which it does not belong.

    Parameters
    ----------
    runs, by : sequence of Run, {"source", "software"}
        On accelerators of one family; what is left out at a time: a set of measurements, or all
        runs of a generation of software. At least two groups.
    executor : concurrent.futures.Executor, optional
        Calibrates for several groups at a time; the errors do not depend on it.

    Returns
    -------
    pandas.DataFrame
        Indexed by run; source, group, ``seen``: whether other runs had the same software; errors
        (predicted over measured - 1): ``raw``, without any row of the group, ``one_factor``, after
        the group's median ratio is divided out, and of two baselines, ``constant``: the median
        share of the peak rate of the other runs, and ``nearest``: that of the run at the least
        ``distance``, Euclidean between the logarithms of sizes and degrees, and 1 for another
        recomputation or number format.

    Examples
    --------
    >>> from evidence.training_steps import measured_runs
    >>> runs = [run for run in measured_runs() if run.source in ("PTD-P", "Korthikanti")]
    >>> len(cross_validate(runs)) == len(runs)
    True
    """
    require_choice(("source", "software"), by=by)
    named = np.array(
        [run.source if by == "source" else generation(run.software) for run in _require_runs(runs)]
    )
    groups = np.unique(named)
    if len(groups) < 2:
        raise ValueError(f"runs must come from at least two {by}s, got {groups.tolist()}")
    return pd.concat(map_chunks(partial(_left_out, tuple(runs), named), groups, executor))


def _left_out(runs: Sequence[Run], named: NDArray[np.str_], group: str) -> pd.DataFrame:
    """Errors of the runs of a group, predicted from the others."""
    left_out = [run for run, name in zip(runs, named, strict=True) if name == group]
    others = [run for run, name in zip(runs, named, strict=True) if name != group]
    found = calibrate(others)
    table = errors(left_out, found)
    ratio = 1 + table["error"]
    table = table[["source"]].assign(
        group=group,
        seen=[found.measured(run.software) for run in left_out],
        raw=table["error"],
        one_factor=ratio / ratio.median() - 1,
    )
    return table.join(_baselines(left_out, others))


def _baselines(runs: Sequence[Run], others: Sequence[Run]) -> pd.DataFrame:
    """Errors of runs that reach the same share of peak as others, and how near the nearest is."""
    best = np.array([run.least_time for run in runs])
    measured = np.array([run.time for run in runs])
    share = np.array([run.least_time / run.time for run in others])
    apart = np.linalg.norm(_features(runs)[:, None] - _features(others), axis=2)
    nearest = np.round(apart, 9).argmin(axis=1)  # of runs as near, the first on every machine
    return pd.DataFrame(
        {
            "constant": best / np.median(share) / measured - 1,
            "nearest": best / share[nearest] / measured - 1,
            "distance": apart.min(axis=1),
        },
        index=pd.Index([run.id for run in runs], name="run"),
    )


def _features(runs: Sequence[Run]) -> NDArray[np.float64]:
    """Where runs lie among others, one row for each."""
    splits = [Split.of(run.strategy, run.global_batch) for run in runs]
    rows = [features(run.model, run.precision, s)[0] for run, s in zip(runs, splits, strict=True)]
    return np.array(rows)


def errors(runs: Sequence[Run], calibration: Calibration) -> pd.DataFrame:
    """Measured and predicted time of runs.

    Parameters
    ----------
    runs, calibration : sequence of Run, Calibration
        On accelerators of the calibration's family.

    Returns
    -------
    pandas.DataFrame
        Indexed by run; source, measured and predicted [s], error (predicted over measured - 1).

    Examples
    --------
    >>> from relparallel.parallel.machine_parameters import calibration
    >>> from evidence.training_steps import measured_runs
    >>> runs = [run for run in measured_runs() if run.source == "PTD-P"]
    >>> bool(errors(runs, calibration("a100-80gb"))["error"].abs().max() < 0.06)
    True
    """
    require_instance(Calibration, calibration=calibration)
    parts = np.empty((len(_require_runs(runs)), len(PARTS)))
    for some in _alike(runs, calibration):
        parts[some.place] = some.parts(some.rates)
    predicted = parts.sum(axis=1)
    measured = np.array([run.time for run in runs])
    return pd.DataFrame(
        {
            "source": [run.source for run in runs],
            "measured": measured,
            "predicted": predicted,
            "error": predicted / measured - 1,
        },
        index=pd.Index([run.id for run in runs], name="run"),
    )


def strategy_order(runs: Sequence[Run], error: pd.Series) -> pd.DataFrame:
    """Pairs of strategies for a model, batch and cluster of a source, and the share in right order.

    ``error`` of every run is predicted over measured - 1. Measured times less than 5 % apart are
    not asked about: a run that is repeated differs by as much. Indexed by source; ``rows`` are the
    pairs.
    """
    alike: dict[Any, list[Run]] = {}
    for run in _require_runs(runs):
        device = run.cluster.accelerator
        place = device and device.name, run.strategy.gpus, run.cluster.network_bandwidth
        question = run.source, run.software, run.precision, run.model, run.global_batch, place
        alike.setdefault(question, []).append(run)
    found = []
    for first, second in chain.from_iterable(combinations(group, 2) for group in alike.values()):
        apart = np.log(first.time / second.time)
        if first.strategy != second.strategy and abs(apart) > _APART:
            predicted = apart + np.log1p(error[first.id]) - np.log1p(error[second.id])
            found.append((first.source, apart * predicted > 0))
    pairs = pd.DataFrame(found, columns=["source", "right"]).astype({"right": float})
    right = pairs.groupby("source")["right"]
    return pd.DataFrame({"rows": right.size(), "mean": right.mean()})


def parameter_evidence(runs: Sequence[Run]) -> pd.DataFrame:
    """What runs say of every parameter.

    ``value``; ``away``: prior standard deviations from the prior, of the logarithm; ``at_bound``;
    ``left``: standard deviation after the fit over that before it, from the Jacobian, 1 where the
    runs say nothing.
    """
    problem = _Problem.of(_require_runs(runs))
    solution = problem.solve()
    value, log_sd, highest = problem.prior
    count = len(problem.names)
    point = solution.x[:count]
    spread = np.sqrt(np.diag(np.linalg.inv(solution.jac.T @ solution.jac)))[:count]
    found = np.minimum(value * np.exp(point), highest)
    return pd.DataFrame(
        {
            "value": found,
            "away": np.log(found / value) / log_sd,
            "at_bound": found > 0.999 * highest,
            "left": np.minimum(_PRIOR * spread / log_sd, 1),
        },
        index=pd.Index(problem.names, name="parameter"),
    )


class _Alike(NamedTuple):
    """Runs of whose steps the formula has the same terms, as columns."""

    place: NDArray[np.int64]
    sizes: Sizes
    rates: Rates
    split: Split

    def parts(self, rates: Rates) -> NDArray[np.float64]:
        """Parts of the step of every run with some rates [s], [n, parts]."""
        return as_rows(step_parts(self.sizes, rates, self.split))


def _alike(runs: Sequence[Run], calibration: Calibration) -> tuple[_Alike, ...]:
    """All runs: those together whose layers, and whose attention, are of the same kinds."""
    rows = [
        (
            Sizes.of(run.model),
            Rates.of(
                run.cluster, calibration, software(run.software), run.precision, run.model.kind
            ),
            Split.of(run.strategy, run.global_batch),
        )
        for run in runs
    ]
    groups: dict[Any, list[int]] = {}
    for place, (sizes, h, _) in enumerate(rows):
        kinds = sizes.dense > 0, sizes.mixture > 0, sizes.shared > 0, sizes.mixer > 0
        groups.setdefault((*kinds, h.flash_attention > 0), []).append(place)
    found = []
    for places in groups.values():
        columns = [
            zip(*records, strict=True) for records in zip(*(rows[k] for k in places), strict=True)
        ]
        of_all = (
            kind(*map(np.array, one))
            for kind, one in zip((Sizes, Rates, Split), columns, strict=True)
        )
        found.append(_Alike(np.array(places), *of_all))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """Runs as columns; ``prior`` holds value, log_sd and highest of every parameter."""

    family: str
    names: tuple[str, ...]
    prior: NDArray[np.float64]
    factors: tuple[str, ...]
    has: NDArray[np.float64]  # which of the factors each run has, [factors, runs]
    factor_sd: NDArray[np.float64]
    weight: NDArray[np.float64]
    log_time: NDArray[np.float64]
    alike: tuple[_Alike, ...]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> _Problem:
        families = {run.family for run in runs}
        if len(families) != 1:
            raise ValueError(f"runs must be on accelerators of one family, got {sorted(families)}")
        device = runs[0].cluster.accelerator
        assert device is not None
        known, made = priors(device), [factor_names(run.software, run.model.kind) for run in runs]
        factors = tuple(sorted(set(chain.from_iterable(made))))
        kinds = {run.model.kind for run in runs}
        values = {name: prior.value for name, prior in known.items()}
        blank = Calibration(family=device.family, values=values, factors={})
        sources = pd.Series([run.source for run in runs])
        return cls(
            family=device.family,
            names=tuple(known),
            factors=factors,
            has=np.array([[float(one in names) for names in made] for one in factors]),
            factor_sd=np.where(
                [one in kinds or " " in one for one in factors], _KIND_SD, _FACTOR_SD
            ),
            alike=_alike(runs, blank),
            prior=np.array(
                [(prior.value, prior.log_sd, prior.highest) for prior in known.values()]
            ).T,
            weight=12 / np.sqrt(sources.map(sources.value_counts()).to_numpy(dtype=np.float64)),
            log_time=np.log([run.time for run in runs]),
        )

    def solve(self, start: NDArray[np.float64] | None = None) -> Any:
        """Least squares from the priors, or from another point."""
        from scipy.optimize import least_squares

        value, log_sd, highest = self.prior
        scale = np.concatenate([log_sd, self.factor_sd])
        bounds = np.concatenate([np.log(highest / value), np.full(self.factor_sd.size, np.inf)])
        first = np.zeros(scale.size) if start is None else np.minimum(start, bounds - 1e-3 * scale)
        return least_squares(
            self.residuals,
            first,
            jac=partial(self.slopes, bounds=bounds),
            bounds=(-np.inf, bounds),
            x_scale=scale,
            max_nfev=200,
            ftol=1e-6,
        )

    def at(self, point: NDArray[np.float64]) -> tuple[dict[str, float], dict[str, float]]:
        """Parameters and factors at a point."""
        start, _, highest = self.prior
        values = np.minimum(start * np.exp(point[: len(self.names)]), highest)
        factors = np.exp(point[len(self.names) :])
        return (
            dict(zip(self.names, values.tolist(), strict=True)),
            dict(zip(self.factors, factors.tolist(), strict=True)),
        )

    def residuals(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """What least squares makes small: damped errors, and the way from the priors."""
        start, log_sd, highest = self.prior
        count = len(self.names)
        values = np.minimum(start * np.exp(points[..., :count]), highest)
        factors = np.exp(points[..., count:] @ self.has)
        predicted = np.empty(factors.shape)
        for some in self.alike:
            given = {name: values[..., [i]] for i, name in enumerate(self.names)}
            rates = some.rates._replace(**given, factor=factors[..., some.place])
            predicted[..., some.place] = some.parts(rates).sum(axis=-1)
        error = (np.log(predicted) - self.log_time) / _DAMPED
        damped = np.sign(error) * np.sqrt(2 * (np.hypot(1, error) - 1))
        away = points / np.concatenate([log_sd, self.factor_sd])
        return np.concatenate([self.weight * damped, _PRIOR * away], axis=-1)

    def slopes(
        self, point: NDArray[np.float64], bounds: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Jacobian of the residuals by forward differences, as scipy takes them one by one.

        All steps go through the formula in one call: what no parameter touches, such as how layers
        are dealt out, is computed once.
        """
        step = np.sqrt(np.finfo(float).eps) * np.where(point < 0, -1, 1)
        step = step * np.maximum(1, np.abs(point))
        step = np.where(point + step > bounds, -step, step)  # a step out of the bounds goes back
        change = self.residuals(point + np.diag(step)) - self.residuals(point)
        found: NDArray[np.float64] = (change / (point + step - point)[:, None]).T
        return found


def _require_runs(runs: Any) -> Sequence[Run]:
    """Return the runs if they are some."""
    require_instance(Sequence, runs=runs)
    if not runs or isinstance(runs, str):
        raise ValueError(f"runs must hold at least one Run, got {runs!r}")
    for one in runs:
        require_instance(Run, runs=one)
    return runs  # type: ignore[no-any-return]
