"""The paper as one page for Sphinx, from the notebooks as they are stored and data/paper.yml.

``python docs/paper/draft.py`` prints the numbers of notebooks whose figures have no PDF here.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any, Final

import pandas as pd
import yaml
from captions import CAPTION, CONCLUSION, PICTURE, ROOT, captions, text
from reading import WORDS, work
from sphinx.application import Sphinx

CHOICE: Final[Mapping[str, Any]] = yaml.safe_load((ROOT / "data" / "paper.yml").read_text("utf-8"))
NOTEBOOK: Final = re.compile(r"(?<!notebook )(?<!notebooks )(?<! to )(?<! and )\[(\d\d)\]\([^)]*\)")
LINK: Final = re.compile(r"(?<!!)\[([^]]+)\]\([^)]*\)")
SENTENCE: Final = re.compile(r"(?<=[.:]) (?=[A-Z$])")
TOP: Final = re.compile(r" \(the figure at the top\)")
LEAD: Final = re.compile(r"^\*\*[A-Z][\w ]+\.\*\* ", re.M)  # Method, Finding and the like


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


@cache
def cells(number: str) -> list[dict[str, Any]]:
    """Cells of the notebook of that number."""
    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    return list(json.loads(path.read_text("utf-8"))["cells"])


def under(place: str) -> str:
    """Text under a heading, down to the next one: ``42/Limitations``, without figures."""
    number, _, heading = place.partition("/")
    whole = "\n\n".join(text(cell) for cell in cells(number) if cell["cell_type"] == "markdown")
    found = re.search(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##+ |\Z)", whole, re.M | re.S)
    if found is None:
        raise ValueError(f"notebook {number} has no heading {heading!r}")
    bare = re.sub(r"<details>.*?</details>", "", found[1], flags=re.S).strip()
    for pattern in (PICTURE, CAPTION, CONCLUSION, LEAD):
        bare = pattern.sub("", bare)
    return "\n\n".join(map(for_readers, bare.split("\n\n")))


def for_readers(paragraph: str) -> str:
    """Prose without the sentences that name code."""
    if re.match(r"[|$]|- |\d+\. ", paragraph):
        return paragraph
    return " ".join(one for one in SENTENCE.split(paragraph) if "`" not in one)


def cited(said: str) -> str:
    """Text without links, with citations of works, and of systems where they come first."""
    known = systems()
    words = re.compile(rf"{WORDS.pattern}|\b(?P<system>{'|'.join(known)})\b(?!-)", re.S)

    def cite(found: re.Match[str]) -> str:
        kind, name = found.lastgroup, found[0]
        key = known.pop(name, None) if kind == "system" else None
        if kind in ("title", "work") and (key := work(name)):
            name = name if name.startswith("*") else re.sub(r",? \(?\d{4}$", "", name)
        return f"{name} {{cite}}`{key}`" if key else name

    return words.sub(cite, LINK.sub(r"\1", NOTEBOOK.sub(r"notebook \1", said)))


def literature() -> pd.DataFrame:
    """What was read; the ``name`` of a system begins its title."""
    read = pd.read_csv(ROOT / "data" / "literature.csv", keep_default_na=False)
    return read.assign(name=read["title"].str.extract(r"^([A-Z][\w-]+)(?=:)")[0])


def systems() -> dict[str, str]:
    """Key of the work of each system that shares its name with no other."""
    named = literature().dropna(subset="name")
    alone = named[~named["name"].str.lower().duplicated(keep=False)]
    return dict(zip(alone["name"], alone["key"], strict=True))


def works(answers: Sequence[str]) -> str:
    """A sentence for each work that gives one of these answers to what failures do."""
    read = literature()
    read["name"] = read["name"].fillna(read["title"])
    lines = [
        f"- {row.name}: {row.english}"
        for answer in answers
        for row in read[read["under_failures"] == answer].itertuples(index=False)
    ]
    return "\n".join(lines)


def figure(name: str) -> str:
    """A figure with its caption, after the finding that refers to it."""
    shown = captions(cells(name[:2]))[name]
    refer = f"{{numref}}`figure-{name}`"
    said = f"{TOP.sub('', shown.finding)} ({refer})" if shown.finding else f"See {refer}."
    return (
        f"{said}\n\n```{{figure}} /figures/{name}.*\n:name: figure-{name}\n:width: 100%\n\n"
        f"{shown.english}\n```"
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


def pieces() -> Iterator[str]:
    """The paper, piece by piece."""
    latex = "```{{raw}} latex\n\\{}{{abstract}}\n```"
    yield f"# {CHOICE['title']}"
    yield "\n\n".join([latex.format("begin"), under(CHOICE["abstract"]), latex.format("end")])
    for part in CHOICE["parts"]:
        for kind, given in part.items():
            match kind:
                case "section":
                    yield f"## {given}"
                case "subsection":
                    yield f"### {given}"
                case "say":
                    yield given
                case "text":
                    yield from map(under, given)
                case "figures":
                    yield from map(figure, given)
                case "works":
                    yield works(given)
                case "table":
                    yield table(**given)
                case _:
                    raise ValueError(
                        f"paper.yml: {kind!r} is none of section, text, works, figures, table"
                    )
    yield "```{bibliography}\n```"


def chosen() -> list[str]:
    """Names of the figures of the paper."""
    return [name for part in CHOICE["parts"] for name in part.get("figures", ())]


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill the one page of the build."""

    def fill(app: Sphinx, name: str, source: list[str]) -> None:
        source[0] = cited("\n\n".join(pieces()))

    app.connect("source-read", fill)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    missing = [name for name in chosen() if not (ROOT / "figures" / f"{name}.pdf").exists()]
    sys.stdout.write(" ".join(sorted({name[:2] for name in missing})))
