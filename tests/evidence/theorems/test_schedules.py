"""Theorems on pipeline schedules, each played by the simulator."""

import numpy as np
from theorem_table import theorem

from chapters import s34
from relparallel import parallel


@theorem("THM-chimera-bubble", system="Zero-bubble and Chimera")
def test_chimera_bubble():
    """With equal passes, simulated Chimera idles (D - 2)/(2 N + D - 2) of the time."""
    # Idle share of 8 stages and 32 micro-batches, simulated and by Li and Hoefler's table 2.
    return parallel.simulate_schedule(
        "chimera", 8, 32, forward=1.0, backward=1.0
    ).idle_fraction, 6 / (64 + 6)


@theorem("THM-zero-bubble-forms", system="Zero-bubble and Chimera")
def test_zero_bubble_forms():
    """With unequal passes H1 idles (p - 1)(f + b - w), and 2p (p - 1)(f + b - 2 w)."""
    # Idle times of 6 stages, H1 and a hundred times 2p, simulated and by Qi et al.'s table 1.
    f, b, w, p, m = 1.0, 1.25, 0.75, 6, 24
    played = (
        parallel.simulate_schedule(
            name, p, m, forward=f, backward=b + w, backward_weight=w, iterations=3
        )
        for name in ("zb_h1", "zb_2p")
    )
    idle = [s34.iteration_period(timeline, m) - m * (f + b + w) for timeline in played]
    return idle[0] + 100 * idle[1], (p - 1) * (f + b - w) + 100 * (p - 1) * (f + b - 2 * w)


@theorem("THM-pipedream-versions", system="PipeDream (asynchronous 1F1B)")
def test_pipedream_versions():
    """PipeDream keeps p - i weight versions on stage i, with one update per p at most two."""
    # Sum over 9 stages, plus a hundred times the most of PipeDream-2BW.
    one = s34.weight_versions(parallel.simulate_schedule("pipedream", 9, 36), 1)
    two = s34.weight_versions(parallel.simulate_schedule("pipedream_2bw", 9, 9, iterations=4), 9)
    return float(one.sum() + 100 * two.max()), 9 * 10 / 2 + 100 * 2


@theorem("THM-pipedream-throughput", system="PipeDream (asynchronous 1F1B)")
def test_pipedream_throughput():
    """Without a flush the slowest stage alone sets the pace, whatever the others take."""
    # Seconds per 10 micro-batches, simulated, and ten times the slowest stage's passes.
    timeline = parallel.simulate_schedule(
        "pipedream", 4, 10, forward=[1, 2, 1.5, 1], backward=[2, 3, 3, 3], iterations=6
    )
    return s34.iteration_period(timeline, 10), 10 * 5.0


@theorem("THM-pipemare-delay", system="PipeMare")
def test_pipemare_delay():
    """Simulated PipeMare has 2 (P - i) + 1 updates between stage i's forward pass and its own."""
    # Sum over 7 stages of the delays and of the closed form, weighted by the stage.
    delay = parallel.weight_delay(parallel.simulate_schedule("pipemare", 7, 42), 1)
    stage = np.arange(1, 8)
    return float(delay @ stage), float((2 * (7 - stage) + 1) @ stage)


@theorem("THM-dapple-limit", system="DAPPLE schedule")
def test_dapple_limit():
    """Early backward passes with K_i = min(p - i, D) warm-up ones hold at most D micro-batches."""
    # Sum of the simulated peaks of 8 stages with D = 5, and of min(p - i, D).
    peaks = parallel.simulate_schedule("dapple", 8, 24, most_in_flight=5).peak_in_flight
    return float(peaks.sum()), float(np.minimum(8 - np.arange(8), 5).sum())


@theorem("THM-eager-hides", system="Eager-1F1B")
def test_eager_hides():
    """Eager-1F1B keeps a pipeline busy while a transfer is no longer than half a pass pair."""
    # Seconds from one micro-batch to the next in a long run whose transfers take 1.5, and without
    # any.
    long = parallel.simulate_schedule("eager_1f1b", 4, 200, communication=1.5)
    short = parallel.simulate_schedule("eager_1f1b", 4, 100, communication=1.5)
    return (long.makespan - short.makespan) / 100, 3.0


@theorem("THM-1f1b-optimal", system="Schedule synthesis")
def test_one_forward_one_backward_optimal():
    """No order of 4 stages, 8 micro-batches and undivided passes beats 1F1B under its memory."""
    # Span by exhaustive search, and simulated.
    best = s34.best_order(4, 8, most_in_flight=4)
    return float(best.span), parallel.simulate_schedule("1f1b", 4, 8).makespan


@theorem("THM-zero-bubble-synthesis", system="Schedule synthesis")
def test_zero_bubble_synthesis():
    """With divided passes search finds H1's span under memory p, no bubble from 2 p - 1 on."""
    # Digits of the idle times under memory p, 2 p - 2 and 2 p - 1 for 4 stages and 8 micro-batches.
    idle = [
        s34.best_order(4, 8, backward_weight=1, most_in_flight=limit, local=True).span - 24
        for limit in (4, 6, 7)
    ]
    form = parallel.bubble_fraction("zb_h1", 4, 8) * 24
    return 100.0 * idle[0] + 10 * idle[1] + idle[2], 100 * form + 10 * 1 + 0


@theorem("THM-bubble-filling", system="Schedule synthesis")
def test_bubble_filling():
    """Unit tasks fill the bubble (p - 1)(f + b) of every 1F1B stage completely."""
    # Seconds filled on 5 stages by as many unit tasks as would ever fit, and the bubbles' sum.
    timeline = parallel.simulate_schedule("1f1b", 5, 10)
    filling = s34.fill_bubbles(timeline, np.repeat(np.arange(5), 20), 1.0)
    return float(filling.filled.sum()), 5 * 4 * 3.0
