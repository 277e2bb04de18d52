r"""A skeleton of the paper: its sections are the notebooks, with their answers, figures, tables and sources.

``figures/paper.tex`` and ``figures/tables/*.tex`` are written from the notebooks as they are stored
and from ``data/literature.csv``, so nothing is computed here. Only the standard library is
imported.
"""

import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from relparallel._latex import latex, latex_table

from .notebook import PARTS, Notebook, joined, tags
from .record import Project, replace_file

SECTIONS: Final = {
    1: "Network reliability",
    2: "Data-centre networks",
    3: "Training clusters",
    4: "Reliability of parallel training",
}
"""Notebooks 11 to 20 belong to the first, 21 to 30 to the second, and so on."""
TABLE: Final = "table:"  # tag of a cell whose table the paper shows, before the name of the table

_SAVED: Final = re.compile(r'\bsave\([^"\n]*"([\w-]+)"\)')
_FINDING: Final = re.compile(r"^\*\*(?:Finding|Result)\.?\*\*\s*(.+)", re.S)


def paper(
    notebooks: Sequence[Notebook], sources: Sequence[Mapping[str, str]], saved: Collection[str] = ()
) -> dict[str, str]:
    """Text of the skeleton and its tables by path; tables that cells have ``saved`` are named."""
    by_number = {one.name[:2]: one for one in notebooks}
    tables = {
        name: latex_table(_shown(cell))
        for one in notebooks
        for cell in one.content["cells"]
        for name in _chosen(one, cell)
    }
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


def _chosen(notebook: Notebook, cell: dict[str, Any]) -> list[str]:
    """Names of the tables of the paper that a cell shows, by its tags."""
    return [
        f"{notebook.name[:2]}-{tag.removeprefix(TABLE)}"
        for tag in tags(cell)
        if tag.startswith(TABLE)
    ]


def _shown(cell: Mapping[str, Any]) -> str:
    """HTML of the last table that a cell shows."""
    return joined(
        [o["data"]["text/html"] for o in cell["outputs"] if "text/html" in o.get("data", {})][-1]
    )


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
        parts += [
            "\n\\appendix\n\\section{Computed and published numbers}",
            *_exhibits(first, tables),
        ]
    frame = (PARTS / "paper.tex").read_text("utf-8")
    filled = {"TITLE": title, "ABSTRACT": abstract, "BODY": "\n".join(parts)}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filled[found[1]], frame)


def _section(
    notebook: Notebook, sources: Sequence[Mapping[str, str]], tables: Collection[str]
) -> Iterator[str]:
    """Title, question, answer, a sentence per source, then the figures and tables in order."""
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
    """Every figure that the notebook saves, with its finding, and every table chosen from it."""
    cells = notebook.content["cells"]
    for place, cell in enumerate(cells):
        names = _SAVED.findall(joined(cell["source"])) if cell["cell_type"] == "code" else []
        for name in [*names, *_chosen(notebook, cell)]:
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
    bare = re.sub(
        r"^#+ |\*\*(.*?)\*\*|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or m[2] or "", text, flags=re.M
    )
    return " ".join(re.split(r"(?<=[.。])\s+", bare.replace("\n", " ").strip())[:2])
