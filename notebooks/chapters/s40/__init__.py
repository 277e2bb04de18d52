"""Notebook 40: what old gradients and old weights cost, with workers and in pipelines."""

from chapters.s40.asynchrony import (
    asynchronous_run as asynchronous_run,
    asynchronous_taps as asynchronous_taps,
    ssp_throughput as ssp_throughput,
)
from chapters.s40.cocoa import cocoa as cocoa
from chapters.s40.least_squares import least_squares_gradient as least_squares_gradient
from chapters.s40.pipeline_staleness import (
    compensated_taps as compensated_taps,
    correction_decay as correction_decay,
    delayed_taps as delayed_taps,
    pipeline_delays as pipeline_delays,
    rescheduled_rate as rescheduled_rate,
)
from chapters.s40.staleness import (
    largest_stable_step as largest_stable_step,
    quadratic_gradient as quadratic_gradient,
    stable_step as stable_step,
)
