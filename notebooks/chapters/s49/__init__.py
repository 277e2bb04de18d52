"""Notebook 49: failures that come together."""

from chapters.s49.bursts import (
    burst as burst,
    goodput_per_node as goodput_per_node,
    shortage_tries as shortage_tries,
)
