"""Notebook files as this project stores them: reading, the normal form and digests.

Only the standard library is imported here: the check "is anything stale?" must cost nothing.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
RECORD = "relparallel"  # key of the record of a run in a notebook's metadata
PARAMETERS_TAG, INJECTED_TAG, RESULT_TAG = "parameters", "injected-parameters", "result"
_KEPT = re.compile(r"#|!\[")  # lines that need no mark: headings and pictures
_POINTER = "*What is set back like this speaks of other values: see below the parameters.*"
_VOLATILE_NOTEBOOK = ("papermill", "widgets")
_VOLATILE_CELL = ("papermill", "execution")


class NotebookError(ValueError):
    """A notebook, or a request to it, is not as it must be; the message says what is allowed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Notebook:
    """One notebook file as it was read."""

    path: Path
    raw: bytes
    content: dict[str, Any]

    @property
    def name(self) -> str:
        """The file's name without its suffix, such as ``43_reliability_of_strategies``."""
        return self.path.stem


def read(path: Path) -> Notebook:
    """Read one notebook of format 4.5 or later (the format in which every cell has an id)."""
    raw = path.read_bytes()
    try:
        content = json.loads(raw)
        version = (content["nbformat"], content["nbformat_minor"])
        identified = all("id" in cell and "source" in cell for cell in content["cells"])
    except (ValueError, KeyError, TypeError) as error:
        raise NotebookError(f"{path} is not a notebook: {error!r}") from None
    if version[0] != 4 or version < (4, 5) or not identified:
        raise NotebookError(
            f"{path} must be a notebook of format 4.5 with a cell id everywhere, got {version}"
        )
    return Notebook(path=path, raw=raw, content=content)


def normal_form(content: dict[str, Any]) -> bytes:
    """Return the one way a notebook is written: nothing in it depends on when or where it ran.

    Timings and other traces of the run are dropped, the kernel's description and the id of the cell
    of injected parameters are constant, neighbouring pieces of one output stream are joined, keys
    are sorted.
    """
    metadata = _without(content.get("metadata", {}), _VOLATILE_NOTEBOOK)
    metadata |= {"kernelspec": KERNELSPEC, "language_info": LANGUAGE}
    cells = [_normal_cell(cell) for cell in content["cells"]]
    text = json.dumps(
        content | {"metadata": metadata, "cells": cells},
        indent=1,
        sort_keys=True,
        ensure_ascii=False,
    )
    return text.encode() + b"\n"


def code_digest(content: dict[str, Any]) -> str:
    """Return the digest of what is executed: the sources and tags of the code cells, in order."""
    return _digest([(joined(cell["source"]), tags(cell)) for cell in _code_cells(content)])


def outputs_digest(content: Mapping[str, Any]) -> str:
    """Return the digest of what execution left: outputs and counts of the code cells, in order."""
    cells = [_normal_cell(cell) for cell in _code_cells(content)]
    return _digest([(cell.get("execution_count"), cell.get("outputs")) for cell in cells])


def sha256(data: bytes) -> str:
    """Return the SHA-256 of ``data`` as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def tags(cell: dict[str, Any]) -> list[str]:
    """Return a cell's tags."""
    return list(cell.get("metadata", {}).get("tags", ()))


def parameters_source(content: dict[str, Any]) -> str:
    """Return the source of the cell tagged ``parameters``; empty when there is none."""
    return next(
        (joined(c["source"]) for c in _code_cells(content) if PARAMETERS_TAG in tags(c)), ""
    )


def moved_beside_figures(content: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with its links to ``../figures/`` pointing to ``figures/`` beside it."""

    def moved(cell: dict[str, Any]) -> dict[str, Any]:
        if cell["cell_type"] != "markdown":
            return cell
        return cell | {"source": joined(cell["source"]).replace("../figures/", "figures/")}

    return content | {"cells": [moved(cell) for cell in content["cells"]]}


def results(cells: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the values that ``cells`` tagged ``result`` print as lines ``name = value``, by name."""
    printed = "".join(
        joined(output.get("text", ""))
        for cell in cells
        if RESULT_TAG in tags(cell)
        for output in cell["outputs"]
    )
    return dict(re.findall(r"^(\w+) = (.+)$", printed, re.MULTILINE))


def set_back(
    content: dict[str, Any], values: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the notebook of a run whose text was written for other values, which it says.

    Below the injected values stands a banner; all text but headings and pictures becomes a quote.
    """
    other = {name: value for name, value in values.items() if value != defaults[name]}
    if not other:
        return content
    cells = []
    for cell in content["cells"]:
        if cell["cell_type"] == "markdown":
            cell = cell | {"source": "\n".join(map(_quoted, joined(cell["source"]).split("\n")))}
        cells.append(cell)
        if INJECTED_TAG in tags(cell):
            text = (
                f"**Run with {_values(other, defaults, '{} = {} (default {})')}.** Text that is set "
                "back, with the Answer, captions and findings, is that of the defaults; what "
                "cells print and draw is of this run.\n\n"
                f"**本次运行取 {_values(other, defaults, '{} = {}（默认 {}）')}。**缩进的文字（答案、图注、"
                "结论）按默认值写成；单元格的输出与图属于本次运行。"
            )
            banner = {"cell_type": "markdown", "id": "other-values", "metadata": {}, "source": text}
            cells.append(banner)
    first = cells[0]["source"]
    title, _, rest = joined(first).partition("\n")
    cells[0] = cells[0] | {"source": f"{title}\n> {_POINTER}\n{rest}"}
    return content | {"cells": cells}


def _values(values: Mapping[str, Any], defaults: Mapping[str, Any], form: str) -> str:
    return ", ".join(form.format(name, value, defaults[name]) for name, value in values.items())


def _quoted(line: str) -> str:
    """A line of text as a part of a quote, without a gap to the next."""
    return line if _KEPT.match(line) else f"> {line}".rstrip()


def _code_cells(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def _normal_cell(cell: dict[str, Any]) -> dict[str, Any]:
    metadata = _without(cell.get("metadata", {}), _VOLATILE_CELL)
    if not metadata.get("tags", True):
        del metadata["tags"]
    normal = cell | {
        "metadata": metadata,
        "source": joined(cell["source"]).splitlines(keepends=True),
    }
    if INJECTED_TAG in tags(cell):
        normal["id"] = INJECTED_TAG
    if cell["cell_type"] == "code":
        normal["outputs"] = _joined_streams(cell.get("outputs", []))
    return normal


def _joined_streams(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join neighbouring pieces of a stream: where the kernel cut them depends on its clock."""
    found: list[dict[str, Any]] = []
    for name, group in groupby(outputs, key=lambda output: output.get("name")):
        if name is None:
            found.extend(group)
        else:
            text = "".join(joined(piece["text"]) for piece in group)
            found.append(
                {"name": name, "output_type": "stream", "text": text.splitlines(keepends=True)}
            )
    return found


def _without(metadata: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in keys}


def joined(text: str | list[str]) -> str:
    """Return a source or an output, which a file holds as text or as its lines."""
    return text if isinstance(text, str) else "".join(text)


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode())
