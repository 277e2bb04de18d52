"""Accelerators, the clusters made of them, and how often their parts fail."""

from relparallel.hardware.accelerators import Accelerator, accelerator, accelerators
from relparallel.hardware.cluster import LEVELS, Cluster, cluster, clusters
from relparallel.hardware.rates import ComponentRate, ComponentRates, llama3_interruptions, observed_rate

__all__ = [
    "LEVELS",
    "Accelerator",
    "Cluster",
    "ComponentRate",
    "ComponentRates",
    "accelerator",
    "accelerators",
    "cluster",
    "clusters",
    "llama3_interruptions",
    "observed_rate",
]
