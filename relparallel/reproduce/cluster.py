"""Notebooks on a dask cluster: the same bytes as from worker processes on this machine.

The cluster runs a notebook again when the worker that had it dies. A worker needs the runner's
files, package and versions; it may keep them in a folder of another name. Each notebook gets a
process of its own, which can be killed without the worker, leaves the worker's environment alone,
and ends with it.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .execute import Failure, Outcome, Pool, Task
from .notebook import NotebookError, sha256
from .pins import PACKAGE
from .processes import run_apart
from .record import Project, checkout_of_package

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE = 10  # s for an answer from the scheduler, and for a first worker
_FILES, _CODE = "files of the checkout", "installed relparallel"


@contextmanager
def connected(address: str, root: Path) -> Iterator[tuple[Pool, int]]:
    """Connect to a cluster; give the pool executing there and its number of notebooks at a time."""
    client = _client(address)
    try:
        wanted = described(root)
        _refuse_others(client, address, str(root), wanted)

        @contextmanager
        def pool(workers: int) -> Iterator[Executor]:
            executor = _Apart(client, str(root), wanted)
            try:
                yield executor
            finally:
                executor.shutdown(wait=False)

        yield pool, sum(client.nthreads().values())
    finally:
        client.close()


def _client(address: str) -> Client:
    try:
        from distributed import Client, comm
    except ImportError:
        raise NotebookError(
            "--executor needs dask: python -m pip install 'relparallel[distributed]'"
        ) from None
    try:
        comm.resolve_address(address)  # a client that finds no meaning in one complains for 20 s
        return Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise NotebookError(
            "executor must be the address of a dask scheduler, such as tcp://host:8786, "
            f"got {address!r}: {error}"
        ) from None


def _refuse_others(client: Client, address: str, root: str, wanted: Mapping[str, str]) -> None:
    """Refuse a cluster without workers, and one with a worker whose results may be others."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise NotebookError(
            f"the cluster at {address} has no worker; start one: dask worker {address}"
        ) from None
    answers = client.run(checked_checkout, root, wanted, on_error="return")
    for worker, answer in answers.items():
        wrong = (
            f"fails: {answer!r}"
            if isinstance(answer, BaseException)
            else answer[1] and f"has {answer[1]}"
        )
        if wrong:
            raise NotebookError(
                f"worker {worker} {wrong}; a worker needs the runner's checkout, package and "
                "versions"
            )


class _Apart(Executor):
    """Submits tasks so that each gets a process of its own on a worker with the same files."""

    def __init__(self, client: Client, root: str, wanted: Mapping[str, str]) -> None:
        self.client, self.root, self.wanted = client, root, wanted
        # pure: equal tasks would be done once
        self.inner: Executor = client.get_executor(pure=False)

    def submit(self, function: Any, task: Any, /) -> Future[Any]:  # type: ignore[override]
        """Send one task to the cluster; after the cluster's end the task fails at once."""
        if self.client.status not in ("closing", "closed"):
            return self.inner.submit(_run_there, function, task, self.root, self.wanted)
        lost: Future[Any] = Future()
        lost.set_exception(ConnectionError("nothing answers there any more"))
        return lost

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Have the cluster forget what is not done; one that is gone has nothing to forget."""
        if self.client.status not in ("closing", "closed"):
            self.inner.shutdown(wait=wait)


def described(root: Path | None) -> dict[str, str]:
    """Return what a result's bytes depend on: files, package, interpreter, installed versions."""
    modules = sorted(PACKAGE.rglob("*.py"))
    code = "".join(
        f"{p.relative_to(PACKAGE).as_posix()} {sha256(p.read_bytes())}\n" for p in modules
    )
    found = _installed()
    # a checkout without one compares no versions
    lock = root / "requirements.lock" if root else None
    lines = lock.read_text().splitlines() if lock and lock.is_file() else []
    locked = {line.partition("==")[0].lower() for line in lines if "==" in line}
    return {
        _FILES: Project(root=root).sources_digest()[:12] if root else "missing",
        _CODE: sha256(code.encode())[:12],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    } | {name: found[name] for name in sorted(locked & set(found))}


@cache
def _installed() -> dict[str, str]:
    """Versions by name, read once in a process."""
    return {d.name.lower(): d.version for d in distributions() if d.name}


def differences(wanted: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Say how runner and worker differ; a package that only one of them has is no difference."""
    names = [name for name in here if wanted.get(name, here[name]) != here[name]]
    return ", ".join(f"{name} {here[name]} instead of {wanted[name]}" for name in names)


def checked_checkout(root: str, wanted: Mapping[str, str]) -> tuple[Path | None, str]:
    """Return this machine's checkout with the runner's files, and what differs where there is none.

    The checkout that holds this package is looked at first, then the folder that the runner works
    in.
    """
    candidates = [path for path in (checkout_of_package(), Path(root)) if path and path.is_dir()]
    compared = [(path, differences(wanted, described(path))) for path in candidates]
    same = [path for path, difference in compared if not difference]
    if same:
        return same[0], ""
    return None, compared[-1][1] if compared else differences(wanted, described(None))


def _run_there(
    function: Callable[[Task], Outcome], task: Task, root: str, wanted: Mapping[str, str]
) -> Outcome:
    """Execute a task in its own process, once it is clear that the result will be the runner's."""
    checkout, difference = checked_checkout(root, wanted)
    if checkout is None:
        return Outcome(failure=Failure(error=f"a worker on {platform.node()} has {difference}"))
    moved = replace(task, folder=str(checkout / Path(task.folder).relative_to(root)))
    answer: Outcome = run_apart(function, moved, _wanted)
    return answer


def _wanted() -> bool:
    """Tell whether the cluster still wants the result: an interrupted run leaves nothing behind."""
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    ending = worker.status.name in ("closing", "closing_gracefully", "closed", "failed")
    return task is not None and task.state != "cancelled" and not ending
