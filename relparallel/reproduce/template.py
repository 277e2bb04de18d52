"""A new notebook with the cells that every notebook of the collection begins and ends with."""

import re
from pathlib import Path
from typing import Any, Final

from .notebook import PARAMETERS_TAG, NotebookError, normal_form
from .record import checkout

_FIRST: Final = """\
# What is asked here?

**Question.** One paragraph: what is to be decided, and why it matters.

**Answer.** Two sentences with the numbers that answer it.

**中文摘要。** 用两句话回答这个问题。

![What the figure shows]({figure})"""
_SETUP: Final = """\
import numpy as np

import relparallel as rp
from relparallel.plotting import figure, save"""
_FIGURE: Final = """\
x = np.linspace(0, 1, points)
fig, ax = figure(width="single")
ax.plot(x, x**2)
ax.set(xlabel="what varies [unit]", ylabel="what follows [unit]")
save(fig, "{name}")"""
_CLAIMS: Final = """\
## The ledger beside computed numbers
Each row has a claim in `relparallel/claims/` that computes it again; the origin says whose number it is."""
_LEDGER: Final = """\
ledger = rp.ledger.ledger("{topic}")
ledger.loc[ledger["status"] == "reproduced", ["id", "origin", "value", "computed", "error"]].head()"""
_LAST: Final = """\
## Exercises
1. Change a parameter until the answer flips. At which value?

## References
- Author, *Title*, venue, year."""


def new_notebook(name: str, root: Path | None) -> Path:
    """Write ``notebooks/NAME.ipynb``, which runs as it is; refuse a number that is taken."""
    folder = checkout(root) / "notebooks"
    number = name.partition("_")[0]
    if not re.fullmatch(r"\d\d_[a-z0-9]+(_[a-z0-9]+)*", name):
        raise NotebookError(f"NAME must be two digits and words, such as 44_my_question, got {name!r}")
    if taken := sorted(path.stem for path in folder.glob(f"{number}_*.ipynb")):
        raise NotebookError(f"NAME must begin with a free number, got {name!r} beside {taken[0]}")
    figure = name.replace("_", "-")
    cells = [
        _cell("markdown", _FIRST.format(figure=f"../figures/{figure}.svg")),
        _cell("code", "points = 50  # of the curve\nquick = False  # fewer points", tags=[PARAMETERS_TAG]),
        _cell("code", _SETUP),
        _cell("markdown", "## The model\nFormulas, with the source of each."),
        _cell("code", _FIGURE.format(name=figure)),
        _cell("markdown", _CLAIMS),
        _cell("code", _LEDGER.format(topic="models")),
        _cell("markdown", _LAST),
    ]
    cells = [cell | {"id": f"cell-{i:02d}"} for i, cell in enumerate(cells)]
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = folder / f"{name}.ipynb"
    path.write_bytes(normal_form(content))
    return path


def _cell(kind: str, source: str, **metadata: Any) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": metadata, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})
