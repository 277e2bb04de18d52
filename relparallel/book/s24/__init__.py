"""Notebook 24: circuits that move with the traffic, networks side by side, large ones in part."""

from relparallel.book.s24.abridged import abridge as abridge
from relparallel.book.s24.circuits import (
    circuit_demand as circuit_demand,
    schedule_circuits as schedule_circuits,
)
from relparallel.book.s24.gallery import gallery as gallery
from relparallel.book.s24.moved_circuits import reconfigure as reconfigure
