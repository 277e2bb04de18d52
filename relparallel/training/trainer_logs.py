"""What trainers print: a line for every step or every few of them, and the sizes of the job before.

One table of patterns, `TRAINERS`: a trainer is a row of it. Nothing is asked of what stands before a
line, where launchers put ranks, dates, colours and JSON, nor of lines that tell of no step.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from relparallel.parallel import Strategy, notation
from relparallel.parallel.launch_words import WORDS
from relparallel.parallel.strategy_text import strategy_of
from relparallel.training import log_files as files
from relparallel.training.line_times import stamped

_NUMBER: Final = r"\s*[:=]?\s*([\d,]*\.?\d+(?:[eE][+-]?\d+)?)(?=[^\w.])"  # whole, not torn
_FIELDS: Final = (  # of a strategy
    "tensor pipeline data context expert expert_tensor virtual_stages micro_batch zero_stage "
    "recompute sequence_parallel"
)
_MORE: Final = {  # names that are no words of a launcher
    "gpus": "world_size num_devices",
    "data": "data_parallel_size",
    "zero_stage": "zero_stage",
    "sequence": "seq_length sequence_length max_target_length",
    "micro_batch": "local_batch_size",
    "global_batch": "global_batch_size_to_train_on",
    "fp8": "fp8 fp8_format quantization",
    "fp4": "fp4 fp4_format",
    "tensor": "tp=",
    "pipeline": "pp=",
    "context": "cp=",
    "expert": "ep=",
    "copies": "dp_replicate=",
    "ranks": "dp_shard=",
}
_NAMES: Final = {
    name.rpartition(".")[2]: field
    for (software, field), names in WORDS.items()
    for name in names
    if software in ("megatron", "bridge")
    and field in (*_FIELDS.split(), "global_batch", "distributed_optimizer")
} | {name: field for field, names in _MORE.items() for name in names.split()}
# "tensor-model-parallel size: 4", "tensor_model_parallel_size ..... 4", "sequence length 4"
_SIZE: Final = re.compile(
    rf"(?i)(?<![\w-])(?<!parallel )({'|'.join(_NAMES).replace('_', '[-_ ]')})[^\w-]*"
    r"(\d{1,9}|True|full|selective|hybrid|e4m3|e2m1|\w*fp8\w*)\b"
)
_PHRASES: Final = re.compile(  # of torchtitan
    r"pipeline schedule .*with (?P<parts>\d{1,9}) microbatches"
    "|Applied .*(?P<sequence_parallel>Tensor Parallelism)"
    "|Applied (?:(?P<recompute>full)|(?P<alternate>selective)) activation checkpointing"
    r"|(?P<fp8>Float8) (?:\w+ )*training active"
)


TRAINERS: Final = {
    # Megatron-LM, Megatron-Bridge, Megatron-DeepSpeed, Primus, MindSpeed, FlagScale
    "megatron": {
        "mark": "elapsed time per iteration",
        "step": r"\biteration#\s*/",
        "ms": r"elapsed time per iteration \(ms\)#\s*[|/]",
        "seconds": r"elapsed time per iteration \(s\)#\s*[|/]",
        "batch": "glo(?:ba|ab)l batch size#",
        "samples": "consumed samples#",
    },
    "nemo": {
        "mark": "train_step_timing in s",
        "step": "global_step#",
        "seconds": "train_step_timing in s#",
        "batch": "global_batch_size#",
        "samples": "consumed_samples#",
    },
    "deepspeed": {"mark": "iter time (s)", "step": r"\bsteps?:#", "seconds": r"iter time \(s\)#"},
    "torchtitan": {"mark": "ps:", "step": r"(?<!validate )\bstep:#", "rate": r"\b[tw]ps:#\s"},
    "maxtext": {
        "mark": "completed step:",
        "step": "completed step#",
        "seconds": "seconds#,",
        "rate": "Tokens/s/device#",
    },
}
"""Trainers by name, of a file that holds lines of several the first reads it: the mark of lines that
tell of steps, and patterns in them, # for a number: step; seconds, ms or rate, tokens/s of a GPU;
batch, and samples so far."""

_COLUMNS: Final = {
    "step": "step|iteration|iter|global_step",
    "seconds": "seconds|step [s]|step_time|step time|duration",
    "ms": "ms|step [ms]|milliseconds",
    "time": "timestamp|wall time|date",
    "either": "time",
}  # of a table
_DATE: Final = re.compile(r"\d+(?:[-/:]\d\d){2}(?:[.,]\d+)?")
_MESH: Final = re.compile(r"device mesh with \[([^\]]*)\], \[([\d, ]*)\]")
_ENOUGH: Final = 6  # values that grow from row to row are times then, not lengths
_IRREGULAR: Final = 1.5  # times the median: first steps compile, or return before they ran
_AGREES: Final = 0.02
_MOST: Final = 1e15  # no count of steps is more


def form_of(name: str) -> files.Form:
    """Which files a trainer wrote."""
    line = {key: f"(?:{form.replace('#', _NUMBER)})" for key, form in TRAINERS[name].items()}
    times = "|".join(line[key] for key in ("ms", "seconds", "rate") if key in line)
    lacks = "a step and its time beside {mark!r}, line {line} the first"
    return files.lines({TRAINERS[name]["mark"]: f"(?=.*{line['step']}).*(?:{times})"}, lacks)


def read(path: Any, name: str) -> dict[str, Any]:
    """Fields of a `RunLog`."""
    trainer, torn, fresh = TRAINERS[name], 0, False
    rows: dict[int, dict[str, Any]] = {}
    said: dict[str, set[Any]] = defaultdict(set)
    for number, line in files.lines_of(path):
        cells = _cells(line, trainer) if trainer["mark"] in line else None
        if cells:
            rows[number], fresh = cells | {"fresh": fresh}, False
        elif cells is not None:
            torn += 1
        else:
            for field, value in _sizes(line):
                said[field].add(value)
                fresh = True
    if not rows:
        raise ValueError(f"path must hold {form_of(name).fits(path).lacks}, got none in {path}")
    table = pd.DataFrame.from_dict(rows, orient="index")
    at = stamped(files.Rows(path, table), every=None).at
    last = at.index.get_indexer(table.index)
    table = table.assign(time=at, since=at.bfill().to_numpy()[np.append(0, last[:-1] + 1)])
    return _log(table, at, said, {"left out: {} torn lines of steps": torn}, path)


def _cells(text: str, trainer: Mapping[str, str]) -> dict[str, Any] | None:
    """What the line of a step says, empty if it is torn, None if it is of no step."""
    tries = {key: re.search(form.replace("#", _NUMBER), text) for key, form in trainer.items()}
    found = {key: match for key, match in tries.items() if match and key != "mark"}
    if "step" not in found:
        return None
    cells: dict[str, Any] = {key: float(match[1].replace(",", "")) for key, match in found.items()}
    cells |= {"seconds": cells.pop("ms") / 1e3} if "ms" in cells else {}
    if not {"seconds", "rate"} & {*cells} or max(cells.values()) >= _MOST:
        return {}
    return cells | {"writer": _DATE.sub("", text[: found["step"].start()])}


def _sizes(text: str) -> Iterator[tuple[str, Any]]:
    """Sizes of the job that a line names."""
    if mesh := _MESH.search(text):  # "['dp_shard', 'tp'], [8, 2]" is dp_shard=8, tp=2
        pairs = zip(re.findall(r"\w+", mesh[1]), re.findall(r"\d+", mesh[2]), strict=False)
        text = ", ".join(map("=".join, pairs))
    found = [
        (_NAMES[re.sub("[- ]", "_", name.lower())], value) for name, value in _SIZE.findall(text)
    ]
    for phrase in _PHRASES.finditer(text):
        found += [(field, value) for field, value in phrase.groupdict().items() if value]
    for field, value in found:
        yield field, int(value) if value.isdigit() else value


def columns_of(path: Any) -> tuple[str, dict[str, str]]:
    """What separates the fields of a table, and which of its columns says what of a step."""
    head = files.head_of(path)
    delimiter = max(",;\t|", key=head.count)
    names = [name.strip().strip('"') for name in head.split(delimiter)]
    found = {
        key: n for n in names[::-1] for key in _COLUMNS if n.lower() in _COLUMNS[key].split("|")
    }
    return delimiter, found


def fits_table(path: Any) -> files.Fit:
    """Whether a table has a column of steps and one of their time."""
    columns = columns_of(path)[1].keys()
    lacks = [] if "step" in columns else ["step"]
    lacks += [] if columns - {"step"} else ["seconds or timestamp"]
    share = max(1 - len(lacks) / 2, 0.1)  # whatever there is can be brought into this form
    return files.Fit(share, f"a column {' and a column '.join(lacks)} in its head")


def read_table(path: Any) -> dict[str, Any]:
    """Fields of a `RunLog` of a table: a step in each row, and its seconds or when it ended."""
    if (fit := fits_table(path)).share < 1:
        raise ValueError(f"path must have {fit.lacks}, got none in {path}")
    delimiter, columns = columns_of(path)
    if (table := files.read_rows(path, delimiter, head=True)).empty:
        raise ValueError(f"path must hold at least one row below its head, got none in {path}")
    step = pd.to_numeric(table[columns["step"]], errors="coerce")
    wrong = ~(step.between(0, _MOST) & (step % 1 == 0))
    files.require_rows(table, {"whole numbers of steps": wrong}, [columns.pop("step")], path)
    rows = pd.DataFrame({"step": step, "writer": "", "fresh": False, "time": np.nan})
    notes: dict[str, Any] = {}
    for key, name in columns.items():
        dated = table[name].str.contains(r"\d-\d|\d/\d|:").any()
        values = files.seconds(table[name], name, "iso" if dated else "s", path)
        grows = dated or (len(values) > 1 and (np.diff(values) > 0).all())
        if grows and len(values) >= _ENOUGH and key in ("seconds", "ms"):
            notes["{} grows from row to row: times since the start want the head time"] = name
        if key == "either" and grows and not dated and len(values) < _ENOUGH:
            raise ValueError(
                f"path must name its column {name!r} seconds (of a step) or timestamp (of its "
                f"end), in {path} it may be either"
            )
        key = {"either": "time" if grows else "seconds", "ms": "seconds"}.get(key, key)
        rows[key] = values / (1e3 if name == columns.get("ms") else 1.0)
    return _log(rows, rows["time"], {}, notes, path)


def _log(
    found: pd.DataFrame,
    dates: pd.Series,
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
        sizes["global_batch"] = int(batches.dropna().iloc[-1])
    strategy, why = _strategy(sizes)
    gpus = sizes.get("gpus") or (strategy.gpus if strategy else None)
    stated = sizes.get("global_batch", np.nan) * sizes.get("sequence", np.nan) / (gpus or np.nan)
    took, tokens, more = _seconds(rows, weights, stated)
    good = took > 0
    if not good.any():
        raise ValueError(
            "path must tell how long steps take, by dates of its lines or by batch, sequence and "
            f"GPUs beside tokens/s, got neither in {path}"
        )
    later = good & ~start if (good & ~start).any() else good
    first = good & _first(took, start, np.median(took[later]))
    ramp = good & ~first & (batches.notna() & (batches != sizes.get("global_batch"))).to_numpy()
    steady = next(rest for rest in (good & ~first & ~ramp, later) if rest.any())
    long = (took[steady] > _IRREGULAR * np.median(took[steady])).sum()
    begun = time - np.where(good, took, 0.0) * weights
    before = (begun - rows["since"].to_numpy())[start]
    done = np.append(0, np.maximum.accumulate(step)[:-1])
    again = np.clip(np.minimum(step, done) - (step - weights), 0, None)[start.cumsum() > 1]
    slow = [f"{one:.4g}" for one in took[first & ~steady]]
    several = [f"{field} {sorted(map(str, all_))}" for field, all_ in said.items() if len(all_) > 1]
    notes = {
        "first steps of a start are not in the step time: {} s": ", ".join(slow[:5]),
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
        "elapsed": float(dates.max() - np.fmin(dates.min(), begun[0])),
        "start_ups": before[before > 0],
        "steps": took[good],
        "weights": weights[good],
        "counts": step[good].astype(np.int64),
        "steady": steady[good],
        "repeated": int(again.sum()),
        "batch": sizes.get("global_batch"),
        "sequence": sizes.get("sequence"),
        "gpus": gpus,
        "tokens": round(tokens) if np.isfinite(tokens) else None,
        "strategy": strategy,
        "precision": next((one for one in ("fp4", "fp8") if one in said), None),
        "notes": files.told(notes),
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
    copies, ranks = sizes.get("copies", 1), sizes.get("ranks", 1)
    fields = {name: sizes[name] for name in _FIELDS.split() if name in sizes}
    if sizes.keys() & {"ranks", "copies"}:
        fields["data"] = copies * ranks
        fields |= {"shard": ranks, "zero_stage": 3} if ranks > 1 else {}
    elif "tensor" not in sizes:
        return None, ""
    elif not sizes.keys() & {"data", "gpus"}:
        return None, "the log names degrees, but neither its GPUs nor the data-parallel one"
    fields.setdefault("zero_stage", int("distributed_optimizer" in sizes))
    fields["sequence_parallel"] = "sequence_parallel" in sizes and fields.get("tensor", 1) > 1
    fields |= {"recompute": "alternate"} if "alternate" in sizes else {}
    fields["micro_batch"] = max(fields.get("micro_batch", 1) // sizes.get("parts", 1), 1)
    try:
        strategy = strategy_of(fields, sizes.get("gpus"))
        strategy = strategy.for_gpus(sizes.get("gpus", strategy.gpus))
    except (TypeError, ValueError) as error:
        return None, f"what the log says of the strategy is none: {error}"
    return strategy, f"split as {notation(strategy)}: what the log does not name counts as not done"
