"""Executing notebooks in workers.

A `Task` goes to a worker and an `Outcome` comes back, both plain bytes and numbers, so that any
`concurrent.futures.Executor` can carry them. A worker writes nothing but a temporary folder of its
own.
"""

import inspect
import json
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relparallel.sweep import loss

from . import noting
from .pins import ROOT, environment, pins
from .processes import PREFIX, end_children, local_pool

Pool = Callable[[int], AbstractContextManager[Executor]]
_LONGEST_SOCKET_FOLDER = 90  # a Unix socket's path has at most 104 characters


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A notebook to execute."""

    name: str
    raw: bytes
    folder: str
    parameters: dict[str, Any] = field(default_factory=dict)
    cell_timeout: float
    timeout: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why and where a notebook failed."""

    error: str
    count: int | None = None
    source: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of a task."""

    notebook: bytes = b""
    figures: dict[str, bytes] = field(default_factory=dict)
    read: tuple[str, ...] = ()  # paths from the top of the checkout; a listed folder ends in "/"
    failure: Failure | None = None
    seconds: float = 0.0


def execute(task: Task) -> Outcome:
    """Execute one notebook in a fresh kernel and return what it left."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        figures = folder / "figures"
        figures.mkdir()
        (folder / "in.ipynb").write_bytes(task.raw)
        _begin_by_noting(folder)
        with environment(pins(folder)), _stderr_in(folder / "log"):
            failure = _run(task, folder)
        written = (folder / "out.ipynb").read_bytes() if (folder / "out.ipynb").exists() else b""
        drawn = {
            p.relative_to(figures).as_posix(): p.read_bytes()
            for p in figures.rglob("*")
            if p.is_file()
        }
        read = _noted(folder, [Path(task.folder).parent, ROOT])
    seconds = time.monotonic() - start
    return Outcome(notebook=written, figures=drawn, read=read, failure=failure, seconds=seconds)


def _begin_by_noting(folder: Path) -> None:
    """Have the kernel of ``folder`` note what it reads, from before the first cell."""
    startup = folder / "ipythondir" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    text = f"{inspect.getsource(noting)}\nnote(shell, {str(folder / 'read')!r})\n"
    (startup / "note.py").write_text(f"exec({text!r}, {{'shell': get_ipython()}})\n", "utf-8")


def _noted(folder: Path, tops: list[Path]) -> tuple[str, ...]:
    """Return what the kernel noted, as paths from the top of the checkout."""
    notes = (folder / "read").read_text("utf-8").splitlines() if (folder / "read").exists() else []
    starts = tuple(f"{top.resolve().as_posix()}/" for top in tops)
    inside = (note.replace(os.sep, "/") for note in notes)
    return tuple(sorted({note[len(s) :] for note in inside for s in starts if note.startswith(s)}))


def _run(task: Task, folder: Path) -> Failure | None:
    """Run the notebook in ``folder``; exceptions decide: a killed cell is saved as completed."""
    # jsonschema's grammar of addresses takes longer than all other imports
    with _absent("rfc3987_syntax"):
        import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    _teach_papermill_literals()
    # papermill fills in what stands in braces
    given = str(folder).replace("{", "{{").replace("}", "}}")
    try:
        with _at_most(task.timeout) as late:
            papermill.execute_notebook(
                f"{given}/in.ipynb",
                f"{given}/out.ipynb",
                parameters=task.parameters,
                kernel_name="python3",
                language="python",
                progress_bar=False,
                cwd=task.folder,
                start_timeout=120,
                execution_timeout=task.cell_timeout,
                config=_transport(folder),
            )
    except PapermillExecutionError as error:
        return Failure(
            error=f"{error.ename}: {error.evalue}", count=error.exec_count, source=error.source
        )
    except DeadKernelError:
        reason = (
            f"the notebook took longer than {task.timeout:g} s"
            if late.is_set()
            else "the kernel died"
        )
        return _unanswered(folder / "out.ipynb", reason)
    except CellTimeoutError:
        return _unanswered(
            folder / "out.ipynb", f"the cell took longer than {task.cell_timeout:g} s"
        )
    except Exception as error:  # whatever befalls one notebook, the others still run
        said = [line.strip() for line in (folder / "log").read_text(errors="replace").split("\n")]
        # before a kernel failed to start
        last = next((f" - {line}" for line in reversed(said) if line), "")
        return Failure(error=f"{type(error).__name__}: {error}{last}")
    return None


@contextmanager
def _absent(module: str) -> Iterator[None]:
    """Have imports of an optional module fail that is not there yet."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


def _unanswered(path: Path, reason: str) -> Failure:
    """Blame the last cell that was started: the saved state of its execution tells nothing."""
    cells = json.loads(path.read_bytes())["cells"] if path.exists() else []
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    started = [
        i for i, cell in enumerate(code) if cell["metadata"].get("papermill", {}).get("start_time")
    ]
    if not started:
        return Failure(error=reason)
    return Failure(error=reason, count=started[-1] + 1, source="".join(code[started[-1]]["source"]))


@contextmanager
def _stderr_in(log: Path) -> Iterator[None]:
    """Keep what a kernel tells the terminal, such as a stop by its parent, out of the display."""
    terminal = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def _teach_papermill_literals() -> None:
    """Have papermill write every parameter as Python does; by itself it turns a tuple into text."""
    from papermill.translators import PythonTranslator, papermill_translators

    class Literals(PythonTranslator):  # type: ignore[misc]
        translate = staticmethod(repr)

    papermill_translators.register("python", Literals)


def _transport(folder: Path) -> Any:
    """Have the kernel talk through sockets in ``folder``: two kernels never compete for a port."""
    from traitlets.config import Config

    if os.name != "posix" or len(str(folder)) > _LONGEST_SOCKET_FOLDER:
        return Config()
    return Config({"KernelManager": {"transport": "ipc", "ip": str(folder / "kernel")}})


@contextmanager
def _at_most(seconds: float) -> Iterator[threading.Event]:
    """End the kernel when ``seconds`` have passed, and tell so by the event."""
    late = threading.Event()

    def expire() -> None:
        late.set()
        end_children()

    clock = threading.Timer(seconds, expire)
    clock.start()
    try:
        yield late
    finally:
        clock.cancel()


def outcomes(
    tasks: Iterable[Task], workers: int, pool: Pool | None, started: Callable[[str], None]
) -> Generator[tuple[str, Outcome], None, None]:
    """Yield the name and outcome of every task as it ends, and say when one starts."""
    queue, running = deque(tasks), dict[Future[Outcome], Task]()
    with (pool or local_pool)(workers) as executor:
        while queue or running:
            while queue and len(running) < workers:
                running[executor.submit(execute, queue[0])] = queue[0]
                started(queue.popleft().name)
            for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                yield running.pop(future).name, _outcome(future)


def _outcome(future: Future[Outcome]) -> Outcome:
    """Return what came of a task; whoever gives one up goes on with the others."""
    try:
        return future.result()
    except BrokenExecutor as error:
        return Outcome(failure=Failure(error=str(error)))
    except Exception as error:
        told = loss(error) or f"{type(error).__name__}: {error}".removesuffix(": ")
        return Outcome(failure=Failure(error=f"the cluster lost it: {told}"))
