"""Notation of strategies: whatever a grid can hold reads back as itself, as do people's words."""

import pytest
from hypothesis import given

from any_strategy import strategies
from relparallel.parallel import Strategy, StrategyGrid, notation, read_strategy
from relparallel.parallel.schedules import SCHEDULES
from relparallel.workload import Transformer

MIXED = Transformer(
    layers=12, hidden=96, heads=12, vocabulary=500, sequence=64, experts=8, active_experts=2
)


@given(strategies())
def test_every_strategy_reads_back_as_itself(strategy):
    assert read_strategy(notation(strategy)) == strategy


@given(strategies())
def test_case_and_what_stands_between_words_do_not_matter(strategy):
    said = notation(strategy)
    for other in (
        said.lower(),
        said.upper(),
        said.replace(" ", ", "),
        said.replace(" ", "-"),
        f" {said};",
    ):
        assert read_strategy(other) == strategy, other


def test_every_row_of_a_grid_reads_back_as_itself_and_no_two_are_named_alike():
    grid = StrategyGrid.all(
        gpus=8, model=MIXED, global_batch=8, virtual_stages=(1, 2, 3), schedule=SCHEDULES
    )
    names = set()
    valid = 0
    for row in range(0, len(grid), 211):
        try:
            strategy = grid[row]
        except ValueError:  # breaks a rule
            continue
        assert read_strategy(notation(strategy)) == strategy
        names.add(notation(strategy))
        valid += 1
    assert len(names) == valid > 20


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("TP 8", {"tensor": 8}),
        ("TP2-PP8", {"tensor": 2, "pipeline": 8}),
        ("tp2pp8dp4", {"tensor": 2, "pipeline": 8, "data": 4}),
        ("tp2_pp8_dp4", {"tensor": 2, "pipeline": 8, "data": 4}),
        ("tensor 2, pipeline 8 (data 4)", {"tensor": 2, "pipeline": 8, "data": 4}),
        ("TP=8, PP: 4; CP 2 x DP3", {"tensor": 8, "pipeline": 4, "context": 2, "data": 3}),
        ("PP4 v=8", {"pipeline": 4, "virtual_stages": 8, "schedule": "interleaved_1f1b"}),
        (
            "PP4 VP8 interleaved-1F1B",
            {"pipeline": 4, "virtual_stages": 8, "schedule": "interleaved_1f1b"},
        ),
        ("PP4 ZB-V", {"pipeline": 4, "virtual_stages": 2, "schedule": "zb_v"}),
        ("DP64 ZeRO-2/16", {"data": 64, "zero_stage": 2, "shard": 16}),
        ("DP64 zero 3 shard 16", {"data": 64, "zero_stage": 3, "shard": 16}),
        ("FSDP TP8", {"zero_stage": 3, "tensor": 8}),
        ("FSDP 128 TP 8", {"zero_stage": 3, "tensor": 8, "data": 128, "shard": 128}),
        ("HSDP 8x16", {"zero_stage": 3, "data": 128, "shard": 16}),
        ("HSDP16 DP64", {"zero_stage": 3, "data": 64, "shard": 16}),
        (
            "TP8 SP recompute=selective",
            {"tensor": 8, "sequence_parallel": True, "recompute": "selective"},
        ),
        (
            "TP8 sequence-parallel full recompute",
            {"tensor": 8, "sequence_parallel": True, "recompute": "full"},
        ),
        (
            "TP8 SP DP8 EP64 ETP1",
            {
                "tensor": 8,
                "sequence_parallel": True,
                "data": 8,
                "expert": 64,
                "experts_over_tensor": True,
            },
        ),
        ("TP8 DP8 EP8 ETP8", {"tensor": 8, "data": 8, "expert": 8}),
        ("PP16 ends=both MBS2", {"pipeline": 16, "ends_as_layers": "both", "micro_batch": 2}),
    ],
)
def test_the_words_that_people_use_are_read(text, fields):
    assert read_strategy(text) == Strategy(**fields)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("TP8 XP4", r"text must be like .*, got 'XP4'"),
        ("TP8 TP4", "text must name tensor once, got 'TP8 TP4'"),
        ("TP8 ZeRO-1/4 shard=2", "text must name shard once"),
        ("full selective", "text must name recompute once"),
        ("TP8.5", "got 'TP8.5'"),
        ("SP8", "got 'SP8'"),
        ("TP8/4", "got 'TP8/4'"),
        ("TP", "got 'TP'"),
        ("8", "got '8'"),
        ("", "text must be like .*, got ''"),
        ("HSDP", "ranks of a shard group"),
        ("FSDP2", "FSDP DP2"),
        ("TP8 ETP2", "ETP of 1 or of TP = 8, got ETP2"),
        ("DP64 ZeRO-1/48", "shard must divide data = 64, got 48"),
    ],
)
def test_what_is_no_strategy_is_refused_by_its_word(text, said):
    with pytest.raises(ValueError, match=said):
        read_strategy(text)


def test_what_is_left_of_a_cluster_are_replicas():
    assert read_strategy("TP8 PP4", gpus=256) == Strategy(tensor=8, pipeline=4, data=8)
    assert read_strategy("TP8 PP4 DP2", gpus=256).data == 2
    assert read_strategy("TP8 PP4", gpus=8).data == 1
    assert read_strategy("TP8 HSDP4", gpus=256) == Strategy(
        tensor=8, data=32, zero_stage=3, shard=4
    )
