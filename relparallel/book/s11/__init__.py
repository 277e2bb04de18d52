"""Notebook 11: how often a system fails, and what it delivers while it is partly down."""

from relparallel.book.s11.expected_delivery import performability as performability
from relparallel.book.s11.frequency import failure_frequency as failure_frequency
