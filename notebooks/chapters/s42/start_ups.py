"""How the time to start a job grows with its nodes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from relparallel.training.run_logs import StartUp


def start_up_law(nodes: ArrayLike, seconds: ArrayLike) -> StartUp:
    """Law of the start-up of one software on one cluster, by seconds of jobs of three sizes.

    Least squares in all three numbers, none below 0. Beyond the largest size it is an
    extrapolation; other software on the same machine took two to four times as long (`start_ups`).

    >>> from relparallel.training import start_ups
    >>> runs = start_ups().query("software == 'nemo-2023'")
    >>> law = start_up_law(runs["nodes"], runs["seconds"])
    >>> round(law.power, 1), round(law(2048))
    (2.5, 838)
    """
    size, took = np.asarray(nodes, dtype=float), np.asarray(seconds, dtype=float)
    if np.unique(size).size < 3:
        raise ValueError(f"nodes must be of three sizes, got {nodes!r:.80}")

    def fitted(power: Any) -> tuple[NDArray[np.float64], float]:
        found: tuple[NDArray[np.float64], float] = optimize.nnls(
            np.column_stack([np.ones(size.size), (size / 1000) ** power]), took
        )
        return found

    power = float(
        optimize.minimize_scalar(lambda p: fitted(p)[1], bounds=(0.25, 6.0), method="bounded").x
    )
    base, growth = fitted(power)[0].tolist()
    return StartUp(base=base, growth=growth, power=power)
