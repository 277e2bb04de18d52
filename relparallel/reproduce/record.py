"""What a run leaves beside its results, so that the next one does only what is needed.

Everything here lies in the ignored folder ``.relparallel/`` of the checkout: one small JSON file per notebook
(the digest of its inputs and of what it left), the lock that keeps a second runner out, files being written,
and notebooks that failed. A fresh clone has none of it and so executes everything. Standard library only.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .notebook import Notebook, code_digest, normal_form, outputs_digest, sha256

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

    def inputs_digest(self, notebook: Notebook, sources: str) -> str:
        """Return the digest of everything the notebook's result depends on."""
        return sha256(f"{sources} {code_digest(notebook.content)}".encode())

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

    def is_current(self, notebook: Notebook, sources: str) -> bool:
        """Tell whether running the notebook again would change nothing."""
        record = self.record(notebook.name)
        return (
            record is not None
            and record.inputs == self.inputs_digest(notebook, sources)
            and record.outputs == outputs_digest(notebook.content)
            and notebook.raw == normal_form(notebook.content)
            and all((self.figures / name).is_file() for name in record.figures)
            and all(sha256((self.figures / f).read_bytes()) == old for f, old in record.figures.items())
        )

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
