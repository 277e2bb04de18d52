from .descent import (
    delayed_descent as delayed_descent,
    least_squares_gradient as least_squares_gradient,
    quadratic_gradient as quadratic_gradient,
)
from .staleness import (
    correction_decay as correction_decay,
    delayed_taps as delayed_taps,
    largest_stable_step as largest_stable_step,
    pipeline_delays as pipeline_delays,
    rescheduled_rate as rescheduled_rate,
    stable_step as stable_step,
)
