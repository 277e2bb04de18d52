"""Static pages of the collection: notebooks, claims, the scoreboard of predictions, public names.

Formulas are MathML, pictures and style are inside each page, and the search runs over an index in
one script. The what-if page asks for no other file; its script evaluates the formulas of
`training.relative_goodput`, and a test holds the two equal. Building twice gives the same bytes.
"""

import html
import inspect
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

from relparallel._checks import require_instance
from relparallel.parallel import read_strategy
from relparallel.planning import plan
from relparallel.planning.plans import Plan
from relparallel.published import facts, topics
from relparallel.reproduce.page import PARTS, Page
from relparallel.reproduce.paper import caption
from relparallel.reproduce.record import whole_checkout
from relparallel.units import DAY

_MATH: Final = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$(?P<block>.+?)\$\$|(?<![\\\w])\$(?P<line>[^$\n]+?)\$", re.S
)
_COLUMNS: Final = (
    "id",
    "system",
    "quantity",
    "value",
    "computed",
    "unit",
    "tolerance",
    "origin",
    "status",
    "source",
)


Grid = tuple[tuple[str, str, tuple[int, ...]], ...]
GRID: Grid = (
    ("llama3-8b", "h100-80gb-dgx", (64, 512)),
    ("llama3-70b", "h100-80gb-dgx", (512, 2048)),
    ("llama3-405b", "h100-80gb-dgx", (4096, 16384)),
    ("gpt3-175b", "a100-80gb-selene", (1536,)),
    ("llama3-405b", "gb200-186gb-nvl72", (2048, 8192)),
)
"""Models, clusters and numbers of GPUs of which the page knows the best strategies."""
_SEARCH: Final = (
    '<input id="search" type="search" placeholder="search headings and claims" '
    'aria-label="search headings and claims">\n<ul id="hits"></ul>'
)
_SCOREBOARD: Final = """# Scoreboard of predicted step times

Mean absolute errors by source of measured runs. *Blind* was recorded before any of its runs was
fitted; *left out* is predicted today without the source; *calibrated* is no prediction. Between them
stand errors of the others once the median of the source, one random run, or 1, 3 or 5 own runs
are known. [Notebook 39](39_predicting_a_step.ipynb) says how each is found.

## By source

{}

## Other models

As their authors print it, or as we found by running them; beside it, ours on runs of the same source.

{}
"""
_SCRIPTS: Final = '<script src="index.js" defer></script>\n<script src="search.js" defer></script>'


def build_site(folder: str | PathLike[str], root: Path | None) -> list[Path]:
    """Write all pages of a checkout into a folder, which is replaced; return their paths."""
    root = whole_checkout(root)
    target = Path(require_instance((str, PathLike), folder=folder))
    if target.exists() and not (target / "search.js").exists() and any(target.iterdir()):
        raise ValueError(f"folder must be empty or hold an earlier site, got {str(target)!r}")
    known = {row for topic in topics() for row in facts(topic)}
    notebooks = [
        notebook_page(path, known) for path in sorted((root / "notebooks").glob("*.ipynb"))
    ]
    pages = [
        front_page(root / "README.md", "index", notebooks),
        front_page(root / "README.zh.md", "index.zh", notebooks),
        *notebooks,
        claims_page(),
        scoreboard_page(),
        names_page(),
        whatif_page(),
    ]
    frame = (PARTS / "page.html").read_text(encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copy(PARTS / "search.js", target / "search.js")
    left = shutil.ignore_patterns("*.pdf", "*.tex", "tables")
    shutil.copytree(root / "figures", target / "figures", ignore=left)
    index = [
        [page.title, text, f"{page.name}.html#{anchor}"]
        for page in pages
        for text, anchor in page.entries
    ]
    (target / "index.js").write_text(
        f"const INDEX = {json.dumps(index, ensure_ascii=False)};\n", "utf-8"
    )
    written = []
    for page in pages:
        path = target / f"{page.name}.html"
        path.write_text(_framed(frame, page, notebooks), encoding="utf-8")
        written.append(path)
    return written


def _framed(frame: str, page: Page, notebooks: Sequence[Page]) -> str:
    """A page in the frame: contents of the collection and the page, pages before and after it."""
    names = [one.name for one in notebooks]
    place = names.index(page.name) if page.name in names else None
    before = notebooks[place - 1] if place else None
    after = notebooks[place + 1] if place is not None and place + 1 < len(notebooks) else None
    links = "".join(
        f"<li{' class=here' if one is page else ''}>"
        f'<a href="{one.name}.html">{html.escape(_short(one))}</a></li>'
        for one in notebooks
    )
    inside = "".join(
        f'<li><a href="#{anchor}">{html.escape(text)}</a></li>'
        for text, anchor in page.entries[:40]
    )
    steps = "".join(
        f'<a class="{way}" href="{one.name}.html">{arrow} {html.escape(_short(one))}</a>'
        for way, arrow, one in (("before", "←", before), ("after", "→", after))
        if one is not None
    )
    filled = {
        "TITLE": html.escape(page.title),
        "BODY": page.body,
        "NOTEBOOKS": links,
        "STEPS": steps,
        "INSIDE": f"<h2>On this page</h2><ul>{inside}</ul>" if inside else "",
        "LANGUAGE": "zh" if page.name == "index.zh" else "en",
        "STYLE": (PARTS / "style.css").read_text(encoding="utf-8"),
        "SEARCH": "" if page.alone else _SEARCH,
        "SCRIPTS": "" if page.alone else _SCRIPTS,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filled[found[1]], frame)


def _short(page: Page) -> str:
    """Number and name of a notebook."""
    return page.name.replace("_", " ")


def _formulas(text: str) -> str:
    """Markdown with its formulas as MathML; code keeps its dollars."""
    from latex2mathml.converter import convert

    def shown(found: re.Match[str]) -> str:
        if found["block"]:
            return (
                "\n\n<div "
                f"class=formula>{convert(found['block'].strip(), display='block')}</div>\n\n"
            )
        return convert(found["line"]) if found["line"] else found[0]

    return _MATH.sub(shown, text)


def _markdown(text: str) -> str:
    """HTML of a markdown text with formulas."""
    import mistune

    convert = mistune.create_markdown(escape=False, plugins=["table", "strikethrough"])
    return str(convert(_formulas(text)))


def notebook_page(path: Path, known: set[str]) -> Page:
    """Page of a notebook: code folded, figures numbered and described, rows linked to claims."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    number = path.stem.partition("_")[0]
    parts, entries, shown = [], [], 0
    title = path.stem
    for place, cell in enumerate(cells):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            rendered, found = _anchored(_markdown(text))
            entries += found
            title = found[0][0] if found and title == path.stem else title
            parts.append(_linked(rendered, known))
            continue
        parts.append(f"<details><summary>code</summary>{_highlighted(text)}</details>")
        for output in cell.get("outputs", ()):
            picture = "image/png" in output.get("data", {})
            shown += picture
            parts.append(
                _output(output, f"{number}.{shown}", caption(cells, place) if picture else "")
            )
    return Page(name=path.stem, title=title, body="\n".join(parts), entries=tuple(entries))


def _highlighted(code: str) -> str:
    from pygments import formatters, highlight, lexers

    return str(
        highlight(
            code, lexers.get_lexer_by_name("python"), formatters.get_formatter_by_name("html")
        )
    )


def _output(output: Mapping[str, Any], number: str, said: str) -> str:
    """One output of a cell: a picture with its words, a table, or text."""
    data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    if "image/png" in data:
        source = f"data:image/png;base64,{data['image/png'].strip()}"
        words = html.escape(re.sub(r"[*_`#$\\{}]", "", said))
        caption = _markdown(f"**Figure {number}.** {said}")
        return (
            f'<figure id="figure-{number}"><img src="{source}" alt="{words}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    if "text/html" in data:
        return (
            "<div "
            f"class=table>{re.sub(r'<style.*?</style>', '', data['text/html'], flags=re.S)}</div>"
        )
    text = data.get("text/plain") or "".join(output.get("text", ()))
    return f"<pre class=output>{html.escape(text)}</pre>" if text.strip() else ""


def _anchored(rendered: str) -> tuple[str, list[tuple[str, str]]]:
    """Headings with an anchor each, and the list of them."""
    found: list[tuple[str, str]] = []

    def named(match: re.Match[str]) -> str:
        text = html.unescape(re.sub(r"<[^>]+>", "", match[2]))
        anchor = re.sub(r"[^\w]+", "-", text.lower()).strip("-")
        found.append((text, anchor))
        return f'<h{match[1]} id="{anchor}">{match[2]}</h{match[1]}>'

    return re.sub(r"<h([1-4])>(.*?)</h\1>", named, rendered, flags=re.S), found


def _linked(rendered: str, known: set[str]) -> str:
    """Links to pages of this site; ids of published rows lead to their claims."""
    rendered = re.sub(
        r'(href|src)="(?:\.\./)?(?:notebooks/)?([\w-]+)\.ipynb', r'\1="\2.html', rendered
    )
    rendered = re.sub(r'(href|src)="\.\./figures/', r'\1="figures/', rendered)

    def linked(match: re.Match[str]) -> str:
        first = next((row for row in _matching(match[0], known)), None)
        return f'<a href="claims.html#{first}">{match[0]}</a>' if first else match[0]

    return re.sub(r"\b[A-Z][A-Z0-9]+(?:-[\w.]+)*-(?:\d+|\*)(?![\w\"])", linked, rendered)


def _matching(row: str, known: set[str]) -> Iterator[str]:
    """Rows of that id, or of that family."""
    if row in known:
        yield row
    elif row.endswith("*"):
        yield from sorted(one for one in known if one.startswith(row[:-1]))


def front_page(readme: Path, name: str, notebooks: Sequence[Page]) -> Page:
    """README as the first page, its links leading to pages."""
    rendered, entries = _anchored(_markdown(readme.read_text(encoding="utf-8")))
    rendered = re.sub(r'href="README\.zh\.md"', 'href="index.zh.html"', rendered)
    rendered = re.sub(r'href="README\.md"', 'href="index.html"', rendered)
    return Page(
        name=name, title="relparallel", body=_linked(rendered, set()), entries=tuple(entries)
    )


def claims_page() -> Page:
    """Every ledger row: the published value beside the computed one, its source and its state."""
    from relparallel.ledger import ledger

    known = {row: fact for topic in topics() for row, fact in facts(topic).items()}
    rows, entries = [], []
    for row in ledger().to_dict("records"):
        fact = known.get(row["id"])
        quantity, unit, source = (
            (fact.quantity, fact.unit, fact.source) if fact else ("theorem", "", "")
        )
        state = f"{row['status']}{': ' + row['reason'] if row['reason'] else ''}"
        cells = (
            row["id"],
            row["system"],
            quantity,
            row["value"],
            row["computed"],
            unit,
            row["tolerance"],
            row["origin"],
            state,
            source,
        )
        shown = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
        rows.append(f'<tr id="{html.escape(row["id"])}" class="{row["status"]}">{shown}</tr>')
        entries.append((f"{row['id']}: {row['system']}, {quantity}", row["id"]))
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    table = f"<h1>Claims</h1><div class=table><table><tr>{head}</tr>{''.join(rows)}</table></div>"
    return Page(
        name="claims", title="Claims beside published numbers", body=table, entries=tuple(entries)
    )


def scoreboard_page() -> Page:
    """How far predictions of measured runs are off by source, and what others say of theirs."""
    from relparallel.claims.scoreboard import board, peers

    tables = [
        f"<div class=table>{table.to_html(float_format='{:.1f}'.format, na_rep='')}</div>"
        for table in (board(), peers().set_index("model"))
    ]
    rendered, entries = _anchored(_markdown(_SCOREBOARD.format(*tables)))
    return Page(
        name="scoreboard", title="Scoreboard", body=_linked(rendered, set()), entries=tuple(entries)
    )


def names_page() -> Page:
    """Reference of the public names, by package, from their own docstrings."""
    import relparallel

    parts = [
        "<h1>Public names</h1>",
        f"<pre>{html.escape(inspect.getdoc(relparallel) or '')}</pre>",
    ]
    entries = []
    packages = [name for name in dir(relparallel) if inspect.ismodule(getattr(relparallel, name))]
    for package in packages:
        module = getattr(relparallel, package)
        said = html.escape(inspect.getdoc(module) or "")
        parts.append(f'<h2 id="{package}">{package}</h2><pre>{said}</pre>')
        for name in sorted(getattr(module, "__all__", ())):
            thing = getattr(module, name)
            if callable(thing):
                entries.append((f"{package}.{name}", f"{package}.{name}"))
                parts.append(
                    "<h3 "
                    f'id="{package}.{name}"><code>{name}{html.escape(_signature(thing))}</code></h3>'
                    f"<pre>{html.escape(inspect.getdoc(thing) or '')}</pre>"
                )
    return Page(name="names", title="Public names", body="\n".join(parts), entries=tuple(entries))


def _signature(thing: Any) -> str:
    """Arguments of a function or a class, without addresses."""
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(thing)))
    except ValueError:
        return ""


def whatif_page(grid: Grid | None = None) -> Page:
    """Page with sliders over failures and recovery for the best strategies of each grid entry."""
    known = [
        entry
        for model, cluster, sizes in (GRID if grid is None else grid)
        for gpus in sizes
        for entry in _speeds(plan(model, cluster, gpus=gpus, strategies=4))
    ]
    body = (PARTS / "whatif.html").read_text(encoding="utf-8")
    script = (PARTS / "whatif.js").read_text(encoding="utf-8")
    filled = body.replace("{{GRID}}", json.dumps(known)).replace("{{SCRIPT}}", script)
    return Page(
        name="whatif", title="What if?", body=filled, entries=(("What if?", "what-if"),), alone=True
    )


def _speeds(found: Plan) -> list[dict[str, Any]]:
    """What the page knows of the strategies of a plan: nodes, nodes of a replica, tokens a day."""
    cluster, rows = found.best.cluster, []
    for row in found.to_frame().drop_duplicates("strategy").to_dict("records"):
        one = read_strategy(row["strategy"])
        nodes = one.gpus // cluster.gpus_per_node
        replica = max(one.model_parallel // cluster.gpus_per_node, 1)
        if nodes % replica == 0:
            tokens = found.global_batch * found.model.sequence * DAY / 1e9
            speed = [
                float(f"{tokens / row[name]:.5g}") for name in ("step [s]", "step to", "step from")
            ]
            name = f"{found.name}, {cluster.gpus:,} GPUs of {cluster.name}: {row['strategy']}"
            rows.append({"name": name, "nodes": nodes, "replica": replica, "speed": speed})
    return rows
