"""Notebook 32: parameter servers, levels of links, and the times that NCCL expects."""

from chapters.s32.fastest import fastest_algorithm as fastest_algorithm
from chapters.s32.hierarchies import (
    discover_groups as discover_groups,
    flip_size as flip_size,
    level_rounds_time as level_rounds_time,
    ready_rounds_time as ready_rounds_time,
)
from chapters.s32.nccl import nccl_times as nccl_times
from chapters.s32.servers import (
    byteps_time as byteps_time,
    server_time as server_time,
    superstep_time as superstep_time,
)
