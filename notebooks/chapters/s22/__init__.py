"""Notebook 22: circuits that move with the traffic, networks side by side, large ones in part."""

from chapters.s22.abridged import abridge as abridge
from chapters.s22.circuits import (
    circuit_demand as circuit_demand,
    schedule_circuits as schedule_circuits,
)
from chapters.s22.gallery import gallery as gallery
from chapters.s22.moved_circuits import reconfigure as reconfigure
