"""Exact answers to other questions: up-down, shared risk, fractions, and counts by size."""
