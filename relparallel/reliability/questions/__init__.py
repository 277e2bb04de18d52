"""Exact answers to other questions: directed, up-down, shared risk, fractions, and counts by size."""
