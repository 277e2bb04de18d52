"""Notebook 23: what failures leave: throughput, resilience curves, racks that share a feed."""

from relparallel.book.s23.power import with_power_domains as with_power_domains
from relparallel.book.s23.resilience import (
    field_losses as field_losses,
    resilience_curve as resilience_curve,
)
from relparallel.book.s23.routes import (
    vertex_connectivity as vertex_connectivity,
)
from relparallel.book.s23.throughput import (
    aggregate_bottleneck_throughput as aggregate_bottleneck_throughput,
    throughput_under_failures as throughput_under_failures,
)
