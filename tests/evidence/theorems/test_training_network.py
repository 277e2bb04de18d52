"""Theorems on stragglers, optical switching and degraded networks."""

import math
from itertools import product

from theorem_table import theorem

from chapters import s48
from relparallel import parallel, training, units


@theorem("THM-degraded-states", system="Reliability of a parallel strategy")
def test_speed_over_states():
    """Expected speed by classes of parts, and summed over single parts up or down, is the same."""
    # Classes in order of slowdown, and all 2^9 states.
    counts, slowdowns, down = (4, 3, 2), (1.1, 1.5, 3.0), (0.1, 0.2, 0.3)
    parts = tuple(
        s48.RepairableParts(name="part", count=n, rate=q / (1 - q), repair=1.0, slowdown=s)
        for n, s, q in zip(counts, slowdowns, down, strict=True)
    )
    single = [(s, q) for n, s, q in zip(counts, slowdowns, down, strict=True) for _ in range(n)]
    total = math.fsum(
        math.prod(q if off else 1 - q for off, (_, q) in zip(state, single, strict=True))
        / max(s if off else 1.0 for off, (s, _) in zip(state, single, strict=True))
        for state in product((False, True), repeat=len(single))
    )
    return float(s48.expected_speed(parts)), total


@theorem("THM-slow-ranks", system="Reliability of a parallel strategy")
def test_slow_ranks_over_all_sets():
    """The worst replica's slow stages give the mean slowdown over all sets of slow ranks."""
    # Closed form, and all 2^12 sets of slow ranks of TP 2, PP 3, DP 2.
    q, strategy = 0.15, parallel.Strategy(tensor=2, pipeline=3, data=2)
    total = 0.0
    for slow in product((False, True), repeat=12):
        stages = [any(slow[i : i + 2]) for i in range(0, 12, 2)]
        worst = max(sum(stages[:3]), sum(stages[3:]))
        chance = q ** sum(slow) * (1 - q) ** (12 - sum(slow))
        total += chance * s48.pipeline_slowdown(worst, 3, micro_batches=4, factor=1.3)
    return s48.slow_ranks(strategy, q, 1.3, micro_batches=4).mean, total


@theorem("THM-dual-homed-cards", system="Reliability of a parallel strategy")
def test_both_ports_down():
    """Both ports of a card are down as often as the Markov chain of two ports enters that state."""
    # Rate at 3,000 cards with links of Alibaba's clusters and repair in a day.
    rate, repair = training.published_network_rates()["cable"], units.DAY
    load = rate * repair  # states 0, 1 and 2 down in the ratio 1 : 2 load : load^2
    one_down = 2 * load / (1 + 2 * load + load**2)
    return s48.joint_loss_rate(3000, 2, rate, repair), 3000 * one_down * rate
