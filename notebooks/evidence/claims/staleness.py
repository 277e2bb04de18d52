"""Published steps and half-lives of training with stale weights."""

from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize

from chapters import s40
from chapters.s40.staleness import Taps, spectral_radius
from evidence.claims.registry import Rows
from relparallel.published import Fact, facts


def _method(fact: Fact, decay: float | None = None) -> partial[Taps]:
    """The recurrence of a row's curvature, delays and discrepancy."""
    given: Any = fact.inputs
    forward, backward = (given["tau"], 0) if "tau" in given else (given["tau_f"], given["tau_b"])
    return partial(
        s40.delayed_taps,
        forward_delay=forward,
        backward_delay=backward,
        curvature=given["lambda"],
        discrepancy=given.get("Delta", 0.0),
        decay=decay,
    )


def delayed_threshold(fact: Fact) -> float:
    """Where a root of the companion matrix leaves the unit circle."""
    return s40.largest_stable_step(_method(fact))


def corrected_threshold(fact: Fact) -> float:
    """The same with the correction, of the decay that the row writes as 0.135^(1/4)."""
    plain = facts()[fact.id.replace("T2", "disc")]
    given: Any = plain.inputs
    return s40.largest_stable_step(
        _method(plain, s40.correction_decay(given["tau_f"] - given["tau_b"]))
    )


_GRID = (
    "The row is the best point of a grid of 60 steps and 25 momenta whose bounds it does not give; "
    "at the "
    "optimum over all steps and momenta, computed here, 9 % to 18 % fewer updates halve the error."
)


def best_half_life(fact: Fact, lowest: float, curvatures: int) -> float:
    """Fewest updates that halve the worst error of all curvatures, over all steps and momenta."""
    kind, delay = fact.id.removeprefix("kosson_hl_"), 4
    options: Any = {"spike": "SC" in kind, "horizon": delay if "LWP" in kind else 0.0}

    def slowest(point: Any) -> float:
        rate, damping = np.exp(point)
        m = 0.0 if kind == "GD" else max(0.0, 1 - damping)
        methods = (
            s40.compensated_taps(rate, delay, m, curvature=c, **options)
            for c in np.geomspace(lowest, 1, curvatures)
        )
        return max(spectral_radius(method) for method in methods)

    grid = np.log(np.geomspace(1e-3, 1, 13))
    start = min(product(grid, grid), key=slowest)
    return float(np.log(0.5) / np.log(minimize(slowest, start, method="Nelder-Mead").fun))


ROWS: Final[Rows] = {
    "pipemare_T1_* pipemare_disc_*": delayed_threshold,
    "pipemare_T2_*": corrected_threshold,
    "kosson_hl_*": (
        best_half_life,
        {f"kosson_hl_{kind}": _GRID for kind in ("GD", "LWP", "LWP_SC")},
    ),
}
