"""Strategies worth asking about reliability: of all with the same fate under failures, the fastest.

Two steps, both without loss. Rules are asked of parts of a row, so that rows which break one are
counted but never built. Rows that fit are sorted by what failures can tell apart, and the fastest
of each kind is kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, StrategyGrid
from relparallel.parallel._kernel import CHOICE
from relparallel.parallel._memory_kernel import FRAGMENTATION
from relparallel.parallel._records import choice_record
from relparallel.parallel.evaluate import CHUNK, Pricing, pricing, totals
from relparallel.parallel.feasibility import WIDTH, broken_rules
from relparallel.parallel.grid import (
    _INNER,
    _codes,
    _divisors,
    _inner_axes,
    _outer,
    _product,
    zero_stages,
)
from relparallel.parallel.strategy import DEGREES as ORDER
from relparallel.topology import Topology
from relparallel.training import JobShape
from relparallel.workload import Transformer

DEGREES: Final = ("tensor", "pipeline", "data", "context")
"""Degrees: with levels where a failure takes a shard's last copy, all that failures can see."""

_SHAPED: Final = tuple(name for name in _INNER if name != "recompute")
_SHARDED: Final = ("zero_stage", "shard")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Fastest:
    """The fastest feasible strategy of each kind, and the count of all the others.

    ``measured`` numbers strategies of measured speed, -1 for computed ones, which have ``costs``.
    """

    grid: StrategyGrid
    time: NDArray[np.float64]
    copies: NDArray[np.int64]
    kinds: NDArray[np.int64]
    counts: pd.Series
    first: NDArray[np.int64]
    later: NDArray[np.int64]
    measured: NDArray[np.int64]
    order: tuple[str, ...] = ORDER
    costs: Pricing | None = None

    def placement(self, row: int) -> Placement:
        """Which GPU runs which rank of a strategy."""
        return Placement(strategy=self.grid[row], order=self.order)


def rules_allow(
    gpus: int, model: Transformer, global_batch: int, node: int, limits: Mapping[str, Any]
) -> bool:
    """Whether some degrees with product ``gpus`` keep every rule that looks at degrees alone."""
    return _degrees(gpus, model, global_batch, node, limits)[0].size > 0


def rule_keeping(
    gpus: int,
    model: Transformer,
    global_batch: int,
    node: int,
    limits: Mapping[str, Any],
    fits: Callable[[NDArray[Any]], NDArray[np.bool_]] | None = None,
) -> tuple[NDArray[Any], int, int]:
    """Rows of `StrategyGrid.all` that keep all rules and may fit, how many cannot, how many in all.

    ``fits`` says of degrees and ZeRO columns whether any strategy with them can fit. Every rule
    looks at the degrees and either at the ZeRO columns or at the others, so each side is asked
    alone and the rows are put together from those that pass. Recomputation breaks no rule, and
    degrees that break one with the plainest other columns break it with all.
    """
    given = {name: np.unique(_codes(name, values)) for name, values in limits.items()}
    axes = {**_inner_axes(gpus, model, global_batch, given), **given}
    recompute = axes["recompute"]
    shapes = _product({name: axes[name] for name in _SHAPED})
    plain, every = _degrees(gpus, model, global_batch, node, limits)
    pairs, times = np.unique(every, axis=0, return_counts=True)
    sizes = [
        _shards(data, zero_stages(pipeline, given), given) for data, pipeline in pairs.tolist()
    ]
    asked = int(times @ np.array(sizes)) * shapes.size * recompute.size

    def passing(rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(rows[broken_rules(model, rows, global_batch, gpus, node) == 0])

    kept, large = [np.empty(0, CHOICE)], 0
    for one in plain:
        degrees = {name: int(one[name]) for name in DEGREES}
        shards = _plain(_outer(degrees, given))
        shards = shards[broken_rules(model, shards, global_batch, gpus, node) & ~WIDTH == 0]
        some = shapes.copy()
        for name in (*DEGREES, "shard"):
            some[name] = one[name]
        some = passing(some)
        if fits is not None:
            small = fits(shards)
            large += int((~small).sum()) * some.size * recompute.size
            shards = shards[small]
        rows = np.empty((some.size, shards.size, recompute.size), CHOICE)
        rows[:] = some[:, None, None]
        for name in _SHARDED:
            rows[name] = shards[name][:, None]
        rows["recompute"] = recompute
        kept.append(rows.ravel())
    return np.concatenate(kept), large, asked


def _degrees(
    gpus: int, model: Transformer, global_batch: int, node: int, limits: Mapping[str, Any]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Degrees keeping the rules in the plainest strategy; data, pipeline degree of all, [n, 2]."""
    given = {name: np.unique(_codes(name, values)) for name, values in limits.items()}
    divisors = np.array(_divisors(gpus), dtype=np.int64)
    tensor, pipeline, context = (
        axis.ravel() for axis in np.meshgrid(*[divisors] * 3, indexing="ij")
    )
    split = tensor * pipeline * context
    whole = (split <= gpus) & (gpus % split == 0)
    columns = (tensor[whole], pipeline[whole], gpus // split[whole], context[whole])
    rows = np.zeros(columns[0].size, CHOICE)
    for name, column in zip(DEGREES, columns, strict=True):
        rows[name] = column
    for name in set(DEGREES) & set(given):
        rows = rows[np.isin(rows[name], given[name])]
    rows["shard"] = rows["data"]
    rows = _plain(rows)
    late = WIDTH if "experts_over_tensor" in given else 0  # what is not plain: asked later
    return rows[broken_rules(model, rows, global_batch, gpus, node) & ~late == 0], np.column_stack(
        [rows["data"], rows["pipeline"]]
    )


def _shards(data: int, stages: list[int], given: dict[str, NDArray[np.int64]]) -> int:
    """Pairs of ZeRO stage and shard group."""
    sharded = [k for k in _divisors(data) if "shard" not in given or k in given["shard"]]
    return sum((len(sharded) if stage else int(data in sharded)) for stage in stages)


def _plain(rows: NDArray[Any]) -> NDArray[Any]:
    """The same rows with the other columns so plain that no rule about these is broken."""
    plain = rows.copy()
    for name in ("expert", "micro_batch", "virtual_stages"):
        plain[name] = 1
    plain["schedule"] = _codes("schedule", "1f1b")
    return plain


def fastest_of_each_kind(
    model: Transformer,
    cluster: Cluster,
    global_batch: int,
    limits: Mapping[str, Any],
    network: Topology | None = None,
    order: tuple[str, ...] = ORDER,
    **options: Any,
) -> Fastest:
    """Evaluate every strategy that fills a cluster; keep the fastest of each kind.

    On a network all are kept: of two rows of one kind the slower one may lose less with a lost
    part.

    Notes
    -----
    Dominance: on the same nodes, whatever is computed about failures is a function of
    `reliability_kinds`, so two rows of one kind lose the same share. The slower one has the smaller
    goodput under every policy, checkpoint and number of spares, and may be left out. Between
    equally fast ones less memory wins, then the earlier row. O(rows that keep the rules).
    """
    costs = pricing(model, cluster, global_batch, **options)
    choices, large, asked = rule_keeping(
        cluster.gpus,
        model,
        global_batch,
        cluster.gpus_per_node,
        limits,
        lambda rows: least_memory(costs, rows) <= costs.available,
    )
    if network is not None or order != ORDER:
        costs = costs.wired(cluster, cluster if network is None else network, choices, order)
    rows, time, memory = _priced(costs, choices)
    kinds, copies = reliability_kinds(choices[rows], cluster, order)
    first = _first_of_each(list(kinds.T), time, memory)
    kept = first if network is None else np.lexsort((memory, time))
    begin, later = (
        (np.arange(first.size), np.full(first.size, -1))
        if network is None
        else _chained(kinds[kept])
    )
    counts = pd.Series(
        {
            "break a rule": asked - choices.size - large,
            "exceed the memory": choices.size - rows.size + large,
            "are slower than one of the same kind": rows.size - first.size,
            "are compared": first.size,
        }
    )
    return Fastest(
        grid=StrategyGrid(choices=choices[rows[kept]]),
        time=time[kept],
        copies=copies[kept],
        kinds=kinds[kept],
        counts=counts,
        first=begin,
        later=later,
        costs=costs,
        measured=np.full(kept.size, -1),
        order=order,
    )


def with_fewer_replicas(placement: Placement, cluster: Cluster) -> Placement | None:
    """The same strategy on fewer nodes, if these hold whole replicas in the same layout.

    It keeps as many copies of its state where they divide the replicas, and one elsewhere.
    """
    strategy = placement.strategy
    data, rest = divmod(cluster.gpus, strategy.model_parallel)
    if rest or not data or data == strategy.data:
        return None if rest or not data else placement
    shard = data // strategy.state_copies if data % strategy.state_copies == 0 else data
    fewer = replace(strategy, data=data, shard=shard if strategy.zero_stage else None)
    found = replace(placement, strategy=fewer)
    try:
        JobShape.of(found, cluster)
    except ValueError:
        return None
    return found


def measured_strategies(
    measured: Mapping[Placement, float], cluster: Cluster, tokens: int, whole: bool
) -> Fastest:
    """Strategies of measured speed [tokens/s] on a cluster, the speed in proportion to replicas."""
    found = []
    for number, (placement, throughput) in enumerate(measured.items()):
        fewer = with_fewer_replicas(placement, cluster)
        if fewer is not None:
            time = tokens / throughput * placement.strategy.data / fewer.strategy.data
            found.append((time, number, choice_record(fewer.strategy)))
    found.sort(key=lambda entry: entry[:2])
    choices, (order,) = np.concatenate([row for *_, row in found]), {p.order for p in measured}
    kinds, copies = reliability_kinds(choices, cluster, order)
    names = ("are measured", "are measured with more replicas")
    return Fastest(
        grid=StrategyGrid(choices=choices),
        time=np.array([time for time, *_ in found]),
        copies=copies,
        kinds=kinds,
        counts=pd.Series([len(found) * whole, len(found) * (not whole)], names),
        first=np.arange(len(found)),
        later=np.full(len(found), -1),
        measured=np.array([number for _, number, _ in found]),
        order=order,
    )


def _chained(kinds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First row of each kind, and the next row of the same kind after every row."""
    later = np.full(len(kinds), -1)
    alike = np.lexsort(kinds.T)  # stable: the order of the rows within a kind
    same = (kinds[alike[1:]] == kinds[alike[:-1]]).all(axis=1)
    later[alike[:-1][same]] = alike[1:][same]
    return np.setdiff1d(np.arange(len(kinds)), later), later


def least_memory(costs: Pricing, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Lower bound on memory of each strategy with the degrees and ZeRO columns of the rows [bytes].

    Weights, gradients and optimizer state of the average stage, matrices of the layers outside
    experts alone: no stage can be smaller than the average on all of them.
    """
    model, kept = costs.models[0], costs.storage[0]
    router = model["mixture"] * model["hidden"] * model["experts"]
    whole = (
        model["layers"]
        * (model["layer_weights"] - router)
        / (rows["tensor"] * 1.0 * rows["pipeline"])
    )
    shard, stage = whole / (rows["shard"] * 1.0 * rows["context"]), rows["zero_stage"]
    state = kept["optimizer"] * np.where(stage >= 1, shard, whole)
    state += kept["gradient"] * np.where(stage >= 2, shard, whole)
    state += kept["parameter"] * np.where(stage >= 2, shard, whole)
    return np.asarray(state * (1 + FRAGMENTATION) * (1 - 1e-12))


def reliability_kinds(
    choices: NDArray[Any], cluster: Cluster, order: tuple[str, ...] = ORDER
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Kind of every row, and complete copies of its training state.

    Notes
    -----
    Ranks of one shard lie d/copies replicas apart, s GPUs each, the product of the degrees dealt
    out before the replicas (t c in the default order). The first and the last copy of the first
    shard start at GPU 0 and (d - d/copies) s; no part of w consecutive GPUs holds them both, nor
    those of any other shard, if that is at least w. With two copies or more the widest part below
    the job decides. O(n).
    """
    degrees = [choices[name].astype(np.int64) for name in DEGREES]
    data = choices["data"].astype(np.int64)
    stride = np.ones_like(data)
    for name in order[: order.index("data")]:
        stride *= choices[name]
    copies = np.where(choices["zero_stage"] == 0, data, data // choices["shard"])
    widest = max(
        cluster.gpus_per_part(level) for level in ("gpu", "tray", "node", "switch", "rack")
    )
    apart = (data - data // copies) * stride >= widest
    lost = np.where(copies == 1, 1, np.where(apart, 0, copies))
    return np.column_stack([*degrees, lost]), copies


def _priced(
    costs: Pricing, choices: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Places of the rows that fit, their times and their memory: the numbers of `evaluate`."""
    kept: list[tuple[Any, Any, Any]] = []
    for start in range(0, max(choices.size, 1), CHUNK):
        rows = costs.rows(choices[start : start + CHUNK])
        memory = costs.peak(rows)
        fits = np.flatnonzero(memory <= costs.available)
        kept.append((start + fits, totals(costs.parts(rows[fits])), memory[fits]))
    places, time, memory = (np.concatenate(column) for column in zip(*kept, strict=True))
    return places, time, memory


def _first_of_each(
    columns: list[Any], time: NDArray[np.float64], memory: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Fastest row of each combination of the columns, the fastest of all first."""
    if time.size == 0:
        return np.empty(0, dtype=np.int64)
    codes = [np.searchsorted(np.sort(pd.unique(column)), column) for column in columns]
    key = np.ravel_multi_index(codes, [int(code.max()) + 1 for code in codes])
    least = np.full(int(key.max()) + 1, np.inf)
    np.minimum.at(least, key, time)
    best = np.flatnonzero(time == least[key])
    best = best[np.lexsort((memory[best], time[best]))]
    return best[np.sort(np.unique(key[best], return_index=True)[1])]
