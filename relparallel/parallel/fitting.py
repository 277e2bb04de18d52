"""Calibration: the parameters of a machine from measured steps, with priors and bounds.

A point of the search is the logarithm of every parameter beside its prior, and of every software's factor.
Residuals are logarithms of predicted over measured time, damped beyond 5 % (pseudo-Huber) because a few runs
were disturbed, and weighted so that every set of measurements counts the same however many rows it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import require_instance
from relparallel.parallel._kernel import PARTS
from relparallel.parallel._records import choice_record, machine_record, model_record, step_parts
from relparallel.parallel.calibration import HOST_BOUND, REGIMES, Calibration, priors, software
from relparallel.parallel.measured_runs import Run

_DAMPED: Final = 0.05  # relative error from which a residual counts linearly
_FACTOR_SD: Final = 0.1  # of the logarithm of a software's factor, a priori
_PRIOR: Final = 0.7  # weight of a prior beside a typical measurement
_LEVELS: Final = (0.5, 0.68, 0.8, 0.9, 0.95, 0.99)


def calibrate(runs: Sequence[Run]) -> Calibration:
    """Parameters that explain measured steps on one kind of accelerator.

    Parameters
    ----------
    runs : sequence of Run
        On accelerators of one family, which differ in memory only.

    Returns
    -------
    Calibration
        Parameters within their bounds, and a factor for every software among the runs; without a scatter, for
        that of these very runs would be smaller than that of new ones (`prediction_scatter`). Least squares
        by trust-region reflection from the priors, a second for a thousand runs.

    Examples
    --------
    >>> from relparallel.parallel.measured_runs import measured_runs
    >>> runs = [run for run in measured_runs() if run.source in ("PTD-P", "Korthikanti")]
    >>> found = calibrate(runs)
    >>> bool(errors(runs, found)["error"].abs().mean() < 0.05)
    True
    """
    from scipy.optimize import least_squares

    problem = _Problem.of(_require_runs(runs))
    start = np.zeros(len(problem.names) + len(problem.softwares))
    values, factors = problem.at(least_squares(problem.residuals, start, max_nfev=80).x)
    return Calibration(family=problem.family, values=values, factors=factors, scatter={})


def cross_validate(runs: Sequence[Run]) -> pd.DataFrame:
    """Error of every run, predicted from the sets of measurements to which it does not belong.

    Parameters
    ----------
    runs : sequence of Run
        On accelerators of one family, from at least two sources.

    Returns
    -------
    pandas.DataFrame
        Indexed by run; source, regime, ``raw``: predicted over measured - 1 without any row of the source,
        and ``one_factor``: the same after the source's median ratio is divided out.

    Examples
    --------
    >>> from relparallel.parallel.measured_runs import measured_runs
    >>> runs = [run for run in measured_runs() if run.source in ("PTD-P", "Korthikanti")]
    >>> len(cross_validate(runs)) == len(runs)
    True
    """
    sources = sorted({run.source for run in _require_runs(runs)})
    if len(sources) < 2:
        raise ValueError(f"runs must come from at least two sources, got {sources}")
    tables = []
    for source in sources:
        left_out = [run for run in runs if run.source == source]
        found = calibrate([run for run in runs if run.source != source])
        table = errors(left_out, found)
        ratio = 1 + table["error"]
        tables.append(
            table[["source", "regime"]].assign(raw=table["error"], one_factor=ratio / ratio.median() - 1)
        )
    return pd.concat(tables)


def errors(runs: Sequence[Run], calibration: Calibration) -> pd.DataFrame:
    """Measured and predicted time of runs.

    Parameters
    ----------
    runs, calibration : sequence of Run, Calibration
        On accelerators of the calibration's family.

    Returns
    -------
    pandas.DataFrame
        Indexed by run; source, measured and predicted [s], error (predicted over measured - 1), regime (what
        the step waits for).

    Examples
    --------
    >>> from relparallel.parallel.calibration import calibration
    >>> from relparallel.parallel.measured_runs import measured_runs
    >>> runs = [run for run in measured_runs() if run.source == "PTD-P"]
    >>> bool(errors(runs, calibration("a100-80gb"))["error"].abs().max() < 0.06)
    True
    """
    require_instance(Calibration, calibration=calibration)
    models, machines, choices = _records(_require_runs(runs), calibration)
    parts = step_parts(models, machines, choices)
    predicted = parts.sum(axis=1)
    waiting = parts[:, PARTS.index("launch")] > HOST_BOUND * predicted
    measured = np.array([run.time for run in runs])
    return pd.DataFrame(
        {
            "source": [run.source for run in runs],
            "measured": measured,
            "predicted": predicted,
            "error": predicted / measured - 1,
            "regime": np.where(waiting, "host", "kernels"),
        },
        index=pd.Index([run.id for run in runs], name="run"),
    )


def prediction_scatter(crossed: pd.DataFrame) -> dict[str, dict[float, float]]:
    """By regime, level to the bound of abs(log(predicted / measured)) that this share of left-out runs keeps.

    ``crossed`` is what `cross_validate` gives; of all runs where a regime has none.
    """
    require_instance(pd.DataFrame, crossed=crossed)
    size = np.abs(np.log1p(crossed["one_factor"]))
    found = {}
    for regime in REGIMES:
        own = crossed["regime"] == regime
        bounds = np.quantile(size[own] if own.any() else size, _LEVELS)
        found[regime] = dict(zip(_LEVELS, bounds.tolist(), strict=True))
    return found


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """Runs as rows of the kernel; ``prior`` holds value, log_sd and highest of every parameter."""

    family: str
    names: tuple[str, ...]
    prior: NDArray[np.float64]
    softwares: tuple[str, ...]
    generation: NDArray[np.int64]
    weight: NDArray[np.float64]
    log_time: NDArray[np.float64]
    rows: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> _Problem:
        families = {run.family for run in runs}
        if len(families) != 1:
            raise ValueError(f"runs must be on accelerators of one family, got {sorted(families)}")
        device = runs[0].cluster.accelerator
        assert device is not None
        known, softwares = priors(device), tuple(sorted({run.software for run in runs}))
        values = {name: prior.value for name, prior in known.items()}
        blank = Calibration(family=device.family, values=values, factors={}, scatter={})
        sources = pd.Series([run.source for run in runs])
        return cls(
            family=device.family, names=tuple(known), softwares=softwares, rows=_records(runs, blank),
            prior=np.array([(prior.value, prior.log_sd, prior.highest) for prior in known.values()]).T,
            generation=np.array([softwares.index(run.software) for run in runs]),
            weight=12 / np.sqrt(sources.map(sources.value_counts()).to_numpy(dtype=np.float64)),
            log_time=np.log([run.time for run in runs]),
        )  # fmt: skip

    def at(self, point: NDArray[np.float64]) -> tuple[dict[str, float], dict[str, float]]:
        """Parameters and factors at a point."""
        start, _, highest = self.prior
        values = np.minimum(start * np.exp(point[: len(self.names)]), highest)
        factors = np.exp(point[len(self.names) :])
        return (
            dict(zip(self.names, values.tolist(), strict=True)),
            dict(zip(self.softwares, factors.tolist(), strict=True)),
        )

    def residuals(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """What least squares makes small: damped errors, and the way from the priors."""
        models, machines, choices = self.rows
        values, factors = self.at(point)
        for name, value in values.items():
            machines[name] = value
        machines["factor"] = np.array(list(factors.values()))[self.generation]
        predicted = step_parts(models, machines, choices).sum(axis=1)
        error = (np.log(predicted) - self.log_time) / _DAMPED
        damped = np.sign(error) * np.sqrt(2 * (np.hypot(1, error) - 1))
        away = point / np.concatenate([self.prior[1], np.full(len(self.softwares), _FACTOR_SD)])
        return np.concatenate([self.weight * damped, _PRIOR * away])


def _require_runs(runs: Any) -> Sequence[Run]:
    """Return the runs if they are some."""
    require_instance(Sequence, runs=runs)
    if not runs or isinstance(runs, str):
        raise ValueError(f"runs must hold at least one Run, got {runs!r}")
    for one in runs:
        require_instance(Run, runs=one)
    return runs  # type: ignore[no-any-return]


def _records(
    runs: Sequence[Run], calibration: Calibration
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows of the kernel, one of each kind for every run."""
    return (
        np.concatenate([model_record(one.model) for one in runs]),
        np.concatenate(
            [machine_record(one.cluster, calibration, software(one.software), one.precision) for one in runs]
        ),
        np.concatenate([choice_record(one.strategy, one.global_batch) for one in runs]),
    )
