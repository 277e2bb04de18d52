"""Notebook 49: failures that come together."""

from chapters.s49.bursts import (
    burst as burst,
    kept_by_law as kept_by_law,
    shortage_tries as shortage_tries,
)
