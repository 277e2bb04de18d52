"""Whole experts, on tensor ranks too: what a rank holds, sends and computes, against split ones."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s33.volume import strategy_collectives
from relparallel.hardware import cluster
from relparallel.parallel import (
    Placement,
    Strategy,
    StrategyGrid,
    memory,
    price_strategies,
    step_time,
)
from relparallel.parallel.group_bandwidth import group_links
from relparallel.parallel.machine_parameters import calibration
from relparallel.parallel.stages import dealt_layers
from relparallel.workload import Transformer, transformer

MIXED = Transformer(
    layers=8,
    hidden=1024,
    heads=16,
    vocabulary=32000,
    sequence=1024,
    experts=32,
    active_experts=4,
    expert_ffn=512,
    gated=True,
    tied=False,
    learned_positions=False,
    biases=False,
)
DEEPSEEK = Strategy(
    tensor=2,
    pipeline=8,
    data=16,
    expert=32,
    experts_over_tensor=True,
    sequence_parallel=True,
    zero_stage=1,
    recompute="full",
)


def test_deepseek_v3_on_256_gpus():
    """Tensor 2, pipeline 8, expert 32: the experts need both tensor ranks of all 16 replicas."""
    model, machine = transformer("deepseek-v3"), cluster("h100-80gb-dgx", gpus=256)
    with pytest.raises(ValueError, match="expert must divide data"):
        replace(DEEPSEEK, experts_over_tensor=False)
    with pytest.raises(ValueError, match="experts_over_tensor needs sequence_parallel"):
        replace(DEEPSEEK, sequence_parallel=False)
    time, held = step_time(model, DEEPSEEK, machine, 2048), memory(model, DEEPSEEK, 2048)
    # ends count as one each
    assert dealt_layers(model, DEEPSEEK).tolist() == [7, 8, 8, 8, 8, 8, 8, 6]
    assert (held.parameters > 0).all()
    # once in each stage's 32 ranks
    experts = model.mixture_layers * model.experts * model.expert_weights
    rest = 2 * (model.parameters - experts) / 2  # bytes of the others, on two tensor ranks
    assert held.parameters.sum() == pytest.approx(rest + 2 * experts / 32, rel=0.01)
    slots = step_time(replace(model, layers=64), DEEPSEEK, machine, 2048)
    # the fullest stage has 8 layers in both, 58/61 with experts
    assert time.compute < slots.compute * 1.02
    assert 0.02 < time.mfu < 0.6


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_as_many_ranks_per_expert_hold_as_many_bytes(recompute):
    """One expert on each of two ranks, or half of both: same bytes, ZeRO's share of them too."""
    for zero in (0, 1, 2, 3):
        split = Strategy(
            tensor=2,
            data=16,
            expert=16,
            sequence_parallel=True,
            zero_stage=zero,
            recompute=recompute,
        )
        whole = replace(split, expert=32, experts_over_tensor=True)
        one, other = (memory(MIXED, s, 64) for s in (split, whole))
        for part in ("parameters", "gradients", "optimizer", "activations"):
            assert getattr(one, part).tolist() == getattr(other, part).tolist(), part
        half = memory(
            MIXED, replace(whole, expert=16), 64
        )  # twice the experts, and two ranks that share them
        experts = MIXED.mixture_layers * MIXED.experts * MIXED.expert_weights / 32
        assert half.gradients - other.gradients == pytest.approx(
            (2 * experts if zero < 2 else 0), rel=1e-9
        )
        assert half.optimizer - other.optimizer == pytest.approx(
            (12 * experts if zero < 1 else 0), abs=1e-3
        )


def test_collectives_of_whole_experts():
    """A rank sends its own tokens only; gradients go to data * tensor * context / expert."""
    split = Strategy(tensor=2, data=16, expert=16, sequence_parallel=True)
    for expert in (8, 16, 32):
        whole = replace(split, expert=expert, experts_over_tensor=True)
        sent = strategy_collectives(MIXED, whole, 64)
        (exchange,) = (c for c in sent if c.degree == "expert")
        (usual,) = (c for c in strategy_collectives(MIXED, split, 64) if c.degree == "expert")
        assert (exchange.ranks, exchange.payload) == (expert, usual.payload / 2)
        experts = 2 * MIXED.mixture_layers * MIXED.experts * MIXED.expert_weights / expert
        sums = [c for c in sent if c.kind == "all_reduce"]
        assert [c.ranks for c in sums] == [16, 32 // expert][: 1 + (expert < 32)]
        assert [c.payload for c in sums[1:]] == [experts] * (expert < 32)
        tensor = [
            sum(c.bytes_sent for c in x if c.degree == "tensor")
            for x in (sent, strategy_collectives(MIXED, split, 64))
        ]
        assert tensor[0] == tensor[1] / 2  # of two collectives in a pass, the attention's stays


def test_groups_of_whole_experts_take_the_tensor_ranks_first():
    placement = Placement(strategy=DEEPSEEK)
    machine = cluster("h100-80gb-dgx", gpus=256)
    found = group_links(placement, machine, "expert", pattern="all_to_all")
    assert found.groups.tolist() == np.arange(256).reshape(8, 32).tolist()
    split = Placement(strategy=replace(DEEPSEEK, expert=16, experts_over_tensor=False))
    groups = group_links(split, machine, "expert", pattern="all_to_all").groups
    assert groups[:2].tolist() == [list(range(0, 32, 2)), list(range(1, 32, 2))]


@given(
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 4]),
    st.integers(0, 3),
    st.sampled_from([1, 2, 4]),
)
@settings(deadline=None, max_examples=40)
def test_whole_experts_compute_as_much_and_wait_for_less(tensor, context, data, zero, expert):
    """Wider products are never slower; with one tensor rank nothing changes; a grid agrees."""
    expert = expert if data * context % expert == 0 else 1
    split = Strategy(
        tensor=tensor,
        context=context,
        data=data,
        expert=expert,
        zero_stage=zero,
        sequence_parallel=tensor > 1,
    )
    whole, machine = replace(split, experts_over_tensor=True), cluster("h100-80gb-dgx", gpus=64)
    one, other = (step_time(MIXED, s, machine, 64) for s in (split, whole))
    if tensor == 1:
        assert one == other
    assert other.tensor <= one.tensor * (1 + 1e-12)
    assert other.expert <= one.expert * (1 + 1e-12)
    grid = StrategyGrid.of(**{n: getattr(whole, n) for n in grid_names()}, shard=data)
    machine = cluster("h100-80gb-dgx", gpus=max(whole.gpus, 8))
    found = price_strategies(MIXED, grid, machine, 64, complete=True)
    assert list(grid) == [whole]
    assert found.time[0] == step_time(MIXED, whole, machine, 64).total


def grid_names():
    return [n for n in Strategy.__dataclass_fields__ if n != "shard"]


def test_experts_on_several_nodes_receive_each_token_by_its_senders_share_of_the_network():
    """Each rank sends (k - 1)/k of its tokens out of its node; knowing nodes, once to each of k."""
    model, place, strategy = (
        transformer("mixtral-8x7b"),
        cluster("h100-80gb-dgx", 64),
        Strategy(data=16, tensor=4, sequence_parallel=True, expert=8, zero_stage=1),
    )
    known = calibration("h100-80gb")
    sent = (
        2 * model.sequence * model.hidden * model.active_experts
    )  # bytes of a rank, two of a group in a node
    rate = place.network_bandwidth / place.gpus_per_node * known.values["exchange_share"]
    latency = known.values["round"] / 2 + known.values["hop"]
    passes = 4 * model.layers * 64 // 16  # there and back, forward and backward
    for name in ("megatron-2025", "megatron-bridge-2025", "megatron-bridge-2025+exchange_overlap"):
        nodes_only, hidden = "bridge" in name, "overlap" in name
        once = 4 * (1 - (3 / 4) ** 2) / 2 if nodes_only else 1.0
        step = step_time(model, strategy, place, 64, software=name)
        expected = passes * (sent * 3 / 4 * once / rate + latency)
        expected *= known.factor(name, model.kind) * (known.values["exchanged"] if hidden else 1)
        assert step.expert == pytest.approx(expected, rel=1e-12)
