"""A policy registered under a name of its own is priced like the one that it copies, everywhere."""

from dataclasses import fields, replace

import numpy as np
import pytest

from chapters.s44.consequences import consequences
from chapters.s45.joint_break_even import break_even_rate
from relparallel.hardware import Cluster, cluster
from relparallel.optimize import joint
from relparallel.parallel import Strategy
from relparallel.planning import plan
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    Recovery,
    failure_model,
    goodput,
    simulate,
)
from relparallel.training.goodput_forms import most_running, steady_state
from relparallel.training.recovery_policies import POLICIES, policy
from relparallel.units import DAY, HOUR

STORAGE = Checkpointing(levels=(CheckpointLevel(name="storage", cost=20.0, restart=300.0),))
PARTS = (
    ComponentClass(name="gpu", level="gpu", rate=2e-8),
    ComponentClass(name="node", level="node", rate=1e-7),
    ComponentClass(name="rack", level="rack", rate=2e-7, repair=4 * HOUR),
    ComponentClass(name="software", level="job", rate=1e-6),
    ComponentClass(
        name="slow", level="gpu", rate=1e-8, effect="degrade", slowdown=1.3, repair=HOUR
    ),
)
OPTIONS = {
    "reduced_tensor": {"partial": 0.0},
    "spare_shards": {"holders": 3},
    "bamboo": {"overhead": 0.1},
}


@pytest.fixture(params=sorted(POLICIES))
def pair(request):
    """A policy, and a copy of it under a name that nobody knows."""
    kind = POLICIES[request.param]
    traits = {f.name: getattr(kind, f.name) for f in fields(kind) if f.name != "speed"}
    policy("mine", **traits)(kind.speed)
    own = Recovery(request.param, DAY, pause=60.0, restart=200.0, **OPTIONS.get(request.param, {}))
    yield own, replace(own, policy="mine")
    del POLICIES["mine"]


def test_goodput_consequences_and_simulation_ask_for_traits_only(pair):
    nodes = Cluster(nodes=32, nodes_per_rack=4)
    model = failure_model(nodes, Strategy(tensor=8, pipeline=2, data=16), rates=PARTS)
    spares = 4 if pair[0].takes_spares else 0
    for method in ("closed", "markov"):
        own, copy = (goodput(model, 5.0, STORAGE, r, spares, method=method) for r in pair)
        assert own.buckets == copy.buckets
        assert own.variance_rate == copy.variance_rate
    own, copy = (consequences(model, STORAGE, r, spares) for r in pair)
    assert own.equals(copy)
    own, copy = (most_running(model, r, spares, [1, 2, 4]) for r in pair)
    assert own == copy
    years = {"years": 20 * 30 / 365, "replications": 4}
    own, copy = (
        simulate(model, 5.0, STORAGE, r, spares, rng=np.random.default_rng(3), **years)
        for r in pair
    )
    assert own.buckets == copy.buckets
    if not pair[0].takes_spares:
        with pytest.raises(ValueError, match="spares must be 0 with recovery 'mine'"):
            goodput(model, 5.0, STORAGE, pair[1], 4)


def test_the_joint_choice_and_its_bounds_are_the_same(pair):
    from relparallel.workload import transformer

    if pair[0].policy == "reduced_tensor":
        pytest.skip("some strategies have tensor groups over several nodes, which it refuses")
    question = {"global_batch": 64, "limits": {"schedule": "1f1b", "zero_stage": 0}, "rates": PARTS}
    home = cluster("a100-80gb-selene", gpus=128)
    own, copy = (joint(transformer("gpt3-6.7b"), home, policies=(r,), **question) for r in pair)
    assert (own.strategy, own.goodput, own.spares) == (copy.strategy, copy.goodput, copy.spares)
    assert len(own.search.evaluated) == len(copy.search.evaluated)
    assert copy.policy == "mine"


def test_an_own_policy_goes_by_name_into_a_plan_and_its_break_even_rate():
    policy("mine", needs="some replica", drops=True)(POLICIES["elastic"].speed)
    try:
        dgx = cluster("h100-80gb-dgx", gpus=512)
        own, copy = (
            plan(
                "gpt3-175b",
                dgx,
                global_batch=512,
                limits={"schedule": "1f1b"},
                spares=0,
                policies=("restart", name),
                strategies=2,
            )
            for name in ("elastic", "mine")
        )
        assert (own.best.share, own.best.throughput) == (copy.best.share, copy.best.throughput)
        assert copy.best.policy == "mine"
        own, copy = (break_even_rate(one.best) for one in (own, copy))
        assert (own.rate, own.closed_rate) == (copy.rate, copy.closed_rate)
        with pytest.raises(
            ValueError, match="holders must be left out unless policy is 'spare_shards'"
        ):
            Recovery("mine", DAY, holders=2)
        alone = plan("gpt3-6.7b", "h100-80gb-dgx", gpus=64, policies=("restart",), strategies=1)
        with pytest.raises(
            ValueError, match="plan must have a policy that drops replicas, got restart"
        ):
            break_even_rate(alone.best)
    finally:
        del POLICIES["mine"]


@pytest.mark.parametrize("name", ["elastic", "regroup"])
@pytest.mark.parametrize("pause", [30.0, 3600.0])
def test_the_bound_on_the_speed_holds_with_pauses(name, pause):
    """Missing nodes cannot fail: outside pauses a job is a little faster, and so is the bound."""
    node = ComponentClass(name="node", level="node", rate=1e-6)
    recovery = Recovery(name, 6 * HOUR, pause=pause)
    for pipeline in (1, 2, 4, 8):
        model = failure_model(
            Cluster(nodes=64),
            Strategy(tensor=8, pipeline=pipeline, data=64 // pipeline),
            rates=(node,),
        )
        state = steady_state(model, STORAGE, recovery, 0)
        (bound,) = most_running(model, recovery, 0, [pipeline])
        assert bound < 1
        assert state.degraded_nodes <= bound
