"""Where results go: in place, or to a folder that leaves the repository alone. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .notebook import Notebook, NotebookError, moved_beside_figures, normal_form, outputs_digest, sha256
from .record import Project, Record, replace_file

if TYPE_CHECKING:
    from .execute import Outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class InPlace:
    """The checkout itself: notebooks and figures are replaced where they lie."""

    project: Project
    sources: str

    def is_current(self, notebook: Notebook) -> bool:
        """Tell whether the record says that inputs and results are those of the last run."""
        return self.project.is_current(notebook, self.sources)

    def expected(self, name: str) -> float | None:
        """Return how long the notebook took the last time [s]."""
        record = self.project.record(name)
        return record.seconds if record else None

    def store(self, notebook: Notebook, outcome: Outcome) -> None:
        """Put figures, notebook and record in their places, each in one step and the record last.

        A kill on the way leaves a record that does not match, so that the next run begins again. A result
        that a later edit has overtaken is refused.
        """
        if not notebook.path.exists() or notebook.path.read_bytes() != notebook.raw:
            raise NotebookError(
                "the notebook was edited during the run: the edit is kept, the result dropped"
            )
        if self.project.sources_digest() != self.sources:
            raise NotebookError("the package or data changed during the run: the result was dropped")
        project, content = self.project, json.loads(outcome.notebook)
        for name in outcome.figures:  # two writers would replace it for ever
            if other := project.writer_of(name, other_than=notebook.name):
                raise NotebookError(f"figure {name} is also written by {other}; each needs a name of its own")
        before = project.record(notebook.name)
        for name, data in outcome.figures.items():
            replace_file(project.figures / name, data, project.staging)
        replace_file(notebook.path, normal_form(content), project.staging)
        for name in set(before.figures if before else ()) - set(outcome.figures):
            (project.figures / name).unlink(missing_ok=True)
        record = Record(
            inputs=project.inputs_digest(notebook, self.sources),
            outputs=outputs_digest(content),
            figures={name: sha256(data) for name, data in sorted(outcome.figures.items())},
            seconds=round(outcome.seconds, 1),
        )
        project.keep(notebook.name, record)
        (project.failed / notebook.path.name).unlink(missing_ok=True)

    def keep_failed(self, notebook: Notebook, executed: bytes) -> Path:
        """Keep a failed notebook in the ignored folder and return where."""
        path = self.project.failed / notebook.path.name
        replace_file(path, executed, self.project.staging)
        return path


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
def opened(project: Project, output_dir: Path | None) -> Iterator[InPlace | Elsewhere]:
    """Give the store for ``output_dir``, or for the checkout itself, which is locked meanwhile."""
    if output_dir is None:
        with project.locked():
            yield InPlace(project=project, sources=project.sources_digest())
    elif output_dir.resolve() in (project.root, project.notebooks, project.figures):
        raise NotebookError(f"output_dir must lie apart from the repository's own results, got {output_dir}")
    else:
        yield Elsewhere(folder=output_dir)
