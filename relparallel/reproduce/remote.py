"""On a worker of a cluster: showing that it has the same files, and giving a notebook a process of its own.

The process can be killed without the worker, leaves the worker's environment alone, and ends with it.
"""

from __future__ import annotations

import pickle
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import distributions
from os import environ, pathsep
from pathlib import Path
from threading import Thread

from .execute import Failure, Outcome, Task
from .notebook import sha256
from .processes import DIED, PREFIX, end_kernels_of, prepare, vanish
from .record import Project

_PACKAGE = Path(__file__).resolve().parents[1]
_POLL = 0.2  # s between two looks at whether a notebook is still wanted
_FILES, _CODE = "files of the checkout", "installed relparallel"


def checkout_of_package() -> Path | None:
    """Return the checkout that holds this package, or None when it is installed without one."""
    return _PACKAGE.parent if (_PACKAGE.parent / "notebooks").is_dir() else None


def described(root: Path | None) -> dict[str, str]:
    """Return what the bytes of a result depend on: files, package, interpreter and installed versions."""
    modules = sorted(_PACKAGE.rglob("*.py"))
    code = "".join(f"{p.relative_to(_PACKAGE).as_posix()} {sha256(p.read_bytes())}\n" for p in modules)
    found = {d.name.lower(): d.version for d in distributions() if d.name}
    locked = _locked(root) & set(found)
    return {
        _FILES: Project(root=root).sources_digest()[:12] if root else "missing",
        _CODE: sha256(code.encode())[:12],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    } | {name: found[name] for name in sorted(locked)}


def _locked(root: Path | None) -> set[str]:
    """Names in the list of tested versions; a checkout without one compares no versions."""
    path = root / "requirements.lock" if root else None
    lines = path.read_text().splitlines() if path and path.is_file() else []
    return {line.partition("==")[0].lower() for line in lines if "==" in line}


def differences(wanted: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Say what differs between runner and worker; a package that only one of them has is no difference."""
    names = [name for name in here if wanted.get(name, here[name]) != here[name]]
    return ", ".join(f"{name} {here[name]} instead of {wanted[name]}" for name in names)


def checked_checkout(root: str, wanted: Mapping[str, str]) -> tuple[Path | None, str]:
    """Return this machine's checkout with the runner's files, and what differs where there is none.

    The checkout that holds this package is looked at first, then the folder that the runner works in.
    """
    candidates = [path for path in (checkout_of_package(), Path(root)) if path and path.is_dir()]
    told = [(path, differences(wanted, described(path))) for path in candidates]
    same = [path for path, difference in told if not difference]
    return (same[0], "") if same else (None, told[-1][1] if told else differences(wanted, described(None)))


def run_apart(
    function: Callable[[Task], Outcome], task: Task, root: str, wanted: Mapping[str, str]
) -> Outcome:
    """Execute a task in a process of its own, once it is clear that the result will be the runner's."""
    checkout, difference = checked_checkout(root, wanted)
    if checkout is None:
        return Outcome(failure=Failure(error=f"a worker on {platform.node()} has {difference}"))
    moved = replace(task, folder=str(checkout / Path(task.folder).relative_to(root)))
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as private:
        (Path(private) / "task").write_bytes(pickle.dumps((function, moved)))
        try:
            _supervise(private)
        finally:
            end_kernels_of(private)
        answer = Path(private) / "outcome"
        return pickle.loads(answer.read_bytes()) if answer.exists() else Outcome(failure=Failure(error=DIED))


def _supervise(private: str) -> None:
    """Run the process to its end, or end it when nobody waits for the result any more."""
    paths = [str(_PACKAGE.parent), *filter(None, [environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import _main; _main({private!r})"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**environ, "PYTHONPATH": pathsep.join(paths)},
    )
    with process:
        while process.poll() is None:
            if not _wanted():
                process.kill()
            try:
                process.wait(_POLL)
            except subprocess.TimeoutExpired:
                continue


def _wanted() -> bool:
    """Tell whether the cluster still wants the result: an interrupted run leaves nothing behind."""
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    ending = worker.status.name in ("closing", "closing_gracefully", "closed", "failed")
    return task is not None and task.state != "cancelled" and not ending


def _main(private: str) -> None:
    """Be the process: work through the task in ``private`` and end when the worker closes its pipe."""
    prepare(private)
    Thread(target=_follow_worker, args=(private,), daemon=True).start()
    function, task = pickle.loads((Path(private) / "task").read_bytes())
    part = Path(private) / "part"
    part.write_bytes(pickle.dumps(function(task)))
    part.replace(Path(private) / "outcome")


def _follow_worker(private: str) -> None:
    sys.stdin.buffer.read()
    vanish(private)
