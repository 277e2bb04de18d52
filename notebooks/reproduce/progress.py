"""What a person sees while notebooks run: a live table on a terminal, else a line for each."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Self, TextIO

from .record import replace_file


class Progress:
    """A row with a clock for each notebook that runs or ran; without a terminal, a line at its end.

    Given are the seconds that each notebook took the last time, how many need no run, how many run
    at once.
    """

    def __init__(
        self,
        stream: TextIO,
        expected: Mapping[str, float | None],
        current: int = 0,
        workers: int = 1,
    ) -> None:
        from rich import console, progress, table

        self.stream, self.total, self.current = stream, len(expected), current
        known = [seconds for seconds in expected.values() if seconds]
        minutes = max([sum(known) / workers, *known], default=0.0) / 60
        self.length = (
            f", about {minutes:.0f} min"
            if minutes >= 1
            else ", about a minute or less" * bool(known)
        )
        self.since: dict[str, float] = {}
        self.over: dict[str, str] = {}
        columns = (
            progress.SpinnerColumn(finished_text=" "),
            progress.TextColumn("{task.description}", markup=False),
            progress.TimeElapsedColumn(),
            progress.TextColumn(
                "{task.fields[note]}",
                markup=False,
                table_column=table.Column(ratio=1, no_wrap=True),
            ),
        )  # a note that is too long is cut, and not the clocks
        options: dict[str, Any] = {
            "refresh_per_second": 4,
            "get_time": monotonic,
            "expand": True,
            "disable": not stream.isatty(),
        }
        self.rows = progress.Progress(*columns, console=console.Console(file=stream), **options)
        self.sum = self.rows.add_task("notebooks", total=self.total, note=self._counts())
        notes = {
            name: f"of about {seconds:.0f} s" if seconds else ""
            for name, seconds in expected.items()
        }
        hidden: dict[str, Any] = {"start": False, "visible": False, "total": 1}
        self.row = {
            name: self.rows.add_task(name, note=note, **hidden) for name, note in notes.items()
        }

    def __enter__(self) -> Self:
        self.rows.start()
        told = f"{self.total} notebooks to run, {self.current} up to date{self.length}"
        self.rows.console.print(told, highlight=False)
        return self

    def __exit__(self, *error: Any) -> None:
        self.rows.stop()

    def started(self, name: str) -> None:
        """Say that a notebook has gone to a worker."""
        self.since[name] = monotonic()
        self.rows.start_task(self.row[name])
        self.rows.update(self.row[name], visible=True)

    def ended(self, name: str, problem: str) -> None:
        """Say that a notebook is done (no problem) or has failed."""
        self.over[name] = problem
        self.rows.update(self.row[name], completed=1, note=problem or "done")
        self.rows.update(self.sum, advance=1, note=self._counts())
        seconds = monotonic() - self.since[name]
        line = f"[{len(self.over)}/{self.total}] {name} {problem or 'done'} ({seconds:.1f} s)"
        if self.rows.disable:
            self.stream.write(f"{line}\n")
            self.stream.flush()

    def _counts(self) -> str:
        failed = sum(map(bool, self.over.values()))
        counts = {f"{len(self.over)} of {self.total}": 1, f"{failed} failed": failed}
        counts |= {f"{self.current} up to date": self.current}
        return ", ".join(text for text, number in counts.items() if number)


_STATE = ("state", "seconds", "problem")  # last columns of the table of a sweep


class Table:
    """The file of a sweep: a row for each of its runs, and for those of earlier sweeps."""

    def __init__(self, path: Path) -> None:
        text = path.read_text("utf-8") if path.exists() else ""
        self.path, self.rows = path, {row["run"]: row for row in csv.DictReader(io.StringIO(text))}

    def note(self, name: str, **cells: Any) -> None:
        """Note what is known of a run."""
        self.rows[name] = self.rows.get(name, {"run": name}) | cells
        columns = dict.fromkeys(column for row in self.rows.values() for column in row)
        columns = dict.fromkeys([*(name for name in columns if name not in _STATE), *_STATE])
        text = io.StringIO()
        table = csv.DictWriter(text, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(self.rows.values())
        replace_file(self.path, text.getvalue().encode(), self.path.parent)
