"""How training is split over GPUs, and what the split costs."""

from relparallel.parallel.collectives import (
    Round,
    bytes_sent,
    communication_time,
    execute,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from relparallel.parallel.memory import (
    activation_bytes_per_layer,
    micro_batches_in_flight,
    model_state_bytes,
    stage_activation_bytes,
    zero_communication_bytes,
)
from relparallel.parallel.schedules import simulate_schedule
from relparallel.parallel.strategy import Placement, Strategy
from relparallel.parallel.timeline import Timeline, simulate_timeline
from relparallel.parallel.volume import Collective, strategy_collectives

__all__ = [
    "Collective",
    "Placement",
    "Round",
    "Strategy",
    "Timeline",
    "activation_bytes_per_layer",
    "bytes_sent",
    "communication_time",
    "execute",
    "micro_batches_in_flight",
    "model_state_bytes",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_reduce_scatter",
    "simulate_schedule",
    "simulate_timeline",
    "stage_activation_bytes",
    "strategy_collectives",
    "zero_communication_bytes",
]
