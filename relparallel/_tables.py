"""Tables for a terminal and for LaTeX."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pandas as pd

# what pdfLaTeX does not know, or shows as another sign in its usual font
_SIGNS: Final = str.maketrans(
    {
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "×": r"\(\times\)",
        "→": r"\(\to\)",
        "≥": r"\(\ge\)",
        "≤": r"\(\le\)",
        "√": r"\(\surd\)",
        "−": r"\(-\)",
        "⁻": r"\(^-\)",
        "λ": r"\(\lambda\)",
        **{digit: rf"\(^{k}\)" for k, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    }
)


def latex_table(table: pd.DataFrame) -> str:
    """A table as ``longtable`` with ``booktabs`` rules, as wide as the line; six digits."""
    many = table.index.nlevels + table.shape[1]
    latex = table.to_latex(
        longtable=True,
        escape=True,
        multirow=False,
        float_format="{:.6g}".format,
        column_format=rf"p{{{1 / many - 0.012:.3f}\linewidth}}" * many,
    )
    return rf"{{\scriptsize{latex.translate(_SIGNS)}}}"


def terminal_width() -> int:
    """Columns of the terminal; where nobody looks, as many as a wide one has."""
    return shutil.get_terminal_size((120, 24)).columns


def folded(said: str, width: int | None = None, indent: str = "") -> str:
    """A sentence in lines inside a width, that of the terminal where omitted."""
    return fill(said, width or terminal_width(), initial_indent=indent, subsequent_indent=indent)


def text_table(
    heads: Iterable[object], rows: Iterable[Sequence[object]], width: int | None = None
) -> str:
    """Rows under their heads inside a width, by default the terminal's; long cells are wrapped."""
    from rich import box, console, table, text

    cells = [
        [f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows
    ]
    grid = table.Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, head in enumerate(heads):
        numeric = all(re.fullmatch(r"[-+\d.,e]*", row[place]) for row in cells)
        grid.add_column(text.Text(str(head)), justify="right" if numeric else "left")
    for row in cells:
        grid.add_row(*map(text.Text, row))
    terminal = console.Console(width=width or terminal_width(), color_system=None)
    with terminal.capture() as shown:
        terminal.print(grid)
    return "\n".join(line.rstrip() for line in shown.get().splitlines())
