r"""A skeleton of the paper: its sections are the notebooks, with their answers, figures, tables and sources.

``figures/paper.tex`` and ``figures/tables/*.tex`` are written from the notebooks as they are stored and from
``data/literature.csv``, so nothing is computed here. Only the standard library is imported.
"""

import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from relparallel._latex import latex, latex_table

from .notebook import Notebook, joined
from .page import PARTS
from .record import Project, replace_file

SECTIONS: Final = {
    1: "Network reliability", 2: "Data-centre networks", 3: "Training clusters",
    4: "Reliability of parallel training",
}  # fmt: skip
"""Notebooks 11 to 20 belong to the first, 21 to 30 to the second, and so on."""
TABLES: Final = {
    "00-ledger": "cell-05", "00-discrepancies": "cell-07", "12-paradigms": "decided-more",
    "22-designs": "cell-15", "33-scoreboard": "cell-14", "35-literature": "cell-04", "42-recovery": "cell-19",
    "43-joint": "cell-30",
}  # fmt: skip
"""Tables of the paper, named unlike figures: the cell, of the notebook with that number, that shows each."""

_SAVED: Final = re.compile(r'\bsave\([^"\n]*"([\w-]+)"\)')
_FINDING: Final = re.compile(r"^\*\*(?:Finding|Result)\.?\*\*\s*(.+)", re.S)


def paper(
    notebooks: Sequence[Notebook], sources: Sequence[Mapping[str, str]], saved: Collection[str] = ()
) -> dict[str, str]:
    """Text of the skeleton and of its tables by their paths; tables that cells have ``saved`` are named."""
    by_number = {one.name[:2]: one for one in notebooks}
    shown = {
        name: _shown(by_number[name[:2]], cell) for name, cell in TABLES.items() if name[:2] in by_number
    }
    tables = {name: latex_table(found) for name, found in shown.items() if found}
    skeleton = _paper(by_number, sources, {*tables, *saved})
    return {f"tables/{name}.tex": text for name, text in tables.items()} | {"paper.tex": skeleton}


def write_paper(project: Project, notebooks: Sequence[Notebook]) -> None:
    """Write the skeleton and its tables where they differ from what lies there."""
    literature = project.root / "data" / "literature.csv"
    if literature.exists():
        saved = {path.stem for path in (project.figures / "tables").glob("*.tex")}
        with literature.open(newline="", encoding="utf-8") as file:
            texts = paper(notebooks, list(csv.DictReader(file)), saved)
        for name, text in texts.items():
            path = project.figures / name
            if not path.exists() or path.read_bytes() != text.encode():
                replace_file(path, text.encode(), project.staging)


def _shown(notebook: Notebook, identity: str) -> str:
    """HTML of the last table that a cell shows; empty where there is none."""
    outputs = (c.get("outputs", ()) for c in notebook.content["cells"] if c["id"] == identity)
    tables = [o["data"]["text/html"] for found in outputs for o in found if "text/html" in o.get("data", {})]
    return joined(tables[-1]) if tables else ""


def _paper(
    notebooks: Mapping[str, Notebook], sources: Sequence[Mapping[str, str]], tables: Collection[str]
) -> str:
    parts = []
    for section, title in SECTIONS.items():
        parts.append(f"\n\\section{{{title}}}")
        for number, notebook in notebooks.items():
            if (int(number) - 1) // 10 == section:
                parts += _section(notebook, [s for s in sources if s["part"] == number], tables)
    title, abstract = "Paper", ""
    if first := notebooks.get("00"):
        title, abstract = _head(first)
        parts += ["\n\\appendix\n\\section{Computed and published numbers}", *_exhibits(first, tables)]
    frame = (PARTS / "paper.tex").read_text("utf-8")
    filled = {"TITLE": title, "ABSTRACT": abstract, "BODY": "\n".join(parts)}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filled[found[1]], frame)


def _section(
    notebook: Notebook, sources: Sequence[Mapping[str, str]], tables: Collection[str]
) -> Iterator[str]:
    """Title, question, answer, one sentence for each source, then the figures and tables in their order."""
    title, said = _head(notebook)
    yield f"\n\\subsection{{{title}}}\n\\label{{sec:{notebook.name[:2]}}}\n{said}\n"
    yield "\n".join(f"{latex(source['english'])}~\\cite{{{source['key']}}}" for source in sources)
    yield from _exhibits(notebook, tables)


def _head(notebook: Notebook) -> tuple[str, str]:
    """Title, and question with answer, of the first cell."""
    title, _, text = joined(notebook.content["cells"][0]["source"]).partition("\n")
    blocks = [block.strip() for block in text.split("\n\n")]
    start = next((k for k, b in enumerate(blocks) if b.startswith("**Question")), 0)
    end = next((k for k, b in enumerate(blocks) if b.startswith("**中文")), start)
    return latex(title.removeprefix("# ")), "\n\n".join(latex(block) for block in blocks[start:end])


def _exhibits(notebook: Notebook, tables: Collection[str]) -> Iterator[str]:
    """Every figure that the notebook saves, with its finding, and every table that is chosen from it."""
    cells, number = notebook.content["cells"], notebook.name[:2]
    chosen = {(name[:2], cell): name for name, cell in TABLES.items()}
    for place, cell in enumerate(cells):
        names = _SAVED.findall(joined(cell["source"])) if cell["cell_type"] == "code" else []
        for name in [*names, *filter(None, [chosen.get((number, cell["id"]))])]:
            yield (
                f"\\input{{tables/{name}}}"
                if name in tables
                else (
                    f"\\begin{{figure}}[htbp]\n\\centering\\includegraphics{{{name}.pdf}}\n"
                    f"\\caption{{{latex(caption(cells, place))}}}\n\\label{{fig:{name}}}\n\\end{{figure}}"
                )
            )
    yield "\\clearpage"


def caption(cells: Sequence[Mapping[str, Any]], place: int) -> str:
    """What a cell shows, in words: the finding after it, else the heading or sentence before it."""
    after = next((c for c in cells[place + 1 : place + 3] if c["cell_type"] == "markdown"), None)
    found = _FINDING.match(joined(after["source"])) if after else None
    if found:
        return _plain(found[1].split("\n\n")[0])
    before = [c for c in cells[:place] if c["cell_type"] == "markdown"]
    said = _plain(joined(before[-1]["source"]).strip().split("\n\n")[-1]) if before else "Figure"
    title = _plain(joined(cells[0]["source"]).split("\n")[0])
    return said if len(said.split()) > 5 else f"{said}. {title}"


def _plain(text: str) -> str:
    """At most two sentences of a text, without headings and links."""
    bare = re.sub(r"^#+ |\*\*(.*?)\*\*|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or m[2] or "", text, flags=re.M)
    return " ".join(re.split(r"(?<=[.。])\s+", bare.replace("\n", " ").strip())[:2])
