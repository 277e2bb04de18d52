"""Shortages of a log by three models, and bursts of one mean."""

import numpy as np
import pytest

from chapters.s49 import burst, goodput_per_node, shortage_tries
from chapters.s49.bursts import halves
from relparallel.units import DAY
from small_logs import PLAN, in_threes


@pytest.mark.parametrize("ratio", [1.0, 2.5, 6.0])
def test_a_burst_has_the_variance_that_it_is_asked_for(ratio):
    sizes = np.array(burst(ratio, 200).sizes)
    nodes = np.arange(1, sizes.size + 1)
    assert (sizes @ nodes**2) / (sizes @ nodes) == pytest.approx(ratio, rel=1e-3)


def test_halves_are_the_failures_that_begin_in_them():
    log = in_threes()
    parts = halves(log)
    first, second = parts["first half"], parts["second half"]
    assert len(first.start) + len(second.start) == len(log.start)
    assert first.span == second.span == pytest.approx(log.span / 2)
    assert max(first.end.max(), second.end.max()) <= log.span / 2


def test_independent_failures_ask_for_too_few_spares():
    """Three nodes at a time: the model is short as often as asked, independent failures far more."""
    found = shortage_tries(in_threes(), 0.01).query("fitted == 'whole'").set_index("model")
    assert found.loc["independent", "shortage"] > 0.015
    assert found.loc["events", "shortage"] <= 0.012
    assert abs(found.loc["events", "spares"] - found.loc["events", "least"]) <= 3


def test_bursts_cost_spares_and_not_elastic_replicas():
    given = {"nodes": 400, "rate": 4.2e-3 / DAY, "repair": 5.6 * DAY, "checkpointing": PLAN}
    jobs = ({"policy": "hot_spares", "spares": 18}, {"policy": "elastic", "replica": 4})
    alone, together = (
        [goodput_per_node(burst(ratio, 60), **given, **job) for job in jobs] for ratio in (1.0, 6.0)
    )
    assert alone[0] > alone[1]
    assert together[0] < together[1] - 0.05
    assert together[1] == pytest.approx(alone[1], abs=0.005)


def test_a_record_is_replayed_on_the_nodes_that_are_owned():
    log = in_threes()
    given = {"nodes": 60, "rate": log.rate, "repair": DAY, "checkpointing": PLAN}
    waits = goodput_per_node(log.replay(), "restart", **given)
    up = log.down_distribution()[0]
    assert waits < up
    assert waits > up - 0.1
