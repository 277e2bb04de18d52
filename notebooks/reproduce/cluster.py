"""Notebooks on a dask cluster: the same bytes as from worker processes on this machine.

The cluster runs a notebook again when the worker that had it dies, and the runner says so. A worker
needs the runner's versions, and its files, in a folder of any name, or a nanny that takes them: then
workers restart with those. Each notebook gets a process of its own, which can be killed without the
worker, leaves the worker's environment alone, and ends with it.
"""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .execute import Failure, Outcome, Pool, Task
from .notebook import NotebookError, sha256
from .pins import ROOT
from .processes import PREFIX, run_apart
from .record import Project

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE = 10  # s for an answer from the scheduler, and for a first worker
_FILES, _CODE = "files of the checkout", "code of the checkout"


@contextmanager
def connected(address: str, root: Path) -> Iterator[tuple[Pool, int]]:
    """Connect to a cluster; give the pool executing there and its number of notebooks at a time."""
    client = _client(address)
    try:
        wanted = described(root)
        _refuse_others(client, address, root, wanted)
        client.subscribe_topic("all", _tell_losses)

        @contextmanager
        def pool(workers: int) -> Iterator[Executor]:
            executor = _Apart(client, str(root), wanted)
            try:
                yield executor
            finally:
                executor.shutdown(wait=False)

        yield pool, sum(client.nthreads().values())
        if client.status == "running":  # a cluster that is gone tells nothing more
            client.unsubscribe_topic("all")
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


def _refuse_others(client: Client, address: str, root: Path, wanted: Mapping[str, str]) -> None:
    """Refuse a cluster without workers, and one with a worker whose results may be others."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise NotebookError(
            f"the cluster at {address} has no worker; start one: dask worker {address}"
        ) from None
    wrong = _others(client, root, wanted)
    versions = {name: wanted[name] for name in wanted if name not in (_FILES, _CODE)}
    sendable = code_digest(root) == wanted[_CODE]
    if (
        wrong
        and sendable
        and not any(told.split()[2] == "has" for told in _others(client, root, versions))
    ):
        _send(client, root, wanted[_FILES])
        wrong = _others(client, root, wanted)
    for told in wrong:
        raise NotebookError(
            f"{told}; a worker needs the runner's versions, and a nanny that takes its files"
        )


def _others(client: Client, root: Path, wanted: Mapping[str, str]) -> list[str]:
    """Say of each worker that differs, how it does."""
    answers = client.run(checked_checkout, str(root), wanted, on_error="return")
    return [
        f"worker {worker} fails: {answer!r}"
        if isinstance(answer, BaseException)
        else f"worker {worker} has {answer[1]}"
        for worker, answer in answers.items()
        if isinstance(answer, BaseException) or answer[1]
    ]


def _send(client: Client, root: Path, digest: str) -> None:
    """Have every nanny unpack the checkout, and start its worker anew with the package from there."""
    from distributed.diagnostics.plugin import UploadDirectory

    workers = len(client.nthreads())
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        top = Path(folder) / f"relparallel-{digest}"
        for name in [*Project(root=root).hashed(), *Project(root=root).hashed(["notebooks/*"])]:
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, top / name)
        given = {"restart_workers": True, "update_path": True, "skip_words": ()}
        plugin = UploadDirectory(top, **given)
        plugin.path = f"{top.name}/notebooks"  # goes on the path: the runner there finds the rest
        client.register_plugin(plugin)
    client.wait_for_workers(workers, timeout=60)


class _Apart(Executor):
    """Submits tasks so that each gets a process of its own on a worker with the same files."""

    def __init__(self, client: Client, root: str, wanted: Mapping[str, str]) -> None:
        self.client, self.root, self.wanted = client, root, wanted
        # pure: equal tasks would be done once
        self.inner: Any = client.get_executor(pure=False)

    def submit(self, function: Any, task: Any, /) -> Future[Any]:  # type: ignore[override]
        """Send one task to the cluster; after the cluster's end the task fails at once."""
        if self.client.status not in ("closing", "closed"):
            key = f"{task.name} {uuid4().hex}"  # by which a loss is told
            given = function, task, self.root, self.wanted
            return self.inner.submit(_run_there, *given, key=key)  # type: ignore[no-any-return]
        lost: Future[Any] = Future()
        lost.set_exception(ConnectionError("nothing answers there any more"))
        return lost

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Have the cluster forget what is not done; one that is gone has nothing to forget."""
        if self.client.status not in ("closing", "closed"):
            self.inner.shutdown(wait=wait)


def _tell_losses(event: tuple[float, Mapping[str, Any]]) -> None:
    """Say which notebooks went with a worker that died; dask runs them again elsewhere."""
    said = event[1]
    if said.get("action") == "remove-worker" and not said["expected"]:
        lost = ", ".join(str(key).rpartition(" ")[0] for key in said["processing-tasks"])
        if lost:
            sys.stderr.write(f"worker {said['worker']} died; {lost} runs again elsewhere\n")


def described(root: Path | None) -> dict[str, str]:
    """Return what a result's bytes depend on: files, package, interpreter, installed versions."""
    found = _installed()
    # a checkout without one compares no versions
    lock = root / "requirements.lock" if root else None
    lines = lock.read_text().splitlines() if lock and lock.is_file() else []
    locked = {line.partition("==")[0].lower() for line in lines if "==" in line}
    return {
        _FILES: Project(root=root).sources_digest()[:12] if root else "missing",
        _CODE: code_digest(ROOT),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    } | {name: found[name] for name in sorted(locked & set(found))}


def code_digest(root: Path) -> str:
    """Return the digest of the modules of a checkout."""
    modules = sorted(p for top in ("relparallel", "notebooks") for p in (root / top).rglob("*.py"))
    code = (f"{p.relative_to(root).as_posix()} {sha256(p.read_bytes())}\n" for p in modules)
    return sha256("".join(code).encode())[:12]


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

    The checkout of the worker's own runner is looked at first, then the folder that the runner works
    in.
    """
    candidates = [path for path in (ROOT, Path(root)) if path.is_dir()]
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
