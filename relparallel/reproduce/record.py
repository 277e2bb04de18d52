"""Where results go, and what a run leaves beside them so that the next one does only what is needed.

Everything here lies in the ignored folder ``.relparallel/`` of the checkout: one small JSON file per notebook
(the digest of its inputs and of what it left), the lock that keeps a second runner out, files being written,
and notebooks that failed. A fresh clone has none of it and so executes everything. Standard library only.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .notebook import (
    Notebook,
    NotebookError,
    code_digest,
    moved_beside_figures,
    normal_form,
    outputs_digest,
    sha256,
)

if TYPE_CHECKING:
    from .execute import Outcome

PACKAGE = Path(__file__).resolve().parents[1]
_SOURCES = ("relparallel/**/*.py", "data/**/*", "requirements.lock")


def checkout_of_package() -> Path | None:
    """Return the checkout that holds this package, or None when it is installed without one."""
    return PACKAGE.parent if (PACKAGE.parent / "notebooks").is_dir() else None


def checkout(root: Path | None = None) -> Path:
    """Return the checkout: the one asked for, the one this package lies in, or the current folder."""
    return Path(root).resolve() if root is not None else checkout_of_package() or Path.cwd()


class RunnerBusyError(RuntimeError):
    """Another runner works on the same checkout."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What the last successful run of one notebook was made from and what it left."""

    inputs: str
    outputs: str
    figures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A checkout: where its notebooks, figures, sources and records lie."""

    root: Path
    sources: str = ""  # digest of what every notebook depends on, while the checkout is locked for a run

    @property
    def notebooks(self) -> Path:
        """The folder of the notebooks."""
        return self.root / "notebooks"

    @property
    def figures(self) -> Path:
        """The folder of the figures."""
        return self.root / "figures"

    @property
    def state(self) -> Path:
        """The ignored folder of records."""
        return self.root / ".relparallel"

    @property
    def staging(self) -> Path:
        """Where a file is written before it takes its place in one step."""
        return self.state / "staging"

    @property
    def failed(self) -> Path:
        """Where notebooks that failed are kept for inspection."""
        return self.state / "failed"

    def sources_digest(self) -> str:
        """Return the digest of what every notebook depends on: package, data and tested versions."""
        found = (path for pattern in _SOURCES for path in self.root.glob(pattern))
        files = sorted(path for path in found if path.is_file())
        lines = (f"{p.relative_to(self.root).as_posix()} {sha256(p.read_bytes())}\n" for p in files)
        return sha256("".join(lines).encode())

    def inputs_digest(self, notebook: Notebook) -> str:
        """Return the digest of everything the notebook's result depends on."""
        return sha256(f"{self.sources} {code_digest(notebook.content)}".encode())

    def record(self, name: str) -> Record | None:
        """Return the record of a notebook, or None when there is none that can be read."""
        try:
            return Record(**json.loads(self._record_path(name).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def keep(self, name: str, record: Record) -> None:
        """Store the record of a notebook."""
        text = json.dumps(asdict(record), indent=1, sort_keys=True) + "\n"
        replace_file(self._record_path(name), text.encode(), self.staging)

    def expected(self, name: str) -> float | None:
        """Return how long the notebook took the last time [s]."""
        record = self.record(name)
        return record.seconds if record else None

    def is_current(self, notebook: Notebook) -> bool:
        """Tell whether running the notebook again would change nothing."""
        record = self.record(notebook.name)
        return (
            record is not None
            and record.inputs == self.inputs_digest(notebook)
            and record.outputs == outputs_digest(notebook.content)
            and notebook.raw == normal_form(notebook.content)
            and all((self.figures / name).is_file() for name in record.figures)
            and all(sha256((self.figures / f).read_bytes()) == old for f, old in record.figures.items())
        )

    def store(self, notebook: Notebook, outcome: Outcome) -> None:
        """Put figures, notebook and record in their places, each in one step and the record last.

        A kill on the way leaves a record that does not match, so that the next run begins again. A result
        that a later edit has overtaken is refused.
        """
        if not notebook.path.exists() or notebook.path.read_bytes() != notebook.raw:
            raise NotebookError(
                "the notebook was edited during the run: the edit is kept, the result dropped"
            )
        if self.sources_digest() != self.sources:
            raise NotebookError("the package or data changed during the run: the result was dropped")
        content = json.loads(outcome.notebook)
        for name in outcome.figures:  # two writers would replace it for ever
            if other := self.writer_of(name, other_than=notebook.name):
                raise NotebookError(f"figure {name} is also written by {other}; each needs a name of its own")
        before = self.record(notebook.name)
        for name, data in outcome.figures.items():
            replace_file(self.figures / name, data, self.staging)
        replace_file(notebook.path, normal_form(content), self.staging)
        for name in set(before.figures if before else ()) - set(outcome.figures):
            (self.figures / name).unlink(missing_ok=True)
        record = Record(
            inputs=self.inputs_digest(notebook),
            outputs=outputs_digest(content),
            figures={name: sha256(data) for name, data in sorted(outcome.figures.items())},
            seconds=round(outcome.seconds, 1),
        )
        self.keep(notebook.name, record)
        (self.failed / notebook.path.name).unlink(missing_ok=True)

    def keep_failed(self, notebook: Notebook, executed: bytes) -> Path:
        """Keep a failed notebook in the ignored folder and return where."""
        path = self.failed / notebook.path.name
        replace_file(path, executed, self.staging)
        return path

    def writer_of(self, figure: str, other_than: str) -> str | None:
        """Return the name of another notebook of this checkout that is recorded to write ``figure``."""
        for path in sorted(self._record_path("x").parent.glob("*.json")):
            record = self.record(path.stem)
            exists = (self.notebooks / f"{path.stem}.ipynb").exists()
            if path.stem != other_than and exists and record is not None and figure in record.figures:
                return path.stem
        return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other runner out of this checkout; the lock of a dead process holds nobody."""
        self.state.mkdir(parents=True, exist_ok=True)
        with (self.state / "lock").open("a+") as file:
            if not _take(file.fileno()):
                file.seek(0)
                holder = f"process {file.read().strip()}"
                raise RunnerBusyError(
                    f"another run is at work in {self.root} ({holder}); wait for it or stop it"
                )
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            shutil.rmtree(self.staging, ignore_errors=True)
            yield

    def _record_path(self, name: str) -> Path:
        return self.state / "records" / f"{name}.json"


def replace_file(path: Path, data: bytes, staging: Path) -> None:
    """Write ``data`` to ``path`` in one step: a reader, or a kill, finds the old file or the new one."""
    staging.mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = staging / f".{path.name}.part"
    part.write_bytes(data)
    part.replace(path)


def _take(descriptor: int) -> bool:
    """Lock an open file without waiting; the system lets go of it when the process ends, however it ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # a byte behind the text, which stays readable
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class Elsewhere:
    """A folder for results with other parameters; always executed, nothing recorded."""

    folder: Path

    def is_current(self, notebook: Notebook) -> bool:
        """Return False: what lies there may come from other parameters."""
        return False

    def expected(self, name: str) -> float | None:
        """Return None: nothing is recorded."""
        return None

    def store(self, notebook: Notebook, outcome: Outcome) -> None:
        """Write figures and notebook, whose links find the figures beside it."""
        for name, data in outcome.figures.items():
            replace_file(self.folder / "figures" / name, data, self.folder)
        content = moved_beside_figures(json.loads(outcome.notebook))
        replace_file(self.folder / notebook.path.name, normal_form(content), self.folder)
        self._failed(notebook).unlink(missing_ok=True)

    def keep_failed(self, notebook: Notebook, executed: bytes) -> Path:
        """Keep a failed notebook under a name that says so."""
        replace_file(self._failed(notebook), executed, self.folder)
        return self._failed(notebook)

    def _failed(self, notebook: Notebook) -> Path:
        return self.folder / f"{notebook.name}.failed.ipynb"


@contextmanager
def opened(project: Project, output_dir: Path | None) -> Iterator[Project | Elsewhere]:
    """Give the store for ``output_dir``, or for the checkout itself, which is locked meanwhile."""
    if output_dir is None:
        with project.locked():
            yield replace(project, sources=project.sources_digest())
    elif output_dir.resolve() in (project.root, project.notebooks, project.figures):
        raise NotebookError(f"output_dir must lie apart from the repository's own results, got {output_dir}")
    else:
        yield Elsewhere(folder=output_dir)
