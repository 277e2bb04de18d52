"""HTML tables as LaTeX, and tables for a terminal. Imports no other library."""

import re
import shutil
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from textwrap import fill
from typing import Final

_TOKENS: Final = re.compile(r"[#%&_{}~^\\$<>|]|[^\x00-\x7f]")
_SPECIAL: Final = {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "…": r"\dots{}",
    "“": "``",
    "”": "''",
    "×": r"\(\times\)",
    "·": r"\(\cdot\)",
    "→": r"\(\to\)",
    "µ": r"\(\mu\)",
    "±": r"\(\pm\)",
    "≥": r"\(\ge\)",
    "≤": r"\(\le\)",
    "√": r"\(\surd\)",
    "°": r"\(^\circ\)",
    "−": r"\(-\)",
    "⁻": r"\(^-\)",
    "ö": r"\"o",
    "λ": r"\(\lambda\)",
    **{digit: rf"\(^{k}\)" for k, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}
_WIDE: Final = 26  # characters from which a column shares the room that the others leave
_CHARACTER: Final = 0.0085  # of the line, that a character takes


def _escaped(text: str) -> str:
    """Text for LaTeX; letters that it does not know are left as they are."""

    def put(found: re.Match[str]) -> str:
        sign = found[0]
        return _SPECIAL.get(sign, f"\\{sign}" if sign.isascii() else sign)

    return _TOKENS.sub(put, text)


class _Table(HTMLParser):
    """Rows of the one table of a text; a cell over several rows is blank in all but the first."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.heads, self.open = 0, False
        self.below: dict[int, int] = {}  # rows that the cell above still covers, by column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            row, given = self.rows[-1], dict(attrs)
            while self.below.get(len(row), 0):
                self.below[len(row)] -= 1
                row.append("")
            self.below[len(row)] = int(given.get("rowspan") or 1) - 1
            row += [""] * int(given.get("colspan") or 1)
            self.open, self.place = True, len(row) - int(given.get("colspan") or 1)

    def handle_endtag(self, tag: str) -> None:
        self.open = self.open and tag not in ("th", "td")
        self.heads = len(self.rows) if tag == "thead" else self.heads

    def handle_data(self, data: str) -> None:
        if self.open:
            self.rows[-1][self.place] += data


def table_rows(shown: str) -> tuple[list[list[str]], int]:
    """Rows of an HTML table, and how many of them are heads."""
    parser = _Table()
    parser.feed(re.sub(r"<style.*?</style>", "", shown, flags=re.S))
    return [[cell.strip() for cell in row] for row in parser.rows], parser.heads


def latex_table(shown: str) -> str:
    """HTML table of a notebook as ``longtable``; numbers to the right, long texts share room."""
    rows, heads = table_rows(shown)
    lines = [" & ".join(map(_escaped, row)) + r" \\" for row in rows]
    widths, sides, long = [], [], []
    for column in zip(*rows, strict=True):
        head, body = " ".join(column[:heads]), column[heads:]
        most = max(map(len, body))
        long.append(most if most >= _WIDE else 0)
        widths.append(
            0.0 if long[-1] else _CHARACTER * max(most, *map(len, head.split() or [""]), 1) + 0.004
        )
        numeric = all(re.fullmatch(r"[-+−\d.,e%× ]*", cell) for cell in body)
        sides.append("left" if numeric else "right")
    line = max(1 - 0.012 * len(widths), 0.2)
    least = min(0.1 * sum(map(bool, long)), line / 2)  # what long texts get even among many numbers
    narrow = min(1.0, (line - least) / sum(widths)) if sum(widths) else 1.0
    room = line - narrow * sum(widths)
    widths = [
        narrow * width or room * most / sum(long) for width, most in zip(widths, long, strict=True)
    ]
    kinds = "".join(
        rf">{{\ragged{side}\arraybackslash}}p{{{width:.3f}\linewidth}}"
        for side, width in zip(sides, widths, strict=True)
    )
    lines = [
        r"\toprule",
        *lines[:heads],
        r"\midrule",
        r"\endhead",
        *lines[heads:],
        r"\bottomrule",
    ]
    return "\n".join(
        [rf"{{\scriptsize\begin{{longtable}}{{{kinds}}}", *lines, r"\end{longtable}}", ""]
    )


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
