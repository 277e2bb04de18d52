"""DCQCN and DCQCN+, the congestion control of RoCEv2, as parameters and a right-hand side.

Letters of Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT
2016, whose equations are meant: N flows at a bottleneck of C packets/s, R_C and R_T a flow's
current and target rate.
"""

from typing import Any, ClassVar, Final

import numpy as np

from chapters.s24.delay_equations import FloatArray, Linear, bisected, split_modes
from chapters.s24.fluid import FluidModel, grown, marked_share, shaped
from relparallel._checks import reals, record


@record(eq=False)
class Dcqcn(FluidModel):
    """DCQCN: switches mark, receivers answer with notifications, senders cut and recover rates.

    Right-hand side: the fluid model of ECN or Delay, section 3.1; fixed point: section 3.2, solved
    exactly. ``feedback_delay`` is tau*, ``increase`` R_AI [bytes/s], ``byte_counter`` B of rate
    increases [bytes], ``gain`` g of the average alpha of marks, ``recovery`` the F steps of fast
    recovery; ``cnp_interval``, ``alpha_interval`` and ``timer`` are tau, tau' and T [s]; marks rise
    to ``pmax`` between ``kmin`` and ``kmax`` [bytes].

    `phase_margin` and `critical_delay` know four models, each one step from the next: "published"
    (as the authors' stability.m evaluates appendix A, see `published`), "taylor" (the same
    expansion, linearised without slips), "taylor point" (exact linearisation at the expanded fixed
    point), and "exact".

    >>> m = Dcqcn(flows=10, rate=40e9 / 8, feedback_delay=50e-6)
    >>> round(m.fixed_point().queue), m.fixed_point().valid
    (122623, True)
    >>> round(m.critical_delay() * 1e6, 2), round(m.phase_margin(model="published"), 3)
    (62.47, -6.621)
    """

    models: ClassVar[tuple[str, ...]] = ("exact", "taylor point", "taylor", "published")
    in_packets: ClassVar[tuple[str, ...]] = ("rate", "increase", "kmin", "kmax", "byte_counter")
    flows: Any = reals(at_least=1)
    rate: Any = reals(above=0)
    feedback_delay: Any = reals(at_least=0)
    increase: Any = reals(default=40e6 / 8, above=0)
    packet: Any = reals(default=1000.0, above=0)
    kmin: Any = reals(default=5e3, at_least=0)
    kmax: Any = reals(default=200e3, above=0)
    pmax: Any = reals(default=0.01, above=0, at_most=1)
    gain: Any = reals(default=1 / 256, above=0, at_most=1)
    cnp_interval: Any = reals(default=50e-6, above=0)
    alpha_interval: Any = reals(default=55e-6, above=0)
    recovery: Any = reals(default=5.0, at_least=0)
    byte_counter: Any = reals(default=10e6, above=0)
    timer: Any = reals(default=55e-6, above=0)

    @staticmethod
    def equilibrium(p: Any) -> tuple[FloatArray, Any, Any]:
        """Where both rates stand still, or its expansion; beyond pmax the ramp is drawn on."""
        share = p.rate / p.flows

        def excess(log_p: Any) -> Any:
            cut, alpha, faster, higher = _terms(p, np.exp(log_p), share)
            return np.log(cut**2 * alpha) - np.log(
                faster * higher * p.cnp_interval**2 * p.increase * share
            )

        if p.model == "exact":
            low, high = np.full(share.shape, np.log(1e-12)), np.full(share.shape, np.log(0.999))
            marking = np.exp(bisected(excess, low, high))
        else:
            counters = 1 / p.byte_counter + 1 / (p.timer * share)
            marking = (p.increase / (p.alpha_interval * share**2) * counters**2) ** (1 / 3)
        cut, alpha, _, higher = _terms(p, marking, share)
        target = share * (1 + higher * p.cnp_interval * p.increase / cut)
        queue = p.kmin + marking / p.pmax * (p.kmax - p.kmin)
        return np.array([share, target, alpha, queue]), marking, marking <= p.pmax

    @staticmethod
    def derivative(p: Any, now: Any, *past: Any) -> Any:
        """The fluid model."""
        rate, target, alpha, _ = now
        late, marking = past[0][0], marked_share(p, past[0][-1])
        cut, marked, faster, higher = _terms(p, marking, late, p.model == "taylor")
        up, gap = late * faster, target - rate
        return np.array(
            [
                -rate * alpha / (2 * p.cnp_interval) * cut + gap / 2 * up,
                -gap / p.cnp_interval * cut + p.increase * late * higher,
                p.gain / p.alpha_interval * (marked - alpha),
                grown(p, now, rate) + 0 * rate,
            ]
        )

    @staticmethod
    def start(p: Any, rates: Any) -> Any:
        """New flows: target and current rate alike, alpha 1, an empty queue."""
        return np.stack([rates, rates, 1.0 + 0 * rates, 0 * rates])

    def linear(self, model: str = "exact") -> tuple[Linear, ...]:
        """The linearisation of the model, or the one that was published."""
        return (
            split_modes(self.published())
            if model == "published"
            else FluidModel.linear(self, model)
        )

    def published(self) -> Linear:
        """Linear model behind the published margins, at the expanded fixed point.

        ECN or Delay, appendix A, as the authors' stability.m evaluates it. Against the expanded
        equations four things differ: A = 1/B + 1/(T R_C) is held constant where it depends on the
        rate; the factors R_C(t - tau*) and R_T - R_C of recovery have exchanged their delays; R_AI
        A acts on R_T twice, with and without delay; and alpha follows g R_C (p - alpha) instead of
        g/tau' (tau' R_C p - alpha).
        """
        p = self.values("published")
        (rate, target, alpha, _), marking, _ = self.equilibrium(p)
        a, ramp = 1 / p.byte_counter + 1 / (p.timer * rate), p.pmax / (p.kmax - p.kmin)
        half, pull = 0.5 + a / 4, marking * rate
        fill, gap, steps = (
            a / 2 * rate - (0.5 + a / 4) * pull,
            target - rate,
            1 + 2 * p.recovery + a / 2,
        )
        now, late = np.zeros((2, rate.size, 4, 4))
        now[:, 0, 0] = -pull * alpha / 2 + gap * fill / rate
        now[:, 0, 1], now[:, 0, 2] = fill, -pull * rate / 2
        now[:, 1, 0], now[:, 1, 1] = pull + a * p.increase, -pull
        now[:, 2, 2], now[:, 3, 0] = -p.gain * rate, p.flows
        late[:, 0, 0] = -pull * alpha / 2 - fill
        late[:, 0, 3] = -(rate**2 * alpha / 2 + half * rate * gap) * ramp
        late[:, 1, 0] = a * p.increase - marking * (gap + steps * p.increase)
        late[:, 1, 3] = -(rate * gap + steps * p.increase * rate) * ramp
        late[:, 2, 3] = p.gain * rate * ramp
        return Linear(now=now, past=((np.zeros(rate.size), late),))

    def convergence_bound(self) -> Any:
        """Bound [s] on the time until rates differ by under a tenth of a fair share, from C apart.

        tau' dT ln(0.1/N) / ln(1 - alpha/2) with dT = 2 + (t/2 + C/(2 N R_AI)) alpha, where t
        periods fill a queue of kmax, and alpha = (1 - g)^(dT-1) ((1 - g) alpha + g). ECN or Delay,
        section 3.3; its appendix B prints the exponent dT, the published numbers have dT - 1.
        """
        p = self.values()
        steps = p.flows * p.increase
        fill = (np.sqrt(1 + 8 * p.kmax / (steps * p.alpha_interval)) - 1) / 2

        def cycle(alpha: Any) -> Any:
            return 2 + (fill / 2 + p.rate / (2 * steps)) * alpha

        def excess(alpha: Any) -> Any:
            return alpha - (1 - p.gain) ** (cycle(alpha) - 1) * ((1 - p.gain) * alpha + p.gain)

        alpha = bisected(excess, np.zeros_like(steps), np.ones_like(steps))
        return shaped(
            p.alpha_interval * cycle(alpha) * np.log(0.1 / p.flows) / np.log1p(-alpha / 2), p
        )


def _terms(p: Any, marking: Any, rate: Any, expanded: bool = False) -> Any:
    """a, alpha*, b + d and c + e of ECN or Delay, or their expansions to the first order in p."""
    steps = (p.byte_counter, p.timer * rate)
    if expanded:
        faster = sum(1 / n - marking * (1 + 1 / n) / 2 for n in steps)
        higher = faster - 2 * p.recovery * marking
        return p.cnp_interval * marking * rate, p.alpha_interval * marking * rate, faster, higher
    chance = np.where(marking.real <= 0, 1e-15, np.where(marking.real >= 1, 1 - 1e-12, marking))
    kept = np.log1p(-chance)
    faster, higher = 0.0, 0.0
    for n in steps:
        every = chance * np.exp(n * kept) / -np.expm1(n * kept)  # p / ((1 - p)^-n - 1)
        faster, higher = faster + every, higher + every * np.exp(p.recovery * n * kept)
    return (
        -np.expm1(p.cnp_interval * rate * kept),
        -np.expm1(p.alpha_interval * rate * kept),
        faster,
        higher,
    )


@record(eq=False)
class DcqcnPlus(Dcqcn):
    """DCQCN+: periods and steps follow the number of flows that share a bottleneck.

    With more flows than ``reference`` tau, tau' and T grow with N/reference, and R_AI falls with
    it: all that a flow does takes as many packets as before, and the marking probability no longer
    depends on N. The scaling is the idea of the paper in its simplest form, not its tables. Gao et
    al., "DCQCN+", ICNP 2018.

    >>> m = DcqcnPlus(flows=[10, 1000], rate=40e9 / 8, feedback_delay=50e-6)
    >>> m.fixed_point().valid.tolist(), m.fixed_point().queue.round().tolist()
    ([True, True], [93766.0, 93766.0])
    """

    reference: Any = reals(default=8.0, at_least=1)

    def values(self, model: str = "exact") -> Any:
        """Everything in packets, scaled."""
        p = Dcqcn.values(self, model)
        scale = np.maximum(1, p.flows / p.reference)
        for name in ("cnp_interval", "alpha_interval", "timer"):
            setattr(p, name, getattr(p, name) * scale)
        p.increase = p.increase / scale
        return p


dcqcn: Final = Dcqcn
dcqcn_plus: Final = DcqcnPlus
