"""What one failure of each class does to a job, counted by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s44.consequences import consequences, groups_behind
from relparallel.hardware import Cluster
from relparallel.hardware.machines import LEVELS
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Cause,
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    Recovery,
    failure_model,
    rollback,
)
from relparallel.training._job import job_rows

HALL = Cluster(nodes=64, nodes_per_switch=2, nodes_per_rack=4)
SPLIT = Strategy(tensor=8, pipeline=4, data=16)
CLASSES = (
    ComponentClass(name="gpu", level="gpu", rate=1e-8, detection=20.0),
    ComponentClass(name="rack", level="rack", rate=1e-8),
    ComponentClass(name="adapter", level="gpu", rate=2e-9, effect="degrade", slowdown=1.5),
    ComponentClass(name="software", level="job", rate=1e-6),
)
STORAGE = Checkpointing(levels=(CheckpointLevel(name="storage", cost=60.0, restart=300.0),))


def table(policy, spares=0, checkpointing=STORAGE):
    recovery = Recovery(policy, repair=86400.0, restart=120.0, pause=15.0)
    return consequences(failure_model(HALL, SPLIT, rates=CLASSES), checkpointing, recovery, spares)


@given(
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(LEVELS),
)
def test_groups_are_those_with_a_rank_behind_the_part(t, p, c, e, level):
    strategy = Strategy(tensor=t, pipeline=p, context=c, data=8, expert=e, zero_stage=1, shard=4)
    cluster = Cluster(
        nodes=2 * t * p * c,
        gpus_per_node=4,
        nodes_per_switch=2,
        nodes_per_rack=2 * p,
        nvlink_trays=9,
    )
    place = Placement(strategy=strategy)
    part = ComponentClass(name="part", level=level, rate=0.0)
    found, width = groups_behind(place, cluster, part), cluster.gpus_per_part(level)
    parts = [set(range(i * width, (i + 1) * width)) for i in range(cluster.gpus // width)]
    for name, groups in {
        "tensor groups": place.tensor_groups,
        "stages": place.stages,
        "replicas": place.replicas,
        "shard groups": place.shard_groups,
    }.items():
        most = max(sum(bool(part & set(group)) for group in groups.tolist()) for part in parts)
        assert found[name] == most, name
    experts = {}  # ranks of one stage and tensor rank, in runs along data and context
    for rank, gpu in enumerate(place.gpu.tolist()):
        inner, rest = rank % t, rank // t
        run, stage = rest % (8 * c), rest // (8 * c)
        experts.setdefault((stage, inner, (run % c + run // c * c) // e), set()).add(gpu)
    assert {len(group) for group in experts.values()} == {e}
    assert found["expert groups"] == max(
        sum(bool(part & g) for g in experts.values()) for part in parts
    )


def test_a_job_that_drops_replicas_pauses_where_state_survives():
    found = table("elastic")
    assert found["stopped / s"].tolist() == [35, 15, 0, 420]
    assert found["goes back"].tolist() == [False, False, False, True]
    assert found["nodes missing"].tolist() == [1, 4, 0, 0]
    assert found["speed after"].tolist() == pytest.approx(
        [15 / 16, np.prod((60 - np.arange(4)) / (64 - np.arange(4))), 1 / 1.5, 1]
    )
    assert found["replicas"].tolist() == [1, 4, 1, 16]
    assert found["work lost / s"][:3].tolist() == [0, 0, 0]


def test_a_job_with_spares_goes_back_and_waits_when_they_run_out():
    found = table("spares", spares=2)
    assert found["stopped / s"].tolist() == [440, 420, 0, 420]
    assert found["speed after"].tolist() == pytest.approx([1, 0, 1 / 1.5, 1])


def test_work_done_twice_is_that_of_the_exact_account():
    """Weighted by the rates it is the lost share, once what is lost of checkpoints is added."""
    recovery = Recovery("spares", repair=86400.0, restart=0.0)
    model = failure_model(HALL, SPLIT, rates=CLASSES)
    found = table("spares", spares=64)
    back = found[found["goes back"]]
    job = job_rows(model, STORAGE, recovery, 64)
    exact, kinds = job.rollback(), zip(job.rate[job.back], job.detection[job.back], strict=True)
    causes = [Cause(level="job", rate=rate, detection=seen) for rate, seen in kinds]
    assert rollback(replace(STORAGE, interval=job.interval), causes).share == pytest.approx(
        exact.share
    )
    level = CheckpointLevel(name="storage", cost=60.0, restart=0.0)
    free = Checkpointing(levels=(level,), interval=exact.interval)
    instant = rollback(free, [replace(cause, detection=0.0) for cause in causes])
    lost = (back["work lost / s"] * back["per day"]).sum() / 86400
    assert lost == pytest.approx(
        1 - instant.share * (exact.interval + 60) / exact.interval, rel=1e-9
    )


def test_a_lower_level_that_survives_loses_less():
    memory = CheckpointLevel(
        name="memory", cost=1.0, restart=30.0, survives={"rack": 0.0, "job": 0.5}
    )
    layered = Checkpointing(levels=(memory, *STORAGE.levels), interval=300.0, every=(20,))
    found = table("spares", spares=64, checkpointing=layered)
    lost = found["work lost / s"]
    assert lost["gpu"] < lost["software"] < lost["rack"]
    assert lost["software"] == pytest.approx((lost["gpu"] + lost["rack"]) / 2)
    assert found["stopped / s"].tolist() == pytest.approx([170, 420, 0, 285])
