"""In which order gradients and parameters travel while a model is trained on many machines.

A step begins with the backward pass, last layer first, and ends when the forward pass of the next
step is done. A layer's gradient may leave when its backward pass is over, and its next forward pass
waits for the sum. What travels is cut into messages (parts of a tensor, or several tensors
together) that pass every hop of the network in turn: one for an all-reduce, two to a parameter
server and back, three where host memory lies between GPU and network. A message of M bytes occupies
a hop for M/B and arrives a later than it has left.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    Result,
    require_choice,
    require_indices,
    require_instance,
    require_int,
    require_number,
    require_real,
    require_rng,
)
from relparallel.parallel.timeline import Timeline, simulate_timeline
from relparallel.workload.graph import LayerGraph

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MergedMessages(Result):
    """Messages in their order: tensors ``groups[i][0]`` to ``groups[i][1] - 1`` go together.

    ``begin`` and ``end`` [s] of every message; all is there at ``finish`` [s].
    """

    groups: tuple[tuple[int, int], ...]
    begin: Floats
    end: Floats

    @property
    def finish(self) -> float:
        """When the last message is there [s]."""
        return float(self.end[-1])


class _Policy(NamedTuple):
    """What goes first, the most bytes of a message, and the bytes that close a tensor bucket."""

    first: str
    partition: float | None = None
    bucket: float = 0.0


POLICIES: Final = {
    "fifo": _Policy("ready"),
    "ddp": _Policy("ready", bucket=25 * 2.0**20),
    "forward": _Policy("forward"),
    "tic": _Policy("tic"),
    "tac": _Policy("tac"),
    "p3": _Policy("forward", 4 * 50_000.0),
    "bytescheduler": _Policy("forward", 0.0),
}
_CREDITS: Final = (1, 2, 4, 8, 16)
_MOST_MESSAGES: Final = 2**17
# halvings of the largest tensor that are tried, and messages up to which they are
_FINEST: Final = 10
_MANY: Final = 4096


def order(
    graph: LayerGraph,
    policy: str | ArrayLike = "fifo",
    *,
    network: ArrayLike,
    partition: float | None = None,
    credit: int | None = None,
    bucket: float | None = None,
    groups: MergedMessages | None = None,
    loss: float | None = None,
    timeout: float | None = None,
    rng: np.random.Generator | None = None,
) -> Timeline:
    """Simulate a step of training whose gradients and parameters travel in a given order.

    Parameters
    ----------
    graph : LayerGraph
        Layers with work in seconds. With ``backward`` 0 all parameters can be sent at once: the
        step of a worker that fetches them from a server.
    policy : str or array_like of int
        What goes first where several messages may go, or the rank of each layer [layers]:

        - "fifo": what is ready first (wait-free backpropagation);
        - "ddp": so, tensors together until a bucket holds 25 MiB (PyTorch DDP, VLDB 2020);
        - "forward": what the forward pass needs first; "p3": so, in slices of 50,000 parameters
          (P3, MLSys 2019); "bytescheduler": so, with the partition and the credit of
          `tune_partition` (SOSP 2019);
        - "tic", "tac": by the operators that wait for each tensor (TicTac, MLSys 2019, algorithms 2
          and 3).
    network : array_like
        Latency a [s] and bandwidth B [bytes/s] of the network, or of each hop [hops, 2].
    partition, credit : float, int, optional
        Most bytes of a message; larger ones are cut. Messages that a hop takes before the first of
        them has arrived, 1 by default: more hide the latency, but what is taken cannot be
        overtaken.
    bucket : float, optional
        Bytes at which a bucket of tensors closes; 25 MiB with "ddp", else every tensor goes alone.
    groups : MergedMessages, optional
        Tensors that are sent together, none before its time, without buckets (`merge_gradients`,
        `fuse_gradients`).
    loss, timeout, rng : float, float, numpy.random.Generator, optional
        Losses per byte on a hop, seconds by which each of them delays a message, and what draws
        them: all three, or none.

    Returns
    -------
    Timeline
        Kinds "backward" and "forward" on resource 0 and "transfer" on a resource for each hop;
        ``item`` is the layer, of a message the first that waits for it, and ``part`` the number of
        the slice.

    Examples
    --------
    >>> chain = LayerGraph(
    ...     names=("a", "b"), kinds=("fc", "fc"), forward=[1.0, 1.0], backward=[1.0, 1.0],
    ...     parameter_bytes=[2.0, 8.0], activation_bytes=[0.0, 0.0], edges=[(0, 1)], unit="s",
    ... )
    >>> order(chain, "fifo", network=(0.0, 1.0)).makespan  # b's 8 bytes hold up a's 2
    13.0
    >>> order(chain, "forward", network=(0.0, 1.0), partition=1).makespan
    12.0
    """
    hops = _checked(graph, network)
    named = isinstance(policy, str)
    rule = POLICIES[require_choice(tuple(POLICIES), policy=policy)] if named else _Policy("given")
    if any(one is not None for one in (loss, timeout, rng)):
        if loss is None or timeout is None or rng is None:
            raise TypeError(
                f"loss, timeout and rng must be given together, got {loss!r}, {timeout!r}, {rng!r}"
            )
        require_number(loss=loss, timeout=timeout, at_least=0)
        require_rng(rng=rng)
    if groups is not None and (bucket is not None or rule.bucket):
        raise ValueError(
            f"groups must be left out with buckets, of bucket or of policy 'ddp', got {groups!r:.80}"
        )
    if rule.partition == 0.0 and partition is None:
        tuned = tune_partition(graph, network=network)
        partition, credit = tuned[0], tuned[1] if credit is None else credit
    most = (
        rule.partition or np.inf
        if partition is None
        else require_number(partition=partition, above=0)
    )
    rank = _ranks(graph, rule.first, hops) if named else _column("policy", policy, len(graph))
    closes = rule.bucket if bucket is None else require_number(bucket=bucket, at_least=0)
    plan = _bucketed(graph, closes, most) if groups is None else _merged(graph, groups, most)
    late = np.repeat(hops[:, :1], plan.size.size, axis=1)
    if rng is not None and loss is not None and timeout is not None:
        late += timeout * rng.poisson(loss * plan.size, late.shape)
    at_once = 1 if credit is None else require_int(credit=credit, at_least=1)
    return _simulate(graph, hops, rank, plan, late, at_once)


def tune_partition(graph: LayerGraph, *, network: ArrayLike) -> tuple[float, int]:
    """Largest message and credit with which a step by "forward" priorities is shortest.

    Parameters
    ----------
    graph, network : LayerGraph, array_like
        As `order` takes them.

    Returns
    -------
    float, int
        Bytes and messages, of the largest tensor halved up to ten times and credits of 1 to 16; of
        equally good ones the largest message and the least credit. Peng et al., SOSP 2019, section
        4.3, search by Bayesian optimisation, as they measure every try.

    Examples
    --------
    >>> chain = LayerGraph(
    ...     names=("a", "b"), kinds=("fc", "fc"), forward=[1.0, 1.0], backward=[1.0, 1.0],
    ...     parameter_bytes=[2.0, 8.0], activation_bytes=[0.0, 0.0], edges=[(0, 1)], unit="s",
    ... )
    >>> tune_partition(chain, network=(0.1, 1.0))
    (2.0, 2)
    """
    _checked(graph, network)
    largest, total = float(graph.parameter_bytes.max()) or 1.0, float(graph.parameter_bytes.sum())
    sizes = [largest / 2**k for k in range(_FINEST + 1) if total * 2**k <= _MANY * largest]
    return min(
        product(sizes, _CREDITS),
        key=lambda it: (
            order(graph, "forward", network=network, partition=it[0], credit=it[1]).makespan
        ),
    )


def fluid_bound(graph: LayerGraph, *, network: ArrayLike) -> float:
    """Least time of a step if tensors flow like water: any order, any cut, interrupted at will.

    Parameters
    ----------
    graph, network : LayerGraph, array_like
        As `order` takes them; the slowest hop counts, and all latencies once.

    Returns
    -------
    float
        Seconds, the largest of all work and, for every layer v and release time r of what v waits
        for, r + (bytes that v waits for, released from r on)/B + a + (forward work of v and what
        follows). In a chain without latency the first layers' gradients first reach it.

    Examples
    --------
    >>> chain = LayerGraph(
    ...     names=("a", "b"), kinds=("fc", "fc"), forward=[1.0, 1.0], backward=[1.0, 1.0],
    ...     parameter_bytes=[2.0, 8.0], activation_bytes=[0.0, 0.0], edges=[(0, 1)], unit="s",
    ... )
    >>> fluid_bound(chain, network=(0.0, 1.0))
    12.0
    """
    hops = _checked(graph, network)
    needs = graph.ancestors | np.eye(len(graph), dtype=np.bool_)
    released, rest = graph.backward @ needs, graph.forward @ needs
    latest = np.argsort(-released, kind="stable")
    waits = needs[:, latest] * graph.parameter_bytes[latest]
    sent = released[latest] + np.cumsum(waits, axis=1) / hops[:, 1].min() + hops[:, 0].sum()
    ends = np.where(waits > 0, sent + rest[:, None], 0.0)
    return float(max(ends.max(), graph.backward.sum() + graph.forward.sum()))


class _Plan(NamedTuple):
    """Bytes and number of each message; layers each concerns, and how long they hold it back."""

    size: Floats
    part: Whole
    layer: Whole
    message: Whole
    wait: Floats


def _checked(graph: LayerGraph, network: ArrayLike) -> Floats:
    """Latency and bandwidth of every hop, [hops, 2]."""
    require_instance(LayerGraph, graph=graph)
    if graph.unit != "s":
        raise ValueError(f"graph must hold seconds, got {graph!r}")
    hops = np.atleast_2d(require_real(network=network, at_least=0))
    if hops.ndim != 2 or hops.shape[1] != 2 or (hops[:, 1] == 0).any():
        raise ValueError(
            f"network must be (latency, bandwidth > 0) of one or more hops, got {network!r}"
        )
    return hops


def _column(name: str, values: Any, size: int) -> Whole:
    """A whole number for each layer."""
    column = require_indices(name, values)
    if column.size != size:
        raise ValueError(f"{name} must have {size} entries, one for each layer, got {values!r:.80}")
    return column


def _tensors(graph: LayerGraph) -> Whole:
    """Layers that send, in the order in which they are ready."""
    backwards = graph.order[::-1]
    return backwards[graph.parameter_bytes[backwards] > 0]


def _bucketed(graph: LayerGraph, bucket: float, most: float) -> _Plan:
    """Tensors in order of readiness, in buckets that close as soon as they hold so many bytes."""
    sizes, group, held = graph.parameter_bytes[_tensors(graph)], [0], 0.0
    for size in sizes[:-1]:
        held = 0.0 if held + size >= bucket else held + size
        group.append(group[-1] + (held == 0))
    return _cut(graph, np.array(group)[: sizes.size], np.zeros(sizes.size), most)


def _merged(graph: LayerGraph, groups: MergedMessages, most: float) -> _Plan:
    """Tensors as they were merged, each group from its time on."""
    tensors = _tensors(graph)
    lengths = np.diff(np.array(require_instance(MergedMessages, groups=groups).groups)).ravel()
    if lengths.sum() != tensors.size:
        raise ValueError(f"groups must merge {tensors.size} tensors, got {groups.groups!r:.80}")
    ready = np.cumsum(graph.backward[graph.order[::-1]])[len(graph) - 1 - graph.positions[tensors]]
    group = np.repeat(np.arange(lengths.size), lengths)
    return _cut(graph, group, np.maximum(groups.begin[group] - ready, 0.0), most)


def _cut(graph: LayerGraph, group: Whole, wait: Floats, most: float) -> _Plan:
    """Cut what the groups of tensors, numbered from 0, have to send."""
    tensors = _tensors(graph)
    total = np.bincount(group, graph.parameter_bytes[tensors])
    largest = min(most, total.max(initial=1.0))
    count = np.ceil(total / largest * (1 - 1e-12)).astype(np.int64)
    if count.sum() > _MOST_MESSAGES:
        raise ValueError(
            f"partition must give at most {_MOST_MESSAGES} messages, got {most:g} bytes of each"
        )
    of = np.repeat(np.arange(total.size), count)
    part = np.arange(of.size) - np.repeat(np.cumsum(count) - count, count)
    which, message = np.nonzero(group[:, None] == of)
    size = np.minimum(largest, total[of] - part * largest)
    return _Plan(size=size, part=part, layer=tensors[which], message=message, wait=wait[which])


def _simulate(
    graph: LayerGraph, hops: Floats, rank: Whole, plan: _Plan, late: Floats, credit: int
) -> Timeline:
    """Simulate backward passes, messages on every hop and forward passes."""
    n, m, position = len(graph), plan.size.size, graph.positions
    urgency, first = np.full((2, m), np.iinfo(np.int64).max)
    np.minimum.at(urgency, plan.message, rank[plan.layer])
    np.minimum.at(first, plan.message, position[plan.layer])
    sent = 2 * n + np.arange(len(hops) * m).reshape(len(hops), m)
    makers, users = graph.edges.T
    sources = np.flatnonzero(np.bincount(users, minlength=n) == 0)
    needs = [
        (plan.layer, sent[0, plan.message]),
        (users, makers),
        (n + makers, n + users),
        (sent[:-1], sent[1:]),
        (sent[-1, plan.message], n + plan.layer),
        (np.repeat(sources, sources.size), n + np.tile(sources, sources.size)),
    ]
    before, after = (np.concatenate([pair[side].ravel() for pair in needs]) for side in (0, 1))
    lag = np.append(plan.wait, np.zeros(before.size - plan.wait.size))
    passes = np.zeros(2 * n, dtype=np.int64)
    resource = np.concatenate([passes, np.repeat(1 + np.arange(len(hops)), m)])
    duration = np.concatenate([graph.backward, graph.forward, (plan.size / hops[:, 1:]).ravel()])
    start = simulate_timeline(
        resource,
        duration,
        np.concatenate([n - position, n + position, np.tile(urgency, len(hops))]),
        before,
        after,
        lag,
        delay=np.append(passes, late),
        credit=np.append(1, np.full(resource.max(), credit)),
    )
    return Timeline(
        resources=1 + len(hops),
        resource=resource,
        start=start,
        duration=duration,
        holding=np.zeros(start.size),
        kind=np.repeat(["backward", "forward", "transfer"], [n, n, m * len(hops)]),
        item=np.concatenate([np.arange(n), np.arange(n), np.tile(graph.order[first], len(hops))]),
        part=np.append(passes, np.tile(plan.part, len(hops))),
    )


def _ranks(graph: LayerGraph, first: str, hops: Floats) -> Whole:
    """Rank of each layer's tensor; the smallest goes first."""
    if first in ("ready", "forward"):
        return graph.positions if first == "forward" else len(graph) - graph.positions
    own = graph.order[graph.parameter_bytes[graph.order] > 0]
    needs = (graph.ancestors | np.eye(len(graph), dtype=np.bool_))[:, own]
    seconds = hops[:, 0].sum() + graph.parameter_bytes[own] / hops[:, 1].min()
    rank = np.full(len(graph), len(graph))
    if first == "tic":
        _, pending = _properties(needs, np.ones(own.size), graph.forward)
        rank[own[np.argsort(pending, kind="stable")]] = np.arange(own.size)
    else:
        rank[own[_tac(needs, seconds, graph.forward)]] = np.arange(own.size)
    return rank


def _properties(needs: NDArray[np.bool_], seconds: Floats, work: Floats) -> tuple[Floats, Floats]:
    """Work P that only a tensor is missing for, and least M+ of a layer that also waits for others.

    Hashemi et al., MLSys 2019, algorithm 1.
    """
    waits = needs.sum(axis=1)
    alone: Floats = work[waits == 1] @ needs[waits == 1]
    together = np.where(needs & (waits > 1)[:, None], (needs @ seconds)[:, None], np.inf)
    return alone, together.min(axis=0)


def _tac(needs: NDArray[np.bool_], seconds: Floats, work: Floats) -> list[int]:
    """Tensor order of Hashemi et al., algorithm 3: of two the one that idles less goes first."""
    left, chosen = list(range(seconds.size)), []
    while left:
        alone, pending = _properties(needs[:, left], seconds[left], work)
        best = 0
        for i, j in enumerate(left):
            one, other = min(alone[best], seconds[j]), min(alone[i], seconds[left[best]])
            if one < other or (one == other and pending[i] < pending[best]):
                best = i
        chosen.append(left.pop(best))
    return chosen
