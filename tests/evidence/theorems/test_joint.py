"""Joint optimisation: what holds for every cluster, shown on one."""

from dataclasses import replace
from functools import cache

import numpy as np
from theorem_table import theorem

from chapters import s45
from relparallel import hardware, optimize, parallel, workload
from relparallel.optimize.joint_plans import JointPlan

_LIMITS = {"schedule": ("gpipe", "1f1b", "interleaved_1f1b")}
_GPUS, _BATCH = 512, 256


@cache
def _plan() -> JointPlan:
    """A 70-billion-parameter model on 64 nodes that fail as those of Llama-3, none held back."""
    model, cluster = (
        workload.transformer("llama3-70b"),
        hardware.cluster("h100-80gb-dgx", gpus=_GPUS),
    )
    return optimize.joint(model, cluster, "llama3", global_batch=_BATCH, limits=_LIMITS, spares=0)


@theorem("THM-joint-every-row", system="Joint reliability optimisation")
def test_every_row_has_a_fate():
    """The fates that the joint search counts sum to all grid rows: no strategy is skipped."""
    # Both counts.
    rows = parallel.StrategyGrid.all(_GPUS, workload.transformer("llama3-70b"), _BATCH, **_LIMITS)
    return float(_plan().counts.sum()), float(len(rows))


@theorem("THM-joint-bound", system="Joint reliability optimisation")
def test_nothing_above_the_bounded_search():
    """Evaluating each kind of strategy under each policy finds nothing above the bounded search."""
    # Best score by the bounded search and of all choices.
    search = _plan().search
    every = [
        search.choice(0, row, policy, "storage")
        for row in range(search.sites[0].fastest.time.size)
        for policy in search.recoveries
    ]
    return _plan().choice.score, max(choice.score for choice in every if choice is not None)


@theorem("THM-joint-break-even-rate", system="Joint reliability optimisation")
def test_break_even_of_the_search():
    """The search finds the fastest elastic strategy overtaken at lam r = q^(1/(gA - gB)) - 1."""
    # Root and closed form on 16,384 GPUs, without pauses, in which missing nodes begin none.
    cluster = hardware.cluster("h100-80gb-dgx", gpus=16384)
    model = workload.transformer("llama3-405b")
    plan = optimize.joint(
        model, replace(cluster), "llama3", global_batch=2048, limits=_LIMITS, spares=0, pause=0.0
    )
    found = s45.break_even_rate(plan)
    return found.rate, found.closed_rate


@theorem("THM-joint-hall", system="Joint reliability optimisation")
def test_copies_can_leave_their_rack():
    """Copies can leave their rack exactly if no rack has more than half of the nodes."""
    # Racks of 16 nodes, one of them grown node by node: sizes at which a placement exists.
    sizes = np.arange(1, 16)
    found = [
        optimize.place_replicas({"rack": np.repeat([0, 1], [size, 16 - size])}).feasible
        for size in sizes
    ]
    three = [
        optimize.place_replicas(
            {"rack": np.repeat([0, 1, 2], [size, 8 - size // 2, 8 - (size + 1) // 2])}
        ).feasible
        for size in sizes
    ]
    return float(sum(found) + sum(three)), float((sizes == 8).sum() + (sizes <= 8).sum())
