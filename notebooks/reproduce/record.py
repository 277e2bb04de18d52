"""Where results go, and what a run leaves with them so that the next one does only what is needed.

The record of a run lies in the metadata of its notebook, where every clone has it: which modules
and data the kernel read, the digests of those, of the code and of the results. The ignored folder
``.relparallel/`` of the checkout holds what is this machine's alone: which records were made here
and how long that took, the lock that keeps a second runner out, files being written, and notebooks
that failed. Standard library only.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .notebook import (
    RECORD,
    Notebook,
    NotebookError,
    code_digest,
    moved_beside_figures,
    normal_form,
    outputs_digest,
    read,
    set_back,
    sha256,
)
from .parameters import declared
from .pins import ROOT

if TYPE_CHECKING:
    from .execute import Outcome

_SOURCES = (
    *("relparallel/**/*.py", "relparallel/**/*.pyi", "notebooks/**/*.py", "notebooks/**/*.pyi"),
    *("data/**/*", "requirements.lock"),
)
_ALWAYS = ("requirements.lock", "notebooks/reproduce/pins.py")  # what every result depends on
_UNTRACKED = ".pdf"  # left beside each SVG for the paper, only where the run was
# what a notebook reads
_USED = ("relparallel/", "notebooks/chapters/", "notebooks/evidence/", "data/")
_VERSION = 1  # of the record


def checkout(root: Path | None = None) -> Path:
    """Return the checkout: the one asked for, or the one of this runner."""
    return ROOT if root is None else Path(root).resolve()


def whole_checkout(root: Path | None) -> Path:
    """Return the checkout, which must hold the notebooks."""
    found = checkout(root)
    if not (found / "notebooks").is_dir():
        raise NotebookError(
            f"root must be a checkout with a folder notebooks, got {found}; name it with --root"
        )
    return found


class RunnerBusyError(RuntimeError):
    """Another runner works on the same checkout."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What the last run of one notebook was made from and what it left."""

    code: str  # digest of its name and its code cells
    sources: str  # digest of the files that its kernel read
    results: str  # digest of its outputs and its figures
    figures: list[str]
    read: dict[str, str]  # names by folder; ``*`` for the names of all files there
    version: int = _VERSION

    @classmethod
    def of(cls, notebook: Notebook) -> Record | None:
        """Return the record in a notebook's metadata, or None if there is none of this version."""
        try:
            record = cls(**notebook.content["metadata"][RECORD])
            whole = all(isinstance(name, str) for name in [*record.read.values(), *record.figures])
        except (KeyError, TypeError, AttributeError):
            return None
        return record if whole and record.version == _VERSION else None

    def digest(self) -> str:
        """Return the digest of the record itself."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode())


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A checkout: where its notebooks, figures, sources and records lie."""

    root: Path
    # digests by path, as a run has found them
    sources: Mapping[str, str] = field(default_factory=dict)

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

    def under(self, *_: object) -> Self:
        """Return itself: the checkout holds results of the default values only."""
        return self

    def hashed(self, patterns: Iterable[str] = _SOURCES) -> dict[str, str]:
        """Return the digests of the files that results depend on, by their paths from the top."""
        files = {path for pattern in patterns for path in self.root.glob(pattern) if path.is_file()}
        return {
            path.relative_to(self.root).as_posix(): sha256(path.read_bytes())
            for path in sorted(files)
        }

    def sources_digest(self) -> str:
        """Return the digest of package, data and tested versions together."""
        return sha256(json.dumps(self.hashed()).encode())

    def expected(self, name: str) -> float | None:
        """Return how long the notebook took the last time, here or where it was measured [s]."""
        if seconds := self._local(name).get("seconds"):
            return float(seconds)
        table = self.root / "data" / "benchmarks" / "notebooks.csv"
        if not table.exists():
            return None
        with table.open(newline="", encoding="utf-8") as file:
            return next(
                (float(row["seconds"]) for row in csv.DictReader(file) if row["notebook"] == name),
                None,
            )

    def reason(self, notebook: Notebook, elsewhere: bool = False) -> str:
        """Say why running the notebook again might change something; empty if it would not.

        The record of a run on another machine counts only when runs ``elsewhere`` are trusted.
        """
        record = Record.of(notebook)
        if record is None:
            return "it has no record of a run"
        if record.code != _code(notebook):
            return "its code is not what was run"
        if record.sources != _digest_of(record.read, self.sources):
            return "a module or a data file that it read has changed"
        if record.results != self._results(notebook.content, record.figures):
            return "its outputs or figures are not what the run left"
        if notebook.raw != normal_form(notebook.content):
            return "it is not stored as the runner stores it"
        local = self._local(notebook.name)
        if not elsewhere and local.get("record") != record.digest():
            return "it was not run here"
        gone = not all((self.figures / name).is_file() for name in local.get("untracked", ()))
        return "a PDF of its figures is gone" if gone and not elsewhere else ""

    def store(self, notebook: Notebook, outcome: Outcome) -> None:
        """Put figures and notebook in their places, each in one step.

        A kill on the way leaves results that do not match the record, so that the next run begins
        again. A result that a later edit has overtaken is refused.
        """
        if not notebook.path.exists() or notebook.path.read_bytes() != notebook.raw:
            raise NotebookError(
                "the notebook was edited during the run: the edit is kept, the result dropped"
            )
        read = _by_folder(outcome.read)
        sources = _digest_of(read, self.sources)
        if sources != _digest_of(read, self.hashed([*_ALWAYS, *_paths(read)])):
            raise NotebookError("package or data changed during the run: the result was dropped")
        content, before = json.loads(outcome.notebook), Record.of(notebook)
        untracked = sorted(name for name in outcome.figures if name.endswith(_UNTRACKED))
        figures, drawn = sorted(outcome.figures.keys() - {*untracked}), dict[str, str]()
        if before is None or (before.code, before.figures) != (_code(notebook), figures):
            drawn = self._drawn_by_others(notebook)
        for name in drawn.keys() & outcome.figures.keys():  # two writers would replace it for ever
            raise NotebookError(
                f"figure {name} is also written by {drawn[name]}; each needs a name of its own"
            )
        for name, data in outcome.figures.items():
            replace_file(self.figures / name, data, self.staging)
        for name in {*(before.figures if before else ())} - {*outcome.figures, *drawn}:
            for gone in (self.figures / name, (self.figures / name).with_suffix(_UNTRACKED)):
                gone.unlink(missing_ok=True)
        record = Record(
            code=_code(notebook),
            sources=sources,
            results=self._results(content, figures),
            figures=figures,
            read=read,
        )
        content["metadata"][RECORD] = asdict(record)
        replace_file(notebook.path, normal_form(content), self.staging)
        local = {
            "record": record.digest(),
            "seconds": round(outcome.seconds, 1),
            "untracked": untracked,
        }
        replace_file(self._local_path(notebook.name), json.dumps(local).encode(), self.staging)
        (self.failed / notebook.path.name).unlink(missing_ok=True)

    def keep_failed(self, notebook: Notebook, executed: bytes) -> Path:
        """Keep a failed notebook in the ignored folder and return where."""
        path = self.failed / notebook.path.name
        replace_file(path, executed, self.staging)
        return path

    def _drawn_by_others(self, notebook: Notebook) -> dict[str, str]:
        """Return by figure name which other notebook of this checkout is recorded to draw it."""
        others = [
            read(path) for path in sorted(self.notebooks.glob("*.ipynb")) if path != notebook.path
        ]
        records = [(other.name, Record.of(other)) for other in others]
        return {figure: name for name, record in records if record for figure in record.figures}

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

    def _results(self, content: Mapping[str, Any], figures: Iterable[str]) -> str:
        """Return the digest of outputs and of the figures as they lie in their places."""
        paths = [self.figures / name for name in figures]
        drawn = [sha256(path.read_bytes()) if path.is_file() else "missing" for path in paths]
        return sha256(" ".join([outputs_digest(content), *drawn]).encode())

    def _local_path(self, name: str) -> Path:
        return self.state / "records" / f"{name}.json"

    def _local(self, name: str) -> dict[str, Any]:
        """Return what this machine knows of the last run of a notebook."""
        try:
            return dict(json.loads(self._local_path(name).read_bytes()))
        except (OSError, ValueError, TypeError):
            return {}


def _code(notebook: Notebook) -> str:
    """Return the digest of a notebook's name and code: a copy under another name was never run."""
    return sha256(f"{notebook.name} {code_digest(notebook.content)}".encode())


def _by_folder(paths: Iterable[str]) -> dict[str, str]:
    """Return names by folder: of the package, of chapters, evidence and data."""
    found: dict[str, list[str]] = {}
    for path in sorted(paths):
        if path.startswith(_USED) and "__pycache__" not in path:
            folder, _, name = path.rpartition("/")
            found.setdefault(folder, []).append(name or "*")
    return {folder: " ".join(names) for folder, names in found.items()}


def _paths(read: Mapping[str, str]) -> list[str]:
    return [f"{folder}/{name}" for folder, names in read.items() for name in names.split()]


def _digest_of(read: Mapping[str, str], files: Mapping[str, str]) -> str:
    """Return the digest of what was read as it is now, and of all file names where ``*`` stands."""
    lines = []
    for path in sorted({*_ALWAYS, *_paths(read)}):
        folder, _, name = path.rpartition("/")
        names = [file for file in files if file.rpartition("/")[0] == folder] if name == "*" else []
        lines.append(" ".join([path, files.get(path, "missing"), *names]))
    return sha256("\n".join(lines).encode())


def replace_file(path: Path, data: bytes, staging: Path) -> None:
    """Write ``data`` to ``path`` in one step: a reader or a kill finds the old file or the new."""
    staging.mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = staging / f".{path.name}.part"
    part.write_bytes(data)
    part.replace(path)


def _take(descriptor: int) -> bool:
    """Lock an open file without waiting; the system unlocks it when the process ends in any way."""
    try:
        if sys.platform == "win32":
            import msvcrt

            # a byte behind the text, which stays readable
            os.lseek(descriptor, 1 << 30, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class Elsewhere:
    """A folder for results with other parameters; those that it has already are kept."""

    folder: Path
    sources: Mapping[str, str]
    values: Mapping[str, Any] = field(default_factory=dict)

    def reason(self, notebook: Notebook, elsewhere: bool = False) -> str:
        """Say whether it has no result of this code and data with these values."""
        path = self.folder / notebook.path.name
        held = read(path).content["metadata"].get(RECORD, {}) if path.exists() else {}
        made = self._made(notebook, held.get("read", {}))
        return "" if held.get("made") == made else "it was not run with this code and these values"

    def under(self, name: str, values: Mapping[str, Any]) -> Elsewhere:
        """Return the folder of some values in this one."""
        return replace(self, folder=self.folder / name, values=values)

    def expected(self, name: str) -> float | None:
        """Return None: other values take other times."""
        return None

    def store(self, notebook: Notebook, outcome: Outcome) -> None:
        """Write figures and notebook, whose links find the figures beside it."""
        for name, data in outcome.figures.items():
            replace_file(self.folder / "figures" / name, data, self.folder)
        content = moved_beside_figures(json.loads(outcome.notebook))
        content = set_back(content, self.values, declared(notebook))
        noted = _by_folder(outcome.read)
        content["metadata"][RECORD] = {"made": self._made(notebook, noted), "read": noted}
        replace_file(self.folder / notebook.path.name, normal_form(content), self.folder)
        self._failed(notebook).unlink(missing_ok=True)

    def _made(self, notebook: Notebook, noted: Mapping[str, str]) -> str:
        """Return the digest of what a result is made from."""
        sources = _digest_of(noted, self.sources)
        return sha256(f"{_code(notebook)} {sources} {self.values!r}".encode())

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
            yield replace(project, sources=project.hashed())
    elif output_dir.resolve() in (project.root, project.notebooks, project.figures):
        raise NotebookError(
            f"output_dir must lie apart from the repository's own results, got {output_dir}"
        )
    else:
        yield Elsewhere(folder=output_dir, sources=project.hashed())
