"""A process of its own for every notebook, and the end of every process that a run started.

A run may be killed at any moment, and so may the process of a notebook or a kernel; none of the
others may stay behind. What a process answers goes through a file: half an answer is none.
"""

import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil  # type: ignore[import-untyped]

from .pins import FIGURES_VARIABLE, ROOT

PREFIX = "relparallel-"
_POLL = 0.2  # s between two looks at whether an answer is still wanted


class _Local(Executor):
    """Threads, each of which waits for a process."""

    def __init__(self, threads: Executor, wanted: Callable[[], bool]) -> None:
        self.threads, self.wanted = threads, wanted

    def submit(self, function: Callable[..., Any], argument: Any, /) -> Future[Any]:  # type: ignore[override]
        """Call a function in a process of its own."""
        return self.threads.submit(run_apart, function, argument, self.wanted)


@contextmanager
def local_pool(workers: int) -> Iterator[Executor]:
    """Give an executor of processes on this machine that leaves no process and no file behind."""
    over = Event()
    threads = ThreadPoolExecutor(workers)
    try:
        yield _Local(threads, lambda: not over.is_set())
    finally:
        over.set()
        threads.shutdown(wait=True, cancel_futures=True)


def run_apart(function: Callable[[Any], Any], argument: Any, wanted: Callable[[], bool]) -> Any:
    """Return what a separate process answers; end it, and its kernels, if nobody wants the answer.

    Raises
    ------
    BrokenExecutor
        The process ended without an answer.
    """
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as private:
        (Path(private) / "call").write_bytes(pickle.dumps((function, argument)))
        try:
            _supervise(private, wanted)
        finally:
            _end_kernels_of(private)
        answer = Path(private) / "answer"
        if not answer.exists():
            raise BrokenExecutor("its worker process died (out of memory, or killed)")
        return pickle.loads(answer.read_bytes())


def _supervise(private: str, wanted: Callable[[], bool]) -> None:
    """Run the process to its end, or end it."""
    paths = [str(ROOT), str(ROOT / "notebooks"), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {__name__} import _main; _main({private!r})"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    with process:
        while process.poll() is None:
            if not wanted():
                process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL)


def _main(private: str) -> None:
    """Be the process: keep its files together, say nothing, and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = private
    logging.disable()
    Thread(target=_follow_parent, args=(private,), daemon=True).start()
    function, argument = pickle.loads((Path(private) / "call").read_bytes())
    part = Path(private) / "part"
    part.write_bytes(pickle.dumps(function(argument)))
    part.replace(Path(private) / "answer")


def _follow_parent(private: str) -> None:
    """End this process, its kernels and its files when the parent is gone, however it ended."""
    sys.stdin.buffer.read()
    end_children()
    shutil.rmtree(private, ignore_errors=True)
    os._exit(1)


def end_children() -> None:
    """Kill every process that this one started, and theirs."""
    for child in psutil.Process().children(recursive=True):
        _kill(child)


def _end_kernels_of(private: str) -> None:
    """Kill kernels that outlived their process, known by the folder in their environment."""
    for process in psutil.process_iter(["environ"]):
        if ((process.info["environ"] or {}).get(FIGURES_VARIABLE) or "").startswith(private):
            _kill(process)


def _kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()
