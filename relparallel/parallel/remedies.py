"""What makes a strategy fit its GPUs: changes of it, priced together as the rows of one grid."""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.hardware import Cluster
from relparallel.parallel.bytes_by_part import mean_layer, peaks
from relparallel.parallel.feasibility import rules_of_rows
from relparallel.parallel.gpu_memory import RESERVE, kept_by, storage_of
from relparallel.parallel.grid import AXES, StrategyGrid
from relparallel.parallel.layer_times import seen_of_offload
from relparallel.parallel.past_runs import experience
from relparallel.parallel.quantities import Machine, Sizes, Split, folded
from relparallel.parallel.stages import counted_ends, most_layers
from relparallel.parallel.step_formula import step_parts, total
from relparallel.parallel.strategy import Strategy
from relparallel.workload import Transformer

_DEGREES: Final = ("tensor", "pipeline", "context")
_AGAIN: Final = ("selective", "between", "mlp", "full")
_CHUNKED: Final = ("1f1b", "interleaved_1f1b")  # schedules of one chunk, and of several
_ALIKE: Final = 1.01  # steps no further apart: the one with fewer changes is better

Change = dict[str, Any]


def best_changes(
    model: Transformer,
    strategy: Strategy,
    cluster: Cluster,
    global_batch: int,
    machine: Machine,
    offload: str = "none",
) -> tuple[Change, Strategy] | None:
    """Changes with which a strategy fits and its step is shortest, and the strategy with them.

    Of those within 1 % of the shortest step the fewest; up to three of them that keep the degrees,
    else up to four, where degrees may grow by 2, 4 or 8 in place of replicas. What leaves the GPUs
    is a change and no part of the strategy. O(rows).
    """
    device, options = cluster.accelerator, _options(model, strategy)
    if offload == "none" and device is not None and device.host_link:
        options.append([{"offload": "activations"}])
    degrees = [[{name: k * getattr(strategy, name)} for k in (2, 4, 8)] for name in _DEGREES]
    for axes, counts in ((options, (1, 2, 3)), (degrees + options, (1, 2, 3, 4))):
        changes = [one for count in counts for one in _together(strategy, axes, count)]
        if not changes:
            continue
        grid = _changed(strategy, changes)
        broken = rules_of_rows(
            model, grid.choices, global_batch, cluster.gpus, cluster.gpus_per_node
        )
        away = np.array([offload != "none" or "offload" in one for one in changes])
        time = np.full(len(grid), np.inf)
        for moved in (False, True):
            rows = np.flatnonzero((broken == 0) & (away == moved))
            s = Split.of_columns(grid.choices[rows], global_batch)
            time[rows] = _times(model, s, cluster, machine, moved)
        if np.isfinite(time).any():
            near = np.flatnonzero(time <= _ALIKE * time.min()).tolist()
            best = min(near, key=lambda k: (len(changes[k]), time[k]))
            return changes[best], grid[best]
    return None


def _options(model: Transformer, s: Strategy) -> list[list[Change]]:
    """What every single change may be that keeps the degrees."""
    chunks = experience().tried("virtual_stages") if s.schedule in _CHUNKED else ()
    axes: list[list[Change]] = [
        [{"expert": k * s.expert} for k in (2, 4, 8) if k * s.expert <= model.experts],
        [{"virtual_stages": v} for v in chunks if v != s.virtual_stages],
        [{"micro_batch": s.micro_batch >> k} for k in range(1, s.micro_batch.bit_length())],
        [{"sequence_parallel": True}] * (not s.sequence_parallel),
        [{"recompute": kind} for kind in _AGAIN if kind != s.recompute != "full"],
        [{"zero_stage": z} for z in range(s.zero_stage + 1, 4)],
        [{"shard": s.data}] * (s.shard not in (None, s.data)),
    ]
    return [axis for axis in axes if axis]


def _together(s: Strategy, axes: Sequence[list[Change]], count: int) -> Iterator[Change]:
    """Every way to make so many changes, with the replicas that are left."""
    for chosen in combinations(axes, count):
        for some in product(*chosen):
            change = {name: value for one in some for name, value in one.items()}
            grown = [change[name] // getattr(s, name) for name in _DEGREES if name in change]
            fewer, rest = divmod(s.data, int(np.prod(grown, initial=1)))
            if not rest:
                yield change | ({"data": fewer} if grown else {})


def _changed(strategy: Strategy, changes: Sequence[Change]) -> StrategyGrid:
    """Changed strategies as rows of a grid."""
    usual = {name: getattr(strategy, name) for name in AXES}
    every = [usual | one for one in changes]
    for one, change in zip(every, changes, strict=True):
        one["shard"] = one["shard"] or one["data"]
        if "virtual_stages" in change:
            one["schedule"] = _CHUNKED[one["virtual_stages"] > 1]
    return StrategyGrid.of(**{name: [one[name] for one in every] for name in AXES})


def _times(
    model: Transformer, s: Split, cluster: Cluster, machine: Machine, away: bool
) -> NDArray[np.float64]:
    """Time of the step where it fits, else infinity; ``away``: activations leave the GPU."""
    sizes, device = Sizes.of(model), cluster.accelerator
    assert device is not None
    kept, flash, masks = kept_by(machine.software, model, machine.precision)
    here = storage_of(kept, flash_attention=flash, dropout=masks)
    less = here._replace(offload_activations=away)
    with np.errstate(all="ignore"):
        time = total(step_parts(sizes, machine.rates, s))
        if away:
            split = s.pipeline, s.virtual_stages, folded(s.schedule)
            ends = counted_ends(sizes.layers, sizes.mtp, *split, s.ends_as_layers)
            most = most_layers(sizes.layers, *split, ends)
            out = s.micro_batches * most * mean_layer(sizes, s, here, sizes.mixture).kept
            time = time + seen_of_offload(sizes, machine.rates, s, out, most, device.host_link)
        return np.where(peaks(sizes, s, less) <= device.memory - RESERVE, time, np.inf)
