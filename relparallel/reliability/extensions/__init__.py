"""Exact answers to other questions: parts that fail together, in groups of shared risk."""
