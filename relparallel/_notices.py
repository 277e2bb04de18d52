"""What takes longer than two seconds says so on stderr: in a terminal, a notebook, a log, a pipe.

`told` marks a function that may; the outermost of those that run is told of, after 2 s and then ever
more rarely, with what `doing` said last. Nothing is told in a worker process, nor where
``RELPARALLEL_QUIET`` is set, as it is where notebooks are run for their outputs.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from threading import Thread
from time import monotonic, sleep
from types import FrameType
from typing import Any, Final, TypeVar

QUIET: Final = "RELPARALLEL_QUIET"
_FIRST, _POLL = 2.0, 0.5  # s
_ANY = TypeVar("_ANY", bound=Callable[..., Any])
_running: list[
    list[Any]
] = []  # name, since when, what it does now: the outermost call and those in it
_watcher: list[Thread] = []


def told(function: _ANY) -> _ANY:
    """Tell of calls of a function that take long, by its name."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        mine = [function.__name__.strip("_"), monotonic(), ""]
        _running.append(mine)
        if not _watcher and QUIET not in os.environ and not _in_worker():
            _watcher.append(Thread(target=_watch, daemon=True))
            _watcher[0].start()
        try:
            return function(*given, **named)
        finally:
            _running.remove(mine)

    return call  # type: ignore[return-value]


def doing(what: str) -> None:
    """Say what the innermost of these calls is at, for its next line."""
    if _running:
        _running[-1][2] = what


def _watch() -> None:
    """Write lines while calls run; end when there are none."""
    seen, after = None, _FIRST
    while _running:
        sleep(_POLL)
        calls = list(_running)
        if not calls:
            break
        if calls[0] is not seen:
            seen, after = calls[0], _FIRST
        since = monotonic() - calls[0][1]
        if since >= after:
            after = max(3 * since, 10.0) if since < 30 else since + 60
            said = next((x[2] for x in calls if x[2]), "") or _compiling()
            sys.stderr.write(
                f"relparallel: {calls[0][0]}, {since:.0f} s so far{said and ': '}{said}\n"
            )
            sys.stderr.flush()
    _watcher.clear()


def _in_worker() -> bool:
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def _compiling() -> str:
    """Whether the compiler is what takes the time: some thread's call stands in it."""
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            if f"numba{os.sep}core" in frame.f_code.co_filename:
                return "compiling its loops, once; they are kept"
            frame = frame.f_back
    return ""
