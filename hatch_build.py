"""What a package index shows: README.md, whose pictures and links lead to the address of the project.

An index hosts no files of the repository. Without ``Source`` in ``[project.urls]``, their words
stand alone.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """Fills in the field ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the text that a package index shows."""
        source = metadata.get("urls", {}).get("Source", "")
        text = portable((Path(self.root) / "README.md").read_text(encoding="utf-8"), source)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def portable(text: str, source: str = "") -> str:
    """Return Markdown without links to files beside it: they lead to ``source``, or are words."""

    def moved(link: re.Match[str]) -> str:
        mark, words, path = link.groups()
        if source:
            return f"{mark}[{words}]({source.rstrip('/')}/{'raw' if mark else 'blob'}/HEAD/{path})"
        return words

    return re.sub(r"(!?)\[([^]]*)\]\((?!https?:|#)([^)]+)\)", moved, text)
