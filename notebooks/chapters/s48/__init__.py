"""Notebook 48: optical links, degraded states and GPUs that are slow."""

from chapters.s48.degraded_states import (
    RepairableParts as RepairableParts,
    expected_speed as expected_speed,
)
from chapters.s48.joint_losses import joint_loss_rate as joint_loss_rate
from chapters.s48.optical import rewired as rewired, usable_fraction as usable_fraction
from chapters.s48.straggler_traces import read_straggler_trace as read_straggler_trace
from chapters.s48.stragglers import (
    noise_slowdown as noise_slowdown,
    pipeline_slowdown as pipeline_slowdown,
    slow_ranks as slow_ranks,
)
