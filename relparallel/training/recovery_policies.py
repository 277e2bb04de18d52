"""Recovery policies: what a job does after a failure, and how fast it goes on with nodes missing.

==============  ====================================================================================
policy          after a node has failed
==============  ====================================================================================
restart         the job waits for the repair and goes back to its last checkpoint: no node is free
spares          the job restarts at its last checkpoint on a spare that was switched off: what a
                scheduler does that puts it back into the queue while nodes are free
hot_spares      a spare that was running (and can fail) takes the place; otherwise as spares
elastic         the job goes on without the replicas that are hit; a spare takes the node's place
regroup         as elastic, but healthy nodes of broken replicas are put together to whole ones
bamboo          the node before the failed one also does its work; a pipeline that loses two neighbours drops
                out as with elastic
oobleck         all nodes left are put together to pipelines of several sizes
recycle         the other replicas share the micro-batches of the failed stage
reduced_tensor  the replica goes on with fewer tensor-parallel ranks, which may run faster (NTP)
spare_shards    replicas that hold the failed ones' data compute it as well (SPARe)
==============  ====================================================================================

A policy is one function with ``@policy``, which also says its traits (`Policy`): nothing asks for
its name. An option of its own is a field of `Recovery`, with the check of its values.

========  ==========================================================  =====================
letter    meaning                                                     where
========  ==========================================================  =====================
N         nodes of the job                                            ``JobShape.nodes``
g         nodes of one replica                                        ``nodes_per_replica``
U         N/g, groups of replicas that share no node with others      ``JobShape.units``
k         failed nodes                                                ``down``
p         pipeline stages                                             ``JobShape.stages``
t         tensor-parallel ranks                                       ``JobShape.tensor``
m         micro-batches per replica and step with all nodes up        ``micro_batches``
========  ==========================================================  =====================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import (
    require_choice,
    require_flag,
    require_instance,
    require_int,
    require_probability,
    require_real,
)
from relparallel.training import _speeds
from relparallel.training._arguments import require_rate, require_time
from relparallel.training._random_failures import failed_in_unit, unit_clean, units_hit
from relparallel.training.failures import Domain
from relparallel.training.job_shape import JobShape
from relparallel.training.recovery import BATCHES, check_batch, speed_of
from relparallel.training.redundancy import shards_held
from relparallel.training.spares import shortage_probability

_COUNT: Final = partial(require_int, at_least=1, at_most=10**6)
_FAULTS: Final = partial(require_int, at_least=0, at_most=10**6)
_BOOST: Final = partial(require_real, at_least=1, at_most=100)
_STEPS: Final = 10**10  # of a recursion over a ring: about ten seconds
_TICKS: Final = 10**4  # largest denominator of a boost: paces are compared in whole numbers


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """What tells recovery policies apart."""

    speed: Callable[[Recovery, JobShape, int], NDArray[np.float64]]  # with 0 … k failed nodes
    waits: bool = False  # the job stands still while a node is missing
    hot: bool = False  # spares can fail while they stand by
    neighbours: bool = False  # the node before a failed one has a copy of its state
    needs: str = "some node"  # to go on: "some node", "some replica", or "some speed"
    spares: bool = True  # spares stand in for failed nodes
    # units that are hit leave, nothing makes up for them
    drops: bool | Callable[[Recovery], bool] = False
    # never faster than the share of nodes left; so is one that drops units
    in_proportion: bool = False
    # what it can do with the batch; "shrink" alone stands for no choice
    batches: tuple[str, ...] = BATCHES
    # micro-batches count with a shrinking batch as well, for the bubble they leave
    hides: bool = False
    options: tuple[str, ...] = ()  # those fields of `Recovery` that only some policies have


POLICIES: Final[dict[str, Policy]] = {}


def policy(name: str, **traits: Any) -> Callable[[Any], Any]:
    """Register a policy's speed function: (recovery, shape, k) -> shares with 0 … k nodes down."""

    def register(speed: Any) -> Any:
        POLICIES[name] = Policy(speed=speed, **traits)
        return speed

    return register


def _option(check: Callable[..., Any]) -> Any:
    """Field of `Recovery` that is for the policies that name it."""
    return field(default=None, metadata={"check": check})


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a job does after a failure.

    Parameters
    ----------
    policy : str
        One of the table of `relparallel.training.recovery_policies`, or one registered with
        ``@policy``.
    repair : float
        Mean time until a failed node works again [s]: with the start of its processes and the wait
        for the next step.
    restart : float
        Fixed part of a restart of the whole job [s], besides reading the checkpoint.
    pause : float
        Standstill of a failure where the job goes on without going back [s]: at the loss and at the
        return together.
    timeout : float
        What a second failure costs besides, where it strikes while the processes meet after the
        first [s]: the others wait for a peer that is gone. Of pauses; 0 where nobody waits.
    meeting : float, optional
        Time in which they meet, from the detection on [s]; the whole pause where omitted.
    batch : {"shrink", "keep"}
        "shrink": the global batch shrinks with the replicas. "keep": it is kept, and the replicas
        left do more micro-batches each, a whole number of them.
    micro_batches : int, optional
        Micro-batches m per replica and step with all nodes up. With ``batch="keep"``; also for
        bamboo and recycle, where few of them hide work in the pipeline bubble (infinitely many
        where omitted).
    overhead : float, optional
        bamboo: share of the throughput that the redundant work costs while nothing has failed; 0 if
        omitted.
    bubble : float, optional
        recycle: share of the pipeline bubble that rerouted work can fill; 1 if omitted.
    smallest, largest : int, optional
        oobleck: nodes n0 and n1 of its smallest and largest pipeline; g and 2 n0 - 1 if omitted.
    faults : int, optional
        oobleck: failures f to survive, so that f + 1 pipelines are needed; 1 if omitted.
    layers : int, optional
        oobleck: layers that a pipeline splits; if omitted every split is even.
    partial : float, optional
        reduced_tensor: probability that a failed node has lost one GPU only, not all; 1 if omitted.
    divisor : bool, optional
        reduced_tensor: whether a tensor group shrinks to the next smaller divisor of t, not to t -
        1.
    boost : float, optional
        reduced_tensor: speed of the GPUs of a slowed replica over the usual one, at least 1, where
        the rack can feed and cool them beyond their usual power; 1 if omitted.
    holders : int, optional
        spare_shards: replicas r in a row that hold each shard of the data; 2 if omitted.

    References
    ----------
    Elastic replicas: torchft and hybrid-sharded data parallelism (`ft_hsdp`). Thorpe et al.,
    "Bamboo", NSDI
    2023. Jang et al., "Oobleck", SOSP 2023. Gandhi et al., "ReCycle", SOSP 2024. Arfeen et al.,
    "Nonuniform-Tensor-Parallelism", arXiv:2504.06095: a slowed replica contributes the share of its
    GPUs that work, a boosted one keeps up. SPARe: arXiv:2603.00357. The papers describe the
    mechanisms; the speeds are derived here, from stages that all take the same time.

    Examples
    --------
    >>> shape = JobShape(nodes=8, replicas=4, stages=2, tensor=8, nodes_per_replica=2)
    >>> Recovery("elastic", repair=86400.0).speed(shape, down=2).round(4).tolist()
    [1.0, 0.75, 0.5357]
    >>> Recovery("regroup", repair=86400.0).speed(shape, down=2).tolist()
    [1.0, 0.75, 0.75]
    """

    policy: str
    repair: float
    _: KW_ONLY
    restart: float = 0.0
    pause: float = 0.0
    timeout: float = 0.0
    meeting: float | None = None
    batch: str = "shrink"
    micro_batches: int | None = None
    overhead: float | None = _option(require_probability)
    bubble: float | None = _option(require_probability)
    smallest: int | None = _option(_COUNT)
    largest: int | None = _option(_COUNT)
    faults: int | None = _option(_FAULTS)
    layers: int | None = _option(_COUNT)
    partial: float | None = _option(require_probability)
    divisor: bool | None = _option(require_flag)
    boost: float | None = _option(_BOOST)
    holders: int | None = _option(_COUNT)

    def __post_init__(self) -> None:
        if not isinstance(self.policy, str) or self.policy not in POLICIES:
            raise ValueError(
                f"policy must be one of {', '.join(map(repr, POLICIES))}, or a new one registered "
                "with "
                f"@policy as at the end of {__name__}, got {self.policy!r}"
            )
        for name in ("repair", "restart", "pause", "timeout"):
            require_instance(float, **{name: require_time(**{name: getattr(self, name)})})
        if self.meeting is not None:
            require_real(meeting=self.meeting, at_least=0, at_most=self.pause)
        kind = POLICIES[self.policy]
        require_choice(kind.batches, batch=self.batch)
        if kind.hides and self.batch == "shrink" and self.micro_batches is not None:
            require_int(micro_batches=self.micro_batches, at_least=1, at_most=10**9)
        else:
            check_batch(self.batch, self.micro_batches)
        self._check_options()

    def _check_options(self) -> None:
        """Refuse options out of range and those of another policy."""
        for name, check in ((f.name, f.metadata["check"]) for f in fields(self) if f.metadata):
            value = getattr(self, name)
            if value is not None and name not in POLICIES[self.policy].options:
                owners = " or ".join(
                    repr(other) for other, kind in POLICIES.items() if name in kind.options
                )
                raise ValueError(
                    f"{name} must be left out unless policy is {owners}, got {value!r}"
                )
            if value is not None:
                require_instance((float, int), **{name: check(**{name: value})})
        if self.batch == "keep" and self.partial not in (None, 1.0):
            raise ValueError(f"partial must be 1 with batch 'keep', got {self.partial!r}")

    @classmethod
    def ft_hsdp(cls, away: float, stall: float = 180.0) -> Recovery:
        """Return FT-HSDP: the hit replica is away until it catches up; the others stall and go on.

        "elastic" with a short repair. Stalls R alone leave e^(-R/M) of the time in `goodput`, M the
        mean time between failures, since a failure within a stall begins it anew. Replicas that are
        away count as if they could fail too: a little less than what is kept. Salpekar et al.,
        arXiv:2602.00277.
        """
        return cls("elastic", away, pause=stall)

    @property
    def waits(self) -> bool:
        """Whether the job stands still while a node is missing."""
        return POLICIES[self.policy].waits

    @property
    def hot(self) -> bool:
        """Whether spares can fail while they stand by."""
        return POLICIES[self.policy].hot

    @property
    def takes_spares(self) -> bool:
        """Whether spares stand in for failed nodes."""
        return POLICIES[self.policy].spares

    @property
    def drops(self) -> bool:
        """Whether units that are hit leave as a whole, so that a part takes units and not nodes."""
        drops = POLICIES[self.policy].drops
        return drops(self) if callable(drops) else drops

    def goes_back(self, domain: Domain, shape: JobShape | None = None) -> bool:
        """Return whether a failure of a domain sends the job back to a checkpoint.

        True where it concerns the job itself, spoils the weights, takes the last copy of a shard of
        the training state or, with the shape, leaves no replica to go on with, and where the policy
        always does.
        """
        require_instance(Domain, domain=domain)
        require_instance((JobShape, type(None)), shape=shape)
        if domain.component.effect == "degrade":
            return False
        if self.waits or domain.component.effect == "corrupt" or domain.component.level == "job":
            return True
        kind = POLICIES[self.policy]
        if kind.neighbours and domain.nodes <= 1 and (shape is None or shape.positions[0] > 1):
            return False  # the neighbour holds a copy, whatever the other replicas do
        if domain.state_lost or shape is None:
            return domain.state_lost
        if kind.needs == "some speed":
            return not self.speed(shape, shape.nodes)[min(domain.nodes, shape.nodes)] > 0
        return kind.needs == "some replica" and domain.replicas >= shape.replicas

    def speed(self, shape: JobShape, down: int) -> NDArray[np.float64]:
        """Return the expected share of full throughput with 0 … k failed nodes at random places.

        Every mean is exact; all terms are positive; the policies below say how each is found. O(k)
        to O(k^2 log N) for each of up to min(U, k) terms; only the k that matter need be asked for.
        """
        require_instance(JobShape, shape=shape)
        require_int(down=down, at_least=0, at_most=shape.nodes)
        return POLICIES[self.policy].speed(self, shape, down)

    def throughput(self, shape: JobShape, node_rate: float) -> float:
        """Return the long-run share of full throughput if nodes fail independently, without spares.

        E[speed[K]] / (1 + N lam pause), K binomial (N, lam r / (1 + lam r)); terms beyond a tail of
        1e-16 are left out. Waiting policies: the time without a shortage, since nothing fails while
        the job stands.
        """
        from scipy.stats import binom

        require_instance(JobShape, shape=shape)
        rate = float(require_rate(node_rate=node_rate))
        if self.waits:
            kind = "hot" if self.hot else "cold"
            return 1 - float(shortage_probability(shape.nodes, 0, rate, self.repair, kind))
        share = rate * self.repair / (1 + rate * self.repair)
        down = int(binom.isf(1e-16, shape.nodes, share)) if share else 0
        chance = binom.pmf(np.arange(down + 1), shape.nodes, share)
        return float(chance @ self.speed(shape, down)) / (1 + shape.nodes * rate * self.pause)


@policy("restart", waits=True, spares=False)
@policy("spares", waits=True)
@policy("hot_spares", waits=True, hot=True)
def _waiting(recovery: Recovery, shape: JobShape, down: int) -> NDArray[np.float64]:
    """Stand still while a node is missing."""
    return np.where(np.arange(down + 1) == 0, 1.0, 0.0)


@policy("elastic", needs="some replica", drops=True)
def _elastic(recovery: Recovery, shape: JobShape, down: int) -> NDArray[np.float64]:
    """Go on without the hit replicas: C(N - g, k) / C(N, k), or m / ceil(U m / u) of u units."""
    if recovery.batch == "shrink":
        return unit_clean(shape.nodes, shape.nodes_per_replica, down)
    chance = units_hit(shape.units, shape.nodes_per_replica, down)
    alive = shape.units - np.arange(chance.shape[1])
    return np.asarray(chance @ speed_of(alive, shape.units, recovery.batch, recovery.micro_batches))


@policy("regroup", needs="some speed", in_proportion=True)
def _regroup(recovery: Recovery, shape: JobShape, down: int) -> NDArray[np.float64]:
    """Put the nodes that are up together to floor((N - k) / g) whole replicas."""
    alive = (shape.nodes - np.arange(down + 1)) // shape.nodes_per_replica
    return speed_of(alive, shape.units, recovery.batch, recovery.micro_batches)


@policy("bamboo", neighbours=True, hides=True, options=("overhead",))
def _bamboo(recovery: Recovery, shape: JobShape, down: int) -> NDArray[np.float64]:
    """Let the node before a failed one do the work of both: p + 2 (m - 1), not p + m - 1, slots."""
    overhead = recovery.overhead or 0.0
    return _speeds.redundant(shape, down, recovery.batch, recovery.micro_batches, overhead)


@policy(
    "oobleck",
    needs="some speed",
    batches=("shrink",),
    options=("smallest", "largest", "layers", "faults"),
)
def _oobleck(recovery: Recovery, shape: JobShape, down: int) -> NDArray[np.float64]:
    """Spread the nodes that are up over pipelines of fitting sizes: best speed over that of N."""
    faults = 1 if recovery.faults is None else recovery.faults
    smallest = recovery.smallest or shape.nodes_per_replica
    if (faults + 1) * smallest > shape.nodes:
        raise ValueError(f"shape must have {faults + 1} times {smallest} nodes, got {shape.nodes}")
    largest = recovery.largest or min(2 * smallest - 1, recovery.layers or 2 * smallest)
    speed = _speeds.template_speed(shape.nodes, smallest, largest, faults, recovery.layers)
    return np.asarray(speed[::-1][: down + 1] / speed[-1])


@policy("recycle", batches=("shrink",), hides=True, options=("bubble",))
def _recycle(recovery: Recovery, shape: JobShape, down: int) -> NDArray[np.float64]:
    """Let the U - f workers left of the busiest stage do ceil(U m / (U - f)) micro-batches each."""
    bubble = 1.0 if recovery.bubble is None else recovery.bubble
    return _speeds.rerouted(shape, down, recovery.micro_batches, bubble)


@policy(
    "reduced_tensor",
    needs="some replica",
    drops=lambda recovery: recovery.partial == 0,
    options=("partial", "divisor", "boost"),
)
def _reduced_tensor(recovery: Recovery, shape: JobShape, down: int) -> NDArray[np.float64]:
    """Run t' of t tensor-parallel ranks at min(1, boost t' / t); a dead node takes its replica.

    With a kept batch whole micro-batches are shared out so that the last one ends as early as
    possible.
    """
    if shape.replicas_per_unit > 1 or shape.gpus_per_node % shape.tensor:
        raise ValueError(
            f"shape must have replicas on nodes of their own and tensor groups inside a node, got "
            f"{shape.replicas_per_unit} replicas on a node and groups of {shape.tensor} ranks"
        )
    smaller = range(shape.tensor - 1, 0, -1)
    kept = next(
        (ranks for ranks in smaller if not recovery.divisor or shape.tensor % ranks == 0), 0
    )
    if not kept:
        return np.asarray(_elastic(recovery, shape, down))
    pace = min(
        Fraction(recovery.boost or 1).limit_denominator(_TICKS) * kept / shape.tensor, Fraction(1)
    )
    if recovery.batch == "keep":
        chance = units_hit(shape.units, shape.nodes_per_replica, down)
        slowed = np.arange(chance.shape[1])
        ticks, batch = (pace.numerator, pace.denominator), recovery.micro_batches or 1
        speeds = _speeds.uneven_speed(shape.units - slowed, slowed, *ticks, shape.units, batch)
        return np.asarray(chance @ speeds)
    alone = 1.0 if recovery.partial is None else recovery.partial
    chance = failed_in_unit(shape.nodes, shape.nodes_per_replica, down)
    slow = chance[:, 1:] @ alone ** np.arange(1, chance.shape[1])  # one GPU of every failed node
    return np.asarray(chance[:, 0] + float(pace) * slow)


@policy("spare_shards", needs="some replica", batches=("shrink",), options=("holders",))
def _spare_shards(recovery: Recovery, shape: JobShape, down: int) -> NDArray[np.float64]:
    """Let living holders share the shards as evenly as they can; r dead in a row held one alone."""
    chance = units_hit(shape.units, shape.nodes_per_replica, down)
    holders, most = min(recovery.holders or 2, shape.units), min(chance.shape[1], shape.units)
    if shape.units * holders * most > _STEPS:
        allowed = _STEPS // (shape.units * holders)
        raise ValueError(
            f"down must be at most {allowed} of {shape.units} units in a ring, got {down}"
        )
    held: list[float] = []
    while len(held) < most and (share := shards_held(shape.units, holders, len(held))) >= 1e-18:
        held.append(share)  # further dead ones leave less
    speeds = np.zeros(chance.shape[1])
    speeds[: len(held)] = _speeds.shared_shards(shape.units, holders, np.array(held))
    return np.asarray(chance @ speeds)
