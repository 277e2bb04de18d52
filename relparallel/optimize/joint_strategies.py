"""Strategies worth asking about reliability: of all with the same fate under failures, the fastest.

Two steps, both without loss. Rules are asked of parts of a strategy, so that those which break one
are counted but never built. Those that fit are sorted by what failures can tell apart, and the
fastest of each kind is kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, StrategyGrid
from relparallel.parallel.grid import Mesh, lawful
from relparallel.parallel.prices import Pricing, pricing
from relparallel.parallel.quantities import ROW, rows_of
from relparallel.parallel.strategy import DEGREES as ORDER
from relparallel.topology import Topology
from relparallel.training import JobShape
from relparallel.workload import Transformer

_PIECE: Final = 2**17  # strategies at a time: their parts stay in the cache, calls are few
DEGREES: Final = ("tensor", "pipeline", "data", "context")
"""Degrees: with levels where a failure takes a shard's last copy, all that failures can see."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Fastest:
    """The fastest feasible strategy of each kind, and the count of all the others.

    ``measured`` numbers strategies of measured speed, -1 for computed ones, which have ``costs``;
    ``beyond`` are those with a value above what was asked to stand ``apart``.
    """

    grid: StrategyGrid
    time: NDArray[np.float64]
    copies: NDArray[np.int64]
    kinds: NDArray[np.int64]
    counts: pd.Series
    first: NDArray[np.int64]
    later: NDArray[np.int64]
    measured: NDArray[np.int64]
    beyond: NDArray[np.bool_]
    order: tuple[str, ...] = ORDER
    costs: Pricing | None = None

    def kind(self, row: int) -> tuple[int, ...]:
        """What tells a strategy from those of which it is the fastest."""
        own = int(self.measured[row]), int(self.beyond[row])
        return (*own, *self.kinds[row].tolist())

    def placement(self, row: int) -> Placement:
        """Which GPU runs which rank of a strategy."""
        return Placement(strategy=self.grid[row], order=self.order)


def fastest_of_each_kind(
    model: Transformer,
    cluster: Cluster,
    global_batch: int,
    limits: Mapping[str, Any],
    network: Topology | None = None,
    order: tuple[str, ...] = ORDER,
    together: bool = False,
    apart: Mapping[str, int] | None = None,
    **options: Any,
) -> Fastest:
    """Evaluate every strategy that fills a cluster; keep the fastest of each kind.

    On a network all are kept: of two rows of one kind the slower one may lose less with a lost
    part. Strategies with a value above the largest that ``apart`` gives for its axis are kinds of
    their own.

    Notes
    -----
    Dominance: on the same nodes, whatever is computed about failures is a function of
    `reliability_kinds`, so two rows of one kind lose the same share. The slower one has the smaller
    goodput under every policy, checkpoint and number of spares, and may be left out. Between
    equally fast ones less memory wins, then the earlier row. O(rows that keep the rules).
    """
    costs = pricing(model, cluster, global_batch, **options)
    meshes, asked = lawful(cluster.gpus, model, global_batch, cluster.gpus_per_node, limits)
    if network is not None or order != ORDER:
        degrees = [np.column_stack([mesh.shapes[name] for name in DEGREES]) for mesh in meshes]
        wired = cluster if network is None else network
        costs = costs.wired(cluster, wired, np.concatenate(degrees), order)

    def telling(columns: Any) -> list[NDArray[Any]]:
        lost, _ = _lost_and_copies(cluster, order, together, columns)
        return [lost, _beyond(columns, apart or {})]

    choices, time, memory, fitting = _priced(costs, meshes, telling if network is None else None)
    kinds, copies = reliability_kinds(choices, cluster, order, together)
    beyond = _beyond(choices, apart or {})
    told = np.column_stack([kinds, beyond])
    first = _first_of_each(list(told.T), time, memory)
    kept = first if network is None else np.lexsort((memory, time))
    begin, later = (
        (np.arange(first.size), np.full(first.size, -1))
        if network is None
        else _chained(told[kept])
    )
    lawful_rows = sum(mesh.size for mesh in meshes)
    counts = pd.Series(
        {
            "break a rule": asked - lawful_rows,
            "exceed the memory": lawful_rows - fitting,
            "are slower than one of the same kind": fitting - first.size,
            "are compared": first.size,
        }
    )
    return Fastest(
        grid=StrategyGrid(choices=choices[kept]),
        time=time[kept],
        copies=copies[kept],
        kinds=kinds[kept],
        counts=counts,
        first=begin,
        later=later,
        costs=costs,
        measured=np.full(kept.size, -1),
        beyond=beyond[kept],
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
    measured: Mapping[Placement, float],
    cluster: Cluster,
    tokens: int,
    whole: bool,
    together: bool = False,
) -> Fastest:
    """Strategies of measured speed [tokens/s] on a cluster, the speed in proportion to replicas."""
    found = []
    for number, (placement, throughput) in enumerate(measured.items()):
        fewer = with_fewer_replicas(placement, cluster)
        if fewer is not None:
            time = tokens / throughput * placement.strategy.data / fewer.strategy.data
            found.append((time, number, fewer.strategy))
    found.sort(key=lambda entry: entry[:2])
    choices, (order,) = rows_of(one for *_, one in found), {p.order for p in measured}
    kinds, copies = reliability_kinds(choices, cluster, order, together)
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
        beyond=np.zeros(len(found), dtype=np.bool_),
        order=order,
    )


def _chained(kinds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First row of each kind, and the next row of the same kind after every row."""
    later = np.full(len(kinds), -1)
    alike = np.lexsort(kinds.T)  # stable: the order of the rows within a kind
    same = (kinds[alike[1:]] == kinds[alike[:-1]]).all(axis=1)
    later[alike[:-1][same]] = alike[1:][same]
    return np.setdiff1d(np.arange(len(kinds)), later), later


def reliability_kinds(
    choices: NDArray[Any],
    cluster: Cluster,
    order: tuple[str, ...] = ORDER,
    together: bool = False,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Kind of every row, and complete copies of its training state.

    Notes
    -----
    Ranks of one shard lie d/copies replicas apart, s GPUs each, the product of the degrees dealt
    out before the replicas (t c in the default order). The first and the last copy of the first
    shard start at GPU 0 and (d - d/copies) s; no part of w consecutive GPUs holds them both, nor
    those of any other shard, if that is at least w. With two copies or more the widest part below
    the job decides. Nodes that fail ``together`` wherever they stand can hold them all: every
    number of copies is a kind of its own. O(n).
    """
    degrees = [choices[name].astype(np.int64) for name in DEGREES]
    lost, copies = _lost_and_copies(cluster, order, together, choices)
    return np.column_stack([*degrees, lost]), copies


def _lost_and_copies(
    cluster: Cluster, order: tuple[str, ...], together: bool, columns: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many copies a failure can take, 0 if never the last one, and how many there are."""
    data = columns["data"].astype(np.int64)
    stride = np.ones_like(data)
    for name in order[: order.index("data")]:
        stride = stride * columns[name]
    copies = np.where(columns["zero_stage"] == 0, data, data // columns["shard"])
    widest = max(
        cluster.gpus_per_part(level) for level in ("gpu", "tray", "node", "switch", "rack")
    )
    apart = ((data - data // copies) * stride >= widest) & (not together)
    return np.where(copies == 1, 1, np.where(apart, 0, copies)), copies


def _beyond(columns: Any, apart: Mapping[str, int]) -> NDArray[np.bool_]:
    """Whether a strategy has a value above the largest of its axis."""
    found = np.zeros_like(columns["data"], dtype=np.bool_)
    for name, most in apart.items():
        found = found | (columns[name] > most)
    return found


def _priced(
    costs: Pricing, meshes: list[Mesh], telling: Callable[[Any], list[NDArray[Any]]] | None
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], int]:
    """Rows that fit in the order of their degrees, their times and memory, and how many there are.

    Times and memory are as `price_strategies` says. Given what tells kinds of the same degrees
    apart, rows slower than another of their kind are counted and left out.
    """
    found: list[tuple[Any, ...]] = [
        (np.empty(0, np.int64), np.empty(0, ROW), np.empty(0), np.empty(0))
    ]
    fitting = 0
    for mesh in chain.from_iterable(whole.pieces(_PIECE) for whole in meshes):
        columns = mesh.columns()
        s = costs.split(columns)
        memory = np.broadcast_to(costs.peak(s), mesh.shape)
        fits = memory <= costs.available * (1 - costs.memory_margin)
        if fits.any():
            fitting += int(np.count_nonzero(fits))
            time = np.broadcast_to(costs.time(s), mesh.shape)
            number = np.broadcast_to(mesh.number[:, None, None], mesh.shape)
            if telling is not None:
                kinds = [number[:, :1, :1], *telling(columns)]
                fits &= time == _least_of_kind(np.where(fits, time, np.inf), kinds)
            found.append((number[fits], mesh.rows(fits), time[fits], memory[fits]))
    number, rows, time, memory = (np.concatenate(column) for column in zip(*found, strict=True))
    place = np.argsort(number, kind="stable")
    return rows[place], time[place], memory[place], fitting


def _least_of_kind(time: NDArray[np.float64], kinds: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Least time of the kind of each strategy, which several columns tell, along their own axes."""
    label: NDArray[Any] = np.zeros((1, 1, 1), dtype=np.int64)
    for one in kinds:
        label = label * (int(one.max()) + 1) + one
    axes = tuple(k for k, size in enumerate(label.shape) if size < time.shape[k])
    code = pd.factorize(label.ravel())[0].reshape(label.shape)
    least = np.full(code.max() + 1, np.inf)
    np.minimum.at(least, code, time.min(axis=axes, keepdims=True))
    return np.asarray(least[code])


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
