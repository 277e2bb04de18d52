"""What training bears when its communication comes later: delayed gradients and their stable steps.

`recurrence` answers when a linear recurrence with delays is stable; `staleness` holds the methods that train
with stale weights, each as the taps of such a recurrence; `descent` simulates them.
"""

from relparallel.communication.descent import delayed_descent, least_squares_gradient, quadratic_gradient
from relparallel.communication.recurrence import (
    companion_matrix,
    largest_stable_step,
    spectral_radius,
)
from relparallel.communication.staleness import (
    compensated_taps,
    correction_decay,
    delayed_taps,
    pipeline_delays,
    rescheduled_rate,
    stable_step,
)

__all__ = [
    "companion_matrix",
    "compensated_taps",
    "correction_decay",
    "delayed_descent",
    "delayed_taps",
    "largest_stable_step",
    "least_squares_gradient",
    "pipeline_delays",
    "quadratic_gradient",
    "rescheduled_rate",
    "spectral_radius",
    "stable_step",
]
