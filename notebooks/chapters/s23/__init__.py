"""Notebook 23: what failures leave: throughput, resilience curves, racks that share a feed."""

from chapters.s23.planes import two_planes as two_planes
from chapters.s23.power import with_power_domains as with_power_domains
from chapters.s23.resilience import (
    field_losses as field_losses,
    resilience_curve as resilience_curve,
)
from chapters.s23.routes import (
    vertex_connectivity as vertex_connectivity,
)
from chapters.s23.throughput import (
    aggregate_bottleneck_throughput as aggregate_bottleneck_throughput,
    throughput_under_failures as throughput_under_failures,
)
