"""Published margins, delays and bounds of congestion control, and theorems on links and flows."""

from itertools import product
from math import log
from types import SimpleNamespace
from typing import Any

import numpy as np

from relparallel import topology
from relparallel.book import s23
from relparallel.book.s23.ecn import Dcqcn
from relparallel.claims.registry import reproduces, theorem
from relparallel.published import Fact
from relparallel.units import GBIT, KB, MICROSECOND

_KEYS = {
    "kmin": "Kmin", "kmax": "Kmax", "pmax": "pmax", "gain": "g", "cnp_interval": "tau", "byte_counter": "B",
    "alpha_interval": "tau'", "recovery": "F", "timer": "T",
}  # fmt: skip


def _megabits(text: Any) -> float:
    """A rate written in Mb/s, in bytes/s."""
    return float(str(text).removesuffix("Mb/s")) * GBIT / 1000


def _dcqcn(fact: Fact, **others: Any) -> Dcqcn:
    """DCQCN with the parameters of a row."""
    row: Any = fact.inputs
    given = {name: row[key] for name, key in _KEYS.items()}
    given |= {"flows": row.get("N", 1), "rate": row["C"], "feedback_delay": row.get("delay", 0.0)}
    packet = float(str(row["pkt"]).removesuffix("bit")) / 8
    return s23.dcqcn(**given | {"increase": _megabits(row["R_AI"]), "packet": packet} | others)


def _patched(fact: Fact) -> Any:
    """Patched TIMELY with the parameters of a row."""
    row: Any = fact.inputs
    return s23.patched_timely(
        flows=row["N"], rate=row["C"], feedback_delay=row.get("Dprop", 0.0), burst=row["Seg"],
        packet_size=row["MTU"], increase=_megabits(row["delta"]), low=row["Tlow"], shortest=row["minRTT"],
        decrease=row["beta"], smoothing=row["alpha"],
    )  # fmt: skip


@reproduces("dcqcn_pm_*")
def dcqcn_margin(fact: Fact) -> float:
    """Of the linear model of the paper's appendix."""
    return float(_dcqcn(fact).phase_margin(model="published"))


@reproduces("dcqcn_convergence_*")
def dcqcn_convergence(fact: Fact) -> float:
    """Until rates differ by a tenth of the fair share."""
    return float(_dcqcn(fact).convergence_bound())


@reproduces("timely_pm_*")
def timely_margin(fact: Fact) -> float:
    """Of the slope that the authors' script has."""
    return float(_patched(fact).phase_margin(model="published"))


@reproduces("dcqcn_pstar_exact_*")
def dcqcn_marking(fact: Fact) -> float:
    """At the exact fixed point."""
    return float(_dcqcn(fact).fixed_point().marking)


@reproduces("dcqcn_qstar_exact_*", "dcqcn_pub_sim_q_*")
def dcqcn_queue(fact: Fact) -> float:
    """At the exact fixed point."""
    return float(_dcqcn(fact).fixed_point().queue) / KB


@reproduces("dcqcn_critdelay_exact_*")
def dcqcn_critical_delay(fact: Fact) -> float:
    """Of the exact linearisation."""
    return float(_dcqcn(fact).critical_delay()) / MICROSECOND


@reproduces("dcqcn_validN_*")
def dcqcn_first_off_the_ramp(fact: Fact) -> int:
    """Fewest flows without a valid fixed point."""
    flows = np.arange(1, 200)
    return int(flows[~_dcqcn(fact, flows=flows).fixed_point().valid][0])


@reproduces("dcqcn_pub_stability")
def dcqcn_stable(fact: Fact) -> tuple[int, ...]:
    """By the roots of the exact linearisation."""
    found = _dcqcn(fact, flows=np.array([2, 10]), feedback_delay=np.array([[85e-6], [4e-6]])).stable()
    return tuple(int(stable) for stable in found.ravel())


@reproduces("dcqcn_cheb_nodes")
def dcqcn_root_error(fact: Fact, nodes: int) -> float:
    """Against 40 nodes, at 25 settings."""
    flows, delays = np.arange(2.0, 11, 2), np.linspace(20e-6, 100e-6, 5)[:, None]
    model = _dcqcn(fact, flows=flows, feedback_delay=delays)
    exact = model.rightmost_root(nodes=40)
    return float(np.max(np.abs(model.rightmost_root(nodes=nodes) - exact) / np.abs(exact)))


@reproduces("timely_patched_qstar_*")
def timely_queue(fact: Fact) -> float:
    """At the fixed point."""
    return float(_patched(fact).fixed_point().queue) / KB


@reproduces("timely_patched_conv_*")
def timely_convergence(fact: Fact, N: int) -> float:
    """From the slowest root of differences between flows."""
    mode = _patched(fact).linear()[1]
    return -log(N / 0.1) / float(np.linalg.eigvals(mode.now[0]).real.max())


@reproduces("timely_orig_fixedpoints")
def timely_fixed_points(C: float, beta: float, alpha: float, N: int) -> tuple[int, int]:
    """Fair states that stand still; and, where rates fall at g = 0, directions in which all do."""
    model = s23.timely(flows=N, rate=C, feedback_delay=0.0, decrease=beta, smoothing=alpha)
    p = model.values()
    p.count = np.ones((N, 1))
    fair = np.stack([np.full((N, 1), C / N), np.zeros((N, 1)), np.full((N, 1), C * 100e-6)])

    def stands(state: Any) -> bool:
        change = model.derivative(p, state, state, state) / np.array([C, 1.0, C])[:, None, None]
        return bool(np.abs(change).max() < 1e-3)  # per second

    unequal = np.array([1.0, -1.0] + [0.0] * (N - 2))
    moves = np.array([
        [0.1 * C / N * unequal, 0 * unequal, 0 * unequal], [0 * unequal, 0.1 + 0 * unequal, 0 * unequal],
        [0.1 * C / N + 0 * unequal, 0 * unequal, 0 * unequal],
        [0 * unequal, 0 * unequal, C * 1e-5 + 0 * unequal],
    ])[..., None]  # fmt: skip
    falling = fair + np.array([0.0, 1e-9, 0.0])[:, None, None]  # just inside the branch of falling rates
    return int(stands(fair)), sum(stands(falling + move) for move in moves)


def _hpcc(eta: float, N: int, share: float) -> Any:
    whole = 100 * GBIT * 10e-6
    return s23.hpcc(
        flows=N, rate=100 * GBIT, feedback_delay=10e-6, target=eta, increase=share * whole * (1 - eta) / N
    )


@reproduces("hpcc_fix")
def hpcc_load(eta: float, N: int, share: float) -> float:
    """Of a run from a twentieth of the rate."""
    model = _hpcc(eta, N, share)
    run = model.simulate(5e-3, 5e-6, rates=[model.rate / 20 / N])
    return float(run.rates[-1, 0] * N / model.rate)


@reproduces("hpcc_fair")
def hpcc_contraction(eta: float, N: int, share: float) -> float:
    """Of the difference of two windows, by one step of a round trip at a full load."""
    p = _hpcc(eta, N, share).values()
    p.count = np.ones((2, 1))
    window = p.rate * p.round_trip * np.array([[0.7], [0.3]])
    state = np.stack([window, 0 * window])
    change = s23.hpcc.derivative(p, state, state)[0] * p.round_trip
    return 1 + float((change[0] - change[1])[0] / (window[0] - window[1])[0])


@reproduces("irn_bdp")
def irn_cap(C: float, RTT: float, MTU: float) -> tuple[float, float]:
    """Buffer that a window of one round trip fills, and its packets: a credit loop of that length."""
    packets = np.arange(1, 1000)
    loop = RTT - MTU / C  # beside the packet itself
    full = s23.credit_rate(packets * MTU, rate=C, length=0.0, packet=MTU, response=loop) >= C
    return float(packets[full][0] * MTU), float(packets[full][0])


@reproduces("pfc_hr_gbe")
def pfc_cable(C: float, length: float) -> float:
    """The part of the headroom that grows with the cable."""
    return float(s23.pfc_headroom(C, length) - s23.pfc_headroom(C, 0.0))


@reproduces("incast_rto200")
def incast_rate(S: float, C: float, RTO: float) -> float:
    """In Mbit/s."""
    return float(s23.incast_goodput(S, C, RTO)) / GBIT * 1000


@reproduces("incast_rto1")
def incast_share(S: float, C: float, RTO: float) -> float:
    """Of the link."""
    return float(s23.incast_goodput(S, C, RTO)) / C


@theorem("THM-dcqcn-plus-flows", system="DCQCN+")
def dcqcn_plus_marking() -> tuple[float, float]:
    """With periods in proportion to the flows, steps inversely, marking does not depend on them."""
    # Marking probability of 5,000 flows, and of the 8 whose parameters they scale.
    model = s23.dcqcn_plus(flows=[5000, 8], rate=40 * GBIT, feedback_delay=0.0)
    many, few = model.fixed_point().marking
    return float(many), float(few)


@theorem("THM-pfc-headroom", system="PFC")
def pfc_overshoot() -> tuple[float, float]:
    """What arrives after a pause was asked for is at most the headroom, and as much in the worst case."""
    # Packets that start before the pause works at the sender; the worst of all phases of their starts.
    rate, length, mtu, response = 12.5e9, 300.0, 4096.0, 3840.0
    flight = 4.76e-9 * length
    stop = mtu / rate + flight + response / rate  # the pause waits for a packet, travels, is processed
    phases = np.append(np.linspace(0, 1, 101), stop * rate / mtu % 1) * mtu / rate
    last = phases + np.floor((stop - phases) * rate / mtu + 1e-9) * mtu / rate  # start of the last packet
    worst = float((last + mtu / rate + flight).max()) * rate
    return worst, float(s23.pfc_headroom(rate, length, mtu, response))


@theorem("THM-pfc-deadlock", system="PFC")
def pfc_deadlock() -> tuple[float, float]:
    """Shortest paths on a torus let buffers wait in a circle, those of a fat-tree do not."""
    # Links of the circle of a 5 x 5 torus that follow each other, and of a fat-tree; a ring has 5.
    circles = [s23.buffer_cycle(t) for t in (topology.torus((5, 5)), topology.fat_tree(4))]
    follow = [sum(circle[i - 1][1] == circle[i][0] for i in range(len(circle))) for circle in circles]
    return float(sum(follow)), 5.0


@theorem("THM-infiniband-credits", system="InfiniBand credits")
def credit_run() -> tuple[float, float]:
    """Throughput under credits is that of a sender who waits for the credit of the k-th packet before."""
    # Packets of 4 KiB over 2 km with 3, 20 and 60 credits, one by one; and the closed form.
    rate, length, packet = 50e9, 2000.0, 4096.0
    total = 0.0
    for k in (3, 20, 60, 300):
        start = np.zeros(20 * k + 1)
        for i in range(1, start.size):
            free = start[i - k] + packet / rate + 2 * length * 4.76e-9 if i >= k else 0.0
            start[i] = max(start[i - 1] + packet / rate, free)
        total += 10 * k * packet / (start[-1] - start[-1 - 10 * k])
    buffers = np.array([3, 20, 60, 300]) * packet
    return total, float(s23.credit_rate(buffers, rate, length, packet).sum())


@theorem("THM-roce-go-back-n", system="RoCE / RoCEv2")
def go_back_n() -> tuple[float, float]:
    """Going back costs a window for every loss: goodput is one over the expected packets sent per packet."""
    # Sum over numbers of losses of one packet, and the closed form.
    p, window = 0.02, 60
    sent = sum((1 - p) * p**k * (1 + k * window) for k in range(40))
    return 1 / sent, float(s23.loss_goodput(p, window, "go_back_n"))


@theorem("THM-irn-selective", system="IRN")
def selective_repeat() -> tuple[float, float]:
    """Sending again what was lost, and nothing else, leaves 1 - p whatever the window."""
    # The chance that a packet sent is the one that arrives, over numbers of losses.
    p = 0.3
    sent = sum((1 - p) * p**k * (1 + k) for k in range(80))
    return 1 / sent, float(s23.loss_goodput(p, 1e6))


@theorem("THM-flow-collisions", system="Flow scheduling in data centres")
def collisions() -> tuple[float, float]:
    """The busiest of m links carries on average what the sum over all m^n ways says."""
    # Seven flows over three links, all ways and the generating function.
    ways = [np.bincount(way, minlength=3).max() for way in product(range(3), repeat=7)]
    return float(np.mean(ways)), s23.expected_max_load(7, 3)


@theorem("THM-flow-rearrangeable", system="Flow scheduling in data centres")
def rearrangeable() -> tuple[float, float]:
    """A fat-tree carries every permutation without a collision, if somebody places the flows (Benes)."""
    # Largest loads of five random permutations of 16 hosts, placed best; and five times one.
    rng, fabric = np.random.default_rng(5), topology.fat_tree(4)
    orders = [rng.permutation(16).tolist() for _ in range(5)]
    flows = [list(zip(order, order[1:] + order[:1], strict=True)) for order in orders]
    return sum(s23.place_flows(fabric, some).load for some in flows), 5.0


@theorem("THM-timely-no-fixed-point", system="TIMELY")
def timely_grows() -> tuple[float, float]:
    """Where the queue stands still, at gradient 0, every TIMELY flow still grows by delta an update."""
    # Change of the rates of two flows over all splits, times the time between updates, and twice delta.
    model = s23.timely(flows=2, rate=10 * GBIT, feedback_delay=0.0)
    p: SimpleNamespace = model.values()
    p.count, grown = np.ones((2, 1)), []
    for share in (0.1, 0.3, 0.5):
        rates = p.rate * np.array([[share], [1 - share]])
        state = np.stack([rates, 0 * rates, 0 * rates + p.rate * 100e-6])
        grown.append((model.derivative(p, state, state, state)[0] * np.maximum(p.burst / rates, 20e-6)).sum())
    return float(np.mean(grown)), 2 * float(p.increase[0])
