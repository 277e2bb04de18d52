"""Theorems on compressed, asynchronous and large-batch training."""

from functools import partial
from typing import Any

import numpy as np
from theorem_table import theorem

from chapters import descent, s36, s38, s40
from evidence.claims.communication import _normal


@theorem("THM-truncated-lasso", system="Truncated gradient")
def test_truncated_lasso():
    """On an orthonormal design the truncated gradient ends at soft-thresholded least squares."""
    # Sum of squared weights after 200 updates with pull 0.5, and of the closed form.
    best = _normal(30)
    pull = s36.truncated_gradient(lambda w, u: w - best, rate=0.5, gravity=0.5)
    found = descent.delayed_descent(pull, np.zeros(30), np.full(200, 0.5), 0)[-1]
    return float(found @ found), float(np.sum(np.maximum(np.abs(best) - 0.5, 0) ** 2))


@theorem("THM-dropping-loses-nothing", system="Sparse communication (gradient dropping)")
def test_dropping_loses_nothing():
    """What was sent and what is kept add up to all gradients."""
    # Squared norm of both sums after 300 gradients of which 1 % is sent.
    gradients, method = _normal(300, 400), s36.ErrorFeedback(s36.top_k(0.01))
    sent = np.zeros(400)
    memory: Any = None
    for gradient in gradients:
        message, memory = method.send(gradient, memory)
        sent += message.decode()
    both, whole = sent + memory.residual, gradients.sum(axis=0)
    return float(both @ both), float(whole @ whole)


@theorem("THM-hogwild-momentum", system="Hogwild! / ASP")
def test_asynchrony_is_momentum():
    """Descent averaged over geometric delays has momentum 1 - 1/P and a P times smaller rate."""
    # The mean weight after 60 updates of 8 workers: over all delays, and by the two taps.
    workers, rate, weights = 8, 0.4, np.ones(1)
    for t in range(60):
        chance = (1 - 1 / workers) ** np.arange(t + 1) / workers
        before_start = (1 - 1 / workers) ** (t + 1)
        new = weights[-1] - rate * (chance @ weights[::-1] + before_start * weights[0])
        weights = np.append(weights, new)
    taps = [np.asarray(tap) for tap in s40.asynchronous_taps(rate, workers).values()]
    now, last = np.asarray(1.0 - rate), np.ones(())  # all workers begin with the same weights
    for _ in range(59):
        now, last = taps[0] * now + taps[1] * last, now
    return float(weights[-1]), float(now)


@theorem("THM-dynssp-rate", system="DynSSP")
def test_delay_scaled_rate():
    """Divided by the staleness, delay + 1, one rate below pi/(2 c) is stable at every delay."""
    # Largest stable undivided rates at five delays: roots of the companion matrix, and the closed
    # form.
    delays = np.array([0, 1, 2, 5, 20])

    def divided(rate: float, delay: int) -> Any:
        return s40.delayed_taps(rate / (delay + 1), delay, curvature=2.0)

    roots = [s40.largest_stable_step(partial(divided, delay=delay)) for delay in delays.tolist()]
    return sum(roots), float(np.sum((delays + 1) * s40.stable_step(delays, 2.0)))


@theorem("THM-petuum-staleness", system="Petuum")
def test_most_missing_updates():
    """Under staleness bound s an update misses at most (P - 1)(2 s + 1) updates; this is tight."""
    # Four workers, s = 3: one is ahead by 3 clocks, then the others overtake it in its next clock.
    times = np.full((20, 4), 0.01)
    times[0, 1:], times[3, 0] = 1.0, 100.0
    return int(s40.asynchronous_run(times, staleness=3).delays.max()), 3 * 7


@theorem("THM-downpour-delay", system="DistBelief (Downpour SGD)")
def test_downpour_delay():
    """With weights fetched every n clocks updates miss P - 1 + P (n - 1)/2 others on average."""
    # Five workers, n = 4, equal clocks out of step; over whole periods after the first.
    times = np.ones((80, 5))
    times[0] += np.arange(5) / 5
    return float(s40.asynchronous_run(times, fetch=4).delays[100:300].mean()), 4 + 5 * 3 / 2


@theorem("THM-cocoa-ridge", system="CoCoA")
def test_cocoa_ridge():
    """CoCoA ends at the solution of the ridge regression."""
    # Squared norm of the weights after 600 rounds of four workers, and of the linear system's
    # solution.
    x, y = _normal(24, 4), _normal(24)
    run = s40.cocoa(x, y, workers=4, local_steps=12, rounds=600, rng=np.random.default_rng(1))
    solved = np.linalg.solve(x.T @ x / 24 + 0.1 * np.eye(4), x.T @ y / 24)
    return float(run.weights @ run.weights), float(solved @ solved)


@theorem("THM-lamb-layers", system="LAMB")
def test_lamb_layers():
    """LAMB moves every layer by the rate times the norm of its weights, whatever the gradients."""
    # Sum over three layers of the lengths of the fifth update, and of 0.1 times the norms before
    # it.
    scales = np.repeat([1e-4, 1.0, 1e4], 20)
    rule = s38.UpdateRule(momentum=0.9, second=0.999, trust=1.0)
    path = descent.delayed_descent(
        rule.directed(lambda w, u: scales * w, layers=(20, 40)), _normal(60), np.full(5, 0.1), 0
    )
    before, moved = path[4].reshape(3, 20), (path[5] - path[4]).reshape(3, 20)
    return float(np.linalg.norm(moved, axis=1).sum()), float(
        0.1 * np.linalg.norm(before, axis=1).sum()
    )


@theorem("THM-critical-batch", system="Data parallelism and critical batch")
def test_critical_batch():
    """The best step on a noisy parabola makes 1/(1 + noise/B) of the progress without noise."""
    # Best of all rates with a batch of 8, from three points of the expected loss; and by the noise
    # scale.
    slope, spread, c = _normal(6), np.linspace(0.5, 3, 6), 2.0

    def squared(b: float) -> float:
        return float(slope @ slope + spread @ spread / b)

    def best(b: float) -> float:
        losses = [-a * (slope @ slope) + c * a**2 / 2 * squared(b) for a in (0.0, 1.0, 2.0)]
        a2, a1, _ = np.polyfit([0.0, 1.0, 2.0], losses, 2)
        return float(a1**2 / (4 * a2))

    noise = s38.noise_scale(4, 64, [squared(4)], [squared(64)])
    return best(8) / best(1e18), 1 / (1 + noise / 8)
