"""Latency and bandwidth of all-reduces, fitted to measurements, with the error that is left.

Measured were all-reduces of NCCL in one node of A100. The error of the fit itself says little: beside it
stands the error for every number of GPUs that the fit has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_real
from relparallel.parallel._arguments import MOST_DEVICES, bare, require_number, require_whole
from relparallel.published import facts
from relparallel.units import GB, MICROSECOND

if TYPE_CHECKING:
    import pandas as pd

# Typical values: launch, latency, bandwidth, further rounds.
_START: Final = np.array([30e-6, 3e-6, 200 * GB, 0.4])
_WIDE: Final = 1e4  # how far from its typical value a number may lie

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class AllReduceFit:
    """Ring all-reduces: launch + 2 (n - 1) alpha + (2 (n - 1) + x) N/(n B).

    Parameters
    ----------
    launch, latency : float
        Before the first round, and alpha of each round [s].
    bandwidth : float
        B [bytes/s].
    further_rounds : float
        x, bytes of rounds beyond 2 (n - 1): filling the pipeline, copying inside the GPU.

    Examples
    --------
    >>> fit = AllReduceFit(launch=0.0, latency=1e-6, bandwidth=200e9, further_rounds=0.0)
    >>> round(fit.time(ranks=8, size=1e9) * 1e3, 3)
    8.764
    """

    launch: float
    latency: float
    bandwidth: float
    further_rounds: float

    def __post_init__(self) -> None:
        require_number(
            launch=self.launch, latency=self.latency, further_rounds=self.further_rounds, at_least=0
        )
        require_number(bandwidth=self.bandwidth, above=0)

    def time(self, ranks: ArrayLike, size: ArrayLike) -> Any:
        """Return the predicted time.

        Parameters
        ----------
        ranks : array_like of int
            GPUs n.
        size : array_like
            Bytes N.

        Returns
        -------
        float or numpy.ndarray
            Seconds.
        """
        n = require_whole(ranks=ranks, at_least=1, at_most=MOST_DEVICES)
        number = np.asarray(require_real(size=size, at_least=0))
        known = np.array([self.launch, self.latency, self.bandwidth, self.further_rounds])
        return bare(np.where(n > 1, _times(known, n, number), 0.0))


def fit_all_reduce(
    ranks: ArrayLike, size: ArrayLike, time: ArrayLike, *, highest_bandwidth: float
) -> AllReduceFit:
    """Fit launch, latency and bandwidth to measured all-reduces.

    Parameters
    ----------
    ranks : array_like of int
        GPUs of each, [rows], at least 2.
    size : array_like
        Bytes of each, [rows], above 0.
    time : array_like
        Seconds that each took, [rows], above 0.
    highest_bandwidth : float
        What the link gives at most; no fit exceeds it [bytes/s].

    Returns
    -------
    AllReduceFit
        The numbers.

    Notes
    -----
    Least squares of log(predicted/measured), so a short message counts as much as a long one. One straight
    line in the size for each n: protocols change with the size, and what remains is mostly that.

    Examples
    --------
    >>> rows = measured_all_reduces()
    >>> fit = fit_all_reduce(rows["ranks"], rows["size"], rows["time"], highest_bandwidth=300e9)
    >>> round(fit.bandwidth / 1e9), round(fit.launch * 1e6), round(fit.latency * 1e6, 1)
    (226, 38, 2.2)
    """
    from scipy.optimize import least_squares

    n = require_whole(ranks=ranks, at_least=2, at_most=MOST_DEVICES)
    number, seconds = (np.asarray(v) for v in require_real(size=size, time=time, above=0))
    require_number(highest_bandwidth=highest_bandwidth, above=0)
    for name, column in {"ranks": n, "size": number, "time": seconds}.items():
        if column.shape != (n.size,) or n.size < _START.size:
            raise ValueError(
                f"{name} must be one of three equal columns of {_START.size} rows or more, got {column.shape}"
            )
    top = np.log(_START * _WIDE)
    top[2] = np.log(highest_bandwidth)
    low = np.minimum(np.log(_START / _WIDE), top - 1)

    def residuals(point: Floats) -> Floats:
        return np.asarray(np.log(_times(np.exp(point), n, number) / seconds))

    start = np.clip(np.log(_START), low, top - 0.01)
    found = least_squares(residuals, start, bounds=(low, top)).x
    launch, latency, bandwidth, further_rounds = np.exp(found).tolist()
    return AllReduceFit(launch=launch, latency=latency, bandwidth=bandwidth, further_rounds=further_rounds)


def measured_all_reduces() -> pd.DataFrame:
    """Return the published all-reduces in one node of A100.

    Returns
    -------
    pandas.DataFrame
        Indexed by row of the facts; ranks, size [bytes], time [s].

    References
    ----------
    vTrain, MICRO 2024: tables of nccl-tests in its repository.

    Examples
    --------
    >>> measured_all_reduces().loc["NCCL-AR-0042"].tolist()
    [8.0, 1073741824.0, 0.008193]
    """
    import pandas as pd

    rows = {
        key: (fact.inputs["gpus"], fact.inputs["bytes"], fact.values[0])
        for key, fact in facts("parallelism-cost").items()
        if key.startswith("NCCL-AR-")
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["ranks", "size", "time"]).astype(float)
    table["time"] = (table["time"] * MICROSECOND).round(12)
    return table.rename_axis("row")


def all_reduce_errors(rows: pd.DataFrame, *, highest_bandwidth: float) -> pd.DataFrame:
    """Compare measured all-reduces with a fit to all of them, and with fits that have not seen them.

    Parameters
    ----------
    rows : pandas.DataFrame
        Columns ranks, size [bytes] and time [s], as `measured_all_reduces` gives.
    highest_bandwidth : float
        What the link gives at most [bytes/s].

    Returns
    -------
    pandas.DataFrame
        The rows with the errors (predicted over measured - 1) ``in_sample``, ``ranks_left_out``: by a fit to
        the other numbers of GPUs, and ``size_left_out``: by a fit to the other sizes.

    Examples
    --------
    >>> errors = all_reduce_errors(measured_all_reduces(), highest_bandwidth=300e9)
    >>> (100 * errors[["in_sample", "ranks_left_out", "size_left_out"]].abs().mean()).round(1).tolist()
    [5.4, 6.2, 7.2]
    """
    import pandas as pd

    if not isinstance(rows, pd.DataFrame) or not {"ranks", "size", "time"} <= set(rows):
        raise TypeError(f"rows must be a table with columns ranks, size and time, got {str(rows)[:80]}")

    def error(known: pd.DataFrame, asked: pd.DataFrame) -> pd.Series[float]:
        columns = (known[name].to_numpy() for name in ("ranks", "size", "time"))
        fit = fit_all_reduce(*columns, highest_bandwidth=highest_bandwidth)
        return pd.Series(fit.time(asked["ranks"], asked["size"]) / asked["time"] - 1, index=asked.index)

    def left_out(name: str) -> pd.Series[float]:
        parts = [error(rows[rows[name] != value], part) for value, part in rows.groupby(name)]
        return pd.concat(parts).reindex(rows.index)

    return rows.assign(
        in_sample=error(rows, rows),
        ranks_left_out=left_out("ranks"),
        size_left_out=left_out("size"),
    )


def _times(numbers: Floats, n: Floats, size: Floats) -> Floats:
    """Seconds by launch, latency, bandwidth and further rounds."""
    launch, latency, bandwidth, further = numbers
    return np.asarray(launch + 2 * (n - 1) * latency + (2 * (n - 1) + further) * size / n / bandwidth)
