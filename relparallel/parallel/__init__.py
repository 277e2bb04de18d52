"""How training is split over GPUs, and what the split costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relparallel._lazy import offered

# Now, not when first used: the import of a module puts it in the place of its function of the same name.
from relparallel.parallel.calibration import Calibration, Software, calibration, software, softwares
from relparallel.parallel.collective_time import (
    BestCollective,
    best_collective,
    collective_time,
    crossover_size,
)
from relparallel.parallel.evaluate import Evaluation, evaluate
from relparallel.parallel.group_links import GroupLinks, group_links
from relparallel.parallel.measured_runs import Run, measured_runs
from relparallel.parallel.memory import StageMemory, Verdict, memory
from relparallel.parallel.step_time import StepTime, step_time
from relparallel.parallel.step_timeline import step_timeline

if TYPE_CHECKING:
    from relparallel.parallel.all_reduce_fit import (
        AllReduceFit,
        all_reduce_errors,
        fit_all_reduce,
        measured_all_reduces,
    )
    from relparallel.parallel.all_reduces import (
        double_tree_all_reduce,
        halving_doubling_all_reduce,
        hierarchical_all_reduce,
        tree_all_reduce,
    )
    from relparallel.parallel.bubbles import Filling, fill_bubbles
    from relparallel.parallel.collectives import (
        Round,
        bytes_sent,
        communication_time,
        execute,
        ring_all_gather,
        ring_all_reduce,
        ring_reduce_scatter,
    )
    from relparallel.parallel.exchanges import (
        bruck_all_gather,
        chain_broadcast,
        direct_all_to_all,
        hierarchical_all_gather,
        hierarchical_all_to_all,
        ring_all_to_all,
        tree_broadcast,
    )
    from relparallel.parallel.feasibility import REASONS
    from relparallel.parallel.fitting import calibrate, cross_validate, errors, prediction_scatter
    from relparallel.parallel.grid import StrategyGrid
    from relparallel.parallel.links import Links, rounds_time
    from relparallel.parallel.memory_forms import (
        activation_bytes_per_layer,
        micro_batches_in_flight,
        model_state_bytes,
        stage_activation_bytes,
        zero_communication_bytes,
    )
    from relparallel.parallel.overlap import bucketed_time, overlap_time, overlap_timeline, prefetched_time
    from relparallel.parallel.precision import PRECISIONS, Precision
    from relparallel.parallel.schedules import simulate_schedule
    from relparallel.parallel.steady_state import (
        bubble_fraction,
        iteration_period,
        weight_delay,
        weight_versions,
    )
    from relparallel.parallel.strategy import Placement, Strategy
    from relparallel.parallel.synthesis import BestOrder, best_order
    from relparallel.parallel.timeline import Timeline, simulate_timeline
    from relparallel.parallel.volume import Collective, strategy_collectives

__all__ = [
    "PRECISIONS",
    "REASONS",
    "AllReduceFit",
    "BestCollective",
    "BestOrder",
    "Calibration",
    "Collective",
    "Evaluation",
    "Filling",
    "GroupLinks",
    "Links",
    "Placement",
    "Precision",
    "Round",
    "Run",
    "Software",
    "StageMemory",
    "StepTime",
    "Strategy",
    "StrategyGrid",
    "Timeline",
    "Verdict",
    "activation_bytes_per_layer",
    "all_reduce_errors",
    "best_collective",
    "best_order",
    "bruck_all_gather",
    "bubble_fraction",
    "bucketed_time",
    "bytes_sent",
    "calibrate",
    "calibration",
    "chain_broadcast",
    "collective_time",
    "communication_time",
    "cross_validate",
    "crossover_size",
    "direct_all_to_all",
    "double_tree_all_reduce",
    "errors",
    "evaluate",
    "execute",
    "fill_bubbles",
    "fit_all_reduce",
    "group_links",
    "halving_doubling_all_reduce",
    "hierarchical_all_gather",
    "hierarchical_all_reduce",
    "hierarchical_all_to_all",
    "iteration_period",
    "measured_all_reduces",
    "measured_runs",
    "memory",
    "micro_batches_in_flight",
    "model_state_bytes",
    "overlap_time",
    "overlap_timeline",
    "prediction_scatter",
    "prefetched_time",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_all_to_all",
    "ring_reduce_scatter",
    "rounds_time",
    "simulate_schedule",
    "simulate_timeline",
    "software",
    "softwares",
    "stage_activation_bytes",
    "step_time",
    "step_timeline",
    "strategy_collectives",
    "tree_all_reduce",
    "tree_broadcast",
    "weight_delay",
    "weight_versions",
    "zero_communication_bytes",
]

__getattr__, __dir__ = offered(
    __name__,
    {
        "all_reduce_fit": ("AllReduceFit", "all_reduce_errors", "fit_all_reduce", "measured_all_reduces"),
        "all_reduces": (
            "double_tree_all_reduce",
            "halving_doubling_all_reduce",
            "hierarchical_all_reduce",
            "tree_all_reduce",
        ),
        "bubbles": ("Filling", "fill_bubbles"),
        "collectives": (
            "Round",
            "bytes_sent",
            "communication_time",
            "execute",
            "ring_all_gather",
            "ring_all_reduce",
            "ring_reduce_scatter",
        ),
        "exchanges": (
            "bruck_all_gather",
            "chain_broadcast",
            "direct_all_to_all",
            "hierarchical_all_gather",
            "hierarchical_all_to_all",
            "ring_all_to_all",
            "tree_broadcast",
        ),
        "feasibility": ("REASONS",),
        "fitting": ("calibrate", "cross_validate", "errors", "prediction_scatter"),
        "grid": ("StrategyGrid",),
        "links": ("Links", "rounds_time"),
        "memory_forms": (
            "activation_bytes_per_layer",
            "micro_batches_in_flight",
            "model_state_bytes",
            "stage_activation_bytes",
            "zero_communication_bytes",
        ),
        "overlap": ("bucketed_time", "overlap_time", "overlap_timeline", "prefetched_time"),
        "precision": ("PRECISIONS", "Precision"),
        "schedules": ("simulate_schedule",),
        "steady_state": ("bubble_fraction", "iteration_period", "weight_delay", "weight_versions"),
        "strategy": ("Placement", "Strategy"),
        "synthesis": ("BestOrder", "best_order"),
        "timeline": ("Timeline", "simulate_timeline"),
        "volume": ("Collective", "strategy_collectives"),
    },
)
