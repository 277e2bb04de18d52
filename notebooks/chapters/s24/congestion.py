"""TIMELY, patched TIMELY, HPCC and DCTCP, as parameters and a right-hand side.

Letters and equations of TIMELY are those of Zhu et al., "ECN or Delay", CoNEXT 2016.
"""

from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from chapters.s24.delay_equations import FloatArray, Linear, bisected
from chapters.s24.fluid import FluidModel, grown, marked_share
from relparallel._checks import reals, record


@record(eq=False)
class Timely(FluidModel):
    """TIMELY: senders follow the gradient of the round-trip time; it has no fixed point.

    ECN or Delay, section 4.1. Rates grow at g <= 0, also at g = 0, where the queue stands still.
    Mittal et al., "TIMELY", SIGCOMM 2015. ``feedback_delay`` is D_prop: the queue and one packet
    add to it. ``increase`` is delta [bytes/s], ``decrease`` beta, ``smoothing`` alpha; ``burst`` is
    Seg, after which a rate is updated [bytes]; ``low``, ``high`` and ``shortest`` are T_low, T_high
    and D_minRTT [s].

    >>> Timely(flows=2, rate=10e9 / 8, feedback_delay=4e-6).fixed_point().valid
    False
    """

    flows: Any = reals(at_least=1)
    rate: Any = reals(above=0)
    feedback_delay: Any = reals(at_least=0)
    increase: Any = reals(default=10e6 / 8, above=0)
    decrease: Any = reals(default=0.8, above=0, at_most=1)
    smoothing: Any = reals(default=0.875, above=0, at_most=1)
    burst: Any = reals(default=16e3, above=0)
    packet_size: Any = reals(default=1e3, above=0)
    low: Any = reals(default=50e-6, above=0)
    high: Any = reals(default=500e-6, above=0)
    shortest: Any = reals(default=20e-6, above=0)

    @staticmethod
    def equilibrium(p: Any) -> tuple[FloatArray, Any, Any]:
        """There is none."""
        share = p.rate / p.flows
        return np.array([share, 0 * share, np.nan * share]), np.nan * share, share < 0

    @staticmethod
    def lags(p: Any, now: Any) -> tuple[Any, ...]:
        """The queue and a packet; and the time between two updates more."""
        feedback = (now[-1].real + p.packet_size) / p.rate
        return feedback, feedback + _update(p, now[0]).real

    @staticmethod
    def derivative(p: Any, now: Any, *past: Any) -> Any:
        """Rate, gradient, queue."""
        rate, gradient, _ = now
        middle = np.where(gradient.real <= 0, p.increase, -gradient * p.decrease * rate)
        return _timely(p, now, past, middle)

    def linear(self, model: str = "exact") -> tuple[Linear, ...]:
        """There is none without a fixed point."""
        if not np.any(self.fixed_point().valid):
            raise ValueError(f"a model without a fixed point has no linearisation, got {self!r}")
        return FluidModel.linear(self, model)


@record(eq=False)
class PatchedTimely(Timely):
    """Patched TIMELY: the rate falls with the queue itself, in proportion to a gradient weight.

    Its weight is w = 1/2 + ``slope`` g, cut at 0 and 1. ECN or Delay, section 4.3, with its fixed
    point q = N delta q'/(beta C) + q' with q' = C T_low. The paper and its runs have slope 2; the
    published margins (model "published") were computed with 1/2.

    >>> PatchedTimely(flows=10, rate=10e9 / 8, feedback_delay=4e-6).fixed_point().queue
    140625.0
    """

    models: ClassVar[tuple[str, ...]] = ("exact", "published")
    decrease: Any = reals(default=0.008, above=0, at_most=1)
    slope: Any = reals(default=2.0, above=0)

    def values(self, model: str = "exact") -> Any:
        """Parameters; the published margins have another slope."""
        p = FluidModel.values(self, model)
        if model == "published":
            p.slope = np.full_like(p.slope, 0.5)
        return p

    @staticmethod
    def equilibrium(p: Any) -> tuple[FloatArray, Any, Any]:
        """Fair shares and the queue, where it is below C T_high."""
        share, wanted = p.rate / p.flows, p.rate * p.low
        queue = wanted * (1 + p.flows * p.increase / (p.decrease * p.rate))
        return np.array([share, 0 * share, queue]), np.nan * share, queue <= p.rate * p.high

    @staticmethod
    def derivative(p: Any, now: Any, *past: Any) -> Any:
        """As TIMELY, with another rule between the thresholds."""
        rate, gradient, _ = now
        line = 0.5 + p.slope * gradient
        weight = np.where(line.real <= 0, 0.0, np.where(line.real >= 1, 1.0, line))
        error = past[0][-1] / (p.rate * p.low) - 1
        return _timely(p, now, past, (1 - weight) * p.increase - weight * p.decrease * rate * error)


def _update(p: Any, rate: Any) -> Any:
    """Time between two updates of a rate: Seg/R, not below D_minRTT."""
    return np.where(p.burst / rate.real > p.shortest, p.burst / rate, p.shortest)


def _timely(p: Any, now: Any, past: Any, middle: Any) -> Any:
    """Both TIMELYs: below T_low, above T_high, and ``middle`` between; per update."""
    rate, gradient, _ = now
    queue, update = past[0][-1], _update(p, now[0])
    highest = p.rate * p.high
    cut = -p.decrease * (1 - highest / np.where(queue.real > highest, queue, highest)) * rate
    change = np.where(
        queue.real < p.rate * p.low, p.increase, np.where(queue.real > highest, cut, middle)
    )
    seen = (queue - past[1][-1]) / (p.rate * p.shortest)
    queue_change = grown(p, now, rate) + 0 * rate
    return np.stack([change / update, p.smoothing / update * (seen - gradient), queue_change])


@record(eq=False)
class Hpcc(FluidModel):
    """HPCC: senders set their window from the load that switches report.

    W' = (W (eta/U - 1) + W_AI)/T with the load U = min(1, sum W/(C T)) + q/(C T): a step of Euler's
    method of length T is the update of the paper, W <- W eta/U + W_AI. At a load of 1 the model has
    a kink, and no linearisation. Li et al., "HPCC", SIGCOMM 2019, eq. 2 and 4, without stages and
    average.

    The reported load is ``feedback_delay`` late; ``round_trip`` is T without a queue, ``target``
    eta, the load that is aimed at, and ``increase`` W_AI [bytes]; by default C T (1 - eta)/N, with
    which the load is 1 and the queue empty.

    >>> Hpcc(flows=8, rate=100e9 / 8, feedback_delay=10e-6).fixed_point().queue
    0.0
    """

    flows: Any = reals(at_least=1)
    rate: Any = reals(above=0)
    feedback_delay: Any = reals(at_least=0)
    round_trip: Any = reals(default=10e-6, above=0)
    target: Any = reals(default=0.95, above=0, at_most=1)
    increase: Any = reals(default=None, above=0)

    def values(self, model: str = "exact") -> Any:
        """Parameters with the default increase."""
        if self.increase is not None:
            return FluidModel.values(self, model)
        spare = 1 - np.asarray(self.target)
        size = np.asarray(self.rate) * self.round_trip * spare / self.flows
        return FluidModel.values(replace(self, increase=size), model)

    @staticmethod
    def equilibrium(p: Any) -> tuple[FloatArray, Any, Any]:
        """Load eta + N W_AI/(C T); what is above 1 stands in the queue."""
        whole = p.rate * p.round_trip
        load = p.target + p.flows * p.increase / whole
        queue = np.where(load > 1 + 1e-12, (load - 1) * whole, 0.0)
        return np.array([load * whole / p.flows, queue]), np.nan * load, load > 0

    @staticmethod
    def start(p: Any, rates: Any) -> Any:
        """Windows that send at these rates over an empty queue."""
        return np.stack([rates * p.round_trip, 0 * rates])

    @staticmethod
    def sending(p: Any, now: Any) -> Any:
        """A window in every round trip."""
        return now[0] / (p.round_trip + now[-1] / p.rate)

    @staticmethod
    def derivative(p: Any, now: Any, *past: Any) -> Any:
        """The update of the paper as a flow."""
        window, whole = now[0], p.rate * p.round_trip
        sent = (p.count * past[0][0]).sum(axis=0) / whole
        load = np.where(sent.real < 1, sent, 1.0) + past[0][-1] / whole
        change = (window * (p.target / load - 1) + p.increase) / p.round_trip
        return np.stack([change, grown(p, now, Hpcc.sending(p, now)) + 0 * window])

    def linear(self, model: str = "exact") -> tuple[Linear, ...]:
        """The linearisation below a load of 1."""
        if np.any(self.fixed_point().queue > 0) or self.increase is None:
            raise ValueError(
                f"increase must keep the load below 1, where HPCC is smooth, got {self!r}"
            )
        whole, apart = FluidModel.linear(self, model)  # an empty queue does not move: it is no mode
        past = tuple((lag, matrix[:, :-1, :-1]) for lag, matrix in whole.past)
        own = tuple((lag, 0 * matrix) for lag, matrix in past)  # only the sum of windows comes back
        return Linear(now=whole.now[:, :-1, :-1], past=past), Linear(now=apart.now, past=own)


@record(eq=False)
class Dctcp(FluidModel):
    """DCTCP: windows shrink in proportion to the share of marked packets.

    W' = (1 - W alpha p/2)/R, alpha' = g (p - alpha)/R, with R = round_trip + q/C. Alizadeh,
    Javanmard and Prabhakar, "Analysis of DCTCP", SIGMETRICS 2011, with a ramp from ``kmin`` to
    ``kmax`` [bytes] where theirs has a step, which has no fixed point. Marks are ``feedback_delay``
    late, beside the queue; ``pmax`` is their probability at ``kmax``, ``gain`` g.

    >>> m = Dctcp(flows=10, rate=10e9 / 8, feedback_delay=100e-6)
    >>> round(m.fixed_point().marking, 4), m.fixed_point().valid
    (0.3756, True)
    """

    in_packets: ClassVar[tuple[str, ...]] = ("rate", "kmin", "kmax")
    flows: Any = reals(at_least=1)
    rate: Any = reals(above=0)
    feedback_delay: Any = reals(at_least=0)
    packet: Any = reals(default=1500.0, above=0)
    kmin: Any = reals(default=20e3, at_least=0)
    kmax: Any = reals(default=200e3, above=0)
    pmax: Any = reals(default=1.0, above=0, at_most=1)
    gain: Any = reals(default=1 / 16, above=0, at_most=1)
    round_trip: Any = reals(default=100e-6, above=0)

    @staticmethod
    def equilibrium(p: Any) -> tuple[FloatArray, Any, Any]:
        """Where a window of C R/N packets loses in a round trip what it gains: W p^2 = 2."""

        def queue(marking: Any) -> Any:
            return p.kmin + marking / p.pmax * (p.kmax - p.kmin)

        def window(marking: Any) -> Any:
            return (p.rate * p.round_trip + queue(marking)) / p.flows

        low, high = np.zeros(p.rate.shape), np.full(p.rate.shape, 100.0)
        marking = bisected(lambda x: x**2 * window(x) - 2, low, high)
        return np.array([window(marking), marking, queue(marking)]), marking, marking <= p.pmax

    @staticmethod
    def lags(p: Any, now: Any) -> tuple[Any, ...]:
        """The queue."""
        return (now[-1].real / p.rate,)

    @staticmethod
    def start(p: Any, rates: Any) -> Any:
        """Windows that send at these rates over an empty queue."""
        return np.stack([rates * p.round_trip, 0 * rates, 0 * rates])

    @staticmethod
    def sending(p: Any, now: Any) -> Any:
        """A window in every round trip."""
        return now[0] / (p.round_trip + now[-1] / p.rate)

    @staticmethod
    def derivative(p: Any, now: Any, *past: Any) -> Any:
        """Window, average of marks, queue."""
        window, alpha, queue = now
        trip, marking = p.round_trip + queue / p.rate, marked_share(p, past[0][-1])
        change = (1 - window * alpha * marking / 2) / trip
        queue_change = grown(p, now, Dctcp.sending(p, now)) + 0 * window
        return np.stack([change, p.gain * (marking - alpha) / trip, queue_change])


timely: Final = Timely
patched_timely: Final = PatchedTimely
hpcc: Final = Hpcc
dctcp: Final = Dctcp
