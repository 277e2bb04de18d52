"""Notebook 41: a job on a fleet of servers with standbys and two stages of repair."""

from chapters.s41.copies import (
    checkpoint_recovery_probability as checkpoint_recovery_probability,
    time_to_pair_loss as time_to_pair_loss,
)
from chapters.s41.verified_patterns import best_verified_pattern as best_verified_pattern
