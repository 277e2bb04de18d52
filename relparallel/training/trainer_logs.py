"""What trainers print: a line for every step or every few of them, and the sizes of the job before.

One table of patterns, `TRAINERS`: a trainer is a row of it. Nothing is asked of what stands before a
line, where launchers put ranks, dates, colours and JSON, nor of lines that tell of no step.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from relparallel.parallel import Strategy, notation, read_strategy
from relparallel.training.log_files import (
    Fit,
    lines_of,
    read_rows,
    require_rows,
    seconds,
    told,
)

_NUMBER: Final = r"\s*[:=]?\s*([\d,]*\.?\d+(?:[eE][+-]?\d+)?)(?![\w.])"  # whole, not torn
_WORDS: Final = {
    "gpus": "world_size",
    "batch": "global_batch_size",
    "sequence": "seq_length",
    "tensor": "(?:tensor_|and )model_parallel_size",
    "pipeline": "pipeline_model_parallel_size",
    "data": "data_parallel_size",
    "context": "context_parallel_size",
    "expert": "expert_model_parallel_size",
    "expert_tensor": "expert_tensor_parallel_size",
    "virtual_stages": "virtual_pipeline_model_parallel_size",
    "micro_batch": "micro_batch_size",
    "sequence_parallel": "sequence_parallel",
    "distributed": "use_distributed_optimizer",
    "zero_stage": "zero_stage",
    "recompute": "recompute_granularity",
    "fp8": "fp8(?:_format)?",
    "fp4": "fp4(?:_format)?",
}
_MEGATRON: Final = {  # "tensor-model-parallel size: 4", "tensor_model_parallel_size ..... 4"
    field: rf"(?<![A-Za-z][-_])(?<!parallel )(?:{word.replace('_', '[-_ ]')})"
    r"\W+(\d{1,9}|True|full|selective|hybrid|e4m3|e2m1)\b"
    for field, word in _WORDS.items()
}


class Trainer(NamedTuple):
    """Patterns of one trainer."""

    mark: str  # of lines that tell of steps
    # of such a line: step; seconds, ms or tokens/s of a GPU; batch, samples so far
    line: Mapping[str, str]
    sizes: Mapping[str, str] = _MEGATRON  # said on other lines, by field
    # one of these stands in such a line, which is sooner seen than a pattern
    hints: str = "_size|-size|parallel|seq|zero_|recompute|fp8|fp4|world|use_d"


TRAINERS: Final = {
    # Megatron-LM, Megatron-Bridge, Megatron-DeepSpeed, Primus, MindSpeed, FlagScale
    "megatron": Trainer(
        "elapsed time per iteration",
        {
            "step": r"\biteration" + _NUMBER + r"\s*/",
            "ms": r"elapsed time per iteration \(ms\)" + _NUMBER + r"\s*[|/]",
            "seconds": r"elapsed time per iteration \(s\)" + _NUMBER + r"\s*[|/]",
            "batch": "glo(?:ba|ab)l batch size" + _NUMBER,
            "samples": "consumed samples" + _NUMBER,
        },
    ),
    "nemo": Trainer(
        "train_step_timing in s",
        {
            "step": "global_step" + _NUMBER,
            "seconds": "train_step_timing in s" + _NUMBER,
            "batch": "global_batch_size" + _NUMBER,
            "samples": "consumed_samples" + _NUMBER,
        },
    ),
    "deepspeed": Trainer(
        "iter time (s)",
        {"step": r"\bsteps?:" + _NUMBER, "seconds": r"iter time \(s\)" + _NUMBER},
    ),
    "torchtitan": Trainer(
        "ps:",
        {"step": r"(?<!validate )\bstep:" + _NUMBER, "rate": r"\b[tw]ps:" + _NUMBER + r"\s"},
        {
            "gpus": _MEGATRON["gpus"],
            "batch": r"global batch size (\d{1,9})\b",
            "micro_batch": r"local batch size (\d{1,9})\b",
            "parts": r"pipeline schedule .*with (\d{1,9}) microbatches",
            "sequence": r"sequence length (\d{1,9})\b",
            "tensor": r"\btp=(\d{1,9})\b",
            "pipeline": r"\bpp=(\d{1,9})\b",
            "context": r"\bcp=(\d{1,9})\b",
            "expert": r"\bep=(\d{1,9})\b",
            "copies": r"\bdp_replicate=(\d{1,9})\b",
            "ranks": r"\bdp_shard=(\d{1,9})\b",
            "sequence_parallel": "Applied .*(Tensor Parallelism)",
            "recompute": "Applied (full) activation checkpointing",
            "alternate": "Applied (selective) activation checkpointing",
            "fp8": r"(Float8) (?:\w+ )*training active",
        },
        "batch size|mesh|schedule|Applied|Float8|world",
    ),
    "maxtext": Trainer(
        "completed step:",
        {
            "step": "completed step" + _NUMBER,
            "seconds": "seconds" + _NUMBER + ",",
            "rate": "Tokens/s/device" + _NUMBER,
        },
        {
            "gpus": r"Num_devices: (\d{1,9})\b",
            "batch": r"param global_batch_size_to_train_on: (\d{1,9})\b",
            "sequence": r"param max_target_length: (\d{1,9})\b",
            "fp8": r"param quantization: \w*(fp8)",
        },
        "param|Num",
    ),
}
"""Trainers by name; of a file that holds lines of several, the first reads it."""

_COLUMNS: Final = {
    "step": ("step", "iteration", "iter", "global_step"),
    "seconds": ("seconds", "step [s]", "step_time", "step time", "duration"),
    "ms": ("ms", "step [ms]", "milliseconds"),
    "time": ("timestamp", "wall time", "date"),
    "either": ("time",),
}  # of a table
_NOTATION: Final = {
    "tensor": "TP{}",
    "pipeline": "PP{}",
    "data": "DP{}",
    "context": "CP{}",
    "expert": "EP{}",
    "expert_tensor": "ETP{}",
    "virtual_stages": "VPP{}",
    "zero_stage": "ZeRO-{}",
    "recompute": "{}",
    "alternate": "alternate",  # the "op" checkpoints, every second product
}
_COLOUR: Final = re.compile(r"(?:\x1b|\^\[|\\u001b|\\x1b|\\033)\[[\d;]*m")
_CLOCK: Final = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_DATE: Final = re.compile(
    rf"(\d{{4}})[-/](\d\d)[-/](\d\d)[T ]({_CLOCK})|\b[IWEF]()(\d\d)(\d\d) ({_CLOCK})|{_CLOCK}"
)
_MESH: Final = re.compile(r"device mesh with \[([^\]]*)\], \[([\d, ]*)\]")
_TEXTS: Final = ("textPayload", "message", "msg", "log")
_ENOUGH: Final = 6  # values that grow from row to row are times then, not lengths
_IRREGULAR: Final = 1.5  # times the median: first steps compile, or return before they ran
_AGREES: Final = 0.02
_MOST: Final = 1e15  # no count of steps is more


def fits(path: Any, name: str) -> Fit:
    """Whether a file has a line of a step as a trainer prints it."""
    trainer, marked = TRAINERS[name], 0
    for number, line in lines_of(path):
        if trainer.mark in line:
            if _cells(_unwrapped(line)[0], trainer):
                return Fit(1)
            marked = marked or number
    if marked:
        return Fit(0.5, f"a step and its time beside {trainer.mark!r}, line {marked} the first")
    return Fit(0, f"a line with {trainer.mark!r}")


def read(path: Any, name: str) -> dict[str, Any]:
    """Fields of a `RunLog`."""
    trainer = TRAINERS[name]
    hints = trainer.hints.split("|")
    rows: list[dict[str, Any]] = []
    dates: list[float] = []
    said: dict[str, set[Any]] = defaultdict(set)
    since, fresh, torn = np.nan, False, 0
    for _, line in lines_of(path):
        text, writer, date = _unwrapped(line)
        cells = _cells(text, trainer) if trainer.mark in text else None
        front = re.split(trainer.line["step"], text, maxsplit=1)[0] if cells else text[:60]
        time = _time(front, date)
        dates += [time] if np.isfinite(time) else []
        since = time if np.isnan(since) else since
        if cells:
            row = {"writer": writer + _DATE.sub("", front), "time": time, "since": since}
            rows.append({**row, "fresh": fresh, **cells})
            since, fresh = np.nan, False
        elif cells is not None:
            torn += 1
        elif any(hint in text for hint in hints):
            news = _sizes(text, trainer)
            fresh = fresh or bool(news)
            for field, value in news.items():
                said[field].add(value)
    if not rows:
        raise ValueError(f"path must hold {fits(path, name).lacks}, got none in {path}")
    return _log(pd.DataFrame(rows), dates, said, {"left out: {} torn lines of steps": torn}, path)


def _cells(text: str, trainer: Trainer) -> dict[str, float] | None:
    """What the line of a step says, empty if it is torn, None if it is of no step."""
    found = {key: re.search(pattern, text) for key, pattern in trainer.line.items()}
    cells = {key: float(m[1].replace(",", "")) for key, m in found.items() if m}
    if "step" not in cells:
        return None
    cells |= {"seconds": cells.pop("ms") / 1e3} if "ms" in cells else {}
    return cells if {"seconds", "rate"} & {*cells} and max(cells.values()) < _MOST else {}


def _sizes(text: str, trainer: Trainer) -> dict[str, Any]:
    """Sizes of the job that a line names."""
    if mesh := _MESH.search(text):  # "['dp_shard', 'tp'], [8, 2]" is dp_shard=8, tp=2
        pairs = zip(re.findall(r"\w+", mesh[1]), re.findall(r"\d+", mesh[2]), strict=False)
        text = ", ".join(map("=".join, pairs))
    found = {field: re.search(pattern, text) for field, pattern in trainer.sizes.items()}
    return {field: int(m[1]) if m[1].isdigit() else m[1] for field, m in found.items() if m}


def _unwrapped(line: str) -> tuple[str, str, str]:
    """Text of a line without colours and the JSON of a collector, who wrote it, and when."""
    text = _COLOUR.sub("", line.rstrip("\r\n"))
    if text.lstrip().startswith("{"):
        try:
            entry = json.loads(text)
            entry |= entry.get("jsonPayload", {})
            where = entry.get("kubernetes", {}) | entry.get("resource", {}).get("labels", {})
            text = next(str(entry[key]) for key in _TEXTS if key in entry)
            return text, str(where.get("pod_name")), str(entry.get("timestamp", entry.get("time")))
        except (ValueError, RecursionError, AttributeError, TypeError, StopIteration):
            pass
    return (text if line.endswith(("\n", "\r")) else text + "_"), "", ""  # its end may be torn


def _time(*texts: str) -> float:
    """Seconds of the last date in the first text that has one; NaN without."""
    for text in texts:
        for date in reversed([*_DATE.finditer(text)]):
            year, month, day, clock = date.groups()[:4] if date[4] else date.groups()[4:]
            if clock:
                hours, minutes, rest = clock.replace(",", ".").split(":")
                try:
                    midnight = datetime(int(year or 2000), int(month), int(day), tzinfo=UTC)
                except ValueError:
                    continue
                return midnight.timestamp() + 3600 * int(hours) + 60 * int(minutes) + float(rest)
    return np.nan


def columns_of(path: Any) -> tuple[str, dict[str, str]]:
    """What separates the fields of a table, and which of its columns says what of a step."""
    head = next((line.strip() for _, line in lines_of(path) if line.strip()), "")
    delimiter = max(",;\t|", key=head.count)
    names = [name.strip().strip('"') for name in head.split(delimiter)]
    found = {key: n for n in names[::-1] for key, all_ in _COLUMNS.items() if n.lower() in all_}
    return delimiter, found


def fits_table(path: Any) -> Fit:
    """Whether a table has a column of steps and one of their time."""
    columns = columns_of(path)[1].keys()
    lacks = [] if "step" in columns else ["step"]
    lacks += [] if columns - {"step"} else ["seconds or timestamp"]
    share = max(1 - len(lacks) / 2, 0.1)  # whatever there is can be brought into this form
    return Fit(share, f"a column {' and a column '.join(lacks)} in its head")


def read_table(path: Any) -> dict[str, Any]:
    """Fields of a `RunLog` of a table: a step in each row, and its seconds or when it ended."""
    if lacks := fits_table(path).lacks * (fits_table(path).share < 1):
        raise ValueError(f"path must have {lacks}, got none in {path}")
    delimiter, columns = columns_of(path)
    if (table := read_rows(path, delimiter, head=True)).empty:
        raise ValueError(f"path must hold at least one row below its head, got none in {path}")
    step = pd.to_numeric(table[columns["step"]], errors="coerce")
    wrong = ~(step.between(0, _MOST) & (step % 1 == 0))
    require_rows(table, {"whole numbers of steps": wrong}, [columns.pop("step")], path)
    rows = pd.DataFrame({"step": step, "writer": "", "fresh": False, "time": np.nan})
    notes: dict[str, Any] = {}
    for key, name in columns.items():
        dated = table[name].str.contains(r"\d-\d|\d/\d|:").any()
        values = seconds(table[name], name, "iso" if dated else "s", path)
        grows = dated or (len(values) > 1 and (np.diff(values) > 0).all())
        if grows and len(values) >= _ENOUGH and key in ("seconds", "ms"):
            notes["{} grows from row to row: times since the start want the head time"] = name
        if key == "either":
            if grows and not dated and len(values) < _ENOUGH:
                raise ValueError(
                    f"path must name its column {name!r} seconds (of a step) or timestamp (of its "
                    f"end), in {path} it may be either"
                )
            key = "time" if grows else "seconds"
        rows["seconds" if key == "ms" else key] = values / (1e3 if key == "ms" else 1.0)
    return _log(rows, [*rows["time"].dropna()], {}, notes, path)


def _log(
    found: pd.DataFrame,
    dates: list[float],
    said: Mapping[str, set[Any]],
    notes: Mapping[str, Any],
    path: Any,
) -> dict[str, Any]:
    """Fields of a `RunLog` from lines of steps: step, seconds or time and tokens/s, who and when."""
    extra = ["seconds", "rate", "batch", "samples", "since"]
    rows = _told_once(_of_one_writer(found.reindex(columns=found.columns.union(extra))))
    step, start, time = (rows[key].to_numpy() for key in ("step", "start", "time"))
    leaps = np.diff(step, prepend=step[:1])
    usual = int(pd.Series(leaps[~start]).mode().max()) if not start.all() else 1
    weights = np.where(start, np.where(step % usual, step % usual, usual), leaps)
    sizes = {field: next(iter(values)) for field, values in said.items() if len(values) == 1}
    batches = rows["batch"].fillna(rows["samples"].diff().where(~start) / weights).round()
    if batches.notna().any():
        sizes["batch"] = int(batches.dropna().iloc[-1])
    strategy, why = _strategy(sizes)
    gpus = sizes.get("gpus") or (strategy.gpus if strategy else None)
    stated = sizes.get("batch", np.nan) * sizes.get("sequence", np.nan) / (gpus or np.nan)
    took, tokens, more = _seconds(rows, weights, stated)
    good = took > 0
    if not good.any():
        raise ValueError(
            "path must tell how long steps take, by dates of its lines or by batch, sequence and "
            f"GPUs beside tokens/s, got neither in {path}"
        )
    later = good & ~start if (good & ~start).any() else good
    first = good & _first(took, start, np.median(took[later]))
    ramp = good & ~first & (batches.notna() & (batches != sizes.get("batch"))).to_numpy()
    steady = next(rest for rest in (good & ~first & ~ramp, later) if rest.any())
    long = (took[steady] > _IRREGULAR * np.median(took[steady])).sum()
    begun = time - np.where(good, took, 0.0) * weights
    before = (begun - rows["since"].to_numpy())[start]
    done = np.append(0, np.maximum.accumulate(step)[:-1])
    again = np.clip(np.minimum(step, done) - (step - weights), 0, None)[start.cumsum() > 1]
    slow = [f"{one:.4g}" for one in took[first & ~steady]]
    several = [f"{field} {sorted(map(str, all_))}" for field, all_ in said.items() if len(all_) > 1]
    notes = {
        "first steps of a start are not in the step time: {} s": ", ".join(
            slow[:4] + ["..."] * (len(slow) > 4)
        ),
        "steps of another batch are not in the step time: {} lines": ramp.sum(),
        "{} lines are far longer than the median: what was done besides is in the step time": long,
        "a line stands for {} steps and counts as many": usual * (usual > 1),
        "left out: {} lines of other ranks, or that stand there twice": len(found) - len(rows),
        **notes,
        "left out: {} lines of steps without a time": (~good).sum(),
        "left out, as the log says several: {}": ", ".join(several),
        "{}": "; ".join(filter(None, [more, why])),
    }
    return {
        "elapsed": max(dates) - np.fmin(min(dates), begun[0]) if dates else np.nan,
        "start_ups": before[before > 0],
        "steps": took[good],
        "weights": weights[good],
        "counts": step[good].astype(np.int64),
        "steady": steady[good],
        "repeated": int(again.sum()),
        "batch": sizes.get("batch"),
        "sequence": sizes.get("sequence"),
        "gpus": gpus,
        "tokens": round(tokens) if np.isfinite(tokens) else None,
        "strategy": strategy,
        "precision": next((one for one in ("fp4", "fp8") if one in said), None),
        "notes": told(notes),
    }


def _of_one_writer(rows: pd.DataFrame) -> pd.DataFrame:
    """Lines of the first that wrote, and of who wrote after it: at a restart it may be another."""
    places = rows.assign(place=range(len(rows))).groupby("writer", sort=False)["place"]
    kept: list[str] = []
    end = -1
    for writer, begin, until in places.agg(["min", "max"]).itertuples():
        if begin > end:
            kept.append(writer)
            end = until
    return rows[rows["writer"].isin(kept)]


def _told_once(rows: pd.DataFrame) -> pd.DataFrame:
    """Every step of a start once, in order, and where starts begin.

    A step that comes again was done again, unless no step could have been done since.
    """
    if len(rows) > 2 and (np.diff(rows["step"]) < 0).mean() > 0.5:  # the newest first
        rows = rows[::-1].assign(since=np.nan)
    first = rows.groupby("step")["time"].min()
    usual = float((first.diff() / first.index.diff()).median())
    kept: dict[int, bool] = {}
    step, time = -1.0, -np.inf
    for place, (now, at, fresh) in enumerate(rows[["step", "time", "fresh"]].to_numpy()):
        dated = np.isfinite(usual) and np.isfinite(at - time)
        if now > step or (at - time >= usual / 2 if dated else now < step or fresh):
            kept[place] = not kept or now <= step or fresh
            step, time = now, at
    return rows.iloc[[*kept]].assign(start=[*kept.values()]).reset_index(drop=True)


def _seconds(rows: pd.DataFrame, weights: Any, stated: float) -> tuple[Any, float, str]:
    """Seconds of a step by each line, tokens of a GPU in a step, and what is to be said of them."""
    rate, own = (
        rows[key].where(rows[key] > 0).to_numpy(dtype=float) for key in ("rate", "seconds")
    )
    gap = np.where(rows["start"], np.nan, rows["time"].diff()) / weights
    gap[~(gap > 0)] = np.nan
    tokens, said = stated, ""
    if np.isfinite(own * rate).any():
        tokens = rate[np.nanargmax(own)] * np.nanmax(own)  # the longest is rounded least
    elif np.isfinite(gap * rate).any():
        tokens = float(np.nanmedian(gap * rate))
    if abs(stated / tokens - 1) > _AGREES:
        said = f"{stated:g} tokens a GPU and step by its sizes, {tokens:.6g} by its lines"
    elif np.isfinite(stated):
        tokens = stated
    if np.isnan(own).all():
        by_rate = tokens / rate
        late = np.nan_to_num(gap) > by_rate * (1 + _AGREES)
        if late.any():
            said = (
                f"{late.sum()} lines came late by their tokens/s: what was done before is no step"
            )
        own = np.where(late | np.isnan(gap), by_rate, gap)
    return own, tokens, said


def _first(took: Any, start: Any, usual: float) -> Any:
    """The first line of every start, and the two after it as long as they are not as usual."""
    odd = np.maximum(took, usual**2 / np.maximum(took, 1e-12)) > _IRREGULAR * usual
    second = odd & np.append(False, start[:-1])
    return start | second | (odd & np.append(False, second[:-1]))


def _strategy(sizes: Mapping[str, Any]) -> tuple[Strategy | None, str]:
    """How the job was split, by what is said of it, and a note on that."""
    if not sizes.keys() & {"tensor", "ranks", "copies"}:
        return None, ""
    words = [word.format(sizes[field]) for field, word in _NOTATION.items() if field in sizes]
    if "ranks" in sizes or "copies" in sizes:
        copies, ranks = sizes.get("copies", 1), sizes.get("ranks", 1)
        words.append(f"HSDP {copies}x{ranks}" if ranks > 1 else f"DP{copies}")
    elif not sizes.keys() & {"data", "gpus"}:
        return None, "the log names degrees, but neither its GPUs nor the data-parallel one"
    if "distributed" in sizes and "zero_stage" not in sizes:
        words.append("ZeRO-1")
    if "sequence_parallel" in sizes and sizes.get("tensor", 1) > 1:
        words.append("SP")
    if "micro_batch" in sizes:
        words.append(f"MBS{max(sizes['micro_batch'] // sizes.get('parts', 1), 1)}")
    try:
        strategy = read_strategy(" ".join(words), sizes.get("gpus"))
        strategy = strategy.for_gpus(sizes.get("gpus", strategy.gpus))
    except ValueError as error:
        return None, f"what the log says of the strategy is none: {error}"
    return strategy, f"split as {notation(strategy)}: what the log does not name counts as not done"
