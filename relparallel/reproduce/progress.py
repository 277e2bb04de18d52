"""What a person sees while notebooks run: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO

if TYPE_CHECKING:
    from rich.table import Table


class Progress(Protocol):
    """What the runner tells; a context manager around the run."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(self, *error: Any) -> None:
        """End the show."""

    def started(self, name: str) -> None:
        """A notebook has gone to a worker."""

    def ended(self, name: str, problem: str) -> None:
        """A notebook is done (no problem) or has failed."""


def progress_on(stream: TextIO, expected: Mapping[str, float | None], current: int) -> Progress:
    """Return the display of the notebooks that run, with the seconds each took the last time."""
    shown = LiveProgress if stream.isatty() else PlainProgress
    return shown(stream, expected, current)


class PlainProgress:
    """One line when a notebook starts and one when it ends."""

    def __init__(self, stream: TextIO, expected: Mapping[str, float | None], current: int = 0) -> None:
        self.stream, self.total, self.current, self.count = stream, len(expected), current, 0
        self.since: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._line(f"{self.total} notebooks to run, {self.current} up to date")
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def started(self, name: str) -> None:
        """Say that a notebook runs."""
        self.since[name] = monotonic()
        self._line(f"        {name} runs")

    def ended(self, name: str, problem: str) -> None:
        """Say that a notebook is done or failed."""
        self.count += 1
        seconds = monotonic() - self.since[name]
        self._line(f"[{self.count}/{self.total}] {name} {problem or 'done'} ({seconds:.1f} s)")

    def _line(self, text: str) -> None:
        self.stream.write(f"{text}\n")
        self.stream.flush()


class LiveProgress:
    """A table that is redrawn four times a second: what waits, runs, is done and failed, with times."""

    def __init__(self, stream: TextIO, expected: Mapping[str, float | None], current: int = 0) -> None:
        from rich.console import Console
        from rich.live import Live

        self.expected, self.current = expected, current
        self.begin = monotonic()
        self.since: dict[str, float] = {}
        self.over: dict[str, tuple[float, str]] = {}
        self.live = Live(console=Console(file=stream), get_renderable=self.table, refresh_per_second=4)

    def __enter__(self) -> Self:
        self.live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.live.__exit__(*error)

    def started(self, name: str) -> None:
        """Start a notebook's clock."""
        self.since[name] = monotonic()

    def ended(self, name: str, problem: str) -> None:
        """Stop a notebook's clock."""
        self.over[name] = (monotonic() - self.since[name], problem)

    def table(self) -> Table:
        """Return the table as it stands now."""
        from rich.table import Table

        table = Table.grid(padding=(0, 1))
        for shrinks in (False, False, True):
            table.add_column(no_wrap=not shrinks)
        for name in self.expected:
            table.add_row(*self._row(name))
        failed = sum(1 for _, problem in self.over.values() if problem)
        counts = f"{len(self.over)} of {len(self.expected)}"
        counts += f", {failed} failed" if failed else ""
        counts += f", {self.current} up to date" if self.current else ""
        table.add_row("", counts, f"{monotonic() - self.begin:.0f} s", style="bold")
        return table

    def _row(self, name: str) -> tuple[Any, ...]:
        from rich.spinner import Spinner
        from rich.text import Text

        if name in self.over:
            seconds, problem = self.over[name]
            sign = Text("✗", "red") if problem else Text("✓", "green")
            told = f"{seconds:.1f} s {problem}".strip()
            return sign, name, Text(told, "red" if problem else "", no_wrap=True, overflow="ellipsis")
        if name not in self.since:
            return Text("·", "dim"), Text(name, "dim"), ""
        seconds, expected = monotonic() - self.since[name], self.expected[name]
        frame = Spinner("dots").render(seconds)
        return frame, name, f"{seconds:.0f} s" + (f" of about {expected:.0f} s" if expected else "")
