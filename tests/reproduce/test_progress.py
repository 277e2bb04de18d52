"""What a person sees: a live table on a terminal, lines elsewhere."""

import io

import pytest
from rich.console import Console

from reproduce.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(progress: Progress, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(progress.rows.get_renderable())
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


@pytest.fixture
def clock(monkeypatch):
    times = {"now": 100.0}
    monkeypatch.setattr("reproduce.progress.monotonic", lambda: times["now"])
    return times


def test_lines_tell_what_runs_and_how_it_ended(clock):
    stream = io.StringIO()
    with Progress(stream, {"41_first": None, "42_second": 8.0}, 5) as progress:
        progress.started("41_first")
        progress.started("42_second")
        clock["now"] += 2.5
        progress.ended("42_second", "failed in code cell 3: ValueError: x")
        clock["now"] += 1.0
        progress.ended("41_first", "")
    assert stream.getvalue().splitlines() == [
        "2 notebooks to run, 5 up to date, about a minute or less",
        "[1/2] 42_second failed in code cell 3: ValueError: x (2.5 s)",
        "[2/2] 41_first done (3.5 s)",
    ]


@pytest.mark.parametrize(
    ("expected", "workers", "told"),
    [
        ({"a": 300.0, "b": 120.0}, 1, ", about 7 min"),
        ({"a": 300.0, "b": 120.0}, 2, ", about 5 min"),
        ({"a": 20.0, "b": None}, 2, ", about a minute or less"),
        ({"a": None, "b": None}, 2, ""),
    ],
)
def test_it_begins_with_how_long_it_will_take(expected, workers, told):
    """The sum over what runs at a time, and no less than the longest."""
    stream = io.StringIO()
    with Progress(stream, expected, 0, workers):
        assert stream.getvalue() == f"2 notebooks to run, 0 up to date{told}\n"


def test_the_table_tells_what_runs_and_is_over(clock):
    progress = Progress(Terminal(), {"41_first": None, "42_second": 8.0, "43_third": None}, 5)
    assert len(shown(progress)) == 1
    assert "0 of 3, 5 up to date" in shown(progress)[0]
    progress.started("41_first")
    progress.started("42_second")
    clock["now"] += 3.0
    progress.ended("41_first", "")
    total, first, second = shown(progress)
    assert first == "41_first 0:00:03 done"
    assert second.endswith("42_second 0:00:03 of about 8 s")
    assert "1 of 3, 5 up to date" in total
    progress.ended("42_second", "failed in code cell 3: ValueError: [x] " + "long " * 40)
    assert "42_second 0:00:03 failed in code cell 3: ValueError: [x] long" in shown(progress)[2]
    for width in (60, 80, 100):  # a long message takes no second line, and leaves the clocks
        rows = shown(progress, width)
        assert len(rows) == 3
        assert all("0:00:03" in row for row in rows[1:])
    assert "2 of 3, 1 failed, 5 up to date" in shown(progress)[0]


def test_the_terminal_is_left_in_order():
    terminal = Terminal()
    with Progress(terminal, {"41_first": None}) as progress:
        progress.started("41_first")
        progress.ended("41_first", "")
    assert "41_first" in terminal.getvalue()
    assert terminal.getvalue().rstrip().endswith("\x1b[?25h")  # the cursor is back
