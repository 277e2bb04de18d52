"""A checkout of a few tiny notebooks, and an executor that answers without a kernel."""

import io
import json
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from pathlib import Path

import psutil
import pytest

from reproduce import run_figures
from reproduce.execute import Outcome


class Toy:
    """A checkout in a temporary folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("notebooks", "relparallel", "data"):
            (root / folder).mkdir()
        (root / "relparallel" / "module.py").write_text("x = 1\n")
        (root / "data" / "facts.csv").write_text("a,b\n1,2\n")
        self.lines = ""

    def write(self, name: str, *sources: str, parameters: str = "quick = False") -> Path:
        cells = [{"cell_type": "markdown", "id": "title", "metadata": {}, "source": [f"# {name}"]}]
        for i, source in enumerate((parameters, *sources)):
            cells.append(
                {
                    "cell_type": "code",
                    "execution_count": None,
                    "id": f"code-{i}",
                    "metadata": {} if i else {"tags": ["parameters"]},
                    "outputs": [],
                    "source": source.splitlines(keepends=True),
                }
            )
        path = self.root / "notebooks" / f"{name}.ipynb"
        path.write_text(
            json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        )
        return path

    def run(self, *names: str, **options):
        stream = io.StringIO()
        try:
            return run_figures(names, root=self.root, stream=stream, **options)
        finally:
            self.lines = stream.getvalue()

    def files(self, *folders: str) -> dict[str, bytes]:
        """Return every file (of some folders) with its bytes."""
        tops = [self.root / f for f in folders] or [self.root]
        found = [p for top in tops for p in top.rglob("*") if p.is_file()]
        return {p.relative_to(self.root).as_posix(): p.read_bytes() for p in found}

    def processes(self) -> list[psutil.Process]:
        """Return its runs' processes: kernels work in it, and a runner is called with its name."""
        found, root = psutil.process_iter(["cwd", "cmdline"]), str(self.root)
        return [
            p for p in found if root in (p.info["cwd"] or "") or root in (p.info["cmdline"] or ())
        ]

    def results(self) -> dict[str, bytes]:
        return self.files("notebooks", "figures")


class Pretend(Executor):
    """Answers at once: each code cell prints ``answer`` and the notebook draws one figure of it."""

    def __init__(self, answer: str = "42") -> None:
        self.answer, self.ran = answer, []
        self.figures, self.meanwhile = None, lambda task: None
        self.read = {}  # by notebook, besides the data

    def submit(self, function, task):
        self.ran.append(task.name)
        self.meanwhile(task)
        content = json.loads(task.raw)
        for count, cell in enumerate((c for c in content["cells"] if c["cell_type"] == "code"), 1):
            cell["execution_count"] = count
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": [self.answer]}]
        drawn = {f"{task.name}.svg": self.answer.encode()} if self.figures is None else self.figures
        future: Future = Future()
        read = ("data/facts.csv", *self.read.get(task.name, ("relparallel/module.py",)))
        answer = {
            "notebook": json.dumps(content).encode(),
            "figures": drawn,
            "read": read,
            "seconds": 0.5,
        }
        future.set_result(Outcome(**answer))
        return future

    def pool(self, workers: int):
        return nullcontext(self)


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path)


@pytest.fixture
def pretend():
    return Pretend()
