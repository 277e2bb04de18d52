"""Notebooks on a dask cluster: the same bytes as from worker processes on this machine.

The cluster runs a notebook again when the worker that had it dies. A worker needs the runner's files, package
and versions; it may keep them in a folder of another name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .notebook import NotebookError
from .remote import checked_checkout, described, run_apart
from .schedule import Pool

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE = 10  # s for an answer from the scheduler, and for a first worker


class _Apart(Executor):
    """Submits tasks so that each gets a process of its own on a worker with the same files."""

    def __init__(self, client: Client, root: str, wanted: Mapping[str, str]) -> None:
        self.client, self.root, self.wanted = client, root, wanted
        self.inner: Executor = client.get_executor(pure=False)  # pure: equal tasks would be done once

    def submit(self, function: Any, task: Any, /) -> Future[Any]:  # type: ignore[override]
        """Send one task to the cluster; after the cluster's end the task fails at once."""
        if self.client.status not in ("closing", "closed"):
            return self.inner.submit(run_apart, function, task, self.root, self.wanted)
        lost: Future[Any] = Future()
        lost.set_exception(ConnectionError("nothing answers there any more"))
        return lost

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Have the cluster forget what it has not done."""
        self.inner.shutdown(wait=wait)


@contextmanager
def connected(address: str, root: Path) -> Iterator[tuple[Pool, int]]:
    """Connect to a cluster; give the pool that executes there, and how many notebooks it takes at a time."""
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
        from distributed import Client
    except ImportError:
        raise NotebookError(
            "--executor needs dask: python -m pip install 'relparallel[distributed]'"
        ) from None
    try:
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
        told = f"fails: {answer!r}" if isinstance(answer, BaseException) else answer[1] and f"has {answer[1]}"
        if told:
            raise NotebookError(
                f"worker {worker} {told}; a worker needs the runner's checkout, package and versions"
            )
