"""Rank orders as one more axis of the joint choice."""

from dataclasses import replace

import pytest

from relparallel.hardware import cluster
from relparallel.optimize import joint
from relparallel.parallel import step_time
from relparallel.workload import transformer


def test_rank_orders_are_priced_as_step_time_prices_their_placements():
    """The best of two orders is the better one alone; strategies take what `step_time` says."""
    model = transformer("gpt3-6.7b")
    home = replace(cluster("a100-80gb-selene", gpus=32), network_bandwidth=25e9)
    limits = {"schedule": "1f1b", "recompute": "none", "sequence_parallel": False, "context": 1}
    usual, replicas_apart = (
        ("tensor", "context", "data", "pipeline"),
        ("tensor", "context", "pipeline", "data"),
    )
    plans = {
        orders: joint(model, home, global_batch=32, limits=limits, spares=0, orders=orders)
        for orders in [(usual,), (replicas_apart,), (usual, replicas_apart)]
    }
    both = plans[usual, replicas_apart]
    assert both.goodput == max(plans[usual,].goodput, plans[replicas_apart,].goodput)
    assert both.placement.order in (usual, replicas_apart)
    other = plans[replicas_apart,].search.sites[0].fastest
    for row in range(0, len(other.grid), 7):
        said = step_time(model, other.grid[row], home, 32, placement=other.placement(row)).total
        assert other.time[row] == pytest.approx(said, rel=1e-12)
