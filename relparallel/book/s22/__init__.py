"""Notebook 22: the throughput that failures leave."""

from relparallel.book.s22.throughput import (
    aggregate_bottleneck_throughput as aggregate_bottleneck_throughput,
    throughput_under_failures as throughput_under_failures,
)
