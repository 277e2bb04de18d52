"""What a kernel does with the code cells of a notebook, in the process of a test."""

import ast
import io
import re
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from legible import flaws
from reproduce.notebook import Notebook

NO_NUMBER = re.compile(r"\b(?:nan|NaN|inf)\b|∞")
LEAST = 0.12  # share of a figure's width and height that a panel has at least


@dataclass
class Cells:
    """The code cells of a notebook, run in quick mode; figures are looked at, not drawn."""

    notebook: Notebook
    found: dict[str, list[str]] = field(default_factory=dict)  # flaws by figure
    said: dict[int, str] = field(default_factory=dict)  # what is printed, by cell
    titles: dict[str, list[str]] = field(default_factory=dict)  # by figure
    names: dict[str, Any] = field(default_factory=dict)  # what the last run left

    @property
    def code(self) -> list[str]:
        """Sources."""
        cells = self.notebook.content["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]

    def run(self, folder: Path, monkeypatch, **values: Any) -> "Cells":
        """Run all cells, or, with other values of parameters, those that such a value reaches."""

        def note(fig: Figure, path: Path, **options) -> None:
            Path(path).write_text(options["format"])
            if options["format"] == "svg":
                name = Path(path).name.split(".")[1]
                after.found[name] = flaws(fig) + [
                    "a panel has collapsed"
                    for ax in fig.axes
                    if min(ax.get_position().size) < LEAST and ax.get_label() != "<colorbar>"
                ]
                after.titles[name] = [
                    ax.get_title(loc=side)
                    for ax in fig.axes
                    for side in ("left", "center")
                    if ax.get_title(loc=side)
                ]

        monkeypatch.chdir(self.notebook.path.parent)
        monkeypatch.setenv("RELPARALLEL_FIGURES", str(folder))
        monkeypatch.setattr(Figure, "savefig", note)
        fresh = {"__name__": "__main__", "display": _display}
        after = Cells(self.notebook, names=(self.names or fresh) | values)
        changed = {*values}
        with (
            mpl.rc_context(),
            pd.option_context("display.max_rows", 60, "display.max_colwidth", 50),
        ):
            for count, source in enumerate(self.code):
                tree = ast.parse(source)
                if values and (count == 0 or not changed & _names(tree, ast.Load)):
                    continue
                changed |= _names(tree, ast.Store)
                with redirect_stdout(io.StringIO()) as text:
                    _run(tree, f"{self.notebook.name}, code cell {count + 1}", after.names)
                after.said[count] = text.getvalue()
                after.names["quick"] = True
                plt.close("all")
        return after

    def impossible(self, before: "Cells") -> list[str]:
        """What is printed here and is no number, where a number was printed before."""
        return [
            f"code cell {count + 1} prints {found[0]}"
            for count, text in self.said.items()
            if (found := NO_NUMBER.search(text)) and not NO_NUMBER.search(before.said[count])
        ]


def _names(tree: ast.AST, kind: type) -> set[str]:
    """Names that are read, or those that are given a value, also a part of theirs."""
    nodes = list(ast.walk(tree))
    found = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, kind)}
    if kind is ast.Store:
        found |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        parts = [n for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
        found |= {part.value.id for part in parts if isinstance(part.value, ast.Name)}
    return found


def _display(*values: Any) -> None:
    for value in values:
        sys.stdout.write(f"{getattr(value, '_repr_html_', value.__repr__)()}\n")


def _run(tree: ast.Module, name: str, namespace: dict) -> None:
    """Execute a cell, and show the value of its last line."""
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
        if value is not None:
            _display(value)
