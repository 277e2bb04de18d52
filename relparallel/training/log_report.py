"""What a failure log says against independent failures: they come together, drift, are unequal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import Result, require_int, require_number, require_rng
from relparallel.metrics import Estimate
from relparallel.training._independent_logs import BLOCKS, Outages, independent, outages
from relparallel.units import DAY, HOUR

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from relparallel.training.failure_logs import FailureLog

Floats = NDArray[np.float64]

FEW: Final = 20  # failures, of which it sees one in three that brings another
_MOMENTS: Final = 400  # of a picture
_NEVER: Final = 5.0  # nodes without a failure that are too many to be missing by chance
_PER: Final = 1000 * DAY


def _near(logs: Outages, window: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Starts in order, and whether the one before is as near as the window."""
    start = np.sort(logs.start, axis=1)
    return start, np.diff(start, axis=1, prepend=-np.inf) <= window * (1 + 1e-9)


def _together(logs: Outages, window: float) -> Floats:
    """Share of the starts within the window of another one."""
    near = _near(logs, window)[1]
    return np.asarray((near | np.pad(near[:, 1:], ((0, 0), (0, 1)))).mean(axis=1))


def _down_dispersion(logs: Outages, window: float) -> Floats:
    """Variance over mean of the nodes down, over time."""
    time, number = logs.down()
    mean, square = ((time * number**power).sum(axis=1) / logs.span for power in (1, 2))
    return np.asarray((square - mean**2) / mean)


def _trend(logs: Outages, window: float) -> Floats:
    """Laplace's deviate, either sign, of the first starts of those that come together."""
    start, near = _near(logs, window)
    many = (~near).sum(axis=1)
    mean = np.where(near, 0.0, start).sum(axis=1) / many
    return np.asarray(np.abs(mean / logs.span - 0.5) * np.sqrt(12 * many))


def _node_dispersion(logs: Outages, window: float) -> Floats:
    """Variance over mean of the failures per node."""
    node = np.sort(logs.node, axis=1)
    place = np.broadcast_to(np.arange(node.shape[1]), node.shape)
    new = np.diff(node, axis=1, prepend=-1) > 0
    earlier = place - np.maximum.accumulate(np.where(new, place, 0), axis=1)  # of the same node
    mean = node.shape[1] / logs.nodes
    return np.asarray(((2 * earlier + 1).sum(axis=1) / logs.nodes - mean**2) / mean)


class _Test(NamedTuple):
    """A quantity that is larger than independent failures allow where ``why`` holds."""

    name: str
    what: str
    why: str
    quantity: Callable[[Outages, float], Floats]
    drift: bool  # whether the rate may change from twelfth to twelfth
    timed: bool  # whether it needs repairs


_TESTS: Final = (
    _Test(
        "starts together",
        "share of starts within {window:g} s of another",
        "failures come together (shared events)",
        _together,
        True,
        False,
    ),
    _Test(
        "nodes down, drift kept",
        "variance over mean of the nodes down, against failures that keep the rates of each "
        "twelfth of the window",
        "more nodes are down at once than their rate explains (shared events, repairs that wait "
        "for each other)",
        _down_dispersion,
        True,
        True,
    ),
    _Test(
        "nodes down",
        "variance over mean of the nodes down, against a constant rate",
        "the number of nodes down varies more than formulas of independent failures say",
        _down_dispersion,
        False,
        True,
    ),
    _Test(
        "trend",
        "Laplace's deviate of the starts that do not follow another one",
        "the rate drifts",
        _trend,
        False,
        False,
    ),
    _Test(
        "unequal nodes",
        "variance over mean of the failures per node",
        "some nodes fail more often than others",
        _node_dispersion,
        False,
        False,
    ),
)


class Finding(NamedTuple):
    """One quantity of a log, what independent failures give, and whether it refutes them."""

    name: str
    value: float
    expected: float  # mean of independent failures
    lower: float  # 95 % of them
    upper: float
    p: float  # chance that they give as much
    refuted: bool
    sentence: str


@dataclass(frozen=True, kw_only=True, eq=False)
class LogReport(Result):
    """What a log says of its failures; see `FailureLog.report`."""

    failures: int
    rate: Estimate  # per node and second
    early: float  # rate of the first quarter of the window over that of the rest
    mean_down: float | None  # nodes down, over time; None where no repair is known
    variance_down: float | None
    repair: Estimate | None  # mean time to repair of those that ended [s]
    repair_quantiles: tuple[float, float] | None  # median and 99th percentile [s]
    findings: tuple[Finding, ...]
    level: float  # at which independence is refuted
    notes: tuple[str, ...]
    moments: Floats  # of the picture [s]; none where no repair is known
    down: Floats  # nodes down then
    band: Floats  # 95 % of independent failures then [2, moments]

    @property
    def p(self) -> float:
        """Chance that independent failures give one finding as extreme as here (Bonferroni)."""
        return min(1.0, len(self.findings) * min(each.p for each in self.findings))

    @property
    def refuted(self) -> tuple[str, ...]:
        """Names of the findings that refute independent failures."""
        return tuple(each.name for each in self.findings if each.refuted)

    @property
    def verdict(self) -> str:
        """Whether independent failures are refuted, and why."""
        why = [test.why for test in _TESTS if test.name in self.refuted]
        few = f"; {self.failures} failures are too few to say" * (self.failures < FEW)
        return f"independent: {'' if why else 'not '}refuted at {100 * self.level:g} %" + (
            f": {'; '.join(why)}" if why else few
        )

    def _said(self) -> str:
        return f"{self.failures} failures, {self.verdict} (p = {self.p:.2g})"

    def to_frame(self) -> pd.DataFrame:
        """One row per finding."""
        import pandas as pd

        return pd.DataFrame(self.findings).set_index("name")

    def explain(self) -> str:
        """Say all of it, a sentence for each finding."""
        rate, repair = self.rate, self.repair
        said = [
            f"{self._said()}",
            f"{_PER * rate.value:.4g} failures per 1000 node-days ({_PER * rate.lower:.4g} to "
            f"{_PER * rate.upper:.4g}); the first quarter of the window has {self.early:.3g} times "
            "the rate of the rest",
        ]
        if self.mean_down is not None:
            said += [
                f"{self.mean_down:.4g} nodes are down on average, with variance "
                f"{self.variance_down:.4g}"
            ]
        if repair is not None and self.repair_quantiles is not None:
            median, late = self.repair_quantiles
            said += [
                f"repairs take {repair.value / HOUR:.4g} h on average ({repair.lower / HOUR:.4g} "
                f"to {repair.upper / HOUR:.4g}), half of them at most {median / HOUR:.4g} h, one "
                f"in a hundred more than {late / HOUR:.4g} h"
            ]
        return ". ".join([*said, *(each.sentence for each in self.findings), *self.notes]) + "."

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the nodes down over time, and where 95 % of independent failures are."""
        from relparallel.plotting import PALETTE, figure

        if not self.moments.size:
            raise ValueError(
                "end must be known for a picture of nodes down, got none: give repair="
            )
        ax = figure(height=2.2)[1] if ax is None else ax
        days, told = self.moments / DAY, "95 % of independent failures"
        ax.fill_between(
            days,
            self.band[0],
            self.band[1],
            step="post",
            color=PALETTE["orange"],
            alpha=0.4,
            label=told,
        )
        ax.step(days, self.down, where="post", color=PALETTE["blue"], linewidth=1, label="the log")
        ax.set_xlabel("time [days]")
        ax.set_ylabel("nodes down")
        ax.legend()
        return ax


def log_report(
    log: FailureLog, rng: np.random.Generator, window: float, level: float, replications: int
) -> LogReport:
    """Hold a log against logs of independent failures; see `FailureLog.report`."""
    require_rng(rng=rng)
    require_number(window=window, at_least=0.0)
    require_number(level=level, above=0.0, below=1.0)
    own, merged = outages(log)
    _ = merged.rate  # refuses a log of one moment
    tests = [test for test in _TESTS if own.timed or not test.timed]
    enough = int(np.ceil(len(tests) / level - 1e-9)) - 1  # for a p-value that can refute
    require_int(replications=replications, at_least=enough, at_most=10**6)
    begin = merged.watched - merged.span
    moments = np.linspace(0.0, own.span, _MOMENTS * own.timed, endpoint=False)
    drawn: dict[str, list[Floats]] = {test.name: [] for test in tests}
    paths = [np.empty((0, moments.size))]
    for drift in (True, False):
        for logs in independent(own, rng, replications, drift=drift):
            for test in tests:
                if test.drift == drift:
                    drawn[test.name].append(test.quantity(logs, window))
            if not drift:
                paths.append(logs.down_at(moments))
    share = down_distribution(log) if own.timed else np.ones(1)
    mean, square = (float(share @ np.arange(share.size) ** power) for power in (1, 2))
    ended = merged.repairs[np.isfinite(merged.repairs)]
    early = (own.start < own.span / 4).mean()
    return LogReport(
        failures=own.start.size,
        rate=_rate(own),
        early=float(3 * early / (1 - early)) if early < 1 else np.inf,
        mean_down=mean if own.timed else None,
        variance_down=square - mean**2 if own.timed else None,
        repair=_mean_repair(ended, rng) if ended.size > 1 else None,
        repair_quantiles=(float(np.median(ended)), float(np.quantile(ended, 0.99)))
        if ended.size > 1
        else None,
        findings=tuple(
            _finding(
                test,
                float(test.quantity(own, window)[0]),
                np.concatenate(drawn[test.name]),
                window,
                level / len(tests),
            )
            for test in tests
        ),
        level=level,
        notes=(*merged.notes, *_doubts(own, merged)),
        moments=begin + moments,
        down=own.down_at(moments)[0],
        band=np.quantile(np.concatenate(paths), [0.025, 0.975], axis=0),
    )


def down_distribution(log: FailureLog) -> Floats:
    """See `FailureLog.down_distribution`."""
    own, merged = outages(log)
    _ = merged.rate  # refuses a log of one moment
    if not own.timed:
        raise ValueError("end must be known and after start for nodes down, got none: give repair=")
    time, number = own.down()
    share = np.bincount(number[0], weights=time[0]) / own.span
    return share[: int(np.flatnonzero(share)[-1]) + 1]


def _finding(test: _Test, value: float, drawn: Floats, window: float, level: float) -> Finding:
    """Value of a log beside those of independent failures."""
    p = float((1 + (drawn >= value * (1 - 1e-12)).sum()) / (1 + drawn.size))
    expected, (lower, upper) = float(drawn.mean()), np.quantile(drawn, [0.025, 0.975]).tolist()
    sentence = (
        f"{test.name}: {test.what.format(window=window)} is {value:.3g}, of independent failures "
        f"{expected:.3g} ({lower:.3g} to {upper:.3g}), p = {p:.2g}: "
        f"{'' if p <= level else 'it is not shown that '}{test.why}"
    )
    return Finding(test.name, value, expected, lower, upper, p, p <= level, sentence)


def _rate(log: Outages) -> Estimate:
    """Failures per node and second; the interval is as wide as the twelfths of the window differ.

    Poisson's (Garwood 1936), with the failures divided by their variance over mean.
    """
    from scipy.special import gammaincinv

    start, time = log.start[0], log.nodes * log.span
    counts = np.histogram(start, BLOCKS, (0.0, log.span))[0]
    spread = max(float(counts.var(ddof=1) / counts.mean()), 1.0)
    many = start.size / spread
    lower, upper = spread * gammaincinv([many, many + 1], [0.025, 0.975]) / time
    method = f"{start.size} failures, 95 % interval by {BLOCKS} parts of the window"
    value = start.size / time
    return Estimate(value=value, lower=lower, upper=upper, method=method, exact=False)


def _mean_repair(repairs: Floats, rng: np.random.Generator) -> Estimate:
    """Mean time to repair with its 95 % interval (bootstrap, bias-corrected)."""
    from scipy.stats import bootstrap

    mean = lower = upper = float(repairs.mean())
    if np.ptp(repairs) > 1e-6 * mean:
        found = bootstrap((repairs,), np.mean, n_resamples=1999, batch=50, rng=rng)
        lower, upper = found.confidence_interval
    method = f"mean of {repairs.size} repairs, 95 % interval by bootstrap"
    return Estimate(value=mean, lower=float(lower), upper=float(upper), method=method, exact=False)


def _doubts(own: Outages, merged: FailureLog) -> list[str]:
    """What a log does not tell."""
    many, without = own.start.size, int(np.isnan(merged.end).sum())
    never = own.nodes * np.exp(-many / own.nodes)  # nodes without a failure, of equal ones
    doubts = {
        "no outage has a length: nodes down and repairs are not known; give repair=": not own.timed,
        f"{without} outages have no end and do not count for repairs": without and own.timed,
        f"every node failed, of equal ones {never:.0f} would not have: population= is the number "
        "of nodes that were watched": never > _NEVER and len(np.unique(merged.node)) == own.nodes,
    }
    return [said for said, holds in doubts.items() if holds]
