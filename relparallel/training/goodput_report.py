"""Goodput of a job in closed form: what failures, checkpoints, recovery and spares leave of its time.

The productive share is a product,

    (1 - planned) * available * clear * rollback * speed * undisturbed,

available    some throughput is left: the job does not wait for nodes;
clear        the job does not stand in a pause (failures that it survives without going back);
rollback     of the rest, what checkpoints, work done again, detection and restarts leave;
speed        mean throughput with nodes missing;
undisturbed  mean throughput with slow parts: the slowest of them sets the pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_choice, require_instance, require_int, require_real
from relparallel.parallel import StepTime
from relparallel.training._arguments import require_time
from relparallel.training._failing_job import FailingJob, Shares
from relparallel.training.checkpoint_policies import Checkpointing
from relparallel.training.failures import FailureModel
from relparallel.training.importance import importance
from relparallel.training.recovery_policies import Recovery
from relparallel.training.report import GoodputReport
from relparallel.units import DAY

if TYPE_CHECKING:
    import pandas as pd

_METHODS: Final = ("closed", "markov")


def goodput(
    model: FailureModel,
    step_time: StepTime | float,
    checkpointing: Checkpointing,
    recovery: Recovery,
    spares: int = 0,
    *,
    tokens_per_step: float | None = None,
    planned: float = 0.0,
    horizon: float = 30 * DAY,
    method: str = "closed",
    crews: int | None = None,
) -> GoodputReport:
    """Productive share of a job's time, its spread, where the rest goes, and which class of parts decides.

    Parameters
    ----------
    model : FailureModel
        What fails, with a placement.
    step_time : StepTime or float
        Time of a step with everything up [s].
    checkpointing : Checkpointing
        What can be gone back to; what it leaves open is chosen best.
    recovery : Recovery
        What the job does after a failure.
    spares : int
        Nodes besides those of the job.
    tokens_per_step : float, optional
        Tokens of a global batch, for tokens per day and cost per token.
    planned : float
        Share of the time in planned stops, below 1.
    horizon : float
        Wall time of the run whose spread is asked for [s].
    method : {"closed", "markov"}
        How nodes that are missing and pauses are counted.
    crews : int, optional
        Repairs at once, for ``method="markov"`` and only there; any number where omitted.

    Returns
    -------
    GoodputReport
        Its ``importance`` has one row per class: ``rate`` [1/s], ``interrupts`` (whether it does),
        ``elasticity`` d ln goodput / d ln rate, ``share`` of the loss that a small common change of all
        rates moves, and ``birnbaum``, the productive seconds that one more failure costs.

    Notes
    -----
    Exact for waiting policies with failures of one size: a job that waits sees failures at a constant rate in
    the time it runs. Products of means elsewhere. An elastic job's pauses and its rollback are taken as
    independent of the number of nodes missing; the neglected term is of the order of (pauses per second) *
    (pause) * (share of nodes missing), at most 0.06 points in a hundred random elastic jobs. Where a higher
    level of checkpoints is durable sooner than a lower one, see `rollback`. With failures of several sizes
    the law of the missing nodes is exact where all parts can always fail, and for cold spares where the parts
    under repair have at most a thousand states (`cold_law`). Beyond, it keeps only mean balances: where a
    third of the missing nodes leave four at a time and spares are short, waiting comes out up to a tenth too
    small. Nodes of a part leave and return together. Failures of one level are taken to hit different nodes:
    the neglected overlap is the product of their shares of nodes missing. The variance adds those of the
    factors and neglects that waiting and rollback share their failures: a few percent of the standard
    deviation, a sixth with racks and cold spares. Percentiles have the skewness of going back alone: right to
    0.1 points where waits are rare, (failures per second) * (restart + interval / 2) is below 0.5 and the
    horizon holds thirty failures; skewed by one or two points where it holds a few waits of days.

    "markov" takes waiting, pauses and speed from `NodeChain`: exponential repairs and pauses, every node
    repaired on its own. Where parts with several nodes decide, "closed" is closer to repairs of whole parts.

    O(classes + nodes missing); parts of a class are never listed.

    References
    ----------
    Daly 2006; Erlang 1917; Panjer, ASTIN Bulletin 12, 1981; Asmussen 2003, chapter VI.3.

    Examples
    --------
    >>> from relparallel.hardware import Cluster
    >>> from relparallel.parallel import Strategy
    >>> from relparallel.training import CheckpointLevel, failure_model
    >>> model = failure_model(Cluster(nodes=2048), Strategy(tensor=8, pipeline=16, data=128))
    >>> storage = Checkpointing(levels=(CheckpointLevel(name="storage", cost=20.0, restart=300.0),))
    >>> report = goodput(model, 5.0, storage, Recovery("spares", repair=86400.0), spares=16)
    >>> round(report.mean, 4), report.importance["elasticity"].idxmin()
    (0.916, 'Faulty GPU')
    """
    require_instance(FailureModel, model=model)
    require_instance((StepTime, float, int), step_time=step_time)
    seconds = step_time.total if isinstance(step_time, StepTime) else step_time
    require_time(step_time=seconds, horizon=horizon, positive=True)
    if require_real(planned=planned, at_least=0, at_most=1) == 1:
        raise ValueError(f"planned must be below 1, got {planned!r}")
    require_choice(_METHODS, method=method)
    if crews is not None:
        require_int(crews=crews, at_least=1, at_most=10**6)
        if method == "closed":
            raise ValueError(f"crews must be left out unless method is 'markov', got {crews!r}")
    domains = [domain for domain in model.domains if domain.rate > 0]
    job = FailingJob.of(model, domains, checkpointing, recovery, spares)
    shares = job.shares() if method == "closed" else job.chain_shares(crews)
    names = [domain.component.name for domain in domains]
    interrupting = np.array([domain.component.stops for domain in domains], dtype=np.bool_)
    job = job.slowed(shares.speed * shares.undisturbed)
    buckets = _buckets(shares, job.back.buckets, planned)
    lost = np.array([domain.state_lost for domain in domains], dtype=np.bool_)
    inner = (1 - job.rows.survive[:, :-1]).prod(axis=1)
    return GoodputReport(
        buckets=buckets,
        variance_rate=job.variance_rate(shares, planned),
        third_rate=job.third_rate(shares, planned, buckets["productive"]),
        horizon=float(horizon), step_time=float(seconds),
        gpus=(job.rows.total + spares) * model.cluster.gpus_per_node,
        mtti=_mean_times(names, job.rows.rate * interrupting, [entry.name for entry in model.classes]),
        state_loss_rate=float(job.rows.rate @ (lost * inner)),
        importance=importance(names, job.rows.rate, interrupting, job.gradient(), buckets["productive"]),
        interval=job.rows.interval, method=method, tokens_per_step=tokens_per_step,
    )  # fmt: skip


def _mean_times(found: Sequence[str], rates: NDArray[np.float64], names: Sequence[str]) -> pd.Series:
    """Mean time between interruptions by class, infinite where none interrupts."""
    import pandas as pd

    total = dict.fromkeys(names, 0.0)
    for name, rate in zip(found, rates, strict=True):
        total[name] += rate
    return pd.Series({name: 1 / rate if rate else np.inf for name, rate in total.items()}, dtype=np.float64)


def _buckets(shares: Shares, back: dict[str, float], planned: float) -> dict[str, float]:
    """Closed time accounting."""
    run = (1 - planned) * shares.available
    paused, going = run * (1 - shares.clear), run * shares.clear
    kept = shares.speed * shares.undisturbed
    found = {name: going * share for name, share in back.items()}
    found["degraded"] = (found["productive"] + found["lost"]) * (1 - kept)
    found["productive"], found["lost"] = found["productive"] * kept, found["lost"] * kept
    found["detection"] += paused * (1 - shares.noticed)
    found["restart"] += paused * shares.noticed
    return {**found, "waiting": (1 - planned) * (1 - shares.available), "planned": planned}
