"""What a job reaches under failures: one report for closed forms, the Markov chain and simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import (
    require_real,
)
from relparallel.training._arguments import (
    normal_percentiles,
    require_time,
    skewness_over,
)
from relparallel.units import DAY, HOUR

if TYPE_CHECKING:
    import pandas as pd

BUCKETS: Final = (
    "productive", "checkpoint", "lost", "detection", "restart", "waiting", "degraded", "planned",
)  # fmt: skip
"""Where the wall time goes: productive; writing checkpoints; work that is done again; until a failure is
noticed; restarts and pauses; waiting for nodes; speed that missing or slow parts cost, as time; planned."""
REPORT_METHODS: Final = ("closed", "markov", "simulation")
_WORDS: Final = {
    "checkpoint": "writing checkpoints", "lost": "work done twice", "detection": "failures not yet noticed",
    "restart": "restarts and pauses", "waiting": "waiting for nodes", "degraded": "missing or slow parts",
    "planned": "planned stops",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GoodputReport:
    """Share of the wall time that becomes saved work at full speed, its spread, and where the rest goes.

    Parameters
    ----------
    buckets : mapping of str to float
        Share of the wall time in each of `BUCKETS`; they sum to 1.
    variance_rate : float
        Variance of the productive share over a long run, times the length of the run [s].
    horizon : float
        Wall time of the run that `sd` and the percentiles are for [s].
    step_time : float
        Time of a step with everything up [s].
    gpus : int
        GPUs that are paid for, spares included.
    mtti : pandas.Series
        Mean time between interruptions by class [s]; infinite for what does not interrupt.
    state_loss_rate : float
        Failures per second after which nothing but the last level of checkpoints has the training state.
    importance : pandas.DataFrame
        One row per class; see `goodput`.
    interval : float
        Work between two checkpoints [s]; infinite where nothing goes back.
    method : {"closed", "markov", "simulation"}
        How it was found.
    tokens_per_step : float, optional
        Tokens of a global batch.
    brackets : mapping of str to (float, float), optional
        Confidence interval of each bucket, where it was simulated.
    samples : numpy.ndarray, optional
        Productive shares of simulated runs of the horizon.
    third_rate : float
        Third central moment of the productive share over a long run, times the square of its length [s^2].

    Notes
    -----
    The share over a run of length T is nearly normal with variance ``variance_rate / T``, the central limit
    theorem of renewal-reward processes: T must hold many failures.

    References
    ----------
    Asmussen, "Applied Probability and Queues", 2nd ed., 2003, chapter VI.3.

    Examples
    --------
    >>> import pandas as pd
    >>> report = GoodputReport(
    ...     buckets=dict.fromkeys(BUCKETS, 0.0) | {"productive": 0.9, "lost": 0.1}, variance_rate=40.0,
    ...     horizon=86400.0, step_time=5.0, gpus=16384, mtti=pd.Series({"GPU": 11132.0}), state_loss_rate=0.0,
    ...     importance=pd.DataFrame({"elasticity": {"GPU": -0.1}}), interval=600.0, method="closed",
    ... )
    >>> report.mean, report.percentiles((5, 50, 95)).round(3).tolist()
    (0.9, [0.865, 0.9, 0.935])
    """

    buckets: Mapping[str, float]
    variance_rate: float
    horizon: float
    step_time: float
    gpus: int
    mtti: pd.Series
    state_loss_rate: float
    importance: pd.DataFrame
    interval: float
    method: str
    tokens_per_step: float | None = None
    brackets: Mapping[str, tuple[float, float]] | None = None
    samples: NDArray[np.float64] | None = None
    third_rate: float = 0.0

    @property
    def mean(self) -> float:
        """Mean productive share of the wall time."""
        return self.buckets["productive"]

    @property
    def sd(self) -> float:
        """Standard deviation of the productive share over the horizon."""
        return float(np.sqrt(self.variance_rate / self.horizon))

    def percentiles(
        self, levels: tuple[float, ...] = (5, 50, 95), horizon: float | None = None
    ) -> NDArray[np.float64]:
        """Return percentiles (levels in percent) of the productive share over a run of a length [s].

        Of the simulated runs where there are any of this horizon, else of a nearly normal law with the
        skewness third_rate / sqrt(variance_rate^3 T).
        """
        percent = require_real(levels=np.asarray(levels, dtype=np.float64), at_least=0, at_most=100)
        length = require_time(horizon=self.horizon if horizon is None else horizon, positive=True)
        if self.samples is not None and length == self.horizon:
            return np.asarray(np.percentile(self.samples, percent), dtype=np.float64)
        spread, skewness = (
            np.sqrt(self.variance_rate / length),
            skewness_over(length, self.variance_rate, self.third_rate),
        )
        return np.asarray(normal_percentiles(self.mean, spread, percent, skewness))

    @property
    def tokens_per_day(self) -> float:
        """Tokens that become saved work per day; needs ``tokens_per_step``."""
        if self.tokens_per_step is None:
            raise ValueError("tokens_per_step must be given for tokens per day, got None")
        return self.mean * self.tokens_per_step / self.step_time * DAY

    def cost_per_token(self, price: float) -> float:
        """Return what a token costs, spares and lost time included.

        price * gpus * 24 / tokens per day.
        """
        paid = float(require_real(price=price, at_least=0, at_most=1e12)) * self.gpus * DAY / HOUR
        return paid / self.tokens_per_day if self.mean else float("inf")

    def state_loss_probability(self, time: float | None = None) -> float:
        """Return the probability that the last level of checkpoints is needed at least once."""
        span = require_time(time=self.horizon if time is None else time)
        return float(-np.expm1(-self.state_loss_rate * span))

    def to_frame(self) -> pd.DataFrame:
        """Return the buckets with their share and hours per day, and the bracket where there is one."""
        import pandas as pd

        frame = pd.DataFrame({"share": [self.buckets[name] for name in BUCKETS]}, index=list(BUCKETS))
        frame["hours per day"] = frame["share"] * DAY / HOUR
        if self.brackets is not None:
            ends: Any = [self.brackets.get(name, (np.nan, np.nan)) for name in BUCKETS]
            frame["lower"], frame["upper"] = zip(*ends, strict=True)
        return frame

    def explain(self) -> str:
        """Say in words what is reached, where the rest goes, and which class of parts decides."""
        low, _, high = self.percentiles()
        losses = sorted(((self.buckets[name], text) for name, text in _WORDS.items()), reverse=True)
        parts = [f"{100 * share:.2f} % {text}" for share, text in losses if share > 5e-5]
        said = [
            f"{100 * self.mean:.2f} % of the time is productive; 90 % of runs of "
            f"{self.horizon / DAY:.0f} days reach {100 * low:.2f} to {100 * high:.2f} %.",
            f"The rest: {', '.join(parts)}." if parts else "Nothing else takes any time.",
        ]
        if "elasticity" in self.importance and len(self.importance):
            elasticity = self.importance["elasticity"]
            said.append(
                f"{elasticity.idxmin()} matters most: 10 % fewer of its failures bring "
                f"{-10 * float(elasticity.min()):.3f} % more."
            )
        loss = self.state_loss_probability()
        said.append(f"Only the last level of checkpoints brings the state back with probability {loss:.3g}.")
        return " ".join(said)


def class_importance(
    names: Sequence[str],
    rates: NDArray[np.float64],
    interrupts: NDArray[np.bool_],
    elasticities: NDArray[np.float64],
    goodput: float,
) -> pd.DataFrame:
    """Table of importance by class from the elasticities of its kinds of parts.

    Notes
    -----
    Elasticities of the kinds of a class add. Birnbaum's measure is the derivative of the goodput by the
    probability that a part fails; here by the rate: -goodput * elasticity / rate, in seconds.

    References
    ----------
    Birnbaum, "On the importance of different components in a multicomponent system", 1969.
    """
    import pandas as pd

    classes = {name: place for place, name in enumerate(dict.fromkeys(names))}
    kind = np.array([classes[name] for name in names], dtype=np.int64)
    rate, elasticity = (np.bincount(kind, values, len(classes)) for values in (rates, elasticities))
    total = elasticity.sum()
    columns = {
        "rate": rate,
        "interrupts": np.bincount(kind, interrupts, len(classes)) > 0,
        "elasticity": elasticity,
        "share": elasticity / total if total else np.zeros(len(classes)),
        "birnbaum": -goodput * elasticity / rate,
    }
    return pd.DataFrame(columns, index=list(classes))
