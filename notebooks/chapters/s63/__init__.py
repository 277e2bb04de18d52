"""Notebook 63: a step of learning from human feedback."""

from chapters.s63.rlhf import rlhf as rlhf
