"""Result logs of MLPerf Training 3.1 to 6.0: blocks of steps between evaluations, counted twice.

Since 6.0 ``samples_count`` of a block is its length, before it was its position; that of an
evaluation is a position in all rounds. The log decides, not its round: one reading fits its
evaluations and its steps.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from relparallel.training.log_files import read_objects, told

_MARK: Final = ":::MLLOG "
_RANK: Final = re.compile(
    r"\s*\[?(?:rank\s*)?(\d+)(?:,\d+)?\]?(?:<\w+>)?\s*[:>]?\s*", re.IGNORECASE
)
_SIZES: Final = ("global_batch_size", "max_sequence_length", "train_samples")
_COUNTED: Final = ("samples_count", "epoch_num", "first_epoch_num")
_TIMES: Final = ("train_step_time", "train_step_timing", "step_time")
_AFTER: Final = ("eval_start", "eval_accuracy", "eval_stop", "run_stop")
_AGREES: Final = 0.01
_EPOCHS: Final = 10**4  # more of them are tokens
_SECONDS: Final = 1e9  # since 1970; a time in milliseconds is a thousand times as much


class _Event(NamedTuple):
    time: float  # [s]
    key: str
    value: Any
    where: Mapping[str, Any]
    line: int

    def number(self, *names: str) -> float:
        """The first number under a name that is there; NaN where it is none."""
        return _number(next((self.where[name] for name in names if name in self.where), None))

    def stat(self, *names: str) -> float:
        """A statistic above 0; NaN for none, and for a step where it is a mean of the block."""
        mean = names != ("throughput",) and "throughput" in self.value
        found = _number(next((self.value[name] for name in names if name in self.value), None))
        return np.nan if mean or not found > 0 else found


def _number(value: Any) -> float:
    """A number as a float, NaN for anything else."""
    return float(value) if type(value) in (int, float) and np.isfinite(value) else np.nan


class _Block(NamedTuple):
    start: _Event
    stop: _Event
    stats: list[_Event]
    after: list[_Event]  # what its evaluation says


def read(path: Any) -> dict[str, Any]:
    """Fields of a `RunLog`."""
    events, others = _events(path)
    ends = ("init_start", "init_stop")
    begun, ready = (min((e.time for e in events if e.key == key), default=np.nan) for key in ends)
    sizes = _sizes(events, path)
    if np.isnan(ready - begun) or "global_batch_size" not in sizes:
        raise ValueError(f"path must hold init_start, init_stop and global_batch_size, got {path}")
    blocks, halves = _blocks(events)
    samples = _samples(blocks, sizes, path) if blocks else np.array([])
    known = np.isfinite(samples)
    if not known.any():
        raise ValueError(
            f"path must hold blocks of training whose counts agree, got none in {path}"
        )
    lost = [str(block.start.line) for block, one in zip(blocks, known, strict=True) if not one]
    kept = [block for block, one in zip(blocks, known, strict=True) if one]
    batch, steps = sizes["global_batch_size"], samples[known] / sizes["global_batch_size"]
    if (few := steps < 1 - _AGREES).any():
        raise ValueError(
            f"path must count samples, tokens or epochs, got {steps[few][0]:.3g} steps of {batch} "
            "in the "
            f"block of line {kept[int(few.argmax())].start.line} of {path}"
        )
    seconds = np.array([block.stop.time - block.start.time for block in kept])
    if (back := seconds <= 0).any():
        line = kept[int(back.argmax())].stop.line
        raise ValueError(
            f"path must hold blocks that end after they start, got line {line} of {path}"
        )
    notes = told(
        {
            "left out: {} lines of other ranks": others,
            "left out: {} blocks without a start or a stop": halves,
            "left out: blocks without counts that agree to 1 %, of lines {}": ", ".join(lost),
        }
    )
    return {
        "elapsed": max(event.time for event in events) - begun,
        "start_ups": np.array([ready - begun]),
        "steps": seconds / steps,
        "weights": steps,
        "batch": batch,
        "sequence": sizes.get(_SIZES[1]),
        "notes": (*notes, *_own_times(kept, seconds, steps, batch)),
    }


def _events(path: Any) -> tuple[list[_Event], int]:
    """Events of the rank writing blocks, of all ranks before, and how many lines are left out."""
    events, writer, others = [], "", 0
    for number, front, entry in read_objects(path, _MARK):
        try:
            time, key, value, where = (
                entry[name] for name in ("time_ms", "key", "value", "metadata")
            )
            if (
                type(time) not in (int, float)
                or not np.isfinite(time)
                or not isinstance(where, Mapping)
            ):
                raise ValueError(f"time_ms {time!r}, metadata {where!r:.60}")
            if _SECONDS <= time < 100 * _SECONDS:
                raise ValueError(f"time_ms {time!r} counts seconds since 1970")
            for name in (*_COUNTED, "step", "epoch_count"):
                if type(where.get(name)) in (bool, float) and np.isnan(_number(where[name])):
                    raise ValueError(f"{name} {where[name]!r}")
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"path must hold MLLOG events, got line {number} of {path}: {error!r}"
            ) from None
        rank = f"rank {found[1]}" if (found := _RANK.fullmatch(front)) else "any"
        writer = writer or (rank if key == "block_start" else "")
        if writer and rank != writer and "any" not in (rank, writer):
            others += 1
        else:
            events.append(_Event(time / 1e3, str(key), value, where, number))
    return events, others


def _sizes(events: list[_Event], path: Any) -> dict[str, int]:
    """Sizes of the run; one that stands twice must stand so twice."""
    sizes: dict[str, int] = {}
    for event in events:
        if event.key in _SIZES:
            value = _number(event.value)
            if not value >= 1 or value % 1 or sizes.setdefault(event.key, int(value)) != value:
                raise ValueError(
                    f"{event.key} must be one whole number above 0, got {event.value!r:.40} after "
                    f"{sizes.get(event.key)} in line {event.line} of {path}"
                )
    return sizes


def _blocks(events: list[_Event]) -> tuple[list[_Block], int]:
    """Blocks with start and stop, and how many have none; what several ranks wrote counts once."""
    blocks: list[_Block] = []
    start: _Event | None = None
    stats: list[_Event] = []
    halves = 0
    for event in events:
        if event.key == "block_start" and (start is None or event.where != start.where):
            halves += start is not None
            start, stats = event, []
        elif event.key == "block_stop" and start is not None:
            blocks.append(_Block(start, event, stats, []))
            start = None
        elif event.key == "block_stop":
            halves += not blocks or blocks[-1].stop.where != event.where
        elif (
            event.key == "tracked_stats" and start is not None and isinstance(event.value, Mapping)
        ):
            stats.append(event)
        elif event.key in _AFTER and start is None and blocks:
            blocks[-1].after.append(event)
    return blocks, halves + (start is not None)


def _samples(blocks: list[_Block], sizes: Mapping[str, int], path: Any) -> Any:
    """Samples of every block, NaN where the log contradicts itself by more than 1 %."""
    batch, length, whole = (sizes.get(name) for name in _SIZES)
    own = np.array([block.start.number(*_COUNTED) for block in blocks])
    stop = np.array([block.stop.number(*_COUNTED) for block in blocks])
    after = np.array([next((e.number(*_COUNTED) for e in block.after), np.nan) for block in blocks])
    steps = np.array([block.stop.number("step") - block.start.number("step") for block in blocks])
    given = np.array(
        [np.fmax(b.start.number("epoch_count"), b.stop.number("epoch_count")) for b in blocks]
    )
    # tokens of sequences, or epochs
    if not all("samples_count" in block.start.where for block in blocks):
        epochs = whole and np.nanmax([0.0, *given, *own]) < _EPOCHS
        scale = 1 / length if length else whole if epochs else 1.0
        own, stop, after, given = (values * scale for values in (own, stop, after, given))
    following = np.append(own[1:], np.nan)
    later = np.where((ends := np.stack([stop, after, following])) > own, ends, np.nan)
    position = later[np.argmax(np.isfinite(later), axis=0), np.arange(len(blocks))] - own
    evals = np.append(np.nan, np.diff(after))  # the first block may have gone on from a checkpoint
    readings = (
        {"length": given} if np.isfinite(given).any() else {"position": position, "length": own}
    )
    logged = np.array(
        [len({e.where.get("step", e.line) for e in b.stats if e.stat(*_TIMES) > 0}) for b in blocks]
    )
    faults = {}
    for name, samples in readings.items():
        other = following - own if np.isfinite(given).any() else evals
        wrong = _apart(samples, other) | (_apart(samples, steps * batch) & _apart(samples, steps))
        readings[name] = np.where(wrong | ~(samples > 0), np.nan, samples)
        faults[name] = (
            np.isnan(readings[name]).sum(),
            (_apart(samples, logged * batch) & (logged > 0)).sum(),
        )
    best = min(faults, key=lambda name: faults[name])
    if (
        len(faults) == 2
        and faults["position"] == faults["length"]
        and np.isfinite(readings["length"]).any()
    ):
        raise ValueError(
            "path must tell whether samples_count of blocks is position or length, got "
            f"{own[:3].tolist()} "
            f"with evaluations at {after[:3].tolist()} in {path}"
        )
    return readings[best]


def _apart(samples: Any, others: Any) -> Any:
    """Where two counts are known and more than 1 % apart."""
    return np.abs(samples - others) > _AGREES * np.maximum(np.abs(samples), np.abs(others))


def _own_times(blocks: list[_Block], seconds: Any, steps: Any, batch: int) -> list[str]:
    """Where step times or throughputs that the log states differ by over 1 % from its blocks."""
    stated = {
        "train_step_time": [[event.stat(*_TIMES) for event in block.stats] for block in blocks],
        "throughput": [
            [batch / event.stat("throughput") for event in block.stats] for block in blocks
        ],
    }
    notes = []
    for name, values in stated.items():
        means = np.array([np.mean([v for v in own if v > 0] or np.nan) for own in values])
        if (known := np.isfinite(means)).any():
            ours = seconds[known].sum() / steps[known].sum()
            theirs = np.average(means[known], weights=steps[known])
            if abs(ours / theirs - 1) > _AGREES:
                notes.append(
                    f"a step takes {ours:.4g} s by the blocks, {100 * (ours / theirs - 1):+.1f} % "
                    "of the "
                    f"log's own {name}, {theirs:.4g} s"
                )
    return notes
