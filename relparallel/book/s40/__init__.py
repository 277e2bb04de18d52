"""Notebook 40: what a pipeline without idle time pays in stale weights."""

from relparallel.book.s40.least_squares import least_squares_gradient as least_squares_gradient
from relparallel.book.s40.pipeline_staleness import (
    compensated_taps as compensated_taps,
    correction_decay as correction_decay,
    delayed_taps as delayed_taps,
    pipeline_delays as pipeline_delays,
    rescheduled_rate as rescheduled_rate,
)
