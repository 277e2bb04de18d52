"""Notebook 45: the failure rate at which two strategies change places."""

from chapters.s45.joint_break_even import break_even_rate as break_even_rate
