"""Notebook 11: how often a system fails, and what it delivers while parts of it are down."""

from chapters.s11.expected_delivery import performability as performability
from relparallel.reliability import failure_frequency as failure_frequency
