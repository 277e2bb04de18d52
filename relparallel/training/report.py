"""What a job reaches under failures: one report for closed forms, Markov chain and simulations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import Result, require_real
from relparallel.metrics import Estimate
from relparallel.training._arguments import require_time, run_percentiles
from relparallel.units import DAY, HOUR

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

BUCKETS: Final = (
    "productive",
    "checkpoint",
    "lost",
    "detection",
    "restart",
    "waiting",
    "degraded",
    "planned",
)
"""Where the wall time goes: productive; writing checkpoints; work done again; until a failure is
noticed; restarts and pauses; waiting for nodes; speed that missing or slow parts cost, as time;
planned."""
_WORDS: Final = {
    "checkpoint": "writing checkpoints",
    "lost": "work done twice",
    "detection": "failures not yet noticed",
    "restart": "restarts and pauses",
    "waiting": "waiting for nodes",
    "degraded": "missing or slow parts",
    "planned": "planned stops",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Goodput(Result):
    """Share of wall time turned into saved work at full speed, its spread, and where the rest goes.

    Over a run of length T that holds many failures the productive share is nearly normal with
    variance ``variance_rate / T`` (renewal-reward processes: Asmussen 2003, chapter VI.3).
    """

    buckets: Mapping[str, float]  # share of the wall time in each of `BUCKETS`; they sum to 1
    variance_rate: float  # variance of the productive share over a long run, times its length [s]
    horizon: float  # wall time of the run that `sd` and the percentiles are for [s]
    step_time: float  # with everything up [s]
    gpus: int  # that are paid for, spares included
    # mean time between interruptions by class [s]; infinite for what does not interrupt
    mtti: pd.Series
    # failures per second after which only the last level has the training state
    state_loss_rate: float
    # finds `importance`, which takes longer than all the rest
    find_importance: Callable[[], pd.DataFrame] = field(repr=False)
    interval: float  # work between two checkpoints [s]; infinite where nothing goes back
    method: str  # "closed", "markov" or "simulated"
    tokens_per_step: float | None = None  # of a global batch
    # confidence intervals of simulated buckets
    brackets: Mapping[str, tuple[float, float]] | None = None
    samples: NDArray[np.float64] | None = None  # productive shares of simulated runs of the horizon
    third_rate: float = 0.0  # third central moment of that share, times the length squared [s^2]

    @cached_property
    def importance(self) -> pd.DataFrame:
        """One row per class; see `goodput`."""
        return self.find_importance()

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
        """Return percentiles (levels in percent) of the productive share over runs of a length [s].

        Of the simulated runs where there are any of this horizon, else nearly normal with a
        skewness.
        """
        percent = require_real(levels=np.asarray(levels, dtype=np.float64), at_least=0, at_most=100)
        length = require_time(horizon=self.horizon if horizon is None else horizon, positive=True)
        if self.samples is not None and length == self.horizon:
            return np.asarray(np.percentile(self.samples, percent), dtype=np.float64)
        return np.asarray(
            run_percentiles(percent, length, self.mean, self.variance_rate, self.third_rate)
        )

    @property
    def tokens_per_day(self) -> float:
        """Tokens that become saved work per day; needs ``tokens_per_step``."""
        if self.tokens_per_step is None:
            raise ValueError("tokens_per_step must be given for tokens per day, got None")
        return self.mean * self.tokens_per_step / self.step_time * DAY

    def cost_per_token(self, price: float) -> float:
        """Return what a token costs at a price per GPU-hour, spares and lost time included."""
        paid = float(require_real(price=price, at_least=0, at_most=1e12)) * self.gpus * DAY / HOUR
        return paid / self.tokens_per_day if self.mean else float("inf")

    def state_loss_probability(self, time: float | None = None) -> float:
        """Return the probability that the last level of checkpoints is needed at least once."""
        span = require_time(time=self.horizon if time is None else time)
        return float(-np.expm1(-self.state_loss_rate * span))

    def to_frame(self) -> pd.DataFrame:
        """Return the buckets with share and hours per day, and the bracket where there is one."""
        import pandas as pd

        frame = pd.DataFrame(
            {"share": [self.buckets[name] for name in BUCKETS]}, index=list(BUCKETS)
        )
        frame["hours per day"] = frame["share"] * DAY / HOUR
        if self.brackets is not None:
            ends: Any = [self.brackets.get(name, (np.nan, np.nan)) for name in BUCKETS]
            frame["lower"], frame["upper"] = zip(*ends, strict=True)
        return frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw where the time goes that is not productive."""
        from relparallel.plotting import bars

        lost = self.to_frame()["share"].drop("productive")
        return bars(100 * lost[lost > 0], "share of the time [%]", ax)

    def _said(self) -> str:
        low, _, high = self.percentiles()
        return (
            f"{100 * self.mean:.2f} % of the time is productive; 90 % of runs of "
            f"{self.horizon / DAY:.0f} days reach {100 * low:.2f} to {100 * high:.2f} %"
        )

    def explain(self) -> str:
        """Say in words what is reached, where the rest goes, and which class of parts decides."""
        losses = sorted(((self.buckets[name], text) for name, text in _WORDS.items()), reverse=True)
        parts = [f"{100 * share:.2f} % {text}" for share, text in losses if share > 5e-5]
        sentences = [
            f"{self._said()}.",
            f"The rest: {', '.join(parts)}." if parts else "Nothing else takes any time.",
        ]
        if "elasticity" in self.importance and len(self.importance):
            elasticity = self.importance["elasticity"]
            sentences.append(
                f"{elasticity.idxmin()} matters most: 10 % fewer of its failures bring "
                f"{-10 * float(elasticity.min()):.3f} % more."
            )
        loss = self.state_loss_probability()
        sentences.append(
            f"Only the last level of checkpoints brings the state back with probability {loss:.3g}."
        )
        return " ".join(sentences)


def class_importance(
    names: Sequence[str],
    rates: NDArray[np.float64],
    interrupts: NDArray[np.bool_],
    elasticities: NDArray[np.float64],
    goodput: float,
) -> pd.DataFrame:
    """Table of importance by class; elasticities of the kinds of parts of a class add.

    Birnbaum's measure (1969) by the rate, -goodput * elasticity / rate [s].
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


def mean_interval(values: Any) -> Estimate:
    """Mean of independent replications with its 95 % interval (Student)."""
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=np.float64)
    mean = float(values.mean())
    half = float(stdtrit(values.size - 1, 0.975) * values.std(ddof=1) / np.sqrt(values.size))
    method = f"mean of {values.size} replications, 95 % confidence"
    return Estimate(value=mean, lower=mean - half, upper=mean + half, method=method, exact=False)
