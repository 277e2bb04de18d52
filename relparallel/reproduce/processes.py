"""Worker processes on this machine, and the end of every process that a run started.

A run may be killed at any moment, and so may a worker or a kernel; none of the others may stay behind.
"""

import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from .pins import FIGURES_VARIABLE

PREFIX = "relparallel-"
DIED = "its worker process died (out of memory, or killed)"


@contextmanager
def local_pool(workers: int) -> Iterator[Executor]:
    """Give a pool of worker processes on this machine that leaves no process and no file behind.

    The workers watch this process: when it is killed, they end their kernels and themselves.
    """
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as private:
        context = multiprocessing.get_context("spawn")
        others = multiprocessing.active_children()
        pool = ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(private,))
        try:
            yield _ByFile(pool)
        except BaseException:
            for process in multiprocessing.active_children():
                if process not in others:
                    process.kill()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            end_kernels_of(private)


class _ByFile(Executor):
    """Has workers leave their results in files, and send only the name.

    A pool waits forever for the rest of a result when its sender is killed halfway; a name goes in one piece.
    """

    def __init__(self, pool: Executor) -> None:
        self.pool = pool

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:  # type: ignore[override]
        """Send a call to a worker; its future has the result itself."""
        result: Future[Any] = Future()
        self.pool.submit(_to_file, function, *arguments).add_done_callback(partial(_from_file, result))
        return result


def _to_file(function: Callable[..., Any], *arguments: Any) -> Path:
    """Leave what a call returns in a file of the worker's folder."""
    result = function(*arguments)
    with tempfile.NamedTemporaryFile(suffix=".result", delete=False) as file:
        pickle.dump(result, file, pickle.HIGHEST_PROTOCOL)
    return Path(file.name)


def _from_file(result: Future[Any], left: Future[Path]) -> None:
    """Pass on what a worker left, or its failure."""
    try:
        content = left.result().read_bytes()
        left.result().unlink()
        result.set_result(pickle.loads(content))
    except BaseException as error:
        result.set_exception(error)


def _start_worker(private: str) -> None:
    """Prepare a worker of the pool, which follows its parent to death."""
    prepare(private)
    threading.Thread(target=_follow_parent, args=(private,), daemon=True).start()


def prepare(private: str) -> None:
    """Prepare a process that executes notebooks: it keeps its files together and says nothing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = private
    logging.disable()
    if find_spec("matplotlib"):  # builds the font list once, where its notice lands in no notebook
        import matplotlib.font_manager  # noqa: F401


def _follow_parent(private: str) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        vanish(private)


def vanish(private: str) -> None:
    """End this process and its kernels at once, and remove its files."""
    end_children()
    shutil.rmtree(private, ignore_errors=True)
    os._exit(1)


def end_children() -> None:
    """Kill every process that this one started, and theirs."""
    for child in psutil.Process().children(recursive=True):
        _kill(child)


def end_kernels_of(private: str) -> None:
    """Kill kernels that outlived their worker; they are known by the folder in their environment."""
    for process in psutil.process_iter(["environ"]):
        if ((process.info["environ"] or {}).get(FIGURES_VARIABLE) or "").startswith(private):
            _kill(process)


def _kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()
