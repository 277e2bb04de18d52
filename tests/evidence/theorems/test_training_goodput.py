"""Goodput and the Markov chain of nodes: identities with older closed forms."""

import numpy as np
from theorem_table import theorem

from relparallel import hardware, parallel, training, units
from relparallel.published import facts
from relparallel.training.down_nodes import NodeChain
from relparallel.training.spares import loss_probability

_NODES, _SPARES, _PER_REPLICA = 2048, 16, 16


def _node_rate() -> float:
    """Failures per node and second of Llama-3."""
    return float(facts("training-reliability")["L3-032"].value_text) / (1000 * units.DAY)


@theorem("THM-goodput-three-factors", system="Checkpointing (Young/Daly)")
def test_goodput_is_a_product():
    """With cold spares the goodput is (1 - Erlang's B) times the best effective time."""
    # Both sides on 2,048 nodes with 16 spares and a repair of one day.
    part = training.ComponentClass(name="node", level="node", rate=_node_rate())
    strategy = parallel.Strategy(tensor=8, pipeline=16, data=128)
    model = training.failure_model(hardware.Cluster(nodes=_NODES), strategy, rates=(part,))
    level = training.CheckpointLevel(name="storage", cost=60.0, restart=900.0)
    plan, recovery = (
        training.Checkpointing(levels=(level,)),
        training.Recovery("spares", repair=units.DAY),
    )
    report = training.goodput(model, 1.0, plan, recovery, spares=_SPARES)
    effective = training.optimal_training_time_ratio(60.0, 1 / (_NODES * _node_rate()), 900.0)
    waiting = training.shortage_probability(_NODES, _SPARES, _node_rate(), units.DAY)
    return report.mean, float(effective * (1 - waiting))


@theorem("THM-chain-is-erlang", system="Spare and maintenance planning")
def test_chain_is_erlang():
    """The chain of nodes with a crew for each and cold spares waits as Erlang's B says."""
    # Both sides on 2,048 nodes with 16 spares and a repair of one day.
    chain = NodeChain(
        nodes=_NODES,
        spares=_SPARES,
        rates={1: _NODES * _node_rate()},
        repair=units.DAY,
        speed=np.array([1.0, 0.0]),
        waits=True,
    )
    return chain.shares()[0], float(
        loss_probability(_SPARES + 1, _NODES * _node_rate() * units.DAY)
    )


@theorem("THM-new-job-transient", system="Elastic and redundant recovery")
def test_new_job_loses_speed():
    """A new elastic job has the throughput A(t)^g, A(t) = a + (1 - a) e^{-(lam + 1/r) t}."""
    # Both sides half a day after the start.
    shape = training.JobShape(
        nodes=_NODES,
        replicas=_NODES // _PER_REPLICA,
        stages=16,
        tensor=8,
        nodes_per_replica=_PER_REPLICA,
    )
    speed = training.Recovery("elastic", repair=units.DAY).speed(shape, 100)
    chain = NodeChain(nodes=_NODES, rates={1: _NODES * _node_rate()}, repair=units.DAY, speed=speed)
    up = 1 / (1 + _node_rate() * units.DAY)
    alive = up + (1 - up) * np.exp(-(_node_rate() + 1 / units.DAY) * units.DAY / 2)
    return float(chain.transient(units.DAY / 2)[0]), float(alive**_PER_REPLICA)
