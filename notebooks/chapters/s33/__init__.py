"""Notebook 33: what each way of splitting sends, how a split looks, experts, layers of stages."""

from chapters.s33.experts import (
    exchange_rounds as exchange_rounds,
    expert_tokens as expert_tokens,
)
from chapters.s33.splits import draw_split as draw_split
from chapters.s33.stage_split import best_stage_layers as best_stage_layers
from chapters.s33.volume import strategy_collectives as strategy_collectives
