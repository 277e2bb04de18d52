"""Figures of a notebook with what its Markdown says of them, in both languages."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PAIR: Final = r"\*\*Figure\.\*\* (?P<english>.+)\n\n\*图：(?P<chinese>.+)\*(?:\n\n|$)"
CAPTION: Final = re.compile(PAIR)
PICTURE: Final = re.compile(rf"!\[[^]]+\]\(\.\./figures/(?P<name>[\w-]+)\.svg\)\n\n{PAIR}")
FINDING: Final = re.compile(r"^\*\*Finding\.\*\* (.+)(?:\n\n\*结论：(.+)\*$)?", re.M)
CONCLUSION: Final = re.compile(r"^\*结论：.+\*\n*", re.M)
SAVED: Final = re.compile(r'\bsave\((?:[^"]|"(?!\d\d-))*"(\d\d-[a-z0-9-]+)"')


class Shown(NamedTuple):
    """Caption of a figure and the finding below it, in English and in Chinese."""

    english: str
    chinese: str
    finding: str = ""
    conclusion: str = ""


def text(cell: Mapping[str, Any]) -> str:
    """Source of a cell."""
    return "".join(cell["source"])


def saved(cell: Mapping[str, Any]) -> list[str]:
    """Names of the figures that a code cell saves."""
    return SAVED.findall(text(cell)) if cell["cell_type"] == "code" else []


def captions(cells: Sequence[Mapping[str, Any]]) -> dict[str, Shown]:
    """What is said of each figure: below its picture in Markdown, else below its cell."""
    prose = "\n\n".join(text(cell) for cell in cells if cell["cell_type"] == "markdown")
    found = {one["name"]: Shown(one["english"], one["chinese"]) for one in PICTURE.finditer(prose)}
    last = ""  # figure whose finding has not come yet
    for cell, below in pairwise(map(text, cells)):
        place = 0
        for name in SAVED.findall(cell):
            if name not in found and (pair := CAPTION.match(below, place)):
                found[name], place = Shown(pair["english"], pair["chinese"]), pair.end()
            last = name if name in found else last
        if last and (said := FINDING.search(below, place)):
            whole = {"finding": said[1], "conclusion": said[2] or ""}
            found[last], last = found[last]._replace(**whole), ""
    return found
