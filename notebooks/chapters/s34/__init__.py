"""Notebook 34: work that fills bubbles, the best order of passes, versions of the weights."""

from chapters.s34.activations import stage_activation_bytes as stage_activation_bytes
from chapters.s34.bubbles import fill_bubbles as fill_bubbles
from chapters.s34.synthesis import best_order as best_order
from chapters.s34.weight_versions import (
    iteration_period as iteration_period,
    weight_versions as weight_versions,
)
