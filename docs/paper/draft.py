"""The paper as pages for Sphinx: docs/paper/*.md with numbers, figures and tables of notebooks.

``{43.kept_4}`` is what a cell of notebook 43 with the tag ``result`` prints as ``kept_4 = ...``;
lines ``{figure 43-zero}`` and ``{table 45-joint}`` are a figure and a table of a notebook.
``python docs/paper/draft.py`` prints the numbers of notebooks whose figures have no PDF here.
"""

import re
import sys
from collections.abc import Mapping
from functools import cache
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pandas as pd
import yaml
from bs4 import BeautifulSoup
from captions import ROOT, captions
from sphinx.application import Sphinx

from reproduce.notebook import read, results

CHOICE: Final[Mapping[str, Any]] = yaml.safe_load((ROOT / "data" / "paper.yml").read_text("utf-8"))
VALUE: Final = re.compile(r"\{(\d\d)\.(\w+)\}")
FIGURE: Final = re.compile(r"^\{figure ([\w-]+)\}$", re.M)
TABLE: Final = re.compile(r"^\{table ([\w-]+)\}$", re.M)


def table_rows(shown: str) -> tuple[list[list[str]], int]:
    """Rows of an HTML table, and how many of them are heads.

    A cell over several rows or columns is blank in all but the first.
    """
    table, rows = BeautifulSoup(shown, "html.parser"), list[list[str]]()
    below: dict[int, int] = {}  # rows that the cell above still covers, by column
    for line in table("tr"):
        row: list[str] = []
        for cell in line(["th", "td"]):
            while below.get(len(row), 0):
                below[len(row)] -= 1
                row.append("")
            below[len(row)] = int(cell.get("rowspan") or 1) - 1
            row += [cell.get_text(strip=True), *[""] * (int(cell.get("colspan") or 1) - 1)]
        rows.append(row)
    return rows, len(table.select("thead tr"))


@cache
def cells(number: str) -> list[dict[str, Any]]:
    """Cells of the notebook of that number."""
    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    return list(read(path).content["cells"])


def filled(said: str) -> str:
    """Text with the values that notebooks print in place of their names; units stay with numbers."""

    def value(found: re.Match[str]) -> str:
        number, name = found.groups()
        known = results(cells(number))
        if name not in known:
            raise ValueError(f"no cell with the tag result of notebook {number} prints {name}")
        return known[name]

    return VALUE.sub(value, said).replace(" %", "\u00a0%")


def figure(name: str, chinese: bool = False) -> str:
    """A figure with the caption that its notebook gives it."""
    shown = captions(cells(name[:2]))[name]
    return (
        f"```{{figure}} /figures/{name}.*\n:name: figure-{name}{'-zh' * chinese}\n:width: 92%\n\n"
        f"{shown.chinese if chinese else shown.english}\n```"
    )


def table(
    name: str, caption: str, columns: Mapping[str, str] | None = None, needed: str = ""
) -> str:
    """A table that a cell with the tag ``table:`` shows, or some of its columns, renamed.

    Rows without a value in the ``needed`` column are left out.
    """
    number, _, tag = name.partition("-")
    (cell,) = [one for one in cells(number) if f"table:{tag}" in one["metadata"].get("tags", ())]
    shown = [o["data"]["text/html"] for o in cell["outputs"] if "text/html" in o.get("data", ())]
    rows, heads = table_rows("".join(shown[-1]))
    for above, row in pairwise(rows[heads:]):
        row[0] = row[0] or above[0]
    head = [" ".join(filter(None, column)) for column in zip(*rows[:heads], strict=True)]
    named = columns or {column: column for column in head}
    kept = [head.index(column) for column in named]
    asked = head.index(needed) if needed else kept[0]
    grid = [[row[k] for k in kept] for row in rows[heads:] if row[asked] or not needed]
    drawn = [list(named.values()), ["---"] * len(kept), *grid]
    lines = "\n".join(f"| {' | '.join(line)} |" for line in drawn)
    return f"```{{table}} {caption}\n:name: table-{name}\n:widths: auto\n\n{lines}\n```"


def artefact() -> str:
    """A table of the notebooks that draw the figures, how long they run, and what they read."""
    first = itemgetter(slice(2))  # the number of its notebook
    timed = pd.read_csv(ROOT / "data" / "benchmarks" / "notebooks.csv").set_index("notebook")
    rows = ["| figures | notebook | minutes | reads |", "| --- | --- | --- | --- |"]
    for number, names in groupby(sorted(chosen(), key=first), first):
        (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
        refer = ", ".join(f"{{numref}}`figure-{name}`" for name in names)
        minutes = timed.loc[path.stem, "seconds"] / 60
        rows.append(f"| {refer} | `{path.stem}` | {minutes:.1f} | {CHOICE['needs'][number]} |")
    rows.append(
        f"| all of the collection | {len(timed)} notebooks | {timed['seconds'].sum() / 60:.0f} | |"
    )
    lines = "\n".join(rows)
    return (
        f"```{{table}} {CHOICE['artefact']}\n:name: table-artefact\n:widths: auto\n\n{lines}\n```"
    )


def composed(page: str) -> str:
    """A page of the paper with its numbers, figures and tables; all figures in Chinese for {figures}."""
    text = (Path(__file__).parent / f"{page}.md").read_text("utf-8")
    text = text.replace("{figures}", "\n\n".join(figure(name, chinese=True) for name in chosen()))
    text = FIGURE.sub(lambda found: figure(found[1]), text)
    text = TABLE.sub(lambda found: table(found[1], **CHOICE["tables"][found[1]]), text)
    return filled(text.replace("{artefact}", artefact()))


def chosen() -> list[str]:
    """Names of the figures of the paper."""
    return FIGURE.findall((Path(__file__).parent / "paper.md").read_text("utf-8"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill the pages of the build."""

    def fill(app: Sphinx, name: str, source: list[str]) -> None:
        source[0] = composed(Path(name).name)

    app.connect("source-read", fill)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    missing = [name for name in chosen() if not (ROOT / "figures" / f"{name}.pdf").exists()]
    sys.stdout.write(" ".join(sorted({name[:2] for name in missing})))
