"""From failed part to effect on job: what is behind it, work lost, time stopped, speed after."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.parallel import Placement
from relparallel.parallel.group_bandwidth import groups_of
from relparallel.training._job import JobRows, job_rows, under
from relparallel.training.checkpoint_policies import Checkpointing
from relparallel.training.failures import ComponentClass, FailureModel, groups_per_part
from relparallel.training.recovery_policies import Recovery
from relparallel.units import DAY


def groups_behind(placement: Placement, cluster: Cluster, part: ComponentClass) -> dict[str, int]:
    """Groups with a rank behind a class's worst-placed part, or a GPU that a counted part cuts off.

    Expert groups are runs of ``expert`` ranks along data and context (rank order of Narayanan et
    al. 2021, section 3.2). O(GPUs log GPUs) for each kind of group.
    """
    counted = part.parts is not None
    width = len(part.gpus) if counted else cluster.gpus_per_part(part.level)
    groups = {
        "tensor groups": placement.tensor_groups,
        "stages": placement.stages,
        "replicas": placement.replicas,
        "expert groups": groups_of(placement, "expert"),
        "shard groups": placement.shard_groups,
    }
    return {"ranks": width} | {
        name: int(
            np.isin(found, part.gpus).any(axis=1).sum()
            if counted
            else groups_per_part(found, width).max()
        )
        for name, found in groups.items()
    }


def consequences(
    model: FailureModel, checkpointing: Checkpointing, recovery: Recovery, spares: int = 0
) -> pd.DataFrame:
    """What one failure of each class does to a job, one row for each class and kind of part.

    How many parts and failures per day, what is behind one part, nodes missing until repaired,
    whether state is lost, whether the job goes back; then mean work done twice [s], time stopped
    [s], and the share of the throughput afterwards, with all else up. Arguments are those of
    `goodput`.

    Work done twice: a failure finds the job a truncated exponential time 1/L - P/(e^{L P} - 1)
    after the point that it goes back to, points of the level read being P apart and failures that
    go back striking at rate L: exact for one level without delay (Daly 2006 for the time since the
    last checkpoint). Stopped: detection, then restart and reading, or the pause. O(classes).

    >>> from relparallel.parallel import Strategy
    >>> from relparallel.training import failure_model, remote
    >>> model = failure_model(Cluster(nodes=2048), Strategy(tensor=8, pipeline=16, data=128))
    >>> storage = Checkpointing(levels=(remote(5.7e12, 1e11),))
    >>> table = consequences(model, storage, Recovery("elastic", repair=3600.0, pause=30.0))
    >>> int(table.loc["Faulty GPU", "replicas"]), float(table.loc["Faulty GPU", "stopped / s"])
    (1, 30.0)
    """
    model = under(model, recovery)
    job = job_rows(model, checkpointing, recovery, spares)
    place = model.placement
    assert place is not None  # its rows would have refused
    domains = [domain for domain in model.domains if domain.rate > 0]
    parts = [d.component for d in domains]
    places: list[Any] = [part.level if part.parts is None else part.gpus for part in parts]
    one_each = dict(zip(places, parts, strict=True))  # for each level, and for each set of GPUs
    known = {key: groups_behind(place, model.cluster, part) for key, part in one_each.items()}
    behind = [known[key] for key in places]
    gone = np.cumprod(np.column_stack([np.ones(job.rate.size), 1 - job.survive[:, :-1]]), axis=1)
    # probability that a failure reads a level: the first that survives, [i, l]
    reading = gone * job.survive
    missing = np.maximum(job.nodes - job.spares, 0) if recovery.waits else job.nodes
    lost = np.where(job.back, (reading * _since_point(job)).sum(axis=1), 0.0)
    restart = job.restart_fixed + reading @ job.restart
    stops = np.array([part.stops for part in parts], dtype=np.bool_)
    stopped = stops * (job.detection + np.where(job.back, restart, job.pause))
    names = pd.Index([part.name for part in parts], name="class")
    harm = {
        "level": [part.level for part in parts],
        "effect": [part.effect for part in parts],
        "parts": [d.parts for d in domains],
        "per day": job.rate * DAY,
        **{key: [found[key] for found in behind] for key in (behind[0] if behind else {})},
        "nodes missing": [d.nodes for d in domains],
        "state lost": [d.state_lost for d in domains],
        "goes back": job.back,
        "work lost / s": lost,
        "stopped / s": stopped,
        "speed after": job.speed[np.minimum(missing, job.speed.size - 1)] / job.slowdown,
    }
    return pd.DataFrame(harm, index=names)


def _since_point(job: JobRows) -> NDArray[np.float64]:
    """Mean time since the last point of a level when a failure strikes, [l]."""
    rate = float(job.rate[job.back].sum())
    if rate == 0:
        return np.zeros(job.cost.size)
    apart = np.cumprod(np.r_[1, job.every[:-1]]) * (job.interval + job.cost[0])
    with np.errstate(over="ignore"):
        mean: NDArray[np.float64] = 1 / rate - apart / np.expm1(rate * apart)
    return mean
