"""Stored notebooks as pages: numbered vector figures, links to rows and works, Chinese summaries."""

import json
import re
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final

import nbformat
import yaml
from captions import CAPTION, CONCLUSION, PICTURE, ROOT, captions, saved, text
from pybtex.database import parse_file
from pybtex.plugin import register_plugin
from pybtex.style.formatting.alpha import Style
from pybtex.style.template import Node, field, sentence
from sphinx.application import Sphinx

from relparallel.published import facts, topics

ROW: Final = r"\b[A-Z][A-Z0-9]+(?:-[\w.]+)*-(?:\d+\b|\*)"
WORK: Final = (
    r"\b[A-Z][\w'-]+(?: et al\.| and [A-Z][\w'-]+|(?:, [A-Z][\w'-]+)+)?,? \(?(?:19|20)\d\d\b"
)
# What in Markdown is no prose, titles of works in italics, and what may be linked.
WORDS: Final = re.compile(
    r"(?P<code>`[^`\n]+`)|```.*?```|\$\$.*?\$\$|\$[^$\n]+\$|!?\[[^]]*\]\([^)]*\)|<[^>]*>|\*\*"
    rf"|(?P<title>(?<=, )\*\w[^*\n]+\*)|(?P<row>{ROW})|(?P<work>{WORK})",
    re.S,
)


def read_notebook(stored: str) -> nbformat.NotebookNode:
    """Notebook for Sphinx: its number in the title, vector figures with captions, and links."""
    notebook = nbformat.reads(stored, as_version=4)
    cells, shown = notebook.cells, []
    known, numbers = captions(cells), count(1)
    told = {found["name"] for cell in cells for found in PICTURE.finditer(cell.source)}

    def figure(name: str) -> str:
        return _figure(name, next(numbers), known[name].english)

    for cell in cells:
        shown.append(cell)
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if "image/png" not in one.get("data", ())]
            names = [name for name in saved(cell) if name in known and name not in told]
            shown += [nbformat.v4.new_markdown_cell(figure(name), id=name) for name in names]
        else:
            parts = PICTURE.split(CONCLUSION.sub("", cell.source))
            cell.source = _linked(CAPTION.sub("", parts[0]))
            for name, after in zip(parts[1::4], parts[4::4], strict=True):
                cell.source += f"{figure(name)}\n{_linked(CAPTION.sub('', after))}"
    number = next(name[:2] for cell in cells for name in saved(cell))
    cells[0].source = cells[0].source.replace("# ", f"# {number} · ", 1)
    cells[-1].source = cells[-1].source.rpartition("\n---\n")[0]  # the page has these links itself
    notebook.cells = [cell for cell in shown if cell.source or cell.get("outputs")]
    return notebook


def _figure(name: str, number: int, said: str) -> str:
    """A picture under its number and its words, which also stand for it."""
    return (
        f"```{{figure}} ../figures/{name}.svg\n:name: figure-{name}\n:alt: {_plain(said)}\n\n"
        f"**Figure {name[:2]}.{number}.** {_linked(said)}\n```\n"
    )


def _plain(said: str) -> str:
    return re.sub(r"[*_`#$\\{}]", "", said)


def _linked(said: str) -> str:
    """Markdown whose rows of the ledger and cited works are links."""

    def link(found: re.Match[str]) -> str:
        kind, words = found.lastgroup, found[0]
        if kind in ("code", "row") and (row := _row(words.strip("`"))):
            return f'<a href="../docs/claims.html#{row}">{words}</a>'
        if kind in ("title", "work") and (key := work(words)):
            return f'<a href="../docs/bibliography.html#{key}">{words}</a>'
        return words

    return WORDS.sub(link, said)


@cache
def _rows() -> list[str]:
    return sorted(row for topic in topics() for row in facts(topic))


def _row(words: str) -> str | None:
    """The row of that id, or the first of a family such as ``DALY-*``."""
    family = [row for row in _rows() if words.endswith("*") and row.startswith(words[:-1])]
    return next(iter(family), words if words in _rows() else None)


@cache
def _works() -> list[tuple[str, str, str]]:
    """Key, title, and first author with year of every work, in plain letters."""
    entries = parse_file(ROOT / "data" / "references.bib").entries
    return [
        (
            key,
            _letters(one.fields["title"]),
            _letters(one.persons["author"][0].last_names[-1] + one.fields["year"]),
        )
        for key, one in entries.items()
    ]


def work(words: str) -> str | None:
    """Key of the one work of that name or title, or of that first author and year."""
    said = _letters(words)
    by_whom = _letters(re.split(r"[^\w'-]", words)[0] + words[-4:])
    named = [key for key, *_ in _works() if key.endswith(said)]
    titled = [key for key, title, _ in _works() if said in title]
    written = [key for key, _, author in _works() if author == by_whom]
    found = (named or titled) if words.startswith("*") else written
    return found[0] if len(found) == 1 else None


def _letters(said: str) -> str:
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\\\W", "", said).lower())


class OwnCase(Style):
    """Titles as their authors write them."""

    def format_title(self, e: Any, which_field: str, as_sentence: bool = True) -> Node:
        """Title as a sentence, or as a part of one."""
        return sentence[field(which_field)] if as_sentence else field(which_field)


def _generated(app: Sphinx, name: str, source: list[str]) -> None:
    """Contents behind the front page; the page of Chinese summaries."""
    if name == "README":
        source[0] += "\n```{include} docs/contents.md\n```\n"
    if name == "docs/summaries.zh":
        for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
            app.env.note_dependency(str(path))
            source[0] += _summary(path)


def _summary(path: Path) -> str:
    """Question, summary, and every figure with its caption and finding, in Chinese."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    first = text(cells[0])
    asked = re.search(
        rf"\(notebooks/{path.name}\) \| (.*) \|", (ROOT / "README.zh.md").read_text("utf-8")
    )
    summary = re.search(r"\*\*中文摘要。\*\* (.*)", first)
    question = asked[1] if asked else first.partition("\n")[0]
    said = f"\n## [{path.stem[:2]}](../notebooks/{path.name}) {question}\n\n{summary[1]}\n"
    for name, shown in captions(cells).items():
        picture = f"../figures/{name}.svg\n:alt: {_plain(shown.chinese)}\n:loading: lazy"
        said += f"\n```{{figure}} {picture}\n\n图：{shown.chinese}\n```\n\n{shown.conclusion}\n"
    return said


CHINESE: Final = yaml.safe_load((Path(__file__).parent / "navigation.zh.yml").read_text("utf-8"))
"""Words of the navigation on Chinese pages, beside the questions of notebooks."""


@cache
def _questions() -> dict[str, str]:
    """Chinese questions by the numbers of the notebooks."""
    page = (ROOT / "README.zh.md").read_text("utf-8")
    return dict(re.findall(r"\(notebooks/(\d\d)\w+\.ipynb\) \| (.*) \|", page))


def _language(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Have Chinese pages say that they are, and their navigation speak it."""
    if page.endswith(".zh"):
        context["language"] = "zh-CN"
        english = context["generate_toctree_html"]

        def chinese(found: re.Match[str]) -> str:
            words = found[1].strip()
            if asked := _questions().get(words[:2]):
                return f">{words[:2]} · {asked}<"
            return f">{CHINESE.get(words, words)}<"

        def navigation(*arguments: Any, **options: Any) -> str:
            return re.sub(r">([^<>]*\w[^<>]*)<", chinese, str(english(*arguments, **options)))

        context["generate_toctree_html"] = navigation


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what this module adds to a build."""
    register_plugin("pybtex.style.formatting", "own_case", OwnCase)
    app.connect("source-read", _generated)
    app.connect("html-page-context", _language, priority=900)  # after the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
