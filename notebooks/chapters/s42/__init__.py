"""Notebook 42: laws fitted to the lives of machines, and the records of published runs."""

from chapters.s42.lifetime_fits import fit_lifetimes as fit_lifetimes
from chapters.s42.published_runs import (
    predict_runs as predict_runs,
    published_runs as published_runs,
)
from chapters.s42.start_ups import start_up_law as start_up_law
from chapters.s42.unequal_nodes import unequal_throughput as unequal_throughput
