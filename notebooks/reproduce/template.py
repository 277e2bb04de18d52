"""A new notebook with the cells that every notebook of the collection begins and ends with."""

import re
from pathlib import Path

from .notebook import NotebookError
from .record import whole_checkout


def new_notebook(name: str, root: Path | None) -> Path:
    """Write ``notebooks/NAME.ipynb``, which runs as it is; refuse a number that is taken."""
    folder = whole_checkout(root) / "notebooks"
    if not re.fullmatch(r"\d\d_[a-z0-9]+(_[a-z0-9]+)*", name):
        raise NotebookError(
            f"NAME must be two digits and words, such as 49_my_question, got {name!r}"
        )
    if taken := sorted(path.stem for path in folder.glob(f"{name[:2]}_*.ipynb")):
        raise NotebookError(f"NAME must begin with a free number, got {name!r} beside {taken[0]}")
    template = Path(__file__).with_name("pages") / "template.ipynb"
    text = template.read_text("utf-8").replace("{{FIGURE}}", name.replace("_", "-"))
    path = folder / f"{name}.ipynb"
    path.write_text(text, encoding="utf-8")
    return path
