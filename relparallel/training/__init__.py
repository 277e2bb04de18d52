"""What failures do to a training job, as a function of its parallel strategy.

`failures` names what can fail and how often, `domains` what stops with it under a strategy,
`checkpointing`, `effective_time` and `recovery` what it costs to go on, `goodput` what is left, `crossover`
where one choice overtakes another.
"""

from relparallel.training.checkpointing import (
    availability_optimal_interval,
    checkpoint_interval,
    checkpoint_time,
)
from relparallel.training.crossover import break_even_repair, crossovers
from relparallel.training.domains import (
    POLICIES,
    BlastRadius,
    DropRule,
    blast_radius,
    drop_rule,
    expected_replicas_hit,
)
from relparallel.training.effective_time import (
    EffectiveTime,
    effective_training_time_ratio,
    expected_segment_time,
    optimal_training_time_ratio,
)
from relparallel.training.failures import ComponentClass, FailureModel
from relparallel.training.goodput import Goodput, Job, relative_goodput
from relparallel.training.recovery import (
    elastic_throughput,
    erlang_b,
    shortage_probability,
    spares_needed,
)

__all__ = [
    "POLICIES",
    "BlastRadius",
    "ComponentClass",
    "DropRule",
    "EffectiveTime",
    "FailureModel",
    "Goodput",
    "Job",
    "availability_optimal_interval",
    "blast_radius",
    "break_even_repair",
    "checkpoint_interval",
    "checkpoint_time",
    "crossovers",
    "drop_rule",
    "effective_training_time_ratio",
    "elastic_throughput",
    "erlang_b",
    "expected_replicas_hit",
    "expected_segment_time",
    "optimal_training_time_ratio",
    "relative_goodput",
    "shortage_probability",
    "spares_needed",
]
