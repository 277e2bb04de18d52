"""Theorems on failures, checkpoints, recovery and goodput."""

from typing import Final

from theorem_table import theorem

from relparallel import hardware, optimize, parallel, training, units, workload
from relparallel.optimize.joint_plans import JointPlan
from relparallel.published import facts


@theorem("THM-checkpoint-lost-share", system="Checkpointing (Young/Daly)")
def test_lost_share_is_the_interval():
    """At the exact optimal interval W the time lost to checkpoints and rework is the share W/M."""
    # Both sides for C = 60 s and M = 3 h.
    interval = float(training.checkpoint_interval(60.0, 10800.0))
    ratio = training.effective_training_time_ratio(10800.0, interval, 60.0, restart=0.0)
    return 1 - float(ratio.mean), interval / 10800.0


@theorem("THM-restart-is-no-spares", system="Spare and maintenance planning")
def test_restart_is_no_spares():
    """Waiting for repairs is the policy of no spares: Erlang's B gives Daly's down time."""
    # Both sides on 2,048 nodes with a repair of one day.
    job = _job(nodes_per_replica=16)
    policy = training.relative_goodput(job, "spares", units.DAY, spares=0)
    mtbf = 1 / (job.nodes * job.node_rate)
    daly = training.effective_training_time_ratio(
        mtbf, policy.interval, job.checkpoint, job.restart, units.DAY
    )
    return float(policy.share), float(daly.mean)


@theorem("THM-elastic-break-even", system="Elastic and redundant recovery")
def test_elastic_break_even():
    """q a^gA = a^gB exactly at lam r = q^(1/(gA - gB)) - 1; Brent's root of the goodput agrees."""
    # Both sides for replicas of 32 and 16 nodes.
    wide, narrow = _job(nodes_per_replica=32), _job(nodes_per_replica=16)
    (root,) = training.crossovers(wide, "elastic", narrow, "elastic", speedup=1.062)
    return root, training.break_even_repair(1.062, 32, 16, wide.node_rate)


@theorem("THM-joint-fastest-under-restart", system="Joint reliability optimisation")
def test_fastest_is_best_under_restart():
    """If every failure restarts the whole job, the fastest strategy is the best."""
    # Throughput of the best plan against the largest one.
    return _joint(("restart",)).throughput, max(_SPEEDS.values())


@theorem("THM-joint-brute-force", system="Joint reliability optimisation")
def test_joint_is_the_best_of_all():
    """Bounded search over strategies, waiting policies and spares equals search over everything."""
    # Best goodput of three strategies with a repair of seven days, found and enumerated with Erlang
    # and Daly.
    job, every = _job(nodes_per_replica=8), []
    for strategy, throughput in _SPEEDS.items():
        for spares in range(0, _NODES, strategy.pipeline):
            active = _NODES - spares
            best = training.optimal_training_time_ratio(
                job.checkpoint, 1 / (active * job.node_rate), job.restart
            )
            short = training.shortage_probability(active, spares, job.node_rate, 7 * units.DAY)
            every.append(throughput * active / _NODES * (1 - short) * best)
    return _joint(("restart", "spares")).goodput, float(max(every))


_NODES: Final = 256
_SPEEDS: Final = {
    parallel.Strategy(tensor=8, pipeline=g, data=_NODES // g): 1e5 + 100 * g for g in (8, 16, 32)
}


def _joint(policies: tuple[str, ...]) -> JointPlan:
    """Best of three strategies with replicas of 8, 16 and 32 nodes and a repair of seven days."""
    job, model = _job(nodes_per_replica=8), workload.transformer("gpt3-175b")
    level = training.CheckpointLevel(name="storage", cost=job.checkpoint, restart=0.0)
    node = training.ComponentClass(name="node", level="node", rate=job.node_rate)
    return optimize.joint(
        model,
        hardware.Cluster(nodes=_NODES),
        (node,),
        policies=policies,
        repair=7 * units.DAY,
        restart=job.restart,
        pause=job.pause,
        measured=_SPEEDS,
        checkpoints=training.Checkpointing(levels=(level,)),
    )


def _job(nodes_per_replica: int) -> training.Job:
    """2,048 nodes that fail as often as those of Llama-3."""
    rate = float(facts("training-reliability")["L3-032"].value_text) / (1000 * units.DAY)
    return training.Job(
        nodes=2048,
        nodes_per_replica=nodes_per_replica,
        node_rate=rate,
        checkpoint=20.0,
        restart=300.0,
        pause=30.0,
    )
