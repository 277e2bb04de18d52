"""Notebook 32: the times that NCCL expects of its algorithms."""

from relparallel.book.s32.nccl import nccl_times as nccl_times
