"""Theorems on congestion control, links and flows."""

from itertools import product
from types import SimpleNamespace

import numpy as np
from theorem_table import theorem

from chapters import s24
from relparallel import topology
from relparallel.units import GBIT


@theorem("THM-dcqcn-plus-flows", system="DCQCN+")
def test_dcqcn_plus_marking():
    """With periods in proportion to the flows, steps inversely, marking does not depend on them."""
    # Marking probability of 5,000 flows, and of the 8 whose parameters they scale.
    model = s24.dcqcn_plus(flows=[5000, 8], rate=40 * GBIT, feedback_delay=0.0)
    many, few = model.fixed_point().marking
    return float(many), float(few)


@theorem("THM-pfc-headroom", system="PFC")
def test_pfc_overshoot():
    """What arrives after a pause request is at most the headroom, and as much in the worst case."""
    # Packets that start before the pause works at the sender; the worst of all phases of their
    # starts.
    rate, length, mtu, response = 12.5e9, 300.0, 4096.0, 3840.0
    flight = 4.76e-9 * length
    # the pause waits for a packet, travels, is processed
    stop = mtu / rate + flight + response / rate
    phases = np.append(np.linspace(0, 1, 101), stop * rate / mtu % 1) * mtu / rate
    # start of the last packet
    last = phases + np.floor((stop - phases) * rate / mtu + 1e-9) * mtu / rate
    worst = float((last + mtu / rate + flight).max()) * rate
    return worst, float(s24.pfc_headroom(rate, length, mtu, response))


@theorem("THM-pfc-deadlock", system="PFC")
def test_pfc_deadlock():
    """Shortest paths on a torus let buffers wait in a circle, those of a fat-tree do not."""
    # Links of the circle of a 5 x 5 torus that follow each other, and of a fat-tree; a ring has 5.
    circles = [s24.buffer_cycle(t) for t in (topology.torus((5, 5)), topology.fat_tree(4))]
    follow = [
        sum(circle[i - 1][1] == circle[i][0] for i in range(len(circle))) for circle in circles
    ]
    return float(sum(follow)), 5.0


@theorem("THM-infiniband-credits", system="InfiniBand credits")
def test_credit_run():
    """Credits give the throughput of a sender waiting for the credit of the k-th packet before."""
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
    return total, float(s24.credit_rate(buffers, rate, length, packet).sum())


@theorem("THM-roce-go-back-n", system="RoCE / RoCEv2")
def test_go_back_n():
    """Going back costs a window per loss: goodput is 1 over expected packets sent per packet."""
    # Sum over numbers of losses of one packet, and the closed form.
    p, window = 0.02, 60
    sent = sum((1 - p) * p**k * (1 + k * window) for k in range(40))
    return 1 / sent, float(s24.loss_goodput(p, window, "go_back_n"))


@theorem("THM-irn-selective", system="IRN")
def test_selective_repeat():
    """Sending again what was lost, and nothing else, leaves 1 - p whatever the window."""
    # The chance that a packet sent is the one that arrives, over numbers of losses.
    p = 0.3
    sent = sum((1 - p) * p**k * (1 + k) for k in range(80))
    return 1 / sent, float(s24.loss_goodput(p, 1e6))


@theorem("THM-flow-collisions", system="Flow scheduling in data centres")
def test_collisions():
    """The busiest of m links carries on average what the sum over all m^n ways says."""
    # Seven flows over three links, all ways and the generating function.
    ways = [np.bincount(way, minlength=3).max() for way in product(range(3), repeat=7)]
    return float(np.mean(ways)), s24.expected_max_load(7, 3)


@theorem("THM-flow-rearrangeable", system="Flow scheduling in data centres")
def test_rearrangeable():
    """A fat-tree carries every permutation without a collision if the flows are placed (Benes)."""
    # Largest loads of five random permutations of 16 hosts, placed best; and five times one.
    rng, fabric = np.random.default_rng(5), topology.fat_tree(4)
    orders = [rng.permutation(16).tolist() for _ in range(5)]
    flows = [list(zip(order, order[1:] + order[:1], strict=True)) for order in orders]
    return sum(s24.place_flows(fabric, some).load for some in flows), 5.0


@theorem("THM-timely-no-fixed-point", system="TIMELY")
def test_timely_grows():
    """Where the queue stands still, at gradient 0, TIMELY flows still grow by delta an update."""
    # Change of the rates of two flows over all splits, times the time between updates, and twice
    # delta.
    model = s24.timely(flows=2, rate=10 * GBIT, feedback_delay=0.0)
    p: SimpleNamespace = model.values()
    p.count, grown = np.ones((2, 1)), []
    for share in (0.1, 0.3, 0.5):
        rates = p.rate * np.array([[share], [1 - share]])
        state = np.stack([rates, 0 * rates, 0 * rates + p.rate * 100e-6])
        grown.append(
            (model.derivative(p, state, state, state)[0] * np.maximum(p.burst / rates, 20e-6)).sum()
        )
    return float(np.mean(grown)), 2 * float(p.increase[0])
