"""Notebook 11: what a system delivers while parts of it are down."""

from chapters.s11.expected_delivery import performability as performability
