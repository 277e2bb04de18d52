"""How long a job takes to start: a law of its size, from what public runs logged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import real, record, require_real
from relparallel.published import data_folder
from relparallel.training._arguments import LONGEST, MOST_NODES, Real, plain

if TYPE_CHECKING:
    import pandas as pd


@record
class StartUp:
    """Time until a job of n nodes computes, a + b (n / 1000)^p [s]; called with n."""

    base: float = real(at_least=0, at_most=LONGEST)  # of the smallest job, a [s]
    growth: float = real(at_least=0, at_most=LONGEST)  # what a thousand nodes add, b [s]
    power: float = real(above=0, at_most=10)  # p; 2 or more where every rank waits for every other one

    def __call__(self, nodes: Real) -> Real:
        """Seconds for a job of so many nodes."""
        many = require_real(nodes=nodes, at_least=1, at_most=MOST_NODES)
        return plain(self.base + self.growth * (np.asarray(many) / 1000) ** self.power)


def start_up_law(nodes: ArrayLike, seconds: ArrayLike) -> StartUp:
    """Law of the start-up of one software on one cluster.

    Parameters
    ----------
    nodes, seconds : array_like [k]
        Sizes of jobs, at least three different ones, and how long each took [s].

    Returns
    -------
    StartUp
        Least squares in all three numbers, none below 0. Beyond the largest size it is an extrapolation;
        other software on the same machine took two to four times as long (`start_ups`).

    Examples
    --------
    >>> runs = start_ups().query("software == 'nemo-2023'")
    >>> law = start_up_law(runs["nodes"], runs["seconds"])
    >>> round(law.power, 1), round(law(2048))
    (2.5, 838)
    """
    from scipy.optimize import minimize_scalar, nnls

    size, took = (np.atleast_1d(x) for x in (
        require_real(nodes=nodes, at_least=1, at_most=MOST_NODES),
        require_real(seconds=seconds, at_least=0, at_most=LONGEST),
    ))  # fmt: skip
    if size.shape != took.shape or np.unique(size).size < 3:
        raise ValueError(f"nodes must be one for each of the seconds and of three sizes, got {nodes!r:.80}")

    def fitted(power: Any) -> tuple[NDArray[np.float64], float]:
        found: tuple[NDArray[np.float64], float] = nnls(
            np.column_stack([np.ones(size.size), (size / 1000) ** power]), took
        )
        return found

    power = float(minimize_scalar(lambda p: fitted(p)[1], bounds=(0.25, 6.0), method="bounded").x)
    base, growth = fitted(power)[0].tolist()
    return StartUp(base=base, growth=growth, power=power)


def start_ups() -> pd.DataFrame:
    """Start-up times that result logs of MLPerf Training hold, medians of three runs.

    Returns
    -------
    pandas.DataFrame
        Indexed by row: software, accelerator, model, nodes, gpus, source, and seconds from the first
        ``init_start`` of any rank to ``init_stop``. Scheduling and the start of containers are not in it.

    Examples
    --------
    >>> int(start_ups()["nodes"].max())
    1344
    """
    import pandas as pd

    return pd.read_csv(data_folder() / "start_ups.csv", index_col="id")
