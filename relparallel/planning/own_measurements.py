"""Own runs from a table or a log: what was trained, where, how it was split, and how fast."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final

import pandas as pd

from relparallel._checks import meant, require_flag, require_instance, require_real
from relparallel._notices import told
from relparallel.hardware import Cluster, clusters
from relparallel.parallel import Strategy, notation, read_launch
from relparallel.parallel.corrections import Learned
from relparallel.parallel.feasibility import require_feasible
from relparallel.parallel.run import Run, step_seconds
from relparallel.planning.cluster_fields import number as _number, whole as _whole
from relparallel.planning.cluster_files import clusters_of
from relparallel.planning.inputs import model_of
from relparallel.training import read_run_log
from relparallel.training.log_files import head_of, read_rows, recognised
from relparallel.workload import Transformer

SPEEDS: Final = {
    "step [s]": "s",
    "step [ms]": "ms",
    "tokens/s": "tokens/s",
    "tokens/s/GPU": "tokens/s/GPU",
    "TFLOP/s/GPU": "TFLOP/s/GPU",
}
"""Columns that say how fast a run was; a table has one of them."""
_NEEDED: Final = ("strategy", "model", "cluster", "batch")
_OF_A_LOG: Final = ("strategy", "batch", "sequence")
_OPTIONAL: Final = ("gpus", "sequence", "software", "precision")


@told
def learn(runs: Any, *, accept: bool = False, **common: Any) -> Learned:
    """Learn from own runs what the predictions of other strategies lack.

    Parameters
    ----------
    runs : path, DataFrame or sequence of Run
        A CSV file or table with a row for each run: strategy, as `read_launch` takes it; model
        and cluster, as `plan` takes them; batch, sequences of a step; one of "step [s]", "step
        [ms]", "tokens/s", "tokens/s/GPU" and "TFLOP/s/GPU" (of the model, nothing recomputed); and
        where they differ from what stands here gpus (those of the strategy; all of a plan's cluster
        where it names no replicas), sequence (that of the model), precision (bf16) and software
        ("own software"): any name. One that the package does not know is priced as the newest that
        it knows on the accelerator. Or the log of a run, as `read_run_log` takes it, that says
        strategy, batch and sequence.
    accept : bool
        Whether to learn also from runs that are ten times off their prediction.
    **common
        Columns that all rows share: model="llama3-8b"; of a log, what it does not say, or not all
        of: strategy="TP4 PP2 DP8 selective".

    Returns
    -------
    Learned
        Takes the place of `step_time` with its ``predict``, and of runs in `plan`. ``factors()``:
        of the runs with a software, on average; ``to_frame()``: every run as it was predicted
        before, after, and from the other runs.

    Notes
    -----
    Logarithm of measured over predicted time, for each software and kind of accelerator: a factor
    of the model, shrunk, and a Gaussian process over degrees, both the same for models of like
    size, kind and number format, with a scale that the runs tell (Student process). O(n^3) for n
    runs. On published sets of runs, publisher left out, one run takes the error of the others from
    14 to 9 %, three from 12 to 7 %, and that of other models from 11 to 10 % (one factor: to 13 %).

    References
    ----------
    Rasmussen and Williams 2006, chapter 2; Shah, Wilson and Ghahramani, AISTATS 2014.

    Examples
    --------
    >>> table = pd.DataFrame({"strategy": ["TP8 PP4 DP2", "TP8 DP8"], "tokens/s": [1.9e5, 1.8e5]})
    >>> mine = learn(table, model="gpt3-6.7b", cluster="a100-80gb-selene", batch=512)
    >>> bool(mine.factors()["factor"].between(0.5, 1.5).all())
    True
    """
    require_flag(accept=accept)
    return Learned.of(own_runs(runs, "runs", common), accept)


def own_runs(given: Any, name: str, common: Mapping[str, Any]) -> tuple[Run, ...]:
    """Runs of a file or a table; ``common`` are the columns that it lacks, ``name`` that of the argument."""
    kinds = (str, PathLike, pd.DataFrame, Sequence)
    if isinstance(require_instance(kinds, **{name: given}), Sequence) and not isinstance(
        given, str
    ):
        if not given:
            raise ValueError(f"{name} must hold at least one run, got {given!r}")
        return tuple(require_instance(Run, **{name: run}) for run in given)
    shown = "a DataFrame" if isinstance(given, pd.DataFrame) else str(given)
    place = ""
    try:
        table = given if isinstance(given, pd.DataFrame) else _logged(given, name, common)
        table = read_rows(given, head=True) if table is None else table
        _require_columns([*table.columns], [*common])
        said = str(table.attrs.get("said", ""))
        runs = []
        lines = range(2, len(table) + 2) if table is given else table.index
        for number, row in zip(lines, table.to_dict("records"), strict=True):
            place = f", row {number}"
            cells = {str(key): cell for key, cell in row.items() if not _blank(cell)}
            runs.append(_run_of({**common, **cells, "said": said}, f"row {number}"))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} must be a table of runs or a run log, got {shown}{place}: {error}"
        ) from None
    if not runs:
        raise ValueError(f"{name} must hold at least one run, got none in {shown}")
    return tuple(runs)


def _logged(path: Any, name: str, common: Mapping[str, Any]) -> pd.DataFrame | None:
    """The run that a log tells of, None for a table of runs."""
    if {field.strip(' "') for field in head_of(path).split(",")} & {*_NEEDED, *SPEEDS}:
        return None
    dialect = recognised("run", path)
    log = read_run_log(path, dialect)
    cells = {
        "strategy": log.strategy,
        "batch": log.batch,
        "sequence": log.sequence,
        "precision": log.precision,
        "step [s]": log.step_time,
    }
    # the batch of a plan is that of its question, not of this run
    said = {} if name == "measured" else common
    cells = {key: cell for key, cell in cells.items() if cell is not None and key not in said}
    if lacks := [key for key in _OF_A_LOG if key not in {**cells, **said}]:
        raise ValueError(
            f"a run log ({dialect}) must say {', '.join(_OF_A_LOG)}, this one does not say "
            f"{', '.join(lacks)}; learn(path, {lacks[0]}=...) takes what a log lacks"
        )
    table = pd.DataFrame([cells], index=[1])
    table.attrs["said"] = "; ".join([f"{log.source}: a step of {log.step_time:.4g} s", *log.notes])
    return table


def _blank(cell: Any) -> bool:
    """Whether a cell of a table holds nothing."""
    return cell is None or cell == "" or cell != cell


def _require_columns(columns: list[Any], common: list[str]) -> None:
    """Refuse unknown columns, and a table that does not say in which unit a speed is."""
    if len(said := [column for column in columns if column in SPEEDS]) != 1:
        raise ValueError(
            f"one column must say the speed with its unit, {', '.join(SPEEDS)}, got {said}"
        )
    known = {*_NEEDED, *_OPTIONAL, *SPEEDS}
    for column in (column for column in [*columns, *common] if column not in known):
        raise ValueError(f"no column {column!r} is known{meant(known, column)}")


def _run_of(row: Mapping[str, Any], name: str) -> Run:
    """The run of a row."""
    for column in (column for column in _NEEDED if column not in row):
        raise ValueError(f"{column} is missing")
    unit = next(iter(row.keys() & {*SPEEDS}), "")
    if not unit:
        raise ValueError("the speed is missing")
    sequence = _whole(row["sequence"]) if "sequence" in row else None
    model = model_of(row["model"], sequence)[1]
    gpus = _whole(row["gpus"]) if "gpus" in row else None
    strategy, place = row["strategy"], row["cluster"]
    if not isinstance(strategy, Strategy):
        full = place.gpus if isinstance(place, Cluster) else None
        told = read_launch(strategy, gpus or full, model.layers)
        if beside := told.beside(model):
            raise ValueError(f"own runs are strategies alone, without {beside}")
        strategy = told.strategy
    if not isinstance(place, Cluster):
        size = (gpus or strategy.gpus) if place in clusters() else None
        place = clusters_of(place, size)[0]
    batch = _whole(row["batch"])
    require_feasible(model, strategy, place, batch)
    speed = float(require_real(above=0, at_most=1e30, speed=_number(row[unit])))
    return Run(
        id=name,
        source="own",
        model=model,
        strategy=strategy,
        cluster=place,
        global_batch=batch,
        software=row.get("software", "own software"),
        time=step_seconds(speed, SPEEDS[unit], model, batch, strategy.gpus),
        precision=row.get("precision", "bf16"),
        said=row.get("said", ""),
    )


def asked_with(
    measured: Any, only: bool, given: Mapping[str, Any], machines: Sequence[Cluster]
) -> dict[str, Any]:
    """Options of `joint` that own runs give: what they teach, or the speeds of these strategies only."""
    if measured is None:
        if only:
            raise ValueError(
                "measured must hold the runs to choose among with only_measured, got None"
            )
        return {}
    if isinstance(measured, Learned):
        learned = measured
    else:
        common = {k: given[k] for k in ("model", "batch", "software", "precision") if k in given}
        common |= {"cluster": machines[0]} if len(machines) == 1 else {}
        if isinstance(measured, Mapping):
            speeds = {"strategy": list(measured), "tokens/s": list(measured.values())}
            measured = pd.DataFrame(speeds, dtype=object)
        learned = Learned.of(own_runs(measured, "measured", common), accept=only)
    return (
        {"measured": _speeds(learned, given["model"], machines[0])}
        if only
        else {"learned": learned}
    )


def _speeds(learned: Learned, model: Transformer, cluster: Cluster) -> dict[Strategy, float]:
    """Tokens/s of the strategies of own runs of a model on all of a cluster, each measured once."""
    found: dict[Strategy, float] = {}
    for run in (run for own in learned.lessons for run in own.runs):
        name = notation(run.strategy)
        if run.model != model or run.strategy.gpus != cluster.gpus:
            raise ValueError(
                f"only_measured must be left out with runs of another model or on other GPUs, got "
                f"{run.id}: {name}"
            )
        if run.strategy in found:
            raise ValueError(f"measured must hold {name} once, got it twice")
        found[run.strategy] = run.throughput
    return found
