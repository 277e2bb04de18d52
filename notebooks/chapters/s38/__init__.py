"""Notebook 38: larger batches, jobs that share a cluster, and models that share a GPU."""

from chapters.s38.batch import UpdateRule as UpdateRule, noise_scale as noise_scale
from chapters.s38.model_switching import (
    switch_plan as switch_plan,
    switching_time as switching_time,
)
from chapters.s38.nexus import nexus as nexus
from chapters.s38.shared_jobs import (
    StatisticalGoodput as StatisticalGoodput,
    modelled_application as modelled_application,
)
from chapters.s38.sharing import share_cluster as share_cluster
