"""What a kernel does with the code cells of a notebook, in the process of a test."""

import ast
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from legible import flaws
from reproduce.notebook import Notebook


def run_quickly(notebook: Notebook, folder: Path, monkeypatch) -> dict[str, list[str]]:
    """Run all cells in quick mode; say of each figure what a reader would stumble over.

    Files named as the figures, without drawings, go to a folder.
    """
    found = {}

    def note(fig: Figure, path: Path, **options) -> None:
        path.write_text(options["format"])
        if options["format"] == "svg":
            found[path.name.split(".")[1]] = flaws(fig)

    monkeypatch.chdir(notebook.path.parent)
    monkeypatch.setenv("RELPARALLEL_FIGURES", str(folder))
    monkeypatch.setattr(Figure, "savefig", note)
    namespace = {
        "__name__": "__main__",
        "display": lambda *values: [str(value) for value in values],
    }
    code = [cell for cell in notebook.content["cells"] if cell["cell_type"] == "code"]
    with mpl.rc_context(), pd.option_context("display.max_rows", 60, "display.max_colwidth", 50):
        for count, cell in enumerate(code, 1):
            _run("".join(cell["source"]), f"{notebook.name}, code cell {count}", namespace)
            namespace["quick"] = True
            plt.close("all")
    return found


def _run(source: str, name: str, namespace: dict) -> None:
    """Execute a cell, and show the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
        getattr(value, "_repr_html_", value.__repr__)()
