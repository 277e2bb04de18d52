"""Congestion control as delay equations: fixed points, exact linear stability, margins and runs.

A model is a record of parameters (`congestion`) with three functions: its equilibrium, its
right-hand side x'(t) = f(x(t), x(t - D - r1), ...) with feedback delay D, and its own lags r.
Everything here follows from these. Flows that are alike form a class; components of x are those of
a flow, the queue comes last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from chapters.s24.delay_equations import (
    FloatArray,
    Linear,
    crossings,
    jacobian,
    spectrum,
    split_modes,
)
from relparallel._checks import require_broadcast, require_choice, require_number, require_real
from relparallel.metrics import hop_statistics
from relparallel.topology import Topology

if TYPE_CHECKING:
    import networkx as nx

_MOST_STEPS: Final = 2_000_000


class FixedPoint(NamedTuple):
    """Where a model stands still: ``queue`` [bytes], ``marking`` probability, whether ``valid``.

    ``valid`` is False where there is none: off the marking ramp, or none at all (then the queue is
    NaN). ``state`` holds the components of a flow and the queue in the model's own units.
    """

    queue: Any
    marking: Any
    valid: Any
    state: FloatArray


class FluidRun(NamedTuple):
    """A simulated run: ``time`` [s], ``queue`` [bytes] and ``rates`` [bytes/s], time first.

    ``verdict`` is "settles", "decays", "oscillates" or "diverges"; ``final_queue`` is NaN unless it
    settles. ``growth`` [1/s] is that of the oscillation of the queue between the second and the
    last quarter.
    """

    time: FloatArray
    queue: FloatArray
    rates: FloatArray
    growth: Any
    verdict: Any
    final_queue: Any


class FluidModel(ABC):
    """What all models of congestion control answer; `dcqcn` and the others are such.

    N ``flows`` share a bottleneck of ``rate`` C [bytes/s] and hear of it ``feedback_delay`` [s]
    later; sizes are bytes. Fields may be arrays that broadcast: answers have their shape.
    """

    models: ClassVar[tuple[str, ...]] = ("exact",)
    in_packets: ClassVar[tuple[str, ...]] = ()
    flows: Any
    rate: Any
    feedback_delay: Any

    @staticmethod
    @abstractmethod
    def equilibrium(p: Any) -> tuple[FloatArray, Any, Any]:
        """State [components, ...], marking probability, and whether it is one."""

    @staticmethod
    @abstractmethod
    def derivative(p: Any, now: Any, *past: Any) -> Any:
        """Right-hand side; states are [components, classes, ...], ``past`` has one for each lag."""

    @staticmethod
    def lags(p: Any, now: Any) -> tuple[Any, ...]:
        """Lags beyond the feedback delay."""
        return (0.0 * now[-1],)

    @staticmethod
    def start(p: Any, rates: Any) -> Any:
        """State of new flows at these rates; by default all other components are 0."""
        return np.stack([rates, 0 * rates, 0 * rates])

    @staticmethod
    def sending(p: Any, now: Any) -> Any:
        """Rates at which flows send in this state."""
        return now[0]

    def values(self, model: str = "exact") -> Any:
        """Parameters as arrays of one shape, with ``count`` flows in each class and packet size."""
        given = {field.name: np.asarray(getattr(self, field.name), float) for field in fields(self)}  # type: ignore[arg-type]
        require_broadcast(**given)
        shape = np.broadcast_shapes(*(value.shape for value in given.values()))
        given = {"packet": np.ones(())} | given
        spread = {name: np.broadcast_to(value, shape).ravel() for name, value in given.items()}
        spread |= {name: spread[name] / spread["packet"] for name in self.in_packets}
        if np.any(spread.get("kmin", -1) >= spread.get("kmax", 0)):
            raise ValueError(f"kmax must be above kmin, got {self!r}")
        return SimpleNamespace(**spread, shape=shape, count=spread["flows"], model=model)

    def fixed_point(self) -> FixedPoint:
        """Equilibrium of equal flows."""
        p = self.values()
        state, marking, valid = self.equilibrium(p)
        queue, marking, valid = (
            shaped(value, p) for value in (state[-1] * p.packet, marking, valid)
        )
        return FixedPoint(queue, marking, valid, state=state.reshape(-1, *p.shape))

    def linear(self, model: str = "exact") -> tuple[Linear, ...]:
        """Linearisation: the sum of all flows with the queue, then differences between flows."""
        p = self.values(require_choice(self.models, model=model))
        state, _, _ = self.equilibrium(p)
        at = state[:, None]
        lags = self.lags(p, at)
        now = jacobian(lambda x: self.derivative(p, x, *(at for _ in lags)), state)
        past = []
        for i, lag in enumerate(lags):

            def late(x: Any, i: int = i) -> Any:
                return self.derivative(p, at, *(x if i == j else at for j in range(len(lags))))

            past.append((np.broadcast_to(np.real(lag), at[-1].shape)[0], jacobian(late, state)))
        return split_modes(Linear(now=now, past=tuple(past)))

    def critical_delay(self, model: str = "exact") -> Any:
        """Feedback delay [s] at which the equilibrium first loses stability.

        0 where it has none without delay, infinite where it never does, NaN where the fixed point
        is not valid. ``model`` names an approximation of the paper where there is one.
        """
        p, found = self.values(), []
        for mode in self.linear(model):
            omega, direction, lead, unstable = crossings(mode)
            first = np.where(direction > 0, lead / omega, np.inf).min(axis=1, initial=np.inf)
            found.append(np.where(unstable > 0, 0.0, first))
        return shaped(np.where(self._linearised(p, model), np.min(found, axis=0), np.nan), p)

    def stable(self) -> Any:
        """Whether all roots lie left of the axis at this feedback delay, at a valid fixed point."""
        p = self.values()
        good = self.equilibrium(p)[2]
        for mode in self.linear():
            omega, direction, lead, unstable = crossings(mode)
            turns = np.floor((p.feedback_delay[:, None] * omega - lead) / (2 * np.pi)) + 1
            good = good & (unstable + 2 * np.nansum(direction * np.maximum(turns, 0), axis=1) < 0.5)
        return shaped(good, p)

    def phase_margin(self, model: str = "exact") -> Any:
        """Phase margin [degrees] of the sum of all flows, least over crossings; else infinite."""
        p = self.values()
        omega, _, lead, _ = crossings(self.linear(model)[0])
        margin = np.degrees(
            np.pi - (np.pi - lead + omega * p.feedback_delay[:, None]) % (2 * np.pi)
        )
        size = np.where(np.isnan(margin), np.inf, np.abs(margin))
        smallest = np.take_along_axis(margin, size.argmin(axis=1)[:, None], axis=1)[:, 0]
        smallest = np.where(np.isinf(size).all(axis=1), np.inf, smallest)  # no crossing
        return shaped(np.where(self._linearised(p, model), smallest, np.nan), p)

    def _linearised(self, p: Any, model: str) -> Any:
        """Whether there is a point to linearise at; approximations draw the marking ramp on."""
        return self.equilibrium(p)[2] if model == "exact" else True

    def rightmost_root(self, nodes: int = 12) -> Any:
        """Root of largest real part [1/s] by Chebyshev collocation; the real part is the growth."""
        p = self.values()
        roots = np.concatenate(
            [spectrum(mode, p.feedback_delay, nodes) for mode in self.linear()], axis=1
        )
        rightmost = np.take_along_axis(roots, roots.real.argmax(axis=1)[:, None], axis=1)[:, 0]
        found = (rightmost.real + 1j * np.abs(rightmost.imag)).reshape(p.shape)
        return complex(found) if found.ndim == 0 else found

    def simulate(
        self, duration: float, step: float = 1e-6, rates: ArrayLike | None = None
    ) -> FluidRun:
        """Integrate: from ``rates`` [bytes/s] of new flows, or from 0.01 % off the fixed point.

        Heun's method in steps of ``step`` [s], the past interpolated; before the start nothing
        changed.
        """
        h = require_number(step=step, above=0)
        steps = round(
            require_number(duration=duration, at_least=4 * h, at_most=_MOST_STEPS * h) / h
        )
        p = self.values()
        if rates is None:
            state, _, valid = self.equilibrium(p)
            if not np.all(valid):
                raise ValueError("rates must be given where the fixed point is not valid, got None")
            first = state[:, None] * (1 + 1e-4 * np.eye(1, len(state))[0][:, None, None])
        else:
            given = np.atleast_1d(require_real(rates=rates, above=0))[:, None] / p.packet
            p.count = np.broadcast_to(p.flows / len(given), given.shape)
            first = self.start(p, given)
        history = self._integrate(p, first, h, steps)
        sent = np.stack([self.sending(p, state) for state in history]) * p.packet
        return _run(history[:, -1, 0] * p.packet, sent, h, p)

    def _integrate(self, p: Any, first: Any, h: float, steps: int) -> FloatArray:
        """States [steps + 1, components, classes, settings]."""
        history = np.empty((steps + 1, *np.shape(first)))
        history[0] = first
        place = np.ix_(*map(np.arange, first.shape[1:]))
        floor = 1e-9 * p.rate

        def slope(i: int) -> Any:
            past = []
            for lag in self.lags(p, history[i]):
                where = np.clip(i - (lag + p.feedback_delay) / h, 0, i)
                low = np.minimum(where.astype(np.int64), max(i - 1, 0))
                share = (where - low)[..., None]
                before, after = (history[at, :, *place] for at in (low, low + (i > 0)))
                past.append(np.moveaxis(before + share * (after - before), -1, 0))
            return self.derivative(p, history[i], *past)

        with np.errstate(over="ignore", invalid="ignore"):
            for i in range(steps):
                k = slope(i)
                history[i + 1] = history[i] + h * k
                history[i + 1] = history[i] + h / 2 * (k + slope(i + 1))
                history[i + 1, -1] = np.maximum(history[i + 1, -1], 0)
                history[i + 1, 0] = np.maximum(history[i + 1, 0], floor)
        return history


class StabilityShare(NamedTuple):
    """Probabilities that a bottleneck is ``stable``, ``unstable``, ``invalid`` (no fixed point)."""

    stable: float
    unstable: float
    invalid: float


def stability_probability(
    model: FluidModel,
    topology: Topology | nx.Graph[Any],
    flows: Mapping[int, float],
    hop_delay: float,
    base_delay: float = 0.0,
) -> StabilityShare:
    """The probability that congestion control is stable at a bottleneck of a fabric.

    Exact sums over numbers of flows, ``flows`` having the probability of each, and distances of
    random pairs of hosts: the feedback delay is ``hop_delay`` [s] for every link of the path and
    ``base_delay`` besides. The model's own flows and feedback delay are replaced.

    >>> from chapters.s24.ecn import dcqcn
    >>> from relparallel.topology import leaf_spine
    >>> model, fabric = dcqcn(flows=2, rate=40e9 / 8, feedback_delay=0.0), leaf_spine(4, 2, 4)
    >>> stability_probability(model, fabric, {2: 0.5, 20: 0.5}, hop_delay=20e-6).invalid
    0.5
    """
    chance = np.array(list(flows.values()))
    if abs(chance.sum() - 1) > 1e-9:
        raise ValueError(f"flows must have probabilities that sum to 1, got {chance.sum():g}")
    numbers = np.array(list(flows), dtype=float)
    links = hop_statistics(topology).to_frame()["share"]
    delays = base_delay + hop_delay * links.index.to_numpy(float)
    every: Any = replace(model, flows=numbers[:, None], feedback_delay=delays)  # type: ignore[type-var]
    weight = chance[:, None] * links.to_numpy()
    stable, valid = every.stable(), np.broadcast_to(every.fixed_point().valid, weight.shape)
    parts = (stable, valid & ~stable, ~valid)
    return StabilityShare(*(float(weight[part].sum()) for part in parts))


def grown(p: Any, now: Any, rates: Any) -> Any:
    """How fast the queue grows; an empty one does not shrink."""
    net = (p.count * rates).sum(axis=0) - p.rate
    return np.where((now[-1].real <= 0) & (net.real < 0), 0.0, net)


def marked_share(p: Any, queue: Any) -> Any:
    """Marking probability of RED: a ramp from kmin to kmax, then 1; approximations draw it on."""
    ramp = (queue - p.kmin) / (p.kmax - p.kmin) * p.pmax
    if p.model != "exact":
        return ramp
    level = queue.real
    return np.where(level <= p.kmin, 0.0, np.where(level <= p.kmax, ramp, 1.0))


def shaped(values: Any, p: Any) -> Any:
    """An answer in the shape of the parameters; a Python number where they are numbers."""
    found = np.broadcast_to(values, p.flows.shape).reshape(p.shape)
    return found.item() if found.ndim == 0 else found


def _run(queue: FloatArray, rates: FloatArray, h: float, p: Any) -> FluidRun:
    """What a run says of itself; the swing of the queue in two quarters tells whether it grows."""
    quarter = len(queue) // 4
    finite = np.isfinite(queue).all(axis=0)
    calm = np.where(np.isfinite(queue), queue, 0.0)
    swing = [
        np.ptp(calm[part], axis=0) for part in (slice(quarter, 2 * quarter), slice(-quarter, None))
    ]
    mean = calm[-quarter:].mean(axis=0)
    tiny = 1e-9 * np.maximum(mean, p.packet)
    growth = np.log(np.maximum(swing[1], tiny) / np.maximum(swing[0], tiny)) / (2 * quarter * h)
    steady = swing[1] <= 0.01 * np.maximum(mean, p.packet)
    decays = growth <= 0
    cases = {
        "diverges": ~finite,
        "settles": decays & steady,
        "decays": decays & (swing[1] < 0.9 * swing[0]),
    }
    verdict = np.select(list(cases.values()), list(cases), "oscillates")
    return FluidRun(
        time=np.arange(len(queue)) * np.float64(h),
        queue=queue.reshape(-1, *p.shape),
        rates=rates.reshape(*rates.shape[:2], *p.shape),
        growth=shaped(np.where(finite, growth, np.nan), p),
        verdict=shaped(verdict, p),
        final_queue=shaped(np.where(verdict == "settles", mean, np.nan), p),
    )
