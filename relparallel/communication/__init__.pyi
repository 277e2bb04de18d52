from .descent import (
    delayed_descent as delayed_descent,
    least_squares_gradient as least_squares_gradient,
    quadratic_gradient as quadratic_gradient,
)
from .recurrence import (
    companion_matrix as companion_matrix,
    largest_stable_step as largest_stable_step,
    spectral_radius as spectral_radius,
)
from .staleness import (
    compensated_taps as compensated_taps,
    correction_decay as correction_decay,
    delayed_taps as delayed_taps,
    pipeline_delays as pipeline_delays,
    rescheduled_rate as rescheduled_rate,
    stable_step as stable_step,
)
