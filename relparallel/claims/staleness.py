"""Published steps and half-lives of training with stale weights, and theorems on them."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize

from relparallel import communication, parallel
from relparallel.book import s40
from relparallel.claims.registry import reproduces, theorem
from relparallel.communication.staleness import Taps, companion_matrix, compensated_taps, spectral_radius
from relparallel.published import Fact, facts


def _method(fact: Fact, decay: float | None = None) -> partial[Taps]:
    """The recurrence of a row's curvature, delays and discrepancy."""
    given: Any = fact.inputs
    forward, backward = (given["tau"], 0) if "tau" in given else (given["tau_f"], given["tau_b"])
    return partial(
        s40.delayed_taps, forward_delay=forward, backward_delay=backward, curvature=given["lambda"],
        discrepancy=given.get("Delta", 0.0), decay=decay,
    )  # fmt: skip


@reproduces("pipemare_T1_*", "pipemare_disc_*")
def delayed_threshold(fact: Fact) -> float:
    """Where a root of the companion matrix leaves the unit circle."""
    return communication.largest_stable_step(_method(fact))


@reproduces("pipemare_T2_*")
def corrected_threshold(fact: Fact) -> float:
    """The same with the correction, of the decay that the row writes as 0.135^(1/4)."""
    plain = facts()[fact.id.replace("T2", "disc")]
    given: Any = plain.inputs
    return communication.largest_stable_step(
        _method(plain, s40.correction_decay(given["tau_f"] - given["tau_b"]))
    )


_GRID = (
    "The row is the best point of a grid of 60 steps and 25 momenta whose bounds it does not give; at the "
    "optimum over all steps and momenta, computed here, 9 % to 18 % fewer updates halve the error."
)


@reproduces("kosson_hl_*", discrepancies={f"kosson_hl_{kind}": _GRID for kind in ("GD", "LWP", "LWP_SC")})
def best_half_life(fact: Fact, lowest: float, curvatures: int) -> float:
    """Fewest updates that halve the worst error of all curvatures, over all steps and momenta."""
    kind, delay = fact.id.removeprefix("kosson_hl_"), 4
    options: Any = {"spike": "SC" in kind, "horizon": delay if "LWP" in kind else 0.0}

    def slowest(point: Any) -> float:
        rate, damping = np.exp(point)
        m = 0.0 if kind == "GD" else max(0.0, 1 - damping)
        methods = (
            compensated_taps(rate, delay, m, curvature=c, **options)
            for c in np.geomspace(lowest, 1, curvatures)
        )
        return max(spectral_radius(method) for method in methods)

    grid = np.log(np.geomspace(1e-3, 1, 13))
    start = min(product(grid, grid), key=slowest)
    return float(np.log(0.5) / np.log(minimize(slowest, start, method="Nelder-Mead").fun))


@theorem("THM-pipemare-threshold", system="PipeMare")
def pipemare_threshold() -> tuple[float, float]:
    """Delayed descent on a parabola is stable below (2/c) sin(pi/(4 t + 2)) and not above it."""
    # Sum over delays of the step where a root leaves the circle, curvature 3, and of the closed form.
    delays = [0, 1, 3, 7, 20]
    roots = [
        communication.largest_stable_step(partial(s40.delayed_taps, forward_delay=t, curvature=3.0))
        for t in delays
    ]
    return sum(roots), float(communication.stable_step(delays, 3.0).sum())


@theorem("THM-pipemare-run", system="PipeMare")
def pipemare_run() -> tuple[float, float]:
    """A simulated run with discrepancy and correction is its companion matrix, again and again."""
    # The weight after 200 updates at the largest stable step, simulated and by a power of the matrix.
    decay = s40.correction_decay(3)
    method = partial(s40.delayed_taps, forward_delay=3, discrepancy=1.0, decay=decay)
    step = communication.largest_stable_step(method)
    slope = communication.quadratic_gradient(1.0, discrepancy=1.0)
    path = communication.delayed_descent(slope, 1.0, np.full(200, step), 3, decay=decay)
    power = np.linalg.matrix_power(companion_matrix(method(step)), 200)
    return float(path[-1]), float(power[0] @ np.tile([1.0, 0.0], 4))


@theorem("THM-pipemare-rates", system="PipeMare")
def pipemare_rates() -> tuple[float, float]:
    """The steps that PipeMare starts with are stable on every stage where the base rate is 1/c."""
    # Stages of 24 whose root lies inside the unit circle at the rate of update 0, and all 24.
    rates = s40.rescheduled_rate(1.0, s40.pipeline_delays(24), 0, 100)
    lags = parallel.weight_delay(parallel.simulate_schedule("pipemare", 24, 120), 1) - 1
    radii = [
        spectral_radius(s40.delayed_taps(float(a), int(lag))) for a, lag in zip(rates, lags, strict=True)
    ]
    return float(np.sum(np.array(radii) < 1)), 24.0
