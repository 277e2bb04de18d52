"""Notebook 43: replicas that failures hit, and what goes on without them."""

from chapters.s43.elastic import elastic_throughput as elastic_throughput
from chapters.s43.replicas_hit import expected_replicas_hit as expected_replicas_hit
