"""Notebook 63: a step of learning from human feedback."""

from relparallel.book.s63.rlhf import rlhf as rlhf
