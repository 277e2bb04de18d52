"""Notebook 34: work that fills the bubbles of a pipeline, and the best order of its passes."""

from relparallel.book.s34.bubbles import fill_bubbles as fill_bubbles
from relparallel.book.s34.synthesis import best_order as best_order
