"""A page of the collection, and the files that frame it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

PARTS: Final = Path(__file__).with_name("pages")
"""Frame of a page, its style sheet, and its scripts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One page: its file name, its title, its body as HTML, and what the search knows of it."""

    name: str
    title: str
    body: str
    entries: tuple[tuple[str, str], ...] = ()  # (heading, anchor)
    alone: bool = False  # needs no other file, and so has no search
