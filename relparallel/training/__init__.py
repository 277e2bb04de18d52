"""What failures do to a training job, as a function of its parallel strategy.

`failures` names what can fail and how often, `domains` what stops with it under a strategy,
`checkpointing`, `effective_time` and `recovery` what it costs to go on, `goodput` what is left, `crossover`
where one choice overtakes another. `checkpoint_policies`, `checkpoint_kinds` and `rollback` are about several
levels of checkpoints, `memory_replicas` about copies on other nodes, `silent_errors` about verified work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relparallel._lazy import offered

# Now, not when first used: the import of a module puts it in the place of its function of the same name.
from relparallel.training.consequences import consequences, groups_behind
from relparallel.training.failure_model import RATES, failure_model
from relparallel.training.fleet_failures import fleet_failures
from relparallel.training.goodput import Goodput, Job, relative_goodput
from relparallel.training.goodput_report import goodput
from relparallel.training.published_runs import PublishedRun, RunInput, predict_runs, published_runs
from relparallel.training.rollback import Rollback, rollback
from relparallel.training.simulate import simulate

if TYPE_CHECKING:
    from relparallel.training.checkpoint_kinds import (
        asynchronous,
        in_memory,
        just_in_time,
        key_ranges,
        multi_level,
        parity,
        remote,
    )
    from relparallel.training.checkpoint_policies import Cause, Checkpointing, CheckpointLevel
    from relparallel.training.checkpointing import (
        availability_optimal_interval,
        checkpoint_interval,
        checkpoint_time,
    )
    from relparallel.training.crossover import (
        break_even_any,
        break_even_rates,
        break_even_regroup,
        break_even_repair,
        crossovers,
    )
    from relparallel.training.degraded_states import (
        LikelyStates,
        RepairableParts,
        expected_speed,
        likely_states,
    )
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
    from relparallel.training.failure_logs import FailureLog
    from relparallel.training.failure_readers import read_failure_log, read_lanl
    from relparallel.training.failures import ComponentClass, Domain, FailureModel
    from relparallel.training.fleet import Fleet, FleetStudy
    from relparallel.training.job_shape import JobShape
    from relparallel.training.lifetime_fits import LifetimeFit, fit_by_cause, fit_lifetimes
    from relparallel.training.lifetimes import Lifetime
    from relparallel.training.markov import NodeChain
    from relparallel.training.memory_replicas import (
        PLACEMENTS,
        checkpoint_recovery_probability,
        domain_loss_probability,
        replica_holders,
        time_to_pair_loss,
    )
    from relparallel.training.network_failures import NetworkImpact, network_impact
    from relparallel.training.network_parts import NetworkPart
    from relparallel.training.network_rates import joint_loss_rate, published_network_rates
    from relparallel.training.optical import rewired, slice_availability, usable_fraction
    from relparallel.training.pipeline_templates import best_pipelines, template_speed, templates_cover
    from relparallel.training.recovery import elastic_throughput
    from relparallel.training.recovery_policies import RECOVERY_POLICIES, Recovery
    from relparallel.training.redundancy import (
        independent_failures_survived,
        pair_failures,
        pair_mtti,
        pipeline_survival,
    )
    from relparallel.training.redundant_fabrics import redundant_fabric
    from relparallel.training.replay import (
        SpotTrace,
        TraceReplay,
        best_replay,
        read_spot_trace,
        replay_gaps,
        replay_sizes,
    )
    from relparallel.training.report import BUCKETS, GoodputReport
    from relparallel.training.silent_errors import (
        VerifiedPattern,
        best_verified_pattern,
        verified_pattern_time,
    )
    from relparallel.training.spares import erlang_b, shortage_probability, spares_law, spares_needed
    from relparallel.training.stragglers import (
        SlowRanks,
        expected_maximum,
        noise_slowdown,
        pipeline_slowdown,
        slow_ranks,
    )

__all__ = [
    "BUCKETS",
    "PLACEMENTS",
    "POLICIES",
    "RATES",
    "RECOVERY_POLICIES",
    "BlastRadius",
    "Cause",
    "CheckpointLevel",
    "Checkpointing",
    "ComponentClass",
    "Domain",
    "DropRule",
    "EffectiveTime",
    "FailureLog",
    "FailureModel",
    "Fleet",
    "FleetStudy",
    "Goodput",
    "GoodputReport",
    "Job",
    "JobShape",
    "Lifetime",
    "LifetimeFit",
    "LikelyStates",
    "NetworkImpact",
    "NetworkPart",
    "NodeChain",
    "PublishedRun",
    "Recovery",
    "RepairableParts",
    "Rollback",
    "RunInput",
    "SlowRanks",
    "SpotTrace",
    "TraceReplay",
    "VerifiedPattern",
    "asynchronous",
    "availability_optimal_interval",
    "best_pipelines",
    "best_replay",
    "best_verified_pattern",
    "blast_radius",
    "break_even_any",
    "break_even_rates",
    "break_even_regroup",
    "break_even_repair",
    "checkpoint_interval",
    "checkpoint_recovery_probability",
    "checkpoint_time",
    "consequences",
    "crossovers",
    "domain_loss_probability",
    "drop_rule",
    "effective_training_time_ratio",
    "elastic_throughput",
    "erlang_b",
    "expected_maximum",
    "expected_replicas_hit",
    "expected_segment_time",
    "expected_speed",
    "failure_model",
    "fit_by_cause",
    "fit_lifetimes",
    "fleet_failures",
    "goodput",
    "groups_behind",
    "in_memory",
    "independent_failures_survived",
    "joint_loss_rate",
    "just_in_time",
    "key_ranges",
    "likely_states",
    "multi_level",
    "network_impact",
    "noise_slowdown",
    "optimal_training_time_ratio",
    "pair_failures",
    "pair_mtti",
    "parity",
    "pipeline_slowdown",
    "pipeline_survival",
    "predict_runs",
    "published_network_rates",
    "published_runs",
    "read_failure_log",
    "read_lanl",
    "read_spot_trace",
    "redundant_fabric",
    "relative_goodput",
    "remote",
    "replay_gaps",
    "replay_sizes",
    "replica_holders",
    "rewired",
    "rollback",
    "shortage_probability",
    "simulate",
    "slice_availability",
    "slow_ranks",
    "spares_law",
    "spares_needed",
    "template_speed",
    "templates_cover",
    "time_to_pair_loss",
    "usable_fraction",
    "verified_pattern_time",
]

__getattr__, __dir__ = offered(
    __name__,
    {
        "checkpoint_kinds": (
            "asynchronous",
            "in_memory",
            "just_in_time",
            "key_ranges",
            "multi_level",
            "parity",
            "remote",
        ),
        "checkpoint_policies": ("Cause", "Checkpointing", "CheckpointLevel"),
        "checkpointing": ("availability_optimal_interval", "checkpoint_interval", "checkpoint_time"),
        "crossover": (
            "break_even_any",
            "break_even_rates",
            "break_even_regroup",
            "break_even_repair",
            "crossovers",
        ),
        "degraded_states": ("LikelyStates", "RepairableParts", "expected_speed", "likely_states"),
        "domains": (
            "POLICIES",
            "BlastRadius",
            "DropRule",
            "blast_radius",
            "drop_rule",
            "expected_replicas_hit",
        ),
        "effective_time": (
            "EffectiveTime",
            "effective_training_time_ratio",
            "expected_segment_time",
            "optimal_training_time_ratio",
        ),
        "failure_logs": ("FailureLog",),
        "failure_readers": ("read_failure_log", "read_lanl"),
        "failures": ("ComponentClass", "Domain", "FailureModel"),
        "fleet": ("Fleet", "FleetStudy"),
        "job_shape": ("JobShape",),
        "lifetime_fits": ("LifetimeFit", "fit_by_cause", "fit_lifetimes"),
        "lifetimes": ("Lifetime",),
        "markov": ("NodeChain",),
        "memory_replicas": (
            "PLACEMENTS",
            "checkpoint_recovery_probability",
            "domain_loss_probability",
            "replica_holders",
            "time_to_pair_loss",
        ),
        "network_failures": ("NetworkImpact", "network_impact"),
        "network_parts": ("NetworkPart",),
        "network_rates": ("joint_loss_rate", "published_network_rates"),
        "optical": ("rewired", "slice_availability", "usable_fraction"),
        "pipeline_templates": ("best_pipelines", "template_speed", "templates_cover"),
        "recovery": ("elastic_throughput",),
        "recovery_policies": ("RECOVERY_POLICIES", "Recovery"),
        "redundancy": ("independent_failures_survived", "pair_failures", "pair_mtti", "pipeline_survival"),
        "redundant_fabrics": ("redundant_fabric",),
        "replay": (
            "SpotTrace",
            "TraceReplay",
            "best_replay",
            "read_spot_trace",
            "replay_gaps",
            "replay_sizes",
        ),
        "report": ("BUCKETS", "GoodputReport"),
        "silent_errors": ("VerifiedPattern", "best_verified_pattern", "verified_pattern_time"),
        "spares": ("erlang_b", "shortage_probability", "spares_law", "spares_needed"),
        "stragglers": ("SlowRanks", "expected_maximum", "noise_slowdown", "pipeline_slowdown", "slow_ranks"),
    },
)
