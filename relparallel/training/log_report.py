"""What a failure log says against independent failures: they come together, drift, are unequal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import Result, require_int, require_number, require_rng
from relparallel.metrics import Estimate
from relparallel.training._independent_logs import independent
from relparallel.training.failure_rates import FEW, outage_rate
from relparallel.training.outages import Outages
from relparallel.training.report import mean_interval
from relparallel.units import DAY, HOUR

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

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
    """Index of dispersion (variance over mean) of the nodes down, over time; 0 where none is."""
    time, number = logs.down()
    mean, square = ((time * number**power).sum(axis=1) / logs.span for power in (1, 2))
    none = np.zeros_like(mean)
    return np.asarray(np.divide(square - mean**2, mean, out=none, where=mean > 0))


def _trend(logs: Outages, window: float) -> Floats:
    """Laplace's deviate, either sign, of the first starts of those that come together."""
    start, near = _near(logs, window)
    many = (~near).sum(axis=1)
    mean = np.where(near, 0.0, start).sum(axis=1) / many
    return np.asarray(np.abs(mean / logs.span - 0.5) * np.sqrt(12 * many))


def _node_dispersion(logs: Outages, window: float) -> Floats:
    """Index of dispersion of the failures per node."""
    node = np.sort(logs.node, axis=1)
    place = np.broadcast_to(np.arange(node.shape[1]), node.shape)
    new = np.diff(node, axis=1, prepend=-1) > 0
    earlier = place - np.maximum.accumulate(np.where(new, place, 0), axis=1)  # of the same node
    mean = node.shape[1] / logs.nodes
    return np.asarray(((2 * earlier + 1).sum(axis=1) / logs.nodes - mean**2) / mean)


_TESTS: Final[dict[str, tuple[Callable[[Outages, float], Floats], str, str]]] = {
    "starts together": (
        _together,
        "share of starts within {window:g} s of another",
        "failures come together (shared events)",
    ),
    "nodes down, drift kept": (
        _down_dispersion,
        "index of dispersion of the nodes down",
        "more nodes are down at once than the rate explains (shared events, slow repairs)",
    ),
    "nodes down": (
        _down_dispersion,
        "index of dispersion of the nodes down",
        "more nodes are down at once than formulas say",
    ),
    "trend": (_trend, "Laplace's deviate of starts that follow no other", "the rate drifts"),
    "unequal nodes": (
        _node_dispersion,
        "index of dispersion of the failures per node",
        "some nodes fail more often than others",
    ),
}
"""Quantities that are larger than independent failures allow: how, of what, what that says."""
# held against failures at a rate of its own in each twelfth of the window
_DRIFT: Final = ("starts together", "nodes down, drift kept")


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
    repair: Estimate | None  # mean of repairs that ended [s]
    median_repair: float | None
    late_repair: float | None  # 99th percentile
    findings: tuple[Finding, ...]
    level: float  # at which independence is refuted
    notes: tuple[str, ...]
    moments: Floats  # of the picture [s since the window began]; none where no repair is known
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
        why = [_TESTS[name][2] for name in self.refuted]
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
            self._said(),
            f"{_PER * rate.value:.4g} failures per 1000 node-days ({_PER * rate.lower:.4g} to "
            f"{_PER * rate.upper:.4g}); the first quarter of the window has {self.early:.3g} times "
            "the rate of the rest",
        ]
        if repair is not None and self.median_repair is not None and self.late_repair is not None:
            said += [
                f"{self.mean_down or 0:.4g} nodes are down on average, with variance "
                f"{self.variance_down or 0:.4g}",
                f"repairs take {repair.value / HOUR:.4g} h on average ({repair.lower / HOUR:.4g} "
                f"to {repair.upper / HOUR:.4g}), half of them at most "
                f"{self.median_repair / HOUR:.4g} h, one in a hundred more than "
                f"{self.late_repair / HOUR:.4g} h",
            ]
        return ". ".join([*said, *(each.sentence for each in self.findings), *self.notes]) + "."

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the nodes down over time, and where 95 % of independent failures are."""
        from relparallel.plotting import PALETTE, figure

        if not self.moments.size:
            raise ValueError("end must be known for nodes down, got none: give repair=")
        ax = figure(height=2.2)[1] if ax is None else ax
        days, (low, high), told = self.moments / DAY, self.band, "95 % of independent failures"
        ax.fill_between(
            days, low, high, color=PALETTE["orange"], alpha=0.4, step="post", label=told
        )
        ax.step(days, self.down, where="post", color=PALETTE["blue"], linewidth=1, label="the log")
        ax.set_xlabel("time [days]")
        ax.set_ylabel("nodes down")
        ax.legend()
        return ax


def log_report(
    own: Outages,
    repairs: Floats,
    notes: tuple[str, ...],
    rng: np.random.Generator,
    window: float,
    level: float,
    replications: int,
) -> LogReport:
    """Hold a log against logs of independent failures; see `FailureLog.report`."""
    require_rng(rng=rng)
    if not own.start.size:
        raise ValueError("start must hold a failure for a report, got none")
    require_number(window=window, at_least=0.0)
    require_number(level=level, above=0.0, below=1.0)
    tests = [name for name in _TESTS if own.timed or _TESTS[name][0] is not _down_dispersion]
    enough = int(np.ceil(len(tests) / level - 1e-9)) - 1  # for a p-value that can refute
    require_int(replications=replications, at_least=enough, at_most=10**6)
    moments = np.linspace(0.0, own.span, _MOMENTS * own.timed, endpoint=False)
    drawn: dict[str, list[Floats]] = {name: [] for name in tests}
    paths = [np.empty((0, moments.size))]
    for drift in (True, False):
        for logs in independent(own, rng, replications, drift=drift):
            for name in tests:
                if (name in _DRIFT) == drift:
                    drawn[name].append(_TESTS[name][0](logs, window))
            if not drift:
                paths.append(logs.down_at(moments))
    share = own.distribution() if own.timed else np.ones(1)
    mean, square = (float(share @ np.arange(share.size) ** power) for power in (1, 2))
    ended = repairs[np.isfinite(repairs)]
    repair = mean_interval(ended) if ended.size > 1 else None
    early = (own.start < own.span / 4).mean()
    return LogReport(
        failures=own.start.size,
        rate=outage_rate(own),
        early=float(3 * early / (1 - early)) if early < 1 else np.inf,
        mean_down=mean if own.timed else None,
        variance_down=square - mean**2 if own.timed else None,
        repair=replace(repair, lower=max(repair.lower, 0.0)) if repair else None,
        median_repair=float(np.median(ended)) if ended.size else None,
        late_repair=float(np.quantile(ended, 0.99)) if ended.size else None,
        findings=tuple(
            _finding(name, own, np.concatenate(drawn[name]), window, level / len(tests))
            for name in tests
        ),
        level=level,
        notes=(*notes, *_doubts(own, len(repairs) - len(ended))),
        moments=moments,
        down=own.down_at(moments)[0],
        band=np.quantile(np.concatenate(paths), [0.025, 0.975], axis=0),
    )


def _finding(name: str, own: Outages, drawn: Floats, window: float, level: float) -> Finding:
    """Value of a log beside those of independent failures."""
    quantity, what, why = _TESTS[name]
    value = float(quantity(own, window)[0])
    least = 1.0 if quantity is _down_dispersion else -np.inf  # fewer are no more than chance
    as_much = np.maximum(drawn, least) >= max(value, least) * (1 - 1e-12)
    p = float((1 + as_much.sum()) / (1 + drawn.size))
    shown = p <= level * (1 + 1e-9)
    expected, (lower, upper) = float(drawn.mean()), np.quantile(drawn, [0.025, 0.975]).tolist()
    rate = "the rate of each twelfth of the window" if name in _DRIFT else "a constant rate"
    sentence = (
        f"{name}: {what.format(window=window)} is {value:.3g}, of independent failures at {rate} "
        f"{expected:.3g} ({lower:.3g} to {upper:.3g}), p = {p:.2g}: "
        f"{'' if shown else 'it is not shown that '}{why}"
    )
    return Finding(name, value, expected, lower, upper, p, shown, sentence)


def _doubts(own: Outages, without: int) -> list[str]:
    """What a log does not tell; ``without``: outages that have no end."""
    never = own.nodes * np.exp(-own.start.size / own.nodes)  # equal nodes without a failure
    doubts = {
        "no outage has a length: nodes down and repairs are not known; give repair=": not own.timed,
        f"{without} outages have no end and do not count for repairs": without and own.timed,
        f"every node failed, of equal ones {never:.0f} would not have: population= is the number "
        "of nodes that were watched": never > _NEVER and np.unique(own.node).size == own.nodes,
    }
    return [said for said, holds in doubts.items() if holds]
