"""Running notebooks: choose, skip current ones, execute in workers, store in one step, report."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from .notebook import Notebook, NotebookError, read, results
from .parameters import combinations
from .progress import Progress, Table
from .record import Elsewhere, Project, checkout, opened

if TYPE_CHECKING:
    from .execute import Failure, Outcome, Pool

_MOST_WORKERS = 8  # a kernel with the scientific stack takes some hundred megabytes
_MOST_LINES = 15  # of a failing cell's source in the report


class Run(NamedTuple):
    """A notebook, the values of its parameters, and where its results go."""

    notebook: Notebook
    values: dict[str, Any]
    store: Project | Elsewhere


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What came of a run: notebooks that needed none, ran, failed or would run, with the reason."""

    current: tuple[str, ...] = ()
    stale: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 when nothing failed and nothing is stale, otherwise 1."""
        return 1 if self.failed or self.stale else 0

    def summary(self, seconds: float) -> str:
        """Return the report as lines: every failure in full, then the counts."""
        lines = [f"\n{name} {problem}\n" for name, problem in self.failed.items()]
        lines += [f"{name} is stale: {reason}\n" for name, reason in self.stale.items()]
        counts = {
            "executed": self.done,
            "up to date": self.current,
            "stale": self.stale,
            "failed": self.failed,
        }
        parts = [f"{len(names)} {kind}" for kind, names in counts.items() if names]
        return "".join([*lines, f"notebooks: {', '.join(parts)} ({seconds:.1f} s)\n"])


def run_figures(
    names: Sequence[str] = (),
    *,
    root: Path | None = None,
    jobs: int | None = None,
    force: bool = False,
    stale: bool = False,
    dry_run: bool = False,
    quick: bool = False,
    parameters: Mapping[str, str] | None = None,
    output_dir: Path | None = None,
    cell_timeout: float = 600.0,
    timeout: float = 1800.0,
    pool: Pool | None = None,
    executor: str | None = None,
    stream: TextIO | None = None,
) -> Report:
    """Execute every notebook that is not current, by number, name or path; regenerate its figures.

    Default are all notebooks of the checkout ``root`` that holds this package, else of the current
    folder; as many ``jobs`` as there are processors, at most 8, or threads of the cluster.
    ``force`` runs also what is current, ``stale`` only what the record in the notebook does not
    show to be current, wherever it was run; ``dry_run`` runs nothing and tells what would run, and
    why. ``parameters``, written as on the command line, and ``quick`` need an ``output_dir``; of
    parameters with several values every combination runs, in a folder of its own. Longest times are
    in seconds, for a cell and for a notebook. ``pool`` gives, for a number of workers, a context
    manager of the executor; ``executor`` is the address of a dask scheduler; else processes here
    execute.

    A notebook is current when it was run here with these values, its code, the modules and data
    that its kernel read and the tested versions are those of that run, and notebook and figures are
    as that run left them. A result takes its place in one step per file; results that an edit has
    overtaken are dropped; a failed notebook stops no other.
    """
    start, stream = time.monotonic(), sys.stdout if stream is None else stream
    given = dict(parameters or {}) | ({"quick": "True"} if quick else {})
    _check_arguments(jobs, given, output_dir, cell_timeout, timeout)
    if pool is not None and executor is not None:
        raise NotebookError(f"executor must be None where a pool is given, got {executor!r}")
    project = Project(root=checkout(root))
    several = [(n, combinations(n, given)) for n in _selected(project, names)]
    with opened(project, output_dir) as store:
        runs = {
            f"{where}/{n.name}".lstrip("/"): Run(n, values, store.under(where, values))
            for n, found in several
            for where, values in found.items()
        }
        reasons = {
            name: "it is to run in any case" if force else run.store.reason(run.notebook, stale)
            for name, run in runs.items()
        }
        chosen = {name: run for name, run in runs.items() if reasons[name]}
        report = Report(current=tuple(name for name in runs if not reasons[name]))
        table = None
        if output_dir is not None and len(runs) > len(several) and not dry_run:
            table = _table(output_dir, runs, chosen)
        if dry_run:
            report.stale.update((name, reasons[name]) for name in chosen)
        elif chosen:
            from .compiling import drop_outdated
            from .execute import Task, outcomes

            if pool is None:
                drop_outdated()
            longest_first = sorted(chosen, key=lambda name: -(store.expected(name) or float("inf")))
            limits = {"cell_timeout": float(cell_timeout), "timeout": float(timeout)}
            tasks = [
                Task(
                    name=name,
                    raw=runs[name].notebook.raw,
                    folder=str(project.notebooks),
                    parameters=runs[name].values,
                    **limits,
                )
                for name in longest_first
            ]
            with _workers(executor, pool, project) as (found, most):
                workers = min(jobs or most, len(tasks))
                _run(
                    partial(outcomes, tasks, workers, found), chosen, workers, table, report, stream
                )
    stream.write(report.summary(time.monotonic() - start))
    return report


def _check_arguments(
    jobs: int | None,
    given: Mapping[str, str],
    output_dir: Path | None,
    cell_timeout: float,
    timeout: float,
) -> None:
    """Refuse arguments that cannot be meant, before anything is read."""
    if jobs is not None and (type(jobs) is not int or jobs < 1):
        raise NotebookError(f"jobs must be an integer >= 1, got {jobs!r}")
    for name, seconds in (("cell_timeout", cell_timeout), ("timeout", timeout)):
        if type(seconds) not in (int, float) or not seconds > 0:
            raise NotebookError(f"{name} must be a number > 0, got {seconds!r}")
    if given and output_dir is None:
        raise NotebookError(
            "-p and --quick need --output-dir: the repository's notebooks and figures are those of "
            "the "
            f"default parameters and are never replaced by others, got {', '.join(given)}"
        )


@contextmanager
def _workers(
    executor: str | None, pool: Pool | None, project: Project
) -> Iterator[tuple[Pool | None, int]]:
    """Give the pool that executes and how many notebooks it takes at a time."""
    if executor is None:
        yield pool, min(os.cpu_count() or 1, _MOST_WORKERS)
        return
    from .cluster import connected

    with connected(executor, project.root) as found:
        yield found


def _selected(project: Project, names: Sequence[str]) -> list[Notebook]:
    """Return the notebooks of the given numbers, names or paths, in the order of the collection."""
    paths = sorted(p for p in project.notebooks.glob("*.ipynb") if not p.stem.endswith(".failed"))
    if not paths:
        raise NotebookError(
            f"there are no notebooks in {project.notebooks}; name the checkout with --root"
        )
    chosen = {path for name in names for path in _named(name, paths)}
    return [read(path) for path in paths if path in chosen or not names]


def _named(name: str, paths: list[Path]) -> list[Path]:
    found = [
        p for p in paths if name in (p.stem, p.stem.partition("_")[0]) or Path(name).resolve() == p
    ]
    if not found:
        known = ", ".join(path.stem for path in paths)
        raise NotebookError(
            f"there is no notebook {name!r}; give a number, a name or a path of: {known}"
        )
    return found


def _run(
    run: Callable[[Callable[[str], None]], Generator[tuple[str, Outcome], None, None]],
    chosen: Mapping[str, Run],
    workers: int,
    table: Table | None,
    report: Report,
    stream: TextIO,
) -> None:
    """Start the run, show it, and settle each notebook as it ends."""
    expected = {name: one.store.expected(name) for name, one in chosen.items()}
    shown = Progress(stream, expected, len(report.current), workers)
    with shown, closing(run(shown.started)) as ended:
        for name, outcome in ended:
            problem = _settle(chosen[name].store, chosen[name].notebook, outcome)
            first = problem.partition("\n")[0]
            shown.ended(name, first)
            if table is not None:
                state = "failed" if problem else "done"
                found = results(json.loads(outcome.notebook)["cells"]) if outcome.notebook else {}
                seconds = round(outcome.seconds, 1)
                table.note(name, **found, state=state, seconds=seconds, problem=first)
            if problem:
                report.failed[name] = problem
            else:
                report.done.append(name)
    report.done.sort()


def _table(folder: Path, runs: Mapping[str, Run], chosen: Mapping[str, Run]) -> Table:
    """Begin the table of a sweep; what was done before has its results in its notebook."""
    table = Table(folder / "sweep.csv")
    for name, run in runs.items():
        table.note(name, **run.values, state="waiting")
        if name not in chosen:
            cells = read(folder / f"{name}.ipynb").content["cells"]
            table.note(name, **results(cells), state="done")
    return table


def _settle(store: Project | Elsewhere, notebook: Notebook, outcome: Outcome) -> str:
    """Store what came of a notebook; return the problem, empty when there is none."""
    if outcome.failure is not None:
        kept = store.keep_failed(notebook, outcome.notebook) if outcome.notebook else None
        return _described(outcome.failure, kept)
    try:
        store.store(notebook, outcome)
    except (NotebookError, OSError) as error:
        return str(error)
    return ""


def _described(failure: Failure, kept: Path | None) -> str:
    """Return a failure as lines: error and cell, the cell's source, where the notebook is kept."""
    where = f"failed in code cell {failure.count}: " if failure.count else "failed: "
    lines = failure.source.splitlines()
    shown = [f"    | {line}" for line in lines[:_MOST_LINES]] + ["    | ..."] * (
        len(lines) > _MOST_LINES
    )
    kept_at = [f"    kept for inspection: {os.path.relpath(kept)}"] if kept else []
    return "\n".join([where + failure.error, *shown, *kept_at])
