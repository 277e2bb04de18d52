"""Notebook 45: what a failure sets in motion, step by step."""

from relparallel.book.s45.consequences import consequences as consequences
