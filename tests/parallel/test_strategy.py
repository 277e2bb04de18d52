"""Degrees, copies of the state and the placement of ranks."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel.parallel import Placement, Strategy

ORDERS = list(permutations(("tensor", "context", "data", "pipeline")))
small = st.integers(1, 4)
strategies = st.builds(
    lambda t, p, d, c: Strategy(tensor=t, pipeline=p, data=d, context=c), small, small, small, small
)


@given(strategy=strategies)
def test_gpus_are_the_product_of_the_degrees(strategy):
    degrees = (strategy.tensor, strategy.pipeline, strategy.data, strategy.context)
    assert strategy.gpus == np.prod(degrees)
    assert strategy.model_parallel * strategy.data == strategy.gpus
    assert strategy.for_gpus(strategy.gpus) is strategy


def test_a_strategy_that_does_not_fill_the_gpus_is_refused_with_its_degrees():
    with pytest.raises(ValueError, match=r"gpus .* = 8 \* 8 \* 16 \* 1 = 1024, got 1000"):
        Strategy(tensor=8, pipeline=8, data=16).for_gpus(1000)


def test_experts_divide_data_times_context_and_are_no_factor():
    assert Strategy(data=4, context=2, expert=8).gpus == 8
    with pytest.raises(ValueError, match=r"expert must divide data \* context = 4 \* 2, got 3"):
        Strategy(data=4, context=2, expert=3)


def test_copies_of_the_state_survive_a_lost_replica_without_sharding_or_with_hybrid_sharding():
    assert Strategy(data=16).state_copies == 16
    assert Strategy(data=16, zero_stage=1).state_copies == 1
    assert Strategy(data=16, zero_stage=3, shard=4).state_copies == 4
    assert Strategy(data=16, zero_stage=3, shard=4).shard_group == 4


def test_replacing_the_data_degree_keeps_the_default_shard():
    assert replace(Strategy(data=16, zero_stage=1), data=15).shard_group == 15


def test_a_shard_that_does_not_divide_data_is_refused():
    with pytest.raises(ValueError, match="shard must divide data = 16, got 3"):
        Strategy(data=16, shard=3)


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_virtual_stages_need_the_interleaved_schedule(schedule):
    with pytest.raises(ValueError, match="virtual_stages"):
        Strategy(pipeline=4, virtual_stages=2, schedule=schedule)
    with pytest.raises(ValueError, match="virtual_stages"):
        Strategy(virtual_stages=2, schedule="interleaved_1f1b")


def test_micro_batches_split_the_batch_evenly_or_not_at_all():
    assert Strategy(data=15, pipeline=16).micro_batches(2160) == 144
    with pytest.raises(ValueError, match=r"global_batch must be a multiple of 32 .* got 100"):
        Strategy(data=16, micro_batch=2).micro_batches(100)
    interleaved = Strategy(pipeline=8, data=2, virtual_stages=2, schedule="interleaved_1f1b")
    assert interleaved.micro_batches(24) == 12


INTEGERS = [
    "tensor",
    "pipeline",
    "data",
    "context",
    "expert",
    "shard",
    "micro_batch",
    "virtual_stages",
]


@pytest.mark.parametrize("field", INTEGERS)
@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2", float("nan")])
def test_degrees_that_are_no_positive_integers_are_refused(field, bad):
    with pytest.raises((TypeError, ValueError), match=field):
        Strategy(**{field: bad})


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("zero_stage", 4),
        ("zero_stage", None),
        ("recompute", "some"),
        ("recompute", None),
        ("schedule", "2f2b"),
        ("sequence_parallel", 1),
        ("sequence_parallel", None),
    ],
)
def test_unknown_choices_are_refused(field, bad):
    with pytest.raises((TypeError, ValueError), match=field):
        Strategy(**{field: bad})


@given(strategy=strategies, order=st.sampled_from(ORDERS))
def test_every_gpu_runs_one_rank_and_every_family_of_groups_covers_all_gpus(strategy, order):
    placement = Placement(strategy=strategy, order=order)
    gpus = np.arange(strategy.gpus)
    families = {
        "tensor_groups": strategy.tensor,
        "context_groups": strategy.context,
        "data_groups": strategy.data,
        "pipeline_groups": strategy.pipeline,
        "stages": strategy.gpus // strategy.pipeline,
        "replicas": strategy.model_parallel,
        "shard_groups": strategy.data,
    }
    assert np.array_equal(np.sort(placement.gpu), gpus)
    for name, members in families.items():
        groups = getattr(placement, name)
        assert groups.shape == (strategy.gpus // members, members)
        assert np.array_equal(np.sort(groups, axis=None), gpus)


@given(strategy=strategies, order=st.sampled_from(ORDERS))
def test_groups_join_ranks_that_differ_in_one_coordinate(strategy, order):
    placement = Placement(strategy=strategy, order=order)
    shape = (strategy.pipeline, strategy.data, strategy.context, strategy.tensor)
    coordinates = np.empty((strategy.gpus, 4), dtype=int)
    coordinates[placement.gpu] = np.stack(np.unravel_index(np.arange(strategy.gpus), shape), axis=1)
    for axis, name in enumerate(
        ("pipeline_groups", "data_groups", "context_groups", "tensor_groups")
    ):
        for group in getattr(placement, name):
            others = np.delete(coordinates[group], axis, axis=1)
            assert np.array_equal(coordinates[group][:, axis], np.arange(shape[axis]))
            assert (others == others[0]).all()
    for axis, name in ((0, "stages"), (1, "replicas")):
        for number, group in enumerate(getattr(placement, name)):
            assert (coordinates[group][:, axis] == number).all()


def test_the_default_order_is_tensor_context_data_pipeline():
    placement = Placement(strategy=Strategy(tensor=2, context=2, data=2, pipeline=2))
    assert placement.gpu.tolist() == list(range(16))
    assert placement.tensor_groups[0].tolist() == [0, 1]
    assert placement.context_groups[0].tolist() == [0, 2]
    assert placement.data_groups[0].tolist() == [0, 4]
    assert placement.pipeline_groups[0].tolist() == [0, 8]


def test_shard_groups_cut_the_data_groups():
    placement = Placement(strategy=Strategy(tensor=2, data=4, shard=2, zero_stage=3))
    assert placement.data_groups.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert placement.shard_groups.tolist() == [[0, 2], [4, 6], [1, 3], [5, 7]]


@given(strategy=strategies, order=st.sampled_from(ORDERS), gpus_per_node=st.integers(1, 8))
def test_nodes_of_replicas_are_counted_from_the_gpus(strategy, order, gpus_per_node):
    placement = Placement(strategy=strategy, order=order)
    nodes = [{int(gpu) // gpus_per_node for gpu in replica} for replica in placement.replicas]
    assert placement.nodes_per_replica(gpus_per_node) == max(map(len, nodes))
    hit = [sum(node in replica for replica in nodes) for node in set().union(*nodes)]
    assert placement.replicas_per_node(gpus_per_node) == max(hit)


def test_small_tensor_groups_make_one_node_failure_stop_two_replicas_unless_data_is_dealt_last():
    strategy = Strategy(tensor=4, pipeline=4, data=8)
    default = Placement(strategy=strategy)
    grouped = Placement(strategy=strategy, order=("tensor", "context", "pipeline", "data"))
    assert (default.nodes_per_replica(8), default.replicas_per_node(8)) == (4, 2)
    assert (grouped.nodes_per_replica(8), grouped.replicas_per_node(8)) == (2, 1)


@pytest.mark.parametrize(
    "order", [("tensor",), ("tensor", "data", "data", "pipeline"), ["tensor"], None, "tensor"]
)
def test_orders_that_are_no_permutation_are_refused(order):
    with pytest.raises((TypeError, ValueError), match="order"):
        Placement(strategy=Strategy(), order=order)


def test_bad_arguments_of_a_placement_are_refused():
    with pytest.raises(TypeError, match="strategy"):
        Placement(strategy=None)
    with pytest.raises(ValueError, match="gpus_per_node"):
        Placement(strategy=Strategy()).nodes_per_replica(0)
